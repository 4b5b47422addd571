/*
 * The memory of the device that this process knows of: what it has allocated, and the
 * variables of its modules; and the host memory that the device sees. It answers what CUDA answers
 * about pointers without asking the GPU: whether one is a device pointer at all, and how far its
 * allocation goes.
 *
 * What it does not know need not be wrong: a kernel may have stored the address of a
 * variable that the host has never asked for. Such an address is for the host to judge.
 *
 * Threads: any. One mutex inside, which the allocation that a thread found last does
 * without.
 */
#ifndef FGV_CUDA_ADDRMAP_H
#define FGV_CUDA_ADDRMAP_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

enum fgv_range_kind {
	FGV_RANGE_MEMORY,   /* cudaMalloc */
	FGV_RANGE_VARIABLE, /* of a module; not for cudaFree */
	FGV_RANGE_POOLED,   /* cudaMallocAsync (pool.h) */
	FGV_RANGE_GRAPH,    /* of graphs */
	FGV_RANGE_MAPPED,   /* cuMemMap (vmem.h); those side by side are one to whoever copies */
	/* From here on, memory of this process as well (hostmem.h). */
	FGV_RANGE_PINNED,	    /* cudaHostAlloc */
	FGV_RANGE_REGISTERED,	    /* cudaHostRegister */
	FGV_RANGE_MANAGED,	    /* cudaMallocManaged */
	FGV_RANGE_MANAGED_VARIABLE, /* of a module; not for cudaFree */
};

static inline bool fgv_range_is_host(enum fgv_range_kind kind)
{
	return kind >= FGV_RANGE_PINNED;
}

static inline bool fgv_range_is_managed(enum fgv_range_kind kind)
{
	return kind >= FGV_RANGE_MANAGED;
}

enum fgv_range_fit {
	FGV_FIT_INSIDE,	 /* all of it lies in one allocation, or in mappings side by side */
	FGV_FIT_BEYOND,	 /* it starts in one and goes past its end */
	FGV_FIT_UNKNOWN, /* it starts in none */
};

/* -ENOMEM; a range that overlaps others replaces them: the host's word counts. */
int fgv_addrmap_add(uint64_t start, uint64_t len, enum fgv_range_kind kind);
/* The same of device @device, whichever the thread works on. */
int fgv_addrmap_add_on(uint32_t device, uint64_t start, uint64_t len, enum fgv_range_kind kind);

/* -ENOENT unless memory was allocated exactly there. */
int fgv_addrmap_remove(uint64_t start, enum fgv_range_kind kind);

/* Calls @each with the start of every allocation of @kind on @device and forgets it. */
void fgv_addrmap_drain(uint32_t device, enum fgv_range_kind kind,
		       void (*each)(uint64_t start, void *arg), void *arg);

struct fgv_range_view {
	uint64_t start;
	uint64_t len;
	uint64_t id;	   /* of the process's life */
	CUcontext context; /* what the thread that made it worked in; NULL: none */
	enum fgv_range_kind kind;
	uint32_t device; /* that has it; of host memory, on which the thread worked that made it */
};

/* @view: the allocation that it starts in; unchanged where it starts in none. */
enum fgv_range_fit fgv_addrmap_look(uint64_t start, uint64_t len, struct fgv_range_view *view);

/*
 * The ordinal of the device that has the memory at @address: host memory is the first one's, and
 * what is not known is taken to be the thread's.
 */
uint32_t fgv_addrmap_device(uint64_t address);

static inline enum fgv_range_fit fgv_addrmap_fit(uint64_t start, uint64_t len)
{
	struct fgv_range_view view;

	return fgv_addrmap_look(start, len, &view);
}

/*
 * Keeps device addresses [base, base + len) from ever being host addresses here
 * too: reserves the range, where nothing lies in it yet. A length of 0 is no range.
 * -EEXIST where something does, or another negative errno; then a host pointer may
 * look like a device pointer.
 */
int fgv_addrmap_reserve(uint64_t base, uint64_t len);

/*
 * Whether @address lies in a range that is reserved or claimed, so that it can't be a host pointer,
 * whatever the device has there.
 */
bool fgv_addrmap_is_reserved(uint64_t address);

/*
 * The same for one allocation, where it is not known beforehand which addresses the device
 * gives: for good, as freed addresses are given again. -EEXIST where memory of the program
 * lies there already; another negative errno if the kernel does not let it be known.
 */
int fgv_addrmap_claim(uint64_t start, uint64_t len);

#endif
