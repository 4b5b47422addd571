/*
 * Batches of launches; see batch.h. What is no sequence that came before is taken apart into
 * chains, and the rest goes launch by launch, as does all of it where graphs have not paid off yet.
 */
#include "backend/vgpu/batch.h"

#include "backend/vgpu/batch_follow.h"
#include "backend/vgpu/session.h"
#include "common/log.h"
#include "common/util.h"

/* To make a chain costs as much as so many launches: a stream that has had them gets chains. */
#define WORTH 64

/* So many rows that the driver could not follow are taken to be the rule. */
#define FAILURES_MAX 8

/* Launches wait for others while the GPU has work for much longer than this. */
#define BUSY_NS (20 * FGV_NS_PER_US)

void fgv_batch_init(struct fgv_batch *batch, bool is_on)
{
	batch->is_on = is_on;
	batch->target = 1;
}

void fgv_batch_failed(struct fgv_session *session, CUresult status)
{
	if (++session->batch.failures != FAILURES_MAX)
		return;
	session->batch.is_on = false;
	fgv_debug("its launches go one by one: error %d", (int)status);
}

/* --- Streams ----------------------------------------------------------------- */

static struct fgv_batch_stream *find_stream(struct fgv_batch *batch,
					    const struct fgv_gpu_stream *stream)
{
	for (unsigned i = 0; i < FGV_BATCH_STREAMS; i++) {
		if (batch->streams[i].is_used && batch->streams[i].stream == stream)
			return &batch->streams[i];
	}
	return NULL;
}

static void forget(struct fgv_session *session, struct fgv_batch_stream *stream)
{
	fgv_batch_chains_forget(session, &stream->chains);
	if (stream->is_used)
		fgv_batch_cache_forget_stream(session, stream->stream);
	*stream = (struct fgv_batch_stream){0};
}

/* Another one is forgotten for it, if need be. */
struct fgv_batch_stream *fgv_batch_stream_of(struct fgv_session *session,
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
		forget(session, found);
		found->is_used = true;
		found->stream = stream;
	}
	found->stamp = ++batch->stamp;
	return found;
}

void fgv_batch_forget_stream(struct fgv_session *session, struct fgv_gpu_stream *stream)
{
	struct fgv_batch_stream *found = find_stream(&session->batch, stream);

	if (found)
		forget(session, found);
}

void fgv_batch_forget_functions(struct fgv_session *session)
{
	for (unsigned i = 0; i < FGV_BATCH_STREAMS; i++)
		fgv_batch_chains_forget(session, &session->batch.streams[i].chains);
	fgv_batch_cache_forget_all(session);
}

void fgv_batch_fini(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;

	batch->followed = NULL;
	batch->at = batch->sent = batch->count = 0;
	fgv_batch_forget_functions(session);
}

/* --- Sending ----------------------------------------------------------------- */

static CUresult launch_one(struct fgv_session *session, struct fgv_batch_launch *launch)
{
	void *params[FGV_BATCH_PARAMS];

	for (uint32_t i = 0; i < launch->param_count; i++)
		params[i] = launch->args + launch->offsets[i];
	return session->gpu->ops->launch(session->gpu, launch->shape.function, launch->shape.grid,
					 launch->shape.block, launch->shape.shared_bytes,
					 session->batch.stream, params);
}

/* Those that go as chains, of the first ones that wait. */
static void send_chains(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;
	uint32_t count = batch->count - batch->sent;
	struct fgv_batch_stream *stream;

	if (count < FGV_BATCH_SMALLEST || !batch->is_on)
		return;
	stream = fgv_batch_stream_of(session, batch->stream);
	if (stream->together < WORTH) {
		stream->together += count;
		return;
	}
	batch->sent += fgv_batch_chains_run(session, &stream->chains, batch->stream,
					    &batch->launches[batch->sent], count);
}

static void grow(struct fgv_batch *batch)
{
	batch->target = (uint32_t)fgv_min_u64(batch->target * 2, FGV_BATCH_MAX);
}

void fgv_batch_send_kept(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;

	if (batch->sent == batch->count)
		return;
	send_chains(session);
	while (batch->sent < batch->count) {
		CUresult status = launch_one(session, &batch->launches[batch->sent++]);

		if (status != CUDA_SUCCESS)
			fgv_session_defer(session, status);
	}
	batch->sent_until_ns = *batch->ends_ns;
	grow(batch);
}

static void drop_kept(struct fgv_batch *batch)
{
	batch->first = batch->sent = batch->count = 0;
}

/* The sequence that was divided so is not learned, as it would be divided again. */
void fgv_batch_send(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;

	batch->is_waiting = false;
	if (!fgv_batch_has_some(batch))
		return;
	fgv_batch_unfollow(session);
	fgv_batch_send_kept(session);
	drop_kept(batch);
}

void fgv_batch_break(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;

	batch->is_begun = batch->is_waiting = false;
	fgv_batch_unfollow(session);
	fgv_batch_send_kept(session);
	fgv_batch_learn(session);
	drop_kept(batch);
	batch->cut = (struct fgv_batch_cut){0};
}

/* Whether the stream has work for so long that it will not be done when the next ones come. */
static bool is_busy(const struct fgv_session *session)
{
	const struct fgv_gate *gate = &session->gate;
	uint64_t until_ns = session->batch.sent_until_ns, done_ns = gate->forecast.overlap.done_ns;

	if (until_ns <= done_ns || gate->is_held || !fgv_gate_is_alone(gate))
		return false;
	return (until_ns - done_ns) / 2 > fgv_now_ns() - gate->passed_ns + BUSY_NS;
}

void fgv_batch_settle(struct fgv_session *session, bool more)
{
	struct fgv_batch *batch = &session->batch;

	batch->is_waiting = fgv_batch_has_some(batch) && (more || is_busy(session));
	if (!batch->is_waiting)
		fgv_batch_send(session);
}

/* --- Launches ---------------------------------------------------------------- */

/* Not on a GPU that makes no graphs, as the one that only notes what a node is to be. */
static bool can_chain(const struct fgv_session *session, const struct fgv_object *function)
{
	return session->batch.is_on && session->gpu->ops->graph_create &&
	       function->function.args_len <= FGV_BATCH_ARGS &&
	       function->function.param_count <= FGV_BATCH_PARAMS;
}

static void keep(struct fgv_session *session, const struct fgv_batch_asked *asked)
{
	struct fgv_batch_launch *launch = &session->batch.launches[session->batch.count++];

	launch->shape = asked->shape;
	launch->args_len = asked->args_len;
	launch->param_count = asked->param_count;
	if (!asked->param_count)
		return;
	if (asked->args_len)
		memcpy(launch->args, asked->args, asked->args_len);
	for (uint32_t i = 0; i < asked->param_count; i++)
		launch->offsets[i] =
			(uint16_t)((uint8_t *)session->params[i] - (uint8_t *)asked->args);
}

/* The sequence has ended; what is kept of it and has not been sent stays in front of the next. */
static void begin_next(struct fgv_session *session)
{
	struct fgv_batch *batch = &session->batch;
	uint32_t left;

	fgv_batch_learn(session);
	left = batch->count - batch->sent;
	if (batch->sent) {
		for (uint32_t i = 0; i < left; i++)
			fgv_batch_copy(&batch->launches[i], &batch->launches[batch->sent + i]);
	}
	batch->sent = 0;
	batch->first = batch->count = left;
}

static void put_off(struct fgv_session *session, const struct fgv_batch_asked *asked)
{
	struct fgv_batch *batch = &session->batch;
	bool is_last = fgv_batch_cut_add(&batch->cut, &asked->shape);

	keep(session, asked);
	if (batch->count - batch->sent >= batch->target)
		fgv_batch_send_kept(session);
	if (is_last)
		begin_next(session);
}

/* A GPU without work gets the first at once, and the next after two, four, eight. */
static CUresult launch_first(struct fgv_session *session, const struct fgv_batch_asked *asked)
{
	const struct fgv_batch_shape *shape = &asked->shape;
	struct fgv_batch *batch = &session->batch;
	CUresult status;

	fgv_batch_send(session);
	drop_kept(batch);
	grow(batch);
	status = session->gpu->ops->launch(session->gpu, shape->function, shape->grid, shape->block,
					   shape->shared_bytes, batch->stream, session->params);
	if (fgv_batch_cut_add(&batch->cut, shape))
		fgv_batch_learn(session);
	return status;
}

CUresult fgv_batch_launch(struct fgv_session *session, const struct fgv_object *function,
			  const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
			  const struct fgv_object *of)
{
	struct fgv_gpu_stream *stream = of ? of->stream : NULL;
	struct fgv_batch *batch = &session->batch;
	struct fgv_batch_asked asked;

	/* A kernel of a graph has a priority of its own, whatever stream the graph is launched in. */
	if (!can_chain(session, function) || (of && of->is_urgent)) {
		fgv_batch_flush(session);
		return session->gpu->ops->launch(session->gpu, function->function.gpu, grid, block,
						 shared_bytes, stream, session->params);
	}
	if (!fgv_gate_has_work(&session->gate))
		batch->target = 1;
	if (batch->stream != stream)
		fgv_batch_flush(session);
	batch->stream = stream;
	batch->ends_ns = of ? &of->ends_ns : &session->gate.forecast.overlap.legacy_ns;
	batch->is_begun = true;
	asked = (struct fgv_batch_asked){
		.shape = {.function = function->function.gpu,
			  .grid = {grid[0], grid[1], grid[2]},
			  .block = {block[0], block[1], block[2]},
			  .shared_bytes = shared_bytes},
		.args_len = function->function.args_len,
		.param_count = function->function.param_count,
		.args = session->params[0],
	};
	if (batch->target == 1)
		return launch_first(session, &asked);
	if (batch->target < FGV_BATCH_MAX || !fgv_batch_follow(session, &asked))
		put_off(session, &asked);
	return CUDA_SUCCESS;
}
