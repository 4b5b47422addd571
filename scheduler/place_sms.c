/*
 * How blocks spread over a GPU's multiprocessors: what the hardware does one block at a time, in
 * one look at each multiprocessor. In a round every one with room left gets a block; how many
 * rounds are complete follows from how many multiprocessors have room for so many blocks.
 */
#include "scheduler/place_priv.h"

#include <string.h>

#include "common/util.h"

uint32_t fgv_place_block_warps(const struct fgv_place_gpu *has, const struct fgv_place_need *need)
{
	uint32_t warps = need->block_warps ? need->block_warps : 1;

	return warps < has->sm_warps ? warps : has->sm_warps;
}

uint64_t fgv_place_blocks(const struct fgv_place_gpu *has, const struct fgv_place_need *need)
{
	uint32_t of_warps, of_one;

	if (!has->sm_warps)
		return 0;
	of_warps = has->sm_warps / fgv_place_block_warps(has, need);
	of_one = of_warps < has->sm_blocks ? of_warps : has->sm_blocks;
	return fgv_min_u64(need->blocks, (uint64_t)has->sms * of_one);
}

static uint32_t room(const struct fgv_place_gpu *has, const struct fgv_place_sm *sm, uint32_t warps)
{
	uint32_t blocks = has->sm_blocks - sm->blocks;
	uint32_t of_warps = (has->sm_warps - sm->warps) / warps;

	return of_warps < blocks ? of_warps : blocks;
}

/* How many have room for at least so many blocks: at_least[1] and on. */
static void count_rooms(const struct fgv_place_state *gpu, uint32_t warps,
			uint32_t at_least[FGV_PLACE_SM_MAX + 2])
{
	memset(at_least, 0, (FGV_PLACE_SM_MAX + 2) * sizeof(*at_least));
	for (uint32_t i = 0; i < gpu->has.sms; i++)
		at_least[room(&gpu->has, &gpu->sms[i], warps)]++;
	for (uint32_t i = FGV_PLACE_SM_MAX; i > 0; i--)
		at_least[i] += at_least[i + 1];
}

uint64_t fgv_place_spread(const struct fgv_place_state *gpu, uint32_t warps, uint64_t blocks,
			  uint8_t gets[FGV_PLACE_SMS_MAX], uint32_t *next_sm)
{
	uint32_t at_least[FGV_PLACE_SM_MAX + 2];
	uint64_t left = blocks;
	uint32_t rounds = 0;
	bool is_cut; /* the round after these */

	memset(gets, 0, FGV_PLACE_SMS_MAX);
	*next_sm = gpu->next_sm;
	if (!blocks)
		return 0;
	count_rooms(gpu, warps, at_least);
	while (at_least[rounds + 1] && left >= at_least[rounds + 1])
		left -= at_least[++rounds];
	is_cut = left > 0 && at_least[rounds + 1] > 0;
	if (!is_cut)
		blocks -= left;
	for (uint32_t i = 0; i < gpu->has.sms; i++) {
		uint32_t sm = (gpu->next_sm + i) % gpu->has.sms;
		uint32_t fits = room(&gpu->has, &gpu->sms[sm], warps);
		bool one_more = is_cut && left > 0 && fits > rounds;

		gets[sm] = (uint8_t)((fits < rounds ? fits : rounds) + one_more);
		left -= one_more;
		if (is_cut ? one_more : fits >= rounds && rounds > 0)
			*next_sm = (sm + 1) % gpu->has.sms;
	}
	return blocks;
}
