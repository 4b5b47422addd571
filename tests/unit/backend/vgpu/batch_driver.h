/*
 * A driver for tests of batches of launches, which compares what it was given with what was asked
 * for: whatever goes together, the GPU gets the same launches in the same order as without batches.
 */
#ifndef FGV_TESTS_BATCH_DRIVER_H
#define FGV_TESTS_BATCH_DRIVER_H

#include "backend/vgpu/session.h"

#define DRIVER_FUNCTIONS 8
#define DRIVER_STREAMS	 11 /* more than have chains */
#define DRIVER_LOG_MAX	 2000
#define DRIVER_QUOTA	 (1ull << 30)

/* What it has been asked to do, and a session to ask it by. */
struct driver {
	struct fgv_session session;
	struct fgv_accounts accounts;
	struct fgv_allowance allowance;
	struct fgv_grant grant;
	unsigned wanted, executed; /* launches, since the last comparison */
	unsigned graphs, launched_graphs, updates;
	unsigned fails; /* one of so many calls about graphs fails; 0: none */
};

extern struct driver driver;

/* For a checked fixture: the GPU has work, and nobody else wants it. */
void driver_setup(void);
/* Nothing is left. */
void driver_teardown(void);

struct fgv_gpu_stream *driver_stream(unsigned number);
/* The work of a stream, but not of the legacy one, is expected to take so long. */
void driver_set_ends(unsigned stream, uint64_t ns);
/* Until the end of the test. */
void driver_make_urgent(unsigned stream);

/* Launches, and notes what should come of it. The same seed makes the same arguments. */
void driver_put(unsigned function, unsigned stream, uint32_t grid, uint8_t seed);

/* All that was asked for and is not put off has been done, in this order; or all of it. */
void driver_compare_sent(void);
void driver_compare(void);

#endif
