#!/usr/bin/env python3
"""How long a report of a million events takes: run.py SINEW EVENTS_PROGRAM [-o report.json]

Prints seconds, memory and size of each format, the best of five, and exits 1 over the limits:
2 s, 500 MB, 500 KB for the page.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def once(words, output):
    begin = time.monotonic()
    with open(output, "wb") as file:
        child = subprocess.Popen(words, stdout=file)
        _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(words)} failed")
    return time.monotonic() - begin, used.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sinew")
    parser.add_argument("events")
    parser.add_argument("-o", dest="output")
    wanted = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        run, page = folder + "/run", folder + "/out"
        subprocess.run([wanted.events, run, "8", "1000000"], check=True)
        for form in ["html", "text", "md", "json"]:
            tries = [once([wanted.sinew, "report", run, "--format", form], page) for _ in range(5)]
            rows.append({"format": form, "events": 1000000, "ranks": 8,
                         "seconds": round(min(t for t, _ in tries), 3),
                         "seconds_all": [round(t, 3) for t, _ in tries],
                         "resident_bytes": max(m for _, m in tries),
                         "bytes": os.path.getsize(page)})
    for row in rows:
        print(f"{row['format']:5} {row['seconds']:6.2f} s {row['resident_bytes'] / 1e6:7.0f} MB "
              f"{row['bytes'] / 1e3:9.0f} KB")
    if wanted.output:
        with open(wanted.output, "w", encoding="utf-8") as file:
            json.dump({"schema": "sinew-report-bench", "version": 1, "rows": rows}, file, indent=1)
            file.write("\n")
    page = rows[0]
    missed = page["seconds"] > 2 or page["resident_bytes"] > 500e6 or page["bytes"] > 500e3
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
