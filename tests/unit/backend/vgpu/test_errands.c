/*
 * Errands: what a session has the driver do beside work. Many of them wait for the grant, but for
 * those of a session that has the GPU to itself; the test is the daemon.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define MANY	20000
#define NAMES	FGV_OWN_STREAMS_MAX
#define LONG_NS (UINT64_C(3600) * 1000000000)

static struct vgpu vgpu;
static uint64_t image_len;

/* So little credit is left to each that some errands use it up. */
static void crowd(void)
{
	for (unsigned i = 0; i < FGV_SESSIONS_MAX; i++)
		__atomic_store_n(&vgpu.accounts->sessions[i].requests, 1, __ATOMIC_RELAXED);
}

static void setup(void)
{
	vgpu_start(&vgpu);
	image_len = vgpu_put_image(&vgpu, vgpu_forever_ptx);
	vgpu_take_grant(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

/* --- Pairs of errands ---------------------------------------------------------- */

struct kind {
	void (*post)(void);	/* a call of lane 0 */
	uint64_t (*take)(void); /* its reply; what it has made */
	void (*drop)(uint64_t made);
};

static void post_load(void)
{
	struct fgv_module_load_request request = {.image_off = vgpu.window.arena_off,
						  .image_len = image_len,
						  .description_off = vgpu.window.arena_off};

	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_LOAD, &request, sizeof(request));
}

static uint64_t take_load(void)
{
	struct fgv_module_load_reply reply;

	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
	return reply.module;
}

static void drop_load(uint64_t made)
{
	struct fgv_module_unload_request request = {.module = (uint32_t)made};

	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_UNLOAD, &request, sizeof(request));
}

static void post_alloc(void)
{
	struct fgv_mem_alloc_request request = {.size = 1 << 20};

	vgpu_must_post(&vgpu, 0, FGV_OP_MEM_ALLOC, &request, sizeof(request));
}

static uint64_t take_alloc(void)
{
	struct fgv_mem_alloc_reply reply;

	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
	return reply.address;
}

static void drop_alloc(uint64_t made)
{
	vgpu_mem_free(&vgpu, made);
}

static void post_stream(void)
{
	struct fgv_stream_create_request request = {0};

	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_CREATE, &request, sizeof(request));
}

static uint64_t take_stream(void)
{
	struct fgv_stream_create_reply reply;

	ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &reply), CUDA_SUCCESS);
	return reply.stream;
}

static void drop_stream(uint64_t made)
{
	struct fgv_stream_destroy_request request = {.stream = (uint32_t)made};

	vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &request, sizeof(request));
}

static const struct kind kinds[] = {
	{post_load, take_load, drop_load},
	{post_alloc, take_alloc, drop_alloc},
	{post_stream, take_stream, drop_stream},
};
#define KINDS (int)(sizeof(kinds) / sizeof(*kinds))

/* Whether the call is answered; else the grant is asked for. */
static bool is_answered(void)
{
	while (!fgv_ring_peek(&vgpu.lanes[0].replies)) {
		if (__atomic_load_n(&vgpu.grant->wants, __ATOMIC_ACQUIRE))
			return false;
		sched_yield();
	}
	return true;
}

/* Until a call waits for the grant; how many did not. */
static int storm(const struct kind *kind)
{
	for (int count = 0; count < MANY; count++) {
		kind->post();
		if (!is_answered())
			return count;
		kind->drop(kind->take());
	}
	ck_abort_msg("%d errands, and none has waited", MANY);
	return 0;
}

/* The last drop has no reply; the synchronization is behind it. */
static void run(const struct kind *kind, int count)
{
	for (int i = 0; i < count; i++) {
		kind->post();
		kind->drop(kind->take());
	}
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}

/*
 * Leaves a call that still waits for the grant after a while. The credit is filled up as time
 * passes, and a short errand wants little of it: on a slow machine that may suffice.
 */
static void storm_until_it_waits(const struct kind *kind)
{
	for (int tries = 0; tries < 100; tries++) {
		storm(kind);
		poll(NULL, 0, 20);
		if (!fgv_ring_peek(&vgpu.lanes[0].replies))
			return;
		kind->drop(kind->take());
	}
	ck_abort_msg("no errand waits for the grant");
}

/* --- Tests ----------------------------------------------------------------------- */

/* A storm waits for the grant as work does, and is charged for the time that it has it. */
START_TEST(a_storm_waits)
{
	const struct kind *kind = &kinds[_i];
	uint64_t before_ns;

	crowd();
	storm_until_it_waits(kind);
	before_ns = __atomic_load_n(&vgpu.grant->used_ns, __ATOMIC_RELAXED);
	vgpu_grant_until_reply(&vgpu, VGPU_SLICE, 0);
	kind->drop(kind->take());
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	ck_assert_uint_gt(__atomic_load_n(&vgpu.grant->used_ns, __ATOMIC_RELAXED), before_ns);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
}
END_TEST

/* What the guest names itself is there when it is asked for, whatever waits; it is paid for, too.
 */
START_TEST(what_has_a_name_is_made_at_once)
{
	struct fgv_stream_make_request make = {.handle = FGV_OWN_BIT | 1};
	struct fgv_stream_query_request query = {.stream = make.handle};

	crowd();
	storm(&kinds[0]);
	vgpu_must_post(&vgpu, 1, FGV_OP_STREAM_MAKE, &make, sizeof(make));
	ck_assert_uint_eq(vgpu_call(&vgpu, 1, FGV_OP_STREAM_QUERY, &query, sizeof(query), NULL),
			  CUDA_SUCCESS);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	kinds[0].drop(kinds[0].take());
}
END_TEST

/* A program that has its streams made without waiting is held up where it destroys them. */
START_TEST(a_storm_of_named_things_waits)
{
	struct fgv_stream_make_request make;
	struct fgv_stream_destroy_request destroy;
	uint32_t count = 0;

	crowd();
	while (!__atomic_load_n(&vgpu.grant->wants, __ATOMIC_ACQUIRE)) {
		ck_assert_uint_lt(++count, 50 * MANY);
		make = (struct fgv_stream_make_request){.handle = FGV_OWN_BIT | (count % NAMES)};
		make.handle += 2 * FGV_OWN_BIT * (count / NAMES % 64);
		destroy = (struct fgv_stream_destroy_request){.stream = make.handle};
		vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_MAKE, &make, sizeof(make));
		vgpu_must_post(&vgpu, 0, FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	}
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* The credit is the VM's: what all of its sessions do is no more than what one may. */
START_TEST(sessions_share_the_credit)
{
	int alone, crowded;

	alone = storm(&kinds[0]);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	kinds[0].drop(kinds[0].take());
	vgpu_leave(&vgpu);
	setup();
	crowd();
	crowded = storm(&kinds[0]);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	kinds[0].drop(kinds[0].take());
	ck_assert_int_lt(crowded, alone);
}
END_TEST

/* Nobody else wants the GPU: nothing waits, and no credit is used up. */
START_TEST(nothing_is_counted_alone)
{
	crowd();
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	run(&kinds[_i], 500);
	ck_assert_uint_eq(vgpu.grant->changes, 0);
	vgpu_take_grant(&vgpu);
	kinds[_i].post();
	ck_assert(is_answered());
	kinds[_i].drop(kinds[_i].take());
}
END_TEST

/* The grant pays for the time already. What costs the next session more than that is told. */
START_TEST(nothing_is_counted_under_the_grant)
{
	crowd();
	vgpu.grant->flags = FGV_GRANT_KEEP;
	vgpu_grant(&vgpu, LONG_NS);
	run(&kinds[_i], 500);
	ck_assert_uint_eq(vgpu.grant->changes, kinds[_i].post == post_load ? 2 * 500 : 0);
	vgpu_take_grant(&vgpu);
	kinds[_i].post();
	ck_assert(is_answered());
	kinds[_i].drop(kinds[_i].take());
}
END_TEST

/*
 * What takes longer than the rest of the turn ends the turn instead, and gets the next one, where
 * it is let for all that it takes. What is no load, and a load that fits, just goes.
 */
START_TEST(a_load_keeps_to_the_turn)
{
	static struct fgv_session session;
	struct fgv_grant grant = {0};
	struct fgv_gate *gate = &session.gate;

	gate->grant = &grant;
	gate->slice_ns = 6000000;
	session.errands.load_ns = 3000000;
	gate->room_ns = 1;
	gate->limit_ns = 3000000;
	ck_assert(fgv_errands_admit(&session, FGV_OP_MODULE_LOAD));
	gate->limit_ns = 2999999;
	ck_assert(fgv_errands_admit(&session, FGV_OP_MEM_ALLOC));
	ck_assert(!gate->over && !gate->blocked);
	ck_assert(!fgv_errands_admit(&session, FGV_OP_MODULE_LOAD_PLACED));
	ck_assert(gate->over && gate->blocked);
	ck_assert_uint_eq(gate->room_ns, 0);
	session.errands.load_ns = 60000000;
	gate->limit_ns = 5900000;
	ck_assert(fgv_errands_fit_load(&session));
}
END_TEST

/* Outside a turn, what makes the GPU change contexts counts for that, however short it was. */
START_TEST(unloading_counts_for_the_change)
{
	static struct fgv_session session;
	static struct fgv_gpu gpu;
	struct fgv_grant grant = {0};
	const int64_t credit_ns = 10000000;

	session.gate.grant = &grant;
	session.gpu = &gpu;
	session.errands.credit_ns = credit_ns;
	fgv_errands_end(&session, FGV_OP_MODULE_UNLOAD, fgv_now_ns());
	ck_assert_int_le(session.errands.credit_ns, credit_ns - (int64_t)FGV_GRANT_CHANGE_NS);
	session.errands.credit_ns = credit_ns;
	fgv_errands_end(&session, FGV_OP_MODULE_LOAD, 1); /* a long one */
	ck_assert_int_eq(session.errands.credit_ns, credit_ns - (int64_t)FGV_ERRANDS_LOAD_NS);
}
END_TEST

/* A turn that has ended so is given back, with the load still to come. */
START_TEST(a_turn_ends_with_a_load_that_does_not_fit)
{
	crowd();
	storm(&kinds[0]);
	vgpu_grant_until_reply(&vgpu, VGPU_SLICE, 0);
	kinds[0].drop(kinds[0].take());
	for (int turns = 0; turns < 3; turns++) {
		vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
		kinds[0].post();
		vgpu_grant_until_reply(&vgpu, VGPU_SLICE, 0);
		kinds[0].drop(kinds[0].take());
	}
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("errands");
	TCase *tests = tcase_create("errands");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, a_storm_waits, 0, KINDS);
	tcase_add_test(tests, what_has_a_name_is_made_at_once);
	tcase_add_test(tests, a_storm_of_named_things_waits);
	tcase_add_test(tests, sessions_share_the_credit);
	tcase_add_loop_test(tests, nothing_is_counted_alone, 0, KINDS);
	tcase_add_loop_test(tests, nothing_is_counted_under_the_grant, 0, KINDS);
	tcase_add_test(tests, a_load_keeps_to_the_turn);
	tcase_add_test(tests, unloading_counts_for_the_change);
	tcase_add_test(tests, a_turn_ends_with_a_load_that_does_not_fit);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
