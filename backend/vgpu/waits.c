/*
 * The list of waits, an array kept in the order of arrival. A look goes over all of it
 * and closes the gaps; what waits behind an earlier call of its lane is not looked at.
 */
#include "backend/vgpu/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"
#include "common/util.h"
#include "shmring/usual.h"

/*
 * Waits that usually last less are not slept through, nor are they slept into: what a processor
 * that has slept does first, the next launch, was seen to take 5 to 20 us longer. Nor are those
 * of little more than a slice: by then all that is waited for has been let through, how much of it
 * has been done already differs from time to time.
 */
#define SLEPT_MIN_NS	 (5 * FGV_NS_PER_MS)
#define SLEPT_MIN_SLICES 2
#define SLEEP_LATE_NS	 (50 * FGV_NS_PER_US)

/* The longer a processor has slept, the later it wakes up: 1/64 was seen, and is doubled. */
#define WAKE_PART 32

int fgv_waits_init(struct fgv_waits *waits, uint32_t lanes)
{
	memset(waits, 0, sizeof(*waits));
	waits->list = calloc((size_t)lanes * FGV_REPLY_SLOTS, sizeof(*waits->list));
	return waits->list ? 0 : -ENOMEM;
}

static bool is_on_gpu(const struct fgv_wait *wait)
{
	return wait->fence || wait->event;
}

void fgv_waits_add(struct fgv_waits *waits, const struct fgv_wait *wait)
{
	struct fgv_wait *added = &waits->list[waits->count++];

	*added = *wait;
	waits->in_lane[wait->lane]++;
	if (is_on_gpu(wait)) {
		waits->on_gpu++;
		added->since_ns = fgv_now_ns();
	}
}

uint64_t fgv_waits_due_ns(const struct fgv_waits *waits, uint64_t slice_ns)
{
	uint64_t slept_ns = fgv_max_u64(SLEPT_MIN_NS, SLEPT_MIN_SLICES * slice_ns);
	uint64_t due_ns = UINT64_MAX;

	for (uint32_t i = 0; i < waits->count; i++) {
		const struct fgv_wait *wait = &waits->list[i];
		uint32_t usual_ns = waits->usual_ns[wait->op];
		uint64_t margin_ns = SLEEP_LATE_NS + usual_ns / WAKE_PART;

		if (!is_on_gpu(wait))
			continue;
		if (usual_ns < slept_ns)
			return 0;
		due_ns = fgv_min_u64(due_ns,
				     wait->since_ns + fgv_usual_rest_ns(usual_ns, margin_ns));
	}
	return due_ns == UINT64_MAX ? 0 : due_ns;
}

bool fgv_waits_are_late(const struct fgv_waits *waits)
{
	uint64_t now_ns = fgv_now_ns();

	for (uint32_t i = 0; i < waits->count; i++) {
		const struct fgv_wait *wait = &waits->list[i];

		uint64_t usual_ns = waits->usual_ns[wait->op];

		if (is_on_gpu(wait) && now_ns - wait->since_ns < 2 * usual_ns)
			return false;
	}
	return true;
}

/* What the GPU says of that counts where all else is well. */
static void unmap_leaving(struct fgv_session *session, struct fgv_wait *wait)
{
	CUresult status;

	if (!wait->leaving_bytes)
		return;
	status = fgv_vmem_unmap(&session->vmem, wait->leaving, wait->leaving_bytes);
	wait->leaving_bytes = 0;
	if (wait->status == CUDA_SUCCESS)
		wait->status = status;
}

/* It waits for nothing any more. */
static void release(struct fgv_session *session, struct fgv_wait *wait)
{
	session->waits.on_gpu -= is_on_gpu(wait);
	if (wait->fence)
		session->gpu->ops->fence_put(session->gpu, wait->fence);
	if (wait->event)
		fgv_session_put(session, wait->event);
	if (wait->range)
		fgv_mapped_drop(wait->range, session->gpu);
	unmap_leaving(session, wait);
	wait->fence = NULL;
	wait->event = NULL;
	wait->range = NULL;
}

void fgv_waits_fini(struct fgv_session *session)
{
	struct fgv_waits *waits = &session->waits;

	for (uint32_t i = 0; i < waits->count; i++)
		release(session, &waits->list[i]);
	free(waits->list);
	waits->list = NULL;
	waits->count = 0;
}

/* Whether the reply is known now. */
static bool is_due(struct fgv_session *session, struct fgv_wait *wait)
{
	struct fgv_gpu *gpu = session->gpu;

	if (wait->fence)
		wait->status = gpu->ops->fence_query(gpu, wait->fence);
	else if (wait->event)
		wait->status = gpu->ops->event_query(gpu, wait->event->event);
	else
		return true;
	if (wait->status == CUDA_ERROR_NOT_READY)
		return false;
	fgv_session_note_end(session, wait->status);
	fgv_usual_note(&session->waits.usual_ns[wait->op], fgv_now_ns() - wait->since_ns,
		       session->waits.slept);
	fgv_gate_finished(session, &session->gate, wait->covers);
	unmap_leaving(session, wait);
	return true;
}

static int answer(struct fgv_session *session, struct fgv_wait *wait)
{
	bool was_on_gpu = is_on_gpu(wait);
	struct fgv_reply reply = {
		.op = wait->op,
		.call = wait->call,
		.status = wait->status,
		.data = wait->reply,
		.len = wait->reply_len,
	};

	release(session, wait);
	session->waits.in_lane[wait->lane]--;
	if (was_on_gpu)
		fgv_console_look(session);
	return fgv_session_reply(session, wait->lane, &reply);
}

int fgv_waits_poll(struct fgv_session *session)
{
	struct fgv_waits *waits = &session->waits;
	bool is_held[FGV_LANES_MAX] = {false};
	uint32_t kept = 0;
	int sent = 0, err = 0;

	for (uint32_t i = 0; i < waits->count; i++) {
		struct fgv_wait *wait = &waits->list[i];

		if (err == 0 && !is_held[wait->lane] && is_due(session, wait)) {
			err = answer(session, wait);
			sent++;
			continue;
		}
		is_held[wait->lane] = true;
		if (kept != i)
			waits->list[kept] = *wait;
		kept++;
	}
	waits->count = kept;
	waits->slept = false;
	return err < 0 ? err : sent;
}
