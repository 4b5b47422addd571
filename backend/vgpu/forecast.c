/*
 * What requests will take, and when they will be done.
 */
#include "backend/vgpu/forecast.h"

#include <stddef.h>
#include <string.h>
#include "backend/vgpu/session.h"
#include "common/util.h"

/* Records and waits of streams, which take next to nothing. */
#define TRIFLE_NS 1000

#define WARP 32u

/* Of the places of a kernel, that of its parts: no other work has this size. */
#define PART_SIZE 0

static uint32_t attribute(const struct fgv_device_info *info, CUdevice_attribute attribute)
{
	return (uint32_t)fgv_max_u64(
		1, info->attributes[attribute] > 0 ? (uint64_t)info->attributes[attribute] : 0);
}

void fgv_forecast_init(struct fgv_forecast *forecast, const struct fgv_device_info *info,
		       uint64_t unknown_ns)
{
	*forecast = (struct fgv_forecast){
		.overlap.is_serial = info->attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] <= 0,
		.processors = attribute(info, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
		.processor_threads =
			attribute(info, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
		.processor_blocks =
			attribute(info, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
		.unknown_ns = unknown_ns,
	};
}

/* --- One request ------------------------------------------------------------- */

/* By the number of threads alone: registers only make it less. */
uint64_t fgv_forecast_room(const struct fgv_forecast *forecast, const uint32_t block[3])
{
	uint64_t threads = fgv_align_up(fgv_max_u64(fgv_extent(block), 1), WARP);
	uint64_t each = fgv_min_u64(fgv_max_u64(forecast->processor_threads / threads, 1),
				    forecast->processor_blocks);

	return each * forecast->processors;
}

uint32_t fgv_forecast_share(const struct fgv_forecast *forecast, const uint32_t grid[3],
			    const uint32_t block[3])
{
	uint64_t room = fgv_forecast_room(forecast, block), blocks = fgv_extent(grid);

	if (blocks >= room)
		return FGV_SHARE_ALL;
	return (uint32_t)fgv_max_u64(blocks * FGV_SHARE_ALL / room, 1);
}

uint16_t fgv_forecast_part(uint32_t function)
{
	return fgv_cost_place(function, PART_SIZE);
}

double fgv_forecast_threads(const struct fgv_forecast *forecast)
{
	return (double)forecast->processors * forecast->processor_threads;
}

/*
 * A copy between two places of which one is host memory that the GPU sees. By itself, so that what
 * is launched does not pay for its room on the stack.
 */
static __attribute__((noinline)) enum fgv_engine engine_of_copy(const struct fgv_session *session,
								const uint8_t *message)
{
	struct fgv_copy_device_request copy;
	bool from_host, to_host;

	memcpy(&copy, message, sizeof(copy));
	from_host = fgv_mapped_find(&session->mapped, copy.from, copy.size) != NULL;
	to_host = fgv_mapped_find(&session->mapped, copy.to, copy.size) != NULL;
	if (from_host == to_host)
		return FGV_ENGINE_COMPUTE;
	return from_host ? FGV_ENGINE_IN : FGV_ENGINE_OUT;
}

static enum fgv_engine engine_of(const struct fgv_session *session, uint16_t op,
				 const uint8_t *message)
{
	switch (op) {
	case FGV_OP_COPY_IN:
	case FGV_OP_COPY_IN_BULK:
	case FGV_OP_BOX_IN:
	case FGV_OP_BOX_IN_BULK:
		return FGV_ENGINE_IN;
	case FGV_OP_COPY_OUT:
	case FGV_OP_BOX_OUT:
		return FGV_ENGINE_OUT;
	case FGV_OP_COPY_DEVICE:
		return engine_of_copy(session, message);
	default:
		return FGV_ENGINE_COMPUTE;
	}
}

/* Of a launch, whose kind has @place: a kernel mostly has the shape of the last time. */
static uint32_t share_of(struct fgv_forecast *forecast, const uint8_t *message, uint16_t place)
{
	struct fgv_forecast_shape *known = &forecast->shapes[place % FGV_FORECAST_SHAPES];
	const uint8_t *shape = message + offsetof(struct fgv_launch_request, grid);

	_Static_assert(offsetof(struct fgv_launch_request, block) ==
			       offsetof(struct fgv_launch_request, grid) + sizeof(known->grid),
		       "one after the other");
	if (known->share && !memcmp(known, shape, offsetof(struct fgv_forecast_shape, share)))
		return known->share;
	memcpy(known, shape, offsetof(struct fgv_forecast_shape, share));
	known->share = fgv_forecast_share(forecast, known->grid, known->block);
	return known->share;
}

void fgv_forecast_expect(struct fgv_session *session, const struct fgv_request *request,
			 const uint8_t *message, struct fgv_expected *expected)
{
	struct fgv_forecast *forecast = &session->gate.forecast;
	uint32_t kind = request->subject ? request->subject : request->op;
	uint16_t place = request->portion ? fgv_forecast_part(request->subject)
					  : fgv_cost_place(kind, request->amount);
	uint64_t ns = forecast->costs.ns[place];

	if (ns && request->portion)
		ns = fgv_max_u64(ns * request->portion / FGV_PORTION_ALL, 1);

	*expected = (struct fgv_expected){
		.piece = {fgv_engines_stream_of(session, request->op, message),
			  engine_of(session, request->op, message), FGV_SHARE_ALL,
			  ns ? ns : forecast->unknown_ns},
		.place = place,
		.is_trifle = !request->subject && !request->amount,
		.is_first = !ns,
	};
	if (expected->is_trifle) {
		expected->piece.ns = TRIFLE_NS;
		expected->piece.share = 1;
		expected->is_first = false;
	} else if (request->op == FGV_OP_LAUNCH && ns) {
		expected->piece.share = share_of(forecast, message, place);
	}
}

/* --- All of them --------------------------------------------------------------- */

/* Records and waits, by which streams meet. */
static void meet(struct fgv_session *session, uint16_t op, const uint8_t *message,
		 struct fgv_object *stream)
{
	struct fgv_overlap *overlap = &session->gate.forecast.overlap;
	struct fgv_object *event;

	switch (op) {
	case FGV_OP_EVENT_RECORD:
		event = fgv_engines_object_at(session, FGV_KIND_EVENT, message,
				  offsetof(struct fgv_event_record_request, event));
		if (event)
			fgv_overlap_record(overlap, stream, event);
		break;
	case FGV_OP_STREAM_WAIT_EVENT:
		event = fgv_engines_object_at(session, FGV_KIND_EVENT, message,
				  offsetof(struct fgv_stream_wait_event_request, event));
		if (event)
			fgv_overlap_wait(overlap, stream, event);
		break;
	}
}

uint64_t fgv_forecast_add(struct fgv_session *session, const struct fgv_request *request,
			  const uint8_t *message, const struct fgv_expected *expected)
{
	uint64_t more_ns = fgv_overlap_add(&session->gate.forecast.overlap, &expected->piece);

	if (expected->is_trifle)
		meet(session, request->op, message, expected->piece.stream);
	return more_ns;
}

static bool foresee_graph(struct fgv_session *session, struct fgv_request *request,
			  const uint8_t *message)
{
	const struct fgv_object *graph = fgv_engines_object_at(
		session, FGV_KIND_GRAPH, message, offsetof(struct fgv_graph_launch_request, graph));

	if (graph)
		fgv_graph_tell(graph, request);
	return graph;
}

/* What a handler would say of @request; false: it takes the handler to know. */
static bool foresee(struct fgv_session *session, struct fgv_request *request,
		    const uint8_t *message, uint32_t len)
{
	uint32_t fixed = fgv_op_infos[request->op].request_len;
	union {
		struct fgv_launch_request launch;
		struct fgv_copy_in_bulk_request in;
		struct fgv_copy_out_request out;
		struct fgv_copy_device_request device;
		struct fgv_fill_request fill;
	} as;

	if (len < fixed)
		return false;
	memcpy(&as, message, fgv_min_u64(fixed, sizeof(as)));
	switch (request->op) {
	case FGV_OP_LAUNCH:
		request->subject = as.launch.function;
		request->amount = fgv_extent(as.launch.grid) * fgv_extent(as.launch.block);
		return true;
	case FGV_OP_COPY_IN:
		request->amount = len - fixed;
		return true;
	case FGV_OP_COPY_IN_BULK:
		request->amount = as.in.data_len;
		return true;
	case FGV_OP_COPY_OUT:
		request->amount = as.out.data_len;
		return true;
	case FGV_OP_COPY_DEVICE:
		request->amount = as.device.size;
		return true;
	case FGV_OP_FILL:
		request->amount = as.fill.count * as.fill.width;
		return true;
	case FGV_OP_GRAPH_LAUNCH:
		return foresee_graph(session, request, message);
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
		return true;
	default:
		return false;
	}
}

bool fgv_forecast_fits(struct fgv_session *session, const struct fgv_request *request,
		       const uint8_t *message, uint32_t len)
{
	const struct fgv_overlap *overlap = &session->gate.forecast.overlap;
	struct fgv_request guess = *request;
	struct fgv_expected expected;

	if (overlap->is_serial || !foresee(session, &guess, message, len))
		return false;
	fgv_forecast_expect(session, &guess, message, &expected);
	return !expected.is_first && fgv_overlap_with(overlap, &expected.piece) <= overlap->ends_ns;
}

bool fgv_forecast_is_behind(struct fgv_session *session, uint16_t op, const uint8_t *message,
			    uint32_t len)
{
	if (op == FGV_OP_EVENT_RECORD || op == FGV_OP_STREAM_WAIT_EVENT)
		return false;
	if (len < fgv_op_infos[op].request_len)
		return true;
	return fgv_overlap_has_work(&session->gate.forecast.overlap,
				    fgv_engines_stream_of(session, op, message));
}

uint32_t fgv_forecast_ns(struct fgv_session *session, const struct fgv_request *request,
			 const uint8_t *message, uint32_t len)
{
	struct fgv_request guess = *request;
	struct fgv_expected expected;

	if (!foresee(session, &guess, message, len))
		return 0;
	fgv_forecast_expect(session, &guess, message, &expected);
	return expected.is_first ? 0 : (uint32_t)fgv_min_u64(expected.piece.ns, UINT32_MAX);
}
