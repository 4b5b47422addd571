/*
 * Ends kernels that take too long: what a fuzzer has made may never end by itself, and whoever
 * waits for it is in the middle of a call.
 */
#ifndef FGV_TESTS_FUZZ_WATCHDOG_H
#define FGV_TESTS_FUZZ_WATCHDOG_H

struct softgpu;

/*
 * From now on kernels of @gpu have some time each, together with what comes before them; then they
 * fault, as if the device had a limit. NULL: nothing is watched any more, before it is destroyed.
 */
void fuzz_watch(struct softgpu *gpu);

/* Has what runs there fault now, and all that is queued behind it. */
void fuzz_stop(struct softgpu *gpu);

#endif
