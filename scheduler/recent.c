/*
 * Recent use; see recent.h. A part's place in the ring is its number modulo the ring's length;
 * what lies between two times is a part of the use as large as its part of the time.
 */
#include "scheduler/recent.h"

#include <stdbool.h>

#define RING (FGV_RECENT_PARTS + 1)

/* Time has reached @number: the parts that it has passed are empty. */
static void advance(struct fgv_recent *recent, uint64_t number)
{
	if (number > recent->newest + RING)
		recent->newest = number - RING;
	while (recent->newest < number)
		recent->part_ns[++recent->newest % RING] = 0;
}

static uint64_t portion(uint64_t whole, uint64_t part, uint64_t of)
{
	return (uint64_t)((double)whole * (double)part / (double)of);
}

static bool is_kept(const struct fgv_recent *recent, uint64_t number)
{
	return number <= recent->newest && number + RING > recent->newest;
}

static void add_to(struct fgv_recent *recent, uint64_t number, uint64_t used_ns)
{
	advance(recent, number);
	if (is_kept(recent, number))
		recent->part_ns[number % RING] += used_ns;
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

/* What is known of part @number. */
static uint64_t part(const struct fgv_recent *recent, uint64_t number)
{
	return is_kept(recent, number) ? recent->part_ns[number % RING] : 0;
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
