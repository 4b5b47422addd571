/*
 * Functions of the guest's program in the order of a stream (cudaLaunchHostFunc()): work that
 * comes after one waits here until the guest says that it has returned. So it does for a value in
 * memory (cuStreamWaitValue32()), which is looked at again and again once the work before it is
 * done (values.h). Nothing of that work is on the GPU, so a function that never returns, or a value
 * that never comes, holds up its stream, and what waits for that, but neither the grant nor anybody
 * else.
 *
 * The guest has a thread that asks for the next function whose turn it is, and with the
 * same request says that the last one has returned. So the host never calls the guest.
 *
 * What has to wait is found by marks: a stream is marked while a function is in it, or a
 * request that waits; an event, while its record or a wait for it does; a graph, while a launch or
 * a change of it does. Marks are good for
 * one generation: when a function returns, they are made anew from what still waits.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_STALL_H
#define FGV_VGPU_STALL_H

#include "backend/vgpu/handles.h"
#include "backend/vgpu/held.h"
#include "backend/vgpu/values.h"

/* Functions of one session that have not returned. */
#define FGV_FUNCTIONS_PENDING_MAX 4096

struct fgv_session;

/* A function that has not returned, or a value that has not come. */
struct fgv_host_func {
	STAILQ_ENTRY(fgv_host_func) link;
	uint64_t number;	     /* the guest's */
	struct fgv_object *stream;   /* with a reference; NULL: the legacy stream */
	struct fgv_gpu_fence *fence; /* the work before it; NULL: that is done */
	CUresult status;	     /* of that work */
	bool told;		     /* the guest was given it */
	unsigned width;		     /* bytes of the value; 0: it is a function */
	unsigned how;		     /* as CUstreamWaitValue_flags */
	uint64_t address;
	uint64_t value;
	bool is_on_gpu;	 /* it lies in the GPU's own memory */
	bool is_settled; /* the last look came when there was no other work */
	uint64_t seen;	 /* and after so much of it */
};

struct fgv_stall {
	struct fgv_held waiting; /* requests */
	uint32_t earlier;	 /* of them, those before the one that is judged */
	uint32_t earlier_frees;	 /* of memory, among those */
	STAILQ_HEAD(, fgv_host_func) funcs;
	uint32_t func_count;
	uint32_t fences;      /* of them, those whose work is not known to be done */
	uint32_t value_count; /* of them, values */
	struct fgv_looks looks;
	uint64_t generation;
	uint64_t legacy_mark;		    /* of the legacy stream */
	uint64_t blocking_mark;		    /* of any stream that it waits for */
	uint64_t lane_marks[FGV_LANES_MAX]; /* of lanes with a call that waits */
	bool look;			    /* something may have stopped waiting */
	bool is_asked;			    /* the guest waits for the next function, by: */
	struct fgv_request asked;
};

void fgv_stall_init(struct fgv_stall *stall);
/* Puts fences and references. */
void fgv_stall_fini(struct fgv_session *session);

static inline bool fgv_stall_is_used(const struct fgv_stall *stall)
{
	return stall->func_count > 0 || fgv_held_first(&stall->waiting);
}

static inline bool fgv_stall_is_full(const struct fgv_stall *stall)
{
	return fgv_held_is_full(&stall->waiting);
}

/* Whether a request may be executed now, while functions are pending. */
enum fgv_held_way fgv_stall_judge(struct fgv_session *session, const struct fgv_request *request,
				  const uint8_t *message, uint32_t len);

/* Keeps a request that may not. -ENOMEM. */
int fgv_stall_add(struct fgv_session *session, const struct fgv_request *request,
		  const uint8_t *message, uint32_t len);

/*
 * Starts a new look at all that wait, of which there are so many: takes them out one by one with
 * fgv_stall_take(); each is either executed or given back by fgv_stall_add().
 */
uint32_t fgv_stall_begin_look(struct fgv_stall *stall);

/* Looks at the work before functions, and tells the guest whose turn it is. As fgv_waits_poll(). */
int fgv_stall_poll(struct fgv_session *session);

#endif
