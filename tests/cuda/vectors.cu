/*
 * Blocks that run at the same time find each other's vectors of 8 and 16 bytes whole or not at all.
 * Scans and reductions of one pass count on it: a block leaves its sum and what it is worth in one store.
 */
#include "test.h"

#define WRITERS 2
#define READERS 2
#define ROUNDS	40000
#define PLACES	32

struct pair {
	unsigned first, second;

	__device__ void fill(unsigned value)
	{
		first = second = value;
	}
	__device__ bool whole() const
	{
		return first == second;
	}
	__device__ static void put(pair *to, pair p)
	{
		asm volatile("st.relaxed.gpu.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(p.first),
			     "r"(p.second)
			     : "memory");
	}
	__device__ static pair get(const pair *from)
	{
		pair p;

		asm volatile("ld.relaxed.gpu.v2.u32 {%0, %1}, [%2];"
			     : "=r"(p.first), "=r"(p.second)
			     : "l"(from)
			     : "memory");
		return p;
	}
};

struct wide_pair {
	unsigned long long first, second;

	__device__ void fill(unsigned value)
	{
		first = second = (unsigned long long)value << 32 | value;
	}
	__device__ bool whole() const
	{
		return first == second;
	}
	__device__ static void put(wide_pair *to, wide_pair p)
	{
		asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(p.first),
			     "l"(p.second)
			     : "memory");
	}
	__device__ static wide_pair get(const wide_pair *from)
	{
		wide_pair p;

		asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];"
			     : "=l"(p.first), "=l"(p.second)
			     : "l"(from)
			     : "memory");
		return p;
	}
};

struct four {
	unsigned a, b, c, d;

	__device__ void fill(unsigned value)
	{
		a = b = c = d = value;
	}
	__device__ bool whole() const
	{
		return a == b && a == c && a == d;
	}
	__device__ static void put(four *to, four p)
	{
		asm volatile("st.relaxed.gpu.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(p.a),
			     "r"(p.b), "r"(p.c), "r"(p.d)
			     : "memory");
	}
	__device__ static four get(const four *from)
	{
		four p;

		asm volatile("ld.relaxed.gpu.v4.u32 {%0, %1, %2, %3}, [%4];"
			     : "=r"(p.a), "=r"(p.b), "=r"(p.c), "=r"(p.d)
			     : "l"(from)
			     : "memory");
		return p;
	}
};

/* Where a lane looks: all in a row, the other way round, all at one, or some of them only. */
static __device__ unsigned place(unsigned round)
{
	unsigned lane = threadIdx.x;

	switch (round % 3) {
	case 0:
		return lane;
	case 1:
		return PLACES - 1 - lane;
	default:
		return round / 3 % PLACES;
	}
}

/* Even blocks write, odd ones read, and none waits for another. */
template <class T> static __global__ void share(T *places, unsigned *torn)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		T value;

		if (round % 4 == 3 && threadIdx.x % 5)
			continue;
		if (blockIdx.x % 2) {
			value = T::get(places + place(round));
			if (!value.whole())
				atomicAdd(torn, 1);
		} else {
			value.fill(round * 2654435761u + blockIdx.x);
			T::put(places + place(round), value);
		}
	}
}

template <class T> static void expect_whole(const char *what)
{
	unsigned *torn, count;
	T *places;

	CUDA(cudaMalloc(&places, PLACES * sizeof(T)));
	CUDA(cudaMalloc(&torn, sizeof(*torn)));
	CUDA(cudaMemset(places, 0, PLACES * sizeof(T)));
	CUDA(cudaMemset(torn, 0, sizeof(*torn)));
	LAUNCH(share<<<WRITERS + READERS, PLACES>>>(places, torn));
	CUDA(cudaMemcpy(&count, torn, sizeof(count), cudaMemcpyDeviceToHost));
	if (count)
		FAIL("%s: halves were found %u times", what, count);
	CUDA(cudaFree(places));
	CUDA(cudaFree(torn));
}

int main(void)
{
	expect_whole<pair>("two words");
	expect_whole<wide_pair>("two words of 64 bits");
	expect_whole<four>("four words");
	return 0;
}
