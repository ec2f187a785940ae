#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_otf2.py TRACE.json TRACES.otf2 [COMM]: what otf2-print reads of an archive is what the
JSON trace of the same source says: each slice, by process, name and times; no more and no fewer.
A location's times never go back and its regions nest.  Each collective has its record, messages
have two ends, and COMM is the name of a communicator."""

import collections
import json
import re
import subprocess
import sys


def printed(*args):
    done = subprocess.run(["otf2-print", *args], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() + done.stdout.splitlines()
                  if re.search(r"error|warning", line, re.I) and not line.startswith(" ")]
    assert done.returncode == 0 and not complaints, complaints[:5]
    return done.stdout


def region_of(event):
    """The name without its numbers, as trace_otf2.c makes it."""
    if event["cat"] == "lost":
        return "lost"
    name = re.split(r" (?=[#0-9])", event["name"])[0]
    return name + (" (not ended)" if event["args"].get("ended") is False else "")


def drawn(trace):
    """Slices of the JSON trace: (process, region), start on the grid of 125 ns, exact duration."""
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"]
             if e["name"] == "process_name"}
    zero = trace["otherData"]["zero_mono_ns"]
    return collections.Counter(
        (names.get(e["pid"], "all processes"), region_of(e), zero + round(e["ts"] * 1000),
         e["args"]["dur_ns"], e["args"].get("seq"))
        for e in trace["traceEvents"] if e["ph"] in "Xb")


def main():
    trace = json.load(open(sys.argv[1], encoding="utf-8"))
    defs = printed("-G", sys.argv[2])
    process = dict(re.findall(r'^LOCATION +(\d+) +Name: .*, Group: "(.*)" <\d+>', defs, re.M))
    zero = trace["otherData"]["zero_mono_ns"]
    clock = re.search(r"Global Offset: (\d+), Length: (\d+)", defs)
    first, last = int(clock[1]), int(clock[1]) + int(clock[2])
    found = collections.Counter()
    kinds = collections.Counter()
    ends = collections.defaultdict(list)
    stack = collections.defaultdict(list)
    latest = {}
    opened = None
    for line in printed(sys.argv[2]).splitlines():
        seq = re.search(r'\("seq" <\d+>; INT64; (\d+)\)', line)
        if line.startswith(" ") and seq and opened:
            opened[2] = int(seq[1])
        event = re.match(r"([A-Z_]+) +(\d+) +(\d+) +(.*)", line)
        if not event:
            continue
        kind, at, time, rest = event[1], event[2], int(event[3]), event[4]
        kinds[kind] += 1
        assert first <= time <= last, f"{line}: not within the clock's {first} to {last}"
        assert time >= latest.get(at, 0), f"time goes back: {line}"
        latest[at] = time
        if kind == "ENTER":
            opened = [re.match(r'Region: "(.*)" <\d+>', rest)[1], time, None]
            stack[at].append(opened)
        elif kind == "LEAVE":
            name, start, seq = stack[at].pop()
            assert name == re.match(r'Region: "(.*)" <\d+>', rest)[1], f"no such region: {line}"
            grid = zero + (start - zero) // 125 * 125 if start > zero else zero
            found[process[at], name, grid, time - start, seq] += 1
        elif kind in ("MPI_SEND", "MPI_RECV"):
            ends[re.search(r"Tag: (\d+), Length: \d+", rest)[0]].append((kind, time))
    wanted = drawn(trace)
    assert not any(stack.values()), "a region is never left"
    assert wanted == found, (list((wanted - found).items())[:3], list((found - wanted).items())[:3])
    collectives = sum(n for (_, name, *_), n in found.items() if name in ("AllReduce", "Broadcast"))
    assert kinds["MPI_COLLECTIVE_BEGIN"] == kinds["MPI_COLLECTIVE_END"] == collectives > 20, kinds
    assert kinds["METRIC"] > 20, kinds
    for message in ends.values():
        assert sorted(kind for kind, _ in message) == ["MPI_RECV", "MPI_SEND"], message
    if len(sys.argv) > 3:
        assert f'Name: "{sys.argv[3]}" <' in defs, [l for l in defs.splitlines() if "COMM " in l]
    print(f"{sum(found.values())} slices, {dict(kinds)}, {len(ends)} messages")


main()
