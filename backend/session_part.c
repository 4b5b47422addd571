/*
 * A session's places with the schedulers of its VM's GPUs; see session_priv.h.
 */
#include "backend/session_priv.h"

#include <string.h>
#include "common/util.h"

static void detach_part(struct fgv_part *part, struct fgv_gpusched_stats *use)
{
	struct fgv_gpusched_stats copying = {0};
	const char *killed_for = NULL;

	for (unsigned i = 0; i < FGV_COPY_ENGINES; i++) {
		if (!part->copying[i])
			continue;
		fgv_gpusched_detach_session(part->copying[i], &copying);
		part->copying[i] = NULL;
		killed_for = copying.killed_for ? copying.killed_for : killed_for;
	}
	fgv_gpusched_detach_session(part->sched, use);
	if (!use->killed_for)
		use->killed_for = killed_for;
}

/* Where engines are not granted by themselves, the descriptors of the one grant stand for all. */
static int attach_part(struct fgv_session *session, struct fgv_part *part,
		       int fds[FGV_SETUP_GRANT_FDS])
{
	const struct fgv_share *share = part->share;
	struct fgv_log_subject subject = session->subject;
	int ret;

	subject.gpu = share->device->name;
	ret = fgv_gpusched_attach_session(share->vgpu, &subject, &part->sched, fds);
	for (unsigned i = 0; i < FGV_COPY_ENGINES && !ret; i++) {
		int *own = &fds[3 * (i + 1)];

		if (share->copying[i])
			ret = fgv_gpusched_attach_session(share->copying[i], &subject,
							  &part->copying[i], own);
		else
			memcpy(own, fds, 3 * sizeof(int));
		if (ret) {
			struct fgv_gpusched_stats unused;

			detach_part(part, &unused);
		}
	}
	return ret;
}

int fgv_session_attach_parts(struct fgv_session *session,
			     int fds[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS])
{
	int ret = 0;

	while (session->part_count < session->placed && !ret) {
		unsigned i = session->part_count;

		ret = attach_part(session, &session->parts[i], fds[i]);
		session->part_count += !ret;
	}
	if (ret)
		fgv_session_detach_parts(session, NULL);
	return ret;
}

void fgv_session_detach_parts(struct fgv_session *session, struct fgv_gpusched_stats *use)
{
	struct fgv_gpusched_stats sum = {0};

	for (unsigned i = 0; i < session->part_count; i++) {
		struct fgv_gpusched_stats last;

		detach_part(&session->parts[i], &last);
		fgv_gpusched_stats_add(&sum, &last);
	}
	session->part_count = 0;
	if (use)
		*use = sum;
}

int fgv_session_prioritize_parts(struct fgv_session *session, uint32_t priority)
{
	int ret = 0;

	for (unsigned i = 0; i < session->part_count && !ret; i++) {
		struct fgv_part *part = &session->parts[i];

		ret = fgv_gpusched_session_priority(part->sched, priority);
		for (unsigned j = 0; j < FGV_COPY_ENGINES && !ret; j++) {
			if (part->copying[j])
				ret = fgv_gpusched_session_priority(part->copying[j], priority);
		}
	}
	return ret;
}

void fgv_session_start_parts(struct fgv_session *session)
{
	for (unsigned i = 0; i < session->part_count; i++) {
		struct fgv_part *part = &session->parts[i];

		fgv_gpusched_session_started(part->sched, session->pid);
		for (unsigned j = 0; j < FGV_COPY_ENGINES; j++) {
			if (part->copying[j])
				fgv_gpusched_session_started(part->copying[j], session->pid);
		}
	}
}

void fgv_session_release_parts(struct fgv_session *session)
{
	for (unsigned i = 0; i < session->part_count; i++)
		fgv_gpusched_session_ending(session->parts[i].sched);
}

void fgv_session_parts_stats(const struct fgv_session *session, struct fgv_gpusched_stats *stats)
{
	*stats = (struct fgv_gpusched_stats){0};
	for (unsigned i = 0; i < session->part_count; i++) {
		struct fgv_gpusched_stats part;

		fgv_gpusched_session_stats(session->parts[i].sched, &part);
		fgv_gpusched_stats_add(stats, &part);
	}
}

const struct fgv_share *fgv_session_share(const struct fgv_session *session, unsigned i)
{
	return i < session->part_count ? session->parts[i].share : NULL;
}

uint64_t fgv_session_memory_on(const struct fgv_session *session, const struct fgv_share *share)
{
	struct fgv_account account;

	fgv_share_account(share, session->account, &account);
	return account.memory_bytes;
}

uint64_t fgv_session_recent_on(const struct fgv_session *session, const struct fgv_share *share)
{
	struct fgv_gpusched_stats stats = {0};

	for (unsigned i = 0; i < session->part_count; i++) {
		if (session->parts[i].share == share)
			fgv_gpusched_session_stats(session->parts[i].sched, &stats);
	}
	return stats.recent_ns;
}

uint64_t fgv_session_resident_on(const struct fgv_session *session, const struct fgv_share *share)
{
	struct fgv_account account;

	fgv_share_account(share, session->account, &account);
	return account.memory_bytes - fgv_min_u64(account.away_bytes, account.memory_bytes);
}

uint64_t fgv_session_shared_on(const struct fgv_session *session, const struct fgv_share *share)
{
	return fgv_share_shared_by(share, session->account);
}
