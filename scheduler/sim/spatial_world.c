/* Blocks on multiprocessors; see spatial_world.h. */
#include "scheduler/sim/spatial_world.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "common/util.h"
#include "scheduler/sched.h"
#include "scheduler/sim/engine.h"

/* Room of a multiprocessor: that for any number of blocks in the paper's table is a whole number.
 */
#define SM_ROOM 240

#define GROUPS_MAX 256 /* at least the blocks that a GPU holds at a time */

/* Blocks that were placed at the same time. */
struct group {
	uint64_t end_ns;
	uint32_t blocks;
};

struct app {
	struct spatial_load load;
	uint32_t block_room;
	uint64_t block_ns;
	uint64_t left; /* kernels, this one included */
	uint64_t came_ns;
	uint32_t unplaced; /* blocks of this kernel */
	struct group groups[GROUPS_MAX];
	uint64_t first, end; /* groups that run */
	bool launched, placed;
	uint32_t own_room; /* what the policy has granted */
	uint64_t granted_ns;
	uint32_t *room;
	double sum_ms, wait_ms;
	uint64_t done;
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
};

struct world {
	struct app apps[SPATIAL_APPS];
	struct fgv_sched *sched; /* NULL: MPS */
	uint32_t room;
	uint64_t now_ns;
	struct engine random;
};

static int begin(struct world *world, struct app *app, const struct spatial_load *load)
{
	const struct spatial_kernel *kernel = load->kernel;
	uint32_t at_once = SPATIAL_SMS * kernel->per_sm;
	uint32_t waves = (kernel->blocks + at_once - 1) / at_once;

	if (SM_ROOM % kernel->per_sm != 0 || at_once > GROUPS_MAX)
		return -EINVAL;
	*app = (struct app){
		.load = *load,
		.block_room = SM_ROOM / kernel->per_sm,
		.block_ns = (uint64_t)(kernel->ms * FGV_NS_PER_MS / waves),
		.left = load->kernels,
		.came_ns = load->from_ns,
		.room = world->sched ? &app->own_room : &world->room,
	};
	return 0;
}

/* --- The policy ------------------------------------------------------------------ */

static int attach(struct world *world, const struct sim_params *params, bool lends,
		  const struct spatial_load *loads)
{
	struct fgv_sched_params sched = params->sched;
	int err;

	sched.units = SPATIAL_SMS;
	sched.lends = lends;
	err = fgv_sched_create(&world->sched, &fgv_policy_smguard, &sched, 0);
	for (unsigned int i = 0; i < SPATIAL_APPS && err == 0; i++) {
		struct app *app = &world->apps[i];

		err = begin(world, app, &loads[i]);
		if (err == 0)
			err = fgv_sched_attach_vgpu(world->sched, 1, NULL, 0, &app->vgpu);
		if (err == 0)
			err = fgv_sched_set_units(app->vgpu, loads[i].sms, 0);
		if (err == 0)
			err = fgv_sched_attach_session(app->vgpu, app, 0, &app->session);
	}
	return err;
}

static void grant(struct world *world)
{
	struct fgv_sched_decision d;

	while (world->sched && fgv_sched_decide(world->sched, world->now_ns, &d)) {
		struct app *app;

		if (d.action != FGV_SCHED_GRANT)
			continue;
		app = fgv_sched_session_owner(d.session);
		app->own_room = (uint32_t)__builtin_popcountll(d.units) * SM_ROOM;
		app->granted_ns = world->now_ns;
	}
}

/* What it was granted is given back with the kernel. */
static void give_back(struct world *world, struct app *app)
{
	if (!world->sched)
		return;
	app->own_room = 0;
	fgv_sched_release(app->session, world->now_ns - app->granted_ns, false, world->now_ns);
}

/* --- Kernels --------------------------------------------------------------------- */

static void launch(struct world *world, struct app *app)
{
	app->launched = true;
	app->placed = false;
	app->unplaced = app->load.kernel->blocks;
	if (world->sched)
		fgv_sched_request(app->session, world->now_ns);
}

static void place(struct world *world, struct app *app)
{
	uint32_t blocks = *app->room / app->block_room;

	if (blocks > app->unplaced)
		blocks = app->unplaced;
	if (blocks == 0)
		return;
	if (!app->placed)
		app->wait_ms += (double)(world->now_ns - app->came_ns) / FGV_NS_PER_MS;
	app->placed = true;
	app->unplaced -= blocks;
	*app->room -= blocks * app->block_room;
	app->groups[app->end++ % GROUPS_MAX] =
		(struct group){world->now_ns + app->block_ns, blocks};
}

/* In one room, all blocks of the kernel that came first are placed before the other's. */
static void place_all(struct world *world)
{
	struct app *first = &world->apps[0], *second = &world->apps[1];

	if (second->came_ns < first->came_ns) {
		first = second;
		second = &world->apps[0];
	}
	place(world, first);
	if (world->sched || first->unplaced == 0)
		place(world, second);
}

static void kernel_done(struct world *world, struct app *app)
{
	app->sum_ms += (double)(world->now_ns - app->came_ns) / FGV_NS_PER_MS;
	app->done++;
	app->launched = false;
	if (app->left != SPATIAL_ENDLESS)
		app->left--;
	give_back(world, app);
	app->came_ns = world->now_ns +
		       (uint64_t)(2 * engine_draw(&world->random) * (double)app->load.gap_ns);
}

static void end_blocks(struct world *world, struct app *app)
{
	while (app->first < app->end) {
		const struct group *group = &app->groups[app->first % GROUPS_MAX];

		if (group->end_ns > world->now_ns)
			return;
		*app->room += group->blocks * app->block_room;
		app->first++;
	}
	if (app->launched && !app->unplaced)
		kernel_done(world, app);
}

/* --- Time ------------------------------------------------------------------------ */

static uint64_t next_ns(const struct app *app)
{
	if (app->first < app->end)
		return app->groups[app->first % GROUPS_MAX].end_ns;
	return app->launched || app->left == 0 ? UINT64_MAX : app->came_ns;
}

static bool is_done(const struct world *world)
{
	bool is_done = true;

	for (unsigned int i = 0; i < SPATIAL_APPS; i++)
		is_done &= world->apps[i].left == 0 || world->apps[i].left == SPATIAL_ENDLESS;
	return is_done;
}

static int run(struct world *world)
{
	while (!is_done(world)) {
		uint64_t next = UINT64_MAX;

		for (unsigned int i = 0; i < SPATIAL_APPS; i++)
			next = fgv_min_u64(next, next_ns(&world->apps[i]));
		if (next == UINT64_MAX)
			return -EDEADLK; /* a kernel that has no room, and never will */
		world->now_ns = fgv_max_u64(world->now_ns, next);
		for (unsigned int i = 0; i < SPATIAL_APPS; i++)
			end_blocks(world, &world->apps[i]);
		for (unsigned int i = 0; i < SPATIAL_APPS; i++) {
			struct app *app = &world->apps[i];

			if (!app->launched && app->left && app->came_ns <= world->now_ns)
				launch(world, app);
		}
		grant(world);
		place_all(world);
	}
	return 0;
}

int spatial_together(const struct sim_params *params, enum spatial_mode mode,
		     const struct spatial_load loads[SPATIAL_APPS],
		     struct spatial_result results[SPATIAL_APPS])
{
	struct world world = {.room = SPATIAL_SMS * SM_ROOM, .random = {.seed = 1}};
	int err = 0;

	if (mode != SPATIAL_MPS)
		err = attach(&world, params, mode == SPATIAL_LENT, loads);
	for (unsigned int i = 0; i < SPATIAL_APPS && mode == SPATIAL_MPS && err == 0; i++)
		err = begin(&world, &world.apps[i], &loads[i]);
	if (err == 0)
		err = run(&world);
	for (unsigned int i = 0; i < SPATIAL_APPS; i++) {
		const struct app *app = &world.apps[i];

		results[i] = (struct spatial_result){
			.done = app->done,
			.mean_ms = app->done ? app->sum_ms / (double)app->done : NAN,
			.wait_ms = app->done ? app->wait_ms / (double)app->done : NAN,
		};
	}
	fgv_sched_destroy(world.sched);
	return err;
}
