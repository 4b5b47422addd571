/*
 * Events. CUDA_ERROR_INVALID_HANDLE for what is none, CUDA_ERROR_INVALID_VALUE for a missing
 * out-parameter or unknown flags; else the codes of captures and of the session.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_EVENT_H
#define FGV_CUDA_EVENT_H

#include <cuda.h>
#include <stdbool.h>

struct fgv_lane;
struct fgv_object_info;

/* @flags: of CUevent_flags. */
CUresult fgv_event_create(CUevent *event, unsigned flags);

/* One that the program does not see: the host's handle of it. */
CUresult fgv_event_make(struct fgv_lane *lane, unsigned flags, uint32_t *handle);
void fgv_event_unmake(struct fgv_lane *lane, uint32_t handle);

/*
 * A handle of one with CU_EVENT_INTERPROCESS, and what such a handle of another program of the VM
 * stands for (ipc_event.h).
 */
CUresult fgv_event_get_handle(CUipcEventHandle *handle, CUevent event);
CUresult fgv_event_open_handle(CUevent *event, const CUipcEventHandle *handle);

CUresult fgv_event_destroy(CUevent event);

/* @flags: of CUevent_record_flags. */
CUresult fgv_event_record(CUevent event, CUstream stream, unsigned flags);

/* What comes next in @stream waits for @event. @flags: of CUevent_wait_flags. */
CUresult fgv_event_wait(CUstream stream, CUevent event, unsigned flags);

CUresult fgv_event_query(CUevent event); /* CUDA_ERROR_NOT_READY */
CUresult fgv_event_synchronize(CUevent event);
CUresult fgv_event_elapsed(float *ms, CUevent start, CUevent end);

/* For the core: what @event is; false: none. */
bool fgv_event_find(CUevent event, struct fgv_object_info *info);

/* For the core: whether a launch may record @event, with @flags. */
CUresult fgv_event_check(CUevent event, int flags);

/*
 * For the core: records @event behind the kernel that was just launched in @stream. In a capture,
 * what waits for the event waits for the kernel's node as @edge says.
 */
CUresult fgv_event_record_behind(CUevent event, CUstream stream, const CUgraphEdgeData *edge);

/* For the reset of a device alone: destroys all events. */
void fgv_event_drain(struct fgv_lane *lane);

#endif
