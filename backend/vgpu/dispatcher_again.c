/*
 * Requests that could not run when they came, and are tried again: those that wait for a function
 * on the host's side of a stream (stall.h), and those that have found no memory (room.h).
 */
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/dispatcher_priv.h"
#include "backend/vgpu/session.h"

/* One of those that waited: 1 if that is over, 0 if it waits on, or a negative errno. */
static int run_again(struct fgv_session *session, struct fgv_held_request *entry)
{
	struct fgv_stall *stall = &session->stall;
	struct fgv_request *request = &entry->request;
	enum fgv_held_way way;
	int err;

	if (fgv_dispatcher_is_behind(session, request)) {
		err = fgv_dispatcher_wait_behind(session, request, entry->message, entry->len);
		return err < 0 ? err : 1;
	}
	memcpy(session->message, entry->message, entry->len + 1);
	way = fgv_stall_judge(session, request, session->message, entry->len);
	if (way == FGV_HELD_NOT_READY)
		err = fgv_dispatcher_not_ready(session, request);
	else if (way == FGV_HELD_RUN &&
		 fgv_dispatcher_may_run(session, request, entry->message, entry->len))
		err = fgv_dispatcher_execute(session, request, entry->len);
	else
		err = FGV_DISPATCH_CLOSED;
	if (err != FGV_DISPATCH_CLOSED)
		return err < 0 ? err : 1;
	stall->look |= way == FGV_HELD_RUN;
	return fgv_stall_add(session, request, session->message, entry->len);
}

/*
 * After a function has returned: runs what waited for it. What the gate does not let through
 * goes on waiting, and is looked at again.
 */
int fgv_dispatcher_run_stalled(struct fgv_session *session)
{
	struct fgv_stall *stall = &session->stall;
	uint32_t count = fgv_stall_begin_look(stall);
	int done = 0, err = 0;

	for (uint32_t i = 0; i < count && err >= 0; i++) {
		struct fgv_held_request *entry = fgv_held_take(&stall->waiting);

		err = run_again(session, entry);
		done += err > 0;
		free(entry);
	}
	/* What ran late in the list may have been waited for early in it. */
	stall->look |= done && stall->earlier;
	return err < 0 ? err : done;
}

/* Tries again what found no memory; what was behind it is judged like what is new. */
static int try_again(struct fgv_session *session, struct fgv_room_request *entry)
{
	struct fgv_request *request = &entry->request;
	int err = FGV_DISPATCH_CLOSED;

	memcpy(session->message, entry->message, entry->len + 1);
	if (!entry->since_ns)
		return fgv_dispatcher_handle(session, request, entry->len);
	if (fgv_dispatcher_may_run(session, request, entry->message, entry->len))
		err = fgv_dispatcher_execute_since(session, request, entry->len, entry->since_ns);
	if (err == FGV_DISPATCH_CLOSED)
		err = fgv_room_add(session, request, entry->message, entry->len, entry->since_ns,
				   entry->bytes);
	return err;
}

/* How many of those that wait for memory were tried, or a negative errno. */
int fgv_dispatcher_run_room(struct fgv_session *session)
{
	struct fgv_room_request *entry;
	struct fgv_room_list taken;
	int tried = 0, err = 0;

	fgv_room_begin(session, &taken);
	while ((entry = STAILQ_FIRST(&taken))) {
		STAILQ_REMOVE_HEAD(&taken, link);
		if (err >= 0)
			err = try_again(session, entry);
		tried++;
		free(entry);
	}
	session->room.is_last = false;
	if (!session->room.count && session->freezer.state == FGV_FREEZER_RUNNING)
		fgv_freezer_ask(session, FGV_ASKS_NOTHING);
	return err < 0 ? err : tried;
}
