# SPDX-License-Identifier: Apache-2.0
"""One rank of a training in PyTorch: a model whose gradients are summed over all ranks.

    train.py RANKS RANK DIRECTORY until               ends when there is DIRECTORY/end
    train.py RANKS RANK DIRECTORY turns TURNS INDEX JOBS ROUNDS NAME
    train.py RANKS RANK DIRECTORY uneven              gathers of tensors of several sizes

DIRECTORY is the same for all ranks.  `until`: each step, a line with its seconds goes to
DIRECTORY/steps.RANK; while there is DIRECTORY/late.RANK, the rank comes late to its gradients
by the seconds that are written in it.  `turns`: DIRECTORY/speed.RANK gets how long a step of
each turn took, as cost.c does it.
"""
import json
import mmap
import os
import struct
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LAYERS, WIDTH, BATCH = 16, 1024, 256
STEPS = 60          # of a turn
UNEVEN = 300
POLL_S = 0.0002


class Training:
    def __init__(self, ranks, rank, directory):
        self.rank, self.directory = rank, directory
        torch.manual_seed(7)
        torch.cuda.set_device(0)
        dist.init_process_group("nccl", init_method=f"file://{directory}/rendezvous",
                                world_size=ranks, rank=rank)
        layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        self.model = DistributedDataParallel(nn.Sequential(*layers).cuda(), bucket_cap_mb=8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.data = torch.randn(BATCH, WIDTH, device="cuda")
        self.done = torch.zeros(1, device="cuda")

    def late_s(self):
        try:
            with open(f"{self.directory}/late.{self.rank}", encoding="ascii") as file:
                return float(file.read())
        except (OSError, ValueError):
            return 0

    def step(self, late_s=0):
        loss = self.model(self.data).square().mean()
        torch.cuda.synchronize()
        time.sleep(late_s)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        torch.cuda.synchronize()

    def until(self):
        with open(f"{self.directory}/steps.{self.rank}", "w", encoding="ascii", buffering=1) as out:
            while not os.path.exists(f"{self.directory}/end"):
                begin = time.monotonic()
                self.step(self.late_s())
                out.write(f"{begin:.6f} {time.monotonic() - begin:.6f}\n")
        os._exit(0)     # the other ranks may not come any more

    def turns(self, path, index, jobs, rounds, name):
        ranks = dist.get_world_size()
        with open(path, "r+b") as file, \
                open(f"{self.directory}/speed.{self.rank}", "w", encoding="ascii") as out:
            turns = mmap.mmap(file.fileno(), 4)
            for turn in range(int(rounds)):
                while struct.unpack("I", turns[:4])[0] < (turn * int(jobs) + int(index)) * ranks:
                    time.sleep(POLL_S)
                for _ in range(5):
                    self.step()
                begin = time.monotonic()
                for _ in range(STEPS):
                    self.step()
                out.write(json.dumps({"name": name, "round": turn, "bytes": 0,
                                      "step_ns": (time.monotonic() - begin) / STEPS * 1e9}) + "\n")
                # Only one process adds, when all are done: nothing here is atomic.
                dist.all_reduce(self.done)
                torch.cuda.synchronize()
                if self.rank == 0:
                    turns[:4] = struct.pack("I", (turn * int(jobs) + int(index) + 1) * ranks)
        dist.destroy_process_group()


    # A group of Broadcasts with several roots, which NCCL 2.29 and later make an AllGatherV of.
    def uneven(self):
        ranks = dist.get_world_size()
        for _ in range(UNEVEN):
            gathered = [torch.zeros(1000 * (rank + 1), device="cuda") for rank in range(ranks)]
            dist.all_reduce(self.done)
            dist.all_gather(gathered, torch.full_like(gathered[self.rank], self.rank))
            dist.all_reduce(self.done)
            torch.cuda.synchronize()
            assert [part.mean().item() for part in gathered] == list(range(ranks))
        dist.destroy_process_group()


training = Training(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
getattr(training, sys.argv[4])(*sys.argv[5:])
