/*
 * What the processor spends on the calling thread outside the kernel: its cycles, where the
 * machine counts them for us, else the thread's time in nanoseconds.
 *
 * Threads: a counter is the one's that has opened it.
 */
#ifndef FGV_BENCH_COUNTER_H
#define FGV_BENCH_COUNTER_H

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct counter {
	int fd; /* negative: there is none */
	const char *unit;
	unsigned long long looking; /* what two looks at it in turn are apart */
};

static inline int counter_open_as(__u32 type, __u64 config)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* So far; 0 where nothing counts. */
static inline unsigned long long counter_read(const struct counter *counter)
{
	unsigned long long count;

	if (counter->fd < 0 || read(counter->fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

/* Since @before, but for the looking. */
static inline unsigned long long counter_since(const struct counter *counter,
					       unsigned long long before)
{
	unsigned long long spent = counter_read(counter) - before;

	return spent > counter->looking ? spent - counter->looking : 0;
}

static inline struct counter counter_open(void)
{
	struct counter counter = {
		counter_open_as(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES), "cycles", 0};
	unsigned long long least = ~0ull;

	if (counter.fd < 0) {
		counter.fd = counter_open_as(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
		counter.unit = counter.fd < 0 ? "none" : "ns";
	}
	for (int i = 0; i < 100; i++) {
		unsigned long long apart = counter_since(&counter, counter_read(&counter));

		least = apart < least ? apart : least;
	}
	counter.looking = least;
	return counter;
}

#endif
