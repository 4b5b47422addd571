"""Triton: a kernel compiled for the GPU at hand."""
import torch
import triton
import triton.language as tl
from report import report


@triton.jit
def scaled_sum(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, 2 * tl.load(x + at, inside) + tl.load(y + at, inside), inside)


torch.manual_seed(1)
a, b = (torch.randn(1 << 22, device="cuda") for _ in range(2))
c = torch.empty_like(a)


def step():
    scaled_sum[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), BLOCK=1024)


report("triton_kernel", step, torch.cuda.synchronize, samples=20,
       result=lambda: (c - 2 * a - b).abs().max() < 1e-5)
