/*
 * What the workloads share: the command line, random input, checking of CUDA calls, the
 * loop that launches, the clock, and the lines that a workload prints. A workload is one
 * CUDA C++ program in one file; it knows nothing of where its device comes from.
 *
 * The last line on stdout, and the only one unless --seconds or --start-at is given,
 * consists of key=value words:
 *
 *	workload=NAME device=NAME size=N iterations=N seconds=S units=U units_per_second=R
 *	[kernel_us=K] [event_seconds=E] digest=D verified=yes|no
 *
 * seconds is the time from the first launch until the device has finished the last; making
 * the context, memory, calibration and checking are not in it. units is the work done, as
 * --help counts it; at one size it is proportional to what the device had to do. kernel_us
 * is what one kernel takes on the device, with what lies between two of them; it is
 * measured before the clock starts, under --kernel-us, --seconds and --start-at.
 * event_seconds, under --events, is the device's time from the first kernel of each batch
 * to its last, a batch being what is launched between two synchronizations.
 *
 * Other lines begin with a word of their own, and are flushed:
 *
 *	ready workload=NAME size=N kernel_us=K	under --start-at, before the wait
 *	progress workload=NAME second=N units=U elapsed=S [event_seconds=E]
 *
 * Progress comes under --seconds with the first synchronization after each full second;
 * elapsed is the exact time of it, and units and event_seconds are those until then.
 *
 * The exit status is 0 only if the result was verified, 1 if it was wrong, a CUDA call failed
 * (then one line on stderr names the call and the error) or memory was short (which a line
 * says), 2 for a wrong command line.
 */
#ifndef FGV_WORKLOAD_H
#define FGV_WORKLOAD_H

#include <cuda_runtime.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <new>
#include <vector>

/*
 * A program derives from this, sets the first group and gives the functions; the rest is
 * for the command line and the loop. An iteration i computes from the result of i - 1,
 * except that every round-th starts from the input again: so the processor can check a
 * run of any length, and no rounding error grows without end.
 */
struct workload {
	const char *name;
	const char *about;	 /* one line for --help */
	const char *size_about;	 /* what --size counts, for --help */
	const char *units_about; /* what units= counts, for --help */
	long size;		 /* the default, then what was asked for */
	long max_size;		 /* at least 1 is always asked for */
	long iterations;	 /* the default, then what was asked for */
	long sync_every;	 /* iterations between two synchronizations */
	long queries;		 /* cudaStreamQuery() after each iteration */
	long round;
	int kernels;	/* in one iteration */
	bool copies;	/* ... or copies, and no kernel at all */
	double growth;	/* a kernel's time grows about with this power of size */
	bool can_graph; /* an iteration is kernels alone, all of them in @stream */

	double run_s;	  /* --seconds; 0: iterations are counted instead */
	double kernel_us; /* asked for, then measured; 0: not */
	double burst_s, sleep_s;
	const char *start_at;
	bool time_events;
	bool as_graph;
	cudaStream_t stream;   /* NULL, but for what is captured */
	cudaGraphExec_t graph; /* of the last batch, or NULL */

	char device[256]; /* its name, spaces made underscores */
	cudaEvent_t first, last;
	unsigned long long *count; /* on the device: kernels that ran since load() */
	long done;		   /* iterations that have ended by the clock */
	double seconds;
	double event_seconds;
	mutable uint64_t digest; /* of all bytes of the result: equal results have equal ones */

	/* Units of work in one iteration. */
	virtual double units() const = 0;
	/* Makes host and device memory for size, the host's filled. */
	virtual void allocate() = 0;
	/* Puts the input on the device, and poison where results will be. */
	virtual void load() = 0;
	/* Launches iteration @i, counted from 0 since load(). */
	virtual void step(long i) = 0;
	/* Brings the result of the last iteration back and compares it with the processor's. */
	virtual bool verify() = 0;
	/* Gives back what allocate() made on the device. */
	virtual void release() = 0;
};

/* Stops the program with the call's name and error on stderr if it failed. */
#define CUDA(w, call) workload_cuda((w), (call), #call)

static inline double workload_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void workload_print_events(const struct workload *w)
{
	if (w->time_events)
		printf(" event_seconds=%.6f", w->event_seconds);
}

/* Prints the line and ends the program. */
[[noreturn]] static inline void workload_finish(const struct workload *w, bool verified)
{
	double units = (double)w->done * w->units();

	printf("workload=%s device=%s size=%ld iterations=%ld seconds=%.6f units=%.0f "
	       "units_per_second=%.6g",
	       w->name, w->device[0] ? w->device : "unknown", w->size, w->done, w->seconds, units,
	       w->seconds > 0 ? units / w->seconds : 0);
	if (w->kernel_us > 0)
		printf(" kernel_us=%.3f", w->kernel_us);
	workload_print_events(w);
	printf(" digest=%016" PRIx64 " verified=%s\n", w->digest, verified ? "yes" : "no");
	exit(verified && fflush(stdout) == 0 ? 0 : 1);
}

static inline void workload_cuda(const struct workload *w, cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s: %s (%s)\n", w->name, call, cudaGetErrorString(error),
		cudaGetErrorName(error));
	workload_finish(w, false);
}

/* The next number of a sequence that is the same in every run (splitmix64). */
static inline uint64_t workload_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Fills @values with random numbers from @low to @high; @seed tells one input from another. */
static inline void workload_fill(float *values, size_t count, float low, float high, uint64_t seed)
{
	for (size_t i = 0; i < count; i++)
		values[i] = low + (high - low) * ((float)(workload_random(&seed) >> 40) * 0x1p-24f);
}

/*
 * Poison for results: NaN in every element, on the device and, with memset(), on the
 * host. What a kernel or a copy leaves unwritten never passes workload_close().
 */
#define WORKLOAD_POISON 0xff

/* Every kernel calls this: a launch that got lost in an earlier round is missed by the count. */
__device__ static inline void workload_count(unsigned long long *count)
{
	if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0)
		++*count;
}

/* Fills memory with random bits. */
static inline void workload_fill_bytes(void *memory, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t bits = workload_random(&seed);

		memcpy((char *)memory + i, &bits,
		       bytes - i < sizeof(bits) ? bytes - i : sizeof(bits));
	}
}

/* How many iterations the result is away from the input, after all of them. */
static inline long workload_depth(const struct workload *w)
{
	return (w->done - 1) % w->round + 1;
}

/* Says whether a result is the reference within @tolerance, which is absolute. */
static inline bool workload_close(const struct workload *w, float result, double reference,
				  double tolerance, size_t index)
{
	if (fabs((double)result - reference) <= tolerance) /* false for NaN */
		return true;
	fprintf(stderr, "%s: element %zu is %.9g, not %.9g\n", w->name, index, (double)result,
		reference);
	return false;
}

/* Says whether a number that is counted, not measured, is the reference. */
static inline bool workload_same(const struct workload *w, long long result, long long reference,
				 size_t index)
{
	if (result == reference)
		return true;
	fprintf(stderr, "%s: element %zu is %lld, not %lld\n", w->name, index, result, reference);
	return false;
}

/* Says whether none of @results is poison. */
static inline bool workload_all_written(const struct workload *w, const float *results,
					size_t amount)
{
	for (size_t i = 0; i < amount; i++)
		if (isnan(results[i]))
			return workload_close(w, results[i], 0, 0, i);
	return true;
}

/* The @i-th of @samples elements to compare out of @amount: all, if there are no more. */
static inline size_t workload_sample(size_t i, size_t samples, size_t amount, uint64_t *dice)
{
	return amount > samples ? workload_random(dice) % amount : i;
}

/* FNV-1a, of words, and of bytes where there is no whole word. */
static inline uint64_t workload_digest(uint64_t digest, const void *data, size_t bytes)
{
	const unsigned char *at = (const unsigned char *)data;
	uint64_t word;

	for (; bytes >= sizeof(word); at += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		digest = (digest ^ word) * 0x100000001b3;
		digest ^= digest >> 32;
	}
	for (; bytes; at++, bytes--)
		digest = (digest ^ *at) * 0x100000001b3;
	return digest;
}

/* Fills @to from the device. */
template <typename T>
static inline void workload_fetch(const struct workload *w, std::vector<T> &to, const T *from)
{
	size_t bytes = to.size() * sizeof(T);

	memset((void *)to.data(), WORKLOAD_POISON, bytes);
	CUDA(w, cudaMemcpy(to.data(), from, bytes, cudaMemcpyDeviceToHost));
	w->digest = workload_digest(w->digest, to.data(), bytes);
}

#include "workload_options.h"
#include "workload_loop.h"

#endif
