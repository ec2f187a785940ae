#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sweep.py FILE: what a trace of PyTorch's profiler says of its one GPU, reckoned in another way.

Kernels begin and end one after the other, and each moment between is somebody's.  Prints what
`ncclinsp overlap -o csv --fields step,time_ns,compute_ns,comm_ns,hidden_ns,exposed_ns,idle_ns` does.
"""
import decimal
import gzip
import json
import sys


def nanoseconds(us):
    return int(us * 1000)


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_float=decimal.Decimal, parse_int=decimal.Decimal)["traceEvents"]


def sums(kernels, begin, end):
    moments = []
    for start, stop, is_nccl, _ in kernels:
        start, stop = max(start, begin), min(stop, end)
        if stop > start:
            moments += [(start, 1, is_nccl), (stop, -1, is_nccl)]
    running, last = [0, 0], begin
    compute = comm = exposed = idle = 0
    for at, change, is_nccl in sorted(moments) + [(end, 0, False)]:
        passed, last = at - last, at
        compute += passed if running[False] else 0
        comm += passed if running[True] else 0
        exposed += passed if running[True] and not running[False] else 0
        idle += passed if not any(running) else 0
        running[is_nccl] += change
    return end - begin, compute, comm, comm - exposed, exposed, idle


def main():
    events = [event for event in load(sys.argv[1]) if event.get("ph") == "X"]
    start = lambda event: nanoseconds(event["ts"])
    kernels = [(start(e), start(e) + nanoseconds(e["dur"]), "nccl" in e["name"], int(e["args"].get("correlation", 0)))
               for e in events if e["cat"] == "kernel"]
    launches = [(start(e), int(e["args"]["correlation"])) for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")
                and e["args"].get("correlation", 0) > 0]
    steps = sorted((start(e), int(e["name"].split("#")[1])) for e in events
                   if e["cat"] == "user_annotation" and e["name"].startswith("ProfilerStep#"))
    first, last = min(k[0] for k in kernels), max(k[1] for k in kernels)
    print("step,time_ns,compute_ns,comm_ns,hidden_ns,exposed_ns,idle_ns")
    print("", *sums(kernels, first, last), sep=",")
    begins = []
    for at, _ in steps:
        launched = min((correlation for when, correlation in launches if when >= at), default=None)
        begins.append(min((k[0] for k in kernels if launched is not None and k[3] >= launched), default=last))
    for (_, number), begin, end in zip(steps, begins, begins[1:] + [last]):
        if end > begin:
            print(number, *sums(kernels, begin, end), sep=",")


if __name__ == "__main__":
    main()
