/*
 * The export tables, and the functions that are in them.
 *
 * A function returns what its callers expect of it, as tables.txt's sources say; most are
 * CUresults. All may be called by any thread.
 */
#ifndef FGV_LIBCUDA_TABLES_H
#define FGV_LIBCUDA_TABLES_H

#include "frontend/cuda/context/ctx_storage.h"
#include "frontend/libcuda/driver.h"

/* Of these the runtime knows the addresses. */
extern void *const fgv_table_runtime[];
extern void *const fgv_table_integrity[];

/* The handle of the primary context, which stays as it is: inactive, if nobody has retained it. */
CUresult fgv_slot_primary(CUcontext *context, CUdevice device);

/* Memory of the library's, which a runtime writes its events into for tools. */
CUresult fgv_slot_hooks(void **buffer, size_t *len);
CUresult fgv_slot_hooks_short(void **buffer, size_t *len);

CUresult fgv_slot_current(CUcontext *context);

/* What libraries keep in contexts. NULL, and -1, is the thread's own. */
CUresult fgv_slot_put(CUcontext context, void *key, void *value, fgv_ctx_storage_end end);
CUresult fgv_slot_remove(CUcontext context, void *key);
CUresult fgv_slot_get(void **value, CUcontext context, void *key);

/* Whether @context is one behind which there is another. */
CUresult fgv_slot_check(CUcontext context, uint32_t *is_other, const void **other);
uint32_t fgv_slot_is_checked(void);

CUresult fgv_slot_integrity(uint32_t version, uint64_t seconds, void *answer);
CUresult fgv_slot_integrity_on(int on);

CUresult fgv_slot_device(CUcontext context, CUdevice *device);
CUresult fgv_slot_context_id(CUcontext context, uint64_t *id);

/* What a library holds for @stream: here, the stream itself, but for the default one. */
CUresult fgv_slot_stream(CUcontext context, CUstream stream, CUstream *own, int per_thread);
CUresult fgv_slot_stream_id(CUcontext context, CUstream own, uint64_t *id);

/* Calls @each for every function of @module; how many there are. */
typedef void (*fgv_slot_visit)(void *data, CUfunction function, CUmodule module);
uint32_t fgv_slot_functions(CUcontext context, CUmodule module, fgv_slot_visit each, void *data);

#endif
