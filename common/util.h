/*
 * Small arithmetic that every folder needs. No state, no dependencies.
 */
#ifndef FGV_COMMON_UTIL_H
#define FGV_COMMON_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define FGV_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define FGV_NS_PER_SEC 1000000000ull
#define FGV_NS_PER_MS  1000000ull
#define FGV_NS_PER_US  1000ull

static inline uint64_t fgv_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t fgv_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Rounds up to a power of two @align; the caller keeps v far from 2^64. */
static inline uint64_t fgv_align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* How many there are in a grid or a block. */
static inline uint64_t fgv_extent(const uint32_t size[3])
{
	return (uint64_t)size[0] * size[1] * size[2];
}

/* The earlier of two deadlines, of which 0 is none. */
static inline uint64_t fgv_earlier_ns(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns && b_ns ? fgv_min_u64(a_ns, b_ns) : a_ns | b_ns;
}

/* CLOCK_MONOTONIC, in nanoseconds. */
static inline uint64_t fgv_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FGV_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
