/*
 * Events that programs of one VM share by handles (CU_EVENT_INTERPROCESS), where the VM's
 * configuration lets them (key sharing).
 *
 * Each has some words in a page that the host shows to all of them. Recording one takes the next
 * number, and has the GPU write it behind the work; whoever waits, be it a stream or a thread of
 * another program, waits for that number. So a stream that waits keeps what comes behind it on the
 * host (value.h), and no program's turn at the GPU passes with waiting for another's.
 *
 * The program that made an event records it, and no other. When it has ended nobody waits.
 *
 * Threads: any, without a lane unless one is passed.
 */
#ifndef FGV_CUDA_IPC_EVENT_H
#define FGV_CUDA_IPC_EVENT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;
struct fgv_ipc_event;

/* CUDA_ERROR_NOT_SUPPORTED, not counted, where nothing is shared. */
CUresult fgv_ipc_event_make(struct fgv_lane *lane, struct fgv_ipc_event **event);
/* One of another program. As fgv_ipc_open(). */
CUresult fgv_ipc_event_open(struct fgv_lane *lane, const CUipcEventHandle *handle,
			    struct fgv_ipc_event **event);
/* NULL is allowed. */
void fgv_ipc_event_free(struct fgv_ipc_event *event);

/* Whether it is another program's. */
bool fgv_ipc_event_is_others(const struct fgv_ipc_event *event);

/* CUDA_ERROR_INVALID_HANDLE: it is another program's. */
CUresult fgv_ipc_event_get(const struct fgv_ipc_event *event, CUipcEventHandle *handle);

/*
 * Before the record of an own one in @stream, the host's handle; and behind it. *@number goes from
 * the one to the other.
 */
CUresult fgv_ipc_event_begin(struct fgv_lane *lane, struct fgv_ipc_event *event, uint32_t stream,
			     uint64_t *number);
CUresult fgv_ipc_event_end(struct fgv_lane *lane, struct fgv_ipc_event *event, uint32_t stream,
			   uint64_t number);

/* As the calls of these names. */
CUresult fgv_ipc_event_wait(struct fgv_lane *lane, const struct fgv_ipc_event *event,
			    uint32_t stream);
CUresult fgv_ipc_event_query(struct fgv_lane *lane, const struct fgv_ipc_event *event);
CUresult fgv_ipc_event_synchronize(struct fgv_lane *lane, const struct fgv_ipc_event *event);

#endif
