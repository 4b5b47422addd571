/*
 * What kernels print is in the program's standard output when it has synchronized: each
 * thread's lines in their order, nothing twice, between what the program itself prints
 * before and after; and formatted as the host would. The program's output goes to a pipe,
 * from which it reads it itself.
 */
#include "test.h"

#include <string>
#include <unistd.h>

static int saved, reader;

static void capture(void)
{
	int ends[2];

	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	if (pipe(ends) || dup2(ends[1], STDOUT_FILENO) < 0)
		FAIL("no pipe");
	close(ends[1]);
	reader = ends[0];
}

/* What came since capture(). */
static std::string captured(void)
{
	std::string text;
	char part[4096];
	ssize_t len;

	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	while ((len = read(reader, part, sizeof(part))) > 0)
		text.append(part, (size_t)len);
	close(reader);
	return text;
}

static void expect_text(const std::string &wanted, const std::string &got)
{
	if (wanted != got)
		FAIL("\"%s\", not \"%s\"", got.c_str(), wanted.c_str());
}

static __device__ const char device_string[] = "string";

static __global__ void conversions(int *results)
{
	char local[] = "local";

	results[0] = printf("plain\n");
	results[1] = printf("%d %i %u %5d|%-5d|%05d|%+d\n", -1, 2, 4000000000u, 42, 42, 42, 42);
	results[2] = printf("%x %X %#x %o %c%c %%\n", 255, 255, 255, 8, 'o', 'k');
	results[3] = printf("%lld %llu %ld %llx\n", -1234567890123ll, 12345678901234567890ull, 5l,
			    0x123456789abcdefull);
	results[4] = printf("%f %.3f %10.2f %e %g %g\n", 1.5f, 2.0 / 3, -3.14159, 12345.678, 0.0001,
			    1e30);
	results[5] = printf("%s %s %10s|%-8s|%.3s\n", device_string, local, "right", "left", "cut");
	results[6] = printf("%d %s %f %d %lld %d\n", 1, "mixed", 2.5, 3, 4ll, 5);
	results[7] = printf("%p %p\n", (void *)0x1234, (void *)0xabcdef0123);
}

static std::string host_conversions(void)
{
	char text[1024];
	int len = 0;

#define ADD(...) len += snprintf(text + len, sizeof(text) - (size_t)len, __VA_ARGS__)
	ADD("plain\n");
	ADD("%d %i %u %5d|%-5d|%05d|%+d\n", -1, 2, 4000000000u, 42, 42, 42, 42);
	ADD("%x %X %#x %o %c%c %%\n", 255, 255, 255, 8, 'o', 'k');
	ADD("%lld %llu %ld %llx\n", -1234567890123ll, 12345678901234567890ull, 5l,
	    0x123456789abcdefull);
	ADD("%f %.3f %10.2f %e %g %g\n", 1.5f, 2.0 / 3, -3.14159, 12345.678, 0.0001, 1e30);
	ADD("%s %s %10s|%-8s|%.3s\n", "string", "local", "right", "left", "cut");
	ADD("%d %s %f %d %lld %d\n", 1, "mixed", 2.5, 3, 4ll, 5);
	ADD("%p %p\n", (void *)0x1234, (void *)0xabcdef0123);
	return text;
}

static void test_conversions(void)
{
	static const int wanted[] = {0, 7, 6, 4, 6, 5, 6, 2};
	int results[8], *device;
	std::string text;

	CUDA(cudaMalloc(&device, sizeof(results)));
	capture();
	conversions<<<1, 1>>>(device);
	cudaDeviceSynchronize();
	text = captured();
	expect_text(host_conversions(), text);
	CUDA(cudaMemcpy(results, device, sizeof(results), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(wanted[i], results[i]);
	CUDA(cudaFree(device));
}

static __global__ void say(int launch)
{
	for (int i = 0; i < 3; i++)
		printf("launch %d thread %d line %d\n", launch,
		       blockIdx.x * blockDim.x + threadIdx.x, i);
}

/* Each thread's lines in their order and once; launches of one stream one after another. */
static void check_lines(const std::string &text, int launches, int threads)
{
	int *next = (int *)calloc((size_t)(launches * threads), sizeof(*next));
	int launch, thread, line, len, now = 0, count = 0;
	const char *at = text.c_str();

	for (; *at; at += len, count++) {
		if (sscanf(at, "launch %d thread %d line %d\n%n", &launch, &thread, &line, &len) !=
		    3)
			FAIL("torn output: %.60s", at);
		EXPECT(launch == now || launch == now + 1);
		now = launch;
		EXPECT(launch < launches && thread < threads);
		EXPECT_EQ(next[launch * threads + thread], line);
		next[launch * threads + thread]++;
	}
	EXPECT_EQ(launches * threads * 3, count);
	free(next);
}

static void test_order(cudaStream_t stream)
{
	std::string text;

	capture();
	for (int i = 0; i < 4; i++)
		say<<<2, 48, 0, stream>>>(i);
	cudaStreamSynchronize(stream);
	text = captured();
	check_lines(text, 4, 96);
	capture();
	cudaDeviceSynchronize();
	text = captured();
	expect_text("", text);
}

static __global__ void word(int number)
{
	printf("kernel %d\n", number);
}

static void host_says(const char *text)
{
	fputs(text, stdout);
	fflush(stdout);
}

/* The ways to synchronize that print, each between two lines of the program's own. */
static void test_places(cudaStream_t stream)
{
	cudaEvent_t event;
	int *memory, value;
	std::string text;

	CUDA(cudaEventCreate(&event));
	CUDA(cudaMalloc(&memory, sizeof(*memory)));
	capture();
	host_says("start\n");
	word<<<1, 1>>>(1);
	cudaDeviceSynchronize();
	host_says("one\n");
	word<<<1, 1, 0, stream>>>(2);
	cudaStreamSynchronize(stream);
	host_says("two\n");
	word<<<1, 1, 0, stream>>>(3);
	cudaEventRecord(event, stream);
	cudaEventSynchronize(event);
	host_says("three\n");
	word<<<1, 1>>>(4);
	cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost);
	host_says("four\n");
	text = captured();
	expect_text("start\nkernel 1\none\nkernel 2\ntwo\nkernel 3\nthree\nkernel 4\nfour\n", text);
	CUDA(cudaFree(memory));
	CUDA(cudaEventDestroy(event));
}

int main(void)
{
	cudaStream_t stream;
	size_t bytes;

	CUDA(cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize));
	EXPECT(bytes >= 1024 * 1024);
	CUDA(cudaStreamCreate(&stream));
	test_conversions();
	test_order(NULL);
	test_order(stream);
	test_places(stream);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
