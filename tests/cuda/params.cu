/*
 * Kernel parameters of many types, sizes and alignments arrive as they were passed. A
 * kernel compares each with what it must be and leaves a word that is 0 if all are right.
 */
#include "test.h"

struct hundred {
	char head;
	unsigned char bytes[95];
	int tail;
};

struct large {
	unsigned words[1000];
};

struct alignas(16) aligned {
	double first;
	char last;
};

struct empty {
};

static_assert(sizeof(struct hundred) == 100 && sizeof(struct large) == 4000);

#define WRONG(bit, condition) (*wrong |= (condition) ? 0 : 1ull << (bit))

static __global__ void scalars(unsigned long long *wrong, char c, bool yes, short s, signed char sc,
			       int i, unsigned char uc, long long l, float f, unsigned short us,
			       double d, bool no, const int *null)
{
	WRONG(0, c == 'c');
	WRONG(1, yes);
	WRONG(2, s == -12345);
	WRONG(3, sc == -100);
	WRONG(4, i == -2000000000);
	WRONG(5, uc == 250);
	WRONG(6, l == -9000000000000000000ll);
	WRONG(7, f == 1.5f);
	WRONG(8, us == 65000);
	WRONG(9, d == -2.25e100);
	WRONG(10, !no);
	WRONG(11, null == NULL);
}

static __global__ void vectors(unsigned long long *wrong, char a, float4 v, char b, double2 d,
			       char c, short3 s, uchar3 u, int2 i, float3 f, longlong2 l)
{
	WRONG(0, a == 1 && b == 2 && c == 3);
	WRONG(1, v.x == 0.5f && v.y == 1.5f && v.z == 2.5f && v.w == 3.5f);
	WRONG(2, d.x == -0.25 && d.y == 1e300);
	WRONG(3, s.x == -1 && s.y == -2 && s.z == -3);
	WRONG(4, u.x == 255 && u.y == 254 && u.z == 253);
	WRONG(5, i.x == 7 && i.y == -8);
	WRONG(6, f.x == 4 && f.y == 5 && f.z == 6);
	WRONG(7, l.x == 1ll << 60 && l.y == -1);
}

static __global__ void structs(unsigned long long *wrong, char a, struct hundred h, char b,
			       struct aligned g, struct empty, char c)
{
	WRONG(0, a == 'a' && b == 'b' && c == 'c');
	WRONG(1, h.head == 'h' && h.tail == 123456789);
	for (int i = 0; i < 95; i++)
		WRONG(2, h.bytes[i] == (unsigned char)(i * 7 + 1));
	WRONG(3, g.first == 8.125);
	WRONG(4, g.last == 'g');
}

static __global__ void large(unsigned long long *wrong, struct large l, char last)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < 1000 && l.words[i] != i * 2654435761u)
		atomicAdd(wrong, 1);
	if (last != 'z')
		atomicAdd(wrong, 1000);
}

/* The kernel may change its own copy, and only that. */
static __global__ void changes(unsigned long long *wrong, struct hundred h, int times)
{
	for (int i = 0; i < times; i++)
		h.bytes[(i + threadIdx.x) % 95] += i;
	for (int i = times; i-- > 0;)
		h.bytes[(i + threadIdx.x) % 95] -= i;
	for (int i = 0; i < 95; i++)
		if (h.bytes[i] != (unsigned char)(i * 7 + 1))
			atomicAdd(wrong, 1);
}

static struct hundred make_hundred(void)
{
	struct hundred h = {};

	h.head = 'h';
	for (int i = 0; i < 95; i++)
		h.bytes[i] = (unsigned char)(i * 7 + 1);
	h.tail = 123456789;
	return h;
}

/* Waits for the kernel launched last and clears its word. */
static void expect_right(unsigned long long *wrong, const char *kernel)
{
	unsigned long long bits = 0;

	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(&bits, wrong, sizeof(bits), cudaMemcpyDeviceToHost));
	if (bits)
		FAIL("%s: wrong parameters: %#llx", kernel, bits);
	CUDA(cudaMemset(wrong, 0, sizeof(*wrong)));
}

static void test_layout(void)
{
	static const size_t places[][2] = {{0, 8},  {8, 1},  {9, 1},  {10, 2}, {12, 1},
					   {16, 4}, {20, 1}, {24, 8}, {32, 4}, {36, 2},
					   {40, 8}, {48, 1}, {56, 8}};
	size_t offset, size;

	for (size_t i = 0; i < 13; i++) {
		CUDA(cudaFuncGetParamInfo((const void *)scalars, i, &offset, &size));
		EXPECT_EQ(places[i][0], offset);
		EXPECT_EQ(places[i][1], size);
	}
	EXPECT_CODE(cudaErrorInvalidValue,
		    cudaFuncGetParamInfo((const void *)scalars, 13, &offset, &size));
	CUDA(cudaFuncGetParamInfo((const void *)large, 1, &offset, &size));
	EXPECT_EQ(8, offset);
	EXPECT_EQ(4000, size);
	cudaGetLastError();
}

int main(void)
{
	struct hundred h = make_hundred();
	struct aligned g = {8.125, 'g'};
	unsigned long long *wrong;
	struct large l;

	for (unsigned i = 0; i < 1000; i++)
		l.words[i] = i * 2654435761u;
	CUDA(cudaMalloc(&wrong, sizeof(*wrong)));
	CUDA(cudaMemset(wrong, 0, sizeof(*wrong)));

	scalars<<<1, 1>>>(wrong, 'c', true, -12345, -100, -2000000000, 250, -9000000000000000000ll,
			  1.5f, 65000, -2.25e100, false, NULL);
	expect_right(wrong, "scalars");
	vectors<<<1, 1>>>(wrong, 1, make_float4(0.5f, 1.5f, 2.5f, 3.5f), 2,
			  make_double2(-0.25, 1e300), 3, make_short3(-1, -2, -3),
			  make_uchar3(255, 254, 253), make_int2(7, -8), make_float3(4, 5, 6),
			  make_longlong2(1ll << 60, -1));
	expect_right(wrong, "vectors");
	structs<<<1, 1>>>(wrong, 'a', h, 'b', g, empty(), 'c');
	expect_right(wrong, "structs");
	large<<<8, 128>>>(wrong, l, 'z');
	expect_right(wrong, "large");
	changes<<<1, 64>>>(wrong, h, 100);
	expect_right(wrong, "changes");
	test_layout();
	CUDA(cudaFree(wrong));
	return 0;
}
