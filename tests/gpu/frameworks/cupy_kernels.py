"""CuPy: a kernel of its own, a product of matrices and a Fourier transform."""
import cupy
from report import report

finish = cupy.cuda.Device().synchronize
add = cupy.RawKernel(r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}
""", "add")
left = cupy.arange(1 << 20, dtype=cupy.float32)
right = cupy.ones_like(left)
output = cupy.empty_like(left)
matrix = cupy.random.RandomState(1).standard_normal((1024, 1024), dtype=cupy.float32)
found = {}


def raw():
    add((1 << 12,), (256,), (left, right, output, cupy.int32(1 << 20)))


def product():
    found["product"] = matrix @ matrix.T


def transform():
    found["fft"] = cupy.fft.fft(matrix)


report("cupy_raw_kernel", raw, finish, samples=20, result=lambda: output.sum(dtype=cupy.float64))
report("cupy_matmul", product, finish, samples=20, result=lambda: found["product"].trace())
report("cupy_fft", transform, finish, samples=20, result=lambda: cupy.abs(found["fft"]).sum())
