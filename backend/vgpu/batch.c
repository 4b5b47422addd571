/*
 * Batches of launches; see batch.h. A batch is taken apart into chains of 32, 16, 8 and 4, and the
 * rest goes launch by launch, as does all of it where chains have not paid off yet.
 */
#include "backend/vgpu/batch.h"

#include <stdlib.h>
#include <string.h>

#include "backend/vgpu/session.h"
#include "common/log.h"
#include "common/util.h"

#define SMALLEST 4

/* To make a chain costs as much as so many launches: a stream that has had them gets chains. */
#define WORTH 64

/* So many chains that the driver could not follow are taken to be the rule. */
#define FAILURES_MAX 8

struct node_args {
	uint32_t before; /* the node in front of it */
	void *params[FGV_BATCH_PARAMS];
	uint32_t len;
	uint8_t args[FGV_BATCH_ARGS] __attribute__((aligned(16)));
};

struct fgv_batch_chain {
	struct fgv_gpu_graph *graph;
	struct node_args *args; /* of each node */
	struct fgv_gpu_node nodes[];
};

static uint32_t size_of(unsigned size)
{
	return SMALLEST << size;
}

void fgv_batch_init(struct fgv_batch *batch, bool is_on)
{
	batch->is_on = is_on;
	batch->target = 1;
}

/* --- Chains ------------------------------------------------------------------ */

static void free_chain(struct fgv_session *session, struct fgv_batch_chain *chain)
{
	if (chain->graph)
		session->gpu->ops->graph_destroy(session->gpu, chain->graph);
	free(chain->args);
	free(chain);
}

static struct fgv_batch_chain *allocate_chain(uint32_t count)
{
	struct fgv_batch_chain *chain = calloc(1, sizeof(*chain) + count * sizeof(chain->nodes[0]));

	if (!chain)
		return NULL;
	chain->args = calloc(count, sizeof(*chain->args));
	if (!chain->args) {
		free(chain);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		chain->nodes[i].kind = FGV_GPU_NODE_KERNEL;
		chain->nodes[i].kernel.params = chain->args[i].params;
		chain->nodes[i].before_count = i > 0;
		chain->nodes[i].before = &chain->args[i].before;
		chain->args[i].before = i - 1;
	}
	return chain;
}

static bool is_same(const struct fgv_gpu_node *node, const struct node_args *args,
		    const struct fgv_batch_launch *launch)
{
	return node->kernel.function == launch->function &&
	       node->kernel.shared_bytes == launch->shared_bytes &&
	       !memcmp(node->kernel.grid, launch->grid, sizeof(launch->grid)) &&
	       !memcmp(node->kernel.block, launch->block, sizeof(launch->block)) &&
	       args->len == launch->args_len && !memcmp(args->args, launch->args, launch->args_len);
}

static void fill_in(struct fgv_gpu_node *node, struct node_args *args,
		    const struct fgv_batch_launch *launch)
{
	node->kernel.function = launch->function;
	node->kernel.shared_bytes = launch->shared_bytes;
	memcpy(node->kernel.grid, launch->grid, sizeof(launch->grid));
	memcpy(node->kernel.block, launch->block, sizeof(launch->block));
	args->len = launch->args_len;
	memcpy(args->args, launch->args, launch->args_len);
	for (uint32_t i = 0; i < launch->param_count; i++)
		args->params[i] = args->args + launch->offsets[i];
}

/* A chain of these launches, or NULL. */
static struct fgv_batch_chain *make_chain(struct fgv_session *session,
					  const struct fgv_batch_launch *launches, uint32_t count)
{
	struct fgv_batch_chain *chain = allocate_chain(count);

	if (!chain)
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		fill_in(&chain->nodes[i], &chain->args[i], &launches[i]);
	if (session->gpu->ops->graph_create(session->gpu, chain->nodes, count, &chain->graph) ==
	    CUDA_SUCCESS)
		return chain;
	chain->graph = NULL;
	free_chain(session, chain);
	return NULL;
}

static CUresult fill_chain(struct fgv_session *session, struct fgv_batch_chain *chain,
			   const struct fgv_batch_launch *launches, uint32_t count)
{
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
		if (is_same(&chain->nodes[i], &chain->args[i], &launches[i]))
			continue;
		fill_in(&chain->nodes[i], &chain->args[i], &launches[i]);
		status = session->gpu->ops->graph_update(session->gpu, chain->graph, i);
	}
	return status;
}

/* False: the launches are still to be made. */
static bool run_chain(struct fgv_session *session, struct fgv_batch_stream *stream, unsigned size,
		      const struct fgv_batch_launch *launches)
{
	struct fgv_batch_chain **chain = &stream->chains[size][stream->turn[size]];
	uint32_t count = size_of(size);
	CUresult status = CUDA_SUCCESS;

	stream->turn[size] = (uint8_t)((stream->turn[size] + 1) % FGV_BATCH_TURNS);
	if (*chain)
		status = fill_chain(session, *chain, launches, count);
	else
		*chain = make_chain(session, launches, count);
	if (*chain && status == CUDA_SUCCESS)
		status = session->gpu->ops->graph_launch(session->gpu, (*chain)->graph,
							 stream->stream);
	if (*chain && status == CUDA_SUCCESS) {
		fgv_account_add(&session->account->batched, count);
		return true;
	}
	if (*chain)
		free_chain(session, *chain);
	*chain = NULL;
	if (++session->batch.failures == FAILURES_MAX) {
		session->batch.is_on = false;
		fgv_debug(FGV_SESSION_FORMAT ": its launches go one by one: error %d",
			  FGV_SESSION_ARGS(session), (int)status);
	}
	return false;
}

/* --- Streams ----------------------------------------------------------------- */

static void forget_chains(struct fgv_session *session, struct fgv_batch_stream *stream)
{
	for (unsigned i = 0; i < FGV_BATCH_SIZES * FGV_BATCH_TURNS; i++) {
		struct fgv_batch_chain **chain =
			&stream->chains[i / FGV_BATCH_TURNS][i % FGV_BATCH_TURNS];

		if (*chain)
			free_chain(session, *chain);
		*chain = NULL;
	}
}

static struct fgv_batch_stream *find_stream(struct fgv_batch *batch,
					    const struct fgv_gpu_stream *stream)
{
	for (unsigned i = 0; i < FGV_BATCH_STREAMS; i++) {
		if (batch->streams[i].is_used && batch->streams[i].stream == stream)
			return &batch->streams[i];
	}
	return NULL;
}

/* What is known of the stream; another one is forgotten for it, if need be. */
static struct fgv_batch_stream *stream_of(struct fgv_session *session,
					  struct fgv_gpu_stream *stream)
{
	struct fgv_batch *batch = &session->batch;
	struct fgv_batch_stream *found = find_stream(batch, stream);

	if (!found) {
		found = &batch->streams[0];
		for (unsigned i = 1; i < FGV_BATCH_STREAMS; i++) {
			if (batch->streams[i].stamp < found->stamp)
				found = &batch->streams[i];
		}
		forget_chains(session, found);
		*found = (struct fgv_batch_stream){.is_used = true, .stream = stream};
	}
	found->stamp = ++batch->stamp;
	return found;
}

void fgv_batch_forget_stream(struct fgv_session *session, struct fgv_gpu_stream *stream)
{
	struct fgv_batch_stream *found = find_stream(&session->batch, stream);

	if (!found)
		return;
	forget_chains(session, found);
	*found = (struct fgv_batch_stream){0};
}

void fgv_batch_forget_functions(struct fgv_session *session)
{
	for (unsigned i = 0; i < FGV_BATCH_STREAMS; i++)
		forget_chains(session, &session->batch.streams[i]);
}

void fgv_batch_fini(struct fgv_session *session)
{
	session->batch.count = 0;
	fgv_batch_forget_functions(session);
}

/* --- Launches ---------------------------------------------------------------- */

static CUresult launch_one(struct fgv_session *session, struct fgv_batch_launch *launch)
{
	void *params[FGV_BATCH_PARAMS];

	for (uint32_t i = 0; i < launch->param_count; i++)
		params[i] = launch->args + launch->offsets[i];
	return session->gpu->ops->launch(session->gpu, launch->function, launch->grid,
					 launch->block, launch->shared_bytes, session->batch.stream,
					 params);
}

/* How many of the first launches went to the driver as chains. */
static uint32_t launch_chains(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;
	struct fgv_batch_stream *stream;
	unsigned size = FGV_BATCH_SIZES;
	uint32_t done = 0;

	if (batch->count < SMALLEST)
		return 0;
	stream = stream_of(session, batch->stream);
	if (stream->together < WORTH) {
		stream->together += batch->count;
		return 0;
	}
	while (size-- > 0 && batch->is_on) {
		while (batch->count - done >= size_of(size)) {
			if (!run_chain(session, stream, size, &batch->launches[done]))
				return done;
			done += size_of(size);
		}
	}
	return done;
}

void fgv_batch_flush_some(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;

	for (uint32_t i = launch_chains(session); i < batch->count; i++) {
		CUresult status = launch_one(session, &batch->launches[i]);

		if (status != CUDA_SUCCESS)
			fgv_session_defer(session, status);
	}
	batch->count = 0;
}

/* Not on a GPU that makes no graphs, as the one that only notes what a node is to be. */
static bool can_chain(const struct fgv_session *session, const struct fgv_object *function)
{
	return session->batch.is_on && session->gpu->ops->graph_create &&
	       function->function.args_len <= FGV_BATCH_ARGS &&
	       function->function.param_count <= FGV_BATCH_PARAMS;
}

static void put_off(struct fgv_session *session, const struct fgv_object *function,
		    const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes)
{
	struct fgv_batch_launch *launch = &session->batch.launches[session->batch.count++];
	uint32_t count = function->function.param_count;

	launch->function = function->function.gpu;
	memcpy(launch->grid, grid, sizeof(launch->grid));
	memcpy(launch->block, block, sizeof(launch->block));
	launch->shared_bytes = shared_bytes;
	launch->param_count = count;
	launch->args_len = function->function.args_len;
	if (!count)
		return;
	memcpy(launch->args, session->params[0], launch->args_len);
	for (uint32_t i = 0; i < count; i++)
		launch->offsets[i] =
			(uint16_t)((uint8_t *)session->params[i] - (uint8_t *)session->params[0]);
}

static void grow(struct fgv_batch *batch)
{
	batch->target = (uint32_t)fgv_min_u64(batch->target * 2, FGV_BATCH_MAX);
}

CUresult fgv_batch_launch(struct fgv_session *session, const struct fgv_object *function,
			  const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			  struct fgv_gpu_stream *stream)
{
	struct fgv_batch *batch = &session->batch;
	bool alone = !can_chain(session, function);

	/* A GPU without work gets the first at once, and the next after two, four, eight. */
	if (!fgv_gate_has_work(&session->gate))
		batch->target = 1;
	if (alone || batch->target == 1 || batch->stream != stream)
		fgv_batch_flush(session);
	if (alone || batch->target == 1) {
		grow(batch);
		return session->gpu->ops->launch(session->gpu, function->function.gpu, grid, block,
						 shared_bytes, stream, session->params);
	}
	batch->stream = stream;
	put_off(session, function, grid, block, shared_bytes);
	if (batch->count < batch->target)
		return CUDA_SUCCESS;
	fgv_batch_flush(session);
	grow(batch);
	return CUDA_SUCCESS;
}
