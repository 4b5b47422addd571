/*
 * The memory of a frozen session goes into a file and comes back; see freezer.h and store.h.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/vgpu/freezer_priv.h"

static bool is_under_way(const struct fgv_freezer *freezer)
{
	return freezer->state == FGV_FREEZER_SAVING || freezer->state == FGV_FREEZER_LOADING;
}

/* Whether it can begin: READY, or why not. */
static enum fgv_store_word begin_saving(struct fgv_session *session, const struct fgv_order *order)
{
	struct fgv_freezer *freezer = &session->freezer;

	if (freezer->state != FGV_FREEZER_FROZEN || !fgv_freezer_is_wanted(session))
		return FGV_STORE_NOT_NOW;
	memcpy(freezer->token, order->token, sizeof(freezer->token));
	fgv_freezer_go_to(session, FGV_FREEZER_SAVING);
	return FGV_STORE_READY;
}

static enum fgv_store_word begin_loading(struct fgv_session *session, const struct fgv_order *order)
{
	struct fgv_freezer *freezer = &session->freezer;

	if (freezer->state != FGV_FREEZER_SAVED)
		return FGV_STORE_NOT_NOW;
	if (memcmp(freezer->token, order->token, sizeof(freezer->token)) != 0)
		return FGV_STORE_OTHER;
	if (!fgv_store_make(&freezer->store, fgv_pieces_bytes(&session->pieces, FGV_PIECE_OUT)))
		return FGV_STORE_NO_MEMORY;
	fgv_freezer_go_to(session, FGV_FREEZER_LOADING);
	return FGV_STORE_READY;
}

static enum fgv_store_word begin(struct fgv_session *session, const struct fgv_order *order)
{
	if (fgv_pieces_are_used(&session->pieces) && order->what == FGV_ORDER_SAVE)
		return begin_saving(session, order);
	if (fgv_pieces_are_used(&session->pieces) && order->what == FGV_ORDER_LOAD)
		return begin_loading(session, order);
	return FGV_STORE_NOT_NOW;
}

/* What is under way and has nobody at the other end any more comes to nothing now, not in a moment.
 */
static void look_at_other_end(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;
	struct pollfd end = {.fd = freezer->store.fd, .events = POLLRDHUP};

	if (!is_under_way(freezer) || poll(&end, 1, 0) <= 0)
		return;
	fgv_store_stop(&freezer->store);
	if (freezer->state == FGV_FREEZER_LOADING) {
		fgv_store_drop(&freezer->store);
		fgv_freezer_go_to(session, FGV_FREEZER_SAVED);
	} else {
		fgv_freezer_go_to(session, FGV_FREEZER_FROZEN);
	}
}

/* Takes @fd over. The word finds room: nothing else has been sent. */
static void obey(struct fgv_session *session, const struct fgv_order *order, int fd)
{
	enum fgv_store_word answer;
	uint8_t word;

	look_at_other_end(session);
	answer = begin(session, order);
	word = (uint8_t)answer;

	send(fd, &word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (answer == FGV_STORE_READY)
		fgv_store_begin(&session->freezer.store, fd);
	else
		close(fd);
}

void fgv_freezer_take_order(struct fgv_session *session)
{
	struct fgv_order order;
	int fd;
	ssize_t got = fgv_fds_receive(FGV_CONTROL_FD, &order, sizeof(order), &fd);

	if (!got)
		__atomic_store_n(&session->is_over, 1, __ATOMIC_RELAXED);
	if (fd >= 0 && got == sizeof(order))
		obey(session, &order, fd);
	else if (fd >= 0)
		close(fd);
}

void fgv_freezer_poll(const struct fgv_session *session, struct pollfd *poll)
{
	const struct fgv_freezer *freezer = &session->freezer;

	if (is_under_way(freezer))
		fgv_store_poll(&freezer->store, freezer->state == FGV_FREEZER_SAVING, poll);
	else
		*poll = (struct pollfd){.fd = -1};
}

void fgv_freezer_stop_file(struct fgv_session *session)
{
	if (is_under_way(&session->freezer))
		fgv_store_stop(&session->freezer.store);
}

int fgv_freezer_save(struct fgv_session *session)
{
	if (!fgv_freezer_is_wanted(session)) {
		fgv_freezer_stop_file(session);
		return fgv_freezer_go_to(session, FGV_FREEZER_FROZEN);
	}
	switch (fgv_store_save(&session->freezer.store)) {
	case FGV_STORE_WAITS:
		return 0;
	case FGV_STORE_GOES_ON:
		return 1;
	case FGV_STORE_FAILED:
		return fgv_freezer_go_to(session, FGV_FREEZER_FROZEN);
	case FGV_STORE_DONE:
		break;
	}
	fgv_freezer_ask(session, FGV_ASKS_NOTHING);
	fgv_store_drop(&session->freezer.store);
	fgv_freezer_say(session, FGV_FROZEN_SAVED);
	fgv_store_agree(&session->freezer.store);
	return fgv_freezer_go_to(session, FGV_FREEZER_SAVED);
}

int fgv_freezer_load(struct fgv_session *session)
{
	struct fgv_store *store = &session->freezer.store;

	switch (fgv_store_load(store)) {
	case FGV_STORE_WAITS:
		return 0;
	case FGV_STORE_GOES_ON:
		return 1;
	case FGV_STORE_FAILED:
		fgv_store_drop(store);
		return fgv_freezer_go_to(session, FGV_FREEZER_SAVED);
	case FGV_STORE_DONE:
		break;
	}
	fgv_freezer_say(session, FGV_FROZEN);
	fgv_store_agree(store);
	return fgv_freezer_go_to(session, FGV_FREEZER_FROZEN);
}
