/*
 * softgpu/: memory of all kinds is bounded, atomics lose nothing, faults are found and stick,
 * commands run in order, and a kernel without an end can be ended.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/softgpu/softgpu_kernel.h"

/* Each thread reverses its block's values through shared memory, static and dynamic. */
START_TEST(shared_memory)
{
	static const char text[] = HEAD
		".extern .shared .align 16 .b8 dyn[];\n"
		".visible .entry k(.param .u64 out)\n{\n"
		".reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b8 fixed[512];\n"
		"mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, fixed; add.s32 %r3, %r3, %r2;\n"
		"mov.u32 %r4, dyn; add.s32 %r4, %r4, %r2; st.shared.u32 [%r3], %r1;\n"
		"mul.lo.s32 %r5, %r1, 3; st.shared.u32 [%r4], %r5; bar.sync 0;\n"
		"sub.s32 %r6, 127, %r1; shl.b32 %r7, %r6, 2; mov.u32 %r8, fixed; add.s32 %r8, %r8, %r7;\n"
		"cvt.u64.u32 %rd1, %r7; mov.u64 %rd2, dyn; cvta.shared.u64 %rd2, %rd2;\n"
		"add.s64 %rd2, %rd2, %rd1; ld.shared.u32 %r9, [%r8]; ld.u32 %r10, [%rd2];\n"
		"add.s32 %r9, %r9, %r10; ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, 4;\n"
		"add.s64 %rd3, %rd3, %rd4; st.global.u32 [%rd3], %r9; ret;\n}\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(512);
	void *args[] = {&address};
	uint32_t out[128];

	ck_assert_int_eq(softgpu_function_info(f)->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
			 512);
	ck_assert_int_eq(kernel_launch(f, 1, 128, 512, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 128; i++)
		ck_assert_uint_eq(out[i], (127 - i) * 4);
	/* Beyond what the launch asked for. */
	ck_assert_int_eq(kernel_launch(f, 1, 128, 508, args), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* As much as a device of sm_80 lets a block have, to the last word. */
START_TEST(shared_memory_to_the_end)
{
	static const char text[] = HEAD
		".extern .shared .align 16 .b8 dyn[];\n"
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<5>; .reg .b64 %rd<2>;\n"
		"mov.u32 %r1, dyn; add.u32 %r1, %r1, 166908; st.shared.u32 [%r1], 7;\n"
		"ld.shared.u32 %r2, [%r1]; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r2; ret; }\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(4);
	void *args[] = {&address};
	int most = 0;
	uint32_t out = 0;

	softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most);
	ck_assert_int_eq(most, 163 << 10);
	ck_assert_int_eq(kernel_launch(f, 1, 1, (uint32_t)most, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(out, 7);
	ck_assert_int_eq(kernel_launch(f, 1, 1, (uint32_t)most + 1, args), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(local_memory)
{
	static const char text[] = KERNEL(
		".local .align 8 .b8 depot[64]; mov.u64 %rd4, depot; cvta.local.u64 %rd5, %rd4;\n"
		"and.b32 %r4, %r1, 7; mul.wide.u32 %rd6, %r4, 8; add.s64 %rd7, %rd5, %rd6;\n"
		"cvt.u64.u32 %rd8, %r1; add.s64 %rd8, %rd8, 0x100000000; st.u64 [%rd7], %rd8;\n"
		"add.s64 %rd9, %rd4, %rd6; ld.local.v2.u32 {%r5, %r6}, [%rd9]; ld.u64 %rd10, [%rd7];\n"
		"st.local.u8 [depot+3], %r1; ld.local.s8 %r7, [depot+3]; add.s32 %r5, %r5, %r7;\n"
		"cvt.u32.u64 %r8, %rd10; add.s32 %r5, %r5, %r8; st.global.v2.u32 [%rd1], {%r5, %r6};");
	uint64_t out[64];

	ck_assert_int_eq(kernel_run(text, 1, 64, NULL, out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], (1ull << 32) + 3 * i);
}
END_TEST

/* All blocks on all workers: what is lost shows. */
START_TEST(atomics)
{
	static const char text[] = HEAD
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		".reg .f32 %f<3>; .reg .pred %p<2>; .reg .f64 %fd<3>;\n"
		"ld.param.u64 %rd1, [out]; red.global.add.u32 [%rd1], 1;\n"
		"mov.u32 %r1, %tid.x; atom.global.max.s32 %r2, [%rd1+4], %r1;\n"
		"mov.f32 %f1, 0f3F800000; atom.global.add.f32 %f2, [%rd1+8], %f1;\n"
		"atom.global.inc.u32 %r3, [%rd1+12], 9; mov.f64 %fd1, 0d3FF0000000000000;\n"
		"atom.global.add.f64 %fd2, [%rd1+16], %fd1;\n"
		"$again: ld.global.u32 %r4, [%rd1+24]; add.u32 %r5, %r4, 2;\n"
		"atom.global.cas.b32 %r6, [%rd1+24], %r4, %r5; setp.ne.u32 %p1, %r6, %r4;\n"
		"@%p1 bra $again; ret; }\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(32);
	void *args[] = {&address};
	uint32_t out[8];
	double sum;

	softgpu_fill(gpu, address, 0, 0, 4, 8, 1, NULL);
	ck_assert_int_eq(kernel_launch(f, 100, 100, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	memcpy(&sum, out + 4, sizeof(sum));
	ck_assert_uint_eq(out[0], 10000);
	ck_assert_uint_eq(out[1], 99);
	ck_assert_uint_eq(out[2], 0x461c4000); /* 10000.0f */
	ck_assert_uint_eq(out[3], 0);
	ck_assert(sum == 10000.0);
	ck_assert_uint_eq(out[6], 20000);
}
END_TEST

static const struct {
	const char *body;
	CUresult fault;
} faults[] = {
	{"mov.u64 %rd4, 64; ld.global.u32 %r4, [%rd4];", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"st.global.u32 [%rd1+1048576], %r1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"ld.global.u32 %r4, [%rd1+2];", CUDA_ERROR_MISALIGNED_ADDRESS},
	{"ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1+8];", CUDA_ERROR_MISALIGNED_ADDRESS},
	{"mov.u64 %rd4, -8; atom.global.add.u32 %r4, [%rd4], 1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"mov.u32 %r4, 65532; st.shared.u32 [%r4], %r1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"mov.u64 %rd4, 4096; st.local.u32 [%rd4], %r1;", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"mov.u64 %rd4, 0x2000000001000; ld.u8 %r4, [%rd4];", CUDA_ERROR_ILLEGAL_ADDRESS},
	{"setp.eq.u32 %p1, %r1, 5; @%p1 trap;", CUDA_ERROR_LAUNCH_FAILED},
	{"setp.eq.u32 %p1, %r1, 5; @%p1 st.global.u32 [%rd1+2], 1;",
	 CUDA_ERROR_MISALIGNED_ADDRESS},
	{"setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 128;", CUDA_ERROR_LAUNCH_FAILED},
};

START_TEST(fault)
{
	char text[2048];
	uint64_t out[64];
	uint64_t address;

	snprintf(text, sizeof(text), "%s%s%s", KERNEL_START, faults[_i].body, KERNEL_END);
	ck_assert_int_eq(kernel_run(text, 1, 64, NULL, out), faults[_i].fault);
	/* It sticks. */
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 16, &address), faults[_i].fault);
	ck_assert_int_eq(softgpu_query(gpu), faults[_i].fault);
}
END_TEST

START_TEST(memory)
{
	uint64_t a = kernel_alloc(1 << 20);
	uint64_t b = kernel_alloc(100);
	uint64_t c;
	char bytes[100] = {0};

	ck_assert_uint_eq(a % 256, 0);
	ck_assert(b >= a + (1 << 20) || b + 100 <= a);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 0, &c), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 1ull << 40, &c), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, ~0ull, &c), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 64 << 20, &c), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(softgpu_mem_free(gpu, a + 4096), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_copy_htod(gpu, b, bytes, 101, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_copy_htod(gpu, b + 50, bytes, 50, NULL), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_copy_dtoh(gpu, bytes, ~0ull - 3, 8, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_fill(gpu, b, ~0ull, 0, 1, 1, 3, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_mem_free(gpu, a), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_mem_free(gpu, a), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_copy_htod(gpu, a, bytes, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_mem_free(gpu, b), CUDA_SUCCESS);
	/* All of it, once what was freed is back. */
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 64 << 20, &c), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
}
END_TEST

/* Many sizes in any order: no two overlap, what is handed out reads as zero. */
START_TEST(memory_churn)
{
	struct {
		uint64_t address;
		size_t bytes;
	} live[64] = {0};
	uint32_t state = 7;
	uint32_t word;

	for (int round = 0; round < 3000; round++) {
		unsigned i = (state = state * 1664525 + 1013904223) >> 26;

		if (live[i].address) {
			ck_assert_int_eq(softgpu_mem_free(gpu, live[i].address), CUDA_SUCCESS);
			live[i].address = 0;
			continue;
		}
		live[i].bytes = 4 + (state >> 8) % 300000;
		live[i].address = kernel_alloc(live[i].bytes);
		for (unsigned k = 0; k < 64; k++)
			ck_assert(k == i || !live[k].address ||
				  live[k].address + live[k].bytes <= live[i].address ||
				  live[i].address + live[i].bytes <= live[k].address);
		word = 1;
		softgpu_copy_dtoh(gpu, &word, live[i].address + live[i].bytes - 4, 4, NULL);
		ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
		ck_assert_uint_eq(word, 0);
		softgpu_fill(gpu, live[i].address, 0, ~0u, 1, live[i].bytes, 1, NULL);
	}
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
}
END_TEST

/* More extents than a worker keeps in view, twice each; what lies between them is nobody's. */
START_TEST(extents)
{
	static const char text[] = KERNEL(
		"ld.param.u64 %rd4, [in]; mov.u32 %r4, 0; mov.u32 %r5, 0; mul.wide.u32 %rd6, %r1, 4;\n"
		"$next: ld.global.u64 %rd5, [%rd4]; add.u64 %rd5, %rd5, %rd6;\n"
		"ld.global.u32 %r6, [%rd5]; add.u32 %r4, %r4, %r6; add.u64 %rd4, %rd4, 8;\n"
		"add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 24; @%p1 bra $next;\n"
		"st.global.u32 [%rd1], %r4;");
	uint64_t in[64] = {0};
	uint64_t out[64];
	uint64_t between[12];

	for (unsigned i = 0; i < 12; i++) {
		in[i] = in[i + 12] = kernel_alloc(4096);
		between[i] = kernel_alloc(4096);
		softgpu_fill(gpu, in[i], 0, i + 1, 4, 1024, 1, NULL);
	}
	for (unsigned i = 0; i < 12; i++)
		ck_assert_int_eq(softgpu_mem_free(gpu, between[i]), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_run(text, 1, 64, in, out), CUDA_SUCCESS);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(out[i], 2 * 78);
	softgpu_module_unload(gpu, module);
	/* The second warp is beyond it, where nothing is: what a run allocates lies further down. */
	in[23] = in[10] + 4096 - 4 * 32;
	ck_assert_int_eq(kernel_run(text, 1, 64, in, out), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(host_memory)
{
	static const char text[] = KERNEL("ld.global.u64 %rd4, [%rd2]; add.s64 %rd4, %rd4, 1;\n"
					  "st.global.u64 [%rd1], %rd4;");
	struct softgpu_function *f = kernel_load(text);
	uint64_t *host = aligned_alloc(4096, 8192);
	uint64_t in = (uint64_t)(uintptr_t)host;
	uint64_t out = in + 4096;
	void *args[] = {&out, &in};

	for (unsigned i = 0; i < 64; i++)
		host[i] = i;
	ck_assert_int_eq(softgpu_host_register(gpu, host, 8192), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_host_register(gpu, host + 8, 8),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	ck_assert_int_eq(kernel_launch(f, 1, 64, 0, args), CUDA_SUCCESS);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(host[512 + i], i + 1);
	ck_assert_int_eq(softgpu_host_unregister(gpu, host), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_host_unregister(gpu, host),
			 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	ck_assert_int_eq(kernel_launch(f, 1, 64, 0, args), CUDA_ERROR_ILLEGAL_ADDRESS);
	free(host);
}
END_TEST

#define SPIN_KERNEL                                                                      \
	HEAD ".visible .entry k(.param .u64 flag)\n{ .reg .b32 %r1; .reg .b64 %rd1;\n"    \
	     ".reg .pred %p1; ld.param.u64 %rd1, [flag];\n"                              \
	     "$l: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;\n"        \
	     "@%p1 bra $l; ret; }\n"

START_TEST(events_and_order)
{
	struct softgpu_function *f = kernel_load(SPIN_KERNEL);
	struct softgpu_stream *stream;
	struct softgpu_event *before;
	struct softgpu_event *after;
	struct pollfd pollfd = {.fd = softgpu_completion_fd(gpu), .events = POLLIN};
	uint32_t one[3] = {1, 1, 1};
	uint32_t *flag = aligned_alloc(4096, 4096);
	uint64_t address = (uint64_t)(uintptr_t)flag;
	void *args[] = {&address};
	float ms = -1;

	*flag = 0;
	softgpu_host_register(gpu, flag, 4096);
	ck_assert_int_eq(softgpu_stream_create(gpu, true, &stream), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_create(gpu, &before), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_create(gpu, &after), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_query(gpu, before), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_elapsed(gpu, before, after, &ms), CUDA_ERROR_INVALID_HANDLE);
	softgpu_event_record(gpu, before, stream);
	ck_assert_int_eq(softgpu_launch(gpu, f, one, one, 0, stream, args), CUDA_SUCCESS);
	softgpu_event_record(gpu, after, stream);
	ck_assert_int_eq(softgpu_stream_wait_event(gpu, NULL, after), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_stream_query(gpu, stream), CUDA_ERROR_NOT_READY);
	ck_assert_int_eq(softgpu_event_query(gpu, after), CUDA_ERROR_NOT_READY);
	ck_assert_int_eq(softgpu_stream_query(gpu, NULL), CUDA_ERROR_NOT_READY);
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
	while (softgpu_stream_query(gpu, stream) == CUDA_ERROR_NOT_READY) {
		uint64_t count;

		softgpu_arm(gpu);
		if (softgpu_stream_query(gpu, stream) != CUDA_ERROR_NOT_READY)
			break;
		ck_assert_int_eq(poll(&pollfd, 1, 10000), 1);
		ck_assert_int_eq(read(pollfd.fd, &count, sizeof(count)), sizeof(count));
	}
	ck_assert_int_eq(softgpu_event_elapsed(gpu, before, after, &ms), CUDA_SUCCESS);
	ck_assert(ms >= 0);
	softgpu_event_destroy(gpu, before);
	softgpu_event_destroy(gpu, after);
	ck_assert_int_eq(softgpu_stream_destroy(gpu, stream), CUDA_SUCCESS);
	softgpu_host_unregister(gpu, flag);
	free(flag);
}
END_TEST

static void await(struct softgpu_stream *stream)
{
	struct timespec pause = {.tv_nsec = 100000};

	while (softgpu_stream_query(gpu, stream) == CUDA_ERROR_NOT_READY)
		nanosleep(&pause, NULL);
	ck_assert_int_eq(softgpu_stream_query(gpu, stream), CUDA_SUCCESS);
}

/* While a kernel runs, the other two engines copy; but not what comes after it. */
START_TEST(copies_run_beside_kernels)
{
	enum { WORDS = 1024 };
	static uint32_t in[WORDS], out[WORDS];
	struct softgpu_function *f = kernel_load(SPIN_KERNEL);
	struct softgpu_stream *streams[3], *waiting;
	struct softgpu_point point;
	struct softgpu_event *event;
	uint32_t one[3] = {1, 1, 1};
	uint64_t flag = kernel_alloc(sizeof(uint32_t)), data = kernel_alloc(sizeof(in));
	void *args[] = {&flag};

	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(softgpu_stream_create(gpu, i == 1, &streams[i]), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_stream_create(gpu, false, &waiting), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_create(gpu, &event), CUDA_SUCCESS);
	for (uint32_t i = 0; i < WORDS; i++)
		in[i] = 7 * i + 1;
	ck_assert_int_eq(softgpu_fill(gpu, flag, 4, 0, 4, 1, 1, NULL), CUDA_SUCCESS);
	await(NULL);
	ck_assert_int_eq(softgpu_launch(gpu, f, one, one, 0, streams[0], args), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_record(gpu, event, streams[0]), CUDA_SUCCESS);
	/* In one stream by two engines, in order. */
	softgpu_copy_htod(gpu, data, in, sizeof(in), streams[1]);
	softgpu_copy_dtoh(gpu, out, data, sizeof(out), streams[1]);
	await(streams[1]);
	ck_assert_mem_eq(in, out, sizeof(in));
	/* The legacy stream is behind both of these, and neither waits for the kernel. */
	ck_assert_int_eq(softgpu_stream_query(gpu, NULL), CUDA_SUCCESS);
	point = softgpu_point_of_computing(gpu);
	ck_assert_int_eq(softgpu_point_query(gpu, &point), CUDA_ERROR_NOT_READY);
	ck_assert_int_eq(softgpu_query(gpu), CUDA_ERROR_NOT_READY);
	/* Behind the kernel by its event. */
	ck_assert_int_eq(softgpu_stream_wait_event(gpu, waiting, event), CUDA_SUCCESS);
	memset(out, 0, sizeof(out));
	softgpu_copy_dtoh(gpu, out, data, sizeof(out), waiting);
	ck_assert_int_eq(softgpu_stream_query(gpu, waiting), CUDA_ERROR_NOT_READY);
	softgpu_copy_htod(gpu, flag, in, sizeof(uint32_t), streams[2]);
	await(waiting);
	ck_assert_int_eq(softgpu_event_query(gpu, event), CUDA_SUCCESS);
	ck_assert_mem_eq(in, out, sizeof(in));
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	softgpu_event_destroy(gpu, event);
	for (unsigned i = 0; i < 3; i++)
		softgpu_stream_destroy(gpu, streams[i]);
	softgpu_stream_destroy(gpu, waiting);
}
END_TEST

/* A kernel without an end does not keep the device from going away. */
START_TEST(destroy_while_running)
{
	struct softgpu_function *f = kernel_load(SPIN_KERNEL);
	uint32_t dims[3] = {4, 1, 1};
	uint64_t address = kernel_alloc(4);
	void *args[] = {&address};

	ck_assert_int_eq(softgpu_launch(gpu, f, dims, dims, 0, NULL, args), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_mem_free(gpu, address), CUDA_SUCCESS);
}
END_TEST

START_TEST(attributes)
{
	int value = 0;

	ck_assert_str_eq(softgpu_name(gpu), "FairGV Soft GPU");
	ck_assert_int_eq(softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_WARP_SIZE, &value), CUDA_SUCCESS);
	ck_assert_int_eq(value, 32);
	ck_assert_int_eq(softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &value),
			 CUDA_SUCCESS);
	ck_assert_int_eq(value, 2);
	ck_assert_int_eq(softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &value),
			 CUDA_SUCCESS);
	ck_assert_int_eq(value, 8);
	ck_assert_int_eq(softgpu_attribute(gpu, (CUdevice_attribute)100000, &value),
			 CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* A bit for each multiprocessor that a kernel of 64 blocks ran on. */
static uint32_t sms_of_kernel(struct softgpu_function *f, uint64_t address)
{
	void *args[] = {&address};
	uint32_t out = 0;

	softgpu_fill(gpu, address, 0, 0, 4, 1, 1, NULL);
	ck_assert_int_eq(kernel_launch(f, 64, 32, 0, args), CUDA_SUCCESS);
	softgpu_copy_dtoh(gpu, &out, address, sizeof(out), NULL);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	return out;
}

START_TEST(kernels_run_on_the_multiprocessors_of_the_set)
{
	static const char text[] = HEAD
		".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<5>; .reg .b64 %rd<2>;\n"
		"ld.param.u64 %rd1, [out]; mov.u32 %r1, %smid; mov.u32 %r2, 1;\n"
		"shl.b32 %r3, %r2, %r1; red.global.or.b32 [%rd1], %r3; ret; }\n";
	struct softgpu_function *f = kernel_load(text);
	uint64_t address = kernel_alloc(4);
	int value = 0;

	for (uint32_t set = 1; set <= 2; set++) {
		softgpu_set_units(gpu, set);
		ck_assert_uint_eq(sms_of_kernel(f, address), set);
	}
	/* Those that are not there do not count. */
	softgpu_set_units(gpu, 0xfffffffe);
	ck_assert_uint_eq(sms_of_kernel(f, address), 2);
	softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &value);
	ck_assert_int_eq(value, 2);
	softgpu_set_units(gpu, 0);
	ck_assert_uint_eq(sms_of_kernel(f, address) & ~3u, 0);
}
END_TEST

/* More than there is of the cache is all that there is. */
START_TEST(persisting_limit)
{
	size_t value = 1;
	int most = 0;

	softgpu_attribute(gpu, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, &most);
	ck_assert_int_gt(most, 0);
	ck_assert_int_eq(softgpu_limit_get(gpu, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, &value),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(value, 0);
	ck_assert_int_eq(softgpu_limit_set(gpu, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, (size_t)most + 1),
			 CUDA_SUCCESS);
	softgpu_limit_get(gpu, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, &value);
	ck_assert_uint_eq(value, (size_t)most);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("softgpu");
	TCase *t = tcase_create("kernels");
	TCase *device = tcase_create("device");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
	tcase_add_test(t, shared_memory);
	tcase_add_test(t, shared_memory_to_the_end);
	tcase_add_test(t, local_memory);
	tcase_add_test(t, atomics);
	tcase_add_loop_test(t, fault, 0, (int)(sizeof(faults) / sizeof(*faults)));
	suite_add_tcase(s, t);
	tcase_set_timeout(device, 120);
	tcase_add_checked_fixture(device, kernel_setup, kernel_teardown);
	tcase_add_test(device, memory);
	tcase_add_test(device, memory_churn);
	tcase_add_test(device, extents);
	tcase_add_test(device, host_memory);
	tcase_add_test(device, events_and_order);
	tcase_add_test(device, copies_run_beside_kernels);
	tcase_add_test(device, destroy_while_running);
	tcase_add_test(device, attributes);
	tcase_add_test(device, kernels_run_on_the_multiprocessors_of_the_set);
	tcase_add_test(device, persisting_limit);
	suite_add_tcase(s, device);
	return kernel_run_suite(s);
}
