/*
 * The gate: a vGPU process gets at its GPU with the grant only, asks for it, measures what it
 * uses, and gives it back; the test is the daemon. And the guesses of what work costs.
 */
#include <check.h>
#include <cuda.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/vgpu/cost.h"
#include "backend/vgpu/held.h"
#include "common/util.h"
#include "shmring/park.h"
#include "tests/unit/backend/vgpu/vgpu_guest.h"

#define BYTES	    (8u << 20)
#define PATIENCE_MS 60000

static struct vgpu vgpu;
static uint64_t memory;

/* The grant is not with the process, and 8 MiB of the GPU's memory are. */
static void setup(void)
{
	struct fgv_mem_alloc_request request = {.size = BYTES};
	struct fgv_mem_alloc_reply reply = {0};

	vgpu_start(&vgpu);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_ALLOC, &request, sizeof(request), &reply),
			  CUDA_SUCCESS);
	memory = reply.address;
	vgpu_take_grant(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

static void fill(uint32_t lane, uint32_t value)
{
	struct fgv_fill_request request = {
		.address = memory, .count = BYTES / 4, .value = value, .width = 4};

	ck_assert(vgpu_post(&vgpu, lane, FGV_OP_FILL, &request, sizeof(request)));
}

static uint32_t device_sync(uint32_t lane)
{
	return vgpu_call(&vgpu, lane, FGV_OP_DEVICE_SYNC, NULL, 0, NULL);
}

static uint64_t used_ns(void)
{
	return __atomic_load_n(&vgpu.grant->used_ns, __ATOMIC_RELAXED);
}

START_TEST(asks_for_the_grant)
{
	ck_assert_uint_eq(vgpu.grant->wants, 0);
	fill(0, 1);
	vgpu_await_wants(&vgpu);
	poll(NULL, 0, 50);
	ck_assert_uint_eq(used_ns(), 0);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	ck_assert_uint_gt(used_ns(), 0);
	ck_assert_uint_eq(vgpu.grant->wants, 0);
}
END_TEST

START_TEST(does_without_for_what_is_no_work)
{
	struct fgv_mem_info_reply reply;

	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu.grant->wants, 0);
}
END_TEST

/* Alone and idle, it goes to sleep with a grant that can be taken without waking it. */
START_TEST(lends_the_grant_while_idle)
{
	uint64_t word;

	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	fill(0, 1);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	vgpu_await_grant(&vgpu, FGV_GRANT_IDLE);
	fill(0, 2);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu.grant->wants, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_IDLE);
	word = fgv_grant_load(vgpu.grant);
	ck_assert(fgv_grant_move(vgpu.grant, word, FGV_GRANT_NONE));
	fill(0, 3);
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
}
END_TEST

START_TEST(gives_back_when_told_to)
{
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	for (uint32_t i = 0; i < 40; i++)
		fill(0, i);
	vgpu_grant(&vgpu, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
}
END_TEST

/*
 * Gives slices of a millisecond until no more are wanted: how many. All but the last are used up,
 * or come back unused: a wish that only lingers may have been withdrawn before the slice is given.
 * The daemon, too, may be that late.
 */
static unsigned use_slices(void)
{
	const uint64_t limit_ns = 1000000;
	unsigned slices = 0;
	uint64_t before_ns, slice_ns;
	bool wants;

	vgpu_await_wants(&vgpu);
	do {
		before_ns = used_ns();
		vgpu_grant(&vgpu, limit_ns);
		vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
		slice_ns = used_ns() - before_ns;
		slices += slice_ns > 0;
		wants = __atomic_load_n(&vgpu.grant->wants, __ATOMIC_ACQUIRE);
		ck_assert(slice_ns >= limit_ns || slice_ns == 0 || !wants);
	} while (wants);
	return slices;
}

/* Work for many slices: each is used up, but for the last, and what follows is asked for. */
START_TEST(gives_back_after_its_slice)
{
	for (uint32_t i = 0; i < 60; i++)
		fill(0, i);
	ck_assert_uint_gt(use_slices(), 2);
	ck_assert_uint_gt(vgpu.grant->stalls, 0);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
}
END_TEST

/* A graph of @count fills, one behind the other. */
static uint32_t build_fills(uint32_t count)
{
	struct {
		struct fgv_graph_build_request head;
		struct {
			struct fgv_graph_node head;
			uint32_t before[2];
			struct fgv_fill_request fill;
		} nodes[16];
	} message = {.head.nodes = count};
	struct fgv_graph_build_reply reply = {0};
	uint8_t *text = (uint8_t *)message.nodes;

	for (uint32_t i = 0; i < count; i++) {
		struct fgv_graph_node head = {.number = i,
					      .op = FGV_OP_FILL,
					      .message_len = sizeof(struct fgv_fill_request),
					      .before_count = i > 0};
		struct fgv_fill_request request = {
			.address = memory, .count = BYTES / 4, .value = i, .width = 4};
		uint32_t before[2] = {i - 1, 0};

		memcpy(text, &head, sizeof(head));
		text += sizeof(head);
		memcpy(text, before, i > 0 ? sizeof(before) : 0);
		text += i > 0 ? sizeof(before) : 0;
		memcpy(text, &request, sizeof(request));
		text += sizeof(request);
	}
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_GRAPH_BUILD, &message,
				    (uint32_t)(text - (uint8_t *)&message), &reply),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(reply.refused, CUDA_SUCCESS);
	return reply.graph;
}

/*
 * A graph is built without the grant. Its launches wait for it, as one piece of work each, and all
 * that they take is paid for, also where one is longer than a slice.
 */
START_TEST(graphs_wait_for_their_slices)
{
	struct fgv_graph_launch_request launch = {.graph = build_fills(16)};
	uint64_t done = vgpu.grant->progress;

	ck_assert_uint_eq(vgpu.grant->wants, 0);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert(vgpu_post(&vgpu, 0, FGV_OP_GRAPH_LAUNCH, &launch, sizeof(launch)));
	ck_assert_uint_gt(use_slices(), 2);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu.grant->progress - done, 6);
}
END_TEST

START_TEST(gives_back_without_work)
{
	vgpu_grant(&vgpu, VGPU_SLICE * 1000);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	ck_assert_uint_eq(vgpu.grant->wants, 0);
	/* For as long as it kept the GPU, which somebody else might have had. */
	ck_assert_uint_ge(used_ns(), VGPU_IDLE);
	fill(0, 1);
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, VGPU_SLICE * 1000);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	ck_assert_uint_gt(used_ns(), 0);
	ck_assert_uint_eq(vgpu.grant->wants, 0);
}
END_TEST

/* No more and no fewer than @count since the bell was cleared. */
static void await_rings(uint64_t count)
{
	uint64_t rings = 0, more;
	int waited_ms = 0;

	while (rings < count) {
		ck_assert_int_lt(waited_ms++, PATIENCE_MS);
		if (read(vgpu.sched_bell_fd, &more, sizeof(more)) == sizeof(more))
			rings += more;
		else
			poll(NULL, 0, 1);
	}
	ck_assert_uint_eq(rings, count);
}

/*
 * A program that has just got its reply when the slice ends has nothing more to do, but asks on.
 * If nothing follows, the wish is withdrawn: the daemon is rung for the first wish, for the end of
 * the slice, and for that.
 */
START_TEST(lingers_behind_its_slice)
{
	struct fgv_mem_info_reply reply;

	/* A reply comes behind all rings so far. */
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &reply), CUDA_SUCCESS);
	fgv_doorbell_clear(vgpu.sched_bell_fd);
	fill(0, 1);
	while (!__atomic_load_n(&vgpu.grant->wants, __ATOMIC_ACQUIRE))
		poll(NULL, 0, 1);
	vgpu_grant(&vgpu, 1);
	await_rings(3);
	ck_assert_int_eq(fgv_grant_state(fgv_grant_load(vgpu.grant)), FGV_GRANT_NONE);
	ck_assert_uint_eq(vgpu.grant->wants, 0);
}
END_TEST

/* A policy that lets a holder keep the grant lets it keep it, work or no work. */
START_TEST(keeps_the_grant_where_it_may)
{
	vgpu.grant->flags = FGV_GRANT_KEEP;
	vgpu_grant(&vgpu, VGPU_SLICE * 1000);
	fill(0, 1);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	poll(NULL, 0, 20);
	ck_assert_uint_eq(fgv_grant_state(fgv_grant_load(vgpu.grant)), FGV_GRANT_BUSY);
	vgpu_grant(&vgpu, 0);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
}
END_TEST

/* A slice of time by the clock that is over: nothing more goes to the GPU. */
START_TEST(gives_back_by_the_clock)
{
	vgpu.grant->flags = FGV_GRANT_UNDRAINED;
	fill(0, 1);
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, 1);
	vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
}
END_TEST

/* A synchronization that waits for another lane's work, which waits for the grant. */
START_TEST(synchronizes_over_slices)
{
	struct fgv_event_create_reply event;
	struct fgv_event_create_request create = {0};
	struct fgv_event_record_request record = {0};
	struct fgv_event_sync_request sync;

	ck_assert_uint_eq(vgpu_call(&vgpu, 1, FGV_OP_EVENT_CREATE, &create, sizeof(create), &event),
			  CUDA_SUCCESS);
	for (uint32_t i = 0; i < 20; i++)
		fill(0, i);
	record.event = event.event;
	sync.event = event.event;
	ck_assert(vgpu_post(&vgpu, 1, FGV_OP_EVENT_RECORD, &record, sizeof(record)));
	fgv_window_lane_head(&vgpu.window, 1)->guest_thread = 4711;
	ck_assert(vgpu_post(&vgpu, 1, FGV_OP_EVENT_SYNC, &sync, sizeof(sync)));
	vgpu_grant_until_reply(&vgpu, 100000, 1);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, NULL), CUDA_SUCCESS);
	ck_assert_uint_ge(vgpu.grant->sync_calls, 1);
	ck_assert_uint_eq(vgpu.grant->thread, 4711);
}
END_TEST

static uint64_t requests(void)
{
	return __atomic_load_n(&vgpu.accounts->sessions[2].requests, __ATOMIC_RELAXED);
}

/* False: this came too late, and the session has given it back. @given_ns: when it was given. */
static bool take_amid_work(uint64_t *given_ns)
{
	uint64_t word, all = requests() + 60;

	*given_ns = fgv_now_ns();
	vgpu_grant(&vgpu, VGPU_SLICE * 1000);
	for (uint32_t i = 0; i < 60; i++)
		fill(0, i);
	do
		word = fgv_grant_load(vgpu.grant);
	while (requests() < all && fgv_grant_state(word) == FGV_GRANT_BUSY);
	return fgv_grant_state(word) == FGV_GRANT_BUSY &&
	       fgv_grant_move(vgpu.grant, word, FGV_GRANT_NONE);
}

/* The daemon takes the grant in the middle of work: the session asks on, until it is done. */
START_TEST(asks_for_a_grant_that_was_taken)
{
	uint64_t reported_ns, given_ns;

	vgpu.grant->is_holdable = 1;
	while (!take_amid_work(&given_ns))
		vgpu_await_grant(&vgpu, FGV_GRANT_NONE);
	reported_ns = used_ns();
	vgpu_await_wants(&vgpu);
	/* What this grant took the daemon knows itself, but for what was said before it was missed.
	 */
	ck_assert_uint_le(used_ns(), reported_ns + fgv_now_ns() - given_ns);
	reported_ns = used_ns();
	poll(NULL, 0, 20);
	ck_assert_uint_eq(used_ns(), reported_ns);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	ck_assert_uint_gt(vgpu.grant->progress, 0);
}
END_TEST

static void set_held(uint32_t is_held)
{
	__atomic_store_n(&vgpu.grant->is_held, is_held, __ATOMIC_SEQ_CST);
	if (fgv_park_is_announced(&vgpu.grant->parked))
		fgv_doorbell_ring(vgpu.grant_bell_fd);
}

/* One that is held queues what computes, without the grant; not what copies. */
START_TEST(queues_while_it_is_held)
{
	struct fgv_event_create_request create = {0};
	struct fgv_event_create_reply event;
	struct fgv_event_record_request record = {0};
	struct fgv_event_query_request query;

	vgpu.grant->is_holdable = 1;
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_EVENT_CREATE, &create, sizeof(create), &event),
			  CUDA_SUCCESS);
	record.event = query.event = event.event;
	ck_assert(vgpu_post(&vgpu, 0, FGV_OP_EVENT_RECORD, &record, sizeof(record)));
	vgpu_await_wants(&vgpu);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_EVENT_QUERY, &query, sizeof(query), NULL),
			  CUDA_ERROR_NOT_READY);
	set_held(1);
	while (vgpu_call(&vgpu, 0, FGV_OP_EVENT_QUERY, &query, sizeof(query), NULL) ==
	       CUDA_ERROR_NOT_READY)
		poll(NULL, 0, 1);
	for (int waited_ms = 0; __atomic_load_n(&vgpu.grant->wants, __ATOMIC_ACQUIRE);) {
		ck_assert_int_lt(waited_ms++, PATIENCE_MS);
		poll(NULL, 0, 1);
	}
	fill(0, 1);
	vgpu_await_wants(&vgpu);
	ck_assert_uint_eq(used_ns(), 0);
	set_held(0);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
}
END_TEST

/*
 * A call that is no work may wait in the driver: if it is held, the daemon hears of the call and of
 * its end.
 */
START_TEST(tells_of_calls_while_it_is_held)
{
	struct fgv_mem_info_reply reply;

	vgpu.grant->is_holdable = 1;
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &reply), CUDA_SUCCESS);
	/* The daemon sees by itself if it was in a call before. */
	for (int waited_ms = 0; __atomic_load_n(&vgpu.grant->in_call, __ATOMIC_SEQ_CST);) {
		ck_assert_int_lt(waited_ms++, PATIENCE_MS);
		poll(NULL, 0, 1);
	}
	fgv_doorbell_clear(vgpu.sched_bell_fd);
	set_held(1);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &reply), CUDA_SUCCESS);
	await_rings(2);
	ck_assert_uint_eq(vgpu.grant->in_call, 0);
	ck_assert_uint_eq(vgpu.grant->wants, 0);
}
END_TEST

static uint32_t call(uint32_t lane, uint16_t op, const void *message, uint32_t len, void *reply)
{
	return vgpu_call(&vgpu, lane, op, message, len, reply);
}

static uint32_t stream_query(uint32_t lane, uint32_t stream)
{
	struct fgv_stream_query_request request = {.stream = stream};

	return call(lane, FGV_OP_STREAM_QUERY, &request, sizeof(request), NULL);
}

static uint32_t event_query(uint32_t lane, uint32_t event)
{
	struct fgv_event_query_request request = {.event = event};

	return call(lane, FGV_OP_EVENT_QUERY, &request, sizeof(request), NULL);
}

/* Work waits for the grant; what does not depend on it, from any lane, does not. */
START_TEST(holds_up_nothing_else)
{
	struct fgv_mem_info_reply info;
	struct fgv_stream_create_request stream_create = {0};
	struct fgv_stream_create_reply stream;
	struct fgv_event_create_request event_create = {0};
	struct fgv_event_create_reply event, other;
	struct fgv_event_record_request record = {0};

	fill(0, 1);
	vgpu_await_wants(&vgpu);
	for (uint32_t lane = 0; lane < 2; lane++) {
		ck_assert_uint_eq(call(lane, FGV_OP_MEM_INFO, NULL, 0, &info), CUDA_SUCCESS);
		ck_assert_uint_eq(call(lane, FGV_OP_STREAM_CREATE, &stream_create,
				       sizeof(stream_create), &stream),
				  CUDA_SUCCESS);
		ck_assert_uint_eq(stream_query(lane, stream.stream), CUDA_SUCCESS);
		ck_assert_uint_eq(stream_query(lane, 0), CUDA_ERROR_NOT_READY);
	}
	ck_assert_uint_eq(call(0, FGV_OP_EVENT_CREATE, &event_create, sizeof(event_create), &event),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(call(0, FGV_OP_EVENT_CREATE, &event_create, sizeof(event_create), &other),
			  CUDA_SUCCESS);
	record.event = event.event;
	ck_assert(vgpu_post(&vgpu, 1, FGV_OP_EVENT_RECORD, &record, sizeof(record)));
	ck_assert_uint_eq(event_query(0, event.event), CUDA_ERROR_NOT_READY);
	ck_assert_uint_eq(event_query(0, other.event), CUDA_SUCCESS);
	ck_assert_uint_eq(used_ns(), 0);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	ck_assert_uint_eq(event_query(0, event.event), CUDA_SUCCESS);
	ck_assert_uint_eq(stream_query(1, 0), CUDA_SUCCESS);
}
END_TEST

/* What the program has freed behind held work is there when it allocates. */
START_TEST(frees_before_it_allocates)
{
	struct fgv_mem_free_request free_request = {.address = memory};
	struct fgv_mem_alloc_request alloc = {.size = VGPU_QUOTA};
	struct fgv_mem_alloc_reply reply = {0};

	fill(0, 1);
	ck_assert(vgpu_post(&vgpu, 0, FGV_OP_MEM_FREE, &free_request, sizeof(free_request)));
	ck_assert(vgpu_post(&vgpu, 1, FGV_OP_MEM_ALLOC, &alloc, sizeof(alloc)));
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(vgpu_wait(&vgpu, 1, &reply), CUDA_SUCCESS);
	ck_assert_uint_ne(reply.address, 0);
}
END_TEST

/* More than can be held stays in the lanes, and all of it runs in the end, in order. */
START_TEST(holds_a_bounded_number)
{
	struct fgv_fill_request request = {.address = memory, .count = 1, .width = 4};
	struct fgv_copy_out_request out = {
		.address = memory, .data_off = vgpu.window.arena_off, .data_len = 4};
	const uint32_t many = FGV_HELD_MAX + FGV_REQUEST_SLOTS - 8;

	for (request.value = 1; request.value <= many; request.value++)
		ck_assert(vgpu_post(&vgpu, 0, FGV_OP_FILL, &request, sizeof(request)));
	vgpu_await_wants(&vgpu);
	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(call(0, FGV_OP_COPY_OUT, &out, sizeof(out), NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(*(uint32_t *)vgpu_arena(&vgpu, 0), many);
}
END_TEST

static void fill_with(uint32_t count, uint32_t value)
{
	struct fgv_fill_request request = {
		.address = memory, .count = count, .value = value, .width = 4};

	ck_assert(vgpu_post(&vgpu, 0, FGV_OP_FILL, &request, sizeof(request)));
}

/*
 * Short work that comes behind long work only is guessed well after it came once: it does not make
 * the GPU run dry each time, as work of which nothing is known does.
 */
START_TEST(learns_what_comes_behind_other_work)
{
	const uint32_t rounds = 40;

	vgpu_grant(&vgpu, FGV_GRANT_NO_LIMIT);
	fill_with(BYTES / 1024, 0);
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	for (uint32_t i = 0; i < rounds; i++) {
		fill_with(BYTES / 1024, i);
		fill_with(BYTES / 65536, i);
	}
	ck_assert_uint_eq(device_sync(0), CUDA_SUCCESS);
	ck_assert_uint_lt(vgpu.grant->stalls, rounds / 2);
}
END_TEST

START_TEST(learns)
{
	static struct fgv_costs costs;
	uint16_t small = fgv_cost_place(1, 1000), large = fgv_cost_place(1, 1 << 20);
	uint16_t both[] = {small, large};

	ck_assert_uint_ne(small, large);
	ck_assert_uint_eq(small, fgv_cost_place(1, 1023));
	fgv_cost_learn_first(&costs, small, 0, 20000);
	ck_assert_uint_eq(costs.ns[small], 20000);
	/* Behind five others. */
	fgv_cost_learn_first(&costs, large, 100000, 300000);
	ck_assert_uint_eq(costs.ns[large], 200000);
	/* Ten of each took twice as long as was thought. */
	fgv_cost_learn(&costs, both, 2, 2200000, 4400000);
	ck_assert_uint_eq(costs.ns[small], 30000);
	ck_assert_uint_eq(costs.ns[large], 300000);
	/* It is not led astray for ever. */
	fgv_cost_learn(&costs, &small, 1, 1, UINT64_MAX);
	for (int i = 0; i < 40; i++)
		fgv_cost_learn(&costs, &small, 1, costs.ns[small], 25000);
	ck_assert_uint_ge(costs.ns[small], 24990);
	ck_assert_uint_le(costs.ns[small], 25010);
	fgv_cost_learn(&costs, &small, 1, costs.ns[small], 0);
	for (int i = 0; i < 40; i++)
		fgv_cost_learn(&costs, &small, 1, costs.ns[small], 0);
	ck_assert_uint_ge(costs.ns[small], 1000);
	/* Others that took less than was thought leave nothing for the new one. */
	fgv_cost_learn_first(&costs, large, 100000, 50000);
	ck_assert_uint_eq(costs.ns[large], 1000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gate");
	TCase *gate = tcase_create("gate"), *cost = tcase_create("cost");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(gate, 120);
	tcase_add_checked_fixture(gate, setup, teardown);
	tcase_add_test(gate, asks_for_the_grant);
	tcase_add_test(gate, does_without_for_what_is_no_work);
	tcase_add_test(gate, lends_the_grant_while_idle);
	tcase_add_test(gate, gives_back_when_told_to);
	tcase_add_test(gate, gives_back_after_its_slice);
	tcase_add_test(gate, graphs_wait_for_their_slices);
	tcase_add_test(gate, gives_back_without_work);
	tcase_add_test(gate, lingers_behind_its_slice);
	tcase_add_test(gate, keeps_the_grant_where_it_may);
	tcase_add_test(gate, gives_back_by_the_clock);
	tcase_add_test(gate, synchronizes_over_slices);
	tcase_add_test(gate, asks_for_a_grant_that_was_taken);
	tcase_add_test(gate, queues_while_it_is_held);
	tcase_add_test(gate, tells_of_calls_while_it_is_held);
	tcase_add_test(gate, holds_up_nothing_else);
	tcase_add_test(gate, frees_before_it_allocates);
	tcase_add_test(gate, holds_a_bounded_number);
	tcase_add_test(gate, learns_what_comes_behind_other_work);
	tcase_add_test(cost, learns);
	suite_add_tcase(suite, gate);
	suite_add_tcase(suite, cost);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
