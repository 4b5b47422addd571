/*
 * What work in streams will take together: the makespan (overlap.h), and which requests fit
 * beside what is there (forecast.h).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"

#define MS 1000000ull

static struct fgv_session session;
static struct fgv_overlap *const overlap = &session.gate.forecast.overlap;
static struct fgv_object *streams[32];

static struct fgv_object *add(enum fgv_kind kind)
{
	struct fgv_object *object = fgv_handles_add(&session.handles, kind);

	ck_assert_ptr_nonnull(object);
	return object;
}

static struct fgv_device_info gpu(int concurrent)
{
	struct fgv_device_info info = {0};

	info.attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = concurrent;
	info.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 132;
	info.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048;
	info.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = 32;
	return info;
}

static void setup(void)
{
	struct fgv_device_info info = gpu(1);

	memset(&session, 0, sizeof(session));
	fgv_handles_init(&session.handles);
	for (int i = 0; i < 32; i++)
		streams[i] = add(FGV_KIND_STREAM);
	fgv_forecast_init(&session.gate.forecast, &info, 6 * MS);
}

static void drop_all(enum fgv_kind kind)
{
	struct fgv_object *object;
	uint32_t at = 0;

	while ((object = fgv_handles_next(&session.handles, kind, &at)))
		free(object);
}

static void teardown(void)
{
	drop_all(FGV_KIND_STREAM);
	drop_all(FGV_KIND_EVENT);
	drop_all(FGV_KIND_GRAPH);
	fgv_handles_fini(&session.handles);
}

static uint64_t put(struct fgv_object *stream, enum fgv_engine engine, uint32_t share, uint64_t ns)
{
	struct fgv_piece piece = {stream, engine, share, ns};

	return fgv_overlap_add(overlap, &piece);
}

static uint64_t put_small(struct fgv_object *stream, uint64_t ns)
{
	return put(stream, FGV_ENGINE_COMPUTE, 1, ns);
}

START_TEST(one_stream_adds_up)
{
	ck_assert_uint_eq(put_small(streams[0], 5 * MS), 5 * MS);
	ck_assert_uint_eq(put_small(streams[0], 5 * MS), 5 * MS);
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 10 * MS);
}
END_TEST

START_TEST(small_ones_run_side_by_side)
{
	put_small(streams[0], 18 * MS);
	for (int i = 1; i < 32; i++)
		ck_assert_uint_eq(put_small(streams[i], 18 * MS), 0);
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 18 * MS);
}
END_TEST

START_TEST(large_ones_add_up)
{
	put(streams[0], FGV_ENGINE_COMPUTE, FGV_SHARE_ALL, 2 * MS);
	put(streams[1], FGV_ENGINE_COMPUTE, FGV_SHARE_ALL, 2 * MS);
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 4 * MS);
}
END_TEST

/* More small ones than there is room for take turns after all. */
START_TEST(room_is_bounded)
{
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 32; i++)
			put(streams[i], FGV_ENGINE_COMPUTE, FGV_SHARE_ALL / 8, MS);
	}
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 32 * MS);
}
END_TEST

START_TEST(copies_run_beside_kernels)
{
	put(streams[0], FGV_ENGINE_COMPUTE, FGV_SHARE_ALL, 5 * MS);
	ck_assert_uint_eq(put(streams[1], FGV_ENGINE_IN, FGV_SHARE_ALL, 5 * MS), 0);
	ck_assert_uint_eq(put(streams[2], FGV_ENGINE_OUT, FGV_SHARE_ALL, 5 * MS), 0);
	ck_assert_uint_eq(put(streams[3], FGV_ENGINE_IN, FGV_SHARE_ALL, MS), MS);
}
END_TEST

START_TEST(events_order_streams)
{
	struct fgv_object *event = add(FGV_KIND_EVENT);

	for (int i = 0; i < 31; i++) {
		put_small(streams[i], 6 * MS);
		fgv_overlap_record(overlap, streams[i], event);
		fgv_overlap_wait(overlap, streams[i + 1], event);
	}
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 31 * 6 * MS);
}
END_TEST

START_TEST(legacy_stream_orders_the_blocking_ones)
{
	streams[0]->is_blocking = true;
	streams[1]->is_blocking = true;
	put_small(streams[0], 2 * MS);
	put_small(NULL, 3 * MS);
	put_small(streams[1], 4 * MS);
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 9 * MS);
	ck_assert_uint_eq(put_small(streams[2], 9 * MS), 0);
}
END_TEST

START_TEST(what_is_done_is_not_ahead)
{
	put_small(streams[0], 2 * MS);
	fgv_overlap_done(overlap, 2 * MS);
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 0);
	/* Its end is long past: a stream that had nothing begins now. */
	ck_assert_uint_eq(put_small(streams[1], 3 * MS), 3 * MS);
	/* Never more than there was. */
	fgv_overlap_done(overlap, UINT64_MAX);
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 0);
	ck_assert_uint_eq(put_small(streams[0], MS), MS);
}
END_TEST

START_TEST(serial_gpu_adds_all_up)
{
	overlap->is_serial = true;
	put_small(streams[0], 2 * MS);
	put(streams[1], FGV_ENGINE_IN, FGV_SHARE_ALL, 3 * MS);
	put_small(NULL, MS);
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 6 * MS);
}
END_TEST

/* --- Requests -------------------------------------------------------------------- */

static void launch(struct fgv_object *stream, uint32_t blocks, struct fgv_request *request)
{
	struct fgv_launch_request arguments = {
		.function = 7,
		.grid = {blocks, 1, 1},
		.block = {256, 1, 1},
		.stream = stream ? stream->handle : 0,
	};

	memcpy(session.message, &arguments, sizeof(arguments));
	*request = (struct fgv_request){.op = FGV_OP_LAUNCH};
}

static bool fits(struct fgv_object *stream, uint32_t blocks)
{
	struct fgv_request request;

	launch(stream, blocks, &request);
	return fgv_forecast_fits(&session, &request, session.message,
				 sizeof(struct fgv_launch_request));
}

/* As the gate does it once the handler has run. */
static uint64_t let(struct fgv_object *stream, uint32_t blocks)
{
	struct fgv_request request;
	struct fgv_expected expected;

	launch(stream, blocks, &request);
	request.subject = 7;
	request.amount = blocks * 256;
	fgv_forecast_expect(&session, &request, session.message, &expected);
	return fgv_forecast_add(&session, &request, session.message, &expected);
}

static void learn(uint32_t blocks, uint64_t ns)
{
	fgv_cost_learn_first(&session.gate.forecast.costs, fgv_cost_place(7, blocks * 256), 0, ns);
}

START_TEST(unknown_kind_goes_alone)
{
	ck_assert_uint_eq(let(streams[0], 1), 6 * MS);
	ck_assert(!fits(streams[1], 1));
	ck_assert_uint_eq(let(streams[1], 1), 6 * MS);
}
END_TEST

START_TEST(small_kernels_fit_beside_a_long_one)
{
	learn(1, 18 * MS);
	ck_assert_uint_eq(let(streams[0], 1), 18 * MS);
	ck_assert(!fits(streams[0], 1));
	for (int i = 1; i < 32; i++) {
		ck_assert(fits(streams[i], 1));
		ck_assert_uint_eq(let(streams[i], 1), 0);
	}
	ck_assert(!fits(streams[31], 1));
	ck_assert_uint_eq(fgv_overlap_ahead_ns(overlap), 18 * MS);
}
END_TEST

static uint64_t let_part(uint32_t blocks)
{
	struct fgv_request request;
	struct fgv_expected expected;

	launch(NULL, 1000000, &request);
	request.subject = 7;
	request.amount = blocks * 256;
	request.portion = (uint32_t)(blocks * 256 / fgv_forecast_threads(&session.gate.forecast) *
				     FGV_PORTION_ALL);
	fgv_forecast_expect(&session, &request, session.message, &expected);
	ck_assert_uint_eq(expected.place, fgv_forecast_part(7));
	return expected.is_first ? 0 : expected.piece.ns;
}

/* One measurement tells what parts of all sizes take, and nothing of launches. */
START_TEST(parts_take_as_long_as_they_are_large)
{
	const uint32_t room = 132 * 8;

	learn(room, 5 * MS);
	ck_assert_uint_eq(let_part(room), 0);
	fgv_cost_learn_first(&session.gate.forecast.costs, fgv_forecast_part(7), 0, 2 * MS);
	ck_assert_uint_eq(let_part(room), 2 * MS);
	ck_assert_uint_eq(let_part(3 * room), 6 * MS);
	ck_assert_uint_eq(let_part(room / 2), MS);
	ck_assert_uint_eq(let(streams[0], room), 5 * MS);
}
END_TEST

START_TEST(full_grid_does_not_fit_beside_another)
{
	learn(132 * 8, 2 * MS);
	let(streams[0], 132 * 8);
	ck_assert(!fits(streams[1], 132 * 8));
}
END_TEST

START_TEST(copy_fits_beside_a_kernel)
{
	struct fgv_copy_in_bulk_request copy = {.data_len = 1 << 20, .stream = streams[1]->handle};
	struct fgv_request request = {.op = FGV_OP_COPY_IN_BULK};

	fgv_cost_learn_first(&session.gate.forecast.costs,
			     fgv_cost_place(FGV_OP_COPY_IN_BULK, 1 << 20), 0, MS);
	learn(132 * 8, 2 * MS);
	let(streams[0], 132 * 8);
	memcpy(session.message, &copy, sizeof(copy));
	ck_assert(fgv_forecast_fits(&session, &request, session.message, sizeof(copy)));
	/* Of a message that is cut short nothing is known. */
	ck_assert(!fgv_forecast_fits(&session, &request, session.message, sizeof(copy) - 1));
}
END_TEST

/* Two places of the device: the GPU's own work, as a kernel is. */
START_TEST(copy_on_the_device_is_computing)
{
	struct fgv_copy_device_request copy = {.size = 1 << 20, .stream = streams[1]->handle};
	struct fgv_request request = {.op = FGV_OP_COPY_DEVICE};

	fgv_cost_learn_first(&session.gate.forecast.costs,
			     fgv_cost_place(FGV_OP_COPY_DEVICE, 1 << 20), 0, MS);
	learn(132 * 8, 2 * MS);
	let(streams[0], 132 * 8);
	memcpy(session.message, &copy, sizeof(copy));
	ck_assert(!fgv_forecast_fits(&session, &request, session.message, sizeof(copy)));
}
END_TEST

START_TEST(nothing_fits_beside_on_a_serial_gpu)
{
	struct fgv_device_info info = gpu(0);

	fgv_forecast_init(&session.gate.forecast, &info, 6 * MS);
	learn(1, 18 * MS);
	let(streams[0], 1);
	ck_assert(!fits(streams[1], 1));
}
END_TEST

/* --- Graphs ----------------------------------------------------------------------- */

/* Kernels of function 7, each with this many blocks, and the node that they wait for; -1: none. */
static uint64_t predict(uint32_t blocks, const int *before, uint32_t count, uint32_t disabled)
{
	struct fgv_graph_kept kept[8] = {0};
	struct fgv_gpu_node nodes[8] = {0};
	struct fgv_graph graph = {.count = count, .nodes = nodes, .kept = kept};
	uint32_t waits[8];

	for (uint32_t i = 0; i < count; i++) {
		waits[i] = (uint32_t)before[i];
		nodes[i] = (struct fgv_gpu_node){
			.kind = FGV_GPU_NODE_KERNEL,
			.is_disabled = i == disabled,
			.before_count = before[i] >= 0,
			.before = &waits[i],
			.kernel = {.grid = {blocks, 1, 1}, .block = {256, 1, 1}},
		};
		kept[i].kind = 7;
		kept[i].amount = blocks * 256ull;
	}
	return fgv_graph_predict_ns(&graph, &session.gate.forecast);
}

/* Small ones side by side take as long as the longest way; large ones as long as all of them. */
START_TEST(graph_takes_its_longest_way_or_all_of_the_gpu)
{
	const int chain[] = {-1, 0, 1, 2}, branches[] = {-1, 0, -1, 2};
	uint64_t full = MS;

	ck_assert_uint_eq(predict(1, chain, 4, 8), 0);
	learn(1, MS);
	ck_assert_uint_eq(predict(1, chain, 4, 8), 4 * MS);
	ck_assert_uint_eq(predict(1, chain, 4, 1), 3 * MS);
	ck_assert_uint_eq(predict(1, branches, 4, 8), 2 * MS);
	learn(132 * 8, full);
	ck_assert_uint_eq(predict(132 * 8, branches, 4, 8), 4 * full + 1);
	overlap->is_serial = true;
	ck_assert_uint_eq(predict(1, branches, 4, 8), 4 * MS + 1);
}
END_TEST

/* By what it took before, as a kernel; one that was never measured goes alone. */
START_TEST(graph_fits_where_it_is_known_to)
{
	struct fgv_object *object = add(FGV_KIND_GRAPH);
	struct fgv_graph graph = {.count = 3};
	struct fgv_graph_launch_request message = {object->handle, streams[1]->handle};
	struct fgv_request request = {.op = FGV_OP_GRAPH_LAUNCH}, told;

	object->graph = &graph;
	learn(132 * 8, 2 * MS);
	let(streams[0], 132 * 8);
	memcpy(session.message, &message, sizeof(message));
	ck_assert(!fgv_forecast_fits(&session, &request, session.message, sizeof(message)));
	fgv_graph_tell(object, &told);
	fgv_cost_learn_first(&session.gate.forecast.costs,
			     fgv_cost_place(told.subject, told.amount), 0, MS);
	ck_assert(!fgv_forecast_fits(&session, &request, session.message, sizeof(message)));
	put_small(streams[2], 9 * MS);
	ck_assert(fgv_forecast_fits(&session, &request, session.message, sizeof(message)));
	message.graph++;
	memcpy(session.message, &message, sizeof(message));
	ck_assert(!fgv_forecast_fits(&session, &request, session.message, sizeof(message)));
}
END_TEST

/* Of one kind, which is all blocks of between 512 and 1,023 in number here, each has its share. */
START_TEST(each_shape_has_its_share)
{
	struct fgv_request request;
	struct fgv_expected expected;

	learn(512, MS);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t blocks = 1023; blocks >= 512; blocks -= 73) {
			launch(streams[0], blocks, &request);
			request.subject = 7;
			request.amount = blocks * 256;
			fgv_forecast_expect(&session, &request, session.message, &expected);
			ck_assert(!expected.is_first);
			ck_assert_uint_eq(expected.piece.share,
					  blocks * FGV_SHARE_ALL / (132 * 8));
		}
	}
}
END_TEST

/* Whatever a guest sends is a number. */
START_TEST(hostile_sizes)
{
	struct fgv_launch_request arguments = {
		.function = UINT32_MAX,
		.grid = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
		.stream = UINT32_MAX,
	};
	struct fgv_request request = {.op = FGV_OP_LAUNCH};
	struct fgv_expected expected;

	memcpy(session.message, &arguments, sizeof(arguments));
	for (uint32_t place = 0; place < FGV_COST_PLACES; place++)
		session.gate.forecast.costs.ns[place] = UINT32_MAX;
	fgv_forecast_fits(&session, &request, session.message, sizeof(arguments));
	fgv_forecast_expect(&session, &request, session.message, &expected);
	ck_assert_uint_ge(expected.piece.share, 1);
	ck_assert_uint_le(expected.piece.share, FGV_SHARE_ALL);
}
END_TEST

static TCase *cases(void)
{
	TCase *tests = tcase_create("forecast");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, one_stream_adds_up);
	tcase_add_test(tests, small_ones_run_side_by_side);
	tcase_add_test(tests, large_ones_add_up);
	tcase_add_test(tests, room_is_bounded);
	tcase_add_test(tests, copies_run_beside_kernels);
	tcase_add_test(tests, events_order_streams);
	tcase_add_test(tests, legacy_stream_orders_the_blocking_ones);
	tcase_add_test(tests, what_is_done_is_not_ahead);
	tcase_add_test(tests, serial_gpu_adds_all_up);
	tcase_add_test(tests, unknown_kind_goes_alone);
	tcase_add_test(tests, small_kernels_fit_beside_a_long_one);
	tcase_add_test(tests, parts_take_as_long_as_they_are_large);
	tcase_add_test(tests, full_grid_does_not_fit_beside_another);
	tcase_add_test(tests, copy_fits_beside_a_kernel);
	tcase_add_test(tests, copy_on_the_device_is_computing);
	tcase_add_test(tests, nothing_fits_beside_on_a_serial_gpu);
	tcase_add_test(tests, graph_takes_its_longest_way_or_all_of_the_gpu);
	tcase_add_test(tests, graph_fits_where_it_is_known_to);
	tcase_add_test(tests, each_shape_has_its_share);
	tcase_add_test(tests, hostile_sizes);
	return tests;
}

int main(void)
{
	Suite *suite = suite_create("forecast");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, cases());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
