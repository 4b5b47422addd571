/*
 * A session with nothing to do sleeps: announces that, looks again, and waits for whatever wakes
 * it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include "backend/vgpu/control.h"
#include "backend/vgpu/dispatcher_priv.h"
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "shmring/park.h"

/*
 * Where the GPU can only be polled, the sleep is a SLEEP_SHARE of the time waited so
 * far, between these.
 */
#define SLEEP_SHARE  16
#define SLEEP_NS_MIN (50 * FGV_NS_PER_US)
#define SLEEP_NS_MAX (1 * FGV_NS_PER_MS)

/* How long to sleep at most where nobody tells when the GPU is done. */
static uint64_t poll_after_ns(uint64_t waited_ns)
{
	return fgv_min_u64(fgv_max_u64(waited_ns / SLEEP_SHARE, SLEEP_NS_MIN), SLEEP_NS_MAX);
}

/* Sleeps until something happens; a socket with something on it is read. */
static int sleep_on(struct fgv_session *session, int completion_fd, uint64_t limit_ns)
{
	struct pollfd fds[] = {
		{.fd = session->fds[FGV_SETUP_DOORBELL], .events = POLLIN},
		{.fd = session->fds[FGV_SETUP_CONNECTION], .events = POLLIN | POLLRDHUP},
		/* Orders are the first part's. */
		{.fd = FGV_CONTROL_FD, .events = session->first ? POLLRDHUP : POLLIN | POLLRDHUP},
		{.fd = completion_fd, .events = POLLIN},
		[4 ... 4 + FGV_ENGINES] = {.fd = -1},
	};
	struct timespec limit = {
		.tv_sec = (time_t)(limit_ns / FGV_NS_PER_SEC),
		.tv_nsec = (long)(limit_ns % FGV_NS_PER_SEC),
	};
	int ready;

	fgv_engines_bells(session, &fds[4]);
	fgv_freezer_poll(session, &fds[4 + FGV_ENGINES]);
	session->waits.slept = true;
	fgv_account_add(&session->account->parks, 1);
	ready = ppoll(fds, FGV_ARRAY_LEN(fds), limit_ns == UINT64_MAX ? NULL : &limit, NULL);
	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		fgv_account_add(&session->account->doorbells_received, 1);
	if (fds[2].revents & ~POLLIN)
		__atomic_store_n(&session->is_over, 1, __ATOMIC_RELAXED);
	else if (fds[2].revents)
		fgv_freezer_take_order(session);
	if (fds[1].revents)
		return fgv_control_read(session);
	return 0;
}

/* Whether something has happened that might have come before the announcement to sleep. */
static int look_again(struct fgv_session *session, int completion_fd)
{
	uint32_t lane;
	int err = 0;

	if (completion_fd >= 0) {
		session->gpu->ops->arm(session->gpu);
		err = fgv_dispatcher_poll_waits(session) + fgv_loans_look(session) +
		      fgv_engines_turn(session);
	}
	if (err || fgv_freezer_has_news(session))
		return err ? err : 1;
	if (!fgv_freezer_lets_in(session))
		return fgv_engines_have_news(session);
	if (fgv_stall_is_full(&session->stall))
		err = fgv_dispatcher_look_for_returns(session, &lane) != NULL;
	else if (!fgv_held_is_full(&session->held))
		err = fgv_lanes_any_ordered(session->lanes);
	return err ? err : fgv_engines_have_news(session);
}

/*
 * Announces that it sleeps, then looks again: at the lanes, the grant and the GPU, each of
 * which may have moved before it could know. A session that can't take more requests does not
 * ask to be woken by them.
 */
int fgv_dispatcher_sleep(struct fgv_session *session, uint64_t waited_ns)
{
	struct fgv_window_head *head = fgv_window_head(&session->window);
	bool is_on_gpu = session->waits.on_gpu > 0 || session->loans.count > 0 ||
			 fgv_engines_have_work(session);
	int completion_fd = is_on_gpu ? session->gpu->ops->completion_fd(session->gpu) : -1;
	bool is_polled = is_on_gpu && completion_fd < 0, takes = fgv_freezer_lets_in(session);
	uint64_t limit_ns = is_polled ? poll_after_ns(waited_ns) : UINT64_MAX;
	int err;

	fgv_batch_send(session);
	if (!fgv_engines_may_sleep(session, waited_ns, completion_fd >= 0, &limit_ns))
		return 0;
	/* Which lane the one request that can be taken comes by is not known. */
	if (takes && fgv_stall_is_full(&session->stall))
		limit_ns = fgv_min_u64(limit_ns, SLEEP_NS_MAX);
	/* Nobody rings where a value is written. */
	if (takes && session->stall.value_count)
		limit_ns = fgv_min_u64(limit_ns, poll_after_ns(waited_ns));
	/* Nor where what was freed has been used for the last time: the VM is charged for it yet.
	 */
	if (fgv_pieces_are_leaving(&session->pieces))
		limit_ns = fgv_min_u64(limit_ns, poll_after_ns(waited_ns));
	/* Nobody rings where another session has ended. */
	if (takes && session->room.count)
		limit_ns = fgv_min_u64(limit_ns, SLEEP_NS_MAX);
	limit_ns = fgv_min_u64(limit_ns, fgv_freezer_limit_ns(session));
	if ((takes && !fgv_held_is_full(&session->held)) || fgv_freezer_listens(session))
		fgv_park_announce(&head->host_parked);
	fgv_engines_announce_sleep(session);
	err = look_again(session, completion_fd);
	if (err == 0)
		err = sleep_on(session, completion_fd, limit_ns);
	fgv_engines_withdraw_sleep(session);
	fgv_park_withdraw(&head->host_parked);
	fgv_doorbell_clear(session->fds[FGV_SETUP_DOORBELL]);
	return err < 0 ? err : 0;
}
