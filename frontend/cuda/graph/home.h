/*
 * Where the conditions of a graph are. A condition is the host's from the start, as its number is
 * an argument of kernels. All those of a graph are in a home on the host, which is the only place
 * where a graph with them can be built.
 *
 * Threads: any for references; a home's conditions are its graph's.
 */
#ifndef FGV_CUDA_HOME_H
#define FGV_CUDA_HOME_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;
struct fgv_home;

struct fgv_condition {
	uint64_t number; /* by which kernels set it */
	bool is_used;	 /* some node chooses by it */
};

/* With one reference, on the lane's device. */
CUresult fgv_home_create(struct fgv_lane *lane, struct fgv_home **home);
/* NULL: none. */
struct fgv_home *fgv_home_get(struct fgv_home *home);
/* The same. No lane is the caller's. */
void fgv_home_put(struct fgv_home *home);
/* Its device. */
uint32_t fgv_home_device(const struct fgv_home *home);
/* The host's handle; NULL: 0. */
uint32_t fgv_home_handle(const struct fgv_home *home);
/* All of the lane's device go from the host, when that is reset. */
void fgv_home_drain(struct fgv_lane *lane);

/* A new condition; conditions that were found before are found anew. */
CUresult fgv_home_add(struct fgv_lane *lane, struct fgv_home *home, unsigned value, unsigned flags,
		      uint64_t *number);
/* NULL: there is none, or no home. */
struct fgv_condition *fgv_home_find(const struct fgv_home *home, uint64_t number);
/* Whether something chooses by each condition. */
bool fgv_home_is_used(const struct fgv_home *home);

#endif
