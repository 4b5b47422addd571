"""PyTorch: Fourier transforms, linear algebra and sparse matrices."""
import torch
from report import report

torch.manual_seed(1)
signal = torch.randn(64, 4096, device="cuda")
matrix = torch.randn(256, 256, device="cuda", dtype=torch.float64)
positive = matrix @ matrix.T + 256 * torch.eye(256, device="cuda", dtype=torch.float64)
right = torch.randn(256, 8, device="cuda", dtype=torch.float64)
indices = torch.randint(4096, (2, 40000), device="cuda")
sparse = torch.sparse_coo_tensor(indices, torch.ones(40000, device="cuda"),
                                 (4096, 4096)).coalesce().to_sparse_csr()
dense = torch.randn(4096, 64, device="cuda")
finish = torch.cuda.synchronize
found = {}


def fft():
    found["fft"] = torch.fft.ifft(torch.fft.fft(signal)).real - signal


def solve():
    found["solve"] = torch.linalg.solve(positive, right)


def decompose():
    found["svd"] = torch.linalg.svdvals(matrix)


def factor():
    found["cholesky"] = torch.linalg.cholesky(positive)


def multiply():
    found["sparse"] = sparse @ dense


report("torch_fft", fft, finish, result=lambda: found["fft"].abs().max() < 1e-4)
report("torch_solve", solve, finish, result=lambda: found["solve"].sum())
report("torch_svd", decompose, finish, samples=3, warm_up=1, result=lambda: found["svd"].sum())
report("torch_cholesky", factor, finish, result=lambda: found["cholesky"].sum())
report("torch_sparse", multiply, finish, result=lambda: found["sparse"].double().sum())
