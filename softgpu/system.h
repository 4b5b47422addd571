/*
 * What kernels call and no module defines, because CUDA provides it: vprintf, malloc, free
 * and __assertfail. They are instructions of their own.
 */
#ifndef FGV_SOFTGPU_SYSTEM_H
#define FGV_SOFTGPU_SYSTEM_H

#include "softgpu/heap.h"
#include "softgpu/lower.h"
#include "softgpu/output.h"

/* A device's. */
struct softgpu_system {
	struct output output;
	struct heap heap;
	size_t stack_bytes; /* from here on what was set, and it changes nothing */
	size_t l2_granularity_bytes;
	size_t l2_persisting_bytes;
};

void fgv_softgpu_system_init(struct softgpu_system *system);
void fgv_softgpu_system_fini(struct softgpu_system *system);

/* Lowers the call of @name, if it is one of these and fits. */
bool fgv_lower_system_call(struct lower *l, const struct call_site *site, const char *name);

#endif
