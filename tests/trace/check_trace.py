#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_trace.py FILE...: is that a sound Chrome trace?

Times survive what readers do to them.  Slices of a thread nest, what overlaps comes in pairs of its own, both ends of each arrow lie
in a slice and in order, and every thread that is drawn on has a name.  Says what is wrong and
exits 1, or prints what there is.
"""
import collections
import decimal
import gzip
import json
import sys

SHOWN = 10


def nanoseconds(us):
    return int(us.scaleb(3))


def is_exact(us):
    """As a double, and as ns after a multiplication: what is nested is so for every reader."""
    return float(us) * 1000 == nanoseconds(us) and decimal.Decimal(float(us)) == us


def load(path):
    """All events, times as exact ns."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_float=decimal.Decimal, parse_int=decimal.Decimal)


def bad_nesting(slices):
    """The first pair of a thread that overlaps without one being inside of the other."""
    open_ones = []
    for start, negative_duration, name in sorted(slices):
        stop = start - negative_duration
        while open_ones and open_ones[-1][1] <= start:
            open_ones.pop()
        if open_ones and stop > open_ones[-1][1]:
            return open_ones[-1], (start, stop, name)
        open_ones.append((start, stop, name))
    return None


def is_inside(starts, ns):
    return any(start <= ns <= start - negative for start, negative, _ in starts)


def check(trace):
    wrong = []
    threads = collections.defaultdict(list)
    named, pids, arrows, pairs = set(), set(), {}, collections.Counter()
    kinds = collections.Counter()
    for event in trace["traceEvents"]:
        phase = event["ph"]
        kinds[phase] += 1
        at = (int(event["pid"]), int(event["tid"]))
        ns = nanoseconds(event["ts"]) if "ts" in event else None
        if phase == "X":
            duration = nanoseconds(event["dur"])
            if not is_exact(event["ts"]) or not is_exact(event["dur"]):
                wrong.append(f"no reader holds that time exactly: {event}")
            if duration < 0:
                wrong.append(f"negative duration: {event}")
            threads[at].append((ns, -duration, event["name"]))
        elif phase in "sf":
            ends = arrows.setdefault(int(event["id"]), {})
            if phase in ends:
                wrong.append(f"arrow {event['id']} has two ends of a kind")
            ends[phase] = (at, ns)
        elif phase in "be":
            pairs[(at[0], event["cat"], event["id2"]["local"])] += 1 if phase == "b" else -1
        elif phase == "M" and event["name"] == "thread_name":
            named.add(at)
        elif phase == "M" and event["name"] == "process_name":
            pids.add(at[0])
        elif phase not in "iM":
            wrong.append(f"a phase of its own: {event}")
    for at, slices in threads.items():
        clash = bad_nesting(slices)
        if clash:
            wrong.append(f"thread {at}: {clash[0]} and {clash[1]} overlap")
        if at not in named:
            wrong.append(f"thread {at} has no name")
        if at[0] and at[0] not in pids:
            wrong.append(f"process {at[0]} has no name")
    wrong += [f"pair {key} does not match" for key, n in pairs.items() if n]
    wrong += check_arrows(arrows, threads)
    return wrong, kinds


def check_arrows(arrows, threads):
    """Of all only the first few thousand: each is looked for in its whole thread."""
    wrong = []
    for number, ends in list(arrows.items())[:2000]:
        if set(ends) != {"s", "f"}:
            wrong.append(f"arrow {number} has one end: {ends}")
        elif ends["s"][1] > ends["f"][1]:
            wrong.append(f"arrow {number} goes back in time: {ends}")
        else:
            wrong += [f"arrow {number}: no slice at {ends[end]}" for end in "sf"
                      if not is_inside(threads[ends[end][0]], ends[end][1])]
    return wrong


def main():
    for path in sys.argv[1:]:
        trace = load(path)
        wrong, kinds = check(trace)
        for line in wrong[:SHOWN]:
            print(f"{path}: {line}")
        if wrong:
            print(f"{path}: {len(wrong)} things are wrong")
            return 1
        other = {key: str(value) for key, value in trace["otherData"].items()}
        print(json.dumps({"phases": dict(kinds), "other": other}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
