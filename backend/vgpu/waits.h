/*
 * Calls whose reply has to wait: for the GPU, or for the reply to an earlier call of
 * the same lane, as a lane's replies come in the order of its calls.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_WAITS_H
#define FGV_VGPU_WAITS_H

#include "api/gpu_host.h"
#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/handles.h"
#include "backend/vgpu/mapped.h"

struct fgv_session;

struct fgv_wait {
	uint32_t lane;
	uint32_t call;
	uint16_t op;
	/* What is waited for; with neither, the reply below is known. */
	struct fgv_gpu_fence *fence;
	struct fgv_object *event;	/* with a reference */
	uint64_t since_ns;		/* for the GPU */
	uint64_t covers;		/* see fgv_session_await_fence() */
	struct fgv_mapped_range *range; /* goes once the fence has passed; or NULL */
	uint64_t leaving;		/* mappings that do so too (vmem.h); or none */
	uint64_t leaving_bytes;
	CUresult status;
	uint32_t reply_len;
	uint8_t reply[FGV_SLOT_FIRST];
};

/* In the order of arrival. */
struct fgv_waits {
	struct fgv_wait *list;
	uint32_t count;
	uint32_t on_gpu; /* of them, those that wait for the GPU */
	uint32_t in_lane[FGV_LANES_MAX];
	bool slept; /* the dispatcher, since the last look */
	uint32_t usual_ns[FGV_OP_MAX + 1]; /* how long it waits for the GPU; see shmring/usual.h */
};

/* Room for FGV_REPLY_SLOTS calls of each lane. 0 or -ENOMEM. */
int fgv_waits_init(struct fgv_waits *waits, uint32_t lanes);
/* Puts the fences and references of what still waits. */
void fgv_waits_fini(struct fgv_session *session);

/* Whether @lane has a reply outstanding. */
static inline bool fgv_waits_has(const struct fgv_waits *waits, uint32_t lane)
{
	return waits->in_lane[lane] > 0;
}

/* Until when nothing that is waited for is likely to be done; 0: not known, or now. */
uint64_t fgv_waits_due_ns(const struct fgv_waits *waits, uint64_t slice_ns);

/* Whether all that is waited for takes much longer than usual. */
bool fgv_waits_are_late(const struct fgv_waits *waits);

/* Appends a copy of @wait. The lane has room. Takes over its fence or reference. */
void fgv_waits_add(struct fgv_waits *waits, const struct fgv_wait *wait);

/*
 * Looks at all of them and sends the replies that are due. How many were sent, or
 * -EPROTO where one had to be and the guest left no room for it.
 */
int fgv_waits_poll(struct fgv_session *session);

#endif
