"""NCCL with two GPUs of one process, and what PyTorch has for that: sums, gathers and broadcasts of
1 KiB to 1 GiB, and copies between the two GPUs."""
import sys

import torch
from torch.cuda import nccl
from figures import SIZES, expect_equal, report, say

DEVICES = (0, 1)


def wait():
    for device in DEVICES:
        torch.cuda.synchronize(device)


def filled(size, value):
    return [torch.full((size // 4,), value + device, device=f"cuda:{device}") for device in DEVICES]


def all_reduce(size):
    inputs, outputs = filled(size, 1.0), filled(size, 0.0)
    report(f"all_reduce_{size}", lambda: nccl.all_reduce(inputs, outputs), wait, size)
    expect_equal(outputs, [3.0, 3.0])


def all_gather(size):
    inputs = filled(size // 2, 1.0)
    outputs = filled(size // 2 * 2, 0.0)
    report(f"all_gather_{size}", lambda: nccl.all_gather(inputs, outputs), wait, size)
    half = outputs[0].numel() // 2
    for output in outputs:
        expect_equal([output[:half], output[half:]], [1.0, 2.0])


def broadcast(size):
    tensors = filled(size, 5.0)
    report(f"broadcast_{size}", lambda: nccl.broadcast(tensors), wait, size)
    expect_equal(tensors, [5.0, 5.0])


def between(size):
    source, target = filled(size, 7.0)
    report(f"copy_{size}", lambda: target.copy_(source), wait, size)
    expect_equal([target], [7.0])


if __name__ == "__main__":
    say(f"peers {torch.cuda.can_device_access_peer(0, 1)} {torch.cuda.can_device_access_peer(1, 0)}")
    for what in sys.argv[1:] or ("copy", "all_reduce", "all_gather", "broadcast"):
        for size in SIZES:
            {"copy": between, "all_reduce": all_reduce, "all_gather": all_gather,
             "broadcast": broadcast}[what](size)
