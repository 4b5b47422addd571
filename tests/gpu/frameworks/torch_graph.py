"""PyTorch: a captured graph replayed, and many small operations one by one."""
import torch
from report import report

torch.manual_seed(1)
state = torch.randn(1024, 1024, device="cuda")
start = state.clone()


def work():
    for _ in range(20):
        state.mul_(0.999).add_(0.001)


stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        work()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    work()
state.copy_(start)
report("torch_graph", graph.replay, torch.cuda.synchronize, samples=50, result=state.mean)

small = torch.zeros(64, device="cuda")


def many():
    for _ in range(1000):
        small.add_(1)


report("torch_small_operations", many, torch.cuda.synchronize, samples=10, result=small.sum)
