/*
 * A vGPU process and a guest that keeps no rule. Whatever it does, the process ends by
 * itself, not by a signal, and not later than its guest; a violation costs one log line.
 */
#include <check.h>
#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "shmring/park.h"
#include "tests/unit/backend/vgpu/vgpu_guest.h"

static struct vgpu vgpu;

/* The session was ended for what the guest did. */
static void expect_violation(void)
{
	unsigned lines;

	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
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
	slot = vgpu_slot(&vgpu, requests[_i].op, requests[_i].len);
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
	slot = vgpu_slot(&vgpu, FGV_OP_COPY_OUT, sizeof(copy));
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
	slot = vgpu_slot(&vgpu, FGV_OP_COPY_IN, len);
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
	slot = vgpu_slot(&vgpu, FGV_OP_FILL, sizeof(fill));
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
	vgpu_end_orderly(&vgpu);
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
	vgpu_end_orderly(&vgpu);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_hostile");
	TCase *rules = tcase_create("rules"), *tricks = tcase_create("tricks");
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
	tcase_set_timeout(tricks, 120);
	tcase_add_test(tricks, never_returns);
	tcase_add_loop_test(tricks, disconnects_at_the_beginning, 0, 3);
	tcase_add_test(tricks, blocks_its_doorbell);
	tcase_add_test(tricks, rings_without_end);
	suite_add_tcase(suite, rules);
	suite_add_tcase(suite, tricks);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
