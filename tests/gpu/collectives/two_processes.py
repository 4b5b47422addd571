"""NCCL with two processes that have a GPU each, as torchrun starts them: sums, gathers and broadcasts
of 1 KiB to 1 GiB, a training step with DistributedDataParallel, and one with FullyShardedDataParallel.
"""
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel
from figures import SIZES, expect_equal, report

WORLD = 2
BATCH = 32


def collectives(rank, device):
    for size in SIZES:
        tensor = torch.full((size // 4,), 1.0 + rank, device=device)
        halves = torch.empty(size // 4, device=device)
        own = torch.full((size // 8,), 1.0 + rank, device=device)
        steps = {"all_reduce": lambda: dist.all_reduce(tensor, op=dist.ReduceOp.MAX),
                 "all_gather": lambda: dist.all_gather_into_tensor(halves, own),
                 "broadcast": lambda: dist.broadcast(tensor, 0)}
        for name, step in steps.items():
            report(f"{name}_{size}", step, torch.cuda.synchronize, size, quiet=rank != 0)
        expect_equal([tensor, halves[:size // 8], halves[size // 8:]], [2.0, 1.0, 2.0])


def trained(rank, device, wrap, name):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(2048, 2048) if i % 2 == 0 else torch.nn.ReLU() for i in range(16)]
    model = wrap(torch.nn.Sequential(*layers, torch.nn.Linear(2048, 10)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    inputs = torch.randn(BATCH, 2048, device=device)
    labels = torch.randint(10, (BATCH,), device=device)
    losses = []

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    report(name, step, torch.cuda.synchronize, 0, quiet=rank != 0, samples=30,
           result=lambda: losses[-1])


def work(rank, port, wanted):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", rank=rank, world_size=WORLD, device_id=device)
    if "collectives" in wanted:
        collectives(rank, device)
    if "ddp" in wanted:
        trained(rank, device, lambda model: DistributedDataParallel(model, device_ids=[rank]), "ddp")
    if "fsdp" in wanted:
        trained(rank, device, lambda model: FullyShardedDataParallel(model, device_id=device), "fsdp")
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    processes.spawn(work, (free_port(), sys.argv[1:] or ("collectives", "ddp", "fsdp")), WORLD)
