/* Placement; see place.h. */
#include "scheduler/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/place_priv.h"

static bool may(const struct fgv_place *place, const struct fgv_place_where *where, size_t gpu)
{
	return gpu < place->count && (where->gpus >> gpu & 1);
}

static bool has_memory(const struct fgv_place *place, const struct fgv_place_need *need,
		       const struct fgv_place_where *where, size_t gpu)
{
	const struct fgv_place_state *state = &place->gpus[gpu];
	uint64_t taken = state->use.memory_bytes;

	if (taken > state->has.memory_bytes || need->memory_bytes > state->has.memory_bytes - taken)
		return false;
	return !where->free_bytes || need->memory_bytes <= where->free_bytes[gpu];
}

/* --- The rules --------------------------------------------------------------- */

static int pick_fixed(const struct fgv_place *place, const struct fgv_place_need *need,
		      const struct fgv_place_where *where)
{
	(void)need;
	for (size_t i = 0; i < place->count; i++)
		if (may(place, where, i))
			return (int)i;
	return -1;
}

static bool has_room(const struct fgv_place_state *gpu, const struct fgv_place_need *need)
{
	uint64_t blocks = fgv_place_blocks(&gpu->has, need);
	uint8_t gets[FGV_PLACE_SMS_MAX];
	uint32_t next_sm;

	return fgv_place_spread(gpu, fgv_place_block_warps(&gpu->has, need), blocks, gets,
				&next_sm) == blocks;
}

static int pick_mgb2(const struct fgv_place *place, const struct fgv_place_need *need,
		     const struct fgv_place_where *where)
{
	for (size_t i = 0; i < place->count; i++)
		if (may(place, where, i) && has_memory(place, need, where, i) &&
		    has_room(&place->gpus[i], need))
			return (int)i;
	return -1;
}

static uint64_t warps_of(const struct fgv_place_state *gpu)
{
	return gpu->use.warps;
}

static uint64_t load_of(const struct fgv_place_state *gpu)
{
	return gpu->load;
}

/* The one with the least of something, then the fewest tasks. */
static int pick_least_of(const struct fgv_place *place, const struct fgv_place_need *need,
			 const struct fgv_place_where *where,
			 uint64_t (*of)(const struct fgv_place_state *gpu))
{
	const struct fgv_place_state *best = NULL;

	for (size_t i = 0; i < place->count; i++) {
		const struct fgv_place_state *gpu = &place->gpus[i];

		if (!may(place, where, i) || !has_memory(place, need, where, i))
			continue;
		if (!best || of(gpu) < of(best) ||
		    (of(gpu) == of(best) && gpu->use.tasks < best->use.tasks))
			best = gpu;
	}
	return best ? (int)(best - place->gpus) : -1;
}

/*
 * The paper's listing of algorithm 3 starts from 0 and keeps the larger; what its text says is
 * meant, the least.
 */
static int pick_mgb3(const struct fgv_place *place, const struct fgv_place_need *need,
		     const struct fgv_place_where *where)
{
	return pick_least_of(place, need, where, warps_of);
}

static int pick_least(const struct fgv_place *place, const struct fgv_place_need *need,
		      const struct fgv_place_where *where)
{
	return pick_least_of(place, need, where, load_of);
}

static int pick_memory(const struct fgv_place *place, const struct fgv_place_need *need,
		       const struct fgv_place_where *where)
{
	for (size_t i = 0; i < place->count; i++)
		if (may(place, where, i) && has_memory(place, need, where, i))
			return (int)i;
	return -1;
}

static int pick_single(const struct fgv_place *place, const struct fgv_place_need *need,
		       const struct fgv_place_where *where)
{
	for (size_t i = 0; i < place->count; i++)
		if (may(place, where, i) && !place->gpus[i].use.tasks &&
		    has_memory(place, need, where, i))
			return (int)i;
	return -1;
}

static int pick_cores(const struct fgv_place *place, const struct fgv_place_need *need,
		      const struct fgv_place_where *where)
{
	(void)need;
	for (size_t i = 0; i < place->count; i++) {
		size_t gpu = (place->next_gpu + i) % place->count;

		if (may(place, where, gpu))
			return (int)gpu;
	}
	return -1;
}

const struct fgv_place_rule fgv_place_fixed = {"fixed", pick_fixed};
const struct fgv_place_rule fgv_place_mgb2 = {"mgb2", pick_mgb2};
const struct fgv_place_rule fgv_place_mgb3 = {"mgb3", pick_mgb3};
const struct fgv_place_rule fgv_place_least = {"least", pick_least};
const struct fgv_place_rule fgv_place_memory = {"memory", pick_memory};
const struct fgv_place_rule fgv_place_single = {"single", pick_single};
const struct fgv_place_rule fgv_place_cores = {"cores", pick_cores};

const struct fgv_place_rule *fgv_place_find(const char *name)
{
	static const struct fgv_place_rule *const rules[] = {&fgv_place_fixed, &fgv_place_mgb2,
							     &fgv_place_mgb3, &fgv_place_least};

	for (size_t i = 0; i < FGV_ARRAY_LEN(rules); i++)
		if (!strcmp(rules[i]->name, name))
			return rules[i];
	return NULL;
}

/* --- Tasks ------------------------------------------------------------------- */

int fgv_place_create(struct fgv_place **place, const struct fgv_place_gpu *gpus, size_t count)
{
	struct fgv_place *made;

	if (count < 1 || count > FGV_PLACE_GPUS_MAX)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->count = count;
	for (size_t i = 0; i < count; i++)
		made->gpus[i].has = (struct fgv_place_gpu){
			.memory_bytes = gpus[i].memory_bytes,
			.sms = (uint32_t)fgv_min_u64(gpus[i].sms, FGV_PLACE_SMS_MAX),
			.sm_blocks = (uint32_t)fgv_min_u64(gpus[i].sm_blocks, FGV_PLACE_SM_MAX),
			.sm_warps = (uint32_t)fgv_min_u64(gpus[i].sm_warps, FGV_PLACE_SM_MAX),
		};
	*place = made;
	return 0;
}

void fgv_place_destroy(struct fgv_place *place)
{
	free(place);
}

/* Whether it could go somewhere if it were alone. */
static bool could_fit(const struct fgv_place *place, const struct fgv_place_need *need,
		      const struct fgv_place_where *where)
{
	for (size_t i = 0; i < place->count; i++)
		if (may(place, where, i) && need->memory_bytes <= place->gpus[i].has.memory_bytes)
			return true;
	return false;
}

static void take(struct fgv_place_state *gpu, const struct fgv_place_need *need,
		 struct fgv_place_task *task)
{
	uint64_t blocks = fgv_place_blocks(&gpu->has, need);
	uint32_t warps = fgv_place_block_warps(&gpu->has, need), next_sm;

	task->block_warps = warps;
	task->memory_bytes = fgv_min_u64(need->memory_bytes, gpu->has.memory_bytes);
	task->warps = blocks * warps;
	fgv_place_spread(gpu, warps, blocks, task->blocks, &next_sm);
	gpu->next_sm = next_sm;
	for (uint32_t i = 0; i < gpu->has.sms; i++) {
		gpu->sms[i].blocks = (uint8_t)(gpu->sms[i].blocks + task->blocks[i]);
		gpu->sms[i].warps = (uint8_t)(gpu->sms[i].warps + task->blocks[i] * warps);
	}
	gpu->use.memory_bytes += task->memory_bytes;
	gpu->use.warps += task->warps;
	gpu->use.tasks++;
}

int fgv_place_put(struct fgv_place *place, const struct fgv_place_rule *rule,
		  const struct fgv_place_need *need, const struct fgv_place_where *where,
		  struct fgv_place_task *task)
{
	int gpu = rule->pick(place, need, where);

	if (gpu < 0)
		return could_fit(place, need, where) ? -EAGAIN : -E2BIG;
	task->gpu = (uint32_t)gpu;
	place->next_gpu = ((uint32_t)gpu + 1) % (uint32_t)place->count;
	take(&place->gpus[gpu], need, task);
	return 0;
}

void fgv_place_take_back(struct fgv_place *place, const struct fgv_place_task *task)
{
	struct fgv_place_state *gpu = &place->gpus[task->gpu];

	for (uint32_t i = 0; i < gpu->has.sms; i++) {
		gpu->sms[i].blocks = (uint8_t)(gpu->sms[i].blocks - task->blocks[i]);
		gpu->sms[i].warps =
			(uint8_t)(gpu->sms[i].warps - task->blocks[i] * task->block_warps);
	}
	gpu->use.memory_bytes -= task->memory_bytes;
	gpu->use.warps -= task->warps;
	gpu->use.tasks--;
}

void fgv_place_charge(struct fgv_place *place, struct fgv_place_task *task, uint64_t memory_bytes)
{
	struct fgv_place_state *gpu = &place->gpus[task->gpu];

	memory_bytes = fgv_min_u64(memory_bytes, gpu->has.memory_bytes);
	gpu->use.memory_bytes += memory_bytes - task->memory_bytes;
	task->memory_bytes = memory_bytes;
}

void fgv_place_set_load(struct fgv_place *place, uint32_t gpu, uint64_t load)
{
	place->gpus[gpu].load = load;
}

void fgv_place_look(const struct fgv_place *place, uint32_t gpu, struct fgv_place_use *use)
{
	*use = place->gpus[gpu].use;
}
