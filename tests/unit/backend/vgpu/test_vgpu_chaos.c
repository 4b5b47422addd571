/*
 * A vGPU process and a guest that sends and writes at random. Whatever it does, the process ends by
 * itself, not by a signal, and not later than its guest; a violation costs one log line.
 *
 * A seed that has broken something is added to `seeds`, and stays.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_guest.h"

static const unsigned seeds[] = {1, 2, 3, 4, 5, 6, 7, 8};
#define SEEDS ((int)(sizeof(seeds) / sizeof(seeds[0])))

static struct vgpu vgpu;

/* A random slot: mostly real operations with lengths that fit, and anything in the rest. */
static struct fgv_slot random_slot(unsigned *seed)
{
	struct fgv_slot slot;
	uint8_t *bytes = (uint8_t *)&slot;
	unsigned shape = (unsigned)rand_r(seed);

	for (size_t i = 0; i < sizeof(slot); i++)
		bytes[i] = (uint8_t)rand_r(seed);
	if (shape % 8 != 0) {
		slot.op = (uint16_t)((unsigned)rand_r(seed) % (FGV_OP_MAX + 2));
		if (slot.op <= FGV_OP_MAX)
			slot.len = fgv_op_infos[slot.op].request_len;
	}
	/* Small numbers are offsets, lengths and handles that may be right. */
	for (size_t i = 0; i < sizeof(slot.data) / 4 && shape % 4 != 0; i++) {
		uint32_t small = (uint32_t)rand_r(seed) % 4096;

		if (rand_r(seed) % 2)
			memcpy(slot.data + 4 * i, i % 2 ? "\0\0\0\0" : (const void *)&small, 4);
	}
	if (slot.len > FGV_SLOT_INLINE && shape % 8 != 0)
		slot.heap_off = vgpu.window.lanes_off + (unsigned)rand_r(seed) % 4096;
	return slot;
}

/* Takes what replies there are. */
static void drain(void)
{
	for (unsigned i = 0; i < VGPU_LANES; i++) {
		while (fgv_ring_peek(&vgpu.lanes[i].replies))
			fgv_ring_release(&vgpu.lanes[i].replies);
	}
}

/* Waits until all that was sent has been taken, or the process has ended. */
static void settle(void)
{
	for (unsigned i = 0; i < VGPU_LANES; i++) {
		const struct fgv_ring *ring = &vgpu.lanes[i].requests;

		while (!fgv_ring_freed(ring, ring->position - 1) && !vgpu_has_ended(&vgpu)) {
			drain();
			poll(NULL, 0, 1);
		}
	}
}

START_TEST(sends_random_slots)
{
	unsigned seed = seeds[_i];

	for (int session = 0; session < 12; session++) {
		vgpu_start(&vgpu);
		for (int i = 0; i < 500; i++) {
			struct fgv_slot slot = random_slot(&seed);

			if (!vgpu_publish(&vgpu, (uint32_t)rand_r(&seed) % VGPU_LANES, &slot))
				break;
			drain();
		}
		settle();
		vgpu_end_orderly(&vgpu);
	}
}
END_TEST

/* A number that may be a size, or a handle of the first or second generation. */
static uint32_t random_value(unsigned *seed)
{
	switch (rand_r(seed) % 3) {
	case 0:
		return 1u << 20 | (uint32_t)rand_r(seed) % 4;
	case 1:
		return 2u << 20 | (uint32_t)rand_r(seed) % 4;
	default:
		return (uint32_t)rand_r(seed) % (1u << (rand_r(seed) % 23));
	}
}

/* Makes the random offset at @at one of the arena, as sources and sinks must be. */
static void move_to_arena(uint8_t *at)
{
	uint64_t off;

	memcpy(&off, at, sizeof(off));
	off += vgpu.window.arena_off;
	memcpy(at, &off, sizeof(off));
}

/*
 * Addresses and lengths of whole pages, the former often where nothing lies: otherwise no
 * such request would get far.
 */
static void make_paged(uint8_t *message, uint32_t len, unsigned *seed)
{
	uint64_t value;

	for (uint32_t at = 0; at + 8 <= len; at += 8) {
		memcpy(&value, message + at, sizeof(value));
		value -= value % FGV_PAGE_BYTES;
		if (at == 0 && rand_r(seed) % 2)
			value = 0x400000000000ull + value % (16 * FGV_PAGE_BYTES);
		memcpy(message + at, &value, sizeof(value));
	}
}

/* Boxes and arrays that are small, else hardly any would be there. */
static void make_box(uint16_t op, uint64_t address, uint8_t *message, unsigned *seed)
{
	uint64_t box[3], bytes = 1;

	for (int i = 0; i < 3; i++) {
		box[i] = (uint64_t)rand_r(seed) % 40;
		bytes *= box[i];
	}
	if (op == FGV_OP_ARRAY_CREATE) {
		uint32_t rest[4] = {1u << rand_r(seed) % 6, 1u << rand_r(seed) % 3,
				    (uint32_t)rand_r(seed) % 16, (uint32_t)rand_r(seed) % 5};

		memcpy(message, box, sizeof(box));
		memcpy(message + 24, rest, sizeof(rest));
	}
	if (op >= FGV_OP_ARRAY_CREATE)
		return;
	memcpy(message + 8, &address, 8);
	memcpy(message + (op == FGV_OP_COPY_BOX ? 56 : 32), box, sizeof(box));
	if (op == FGV_OP_BOX_IN_BULK || op == FGV_OP_BOX_OUT) {
		memcpy(message + 56, &vgpu.window.arena_off, 8);
		memcpy(message + 64, &bytes, 8);
	}
}

/* Fills in the arguments of @op, whose lower halves lie 8 bytes apart, or 4 where they are handles.
 */
static void random_message(uint16_t op, uint64_t address, uint8_t *message, unsigned *seed)
{
	uint32_t len = fgv_op_infos[op].request_len;
	bool has_handles = op >= FGV_OP_STREAM_CREATE && op <= FGV_OP_EVENT_ELAPSED;
	bool is_box = op >= FGV_OP_COPY_BOX && op <= FGV_OP_ARRAY_LEVEL;

	for (uint32_t at = 0; at + 4 <= len; at += has_handles ? 4 : 8) {
		uint32_t value = random_value(seed);

		memcpy(message + at, &value, 4);
	}
	if (op == FGV_OP_MODULE_LOAD || op == FGV_OP_MODULE_LOAD_PLACED || op == FGV_OP_TEXT_READ ||
	    op == FGV_OP_MODULE_MANAGED || op == FGV_OP_TENSOR_MAP || op == FGV_OP_LINK)
		move_to_arena(message);
	if (op == FGV_OP_MODULE_MANAGED || op == FGV_OP_MODULE_LOAD || op == FGV_OP_LINK)
		move_to_arena(message + 16);
	if (op == FGV_OP_LINK)
		move_to_arena(message + 32);
	if (op == FGV_OP_MODULE_LOAD_KNOWN)
		move_to_arena(message + 40);
	if (op == FGV_OP_HOST_MAP || op == FGV_OP_HOST_UNMAP)
		make_paged(message, len, seed);
	if (op == FGV_OP_DEVICE_INFO || op == FGV_OP_COPY_IN_BULK || op == FGV_OP_COPY_OUT ||
	    op == FGV_OP_FUNCTION_GET || op == FGV_OP_HOST_MAP || op == FGV_OP_MODULE_KERNELS ||
	    op == FGV_OP_TENSOR_MAP_REPLACE)
		move_to_arena(message + 8);
	if (is_box)
		make_box(op, address, message, seed);
	if (op >= FGV_OP_MEM_FREE && op <= FGV_OP_FILL && len >= 8 && rand_r(seed) % 2)
		memcpy(message, &address, 8);
}

/*
 * Handles, addresses and sizes at random, in requests that are well formed: no reason to
 * end the session. Every other address is that of the last allocation.
 */
START_TEST(sends_random_arguments)
{
	unsigned seed = seeds[_i];
	uint64_t address = 0, reply[5];

	vgpu_start(&vgpu);
	for (int i = 0; i < 5000; i++) {
		uint16_t op = (uint16_t)((unsigned)rand_r(&seed) % (FGV_OP_MAX + 1));
		uint32_t lane = (uint32_t)rand_r(&seed) % VGPU_LANES;
		uint8_t message[512] = {0};
		uint32_t len, status;

		/* What waits for what never comes has no reply: never_returns. */
		if (!fgv_op_infos[op].name || op == FGV_OP_HOST_FUNC ||
		    op == FGV_OP_HOST_FUNC_NEXT || op == FGV_OP_VALUE_WAIT)
			continue;
		len = fgv_op_infos[op].request_len;
		random_message(op, address, message, &seed);
		if (fgv_op_infos[op].has_bytes)
			len += (uint32_t)rand_r(&seed) % 32;
		ck_assert(vgpu_post(&vgpu, lane, op, message, len));
		if (!fgv_op_infos[op].call)
			continue;
		status = vgpu_wait(&vgpu, lane, reply);
		if (op == FGV_OP_MEM_ALLOC && status == CUDA_SUCCESS)
			address = reply[0];
	}
	vgpu_leave(&vgpu);
}
END_TEST

/* Writes anything anywhere in the window until told to stop. */
struct scribbler {
	uint64_t from, to;
	unsigned seed;
	int is_over;
};

static void *scribble(void *arg)
{
	struct scribbler *scribbler = arg;
	uint64_t words = (scribbler->to - scribbler->from) / 4;

	while (!__atomic_load_n(&scribbler->is_over, __ATOMIC_RELAXED)) {
		uint64_t at = scribbler->from + 4 * ((uint64_t)rand_r(&scribbler->seed) % words);

		__atomic_store_n((uint32_t *)(vgpu.window.base + at),
				 (uint32_t)rand_r(&scribbler->seed), __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Into everything; into the first lane's rings; into its heap, where messages change at work. */
START_TEST(scribbles_over_the_window)
{
	struct scribbler scribbler = {.seed = seeds[_i % SEEDS]};
	unsigned seed = scribbler.seed;
	pthread_t thread;
	uint8_t message[512] = {0};

	vgpu_start(&vgpu);
	switch (_i % 3) {
	case 0:
		scribbler.to = vgpu.window.len;
		break;
	case 1:
		scribbler.from = vgpu.window.lanes_off;
		scribbler.to = scribbler.from + FGV_LANE_HEAP;
		break;
	case 2:
		scribbler.from = vgpu.window.lanes_off + FGV_LANE_HEAP;
		scribbler.to = vgpu.window.lanes_off + FGV_LANE_BYTES;
		break;
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, scribble, &scribbler), 0);
	for (int i = 0; i < 2000 && !vgpu_has_ended(&vgpu); i++) {
		struct fgv_slot slot = vgpu_slot(&vgpu, FGV_OP_COPY_IN, sizeof(message));
		uint32_t lane = (uint32_t)rand_r(&seed) % VGPU_LANES;

		slot.heap_off = vgpu.window.lanes_off + FGV_LANE_HEAP;
		if (fgv_ring_reserve(&vgpu.lanes[lane].requests))
			vgpu_publish(&vgpu, lane, &slot);
		vgpu_wake(&vgpu);
		drain();
		sched_yield();
	}
	__atomic_store_n(&scribbler.is_over, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	vgpu_end_orderly(&vgpu);
}
END_TEST

/* Hangs up in the middle of its own requests, after so many of them. */
START_TEST(disconnects_at_work)
{
	struct fgv_mem_alloc_request alloc = {.size = 4096};
	unsigned seed = (unsigned)_i;

	vgpu_start(&vgpu);
	for (int i = 0; i < _i * _i; i++) {
		uint32_t lane = (uint32_t)rand_r(&seed) % VGPU_LANES;

		if (rand_r(&seed) % 2)
			vgpu_post(&vgpu, lane, FGV_OP_MEM_ALLOC, &alloc, sizeof(alloc));
		else
			vgpu_post(&vgpu, lane, FGV_OP_DEVICE_SYNC, NULL, 0);
		drain();
	}
	vgpu_end_orderly(&vgpu);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_chaos");
	TCase *chaos = tcase_create("chaos");
	SRunner *runner = srunner_create(suite);
	int failed;

	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(chaos, 240);
	tcase_add_loop_test(chaos, sends_random_slots, 0, SEEDS);
	tcase_add_loop_test(chaos, sends_random_arguments, 0, SEEDS);
	tcase_add_loop_test(chaos, scribbles_over_the_window, 0, 9);
	tcase_add_loop_test(chaos, disconnects_at_work, 0, 12);
	suite_add_tcase(suite, chaos);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
