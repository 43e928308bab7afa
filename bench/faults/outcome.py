"""What a few runs of one case on one system amount to, in words that fit a cell of a table."""
import collections
import re
import statistics

Kind = collections.namedtuple("Kind", "title elements trials")  # trials: of how many asked for
BOTH = [16, 65536]
CASES = {
    "kill": Kind("kill -9 of a rank", [1000], lambda n: n),
    "stop": Kind("SIGSTOP of a rank", [1000], lambda n: n),
    "operation": Kind("broadcast beside allreduce", BOTH, lambda n: max(1, n // 2)),
    "count": Kind("half the count", BOTH, lambda n: max(1, n // 2)),
    "type": Kind("int beside float", BOTH, lambda n: max(1, n // 2)),
    "reduction": Kind("max beside sum", BOTH, lambda n: max(1, n // 2)),
    "root": Kind("another root", BOTH, lambda n: max(1, n // 2)),
    "order-sizes": Kind("two calls swapped, sizes differ", BOTH, lambda n: max(1, n // 2)),
    "order-equal": Kind("two calls swapped, sizes equal", BOTH, lambda n: max(1, n // 2)),
    "strangers": Kind("strangers at the ports", [1000], lambda n: 1),
}


def span(seconds):
    if seconds < 0.001:
        return "under 1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def names(text, rank):
    """Whether a text speaks of the rank as somebody else, in any of the ways they are written."""
    return re.search(rf"\brank {rank}\b(?!,)", text) is not None  # "rank 1, ..." is the speaker


def summarize(case, runs):
    failed = [run["failed"] for run in runs if "failed" in run]
    if failed:
        return "could not be run: " + failed[0]
    return strangers_in(runs[0]) if case == "strangers" else fates_in(runs)


def strangers_in(run):
    hosts = sorted({place.rsplit(":", 1)[0] for place in run["listeners"]})
    if not run["listeners"]:
        return "nobody listens"
    where = f"{len(run['listeners'])} port(s) at {', '.join(hosts)}"
    return f"{len(run['ended'])} of {run['probes']} probes end the job; {where}"


def fates_in(runs):
    fates = [fate for run in runs for fate in run["fates"].values()]
    counts = collections.Counter(fate["what"] for fate in fates)
    # A rank that returned wrong data as if all were well, whatever came later.
    wrong = sum(1 for fate in fates if "wrong" in fate["said"])
    parts = []
    if wrong:
        parts.append(f"**wrong data** to {wrong} of {len(fates)}")
    if counts["error"]:
        times = [fate["after_s"] for fate in fates if fate["what"] == "error"]
        parts.append(f"error to {counts['error']} of {len(fates)} after {span(statistics.median(times))}"
                     f" (most {span(max(times))}), {who(runs)}")
    if counts["killed"]:
        times = [fate["after_s"] for fate in fates if fate["what"] == "killed"]
        parts.append(f"{counts['killed']} of {len(fates)} killed after {span(statistics.median(times))}"
                     + ("" if counts["error"] else f", {who(runs)}"))
    if counts["hangs"]:
        parts.append(f"{counts['hangs']} of {len(fates)} hang")
    lucky = sum(1 for fate in fates if fate["what"] == "finished" and "wrong" not in fate["said"])
    if lucky:
        parts.append(f"{lucky} of {len(fates)} notice nothing")
    # Whoever hangs is killed by us, and cannot clean up.
    ended = [run for run in runs if all(fate["what"] != "hangs" for fate in run["fates"].values())]
    for what in ("processes", "files"):
        if sum(run[what + "_left"] for run in ended):
            parts.append(f"{sum(run[what + '_left'] for run in ended)} {what} left")
    return "; ".join(parts)


def who(runs):
    """Of the ranks with an error, how many were told the right name; else what the launcher says."""
    errors = [fate for run in runs for fate in run["fates"].values() if fate["what"] == "error"]
    named = sum(fate["names"] for fate in errors)
    if errors and named:
        return f"{named} of {len(errors)} name the rank"
    if any(run["launcher_names"] for run in runs):
        return "the launcher names the rank"
    return "nobody is named"
