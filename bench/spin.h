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

/* Of a kernel of one thread, from two lengths, so that what a launch takes does not count. */
static inline double calibrate(void)
{
	const long long length = 1000000;
	double once, twice;

	measure_each_us(1, [=](long) { spin<<<1, 1>>>(length); });
	once = measure_each_us(1, [=](long) { spin<<<1, 1>>>(length); });
	twice = measure_each_us(1, [=](long) { spin<<<1, 1>>>(2 * length); });
	return (double)length / std::max(twice - once, 1.0);
}

#endif
