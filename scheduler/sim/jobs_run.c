/* A batch of jobs on a virtual clock; see jobs.h. */
#include "scheduler/sim/jobs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sim/engine.h"

#define GIB    (1024.0 * 1024 * 1024)
#define JITTER 0.5 /* kernels and pauses take half to one and a half of their mean */

enum phase { QUEUED, ON_HOST, WAITING, PAUSED, IN_KERNEL, DONE, CRASHED };

struct job {
	const struct jobs_kind *kind;
	enum phase phase;
	double left_s;	  /* of the phase, if nothing else is there */
	double since_s;	  /* when it began to wait */
	uint32_t kernels; /* to come */
	struct fgv_place_task task;
};

struct batch {
	const struct jobs_params *params;
	struct fgv_place *place;
	struct engine random;
	struct job jobs[JOBS_MAX];
	uint32_t count, next, busy; /* jobs; the next in the queue; workers with a job */
	double now_s;
	double warps[FGV_PLACE_GPUS_MAX]; /* of kernels that run there */
	double kernel_s, alone_s, waited_s, ended_s;
	struct jobs_result *result;
};

static double all_warps(const struct batch *batch, uint32_t gpu)
{
	return (double)batch->params->gpus[gpu].sms * batch->params->gpus[gpu].sm_warps;
}

static double about(struct batch *batch, double mean_s)
{
	return mean_s * (1 - JITTER + 2 * JITTER * engine_draw(&batch->random));
}

/* Of its kernels' warps, those that a GPU can run at once. */
static double width(const struct batch *batch, const struct job *job)
{
	const struct jobs_kind *kind = job->kind;

	return fmin((double)kind->blocks * kind->block_warps, all_warps(batch, job->task.gpu));
}

/* How fast the job's phase goes: kernels share what there is of warps. */
static double rate_of(const struct batch *batch, const struct job *job)
{
	if (job->phase != IN_KERNEL)
		return 1;
	return fmin(1, all_warps(batch, job->task.gpu) / batch->warps[job->task.gpu]);
}

static bool runs(const struct job *job)
{
	return job->phase == ON_HOST || job->phase == PAUSED || job->phase == IN_KERNEL;
}

/* --- Phases ------------------------------------------------------------------ */

static void pause_kernels(struct batch *batch, struct job *job)
{
	const struct jobs_kind *kind = job->kind;

	job->phase = PAUSED;
	job->left_s = about(batch, kind->task_s * (1 - kind->kernels) / kind->count);
}

static void begin_kernel(struct batch *batch, struct job *job)
{
	job->phase = IN_KERNEL;
	job->left_s = about(batch, job->kind->task_s * job->kind->kernels / job->kind->count);
	batch->alone_s += job->left_s;
	batch->warps[job->task.gpu] += width(batch, job);
	job->kernels--;
}

static void leave_queue(struct batch *batch)
{
	while (batch->next < batch->count && batch->busy < batch->params->workers) {
		struct job *job = &batch->jobs[batch->next++];

		job->phase = ON_HOST;
		job->left_s = about(batch, job->kind->host_s);
		batch->busy++;
	}
}

static void end(struct batch *batch, struct job *job, enum phase how)
{
	job->phase = how;
	fgv_place_take_back(batch->place, &job->task);
	batch->busy--;
	if (how == CRASHED)
		batch->result->crashed++;
	else
		batch->ended_s += batch->now_s;
	leave_queue(batch);
}

/* The GPUs that have room for another job by their number. */
static uint32_t gpus_with_room(const struct batch *batch)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < batch->params->gpu_count; i++) {
		struct fgv_place_use use;

		fgv_place_look(batch->place, i, &use);
		if (!batch->params->per_gpu || use.tasks < batch->params->per_gpu)
			gpus |= UINT32_C(1) << i;
	}
	return gpus;
}

/* Whether a GPU has less memory than is taken of it. */
static bool is_short(const struct batch *batch, uint32_t gpu)
{
	struct fgv_place_use use;

	fgv_place_look(batch->place, gpu, &use);
	return use.memory_bytes > batch->params->gpus[gpu].memory_bytes;
}

/* What it says that its kernels need. */
static uint64_t blocks_claimed(const struct batch *batch, const struct jobs_kind *kind)
{
	double most = batch->params->claim * all_warps(batch, 0) / kind->block_warps;

	return kind->blocks < most ? kind->blocks : (uint64_t)most;
}

static int place(struct batch *batch, struct job *job)
{
	const struct jobs_kind *kind = job->kind;
	const struct fgv_place_need need = {(uint64_t)(kind->memory_gib * GIB),
					    blocks_claimed(batch, kind), kind->block_warps};
	const struct fgv_place_where where = {.gpus = gpus_with_room(batch)};
	int ret;

	if (!where.gpus)
		return -EAGAIN;
	ret = fgv_place_put(batch->place, batch->params->rule, &need, &where, &job->task);
	if (ret)
		return ret;
	batch->waited_s += batch->now_s - job->since_s;
	job->kernels = kind->count;
	if (is_short(batch, job->task.gpu))
		end(batch, job, CRASHED);
	else
		pause_kernels(batch, job);
	return 0;
}

/* Those that wait, the first first; one that still finds no room lets the others by. */
static int place_all(struct batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		int ret = 0;

		if (batch->jobs[i].phase == WAITING)
			ret = place(batch, &batch->jobs[i]);
		if (ret && ret != -EAGAIN)
			return ret;
	}
	return 0;
}

static void finish_phase(struct batch *batch, struct job *job)
{
	switch (job->phase) {
	case ON_HOST:
		job->phase = WAITING;
		job->since_s = batch->now_s;
		break;
	case IN_KERNEL:
		batch->warps[job->task.gpu] -= width(batch, job);
		if (job->kernels > 0)
			pause_kernels(batch, job);
		else
			end(batch, job, DONE);
		break;
	default:
		begin_kernel(batch, job);
		break;
	}
}

/* --- Time -------------------------------------------------------------------- */

/* Until the next phase ends; false: nothing runs. */
static bool step(struct batch *batch)
{
	struct job *first = NULL;
	double least_s = INFINITY;

	for (uint32_t i = 0; i < batch->count; i++) {
		struct job *job = &batch->jobs[i];
		double s = runs(job) ? job->left_s / rate_of(batch, job) : INFINITY;

		if (s < least_s) {
			least_s = s;
			first = job;
		}
	}
	if (first == NULL)
		return false;
	for (uint32_t i = 0; i < batch->count; i++) {
		struct job *job = &batch->jobs[i];

		if (runs(job))
			job->left_s -= least_s * rate_of(batch, job);
		if (job->phase == IN_KERNEL)
			batch->kernel_s += least_s;
	}
	batch->now_s += least_s;
	finish_phase(batch, first);
	return true;
}

static void conclude(struct batch *batch)
{
	struct jobs_result *result = batch->result;
	double well = batch->count - result->crashed;

	result->makespan_s = batch->now_s;
	result->turnaround_s = batch->ended_s / well;
	result->waited_s = batch->waited_s / batch->count;
	result->slowdown = batch->kernel_s / batch->alone_s;
}

int jobs_run(const struct jobs_params *params, const struct jobs_kind *const *jobs, uint32_t count,
	     struct jobs_result *result)
{
	struct batch *batch;
	int err;

	if (count < 1 || count > JOBS_MAX || params->workers < 1)
		return -EINVAL;
	batch = calloc(1, sizeof(*batch));
	if (batch == NULL)
		return -ENOMEM;
	*result = (struct jobs_result){0};
	*batch = (struct batch){.params = params, .count = count, .result = result};
	err = engine_init(&batch->random, 1, params->seed);
	if (err != 0)
		goto free_batch;
	err = fgv_place_create(&batch->place, params->gpus, params->gpu_count);
	if (err != 0)
		goto free_random;
	for (uint32_t i = 0; i < count; i++)
		batch->jobs[i] = (struct job){.kind = jobs[i], .phase = QUEUED};
	leave_queue(batch);
	do {
		err = place_all(batch);
	} while (err == 0 && step(batch));
	conclude(batch);
	fgv_place_destroy(batch->place);
free_random:
	engine_fini(&batch->random);
free_batch:
	free(batch);
	return err;
}
