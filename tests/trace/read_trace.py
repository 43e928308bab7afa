"""A reader of trace files written from docs/format-trace.md alone: read_trace.py FILE."""

import struct
import sys

BLOCK = 16384
MASK = (1 << 64) - 1


def mixed(words):
    check = 0x9E3779B97F4A7C15
    for word in words:
        check = (check ^ word) * 0xD1342543DE82EF95 & MASK
        check ^= check >> 29
    return check


def checksum(header, payload):
    a, b = [0] * 4, [0] * 4
    for words in struct.iter_unpack("<4Q", payload + bytes(32 - len(payload) % 32)):
        a = [(x + word) & MASK for x, word in zip(a, words)]
        b = [(x + y) & MASK for x, y in zip(b, a)]
    head = mixed(struct.unpack("<5Q", header))
    return head ^ mixed(a), head ^ mixed(b)


def fold(words):
    x = 0
    for word in words:
        x ^= word
    return x * 0x9E3779B97F4A7C15 >> 48 & 0xFFFF


def blocks(data):
    """(kind, thread, stride, sealed, payload) of every block that can be read."""
    for at in range(0, len(data) - BLOCK + 1, BLOCK):
        block = data[at:at + BLOCK]
        if not any(block[:64]):
            continue
        magic, kind, state, thread, index, first, stride, _, used, a, b = struct.unpack_from(
            "<4sBBHIIQQQQQ", block)
        if magic != b"SNWB":
            print(f"block {at // BLOCK}: damaged")
            continue
        payload = block[64:]
        if state == 0xA5:
            payload = payload[:used]
            if checksum(block[:40], payload) != (a, b):
                print(f"block {at // BLOCK}: its checksum does not hold")
                continue
        yield kind, thread, stride, payload


def records_of(payload):
    for words in struct.iter_unpack("<QQQQ", payload[:len(payload) // 32 * 32]):
        begin, duration, waiting, tail = words
        if tail == 0 or tail & 0xFFFF != fold([begin, duration, waiting, tail & ~0xFFFF]):
            return
        yield begin, duration, waiting, tail >> 16 & 0xFFFF, tail >> 32


def slots_of(payload):
    for words in struct.iter_unpack("<16Q", payload[:len(payload) // 128 * 128]):
        if words[7] == 0 or words[7] >> 48 != fold([*words[:7], words[7] & (1 << 48) - 1]):
            return
        yield words


def notes_of(payload):
    at = 0
    while at + 16 <= len(payload) and payload[at]:
        kind, _, _, length, ident = struct.unpack_from("<BBHIQ", payload, at)
        yield kind, ident, payload[at + 16:at + 16 + length].decode()
        at += 16 + (length + 7) // 8 * 8


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    if data[64:72] != b"SINEWTRC":
        sys.exit("no trace")
    calls = sent = counters = 0
    begins = []
    for kind, thread, stride, payload in blocks(data):
        if kind == 1:
            print("closed:", "yes" if struct.unpack_from("<Q", payload, 112)[0] else "no")
        elif kind == 2:
            for slot in slots_of(payload):
                counters += 1
                calls += slot[8]
                sent += slot[8] * slot[2] + slot[14]
        elif kind == 3:
            begins += [record[0] for record in records_of(payload)]
        elif kind == 4:
            for note in notes_of(payload):
                print(f"note {note[0]} {note[1]}: {note[2]}")
    print(f"counters: {counters}, calls: {calls}, sent: {sent}")
    if begins:
        print(f"records: {len(begins)}, first begins at {begins[0]}, last at {begins[-1]}")


if __name__ == "__main__":
    main()
