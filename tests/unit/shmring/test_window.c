/* The window: its layout, what a check refuses, the memfd, and the resolver's edges. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/util.h"
#include "shmring/ring.h"
#include "shmring/window.h"

#define LANES	  4u
#define LEN	  (8ull << 20)
#define ARENA_OFF (FGV_PAGE_BYTES + (uint64_t)LANES * FGV_LANE_BYTES)

START_TEST(lays_out)
{
	struct fgv_window window;

	ck_assert_int_eq(fgv_window_layout(&window, LEN, LANES), 0);
	ck_assert_uint_eq(window.len, LEN);
	ck_assert_uint_eq(window.lanes, LANES);
	ck_assert_uint_eq(window.lanes_off, FGV_PAGE_BYTES);
	ck_assert_uint_eq(window.arena_off, ARENA_OFF);
	ck_assert_uint_eq(window.arena_len, LEN - ARENA_OFF);
	ck_assert_uint_eq(window.staging_len % FGV_PAGE_BYTES, 0);
	ck_assert_uint_le(window.staging_len, window.arena_len / 8);
	ck_assert_uint_gt(window.staging_len, window.arena_len / 8 - FGV_PAGE_BYTES);
	ck_assert_int_eq(fgv_window_check(&window), 0);
	ck_assert_int_eq(fgv_window_layout(&window, 4ull << 30, FGV_LANES_MAX), 0);
	ck_assert_uint_eq(window.staging_len, 12ull << 20);
	ck_assert_int_eq(fgv_window_check(&window), 0);
}
END_TEST

static const struct {
	uint64_t len;
	uint32_t lanes;
} misfits[] = {
	{LEN, 0},
	{LEN, FGV_LANES_MAX + 1},
	{LEN, UINT32_MAX},
	{LEN + 1, LANES},
	{0, LANES},
	{ARENA_OFF, LANES},
	{ARENA_OFF - FGV_PAGE_BYTES, LANES},
	{UINT64_MAX - FGV_PAGE_BYTES + 1, LANES},
};

START_TEST(refuses_misfits)
{
	struct fgv_window window;

	ck_assert_int_eq(fgv_window_layout(&window, misfits[_i].len, misfits[_i].lanes), -EINVAL);
}
END_TEST

/* One wrong value at a time in a layout that is otherwise right. */
static const struct {
	size_t field;
	uint64_t value;
} wrongs[] = {
	{offsetof(struct fgv_window, len), 0},
	{offsetof(struct fgv_window, len), LEN + 8},
	{offsetof(struct fgv_window, len), LEN - FGV_PAGE_BYTES},
	{offsetof(struct fgv_window, len), UINT64_MAX - FGV_PAGE_BYTES + 1},
	{offsetof(struct fgv_window, lanes_off), 0},
	{offsetof(struct fgv_window, lanes_off), FGV_PAGE_BYTES + 64},
	{offsetof(struct fgv_window, lanes_off), 2 * FGV_PAGE_BYTES},
	{offsetof(struct fgv_window, lanes_off), UINT64_MAX - FGV_PAGE_BYTES + 1},
	{offsetof(struct fgv_window, arena_off), ARENA_OFF - FGV_PAGE_BYTES},
	{offsetof(struct fgv_window, arena_off), ARENA_OFF + FGV_PAGE_BYTES},
	{offsetof(struct fgv_window, arena_off), ARENA_OFF + 1},
	{offsetof(struct fgv_window, arena_off), UINT64_MAX - FGV_PAGE_BYTES + 1},
	{offsetof(struct fgv_window, arena_len), LEN},
	{offsetof(struct fgv_window, arena_len), LEN - ARENA_OFF - 1},
	{offsetof(struct fgv_window, arena_len), UINT64_MAX - FGV_PAGE_BYTES + 1},
	{offsetof(struct fgv_window, staging_len), LEN},
	{offsetof(struct fgv_window, staging_len), 1},
};

START_TEST(check_refuses)
{
	struct fgv_window window;

	fgv_window_layout(&window, LEN, LANES);
	memcpy((char *)&window + wrongs[_i].field, &wrongs[_i].value, sizeof(uint64_t));
	ck_assert_int_eq(fgv_window_check(&window), -EINVAL);
	ck_assert_int_eq(fgv_window_create(&window), -EINVAL);
}
END_TEST

START_TEST(check_refuses_lanes)
{
	struct fgv_window window;

	fgv_window_layout(&window, LEN, LANES);
	window.lanes = LANES + 1;
	ck_assert_int_eq(fgv_window_check(&window), -EINVAL);
	window.lanes = 0;
	ck_assert_int_eq(fgv_window_check(&window), -EINVAL);
	window.lanes = UINT32_MAX;
	ck_assert_int_eq(fgv_window_check(&window), -EINVAL);
}
END_TEST

static void check_ring(struct fgv_slot *slots, uint32_t size)
{
	struct fgv_ring ring;

	fgv_ring_attach(&ring, slots, size, FGV_RING_START);
	for (uint32_t i = 0; i < size; i++) {
		ck_assert_ptr_null(fgv_ring_peek(&ring));
		ck_assert_ptr_nonnull(fgv_ring_reserve(&ring));
		fgv_ring_publish(&ring);
	}
	ck_assert_ptr_null(fgv_ring_reserve(&ring));
}

START_TEST(creates_formatted)
{
	struct fgv_window window;
	int fd;

	fgv_window_layout(&window, LEN, LANES);
	fd = fgv_window_create(&window);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fgv_window_map(&window, fd), 0);
	ck_assert_uint_eq(fgv_window_head(&window)->magic, FGV_WINDOW_MAGIC);
	ck_assert_uint_eq(fgv_window_head(&window)->version, FGV_WIRE_VERSION);
	ck_assert_uint_eq(fgv_window_head(&window)->host_parked, 0);
	for (uint32_t i = 0; i < LANES; i++) {
		ck_assert_uint_eq(fgv_window_lane_head(&window, i)->guest_parked, 0);
		check_ring(fgv_window_requests(&window, i), FGV_REQUEST_SLOTS);
		check_ring(fgv_window_replies(&window, i), FGV_REPLY_SLOTS);
	}
	fgv_window_unmap(&window);
	ck_assert_ptr_null(window.base);
	fgv_window_unmap(&window);
	close(fd);
}
END_TEST

/* Nobody can take pages away under the other side's mapping. */
START_TEST(is_sealed)
{
	struct fgv_window window;
	int fd;

	fgv_window_layout(&window, LEN, LANES);
	fd = fgv_window_create(&window);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(ftruncate(fd, 2 * LEN), -1);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}
END_TEST

START_TEST(maps_only_what_is_long_enough)
{
	struct fgv_window window;
	int fd = memfd_create("short", MFD_CLOEXEC);

	fgv_window_layout(&window, LEN, LANES);
	ck_assert_int_eq(fgv_window_map(&window, fd), -EINVAL);
	ck_assert_int_eq(ftruncate(fd, LEN - 1), 0);
	ck_assert_int_eq(fgv_window_map(&window, fd), -EINVAL);
	ck_assert_ptr_null(window.base);
	ck_assert_int_eq(fgv_window_map(&window, -1), -EBADF);
	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	ck_assert_int_eq(fgv_window_map(&window, fd), 0);
	fgv_window_unmap(&window);
	close(fd);
}
END_TEST

/* A window in a larger memfd: is where it was put, and leaves what is around it alone. */
START_TEST(is_part_of_something_larger)
{
	static const uint64_t off = 3 * FGV_PAGE_BYTES;
	struct fgv_window window;
	int fd = memfd_create("region", MFD_CLOEXEC);
	uint8_t *whole;

	fgv_window_layout(&window, LEN, LANES);
	ck_assert_int_eq(ftruncate(fd, off + LEN + FGV_PAGE_BYTES), 0);
	whole = mmap(NULL, off + LEN + FGV_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(whole, MAP_FAILED);
	memset(whole, 'x', off);
	memset(whole + off + LEN, 'x', FGV_PAGE_BYTES);
	ck_assert_int_eq(fgv_window_format(&window, fd, off), 0);
	ck_assert(!memcmp(whole, whole + 1, off - 1) && whole[0] == 'x');
	ck_assert(!memcmp(whole, whole + off + LEN, FGV_PAGE_BYTES));
	ck_assert_int_eq(fgv_window_map_at(&window, fd, off), 0);
	ck_assert_uint_eq(fgv_window_head(&window)->magic, FGV_WINDOW_MAGIC);
	check_ring(fgv_window_requests(&window, LANES - 1), FGV_REQUEST_SLOTS);
	window.base[LEN - 1] = 'w';
	ck_assert_uint_eq(whole[off + LEN - 1], 'w');
	fgv_window_unmap(&window);
	munmap(whole, off + LEN + FGV_PAGE_BYTES);
	close(fd);
}
END_TEST

START_TEST(maps_no_part_that_sticks_out)
{
	struct fgv_window window;
	int fd = memfd_create("region", MFD_CLOEXEC);

	fgv_window_layout(&window, LEN, LANES);
	ck_assert_int_eq(ftruncate(fd, LEN + FGV_PAGE_BYTES), 0);
	ck_assert_int_eq(fgv_window_map_at(&window, fd, 2 * FGV_PAGE_BYTES), -EINVAL);
	ck_assert_int_eq(fgv_window_map_at(&window, fd, LEN + 2 * FGV_PAGE_BYTES), -EINVAL);
	ck_assert_int_eq(fgv_window_map_at(&window, fd, UINT64_MAX - LEN + 1), -EINVAL);
	ck_assert_int_eq(fgv_window_map_at(&window, fd, 1), -EINVAL);
	ck_assert_int_eq(fgv_window_format(&window, fd, 2 * FGV_PAGE_BYTES), -EINVAL);
	ck_assert_ptr_null(window.base);
	ck_assert_int_eq(fgv_window_map_at(&window, fd, FGV_PAGE_BYTES), 0);
	fgv_window_unmap(&window);
	close(fd);
}
END_TEST

static uint8_t memory[2 * FGV_PAGE_BYTES];

static const struct {
	uint64_t off, len;
	bool inside;
} ranges[] = {
	{0, 0, true},
	{0, 1, true},
	{0, sizeof(memory), true},
	{0, sizeof(memory) + 1, false},
	{1, sizeof(memory), false},
	{sizeof(memory) - 1, 1, true},
	{sizeof(memory) - 1, 2, false},
	{sizeof(memory), 0, true},
	{sizeof(memory), 1, false},
	{sizeof(memory) + 1, 0, false},
	{UINT64_MAX, 0, false},
	{UINT64_MAX, 1, false},
	{UINT64_MAX, UINT64_MAX, false},
	{1, UINT64_MAX, false},
	{64, UINT64_MAX - 63, false},
	{0, UINT64_MAX, false},
	{1ull << 63, 1ull << 63, false},
};

START_TEST(resolves)
{
	struct fgv_window window = {.base = memory, .len = sizeof(memory)};
	void *at = fgv_window_resolve(&window, ranges[_i].off, ranges[_i].len);

	if (ranges[_i].inside)
		ck_assert_ptr_eq(at, memory + ranges[_i].off);
	else
		ck_assert_ptr_null(at);
}
END_TEST

static uint64_t offset_of(const struct fgv_window *window, const void *p)
{
	return (uint64_t)((const uint8_t *)p - window->base);
}

/* Lanes and their parts lie one after the other, inside the window. */
START_TEST(parts_are_disjoint)
{
	struct fgv_window window;
	uint64_t off = FGV_PAGE_BYTES;
	int fd;

	fgv_window_layout(&window, LEN, LANES);
	fd = fgv_window_create(&window);
	ck_assert_int_eq(fgv_window_map(&window, fd), 0);
	for (uint32_t i = 0; i < LANES; i++, off += FGV_LANE_BYTES) {
		uint64_t requests = offset_of(&window, fgv_window_requests(&window, i));
		uint64_t replies = offset_of(&window, fgv_window_replies(&window, i));

		ck_assert_uint_eq(offset_of(&window, fgv_window_lane_head(&window, i)), off);
		ck_assert_uint_le(off + sizeof(struct fgv_lane_head), requests);
		ck_assert_uint_le(requests + FGV_REQUEST_SLOTS * FGV_SLOT_BYTES, replies);
		ck_assert_uint_le(replies + FGV_REPLY_SLOTS * FGV_SLOT_BYTES, off + FGV_LANE_HEAP);
	}
	ck_assert_uint_le(off, window.arena_off);
	fgv_window_unmap(&window);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("window");
	TCase *tcase = tcase_create("window");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, lays_out);
	tcase_add_loop_test(tcase, refuses_misfits, 0, FGV_ARRAY_LEN(misfits));
	tcase_add_loop_test(tcase, check_refuses, 0, FGV_ARRAY_LEN(wrongs));
	tcase_add_test(tcase, check_refuses_lanes);
	tcase_add_test(tcase, creates_formatted);
	tcase_add_test(tcase, is_sealed);
	tcase_add_test(tcase, maps_only_what_is_long_enough);
	tcase_add_test(tcase, is_part_of_something_larger);
	tcase_add_test(tcase, maps_no_part_that_sticks_out);
	tcase_add_loop_test(tcase, resolves, 0, FGV_ARRAY_LEN(ranges));
	tcase_add_test(tcase, parts_are_disjoint);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
