/*
 * Freezing sessions: their memory leaves the GPU for the host's, by their own processes
 * (backend/vgpu/freezer.h), which are told by a bit and say how far they are in their accounts.
 *
 * What a process says of that is believed no further than it goes: whoever says that its memory has
 * left, and keeps it, is found by its figures at the driver (memwatch.h). The host's memory that
 * this may take is bounded when a session begins, and counted here by what it was charged.
 */
#include "backend/session_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include "common/log.h"
#include "common/util.h"

static enum fgv_frozen state_on(const struct fgv_session *session, unsigned part)
{
	struct fgv_account account;

	fgv_share_account(session->parts[part].share, session->account, &account);
	return account.frozen <= FGV_FROZEN_FAILED ? (enum fgv_frozen)account.frozen
						   : FGV_FROZEN_FAILED;
}

/* Of all its GPUs: what the one says that is least far. */
enum fgv_frozen fgv_session_frozen(const struct fgv_session *session)
{
	enum fgv_frozen on = FGV_FROZEN_GOING, off = FGV_FROZEN_COMING;
	unsigned there = 0, gone = 0;
	bool is_saved = false;

	for (unsigned i = 0; i < session->part_count; i++) {
		enum fgv_frozen state = state_on(session, i);

		if (state == FGV_FROZEN_FAILED)
			on = off = FGV_FROZEN_FAILED;
		is_saved |= state == FGV_FROZEN_SAVED;
		there += state == FGV_FROZEN_NOT;
		gone += state == FGV_FROZEN;
	}
	if (is_saved)
		return FGV_FROZEN_SAVED;
	if (session->is_frozen)
		return gone == session->part_count ? FGV_FROZEN : on;
	return there == session->part_count ? FGV_FROZEN_NOT : off;
}

/* The host's memory that it may take while it is frozen, or comes back. */
static uint64_t reserved_for(const struct fgv_session *session)
{
	enum fgv_frozen state = fgv_session_frozen(session);
	bool has_any = session->is_frozen || state != FGV_FROZEN_NOT;

	if (state == FGV_FROZEN_SAVED)
		has_any = session->loads;
	return has_any ? session->frozen_bytes : 0;
}

static uint64_t charged(const struct fgv_session *session)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < session->part_count; i++) {
		const struct fgv_share *share = session->parts[i].share;

		bytes += fgv_min_u64(fgv_session_memory_on(session, share),
				     share->device->info.memory_bytes);
	}
	return bytes;
}

int fgv_session_reserve_frozen(struct fgv_session *session, char *why, size_t len)
{
	const struct fgv_sessions *sessions = session->sessions;
	uint64_t wanted = charged(session), all = sessions->config->frozen_memory_bytes, taken = 0;
	const struct fgv_session *other;

	LIST_FOREACH(other, &sessions->list, link) {
		if (other != session)
			taken += reserved_for(other);
	}
	if (wanted > all - fgv_min_u64(taken, all)) {
		snprintf(why, len,
			 "session %u has %" PRIu64 " MiB, and of the host's memory for frozen "
			 "sessions %" PRIu64 " MiB of %" PRIu64 " are left (key frozen_memory)",
			 session->number, wanted >> 20, (all - fgv_min_u64(taken, all)) >> 20,
			 all >> 20);
		return -ENOMEM;
	}
	session->frozen_bytes = wanted;
	return 0;
}

static void tell(struct fgv_session *session, bool is_frozen)
{
	session->is_frozen = is_frozen;
	fgv_vm_set_frozen(session->vm, session->account, is_frozen);
	for (unsigned i = 0; i < session->part_count; i++)
		fgv_gpusched_session_wake(session->parts[i].sched);
}

int fgv_session_freeze(struct fgv_session *session, char *why, size_t len)
{
	int ret;

	if (session->is_frozen)
		return 0;
	if (!session->is_movable) {
		snprintf(why, len,
			 "session %u can't be frozen: key movable of its VM was false when it began",
			 session->number);
		return -ENOTSUP;
	}
	ret = fgv_session_reserve_frozen(session, why, len);
	if (ret)
		return ret;
	fgv_info_of(&session->subject, "is to be frozen");
	tell(session, true);
	return 0;
}

int fgv_session_check_thaw(const struct fgv_session *session, char *why, size_t len)
{
	if (fgv_session_frozen(session) != FGV_FROZEN_SAVED)
		return 0;
	snprintf(why, len, "the memory of session %u is in a file: fairgvctl thaw %u --from FILE",
		 session->number, session->number);
	return -EBUSY;
}

void fgv_session_thaw(struct fgv_session *session)
{
	if (!session->is_frozen)
		return;
	fgv_info_of(&session->subject, "is to be thawed");
	tell(session, false);
}

bool fgv_session_is_to_freeze(const struct fgv_session *session)
{
	return session->is_frozen;
}
