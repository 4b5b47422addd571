"""A program of PyTorch's that trains or infers for training.py: says "begun" when it is warm, waits
for a line, works, and says how many steps it did in so many seconds. It goes on for a quarter of
that time, so that others which began with it are not alone at their end.

usage: trainer.py train|infer SECONDS
"""
import sys
import time

import torch

BATCH = 4       # steps that are waited for together
WARM_UP = 5

what, seconds = sys.argv[1], float(sys.argv[2])
torch.manual_seed(1)
model = torch.nn.Sequential(*(layer for width in (64, 128, 128) for layer in (
    torch.nn.LazyConv2d(width, 3, padding=1), torch.nn.LazyBatchNorm2d(), torch.nn.ReLU())),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.LazyLinear(10)).cuda()
inputs = torch.randn(64, 3, 64, 64, device="cuda")
labels = torch.randint(10, (64,), device="cuda")
model(inputs)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()


def infer():
    with torch.no_grad():
        model(inputs)


step = {"train": train, "infer": infer}[what]
for _ in range(WARM_UP):
    step()
torch.cuda.synchronize()
print("begun", flush=True)
sys.stdin.readline()
count, last, now, begun = 0, 0.0, 0.0, time.monotonic()
while now < seconds * 1.25:
    for _ in range(BATCH):
        step()
    torch.cuda.synchronize()
    now = time.monotonic() - begun
    if now <= seconds:
        count, last = count + BATCH, now
print(f"count={count} seconds={last or seconds:.6f}")
