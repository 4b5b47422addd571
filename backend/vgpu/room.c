/*
 * The list of calls that wait for memory; see room.h. The dispatcher tries them.
 */
#include "backend/vgpu/room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"
#include "common/util.h"

#define WAIT_NS	 (FGV_ENDING_WAIT_MS * FGV_NS_PER_MS)
/* So often what others may make room for on the GPU is tried again. */
#define RETRY_NS (5 * FGV_NS_PER_MS)
/* So long after a program has gone the daemon has seen it, unless the host is overloaded. */
#define NOTICE_NS (10 * FGV_NS_PER_MS)

void fgv_room_init(struct fgv_room *room)
{
	memset(room, 0, sizeof(*room));
	STAILQ_INIT(&room->list);
}

void fgv_room_fini(struct fgv_room *room)
{
	struct fgv_room_request *entry;

	while ((entry = STAILQ_FIRST(&room->list))) {
		STAILQ_REMOVE_HEAD(&room->list, link);
		free(entry);
	}
	fgv_room_init(room);
}

bool fgv_room_may_come(const struct fgv_session *session, uint64_t bytes, uint64_t since_ns)
{
	const struct fgv_quota *quota = &session->quota;
	uint64_t ending = fgv_quota_ending(quota), waited_ns = fgv_now_ns() - since_ns;

	if (session->room.is_last)
		return false;
	if (!bytes && fgv_freezer_may_wait(session))
		return true;
	if (waited_ns >= WAIT_NS)
		return false;
	/* Any of the others may be about to be marked. */
	if (!ending && waited_ns < NOTICE_NS && fgv_quota_others(quota))
		ending = UINT64_MAX;
	return ending && (!bytes || fgv_quota_would_fit(quota, bytes, ending));
}

int fgv_room_add(struct fgv_session *session, const struct fgv_request *request,
		 const uint8_t *message, uint32_t len, uint64_t since_ns, uint64_t bytes)
{
	struct fgv_room *room = &session->room;
	struct fgv_room_request *entry = malloc(sizeof(*entry) + len + 1);

	if (!entry)
		return -ENOMEM;
	entry->request = *request;
	entry->since_ns = since_ns;
	entry->bytes = bytes;
	entry->len = len;
	memcpy(entry->message, message, len);
	entry->message[len] = '\0';
	if (since_ns && !bytes && fgv_freezer_may_wait(session))
		fgv_freezer_ask(session, FGV_ASKS_ROOM);
	STAILQ_INSERT_TAIL(&room->list, entry, link);
	room->count++;
	room->bytes += len;
	room->in_lane[request->lane]++;
	return 0;
}

/* Whether @entry would be answered now, or might get what it wants. */
static bool is_entry_due(const struct fgv_session *session, const struct fgv_room_request *entry)
{
	const struct fgv_quota *quota = &session->quota;

	if (!entry->since_ns)
		return false;
	if (!fgv_room_may_come(session, entry->bytes, entry->since_ns))
		return true;
	if (!entry->bytes && fgv_freezer_may_wait(session))
		return fgv_now_ns() >= session->room.tried_ns + RETRY_NS;
	return entry->bytes && fgv_quota_would_fit(quota, entry->bytes, 0);
}

bool fgv_room_is_due(struct fgv_session *session)
{
	struct fgv_room *room = &session->room;
	struct fgv_room_request *entry;

	room->is_last = room->count >= FGV_ROOM_WAITING_MAX || room->bytes >= FGV_ROOM_BYTES_MAX;
	/* One that has ended may have given back what the quota knows nothing of. */
	if (room->is_last || (room->seen & ~fgv_quota_ending(&session->quota)))
		return true;
	STAILQ_FOREACH(entry, &room->list, link)
	{
		if (is_entry_due(session, entry))
			return true;
	}
	return false;
}

void fgv_room_begin(struct fgv_session *session, struct fgv_room_list *taken)
{
	struct fgv_room *room = &session->room;
	bool is_last = room->is_last;

	STAILQ_INIT(taken);
	STAILQ_CONCAT(taken, &room->list);
	fgv_room_init(room);
	room->is_last = is_last;
	room->tried_ns = fgv_now_ns();
	room->seen = fgv_quota_ending(&session->quota);
}
