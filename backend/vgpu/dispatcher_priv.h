/*
 * What the files of the dispatcher share: the loop and what runs one request are in dispatcher.c,
 * requests that are tried again in dispatcher_again.c, sleep in dispatcher_sleep.c.
 */
#ifndef FGV_VGPU_DISPATCHER_PRIV_H
#define FGV_VGPU_DISPATCHER_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include "api/gpu_wire.h"
#include "api/host.h"
#include "backend/vgpu/dispatcher.h"
#include "shmring/window.h"

struct fgv_session;

/* What running a request returns where it must wait for the gate. */
#define FGV_DISPATCH_CLOSED 1

/* What there is to know of @op, whatever that is. */
static inline const struct fgv_op_info *fgv_request_info(uint16_t op)
{
	static const struct fgv_op_info unknown = {.stream_off = FGV_OP_NO_STREAM};

	return op <= FGV_OP_MAX ? &fgv_op_infos[op] : &unknown;
}

static inline bool fgv_request_is_call(uint16_t op)
{
	return fgv_request_info(op)->call;
}

static inline bool fgv_request_is_work(const struct fgv_request *request)
{
	return request->is_work || fgv_request_info(request->op)->work;
}

/*
 * Executes the request whose message has been copied: 0, or a negative errno; FGV_DISPATCH_CLOSED:
 * it is an errand that must wait, or turned out to be work, and the gate is closed.
 */
int fgv_dispatcher_execute(struct fgv_session *session, struct fgv_request *request, uint32_t len);
/* The same for a call that may be tried again. @since_ns: of its first try; 0: this is the first.
 */
int fgv_dispatcher_execute_since(struct fgv_session *session, struct fgv_request *request,
				 uint32_t len, uint64_t since_ns);
/* Runs the request whose message has been copied, or holds it. 0 or a negative errno. */
int fgv_dispatcher_handle(struct fgv_session *session, struct fgv_request *request, uint32_t len);

/* Whether it is a call behind one of its lane that waits for memory; and to have it wait there. */
bool fgv_dispatcher_is_behind(const struct fgv_session *session, const struct fgv_request *request);
int fgv_dispatcher_wait_behind(struct fgv_session *session, const struct fgv_request *request,
			       const uint8_t *message, uint32_t len);
/* Whether the gate lets it through, if it is work. */
bool fgv_dispatcher_may_run(struct fgv_session *session, const struct fgv_request *request,
			    const uint8_t *message, uint32_t len);
/* The reply to a query for work that waits here. */
int fgv_dispatcher_not_ready(struct fgv_session *session, const struct fgv_request *request);

/* How many of those that waited for functions have run, or a negative errno. */
int fgv_dispatcher_run_stalled(struct fgv_session *session);
/* How many of those that wait for memory were tried, or a negative errno. */
int fgv_dispatcher_run_room(struct fgv_session *session);

/* The next request from the lanes that a session takes which can keep no more. NULL: none. */
const struct fgv_slot *fgv_dispatcher_look_for_returns(struct fgv_session *session, uint32_t *lane);
/* Sends the replies that are due and gives back what is: how many, or a negative errno. */
int fgv_dispatcher_poll_waits(struct fgv_session *session);

/* After so long without anything to do. 0 or a negative errno. */
int fgv_dispatcher_sleep(struct fgv_session *session, uint64_t waited_ns);

#endif
