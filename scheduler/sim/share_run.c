/* One run of share.h: sets the world up, runs it, and reads the results off. */
#include "scheduler/sim/share.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sim/share_world.h"

#define US	      FGV_NS_PER_US
#define MS	      FGV_NS_PER_MS
#define DOMAIN_TIMERS 6

void share_params_init(struct share_params *params)
{
	*params = (struct share_params){
		.policy = &fgv_policy_fair,
		.seed = 1,
		.warm_up_ns = 2000 * MS,
		.measure_ns = 30000 * MS,
		.holds = true,
		.by_engine = true,
		.drain_ns = 1000 * US,
		.let_go_ns = 400 * US,
		.hold_ns = 350 * US,
		.switch_ns = 145 * US,
		.idle_ns = 50 * US,
	};
	fgv_sched_params_init(&params->sched);
}

/* --- Set-up ---------------------------------------------------------------- */

static int check(const struct share_params *params, const struct share_vm *vms, uint32_t count)
{
	if (count == 0 || params->measure_ns == 0 || params->policy->pick == NULL ||
	    params->policy->time_shared)
		return -EINVAL;
	for (uint32_t v = 0; v < count; v++) {
		if (vms[v].stream_count == 0)
			return -EINVAL;
		for (uint32_t i = 0; i < vms[v].stream_count; i++) {
			const struct share_stream *stream = &vms[v].streams[i];

			if (!(stream->op_ns >= 1 && stream->width > 0 && stream->width <= 1 &&
			      stream->jitter >= 0 && stream->jitter <= 1))
				return -EINVAL;
		}
	}
	return 0;
}

static uint32_t domain_of(const struct share_params *params, const struct share_stream *stream)
{
	return params->by_engine ? stream->engine : 0;
}

static int init_domain(struct share_world *world, struct domain *domain)
{
	domain->world = world;
	domain->computes = domain == &world->domains[SHARE_COMPUTE];
	engine_timer_init(&domain->decide, domain_decide, domain);
	engine_timer_init(&domain->slice, domain_slice, domain);
	engine_timer_init(&domain->idle, domain_idle, domain);
	engine_timer_init(&domain->let_go, domain_let_go, domain);
	engine_timer_init(&domain->hold, domain_hold, domain);
	engine_timer_init(&domain->changed, domain_context_changed, domain);
	world->domain_count++;
	return fgv_sched_create(&domain->sched, world->params.policy, &world->params.sched, 0);
}

static int init_seat(struct seat *seat, struct domain *domain, const struct share_vm *vm,
		     struct share_vm_result *result, struct stream *streams)
{
	int err;

	seat->domain = domain;
	seat->vm = result;
	seat->streams = streams;
	engine_timer_init(&seat->done, seat_done, seat);
	err = fgv_sched_attach_vgpu(domain->sched, vm->weight, seat, 0, &seat->vgpu);
	if (err == 0)
		err = fgv_sched_attach_session(seat->vgpu, seat, 0, &seat->session);
	return err;
}

static void init_stream(struct seat *seat, const struct share_stream *spec)
{
	struct stream *stream = &seat->streams[seat->stream_count++];

	stream->spec = spec;
	stream->seat = seat;
	engine_timer_init(&stream->gap, stream_gap_over, stream);
	stream_next(stream);
}

/* A seat at each domain that the VM's streams need; returns the streams after its own. */
static int init_vm(struct share_world *world, const struct share_vm *vm,
		   struct share_vm_result *result, struct stream **streams)
{
	for (uint32_t d = 0; d < world->domain_count; d++) {
		struct seat *seat = NULL;
		int err;

		for (uint32_t i = 0; i < vm->stream_count; i++) {
			if (domain_of(&world->params, &vm->streams[i]) != d)
				continue;
			if (seat == NULL) {
				seat = &world->seats[world->seat_count++];
				err = init_seat(seat, &world->domains[d], vm, result, *streams);
				if (err != 0)
					return err;
			}
			init_stream(seat, &vm->streams[i]);
			(*streams)++;
		}
	}
	return 0;
}

static int allocate(struct share_world *world, const struct share_vm *vms, uint32_t count)
{
	size_t streams = 0, seats = (size_t)count * SHARE_ENGINES;

	for (uint32_t v = 0; v < count; v++)
		streams += vms[v].stream_count;
	world->seats = calloc(seats, sizeof(*world->seats));
	world->streams = calloc(streams, sizeof(*world->streams));
	if (world->seats == NULL || world->streams == NULL)
		return -ENOMEM;
	return engine_init(&world->engine, seats + streams + (size_t)DOMAIN_TIMERS * SHARE_ENGINES,
			   world->params.seed);
}

static int init_world(struct share_world *world, const struct share_vm *vms, uint32_t count,
		      struct share_result *result)
{
	uint32_t domains = world->params.by_engine ? SHARE_ENGINES : 1;
	int err = allocate(world, vms, count);
	struct stream *streams = world->streams;

	for (uint32_t d = 0; d < domains && err == 0; d++)
		err = init_domain(world, &world->domains[d]);
	for (uint32_t v = 0; v < count && err == 0; v++)
		err = init_vm(world, &vms[v], &result->vm[v], &streams);
	return err;
}

static void fini_world(struct share_world *world)
{
	for (uint32_t d = 0; d < world->domain_count; d++)
		fgv_sched_destroy(world->domains[d].sched);
	engine_fini(&world->engine);
	free(world->streams);
	free(world->seats);
	free(world);
}

/* --- Running --------------------------------------------------------------- */

static void start(struct share_world *world)
{
	for (uint32_t i = 0; i < world->seat_count; i++)
		fgv_sched_request(world->seats[i].session, 0);
	for (uint32_t d = 0; d < world->domain_count; d++)
		domain_decide_soon(&world->domains[d]);
}

/* What there was before the measurement does not count. */
static void forget(struct share_world *world)
{
	for (uint32_t i = 0; i < world->seat_count; i++) {
		seat_catch_up(&world->seats[i]);
		*world->seats[i].vm = (struct share_vm_result){.ops_per_s = 0};
	}
	world->hand_overs = world->holds = 0;
}

static void read_results(struct share_world *world, uint32_t count, struct share_result *result)
{
	double s = (double)world->params.measure_ns / FGV_NS_PER_SEC;

	for (uint32_t i = 0; i < world->seat_count; i++) {
		struct seat *seat = &world->seats[i];
		const struct fgv_sched_stats *stats = fgv_sched_session_stats(seat->session);

		seat_catch_up(seat);
		seat->vm->grants += stats->grants;
		seat->vm->longest_wait_ns =
			fgv_max_u64(seat->vm->longest_wait_ns, stats->wait.max_ns);
	}
	for (uint32_t v = 0; v < count; v++) {
		for (int e = 0; e < SHARE_ENGINES; e++)
			result->vm[v].work_ns[e] /= s;
		result->vm[v].ops_per_s /= s;
	}
	result->hand_overs = world->hand_overs;
	result->holds = world->holds;
	result->events = world->engine.fired;
	result->starved = world->starved;
}

int share_run(const struct share_params *params, const struct share_vm *vms, uint32_t count,
	      struct share_result *result)
{
	struct share_world *world;
	int err = check(params, vms, count);

	if (err != 0)
		return err;
	world = calloc(1, sizeof(*world));
	if (world == NULL)
		return -ENOMEM;
	world->params = *params;
	err = init_world(world, vms, count, result);
	if (err == 0) {
		start(world);
		engine_run(&world->engine, params->warm_up_ns);
		forget(world);
		engine_run(&world->engine, params->warm_up_ns + params->measure_ns);
		read_results(world, count, result);
	}
	fini_world(world);
	return err;
}
