"""PyTorch: memory. Segments that grow, a loader with pinned memory and workers, and a program that
asks for more than there is and goes on.
"""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
from report import report

finish = torch.cuda.synchronize
sizes = [(i * 7919) % 4096 * 1024 + 512 for i in range(200)]
total = 0.0


def grow():
    global total
    blocks = [torch.full((size,), 1.0, device="cuda") for size in sizes]
    total = sum(float(block[-1]) for block in blocks[::20])


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        return torch.full((1024,), float(index))


def load():
    global total
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=32, num_workers=2, pin_memory=True)
    total = sum(float(batch.cuda(non_blocking=True).mean()) for batch in loader)


def exceed():
    """1 if too much is refused in PyTorch's own words, and the rest can be had afterwards."""
    too_much = torch.cuda.get_device_properties(0).total_memory + (1 << 30)
    try:
        torch.empty(too_much, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return torch.ones(1 << 20, device="cuda").sum() == 1 << 20
    return 0


report("torch_expandable", grow, finish, samples=5, result=lambda: total)
report("torch_loader", load, finish, samples=3, warm_up=1, result=lambda: total)
report("torch_out_of_memory", exceed, finish, samples=3, warm_up=0, result=exceed)
