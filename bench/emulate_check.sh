#!/usr/bin/env bash
# Holds `sinew bench --emulate` against a real link: two network namespaces, joined by a veth pair
# that tbf limits to 1 Gbit/s. One transfer at a time, then four that share the link. The two must
# agree within 10 % (headers of frames are a twentieth of the link). Needs root, ip, tc and python3;
# leaves nothing.
# Exit: 0 they agree, 3 something is missing, 5 they differ.   bench/emulate_check.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."
sinew=${1:-build/release/bin/sinew}
here=sinew-a-$$
there=sinew-b-$$

missing() { echo "emulate_check: $*" >&2; exit 3; }
[[ $(id -u) == 0 ]] || missing "needs root, for network namespaces"
for tool in ip tc python3 "$sinew"; do
  command -v "$tool" >/dev/null || missing "$tool is not there"
done

clean_up() {
  local space
  for space in "$here" "$there"; do  # with the first goes one end of the pair, and so the other
    ip netns pids "$space" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns del "$space" 2>/dev/null || true
  done
}
trap clean_up EXIT
trap 'exit 130' INT TERM
ip netns add "$here"
ip netns add "$there"
ip -n "$here" link add veth0 type veth peer name veth0 netns "$there"
for end in "$here 10.77.0.1" "$there 10.77.0.2"; do
  read -r space address <<<"$end"
  ip -n "$space" address add "$address/24" dev veth0
  ip -n "$space" link set veth0 up
  tc -n "$space" qdisc add dev veth0 root tbf rate 1gbit burst 64kb limit 4mb ||
    missing "this kernel has no tbf"
done

# link_us BYTES FLOWS: what the real link takes for so many transfers at once, a word back for each.
flows_py='
import socket, statistics, sys, threading, time
role, bytes, flows, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), 7
def in_threads(work, peers):
    threads = [threading.Thread(target=work, args=(peer,)) for peer in peers]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
def receive(peer):
    room = bytearray(1 << 20)
    for _ in range(rounds):
        left = bytes
        while left > 0: left -= peer.recv_into(room, min(left, len(room)))
        peer.sendall(b"!")
def send(peer):
    peer.sendall(data)
    peer.recv(1)
if role == "server":
    listener = socket.create_server(("10.77.0.2", 7777))
    in_threads(receive, [listener.accept()[0] for _ in range(flows)])
else:
    data, times, peers = b"x" * bytes, [], []
    while len(peers) < flows:
        try: peers.append(socket.create_connection(("10.77.0.2", 7777)))
        except OSError: time.sleep(0.05)  # not there yet
    for _ in range(rounds):
        begin = time.perf_counter()
        in_threads(send, peers)
        times.append(time.perf_counter() - begin)
    print(round(statistics.median(times) * 1e6))
'
link_us() {
  ip netns exec "$there" timeout 30 python3 -c "$flows_py" server "$1" "$2" &
  ip netns exec "$here" timeout 30 python3 -c "$flows_py" client "$1" "$2"
  wait $!
}

# emulated_us BYTES ARGUMENTS...: the median of the one row.
emulated_us() {
  "$sinew" bench --sizes "$1" --rounds 3 --budget 1 --style csv "${@:2}" |
    awk -F, 'NR == 2 { printf "%d\n", $10 }'
}

worst=0
compare() {  # WHAT BYTES FLOWS ARGUMENTS...
  local real emulated
  real=$(link_us "$2" "$3")
  emulated=$(emulated_us "$2" "${@:4}")
  awk -v what="$1" -v r="$real" -v e="$emulated" 'BEGIN {
    off = (e - r) / r * 100
    printf "%-28s link %8d us  emulated %8d us  %+5.1f %%\n", what, r, e, off
    exit off > 10 || off < -10 }' || worst=5
}
compare "16 MiB" 16777216 1 broadcast --emulate 2x1,1Gbit,0us
compare "64 MiB" 67108864 1 broadcast --emulate 2x1,1Gbit,0us
# Every rank of a node meets one of the other: four ways share the link.
compare "4 x 4 MiB at once" 4194304 4 allreduce --algo recursive_doubling --emulate 2x4,1Gbit,0us
exit $worst
