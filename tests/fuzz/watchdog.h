/*
 * Ends kernels that take too long: what a fuzzer has made may never end by itself, and whoever
 * waits for it is in the middle of a call.
 */
#ifndef FGV_TESTS_FUZZ_WATCHDOG_H
#define FGV_TESTS_FUZZ_WATCHDOG_H

#include <stdint.h>

struct softgpu;

#define FUZZ_WATCHED 2 /* devices at once */

/*
 * What runs on @gpu, number @number of them, has @limit_ns from now on, all together; then it
 * faults, as if the device had a limit. NULL: no more, as before a device is destroyed.
 */
void fuzz_watch(unsigned number, struct softgpu *gpu, uint64_t limit_ns);

/* Has what runs there fault now, and all that is queued behind it. */
void fuzz_stop(struct softgpu *gpu);

#endif
