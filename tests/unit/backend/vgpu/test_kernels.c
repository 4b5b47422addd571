/* The book of kernels: what they are known by, what is learned, and that it stays bounded. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"

#define MS  1000000ull
#define PTX ".version 8.0 .target sm_90 .address_size 64"

static struct fgv_session session;
static struct fgv_kernels *const kernels = &session.kernels;
static uint64_t now_ns;

static uint32_t add_function(const char *name)
{
	struct fgv_object *function = fgv_handles_add(&session.handles, FGV_KIND_FUNCTION);

	ck_assert_ptr_nonnull(function);
	function->function.content = fgv_kernels_name(fgv_kernels_image(PTX, strlen(PTX)), name);
	return function->handle;
}

static void setup(void)
{
	struct fgv_device_info info = {0};

	memset(&session, 0, sizeof(session));
	now_ns = MS;
	fgv_handles_init(&session.handles);
	fgv_forecast_init(&session.gate.forecast, &info, 6 * MS);
	ck_assert_int_eq(fgv_kernels_init(kernels, true), 0);
}

static void teardown(void)
{
	struct fgv_object *object;
	uint32_t at = 0;

	while ((object = fgv_handles_next(&session.handles, FGV_KIND_FUNCTION, &at)))
		free(object);
	fgv_handles_fini(&session.handles);
	fgv_kernels_fini(kernels);
}

static struct fgv_launch_request launch(uint32_t function)
{
	return (struct fgv_launch_request){
		.function = function, .grid = {8, 1, 1}, .block = {32, 1, 1}};
}

/* One that takes @ns, and leaves the GPU idle for @gap_ns. */
static void run(const struct fgv_launch_request *request, uint64_t ns, uint64_t gap_ns)
{
	const struct fgv_request head = {.op = FGV_OP_LAUNCH, .subject = request->function};

	fgv_kernels_note(kernels, &head, (const uint8_t *)request);
	now_ns += ns;
	fgv_kernels_drained(&session, ns, now_ns);
	now_ns += gap_ns;
	fgv_kernels_resume(kernels, now_ns);
}

static uint32_t next_ns(const struct fgv_launch_request *request)
{
	const struct fgv_request head = {.op = FGV_OP_LAUNCH};

	return fgv_kernels_next_ns(&session, &head, (const uint8_t *)request, sizeof(*request));
}

/* Of a gap that begins after @request. */
static uint32_t gap_ns(const struct fgv_launch_request *request)
{
	const struct fgv_request head = {.op = FGV_OP_LAUNCH, .subject = request->function};

	fgv_kernels_note(kernels, &head, (const uint8_t *)request);
	fgv_kernels_drained(&session, 0, now_ns);
	return fgv_kernels_gap_ns(kernels, now_ns);
}

START_TEST(kernels_are_known_by_name_and_shape)
{
	struct fgv_launch_request one = launch(add_function("one")), two = one;

	run(&one, 2 * MS, MS);
	ck_assert_uint_eq(next_ns(&one), 2 * MS);
	two.function = add_function("two");
	ck_assert_uint_eq(next_ns(&two), 0);
	two = one;
	two.grid[0]++;
	ck_assert_uint_eq(next_ns(&two), 0);
	two = one;
	two.block[1]++;
	ck_assert_uint_eq(next_ns(&two), 0);
	two = one;
	two.shared_bytes = 4;
	ck_assert_uint_eq(next_ns(&two), 0);
	two = one;
	two.stream = 7;
	ck_assert_uint_eq(next_ns(&two), 2 * MS);
}
END_TEST

/* The same kernel of the same program is the same with another handle, as in another run. */
START_TEST(handles_say_nothing)
{
	struct fgv_launch_request one = launch(add_function("one"));
	struct fgv_launch_request again = launch(add_function("one"));

	ck_assert_uint_ne(one.function, again.function);
	run(&one, 2 * MS, MS);
	ck_assert_uint_eq(next_ns(&again), 2 * MS);
}
END_TEST

START_TEST(images_are_known_by_their_content)
{
	static char large[3 << 20], other[sizeof(large)];

	ck_assert_uint_ne(fgv_kernels_image("a", 1), fgv_kernels_image("b", 1));
	ck_assert_uint_ne(fgv_kernels_image(large, 4095), fgv_kernels_image(large, 4096));
	memset(other, 1, sizeof(other));
	ck_assert_uint_ne(fgv_kernels_image(large, sizeof(large)),
			  fgv_kernels_image(other, sizeof(other)));
	memset(other, 0, sizeof(other));
	ck_assert_uint_eq(fgv_kernels_image(large, sizeof(large)),
			  fgv_kernels_image(other, sizeof(other)));
}
END_TEST

START_TEST(gaps_are_means_of_some)
{
	const struct fgv_launch_request one = launch(add_function("one"));
	const struct fgv_launch_request two = launch(add_function("two"));

	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(gap_ns(&one), 0);
		fgv_kernels_resume(kernels, now_ns + (uint64_t)(i + 1) * MS);
		run(&two, MS, 0);
	}
	ck_assert_uint_eq(gap_ns(&one), 2 * MS);
	ck_assert_uint_eq(fgv_kernels_gap_ns(kernels, now_ns + MS / 2), 3 * MS / 2); /* the rest */
	ck_assert_uint_eq(fgv_kernels_gap_ns(kernels, now_ns + 9 * MS), 0);
	fgv_kernels_resume(kernels, now_ns);
	ck_assert_uint_eq(fgv_kernels_gap_ns(kernels, now_ns), 0); /* it is over */
	ck_assert_uint_eq(gap_ns(&two), 0);
}
END_TEST

/*
 * A service: twenty launches of one kernel, one after the other, and a pause. As none but the last
 * is followed by a gap, none of them begins one; but the pause is one once it has lasted.
 */
START_TEST(most_gaps_are_short)
{
	const struct fgv_launch_request one = launch(add_function("one"));

	for (int i = 0; i < 400; i++) {
		ck_assert_uint_eq(gap_ns(&one), 0);
		run(&one, MS / 4, i % 20 == 19 ? 10 * MS : MS / 100);
	}
	ck_assert_uint_eq(gap_ns(&one), 0);
	ck_assert_uint_gt(fgv_kernels_gap_ns(kernels, now_ns + MS / 10), 9 * MS);
	for (int i = 0; i < 50; i++)
		run(&one, MS / 4, 10 * MS);
	ck_assert_uint_gt(gap_ns(&one), 9 * MS);
}
END_TEST

/* Gaps that are worth nothing are none, however many there are. */
START_TEST(short_gaps_are_none)
{
	const struct fgv_launch_request one = launch(add_function("one"));

	for (int i = 0; i < 50; i++)
		run(&one, MS / 4, FGV_KERNELS_GAP_NS - 1);
	ck_assert_uint_eq(gap_ns(&one), 0);
	ck_assert_uint_eq(fgv_kernels_gap_ns(kernels, now_ns + FGV_KERNELS_GAP_NS), 0);
}
END_TEST

/* What changes is followed, and no time is too long. */
START_TEST(means_follow)
{
	const struct fgv_launch_request one = launch(add_function("one"));

	for (int i = 0; i < 100; i++)
		run(&one, MS, MS);
	for (int i = 0; i < 100; i++)
		run(&one, 4 * MS, MS);
	ck_assert_uint_gt(next_ns(&one), 39 * MS / 10);
	for (int i = 0; i < 200; i++)
		run(&one, 100000 * MS, UINT64_MAX / 1000);
	ck_assert_uint_gt(next_ns(&one), UINT32_MAX / 2);
	ck_assert_uint_gt(gap_ns(&one), UINT32_MAX / 2);
}
END_TEST

/* A guest that makes many pushes out what it uses least, and nothing grows. */
START_TEST(many_kernels_spoil_no_more_than_their_places)
{
	const struct fgv_launch_request kept = launch(add_function("kept"));
	struct fgv_launch_request other = launch(add_function("other"));

	for (uint32_t i = 0; i < 20 * FGV_KERNELS; i++) {
		other.grid[0] = i;
		run(&other, MS, MS);
		if (i % 64 == 0)
			run(&kept, 2 * MS, MS);
	}
	ck_assert_uint_eq(next_ns(&kept), 2 * MS);
}
END_TEST

START_TEST(a_function_that_has_gone_is_nobodys)
{
	struct fgv_launch_request one = launch(12345);

	run(&one, MS, MS);
	ck_assert_uint_eq(next_ns(&one), 0);
	ck_assert_uint_eq(gap_ns(&one), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernels");
	TCase *tcase = tcase_create("kernels");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, kernels_are_known_by_name_and_shape);
	tcase_add_test(tcase, handles_say_nothing);
	tcase_add_test(tcase, images_are_known_by_their_content);
	tcase_add_test(tcase, gaps_are_means_of_some);
	tcase_add_test(tcase, most_gaps_are_short);
	tcase_add_test(tcase, short_gaps_are_none);
	tcase_add_test(tcase, means_follow);
	tcase_add_test(tcase, many_kernels_spoil_no_more_than_their_places);
	tcase_add_test(tcase, a_function_that_has_gone_is_nobodys);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
