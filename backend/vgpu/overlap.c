/*
 * The makespan of work in streams. Each engine is filled as if pieces could be cut at will,
 * which is the least time that they can take; together with the order of the streams that is
 * what a GPU comes close to.
 */
#include "backend/vgpu/overlap.h"

#include "common/util.h"

/* Where the work of @stream ends that is there now. */
static uint64_t stream_end(const struct fgv_overlap *overlap, const struct fgv_object *stream)
{
	uint64_t end_ns = stream ? stream->ends_ns : overlap->legacy_ns;

	if (overlap->is_serial)
		return overlap->ends_ns;
	if (!stream)
		end_ns = fgv_max_u64(end_ns, overlap->blocking_ns);
	else if (stream->is_blocking)
		end_ns = fgv_max_u64(end_ns, overlap->legacy_ns);
	return fgv_max_u64(end_ns, overlap->done_ns);
}

static void set_stream_end(struct fgv_overlap *overlap, struct fgv_object *stream, uint64_t end_ns)
{
	if (stream)
		stream->ends_ns = end_ns;
	else
		overlap->legacy_ns = end_ns;
	if (!stream || stream->is_blocking)
		overlap->blocking_ns = fgv_max_u64(overlap->blocking_ns, end_ns);
}

/* Where the engine would be done with @piece. */
static uint64_t engine_end(const struct fgv_overlap *overlap, const struct fgv_piece *piece)
{
	uint64_t from_ns = fgv_max_u64(overlap->engine_ns[piece->engine], overlap->done_ns);

	return from_ns + piece->ns * piece->share / FGV_SHARE_ALL;
}

uint64_t fgv_overlap_with(const struct fgv_overlap *overlap, const struct fgv_piece *piece)
{
	uint64_t end_ns = fgv_max_u64(stream_end(overlap, piece->stream) + piece->ns,
				      engine_end(overlap, piece));

	return fgv_max_u64(end_ns, overlap->ends_ns);
}

uint64_t fgv_overlap_add(struct fgv_overlap *overlap, const struct fgv_piece *piece)
{
	uint64_t before_ns = overlap->ends_ns, end_ns = fgv_overlap_with(overlap, piece);

	set_stream_end(overlap, piece->stream, stream_end(overlap, piece->stream) + piece->ns);
	overlap->engine_ns[piece->engine] = engine_end(overlap, piece);
	overlap->ends_ns = end_ns;
	return end_ns - before_ns;
}

void fgv_overlap_done(struct fgv_overlap *overlap, uint64_t until_ns)
{
	overlap->done_ns = fgv_max_u64(overlap->done_ns, fgv_min_u64(until_ns, overlap->ends_ns));
}

void fgv_overlap_record(struct fgv_overlap *overlap, const struct fgv_object *stream,
			struct fgv_object *event)
{
	event->ends_ns = stream_end(overlap, stream);
}

void fgv_overlap_wait(struct fgv_overlap *overlap, struct fgv_object *stream,
		      const struct fgv_object *event)
{
	uint64_t end_ns = stream_end(overlap, stream);

	set_stream_end(overlap, stream, fgv_max_u64(end_ns, event->ends_ns));
}

bool fgv_overlap_has_work(const struct fgv_overlap *overlap, const struct fgv_object *stream)
{
	return stream_end(overlap, stream) > overlap->done_ns;
}
