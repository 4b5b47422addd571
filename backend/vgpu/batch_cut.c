/*
 * Sequences by content; see batch_cut.h.
 */
#include "backend/vgpu/batch_cut.h"

#define FACTOR 0x9e3779b97f4a7c15ull /* odd, as is any power of it */

static uint64_t mix(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ull;
	return hash ^ hash >> 32;
}

uint64_t fgv_batch_hash_shape(const struct fgv_batch_shape *shape)
{
	static const uint64_t factors[] = {0xa0761d6478bd642full, 0xe7037ed1a0b428dbull,
					   0x8ebc6af09c88c6e3ull, 0x589965cc75374cc3ull,
					   0x1d8e4e27c47d124full};
	uint64_t words[sizeof(*shape) / sizeof(uint64_t)], hash = 0;

	_Static_assert(sizeof(words) == sizeof(factors), "one for each");
	memcpy(words, shape, sizeof(words));
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash += words[i] * factors[i];
	return mix(hash);
}

/* FACTOR to the power of the window's length: what the oldest has been multiplied by. */
static uint64_t leaving_factor(void)
{
	uint64_t factor = FACTOR;

	_Static_assert(FGV_BATCH_WINDOW == 32, "the fifth power of two");
	for (unsigned i = 0; i < 5; i++)
		factor *= factor;
	return factor;
}

static void roll(struct fgv_batch_cut *cut, uint64_t shape)
{
	uint64_t *oldest = &cut->shapes[cut->at];

	cut->window = cut->window * FACTOR + shape - *oldest * leaving_factor();
	*oldest = shape;
	cut->at = (cut->at + 1) % FGV_BATCH_WINDOW;
}

bool fgv_batch_cut_add(struct fgv_batch_cut *cut, const struct fgv_batch_shape *shape)
{
	uint64_t hash = fgv_batch_hash_shape(shape), value;

	roll(cut, hash);
	cut->hash = mix(cut->hash + hash) * FACTOR;
	cut->count++;
	value = mix(cut->window);
	if (cut->count == 1 || value > cut->top) {
		cut->top = value;
		cut->top_at = cut->count;
	}
	return cut->count - cut->top_at >= FGV_BATCH_BEHIND || cut->count >= FGV_BATCH_LONGEST;
}

void fgv_batch_cut_skip(struct fgv_batch_cut *cut, const struct fgv_batch_row *row)
{
	uint32_t from = row->count > FGV_BATCH_WINDOW ? row->count - FGV_BATCH_WINDOW : 0;

	for (uint32_t i = from; i < row->count; i++)
		roll(cut, fgv_batch_hash_shape(&row->kept[i].shape));
	fgv_batch_cut_begin(cut);
}
