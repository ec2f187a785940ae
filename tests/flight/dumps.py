#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps as PyTorch's Flight Recorder writes them, of the job that a snapshot tells of.

    dumps.py SNAPSHOT DIR [torch|pickle2|pickle4|json]

Each rank gets DIR/nccl_trace_rank_<global rank>: a process group for each communicator, a call for each of its newest
calls.  The file is what PyTorch's own pickler makes of it (torch), or Python's, or JSON, which has no frames.
"""
import datetime
import json
import pickle
import struct
import sys

TORCH = "/usr/lib/python3.11/site-packages/torch/distributed/"
NAMES = {"AllReduce": "all_reduce", "AllGather": "_all_gather_base", "ReduceScatter": "_reduce_scatter_base"}


class TorchPickler:
    """Writes protocol 2 as torch::jit::Pickler does: texts are in the memo by their value, lists and dictionaries that
    are used twice by their place, behind their content; of sizes all come at once, also of none and of one."""

    def __init__(self, value):
        self.out, self.memo, self.used = bytearray(b"\x80\x02"), {}, {}
        self.count(value)
        self.push(value)
        self.out += b"."

    def count(self, value):
        if isinstance(value, (list, dict, tuple)):
            self.used[id(value)] = self.used.get(id(value), 0) + 1
            if self.used[id(value)] == 1:
                for part in value.values() if isinstance(value, dict) else value:
                    self.count(part)

    def put(self, key):
        n = self.memo[key] = len(self.memo)
        self.out += b"q" + bytes([n]) if n < 256 else b"r" + struct.pack("<I", n)

    def get(self, key):
        n = self.memo.get(key)
        if n is not None:
            self.out += b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n)
        return n is not None

    def push(self, value):
        shared = self.used.get(id(value), 0) > 1
        if shared and self.get(id(value)):
            return
        if value is None or isinstance(value, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self.push_int(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            if not self.get(value):
                self.out += b"X" + struct.pack("<I", len(value.encode())) + value.encode()
                self.put(value)
        elif isinstance(value, tuple):
            for part in value:
                self.push(part)
            self.out += {1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(value)]
        else:
            self.out += b"}(" if isinstance(value, dict) else b"]("
            for part in [x for pair in value.items() for x in pair] if isinstance(value, dict) else value:
                self.push(part)
            self.out += b"u" if isinstance(value, dict) else b"e"
        if shared:
            self.put(id(value))

    def push_int(self, n):
        if 0 <= n < 1 << 8:
            self.out += b"K" + bytes([n])
        elif 0 <= n < 1 << 16:
            self.out += b"M" + struct.pack("<H", n)
        elif -1 << 31 <= n < 1 << 31:
            self.out += b"J" + struct.pack("<i", n)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", n)


def frames(group, own):
    """The innermost first: PyTorch's own, a library's, the application's."""
    return [
        {"name": "all_reduce", "filename": TORCH + "distributed_c10d.py", "line": 2806},
        {"name": "wrapper", "filename": TORCH + "c10d_logger.py", "line": 81},
        {"name": "reduce_grads", "filename": "/usr/lib/python3.11/site-packages/lib/ddp.py", "line": 12},
        {"name": "backward" if group == "dp" else "forward", "filename": "/home/u/train.py", "line": own},
        {"name": "<module>", "filename": "/home/u/train.py", "line": 140},
    ]


def calls_of(shot):
    """(communicator, rank, function, number): time since 1970, function, count, is it over?"""
    written = datetime.datetime.fromisoformat(shot["written_at"][:26] + "+00:00")
    offset = int(written.timestamp() * 1e6) * 1000 - shot["written_mono_ns"]
    calls = {}
    for row in shot["collectives"]:
        calls[row["comm_id"], row["rank"], row["func"], row["seq"]] = row["enqueued_mono_ns"] + offset, \
            row["func"], row["count"], True
    for row in shot["inflight"]:
        if row["event_type"] == "Coll":
            calls[row["comm_id"], row["rank"], row["func"], row["seq"]] = (
                shot["written_mono_ns"] - row["age_ns"] + offset, row["func"], row["count"], False)
    return calls


def entry(group, name, number, call, lines):
    created, func, count, over = call
    created -= 2000  # PyTorch notes a call, then makes it
    return {
        "frames": list(lines), "record_id": 0, "pg_id": int(name), "process_group": (name, group), "thread_name": "python",
        "thread_id": "1", "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number,
        "profiling_name": "nccl:" + NAMES[func], "time_created_ns": created, "duration_ms": 0.25,
        "input_sizes": [[count]], "input_dtypes": ["Float"], "output_sizes": [[count]], "output_dtypes": ["Float"],
        "state": "completed" if over else "started", "time_discovered_started_ns": created + 1000,
        "time_discovered_completed_ns": created + 2000 if over else None, "retired": over, "timeout_ms": 600000,
        "is_p2p": False,
    }


def dumps(shot):
    """By global rank."""
    calls, result = calls_of(shot), {}
    for comm in shot["comms"]:
        ranks = [r["world_rank"] for r in sorted(comm["local_ranks"], key=lambda r: r["rank"])]
        for rank in comm["local_ranks"]:
            dump = result.setdefault(rank["world_rank"], {"version": "2.10", "pg_config": {}, "nccl_version": "2.27.3",
                "pg_status": {"0": {"last_enqueued_collective": -1}}, "entries": []})
            name, group = str(len(dump["pg_config"])), comm["name"]
            dump["pg_config"][name] = {"name": name, "desc": group, "ranks": str(ranks)}
            lines = frames(group, 88 if group == "dp" else 41)
            own = sorted((call, key[3]) for key, call in calls.items() if key[:2] == (comm["comm_id"], rank["rank"]))
            # PyTorch counts all functions together.
            dump["entries"] += [entry(group, name, own[0][1] + 1 + i, call, lines) for i, (call, _) in enumerate(own)]
    for dump in result.values():
        dump["entries"].sort(key=lambda e: e["time_created_ns"])
        for i, e in enumerate(dump["entries"]):
            e["record_id"] = i
    return result


def main():
    path, where, form = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["torch"])[0]
    with open(path) as file:
        shot = json.load(file)
    for world, dump in dumps(shot).items():
        if form == "json":
            for e in dump["entries"]:
                del e["frames"]
        data = {"torch": lambda d: bytes(TorchPickler(d).out), "pickle2": lambda d: pickle.dumps(d, 2),
                "pickle4": lambda d: pickle.dumps(d, 4), "json": lambda d: json.dumps(d).encode()}[form](dump)
        with open(f"{where}/nccl_trace_rank_{world}", "wb") as file:
            file.write(data)


main()
