/*
 * Has the dispatcher of a vGPU take requests, in one thread with the guest that posts them, on a
 * GPU that does nothing and is done at once. So what is executed is the same from run to run, and
 * all of it but the GPU's few returns is FairGV's: bench instructions counts it.
 *
 * usage: host_requests OPERATION COUNT [ROUNDS]     one line of key=value words, with what COUNT
 * operations have cost the dispatcher in the best of the rounds (counter.h); status 2: what it
 * knows
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/vgpu/dispatcher.h"
#include "backend/vgpu/session.h"
#include "bench/counter.h"
#include "common/util.h"
#include "frontend/client/lane.h"

#define WINDOW_LEN (16ull << 20)
#define QUOTA	   (1ull << 40)
#define ADDRESS	   0x10000000000ull

/* So long that what the clock says decides nothing. */
#define SLICE_NS 60000000000ull

/* Posts that one turn finds. */
#define BATCH 32

/* Launches of a program that repeats itself; the counts that bench instructions asks for are
 * multiples. */
#define LOOP 64

/* Of the function that has parameters, each of 8 bytes. */
#define PARAMS 4

/* Kernels of a graph; its text fits into one message. */
#define NODES 100

static struct fgv_session session;
static struct fgv_client client;
static struct fgv_lane *lane;
static uint32_t plain, with_params; /* functions */
static struct counter counter;
static bool is_busy;		 /* the GPU has work in front of it */
static unsigned long long spent; /* by the dispatcher, in the counter's unit */

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "host_requests: %s fails\n", what);
	exit(1);
}

/* --- The GPU --------------------------------------------------------------- */

/* The turn that has come here is the last of its call of fgv_dispatcher_run(). */
static CUresult seen(void)
{
	session.is_over = 1;
	return CUDA_SUCCESS;
}

static CUresult mem_alloc(struct fgv_gpu *gpu, uint64_t bytes, uint64_t *address)
{
	(void)gpu, (void)bytes;
	*address = ADDRESS;
	return seen();
}

static CUresult mem_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes, uint64_t charged)
{
	(void)gpu, (void)address, (void)bytes, (void)charged;
	return seen();
}

static CUresult copy_in(struct fgv_gpu *gpu, uint64_t dst, const void *src, size_t bytes,
			struct fgv_gpu_stream *stream)
{
	(void)gpu, (void)dst, (void)src, (void)bytes, (void)stream;
	return seen();
}

static CUresult copy_out(struct fgv_gpu *gpu, void *dst, uint64_t src, size_t bytes,
			 struct fgv_gpu_stream *stream)
{
	(void)gpu, (void)dst, (void)src, (void)bytes, (void)stream;
	return seen();
}

static CUresult launch(struct fgv_gpu *gpu, struct fgv_gpu_function *kernel, const uint32_t grid[3],
		       const uint32_t block[3], uint32_t shared_bytes,
		       struct fgv_gpu_stream *stream, void **params)
{
	(void)gpu, (void)kernel, (void)grid, (void)block, (void)shared_bytes, (void)stream;
	(void)params;
	return seen();
}

/* Graphs are made and launched as if at once. */
static CUresult graph_create(struct fgv_gpu *of, const struct fgv_gpu_node *nodes, uint32_t count,
			     struct fgv_gpu_graph **graph)
{
	(void)nodes, (void)count;
	*graph = (struct fgv_gpu_graph *)of;
	return CUDA_SUCCESS;
}

static CUresult graph_update(struct fgv_gpu *of, struct fgv_gpu_graph *graph, uint32_t number)
{
	(void)of, (void)graph, (void)number;
	return CUDA_SUCCESS;
}

static CUresult graph_launch(struct fgv_gpu *of, struct fgv_gpu_graph *graph,
			     struct fgv_gpu_stream *stream)
{
	(void)of, (void)graph, (void)stream;
	return seen();
}

static CUresult graph_destroy(struct fgv_gpu *of, struct fgv_gpu_graph *graph)
{
	(void)of, (void)graph;
	return CUDA_SUCCESS;
}

static CUresult fence(struct fgv_gpu *gpu, struct fgv_gpu_stream *stream,
		      struct fgv_gpu_fence **made)
{
	(void)stream;
	*made = (struct fgv_gpu_fence *)gpu;
	return seen();
}

/* One that can do things side by side, as every real one. */
static CUresult info(struct fgv_gpu *gpu, struct fgv_device_info *about)
{
	(void)gpu;
	memset(about, 0, sizeof(*about));
	about->attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1;
	return CUDA_SUCCESS;
}

static CUresult fence_all(struct fgv_gpu *gpu, struct fgv_gpu_fence **made)
{
	return fence(gpu, NULL, made);
}

static CUresult fence_query(struct fgv_gpu *gpu, struct fgv_gpu_fence *made)
{
	(void)gpu, (void)made;
	return is_busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static void fence_put(struct fgv_gpu *gpu, struct fgv_gpu_fence *made)
{
	(void)gpu, (void)made;
}

static bool print(struct fgv_gpu *gpu, const size_t room[2])
{
	(void)gpu, (void)room;
	return false;
}

static void costs(struct fgv_gpu *of, struct fgv_gpu_costs *costs)
{
	(void)of;
	*costs = (struct fgv_gpu_costs){.granule = 4096};
}

static const struct fgv_gpu_ops ops = {
	.name = "nothing",
	.info = info,
	.costs = costs,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.launch = launch,
	.graph_create = graph_create,
	.graph_update = graph_update,
	.graph_launch = graph_launch,
	.graph_destroy = graph_destroy,
	.fence = fence,
	.fence_all = fence_all,
	.fence_computing = fence_all,
	.fence_query = fence_query,
	.fence_put = fence_put,
	.print = print,
};

static struct fgv_gpu gpu = {.ops = &ops};

/* --- Both sides ------------------------------------------------------------ */

static int shared_memory(size_t len)
{
	int fd = memfd_create("host_requests", MFD_CLOEXEC);

	check(fd >= 0 && !ftruncate(fd, (off_t)len), "memory to share");
	return fd;
}

static void make_window(void)
{
	int fd;

	check(!fgv_window_layout(&session.window, WINDOW_LEN, 1), "the window's layout");
	fd = fgv_window_create(&session.window);
	check(fd >= 0, "the window");
	client.window = session.window;
	check(!fgv_window_map(&session.window, fd) && !fgv_window_map(&client.window, fd),
	      "mapping the window");
}

/* Of all engines. */
static void make_grants(void)
{
	session.fds[FGV_SETUP_GRANT] = shared_memory(sizeof(struct fgv_grant));
	session.fds[FGV_SETUP_GRANT_IN] = shared_memory(sizeof(struct fgv_grant));
	session.fds[FGV_SETUP_GRANT_OUT] = shared_memory(sizeof(struct fgv_grant));
	session.setup.slice_ns = SLICE_NS;
	session.setup.engines = 1;
	session.gpu = &gpu;
	check(!fgv_engines_init(&session), "the gates");
	for (unsigned i = 0; i < FGV_ENGINES; i++) {
		struct fgv_gate *gate = fgv_engines_gate(&session, i);

		gate->grant->limit_ns = FGV_GRANT_NO_LIMIT;
		check(fgv_grant_move(gate->grant, gate->word, FGV_GRANT_BUSY), "a grant");
	}
}

static void make_session(void)
{
	static const struct fgv_allowance allowance = {.memory_bytes = QUOTA};
	static struct fgv_accounts accounts;
	static struct fgv_console console = {.lock = PTHREAD_MUTEX_INITIALIZER};

	session.console = &console;
	session.allowance = &allowance;
	session.accounts = &accounts;
	session.account = &accounts.sessions[0];
	check(!fgv_session_init(&session), "the session");
	check(!fgv_lanes_attach(session.lanes, 0, -1), "the lane");
}

static uint32_t make_function(uint32_t params)
{
	struct fgv_object *object = fgv_handles_add(&session.handles, FGV_KIND_FUNCTION);
	uint32_t *sizes = calloc(PARAMS, sizeof(*sizes));

	check(object && sizes, "a function");
	for (uint32_t i = 0; i < params; i++)
		sizes[i] = 8;
	object->function.param_sizes = sizes;
	object->function.param_count = params;
	object->function.args_len = params * 8;
	object->function.module = fgv_handles_add(&session.handles, FGV_KIND_MODULE);
	check(object->function.module, "a module");
	return object->handle;
}

static void make_both(void)
{
	make_window();
	make_grants();
	make_session();
	plain = make_function(0);
	with_params = make_function(PARAMS);
	client.ticket = 1;
	lane = fgv_lane_create(&client, 0, false);
	check(lane, "the guest's lane");
}

/* --- Operations ------------------------------------------------------------ */

/* One turn, which finds all that was posted. */
static void take(void)
{
	unsigned long long before = counter_read(&counter);

	session.is_over = 0;
	check(!fgv_dispatcher_run(&session), "the dispatcher");
	spent += counter_since(&counter, before);
}

static void post_launch_of(uint32_t function, uint32_t params, uint32_t blocks, uint32_t value)
{
	static const uint32_t one[3] = {1, 1, 1};
	const uint32_t grid[3] = {blocks, 1, 1};
	uint64_t *args = fgv_begin_launch(lane, function, grid, one, 0, 0, params, params * 8);

	check(args, "a launch");
	for (uint32_t i = 0; i < params; i++)
		args[i] = value;
	fgv_lane_commit(lane);
}

static void post_launch(uint32_t function, uint32_t params)
{
	post_launch_of(function, params, 1, 0);
}

static void launch_in_batches(uint32_t function, uint32_t params, unsigned count)
{
	for (unsigned i = 1; i <= count; i++) {
		post_launch(function, params);
		if (i % BATCH == 0 || i == count)
			take();
	}
}

static void do_launches(unsigned count)
{
	launch_in_batches(plain, 0, count);
}

static void do_param_launches(unsigned count)
{
	launch_in_batches(with_params, PARAMS, count);
}

/* In a loop, with new arguments or the same each time. */
static void launch_again(bool is_new, unsigned count)
{
	static uint32_t step;

	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < LOOP; k++)
			post_launch_of(with_params, PARAMS, k % 7 + 1, is_new ? ++step : k);
		take();
	}
}

static void launch_sequences(bool is_new, unsigned count)
{
	if (!is_busy) {
		session.batch.is_on = true;
		/* What they cost, and what they are, is learned. */
		launch_again(is_new, 4);
		is_busy = true;
		launch_again(is_new, 40);
		spent = 0;
	}
	launch_again(is_new, count / LOOP);
}

static void do_same_sequences(unsigned count)
{
	launch_sequences(false, count);
}

static void do_new_sequences(unsigned count)
{
	launch_sequences(true, count);
}

static void synchronize(void)
{
	uint32_t call = fgv_send_device_sync(lane);

	take();
	check(!fgv_lane_wait(lane, call, NULL, 0), "synchronizing");
}

static void do_launch_syncs(unsigned count)
{
	while (count--) {
		post_launch(plain, 0);
		synchronize();
	}
}

static void do_copies_in(unsigned count)
{
	for (unsigned i = 1; i <= count; i++) {
		check(!fgv_post_copy_in(lane, ADDRESS, 0, &i, sizeof(i)), "a copy in");
		if (i % BATCH == 0 || i == count)
			take();
	}
}

static void do_copies_out(unsigned count)
{
	while (count--) {
		uint32_t call = fgv_send_copy_out(lane, ADDRESS, client.window.arena_off, 4, 0);

		take();
		check(!fgv_lane_wait(lane, call, NULL, 0), "a copy out");
	}
}

static void do_allocations(unsigned count)
{
	struct fgv_mem_alloc_reply reply;

	while (count--) {
		uint32_t call = fgv_send_mem_alloc(lane, 1 << 20);

		take();
		check(!fgv_lane_wait(lane, call, &reply, sizeof(reply)), "an allocation");
		check(!fgv_post_mem_free(lane, reply.address), "freeing");
		take();
	}
}

/* So many bytes of the changes of nodes from @first on. */
static uint32_t write_changes(uint8_t *text, uint32_t first)
{
	struct {
		struct fgv_graph_node head;
		struct fgv_launch_request launch;
		uint64_t args[PARAMS];
	} node = {
		.head = {.op = FGV_OP_LAUNCH,
			 .message_len = sizeof(node.launch) + sizeof(node.args)},
		.launch = {.function = with_params,
			   .grid = {1, 1, 1},
			   .block = {1, 1, 1},
			   .param_count = PARAMS},
	};
	uint32_t len = 0;

	for (uint32_t i = first; i < NODES; i++, len += sizeof(node)) {
		node.head.number = i;
		memcpy(text + len, &node, sizeof(node));
	}
	return len;
}

/* A chain of kernels. */
static uint32_t write_text(uint8_t *text)
{
	struct {
		struct fgv_graph_node head;
		uint32_t before[2]; /* one, and what pads it */
		struct fgv_launch_request launch;
		uint64_t args[PARAMS];
	} node = {
		.head = {.op = FGV_OP_LAUNCH,
			 .message_len = sizeof(node.launch) + sizeof(node.args),
			 .before_count = 1},
		.launch = {.function = with_params,
			   .grid = {1, 1, 1},
			   .block = {1, 1, 1},
			   .param_count = PARAMS},
	};
	struct fgv_graph_node first = {.op = FGV_GRAPH_NO_OP};
	uint32_t len = sizeof(first);

	memcpy(text, &first, sizeof(first));
	for (uint32_t i = 1; i < NODES; i++, len += sizeof(node)) {
		node.head.number = i;
		node.before[0] = i - 1;
		memcpy(text + len, &node, sizeof(node));
	}
	return len;
}

static void do_graphs(unsigned count)
{
	static uint8_t text[FGV_DATA_MAX];
	uint32_t len = write_text(text), call;
	struct fgv_graph_build_reply reply;

	while (count--) {
		check(!fgv_send_graph_build(lane, 0, NODES, 0, text, len, &call), "a graph");
		take();
		check(!fgv_lane_wait(lane, call, &reply, sizeof(reply)) && reply.graph, "a graph");
		check(!fgv_post_graph_destroy(lane, reply.graph), "a graph's end");
		take();
	}
}

static void change(unsigned count, uint32_t first)
{
	static uint8_t text[FGV_DATA_MAX];
	uint32_t len = write_text(text), call;
	struct fgv_graph_build_reply reply;

	check(!fgv_send_graph_build(lane, 0, NODES, 0, text, len, &call), "a graph");
	take();
	check(!fgv_lane_wait(lane, call, &reply, sizeof(reply)) && reply.graph, "a graph");
	len = write_changes(text, first);
	while (count--) {
		check(!fgv_post_graph_update(lane, reply.graph, text, len), "changes");
		check(!fgv_post_graph_launch(lane, reply.graph, 0), "a graph's launch");
		take();
	}
	check(!fgv_post_graph_destroy(lane, reply.graph), "a graph's end");
	take();
}

static void do_changes(unsigned count)
{
	change(count, 1);
}

/* With the launch, as what is posted alone is not waited for. */
static void do_change(unsigned count)
{
	change(count, NODES - 1);
}

static const struct operation {
	const char *name;
	void (*run)(unsigned count);
} operations[] = {
	{"launch", do_launches},
	{"launch_sync", do_launch_syncs},
	{"launch_params", do_param_launches},
	{"launch_same", do_same_sequences},
	{"launch_new", do_new_sequences},
	{"copy_in_4B", do_copies_in},
	{"copy_out_4B", do_copies_out},
	{"malloc_free", do_allocations},
	{"graph_100", do_graphs},
	{"graph_alike_100", do_change},
	{"graph_update_100", do_changes},
};

static unsigned long long least_spent(const struct operation *operation, unsigned count, int rounds)
{
	unsigned long long least = ~0ull;

	while (rounds-- > 0) {
		spent = 0;
		operation->run(count);
		least = spent < least ? spent : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	int count = argc == 3 || argc == 4 ? atoi(argv[2]) : 0;
	int rounds = argc == 4 ? atoi(argv[3]) : 1;

	for (unsigned i = 0; count > 0 && rounds > 0 && i < FGV_ARRAY_LEN(operations); i++) {
		if (strcmp(argv[1], operations[i].name))
			continue;
		make_both();
		counter = counter_open();
		printf("operation=%s count=%d unit=%s spent=%llu\n", argv[1], count, counter.unit,
		       least_spent(&operations[i], (unsigned)count, rounds));
		return 0;
	}
	fprintf(stderr, "usage: host_requests OPERATION COUNT [ROUNDS], of:");
	for (unsigned i = 0; i < FGV_ARRAY_LEN(operations); i++)
		fprintf(stderr, " %s", operations[i].name);
	fprintf(stderr, "\n");
	return 2;
}
