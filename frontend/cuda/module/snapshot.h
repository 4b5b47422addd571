/*
 * What the host has said of all kernels of a module when it loaded it: their handles, attributes
 * and parameters by their names. A copy of it that makes sense, or none.
 *
 * Threads: it does not change.
 */
#ifndef FGV_CUDA_SNAPSHOT_H
#define FGV_CUDA_SNAPSHOT_H

#include <stdint.h>

#include "api/wire.h"

struct fgv_snapshot;

/* Of @count records, @bytes at @written, for free(). NULL: no sense in it, or no memory. */
struct fgv_snapshot *fgv_snapshot_copy(const void *written, uint64_t bytes, uint32_t count);

/* The record of the kernel @name; NULL: the module has none. */
const struct fgv_kernel_record *fgv_snapshot_find(const struct fgv_snapshot *snapshot,
						  const char *name);

/* The records in their order: the first after NULL, NULL after the last. */
const struct fgv_kernel_record *fgv_snapshot_next(const struct fgv_snapshot *snapshot,
						  const struct fgv_kernel_record *record);

/* What a record has: a struct fgv_function_info of info_len bytes, and the name. */
static inline const void *fgv_snapshot_info(const struct fgv_kernel_record *record)
{
	return record + 1;
}

static inline const char *fgv_snapshot_name(const struct fgv_kernel_record *record)
{
	return (const char *)(record + 1) + record->info_len;
}

#endif
