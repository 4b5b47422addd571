/*
 * Lanes of one warp are in different functions at once, each function with loops that every
 * lane leaves after a number of rounds of its own: through virtual functions, through
 * pointers, on both sides of a branch, and in recursion. What each computes is its own.
 */
#include "test.h"

#define THREADS 256
#define KINDS	4

#define BOTH static __host__ __device__ __noinline__

BOTH uint32_t add_words(uint32_t seed, uint32_t rounds)
{
	uint32_t a = seed, b = seed ^ 0x55555555u, c = ~seed, d = seed * 3;

	for (uint32_t i = 0; i < rounds; i++) {
		a += b ^ i;
		b = b << 3 | b >> 29;
		c -= a;
		d = d * 1664525u + c;
	}
	return a ^ b ^ c ^ d;
}

BOTH uint32_t multiply_wide(uint32_t seed, uint32_t rounds)
{
	uint64_t a = seed, b = ~(uint64_t)seed;

	for (uint32_t i = 0; i < rounds || !(a & 4); i++) {
		a = a * 6364136223846793005ull + b;
		b ^= a >> 17;
	}
	return (uint32_t)(a >> 32) ^ (uint32_t)b;
}

BOTH uint32_t add_doubles(uint32_t seed, uint32_t rounds)
{
	double a = seed % 1000, b = 0.5;

	for (uint32_t i = 0; i < rounds; i++) {
		a = a > 4096 ? a - 4095.75 : a * 2;
		b += i % 3 ? 0.25 : 1.5;
	}
	return (uint32_t)(a * 16) * 31 + (uint32_t)(b * 16);
}

BOTH uint32_t recurse(uint32_t seed, uint32_t rounds)
{
	uint32_t value = add_words(seed, rounds % 5);

	if (rounds == 0)
		return value;
	if (value & 8)
		return value + recurse(value, rounds - 1);
	return multiply_wide(recurse(value ^ rounds, rounds - 1), rounds % 3);
}

typedef uint32_t (*function)(uint32_t seed, uint32_t rounds);

static __device__ function functions[KINDS] = {add_words, multiply_wide, add_doubles, recurse};
static const function host_functions[KINDS] = {add_words, multiply_wide, add_doubles, recurse};

struct shape {
	uint32_t seed;

	__device__ virtual uint32_t walk(uint32_t rounds) const = 0;
};

template <int KIND> struct shape_of : shape {
	__device__ uint32_t walk(uint32_t rounds) const override
	{
		uint32_t value = seed;

		for (uint32_t i = 0; i < rounds % 4 + 1; i++) {
			if (KIND == 0)
				value ^= add_words(value, rounds + i);
			else if (KIND == 1)
				value += multiply_wide(value, rounds - i);
			else if (KIND == 2)
				value -= add_doubles(value, rounds * 2);
			else
				value = recurse(value, rounds % 6);
		}
		return value;
	}
};

static uint32_t walk_on_host(unsigned kind, uint32_t value, uint32_t rounds)
{
	for (uint32_t i = 0, turns = rounds % 4 + 1; i < turns; i++) {
		if (kind == 0)
			value ^= add_words(value, rounds + i);
		else if (kind == 1)
			value += multiply_wide(value, rounds - i);
		else if (kind == 2)
			value -= add_doubles(value, rounds * 2);
		else
			value = recurse(value, rounds % 6);
	}
	return value;
}

/* Few enough for the stack that a thread has unless told otherwise. */
static __host__ __device__ uint32_t rounds_of(uint32_t id)
{
	return 1 + id * 2654435761u % 11;
}

static __global__ void by_objects(uint32_t *results)
{
	uint32_t id = threadIdx.x;
	shape_of<0> a;
	shape_of<1> b;
	shape_of<2> c;
	shape_of<3> d;
	shape *shapes[KINDS] = {&a, &b, &c, &d};
	shape *mine = shapes[id * 7 / 3 % KINDS];

	mine->seed = id;
	results[id] = mine->walk(rounds_of(id));
}

static __global__ void by_pointers(uint32_t *results)
{
	uint32_t id = threadIdx.x;

	results[id] = functions[id % 5 % KINDS](id, rounds_of(id));
}

static __global__ void by_branches(uint32_t *results)
{
	uint32_t id = threadIdx.x;
	uint32_t rounds = rounds_of(id);

	if (id % 3 == 0)
		results[id] = add_words(id, rounds);
	else if (id % 3 == 1)
		results[id] = multiply_wide(id, rounds) + add_doubles(id, rounds);
	else
		results[id] = recurse(id, rounds % 6) ^ multiply_wide(id, rounds);
}

static uint32_t branch_on_host(uint32_t id)
{
	uint32_t rounds = rounds_of(id);

	if (id % 3 == 0)
		return add_words(id, rounds);
	if (id % 3 == 1)
		return multiply_wide(id, rounds) + add_doubles(id, rounds);
	return recurse(id, rounds % 6) ^ multiply_wide(id, rounds);
}

int main(void)
{
	uint32_t results[3][THREADS];
	uint32_t *device;

	CUDA(cudaMalloc(&device, sizeof(results)));
	LAUNCH(by_objects<<<1, THREADS>>>(device));
	LAUNCH(by_pointers<<<1, THREADS>>>(device + THREADS));
	LAUNCH(by_branches<<<1, THREADS>>>(device + 2 * THREADS));
	CUDA(cudaMemcpy(results, device, sizeof(results), cudaMemcpyDeviceToHost));
	for (uint32_t id = 0; id < THREADS; id++) {
		uint32_t rounds = rounds_of(id);

		EXPECT_EQ(walk_on_host(id * 7 / 3 % KINDS, id, rounds), results[0][id]);
		EXPECT_EQ(host_functions[id % 5 % KINDS](id, rounds), results[1][id]);
		EXPECT_EQ(branch_on_host(id), results[2][id]);
	}
	return 0;
}
