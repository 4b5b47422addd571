/*
 * The state of a vGPU process: one session, from its setup to its end. There is one
 * instance, main()'s. Used by the files of this folder only.
 *
 * Threads: the dispatcher's, but for is_over, which the watcher (watch.h) sets.
 */
#ifndef FGV_VGPU_SESSION_H
#define FGV_VGPU_SESSION_H

#include "api/gpu_host.h"
#include "backend/sched/arbiter.h"
#include "backend/shared.h"
#include "backend/vgpu/batch.h"
#include "backend/vgpu/console.h"
#include "backend/vgpu/engines.h"
#include "backend/vgpu/errands.h"
#include "backend/vgpu/freezer.h"
#include "backend/vgpu/graph.h"
#include "backend/vgpu/held.h"
#include "backend/vgpu/images/images.h"
#include "backend/vgpu/kernels.h"
#include "backend/vgpu/loans.h"
#include "backend/vgpu/mapped.h"
#include "backend/vgpu/own.h"
#include "backend/vgpu/pieces.h"
#include "backend/vgpu/quota.h"
#include "backend/vgpu/room.h"
#include "backend/vgpu/sharing.h"
#include "backend/vgpu/slices.h"
#include "backend/vgpu/sandbox/sandbox.h"
#include "backend/vgpu/stall.h"
#include "backend/vgpu/vmem.h"
#include "backend/vgpu/waits.h"
#include "common/log.h"
#include "shmring/lanes.h"

/* Of all modules that a session has loaded. */
#define FGV_IMAGES_MAX (2048ull * 1024 * 1024)

/* Bytes that all functions' handles keep of their parameters' sizes. */
#define FGV_PARAM_SIZES_MAX (64ull * 1024 * 1024)

/* Log lines that a guest can cause by modules that do not load. */
#define FGV_COMPLAINTS_MAX 4

/* What a limit of the context, once it is set, costs of the quota. */
struct fgv_limit {
	bool known;	 /* the rest is filled in */
	uint64_t first;	 /* what it was before it was set */
	uint64_t factor; /* bytes that each of it takes */
	struct fgv_charge charge;
};

struct fgv_session {
	struct fgv_prepare prepare;
	struct softgpu_purse purse; /* of the soft device's memory */
	int seat_fds[FGV_SEAT_FDS]; /* at the soft device's engine; -1 where it is CUDA */
	struct fgv_setup setup;
	struct fgv_sandbox sandbox;
	int fds[FGV_SETUP_FDS]; /* -1 where there is none */
	struct fgv_window window;
	const struct fgv_allowance *allowance; /* the VM's */
	const struct fgv_accounts *accounts;   /* of its sessions */
	struct fgv_account *account;	       /* this session's, to write */
	struct softgpu_seat *seat;
	struct fgv_gpu *gpu;
	struct fgv_gpu_costs costs;
	struct fgv_lanes *lanes;
	struct fgv_handles handles;
	struct fgv_own own[FGV_OWN_KINDS];
	struct fgv_quota quota;
	struct fgv_mapped mapped;
	struct fgv_pieces pieces; /* what it has allocated, if that may move */
	struct fgv_freezer freezer;
	struct fgv_vmem vmem;
	struct fgv_addresses addresses; /* the first part's: of all parts */
	struct fgv_sharing sharing;
	struct fgv_waits waits;
	struct fgv_loans loans;
	struct fgv_gate gate; /* of the engine that computes, or of all work */
	struct fgv_engines engines;
	struct fgv_kernels kernels;
	struct fgv_batch batch;
	struct fgv_errands errands;
	struct fgv_held held;
	struct fgv_stall stall;
	struct fgv_room room;
	struct fgv_graphs graphs;
	struct fgv_images images;
	struct fgv_slices slices;
	struct fgv_console own_console; /* the first part's */
	struct fgv_console *console;	/* of all parts */
	struct fgv_parts *parts;	/* further GPUs; of the first part alone, or NULL */
	struct fgv_session *first;	/* of which this is a further part; NULL: it is the first */
	uint32_t fault;			/* atomic, the first part's: once work of any has failed */
	struct fgv_limit limits[CU_LIMIT_MAX];
	struct fgv_charge context;
	uint32_t local_bytes;	    /* of a thread, that the GPU has for all that may run at once */
	uint64_t image_bytes;	    /* of the modules that are loaded */
	uint64_t param_sizes_bytes; /* of the functions that have handles */
	unsigned complaints;	    /* about modules, in the log */
	/* The first failure of a post that the guest has not been told of, or CUDA_SUCCESS. */
	CUresult deferred;
	uint32_t control_seq; /* up to which the socket has been read */
	uint32_t is_over;     /* atomic: the guest or the daemon has gone */
	char reason[256];     /* why the guest's session was ended, or could not begin */
	void *params[FGV_PARAMS_MAX + 1]; /* a part of a grid has one more */
	/* The message in hand; what fgv_dispatch() gets is followed by a NUL. */
	uint8_t message[FGV_MESSAGE_MAX + 1] __attribute__((aligned(16)));
};

/* Adds to a counter of the account, which has no other writer. */
static inline void fgv_account_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/*
 * Lanes, handles, quota, waits; and at the end, what they hold of the GPU. A negative errno, with
 * a reason where the context does not fit into the quota.
 */
int fgv_session_init(struct fgv_session *session);
void fgv_session_fini(struct fgv_session *session);

/* What it begins with: the books of memory. A negative errno where the context does not fit. */
int fgv_session_init_quota(struct fgv_session *session);

/* Puts a reference to @object, and destroys it with the last one. */
CUresult fgv_session_put(struct fgv_session *session, struct fgv_object *object);

/*
 * A new object of @kind, with a handle, charged @bytes, of which the caller is to make what it
 * stands for; and taking that back where it can't be made. CUDA_ERROR_OUT_OF_MEMORY where there are
 * as many as there may be, or the quota has no room.
 */
CUresult fgv_session_add(struct fgv_session *session, enum fgv_kind kind, uint64_t bytes,
			 struct fgv_object **object);
void fgv_session_abandon(struct fgv_session *session, struct fgv_object *object);

/* Its handle names nothing from now on; and puts the handle's reference. */
CUresult fgv_session_remove(struct fgv_session *session, struct fgv_object *object);
/* The same for all functions of a module. */
void fgv_session_remove_functions(struct fgv_session *session, struct fgv_object *module);

/*
 * Charges for local memory of @bytes for each thread that the GPU runs at once, which the driver
 * takes with the first launch that needs it and keeps. CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult fgv_session_grow_local(struct fgv_session *session, uint32_t bytes);

/* A post failed: keeps @status for the next call, unless there is one already. */
void fgv_session_defer(struct fgv_session *session, CUresult status);

/* Work of the part's GPU has ended so: remembers it if it is a fault, for other parts that wait. */
static inline void fgv_session_note_end(struct fgv_session *session, CUresult status)
{
	struct fgv_session *first = session->first ? session->first : session;

	if (__builtin_expect(status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY, 0))
		__atomic_store_n(&first->fault, (uint32_t)status, __ATOMIC_RELAXED);
}

/* What work of any of the session's GPUs has failed with, or CUDA_SUCCESS. */
static inline CUresult fgv_session_fault(const struct fgv_session *session)
{
	const struct fgv_session *first = session->first ? session->first : session;

	return (CUresult)__atomic_load_n(&first->fault, __ATOMIC_RELAXED);
}

/* What was deferred, or CUDA_SUCCESS; it is delivered with that. */
CUresult fgv_session_take_deferred(struct fgv_session *session);

/*
 * Sends a reply; one that says that all is well brings what was deferred, if it is the program
 * that has asked. 0, or -EPROTO, with the reason, where the guest left no room for it.
 */
int fgv_session_reply(struct fgv_session *session, uint32_t lane, struct fgv_reply *reply);

/*
 * Has @request answered when the fence passes, or the event has happened: FGV_PENDING.
 * @covers: the fence covers all work up to the gate's request of this number, or 0.
 */
CUresult fgv_session_await_fence(struct fgv_session *session, const struct fgv_request *request,
				 struct fgv_gpu_fence *fence, uint64_t covers);
CUresult fgv_session_await_event(struct fgv_session *session, const struct fgv_request *request,
				 struct fgv_object *event);

/* The same for the end of all work, with which @range goes. Takes over both. */
CUresult fgv_session_await_unmapping(struct fgv_session *session, const struct fgv_request *request,
				     struct fgv_gpu_fence *fence, struct fgv_mapped_range *range);
/* And with which the mappings at [@address, @address + @bytes) go, which are leaving. */
CUresult fgv_session_await_leaving(struct fgv_session *session, const struct fgv_request *request,
				   struct fgv_gpu_fence *fence, uint64_t address, uint64_t bytes);

#endif
