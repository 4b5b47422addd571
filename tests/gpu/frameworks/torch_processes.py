"""PyTorch: several processes that compute at once, by torch.multiprocessing."""
import torch
import torch.multiprocessing as processes
from report import report


def work(number, results):
    torch.manual_seed(number)
    matrix = torch.randn(512, 512, device="cuda")
    results.put((number, float((matrix @ matrix.T).trace())))


def step():
    global sums
    context = processes.get_context("spawn")
    results = context.SimpleQueue()
    workers = [context.Process(target=work, args=(number, results)) for number in range(3)]
    for worker in workers:
        worker.start()
    sums = dict(results.get() for _ in workers)
    for worker in workers:
        worker.join()


sums = {}
if __name__ == "__main__":
    report("torch_processes", step, lambda: None, samples=1, warm_up=0,
           result=lambda: sum(sums.values()))
