/* A kernel that lasts for a number of clock cycles, and how many those are. */
#ifndef FGV_BENCH_SPIN_H
#define FGV_BENCH_SPIN_H

#include "measure.h"

static __global__ void spin(long long cycles)
{
	long long begin = clock64();

	while (clock64() - begin < cycles)
		;
}

/* The shortest of some runs, as nothing makes a kernel shorter. */
static inline double shortest_us(long long cycles)
{
	double us = 1e12;

	for (int i = 0; i < 5; i++)
		us = std::min(us, measure_each_us(1, [=](long) { spin<<<1, 1>>>(cycles); }));
	return us;
}

/*
 * Of a kernel of one thread, from two lengths, so that what a launch takes does not count. It can't
 * be less than a third of the longer one, however busy the processor of a soft GPU was.
 */
static inline double calibrate(void)
{
	const long long length = 1000000;
	double once = shortest_us(length), twice = shortest_us(2 * length);

	return (double)length / std::max(twice - once, twice / 3);
}

#endif
