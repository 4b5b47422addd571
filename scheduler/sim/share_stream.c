/*
 * A seat's streams: which operations the gate lets on the GPU, which of these run side by side,
 * and how far they get. An engine runs operations at once as long as their widths fit on it.
 */
#include <math.h>

#include "common/util.h"
#include "scheduler/sim/share_world.h"

#define FULL 1.000001 /* for widths that were added up */

/* fmin() and fmax() are calls. */
static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

void stream_next(struct stream *stream)
{
	struct share_world *world = stream->seat->domain->world;
	double jitter = stream->spec->jitter * (2 * engine_draw(&world->engine) - 1);

	stream->op_ns = stream->left_ns = greater(1, stream->spec->op_ns * (1 + jitter));
	stream->state = STREAM_QUEUED;
}

bool seat_wants(const struct seat *seat)
{
	for (uint32_t i = 0; i < seat->stream_count; i++)
		if (seat->streams[i].state == STREAM_QUEUED)
			return true;
	return false;
}

double seat_left_ns(const struct seat *seat)
{
	double most = 0;

	for (uint32_t i = 0; i < seat->stream_count; i++)
		if (seat->streams[i].state == STREAM_RUNS)
			most = greater(most, seat->streams[i].left_ns);
	return most;
}

static double sum_left_ns(const struct seat *seat)
{
	double sum = 0;

	for (uint32_t i = 0; i < seat->stream_count; i++)
		if (seat->streams[i].state == STREAM_RUNS)
			sum += seat->streams[i].left_ns;
	return sum;
}

/*
 * What does not fit into half a slice may begin at any time, if it can be held. Of what must
 * drain, the first of a turn may always begin.
 */
static bool gate_lets(const struct seat *seat, const struct stream *stream)
{
	const struct share_params *params = &seat->domain->world->params;
	uint64_t now_ns = share_now(seat->domain->world);
	double ends_ns = stream->op_ns, slice_ns = (double)params->sched.slice_ns;

	if (params->gate == SHARE_SUM)
		ends_ns += sum_left_ns(seat);
	if (!seat->started)
		return true;
	if (seat->end_ns == FGV_SCHED_NO_LIMIT)
		return params->gate == SHARE_MAKESPAN || seat->running == 0 || ends_ns <= slice_ns;
	if (seat->domain->computes && params->holds && stream->op_ns > slice_ns / 2)
		return now_ns < seat->end_ns;
	return (double)now_ns + ends_ns <= (double)(seat->end_ns + params->drain_ns);
}

static bool start_operation(struct seat *seat, struct stream *stream)
{
	double *width = &seat->width[stream->spec->engine];

	if (stream->state != STREAM_QUEUED || *width + stream->spec->width > FULL ||
	    !gate_lets(seat, stream))
		return false;
	*width += stream->spec->width;
	stream->state = STREAM_RUNS;
	seat->running++;
	seat->started = true;
	return true;
}

/* Time has passed: how far have the operations got? */
void seat_catch_up(struct seat *seat)
{
	uint64_t now_ns = share_now(seat->domain->world);
	double ran_ns = (double)(now_ns - seat->since_ns) * seat->rate;

	seat->used_ns += (double)(now_ns - seat->since_ns) * seat->pays;
	seat->since_ns = now_ns;
	if (ran_ns == 0)
		return;
	for (uint32_t i = 0; i < seat->stream_count; i++) {
		struct stream *stream = &seat->streams[i];
		double part_ns = lesser(ran_ns, stream->left_ns);

		if (stream->state != STREAM_RUNS)
			continue;
		stream->left_ns -= part_ns;
		seat->vm->work_ns[stream->spec->engine] += part_ns;
	}
}

/* Sets the timer for the next operation that ends. */
static void foresee(struct seat *seat)
{
	struct share_world *world = seat->domain->world;
	double least = INFINITY;

	share_cancel(world, &seat->done);
	if (seat->rate == 0 || seat->running == 0)
		return;
	for (uint32_t i = 0; i < seat->stream_count; i++)
		if (seat->streams[i].state == STREAM_RUNS)
			least = lesser(least, seat->streams[i].left_ns);
	share_set(world, &seat->done, (uint64_t)ceil(least / seat->rate));
}

void seat_set_rate(struct seat *seat, double rate, double pays)
{
	seat_catch_up(seat);
	seat->rate = rate;
	seat->pays = pays;
	foresee(seat);
}

void seat_start_operations(struct seat *seat)
{
	uint32_t count = seat->stream_count, first = seat->first;

	if (seat->ending)
		return;
	seat_catch_up(seat);
	for (uint32_t i = 0; i < count; i++)
		if (start_operation(seat, &seat->streams[(first + i) % count]))
			seat->first = (first + i + 1) % count;
}

static void end_operation(struct seat *seat, struct stream *stream)
{
	struct share_world *world = seat->domain->world;

	seat->width[stream->spec->engine] -= stream->spec->width;
	seat->running--;
	seat->vm->ops_per_s++;
	if (stream->spec->burst != 0 && ++stream->launched >= stream->spec->burst) {
		stream->launched = 0;
		stream->state = STREAM_GAP;
		share_set(world, &stream->gap, stream->spec->gap_ns);
		return;
	}
	stream_next(stream);
}

void seat_done(void *arg)
{
	struct seat *seat = arg;

	seat_catch_up(seat);
	for (uint32_t i = 0; i < seat->stream_count; i++)
		if (seat->streams[i].state == STREAM_RUNS && seat->streams[i].left_ns < 1)
			end_operation(seat, &seat->streams[i]);
	seat_changed(seat);
}

void stream_gap_over(void *arg)
{
	struct stream *stream = arg;

	stream_next(stream);
	seat_changed(stream->seat);
}
