/*
 * How much of a soft device's memory its processes have: a page for each, which that process alone
 * writes, and all of them read. There is no lock, so nothing to hold when killed: a process adds to
 * its own page, takes the sum, and takes its addition back if that is more than the device has. Two
 * that race for the last bytes may both fail. The daemon clears a page when its process has ended.
 *
 * A process that says less than it has gets memory of the host that its limits allow it anyway. One
 * that says more keeps others from theirs; so pages are given out only where memory that is too
 * little is the point (key overcommit), on a device that is for tries and tests.
 */
#ifndef FGV_SOFTGPU_LEDGER_H
#define FGV_SOFTGPU_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define SOFTGPU_LEDGER_PAGES 512

struct softgpu_ledger_page {
	uint64_t used_bytes;
	uint8_t reserved[4096 - sizeof(uint64_t)];
};

/* The first page is the daemon's. */
struct softgpu_ledger {
	uint32_t bound; /* the pages behind number @bound were never used */
	uint8_t reserved[4096 - sizeof(uint32_t)];
	struct softgpu_ledger_page pages[SOFTGPU_LEDGER_PAGES];
};

/* A process's way to it. */
struct softgpu_purse {
	const struct softgpu_ledger *ledger; /* NULL: the memory is this process's alone */
	struct softgpu_ledger_page *own;
};

static inline uint64_t softgpu_ledger_sum(const struct softgpu_purse *purse)
{
	uint32_t bound = __atomic_load_n(&purse->ledger->bound, __ATOMIC_SEQ_CST);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < bound; i++) {
		uint64_t used =
			__atomic_load_n(&purse->ledger->pages[i].used_bytes, __ATOMIC_SEQ_CST);

		sum = used > UINT64_MAX - sum ? UINT64_MAX : sum + used;
	}
	return sum;
}

#endif
