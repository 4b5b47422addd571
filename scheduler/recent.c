/*
 * Recent use; see recent.h. A part's place in the ring is its number modulo the ring's length;
 * what lies between two times is a part of the use as large as its part of the time.
 */
#include "scheduler/recent.h"

#include "common/util.h"

#define RING (FGV_RECENT_PARTS + 1)

static uint64_t portion(uint64_t whole, uint64_t part, uint64_t of)
{
	return (uint64_t)((double)whole * (double)part / (double)of);
}

/* A part that is older than what its place keeps is out of the second. */
static void add_to(struct fgv_recent *recent, uint64_t number, uint64_t used_ns)
{
	__typeof__(&recent->part[0]) part = &recent->part[number % RING];

	if ((int32_t)((uint32_t)number - part->number) < 0)
		return;
	if (part->number != (uint32_t)number) {
		part->number = (uint32_t)number;
		part->used_ns = 0;
	}
	part->used_ns = (uint32_t)fgv_min_u64(UINT32_MAX, part->used_ns + used_ns);
}

void fgv_recent_add(struct fgv_recent *recent, uint64_t used_ns, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t number = from_ns / FGV_RECENT_PART_NS;
	uint64_t last = to_ns / FGV_RECENT_PART_NS;

	if (last >= number + RING) {
		uint64_t start_ns = (last - RING + 1) * FGV_RECENT_PART_NS;

		used_ns = portion(used_ns, to_ns - start_ns, to_ns - from_ns);
		from_ns = start_ns;
		number = last - RING + 1;
	}
	for (; number < last; number++) {
		uint64_t end_ns = (number + 1) * FGV_RECENT_PART_NS;
		uint64_t part_ns = portion(used_ns, end_ns - from_ns, to_ns - from_ns);

		add_to(recent, number, part_ns);
		used_ns -= part_ns;
		from_ns = end_ns;
	}
	add_to(recent, last, used_ns);
}

void fgv_recent_fetch(const struct fgv_recent *recent, uint64_t now_ns)
{
	__builtin_prefetch(&recent->part[now_ns / FGV_RECENT_PART_NS % RING]);
}

/* What is known of part @number. */
static uint64_t part(const struct fgv_recent *recent, uint64_t number)
{
	uint64_t place = number % RING;

	return recent->part[place].number == (uint32_t)number ? recent->part[place].used_ns : 0;
}

void fgv_recent_merge(struct fgv_recent *recent, const struct fgv_recent *from, uint64_t now_ns)
{
	uint64_t last = now_ns / FGV_RECENT_PART_NS;

	for (uint64_t i = 0; i < RING && i <= last; i++)
		add_to(recent, last - i, part(from, last - i));
}

uint64_t fgv_recent_ns(const struct fgv_recent *recent, uint64_t now_ns)
{
	uint64_t last = now_ns / FGV_RECENT_PART_NS;
	uint64_t sum_ns = 0;

	for (uint64_t i = 0; i < FGV_RECENT_PARTS && i <= last; i++)
		sum_ns += part(recent, last - i);
	if (last >= FGV_RECENT_PARTS)
		sum_ns += portion(part(recent, last - FGV_RECENT_PARTS),
				  FGV_RECENT_PART_NS - now_ns % FGV_RECENT_PART_NS,
				  FGV_RECENT_PART_NS);
	return sum_ns;
}
