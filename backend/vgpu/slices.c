/*
 * Which launches go in parts, and the parts; see slices.h. A launch that the gate closes in the
 * middle of is held like one that it has not let through at all, in front of all that comes after
 * it, so streams, events and results are as with one launch.
 */
#include "backend/vgpu/slices.h"

#include <string.h>
#include "backend/vgpu/session.h"
#include "backend/vgpu/slices_cut.h"
#include "common/util.h"
#include "ptx/ptx.h"

/* A kernel of unknown length is begun with a part if its grid fills the GPU so often. */
#define UNKNOWN_ROUNDS 4

/* A part takes so much of a slice at most: while one runs, the next one is there already. */
#define PART_SHARE 2
/* And so much at least, where less is left of the turn. */
#define LEAST_SHARE 8

/* One measurement may be wrong: a part has so many times the blocks of what has ended, at most. */
#define GROWTH_MAX 4

/* NVIDIA's multiprocessors give registers to warps in such units, one of so many groups each. */
#define WARP	       32
#define REGISTERS_UNIT 256
#define SCHEDULERS     4

/* Parts that go to the driver before anything else is looked at. */
#define PARTS_MAX 64

/* A launch, while it is taken apart. */
struct slicing {
	struct fgv_session *session;
	struct fgv_request *request;
	const struct fgv_launch_in *in;
	struct fgv_sliced *sliced;
	uint64_t blocks; /* of all of it */
	uint64_t room;	 /* that the GPU has at once, by the number of threads */
	uint64_t wave;	 /* the same, by what parts are compiled to */
	double threads;	 /* of a block */
};

static uint32_t attribute(const struct fgv_device_info *info, CUdevice_attribute attribute)
{
	return info->attributes[attribute] > 0 ? (uint32_t)info->attributes[attribute] : 0;
}

void fgv_slices_init(struct fgv_session *session)
{
	struct fgv_slices *slices = &session->slices;
	struct fgv_device_info info;

	*slices = (struct fgv_slices){.mode = session->setup.slicing,
				      .blocks = session->setup.slice_blocks};
	if (slices->mode == FGV_SLICING_OFF)
		return;
	if (session->gpu->ops->info(session->gpu, &info) != CUDA_SUCCESS)
		memset(&info, 0, sizeof(info));
	slices->grid_max[0] = attribute(&info, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
	slices->grid_max[1] = attribute(&info, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
	slices->grid_max[2] = attribute(&info, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
	slices->registers = attribute(&info, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
	slices->shared = attribute(&info, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	slices->reserved = attribute(&info, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
}

bool fgv_slices_are_on(const struct fgv_session *session)
{
	switch (session->slices.mode) {
	case FGV_SLICING_ON:
		return true;
	case FGV_SLICING_AUTO:
		return !__atomic_load_n(&session->gate.grant->is_holdable, __ATOMIC_RELAXED);
	default:
		return false;
	}
}

/* --- Which --------------------------------------------------------------------------- */

/* Not what a node of a graph is to be: the GPU that only notes that slices nothing. */
static bool may_be_sliced(const struct fgv_session *session)
{
	return session->gpu->ops->module_slice && fgv_slices_are_on(session);
}

/* False: the driver will say what is wrong with it. */
static bool is_a_grid(const struct fgv_slices *slices, const uint32_t grid[3])
{
	for (int i = 0; i < 3; i++) {
		if (!grid[i] || grid[i] > slices->grid_max[i])
			return false;
	}
	return true;
}

/*
 * What so many of its threads will take, by its last launch or part that filled the GPU; 0: that is
 * not known. A small launch took longer than its threads would have among others.
 */
static double expect_ns(const struct slicing *s, double threads)
{
	const struct fgv_costs *costs = &s->session->gate.forecast.costs;

	return s->sliced->threads ? costs->ns[s->sliced->place] * (threads / s->sliced->threads)
				  : 0;
}

static uint32_t stream_of(const struct slicing *s)
{
	return s->in->stream ? s->in->stream->handle : 0;
}

/* Blocks that a part may have by what has ended; 0: nothing has. */
static uint64_t blocks_known(const struct slicing *s)
{
	struct fgv_sliced *sliced = s->sliced;

	if (sliced->trial && s->session->gate.finished >= sliced->trial) {
		sliced->ended_threads = sliced->trial_threads;
		sliced->trial = 0;
	}
	return (uint64_t)(GROWTH_MAX * (sliced->ended_threads / s->threads));
}

/* Also where that can't be done. */
static bool should_be_sliced(const struct slicing *s)
{
	double ns;

	if (s->session->slices.blocks)
		return s->blocks > s->session->slices.blocks;
	if (s->blocks <= s->room)
		return false;
	ns = expect_ns(s, (double)s->blocks * s->threads);
	if (ns > (double)s->session->gate.slice_ns)
		return true;
	return s->blocks > blocks_known(s) && s->blocks / UNKNOWN_ROUNDS >= s->room;
}

/* --- Parts --------------------------------------------------------------------------- */

/* Nanoseconds for which there is room. */
static uint64_t fits_ns(const struct fgv_gate *gate)
{
	return gate->room_ns - fgv_min_u64(gate->ahead_ns, gate->room_ns);
}

static uint64_t least_ns(const struct fgv_gate *gate)
{
	return fgv_min_u64(gate->slice_ns / LEAST_SHARE, gate->most_ns);
}

/* Nanoseconds that the next part may take. */
static double part_ns(const struct fgv_gate *gate)
{
	uint64_t most_ns = gate->slice_ns / PART_SHARE;

	return (double)fgv_max_u64(fgv_min_u64(fits_ns(gate), most_ns), least_ns(gate));
}

/*
 * How many of the @left blocks the next part is to have by the time that they will take: rounds of
 * all that run at once, or all that are left; 0: that is not known.
 */
static uint64_t blocks_in_time(const struct slicing *s, uint64_t left)
{
	double ns = expect_ns(s, (double)left * s->threads), rounds;

	if (ns <= 0)
		return 0;
	/* The last one may be somewhat longer, rather than one more that is short. */
	if (ns * PART_SHARE <= 1.5 * (double)s->session->gate.slice_ns)
		return left;
	rounds = (double)left / (double)s->wave * (part_ns(&s->session->gate) / ns);
	return fgv_max_u64((uint64_t)(rounds + 0.5), 1) * s->wave;
}

/* How many of the @left blocks the next part is to have. */
static uint64_t part_blocks(const struct slicing *s, uint64_t left)
{
	uint64_t most = fgv_max_u64(blocks_known(s), s->wave), wanted;

	if (s->session->slices.blocks)
		return s->session->slices.blocks;
	wanted = blocks_in_time(s, left);
	/* As much as is needed to learn what it takes. */
	if (!wanted)
		return s->wave;
	return wanted <= most ? wanted : most / s->wave * s->wave;
}

/*
 * Whether the next part could be larger if one that is there had ended, which tells what a larger
 * one takes. It comes after that anyway: one in another stream may wait for this launch.
 */
static bool grows(const struct slicing *s)
{
	uint64_t left = s->blocks - s->request->blocks_done;
	uint64_t most = fgv_max_u64(blocks_known(s), s->wave);

	return s->sliced->trial && s->sliced->trial_stream == stream_of(s) &&
	       blocks_in_time(s, left) > most;
}

/*
 * Whether the next part is better launched later: when it can be larger; or in the next turn, where
 * less is left of this one than a part is worth.
 */
static bool is_early(const struct slicing *s)
{
	struct fgv_gate *gate = &s->session->gate;
	uint64_t short_ns = least_ns(gate) / 2;

	if (s->session->slices.blocks || gate->is_held || !fgv_gate_has_work(gate))
		return false;
	if (grows(s))
		return true;
	if (fits_ns(gate) >= short_ns)
		return false;
	if (fgv_gate_left_ns(gate) < gate->ahead_ns + short_ns)
		fgv_gate_end_turn(gate);
	return true;
}

/* The part of these threads, which is about to be counted, tells when it has ended. */
static void try_threads(struct slicing *s, double threads)
{
	struct fgv_sliced *sliced = s->sliced;

	if (sliced->trial || threads <= sliced->ended_threads)
		return;
	sliced->trial = s->session->gate.submitted + 1;
	sliced->trial_threads = threads;
	sliced->trial_stream = stream_of(s);
}

/*
 * So many threads take the time that is at @place, as what is about to be counted will tell; a kind
 * that is new is no riddle.
 */
static void note_place(struct slicing *s, uint16_t place, double threads)
{
	struct fgv_costs *costs = &s->session->gate.forecast.costs;
	double ns = expect_ns(s, threads);

	if (!costs->ns[place] && ns > 0)
		costs->ns[place] = fgv_cost_within((uint64_t)ns);
	s->sliced->threads = threads;
	s->sliced->place = place;
}

static void note_whole(struct slicing *s)
{
	double threads = (double)s->blocks * s->threads;

	try_threads(s, threads);
	note_place(s, fgv_cost_place(s->request->subject, s->request->amount), threads);
}

static uint32_t portion_of(double threads)
{
	if (threads >= UINT32_MAX)
		return UINT32_MAX;
	return threads < 1 ? 1 : (uint32_t)threads;
}

/*
 * Of whatever size parts are, they have one place, so that each tells what all others take. The
 * first one has as much as the GPU has room for, or somewhat less, where that is no box.
 */
static void note_part(struct slicing *s, uint64_t blocks)
{
	double threads = (double)blocks * s->threads;
	double gpu = fgv_forecast_threads(&s->session->gate.forecast);

	s->request->amount = blocks * fgv_extent(s->in->block);
	if (s->session->slices.blocks)
		return;
	s->request->portion = portion_of(threads / gpu * FGV_PORTION_ALL);
	try_threads(s, threads);
	note_place(s, fgv_forecast_part(s->request->subject), gpu);
}

static CUresult launch_part(struct slicing *s, const struct ptx_part *part, const uint32_t size[3])
{
	struct fgv_session *session = s->session;
	struct fgv_object *stream = s->in->stream;

	session->params[s->in->param_count] = (void *)part;
	return session->gpu->ops->launch(session->gpu, s->sliced->gpu, size, s->in->block,
					 s->in->shared_bytes, stream ? stream->stream : NULL,
					 session->params);
}

/* The next part: how many blocks it had. */
static CUresult run_next(struct slicing *s, uint64_t *blocks)
{
	uint64_t done = s->request->blocks_done;
	struct ptx_part part;
	uint32_t size[3];
	CUresult status;

	memcpy(part.grid, s->in->grid, sizeof(part.grid));
	*blocks =
		fgv_slices_cut(part.grid, done, part_blocks(s, s->blocks - done), part.first, size);
	status = launch_part(s, &part, size);
	if (status != CUDA_SUCCESS)
		return status;
	fgv_account_add(&s->session->account->parts, 1);
	note_part(s, *blocks);
	return CUDA_SUCCESS;
}

/* It is run again, from where it is. */
static CUresult put_off(struct slicing *s)
{
	s->session->gate.blocked = true;
	s->request->is_again = 1;
	return FGV_CLOSED;
}

/* All parts that the gate lets through; the dispatcher tells it of the last one of them. */
static CUresult run_parts(struct slicing *s)
{
	struct fgv_session *session = s->session;
	uint64_t blocks;

	fgv_batch_flush(session);
	for (unsigned i = 1;; i++) {
		CUresult status = run_next(s, &blocks);

		if (status != CUDA_SUCCESS)
			return status;
		s->request->blocks_done += blocks;
		if (s->request->blocks_done == s->blocks)
			return CUDA_SUCCESS;
		fgv_engines_let(session, s->request);
		if (i == PARTS_MAX || is_early(s) ||
		    !fgv_gate_admits(session, &session->gate, s->request, session->message, 0))
			return put_off(s);
	}
}

/* --- Launches -------------------------------------------------------------------------- */

static CUresult run_whole(struct slicing *s)
{
	const struct fgv_launch_in *in = s->in;

	if (s->blocks > s->room && s->session->gpu->ops->module_slice)
		note_whole(s);
	return fgv_batch_launch(s->session, in->function, in->grid, in->block, in->shared_bytes,
				in->stream);
}

/* Whether there is what does parts; what it was compiled to may want smaller blocks. */
static CUresult find(struct slicing *s)
{
	struct fgv_sliced *sliced = s->sliced;
	CUresult status;

	if (sliced->state == FGV_SLICED_UNTRIED) {
		status = fgv_slices_make(s->session, s->in->function);
		if (status != CUDA_SUCCESS)
			return status;
	} else if (sliced->state == FGV_SLICED_NEVER) {
		fgv_slices_note_whole(s->session, sliced, "");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (s->threads <= sliced->threads_max)
		return CUDA_SUCCESS;
	fgv_slices_note_whole(s->session, sliced, "");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* How many blocks of a part the GPU has room for at once; by the room if the driver says little. */
static void measure_wave(struct slicing *s)
{
	const struct fgv_slices *slices = &s->session->slices;
	uint64_t warps = fgv_align_up(fgv_extent(s->in->block), WARP) / WARP;
	uint64_t registers = fgv_align_up((uint64_t)s->sliced->registers * WARP, REGISTERS_UNIT);
	uint64_t shared = s->sliced->shared + s->in->shared_bytes + slices->reserved;
	uint64_t each = s->room;

	if (registers && slices->registers)
		each = slices->registers / registers / SCHEDULERS * SCHEDULERS / warps;
	if (shared && slices->shared)
		each = fgv_min_u64(each, slices->shared / shared);
	s->wave = fgv_min_u64(s->room, fgv_max_u64(each, 1) * s->session->gate.forecast.processors);
}

static void begin(struct slicing *s, struct fgv_session *session, struct fgv_object *function,
		  const uint32_t grid[3], const uint32_t block[3])
{
	*s = (struct slicing){
		.session = session,
		.sliced = function->function.sliced,
		.threads = (double)fgv_extent(block),
	};
	if (!is_a_grid(&session->slices, grid))
		return;
	s->blocks = fgv_extent(grid);
	s->room = fgv_forecast_room(&session->gate.forecast, block);
}

CUresult fgv_slices_launch(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_launch_in *in)
{
	struct slicing s;
	CUresult status;

	begin(&s, session, in->function, in->grid, in->block);
	s.request = request;
	s.in = in;
	if (request->blocks_done) {
		measure_wave(&s);
		return is_early(&s) ? put_off(&s) : run_parts(&s);
	}
	if (!may_be_sliced(session) || !should_be_sliced(&s))
		return run_whole(&s);
	status = find(&s);
	if (status == FGV_CLOSED)
		return put_off(&s);
	if (status != CUDA_SUCCESS)
		return run_whole(&s);
	fgv_account_add(&session->account->sliced, 1);
	measure_wave(&s);
	return run_parts(&s);
}

void fgv_slices_pass(struct fgv_session *session, struct fgv_object *function,
		     const uint32_t grid[3], const uint32_t block[3], const char *why)
{
	struct slicing s;

	if (!function->function.sliced || !may_be_sliced(session))
		return;
	begin(&s, session, function, grid, block);
	if (should_be_sliced(&s))
		fgv_slices_note_whole(session, s.sliced, why);
}
