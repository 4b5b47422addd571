/*
 * A vGPU process and a guest that keeps no rule. Whatever it does, the process ends by
 * itself, not by a signal, and not later than its guest; a violation costs one log line.
 *
 * A seed that has broken something is added to `seeds`, and stays.
 */
#include <check.h>
#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "shmring/park.h"
#include "tests/unit/vgpu_guest.h"

static const unsigned seeds[] = {1, 2, 3, 4, 5, 6, 7, 8};
#define SEEDS ((int)(sizeof(seeds) / sizeof(seeds[0])))

static struct vgpu vgpu;

/* The session was ended for what the guest did. */
static void expect_violation(void)
{
	unsigned lines;

	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}

/* It was ended for that, or goes on until the guest hangs up. */
static void expect_orderly_end(void)
{
	unsigned lines;
	int status = vgpu_hang_up(&vgpu, &lines);

	ck_assert(status == EXIT_SUCCESS || status == EXIT_FAILURE);
	ck_assert_uint_eq(lines, status == EXIT_SUCCESS ? 0 : 1);
}

static struct fgv_slot slot_of(uint16_t op, uint32_t len)
{
	return (struct fgv_slot){.op = op, .len = len, .ticket = ++vgpu.ticket};
}

/* Operations that do not exist, and lengths that no operation has. */
START_TEST(sends_what_is_no_request)
{
	static const struct {
		uint16_t op;
		uint32_t len;
	} requests[] = {
		{0, 0},
		{FGV_OP_MAX + 1, 0},
		{UINT16_MAX, 40},
		{15, 8},
		{FGV_OP_MEM_ALLOC, 7},
		{FGV_OP_MEM_ALLOC, 9},
		{FGV_OP_MEM_ALLOC, 0},
		{FGV_OP_DEVICE_SYNC, 1},
		{FGV_OP_COPY_IN, 15},
		{FGV_OP_LAUNCH, 39},
		{FGV_OP_MEM_ALLOC, FGV_MESSAGE_MAX + 1},
		{FGV_OP_COPY_IN, 8u << 20},
		{FGV_OP_COPY_IN, UINT32_MAX},
	};
	struct fgv_slot slot;

	vgpu_start(&vgpu);
	slot = slot_of(requests[_i].op, requests[_i].len);
	vgpu_publish(&vgpu, 0, &slot);
	expect_violation();
}
END_TEST

/* Sources and sinks that lie outside the arena, or half. */
START_TEST(points_outside_the_arena)
{
	struct fgv_copy_out_request copy = {0};
	struct fgv_slot slot;
	uint64_t len;

	vgpu_start(&vgpu);
	len = vgpu.window.len;
	switch (_i) {
	case 0:
		copy.data_off = len;
		copy.data_len = 1;
		break;
	case 1:
		copy.data_off = len - 4095;
		copy.data_len = 4096;
		break;
	case 2:
		copy.data_off = 1;
		copy.data_len = UINT64_MAX;
		break;
	case 3:
		copy.data_off = UINT64_MAX;
		copy.data_len = 2;
		break;
	case 4: /* its own rings */
		copy.data_off = vgpu.window.lanes_off;
		copy.data_len = 64;
		break;
	case 5:
		copy.data_off = vgpu.window.arena_off - 1;
		copy.data_len = 64;
		break;
	}
	slot = slot_of(FGV_OP_COPY_OUT, sizeof(copy));
	memcpy(slot.data, &copy, sizeof(copy));
	vgpu_publish(&vgpu, 0, &slot);
	expect_violation();
}
END_TEST

START_TEST(puts_the_message_outside_the_window)
{
	const uint32_t len = FGV_SLOT_INLINE + 17;
	const uint64_t before_end[] = {0, 1, FGV_SLOT_INLINE, len - 1};
	struct fgv_slot slot;

	vgpu_start(&vgpu);
	slot = slot_of(FGV_OP_COPY_IN, len);
	slot.heap_off = _i < 4 ? vgpu.window.len - before_end[_i] : UINT64_MAX - (uint64_t)_i * 8;
	vgpu_publish(&vgpu, 0, &slot);
	expect_violation();
}
END_TEST

START_TEST(sets_a_reserved_field)
{
	struct fgv_fill_request fill = {.reserved0 = 1};
	struct fgv_slot slot;

	vgpu_start(&vgpu);
	slot = slot_of(FGV_OP_FILL, sizeof(fill));
	memcpy(slot.data, &fill, sizeof(fill));
	vgpu_publish(&vgpu, 0, &slot);
	expect_violation();
}
END_TEST

START_TEST(reads_no_replies)
{
	vgpu_start(&vgpu);
	for (int i = 0; i <= FGV_REPLY_SLOTS; i++)
		vgpu_post(&vgpu, 0, _i ? FGV_OP_DEVICE_SYNC : FGV_OP_MEM_INFO, NULL, 0);
	expect_violation();
}
END_TEST

START_TEST(sends_nonsense_on_the_connection)
{
	uint8_t bytes[256] = {0};

	vgpu_start(&vgpu);
	switch (_i) {
	case 0: /* too short */
		send(vgpu.connection_fd, bytes, 15, 0);
		break;
	case 1: /* too long */
		bytes[0] = FGV_MSG_LANE;
		send(vgpu.connection_fd, bytes, sizeof(bytes), 0);
		break;
	case 2: /* of another type */
		bytes[0] = FGV_MSG_HELLO;
		send(vgpu.connection_fd, bytes, sizeof(struct fgv_msg_lane), 0);
		break;
	case 3: /* with something reserved */
		bytes[0] = FGV_MSG_LANE;
		bytes[12] = 1;
		send(vgpu.connection_fd, bytes, sizeof(struct fgv_msg_lane), 0);
		break;
	}
	expect_violation();
}
END_TEST

START_TEST(reads_no_acknowledgements)
{
	struct fgv_msg_lane msg = {.type = FGV_MSG_LANE, .lane = 9999};

	vgpu_start(&vgpu);
	while (send(vgpu.connection_fd, &msg, sizeof(msg), MSG_NOSIGNAL) == sizeof(msg))
		continue;
	expect_violation();
}
END_TEST

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
		expect_orderly_end();
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
	if (op == FGV_OP_MODULE_LOAD || op == FGV_OP_MODULE_LOAD_PLACED || op == FGV_OP_TEXT_READ)
		move_to_arena(message);
	if (op == FGV_OP_HOST_MAP || op == FGV_OP_HOST_UNMAP)
		make_paged(message, len, seed);
	if (op == FGV_OP_DEVICE_INFO || op == FGV_OP_COPY_IN_BULK || op == FGV_OP_COPY_OUT ||
	    op == FGV_OP_FUNCTION_GET || op == FGV_OP_HOST_MAP || op == FGV_OP_MODULE_KERNELS)
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

		/* What waits for a function that never returns has no reply: never_returns. */
		if (!fgv_op_infos[op].name || op == FGV_OP_HOST_FUNC || op == FGV_OP_HOST_FUNC_NEXT)
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

/*
 * Functions that the guest never returns from, and returns that nobody waits for: it stops
 * nothing but its own work, and its session ends as any other.
 */
START_TEST(never_returns)
{
	struct fgv_host_func_request func = {.number = 5};
	struct fgv_host_func_next_request next = {.done = 99};
	struct fgv_fill_request fill = {.count = 16, .width = 1};
	uint64_t number, size = 4096;

	vgpu_start(&vgpu);
	ck_assert(vgpu_post(&vgpu, 0, FGV_OP_MEM_ALLOC, &size, sizeof(size)));
	ck_assert_int_eq(vgpu_wait(&vgpu, 0, &fill.address), CUDA_SUCCESS);
	ck_assert(vgpu_post(&vgpu, 0, FGV_OP_HOST_FUNC, &func, sizeof(func)));
	ck_assert(vgpu_post(&vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next)));
	ck_assert_int_eq(vgpu_wait(&vgpu, 1, &number), CUDA_SUCCESS);
	ck_assert_uint_eq(number, 5);
	for (int i = 0; i < 200; i++)
		ck_assert(vgpu_post(&vgpu, 0, FGV_OP_FILL, &fill, sizeof(fill)));
	/* Not that function; then a second one asks for the next. */
	ck_assert(vgpu_post(&vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next)));
	ck_assert(vgpu_post(&vgpu, 2, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next)));
	ck_assert_int_eq(vgpu_wait(&vgpu, 2, &number), CUDA_ERROR_INVALID_VALUE);
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
		struct fgv_slot slot = slot_of(FGV_OP_COPY_IN, sizeof(message));
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
	expect_orderly_end();
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
	expect_orderly_end();
}
END_TEST

/* Hangs up before the welcome is read, or before it is sent. */
START_TEST(disconnects_at_the_beginning)
{
	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_send_setup(&vgpu, NULL);
	if (_i == 1)
		poll(NULL, 0, 50);
	if (_i == 2)
		vgpu_read_welcome(&vgpu);
	vgpu_leave(&vgpu);
}
END_TEST

/*
 * Its doorbell is full and set to block, so that ringing it does not return. Another
 * descriptor of it stays open here, as a guest could leave one with a child.
 */
START_TEST(blocks_its_doorbell)
{
	int fd;
	uint64_t almost_full = UINT64_MAX - 1;

	vgpu_start(&vgpu);
	fd = vgpu.lanes[0].doorbell_fd;
	ck_assert_int_eq(write(fd, &almost_full, sizeof(almost_full)), sizeof(almost_full));
	ck_assert_int_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
	fgv_park_announce(&fgv_window_lane_head(&vgpu.window, 0)->guest_parked);
	vgpu_post(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0);
	while (!fgv_ring_peek(&vgpu.lanes[0].replies))
		ck_assert(!vgpu_has_ended(&vgpu));
	expect_orderly_end();
}
END_TEST

/* The host's doorbell and the words that wake it, all the time: it works on. */
START_TEST(rings_without_end)
{
	struct fgv_mem_info_reply info;

	vgpu_start(&vgpu);
	for (int i = 0; i < 20000; i++) {
		fgv_doorbell_ring(vgpu.doorbell_fd);
		__atomic_add_fetch(&fgv_window_head(&vgpu.window)->control_seq, 1,
				   __ATOMIC_SEQ_CST);
	}
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &info), CUDA_SUCCESS);
	expect_orderly_end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_hostile");
	TCase *rules = tcase_create("rules"), *chaos = tcase_create("chaos");
	SRunner *runner = srunner_create(suite);
	int failed;

	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(rules, 120);
	tcase_add_loop_test(rules, sends_what_is_no_request, 0, 13);
	tcase_add_loop_test(rules, points_outside_the_arena, 0, 6);
	tcase_add_loop_test(rules, puts_the_message_outside_the_window, 0, 6);
	tcase_add_test(rules, sets_a_reserved_field);
	tcase_add_loop_test(rules, reads_no_replies, 0, 2);
	tcase_add_loop_test(rules, sends_nonsense_on_the_connection, 0, 4);
	tcase_add_test(rules, reads_no_acknowledgements);
	tcase_set_timeout(chaos, 240);
	tcase_add_loop_test(chaos, sends_random_slots, 0, SEEDS);
	tcase_add_loop_test(chaos, sends_random_arguments, 0, SEEDS);
	tcase_add_test(chaos, never_returns);
	tcase_add_loop_test(chaos, scribbles_over_the_window, 0, 9);
	tcase_add_loop_test(chaos, disconnects_at_work, 0, 12);
	tcase_add_loop_test(chaos, disconnects_at_the_beginning, 0, 3);
	tcase_add_test(chaos, blocks_its_doorbell);
	tcase_add_test(chaos, rings_without_end);
	suite_add_tcase(suite, rules);
	suite_add_tcase(suite, chaos);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
