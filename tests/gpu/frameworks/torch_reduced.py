"""PyTorch: graphs that the framework makes by itself (torch.compile's reduce-overhead), and a whole
training step that is captured and replayed.
"""
import torch
from report import report

torch.manual_seed(1)
finish = torch.cuda.synchronize
layers = torch.nn.Sequential(*(layer for _ in range(8) for layer in (
    torch.nn.Linear(512, 512), torch.nn.GELU()))).cuda()
inputs = torch.randn(64, 512, device="cuda")
compiled = torch.compile(layers, mode="reduce-overhead")
output = None


def infer():
    global output
    with torch.no_grad():
        output = compiled(inputs).clone()


report("torch_reduce_overhead", infer, finish, samples=50, warm_up=10,
       result=lambda: output.abs().sum())

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(),
                            torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
labels = torch.randint(10, (64,), device="cuda")


def train():
    optimizer.zero_grad(set_to_none=True)
    result = torch.nn.functional.cross_entropy(model(inputs), labels)
    result.backward()
    optimizer.step()
    return result


stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(3):
        train()
torch.cuda.current_stream().wait_stream(stream)
optimizer.zero_grad(set_to_none=True)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = train()
report("torch_captured_step", graph.replay, finish, samples=50, warm_up=10, result=lambda: loss)
