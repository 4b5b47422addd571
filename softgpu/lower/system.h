/*
 * What kernels call and no module defines, because CUDA provides it: vprintf, malloc, free,
 * __assertfail and cudaGraphSetConditional. They are instructions of their own.
 */
#ifndef FGV_SOFTGPU_LOWER_SYSTEM_H
#define FGV_SOFTGPU_LOWER_SYSTEM_H

#include "softgpu/heap.h"
#include "softgpu/lower/lower.h"
#include "softgpu/output.h"

#define CONDITIONS_MAX 16384

/* By their numbers - 1. Kernels set the values of those that there are. */
struct conditions {
	uint32_t values[CONDITIONS_MAX]; /* atomic */
	bool is_used[CONDITIONS_MAX];	 /* atomic */
	uint32_t next;			 /* where a new one is looked for */
};

/* False: there is none. */
bool fgv_softgpu_condition_set(struct conditions *conditions, uint64_t condition, uint32_t value);

/* A device's. */
struct softgpu_system {
	struct output output;
	struct heap heap;
	struct conditions conditions;
	size_t stack_bytes; /* from here on what was set, and it changes nothing */
	size_t l2_granularity_bytes;
	size_t l2_persisting_bytes;
};

void fgv_softgpu_system_init(struct softgpu_system *system);
void fgv_softgpu_system_fini(struct softgpu_system *system);

/* Lowers the call of @name, if it is one of these and fits. */
bool fgv_lower_system_call(struct lower *l, const struct call_site *site, const char *name);

#endif
