/*
 * Matrices in fragments of warps: products of halves and of bytes, with sums in f32 and s32,
 * from matrices by rows and by columns, and a fragment whose elements are scaled one by one.
 */
#include "test.h"

#include <cuda_fp16.h>
#include <mma.h>

#define SIDE  64 /* of the matrices */
#define TILE  16 /* of a fragment */
#define TILES (SIDE / TILE)

using namespace nvcuda;

/* Each warp, which is a block, computes a tile: twice the product of a's rows and b's columns, and c. */
static __global__ void halves(const half *a, const half *b, const float *c, float *d)
{
	int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
	wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, half, wmma::row_major> x;
	wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, half, wmma::col_major> y;
	wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum, start;

	wmma::fill_fragment(sum, 0.0f);
	for (int k = 0; k < SIDE; k += TILE) {
		wmma::load_matrix_sync(x, a + row * SIDE + k, SIDE);
		wmma::load_matrix_sync(y, b + column * SIDE + k, SIDE);
		wmma::mma_sync(sum, x, y, sum);
	}
	wmma::load_matrix_sync(start, c + row * SIDE + column, SIDE, wmma::mem_row_major);
	for (int i = 0; i < sum.num_elements; i++)
		sum.x[i] = 2 * sum.x[i] + start.x[i];
	wmma::store_matrix_sync(d + row * SIDE + column, sum, SIDE, wmma::mem_row_major);
}

/* The same of bytes, through shared memory, and turned when it is stored. */
static __global__ void bytes(const signed char *a, const signed char *b, int *d)
{
	__shared__ __align__(32) signed char part[2][TILE * TILE];
	int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
	wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, signed char, wmma::row_major> x;
	wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, signed char, wmma::row_major> y;
	wmma::fragment<wmma::accumulator, TILE, TILE, TILE, int> sum;

	wmma::fill_fragment(sum, 0);
	for (int k = 0; k < SIDE; k += TILE) {
		for (int i = threadIdx.x; i < TILE * TILE; i += warpSize) {
			part[0][i] = a[(row + i / TILE) * SIDE + k + i % TILE];
			part[1][i] = b[(k + i / TILE) * SIDE + column + i % TILE];
		}
		__syncwarp();
		wmma::load_matrix_sync(x, part[0], TILE);
		wmma::load_matrix_sync(y, part[1], TILE);
		wmma::mma_sync(sum, x, y, sum);
		__syncwarp();
	}
	wmma::store_matrix_sync(d + column * SIDE + row, sum, SIDE, wmma::mem_col_major);
}

template <typename T> static T *on_device(const T *from, size_t count)
{
	T *p;

	CUDA(cudaMalloc(&p, count * sizeof(T)));
	CUDA(cudaMemcpy(p, from, count * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

/* Whole numbers, whose sums are exact in every order. */
static int number(int index, unsigned seed)
{
	return test_byte((size_t)index, seed) % 17 - 8;
}

static void check_halves(void)
{
	static half a[SIDE * SIDE], b[SIDE * SIDE];
	static float c[SIDE * SIDE], d[SIDE * SIDE];
	float *result;

	for (int i = 0; i < SIDE * SIDE; i++) {
		a[i] = __float2half((float)number(i, 1));
		b[i] = __float2half((float)number(i, 2));
		c[i] = (float)number(i, 3);
	}
	result = on_device(d, SIDE * SIDE);
	LAUNCH(halves<<<dim3(TILES, TILES), 32>>>(on_device(a, SIDE * SIDE), on_device(b, SIDE * SIDE),
						  on_device(c, SIDE * SIDE), result));
	CUDA(cudaMemcpy(d, result, sizeof(d), cudaMemcpyDeviceToHost));
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			int sum = 0;

			for (int k = 0; k < SIDE; k++)
				sum += number(i * SIDE + k, 1) * number(j * SIDE + k, 2);
			EXPECT_EQ(2 * sum + number(i * SIDE + j, 3), d[i * SIDE + j]);
		}
}

static void check_bytes(void)
{
	static signed char a[SIDE * SIDE], b[SIDE * SIDE];
	static int d[SIDE * SIDE];
	int *result;

	test_fill(a, sizeof(a), 4);
	test_fill(b, sizeof(b), 5);
	result = on_device(d, SIDE * SIDE);
	LAUNCH(bytes<<<dim3(TILES, TILES), 32>>>(on_device(a, SIDE * SIDE), on_device(b, SIDE * SIDE),
						 result));
	CUDA(cudaMemcpy(d, result, sizeof(d), cudaMemcpyDeviceToHost));
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			int sum = 0;

			for (int k = 0; k < SIDE; k++)
				sum += a[i * SIDE + k] * b[k * SIDE + j];
			EXPECT_EQ(sum, d[j * SIDE + i]);
		}
}

int main(void)
{
	check_halves();
	check_bytes();
	return 0;
}
