"""Training steps of PyTorch for round_trips.py, none of which asks for a result.

usage: steps.py MODEL STEPS
"""
import sys

import torch

BATCH = 16


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(),
                               torch.nn.Linear(512, 10)), torch.randn(BATCH, 512)


def convolution():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10)), \
        torch.randn(BATCH, 3, 64, 64)


def transformer():
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    return torch.nn.Sequential(layer, torch.nn.Flatten(), torch.nn.Linear(128 * 32, 10)), \
        torch.randn(BATCH, 32, 128)


torch.manual_seed(1)
model, inputs = {"mlp": mlp, "convolution": convolution, "transformer": transformer}[sys.argv[1]]()
model, inputs = model.cuda(), inputs.cuda()
labels = torch.randint(10, (BATCH,), device="cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(int(sys.argv[2])):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
torch.cuda.synchronize()
