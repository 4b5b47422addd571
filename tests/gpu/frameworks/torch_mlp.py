"""PyTorch: a perceptron trained with Adam, eagerly."""
import torch
from report import report

torch.manual_seed(1)
model = torch.nn.Sequential(*(layer for _ in range(4) for layer in (
    torch.nn.Linear(1024, 1024), torch.nn.ReLU())), torch.nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
inputs = torch.randn(256, 1024, device="cuda")
labels = torch.randint(10, (256,), device="cuda")
losses = []


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())


report("torch_mlp", step, torch.cuda.synchronize, samples=50, warm_up=10, result=lambda: losses[-1])
