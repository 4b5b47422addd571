/*
 * Work that waits for other work of its program: what takes longer than expected may be waiting for
 * what the gate keeps back, so the gate lets that through. With a vGPU process, and by itself.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/gate_priv.h"
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define SLICE_NS (6 * FGV_NS_PER_MS)
#define HOUR_NS	 3600000000000ull

/* await(u64 flag) returns when the u32 there is not 0 any more. */
static const char await_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				".visible .entry await(.param .u64 flag)\n{\n"
				".reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .b64 %d<3>;\n"
				"ld.param.u64 %d1, [flag];\n"
				"cvta.to.global.u64 %d2, %d1;\n"
				"again:\n"
				"ld.volatile.global.u32 %r1, [%d2];\n"
				"setp.eq.u32 %p1, %r1, 0;\n"
				"@%p1 bra again;\n"
				"ret;\n}\n";

/* --- A vGPU process ---------------------------------------------------------------- */

static struct vgpu vgpu;
static uint64_t flag;

/* It has the grant, without a limit: what it has to do before may need that, too. */
static void start(void)
{
	vgpu_start(&vgpu);
	flag = vgpu_must_alloc(&vgpu, 4);
	vgpu_fill(&vgpu, flag, 1, 0, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}

static void stop(void)
{
	vgpu_leave(&vgpu);
}

static void launch_await(uint32_t function, uint32_t stream)
{
	struct fgv_launch_request head = {
		.function = function,
		.stream = stream,
		.grid = {1, 1, 1},
		.block = {1, 1, 1},
		.param_count = 1,
	};
	uint8_t message[sizeof(head) + sizeof(flag)];

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), &flag, sizeof(flag));
	vgpu_must_post(&vgpu, 0, FGV_OP_LAUNCH, message, sizeof(message));
}

static void set_flag(uint32_t stream)
{
	struct fgv_copy_in_request head = {.address = flag, .stream = stream};
	uint32_t value = 1;
	uint8_t message[sizeof(head) + sizeof(value)];

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), &value, sizeof(value));
	vgpu_must_post(&vgpu, 0, FGV_OP_COPY_IN, message, sizeof(message));
}

/* Kernels never seen before wait for a copy in another stream; more comes behind them, first. */
START_TEST(lets_through_what_work_waits_for)
{
	uint32_t function = vgpu_must_get(&vgpu, await_ptx, "await");
	uint32_t waits = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	uint32_t sets = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	uint32_t event = vgpu_must_create_event(&vgpu);

	__atomic_store_n(&vgpu.grant->is_holdable, (uint32_t)_i, __ATOMIC_SEQ_CST);
	launch_await(function, waits);
	vgpu_record(&vgpu, event, waits);
	for (int i = 0; i < 3; i++)
		launch_await(function, waits);
	set_flag(sets);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* --- The gate by itself -------------------------------------------------------------- */

static struct fgv_session session;
static struct fgv_grant grant;
static struct fgv_object *busy, *free_one;

static struct fgv_object *add_stream(void)
{
	struct fgv_object *stream = fgv_handles_add(&session.handles, FGV_KIND_STREAM);

	ck_assert_ptr_nonnull(stream);
	return stream;
}

/* A kernel that was never measured is on the GPU, and has been there for an hour. */
static void setup(void)
{
	struct fgv_device_info info = {0};
	struct fgv_piece piece;

	info.attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1;
	memset(&session, 0, sizeof(session));
	memset(&grant, 0, sizeof(grant));
	fgv_handles_init(&session.handles);
	busy = add_stream();
	free_one = add_stream();
	session.gate.grant = &grant;
	fgv_forecast_init(&session.gate.forecast, &info, SLICE_NS);
	piece = (struct fgv_piece){busy, FGV_ENGINE_COMPUTE, FGV_SHARE_ALL, SLICE_NS};
	fgv_overlap_add(&session.gate.forecast.overlap, &piece);
	session.gate.submitted = 1;
	session.gate.ahead_ns = session.gate.room_ns = SLICE_NS;
	session.gate.retry_ns = UINT64_MAX;
	session.gate.passed_ns = fgv_now_ns() - HOUR_NS;
}

static void teardown(void)
{
	free(busy);
	free(free_one);
	fgv_handles_fini(&session.handles);
}

static bool admits_launch(const struct fgv_object *stream)
{
	struct fgv_request request = {.op = FGV_OP_LAUNCH};
	struct fgv_launch_request launch = {
		.function = 7,
		.stream = stream->handle,
		.grid = {1, 1, 1},
		.block = {1, 1, 1},
	};

	return fgv_gate_admits(&session, &session.gate, &request, (const uint8_t *)&launch,
			       sizeof(launch));
}

static bool admits_record(void)
{
	struct fgv_request request = {.op = FGV_OP_EVENT_RECORD};
	struct fgv_event_record_request record = {.stream = busy->handle};

	return fgv_gate_admits(&session, &session.gate, &request, (const uint8_t *)&record,
			       sizeof(record));
}

START_TEST(nothing_goes_before_its_time)
{
	session.gate.ahead_ns = 2 * HOUR_NS;
	ck_assert(!admits_launch(free_one));
	ck_assert(!admits_launch(busy));
	session.gate.ahead_ns = SLICE_NS;
	session.gate.room_ns = 0;
	ck_assert(!admits_launch(free_one));
}
END_TEST

/* What begins at once goes; of what comes behind, one piece, until twice the time has passed. */
START_TEST(little_piles_up_behind_late_work)
{
	ck_assert(admits_launch(free_one));
	ck_assert(admits_launch(free_one));
	ck_assert(admits_record());
	ck_assert(admits_launch(busy));
	ck_assert_uint_ge(session.gate.patience_ns, 2 * HOUR_NS);
	ck_assert(!admits_launch(busy));
	ck_assert(admits_launch(free_one));
	ck_assert(admits_record());
	session.gate.passed_ns -= 2 * HOUR_NS;
	ck_assert(admits_launch(busy));
	ck_assert(!admits_launch(busy));
}
END_TEST

/* Nobody waits for one that can be held, but the driver's queues are not to fill up. */
START_TEST(more_may_where_it_can_be_held)
{
	grant.is_holdable = 1;
	for (int i = 0; i < 3; i++)
		ck_assert(admits_launch(busy));
	session.gate.submitted = FGV_GATE_QUEUED_MAX;
	ck_assert(!admits_launch(busy));
	ck_assert(!admits_launch(free_one));
	ck_assert(!admits_record());
}
END_TEST

START_TEST(not_where_it_could_not_run)
{
	session.gate.forecast.overlap.is_serial = true;
	ck_assert(!admits_launch(free_one));
	session.gate.forecast.overlap.is_serial = false;
	session.gate.is_held = true;
	ck_assert(!admits_launch(free_one));
	session.gate.is_held = false;
	session.gate.is_filling = true;
	ck_assert(!admits_launch(free_one));
}
END_TEST

/* A dispatcher that sleeps wakes up in time to let it through, and not before. */
START_TEST(sleeps_until_it_may_go)
{
	uint64_t limit_ns = UINT64_MAX;

	session.gate.word = FGV_GRANT_BUSY;
	session.gate.limit_ns = grant.limit_ns = FGV_GRANT_NO_LIMIT;
	ck_assert_int_eq(fgv_grant_state(session.gate.word), FGV_GRANT_BUSY);
	ck_assert(fgv_gate_may_sleep(&session, &session.gate, 0, true, &limit_ns));
	ck_assert_uint_eq(limit_ns, UINT64_MAX);
	ck_assert(admits_launch(busy) && !admits_launch(busy));
	ck_assert(fgv_gate_may_sleep(&session, &session.gate, 0, true, &limit_ns));
	ck_assert_uint_le(limit_ns, 2 * HOUR_NS);
	session.gate.passed_ns -= 2 * HOUR_NS;
	session.gate.retry_ns -= 2 * HOUR_NS;
	ck_assert(!fgv_gate_may_sleep(&session, &session.gate, 0, true, &limit_ns));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("overdue");
	TCase *process = tcase_create("process"), *gate = tcase_create("gate");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(process, 120);
	tcase_add_checked_fixture(process, start, stop);
	tcase_add_loop_test(process, lets_through_what_work_waits_for, 0, 2);
	tcase_add_checked_fixture(gate, setup, teardown);
	tcase_add_test(gate, nothing_goes_before_its_time);
	tcase_add_test(gate, little_piles_up_behind_late_work);
	tcase_add_test(gate, more_may_where_it_can_be_held);
	tcase_add_test(gate, not_where_it_could_not_run);
	tcase_add_test(gate, sleeps_until_it_may_go);
	suite_add_tcase(suite, process);
	suite_add_tcase(suite, gate);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
