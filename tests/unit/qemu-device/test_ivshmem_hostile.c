/*
 * That a hostile guest, or the QEMU around it, hurts nobody but itself; and sessions that the
 * real process serves.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "api/gpu_wire.h"
#include "shmring/park.h"
#include "tests/unit/qemu-device/ivshmem_world.h"

/* --- Hostile guests ------------------------------------------------------------ */

/* Writes all over the region, with and without rings. */
static void scribble(unsigned seed, unsigned rounds)
{
	uint64_t slots_end = guest.head.windows_off;

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t end = i % 8 ? slots_end : guest.len;

		for (uint64_t at = 0; at + sizeof(int) <= end; at += sizeof(int))
			*(volatile int *)(guest.base + at) = rand_r(&seed);
		for (uint32_t v = 0; v < guest.vectors; v++)
			fgv_doorbell_ring(guest.bells[FGV_REGION_HOST][v]);
	}
}

/* ... with requests among it that make sense. */
static void scribble_requests(unsigned seed, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		struct fgv_region_slot *slot = qemu_guest_slot(&guest, i % WINDOWS);

		slot->state = (uint32_t)rand_r(&seed);
		slot->answer = (uint32_t)rand_r(&seed);
		slot->hello.type = i % 3 ? FGV_MSG_HELLO : FGV_MSG_LOOK;
		slot->hello.version = FGV_WIRE_VERSION;
		slot->hello.hash = FGV_API_HASH;
		slot->hello.program[FGV_NAME_MAX - 1] = '\0';
		slot->request = (uint32_t)rand_r(&seed) % 4;
		slot->serial = (uint32_t)rand_r(&seed);
		fgv_doorbell_ring(guest.bells[FGV_REGION_HOST][0]);
		usleep(rand_r(&seed) % 300);
	}
}

/* Another VM's guest, and a program of a third VM, whom it must not touch. */
struct bystander {
	struct qemu_guest guest;
	int local;
};

static void bystander_start(struct bystander *bystander)
{
	qemu_guest_attach(&bystander->guest, path_b);
	qemu_guest_open(&bystander->guest, 0, "bystander");
	bystander->local = guest_open(&server, "c", "local bystander", NULL);
}

static void bystander_check(const struct bystander *bystander)
{
	char byte;

	ck_assert_uint_eq(qemu_guest_slot(&bystander->guest, 0)->state, FGV_SLOT_READY);
	fgv_doorbell_ring(bystander->guest.bells[FGV_REGION_HOST][1]);
	qemu_guest_await_bell(&bystander->guest, 1);
	ck_assert_int_eq(recv(bystander->local, &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	close(guest_open(&server, "c", "newcomer", NULL));
}

static void bystander_stop(struct bystander *bystander)
{
	bystander_check(bystander);
	qemu_guest_close(&bystander->guest, 0);
	qemu_guest_detach(&bystander->guest);
	close(bystander->local);
}

START_TEST(scribbling)
{
	struct bystander bystander;

	bystander_start(&bystander);
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_open(&guest, 1, "p");
	scribble(1, 20);
	bystander_check(&bystander);
	scribble_requests(2, 500);
	bystander_check(&bystander);
	scribble(3, 5);
	bystander_stop(&bystander);
}
END_TEST

/* Serial after serial: few lines in the log, and the others are served meanwhile. */
START_TEST(serial_storm)
{
	struct bystander bystander;
	time_t before = time(NULL);
	unsigned seconds;

	bystander_start(&bystander);
	for (unsigned i = 0; i < 200000; i++)
		qemu_guest_request(&guest, i % WINDOWS, 3 + i);
	bystander_check(&bystander);
	for (unsigned i = 0; i < 200000; i++)
		qemu_guest_request(&guest, i % WINDOWS, FGV_SLOT_CLOSE);
	bystander_check(&bystander);
	qemu_guest_await(&guest, 0, FGV_SLOT_FREE);
	seconds = (unsigned)(time(NULL) - before);
	ck_assert_uint_le(daemon_count_log(&server, "ignored a request"), 5 * (seconds + 2));
	bystander_stop(&bystander);
}
END_TEST

/* A holder of an eventfd can make writing to it block, and reading race with it. */
START_TEST(doorbell_that_blocks)
{
	struct bystander bystander;
	int bell = guest.bells[FGV_REGION_GUEST][0];
	uint64_t full = UINT64_MAX - 1;
	char byte;

	bystander_start(&bystander);
	qemu_guest_open(&guest, 0, "p");
	fgv_doorbell_clear(bell);
	ck_assert_int_eq(write(bell, &full, sizeof(full)), sizeof(full));
	ck_assert_int_eq(fcntl(bell, F_SETFL, 0), 0);
	qemu_guest_request(&guest, 0, FGV_SLOT_CLOSE);
	ck_assert_int_eq(recv(guest.fd, &byte, 1, 0), 0);
	daemon_await_log(&server, "vm a: QEMU has made a doorbell block; it loses its region");
	bystander_stop(&bystander);
}
END_TEST

/* A hostile QEMU takes memory out from under the daemon's mapping. */
START_TEST(memory_is_punched)
{
	uint32_t serial;

	qemu_guest_open(&guest, 0, "p");
	serial = qemu_guest_slot(&guest, 0)->serial;
	ck_assert_int_eq(ftruncate(guest.region_fd, 0), -1);
	ck_assert_int_eq(fallocate(guest.region_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)guest.len),
			 0);
	qemu_guest_slot(&guest, 0)->serial = serial;
	qemu_guest_request(&guest, 0, FGV_SLOT_CLOSE);
	qemu_guest_await(&guest, 0, FGV_SLOT_FREE);
	qemu_guest_open(&guest, 0, "p");
	check_window(0);
}
END_TEST

/* --- The real process ---------------------------------------------------------- */

static void check_calls(struct qemu_guest_lane *lane)
{
	struct fgv_mem_info_reply info = {0};

	for (int i = 0; i < 2 * FGV_REQUEST_SLOTS; i++) {
		ck_assert_uint_eq(qemu_guest_call(lane, FGV_OP_MEM_INFO, NULL, 0, &info),
				  CUDA_SUCCESS);
		ck_assert_uint_gt(info.total, 0);
		ck_assert_uint_le(info.free, info.total);
	}
}

START_TEST(real_session_answers)
{
	const struct fgv_msg_welcome *welcome = qemu_guest_open(&guest, 1, "real");
	struct qemu_guest_lane first, last;
	struct fgv_device_info info;
	struct fgv_device_info_request request = {0};
	uint64_t ticket = 0;

	ck_assert_str_eq(welcome->text, "FairGV Soft GPU");
	qemu_guest_lane_init(&first, &guest, 1, 0, &ticket);
	qemu_guest_lane_init(&last, &guest, 1, welcome->lanes - 1, &ticket);
	check_calls(&first);
	check_calls(&last);
	request.info_off = welcome->arena_off;
	request.info_len = sizeof(info);
	ck_assert_uint_eq(
		qemu_guest_call(&first, FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
		CUDA_SUCCESS);
	memcpy(&info, qemu_guest_window(&guest, 1) + welcome->arena_off, sizeof(info));
	ck_assert_str_eq(info.name, welcome->text);
	qemu_guest_close(&guest, 1);
	check_is_clean(1);
	daemon_await_log(&server, "program \"real\": ended with status 0");
}
END_TEST

START_TEST(real_sessions_at_once)
{
	struct qemu_guest_lane lanes[2];
	uint64_t tickets[2] = {0};

	qemu_guest_ask(&guest, 0, "first");
	qemu_guest_ask(&guest, 2, "second");
	for (int i = 0; i < 2; i++) {
		qemu_guest_await(&guest, 2 * (uint32_t)i, FGV_SLOT_READY);
		qemu_guest_lane_init(&lanes[i], &guest, 2 * (uint32_t)i, 0, &tickets[i]);
	}
	for (int i = 0; i < 4; i++)
		check_calls(&lanes[i % 2]);
	ck_assert_int_eq(kill(session_process("first"), SIGKILL), 0);
	qemu_guest_await_state(&guest, 0, FGV_SLOT_GONE);
	check_calls(&lanes[1]);
	qemu_guest_close(&guest, 0);
	qemu_guest_open(&guest, 0, "third");
	tickets[0] = 0;
	qemu_guest_lane_init(&lanes[0], &guest, 0, 0, &tickets[0]);
	check_calls(&lanes[0]);
	check_calls(&lanes[1]);
}
END_TEST

/* The process keeps no descriptor of the region: with one it could map its VM's other windows. */
START_TEST(real_session_keeps_its_window_only)
{
	char path[64], name[64];
	unsigned links = 0;
	ssize_t len;

	qemu_guest_open(&guest, 0, "modest");
	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)session_process("modest"), fd);
		len = readlink(path, name, sizeof(name) - 1);
		if (len < 0)
			continue;
		links++;
		name[len] = '\0';
		ck_assert_msg(!strstr(name, "fairgv-region"), "%s is %s", path, name);
	}
	ck_assert(links > 0 || geteuid());
}
END_TEST

START_TEST(real_session_is_scribbled_over)
{
	struct qemu_guest other;
	struct qemu_guest_lane lane;
	uint64_t ticket = 0;

	qemu_guest_attach(&other, path_b);
	qemu_guest_open(&other, 0, "bystander");
	qemu_guest_lane_init(&lane, &other, 0, 0, &ticket);
	qemu_guest_open(&guest, 0, "p");
	qemu_guest_open(&guest, 1, "p");
	scribble(4, 3);
	check_calls(&lane);
	qemu_guest_close(&other, 0);
	qemu_guest_detach(&other);
}
END_TEST
/* --- ----------------------------------------------------------------------------- */

static TCase *served_tests(void)
{
	TCase *tcase = served_case();

	tcase_add_test(tcase, scribbling);
	tcase_add_test(tcase, serial_storm);
	tcase_add_test(tcase, doorbell_that_blocks);
	tcase_add_test(tcase, memory_is_punched);
	return tcase;
}

static TCase *real_tests(void)
{
	TCase *tcase = real_case();

	tcase_add_test(tcase, real_session_answers);
	tcase_add_test(tcase, real_sessions_at_once);
	tcase_add_test(tcase, real_session_keeps_its_window_only);
	tcase_add_test(tcase, real_session_is_scribbled_over);
	return tcase;
}

int main(void)
{
	return run_suite("ivshmem-hostile", served_tests(), real_tests());
}
