/*
 * Turns at the memory of a GPU whose VMs were promised more than it has (key overcommit, a number).
 *
 * A session whose memory is out and that has something to do asks for its turn; one that has no
 * room for what it does asks for room (enum fgv_asks). Of those that ask the one that has asked
 * longest is served, on each GPU one at a time: it is told to come in, and while it has no room
 * another one is told to go out. That is the one that was longest without using the GPU; or, where
 * all use it, the one that is in longest, if it has had its turn. Where no session is left that
 * could go, what has no room fails (allowance->alone).
 *
 * A turn is as long as it takes for the moving to be swap_share of the time, by what moving took
 * the last time, and in proportion to the VM's weight, which its sessions share. What a session
 * takes for its own moving is a part of its turn.
 *
 * What processes say here is believed only as far as turns go: a session that asks without need
 * gets its turns and no more, and one that does not go out is ended.
 */
#include "backend/session_priv.h"

#include "backend/warm.h"
#include "common/util.h"

#define LOOK_NS	     (20 * FGV_NS_PER_MS)
#define LOOK_ASKS_NS (4 * FGV_NS_PER_MS) /* while a session asks */

/* A turn is not shorter, whatever moving takes. */
#define TURN_NS (100 * FGV_NS_PER_MS)

/* A session that does not use the GPU for this part of a turn has no use for the rest. */
#define IDLE_SHARE 4

/*
 * A session that has not gone out after this time, or key hang if that is longer, is ended: a
 * kernel that never ends can be held, but its memory can't leave.
 */
#define PATIENCE_NS (60 * FGV_NS_PER_SEC)

/* What going out is taken to last at most, so that no turn is endless. */
#define OUT_NS_MAX (5 * FGV_NS_PER_SEC)

/* One session as it is on the GPU that is looked at. */
struct place {
	struct fgv_session *session;
	struct fgv_part *part; /* NULL: none */
	struct fgv_account account;
};

static bool pages(const struct fgv_session *session)
{
	return fgv_config_pages(session->sessions->config) &&
	       session->vm->config->memory_bytes != FGV_CONFIG_NO_LIMIT;
}

void fgv_session_page(struct fgv_session *session)
{
	for (unsigned i = 0; i < session->part_count; i++)
		fgv_share_set_paged((struct fgv_share *)session->parts[i].share, pages(session));
}

bool fgv_session_is_out(const struct fgv_session *session)
{
	for (unsigned i = 0; i < session->part_count; i++) {
		if (session->parts[i].paging.is_out)
			return true;
	}
	return false;
}

/* --- Looking --------------------------------------------------------------------- */

/* The session after the one at @at that is on GPU @device; @at->session is NULL for the first. */
static bool next(const struct fgv_sessions *sessions, unsigned device, struct place *at)
{
	struct fgv_session *session =
		at->session ? LIST_NEXT(at->session, link) : LIST_FIRST(&sessions->list);

	for (; session; session = LIST_NEXT(session, link)) {
		for (unsigned i = 0; i < session->part_count && !session->is_killed; i++) {
			struct fgv_part *part = &session->parts[i];

			if (part->share->number != device)
				continue;
			*at = (struct place){.session = session, .part = part};
			fgv_share_account(part->share, session->account, &at->account);
			return true;
		}
	}
	*at = (struct place){0};
	return false;
}

/* Whether it is where it was told to be. */
static bool has_arrived(const struct place *at)
{
	if (at->part->paging.is_out)
		return at->account.frozen == FGV_FROZEN || at->account.frozen == FGV_FROZEN_SAVED ||
		       at->account.frozen == FGV_FROZEN_FAILED;
	return at->account.frozen == FGV_FROZEN_NOT;
}

static void look(struct place *at, uint64_t now_ns)
{
	struct fgv_paging *paging = &at->part->paging;
	struct fgv_gpusched_stats stats;

	fgv_gpusched_session_stats(at->part->sched, &stats);
	/* Moving is use: what has just come in has not been without any. */
	if (!has_arrived(at) || stats.holding || stats.waiting ||
	    stats.sched.gpu_ns != paging->used_ns)
		paging->active_ns = now_ns;
	paging->used_ns = stats.sched.gpu_ns;
	if (at->account.asks == FGV_ASKS_NOTHING)
		paging->asks_ns = paging->room_ns = 0;
	else if (!paging->asks_ns)
		paging->asks_ns = now_ns;
	if (paging->is_out || !has_arrived(at))
		paging->in_ns = 0;
	else if (!paging->in_ns)
		paging->in_ns = now_ns;
}

/* Whether it has something to do for which it lacks the memory that others have. */
static bool lacks(const struct place *at)
{
	const struct fgv_paging *paging = &at->part->paging;

	return paging->asks_ns &&
	       (paging->is_out || at->account.asks == FGV_ASKS_ROOM || !paging->in_ns);
}

/* What it could have used of the GPU meanwhile is not lost to its VM. */
static void claim(const struct place *at, bool claims)
{
	if (at->part->paging.claims == claims)
		return;
	at->part->paging.claims = claims;
	fgv_gpusched_session_claim(at->part->sched, claims);
}

/* --- Telling --------------------------------------------------------------------- */

static void set_alone(const struct place *at, bool is_alone)
{
	if (at->part->paging.is_alone == is_alone)
		return;
	at->part->paging.is_alone = is_alone;
	fgv_share_set_alone((struct fgv_share *)at->part->share, at->session->account, is_alone);
}

static void tell(const struct place *at, bool is_out, uint64_t now_ns)
{
	struct fgv_paging *paging = &at->part->paging;

	paging->is_out = is_out;
	paging->told_ns = now_ns;
	paging->in_ns = 0;
	if (is_out)
		paging->asks_ns = 0; /* the last in line, if it asks again */
	fgv_share_set_out((struct fgv_share *)at->part->share, at->session->account, is_out);
	fgv_gpusched_session_wake(at->part->sched);
	fgv_debug_of(&at->session->subject, "its memory is to %s", is_out ? "go out" : "come in");
}

/* --- Choosing -------------------------------------------------------------------- */

/* All that is known of one GPU. */
struct gpu {
	const struct fgv_sessions *sessions;
	unsigned device;
	uint64_t now_ns;
	uint64_t turn_ns;      /* of the VM with the least weight */
	uint64_t least_weight; /* of a session: its VM's, divided by that of its sessions */
	bool moves;	       /* a session is on its way out */
	struct place first;    /* of those that ask; part NULL: none does */
	struct place victim;   /* may be told to go out; likewise */
	bool has_others;       /* another one could go, if not now */
	bool asks;
};

static uint64_t weight_of(const struct place *at)
{
	unsigned sessions = fgv_vm_sessions(at->session->vm);
	uint64_t weight = fgv_gpusched_weight(at->part->share->vgpu);

	return fgv_max_u64(weight * 1000 / fgv_max_u64(sessions, 1), 1);
}

static uint64_t turn_of(const struct gpu *gpu, const struct place *at)
{
	uint64_t turn_ns = gpu->turn_ns * weight_of(at) / gpu->least_weight;
	uint64_t moving_ns = 2 * at->part->paging.out_ns;

	return fgv_max_u64(turn_ns - fgv_min_u64(moving_ns, turn_ns), TURN_NS / 2);
}

static bool is_idle(const struct gpu *gpu, const struct place *at)
{
	return at->account.asks == FGV_ASKS_ROOM ||
	       gpu->now_ns - at->part->paging.active_ns >= gpu->turn_ns / IDLE_SHARE;
}

/* Whether it has something on the GPU that can leave it, and the administrator hasn't frozen it. */
static bool can_go(const struct place *at)
{
	return at->session->is_movable && !at->session->is_frozen && !at->part->paging.is_out &&
	       at->account.frozen != FGV_FROZEN_FAILED &&
	       at->account.memory_bytes > at->account.away_bytes;
}

static bool may_go(const struct gpu *gpu, const struct place *at)
{
	const struct fgv_paging *paging = &at->part->paging;

	if (is_idle(gpu, at))
		return true;
	return paging->in_ns && gpu->now_ns - paging->in_ns >= turn_of(gpu, at);
}

/* Idle ones before others, and of either those first that were longest without a use, or in. */
static bool goes_before(const struct gpu *gpu, const struct place *a, const struct place *b)
{
	if (!b->part || is_idle(gpu, a) != is_idle(gpu, b))
		return !b->part || is_idle(gpu, a);
	if (is_idle(gpu, a))
		return a->part->paging.active_ns < b->part->paging.active_ns;
	return a->part->paging.in_ns < b->part->paging.in_ns;
}

static bool is_served(const struct place *at)
{
	return lacks(at) && !at->part->paging.is_alone && !at->session->is_frozen;
}

/* What moving takes, which sessions ask, and which are on their way. */
static void survey(struct gpu *gpu)
{
	uint64_t longest_ns = 0, share = gpu->sessions->config->swap_share;
	struct place at = {0};

	gpu->least_weight = UINT64_MAX;
	while (next(gpu->sessions, gpu->device, &at)) {
		struct fgv_paging *paging = &at.part->paging;

		look(&at, gpu->now_ns);
		claim(&at, lacks(&at) && !at.session->is_frozen);
		gpu->least_weight = fgv_min_u64(gpu->least_weight, weight_of(&at));
		longest_ns = fgv_max_u64(longest_ns, paging->out_ns);
		if (paging->is_out && !has_arrived(&at))
			gpu->moves = true;
		if (!paging->asks_ns)
			set_alone(&at, false);
		gpu->asks |= paging->asks_ns || paging->is_out;
		if (is_served(&at) &&
		    (!gpu->first.part || paging->asks_ns < gpu->first.part->paging.asks_ns))
			gpu->first = at;
	}
	gpu->turn_ns = fgv_max_u64(TURN_NS, 2 * longest_ns * FGV_SCHED_WHOLE / share);
}

/* The session that makes room for the first of those that ask. */
static void choose(struct gpu *gpu)
{
	struct place at = {0};

	while (next(gpu->sessions, gpu->device, &at)) {
		if (at.part == gpu->first.part || !can_go(&at))
			continue;
		gpu->has_others = true;
		if (may_go(gpu, &at) && goes_before(gpu, &at, &gpu->victim))
			gpu->victim = at;
	}
}

/* What has no room has yet to find out that there is more now. */
static void note_room(struct gpu *gpu)
{
	struct place at = {0};

	while (next(gpu->sessions, gpu->device, &at)) {
		at.part->paging.tries = at.account.tries;
		at.part->paging.room_ns = gpu->now_ns;
	}
}

/* How long those took that have gone out; one that takes for ever is ended. */
static void judge_movers(struct gpu *gpu)
{
	uint64_t patience_ns = fgv_max_u64(gpu->sessions->config->hang_ns, PATIENCE_NS);
	struct place at = {0};

	while (next(gpu->sessions, gpu->device, &at)) {
		struct fgv_paging *paging = &at.part->paging;
		uint64_t passed_ns = gpu->now_ns - paging->told_ns;

		if (!paging->is_out || !paging->told_ns)
			continue;
		if (has_arrived(&at)) {
			paging->out_ns = fgv_min_u64(passed_ns, OUT_NS_MAX);
			paging->told_ns = 0;
			note_room(gpu);
		} else if (passed_ns > patience_ns) {
			fgv_sessions_kill((struct fgv_sessions *)gpu->sessions, at.session->number,
					  "its memory did not leave the GPU for others");
		}
	}
}

/* --- Turns ----------------------------------------------------------------------- */

/* Another session may have been alone before: from now on it need not be. */
static void welcome(const struct gpu *gpu)
{
	struct place at = {0};

	while (next(gpu->sessions, gpu->device, &at))
		set_alone(&at, false);
	tell(&gpu->first, false, gpu->now_ns);
}

/* It comes in, for which there is room; if it says so for longer than a turn, others come first. */
static void let_come(struct gpu *gpu)
{
	struct fgv_paging *paging = &gpu->first.part->paging;

	if (gpu->now_ns - paging->told_ns < gpu->turn_ns)
		return;
	paging->asks_ns = gpu->now_ns;
	paging->told_ns = gpu->now_ns;
}

/*
 * Whether it has found no room since there was more. A try may have begun before that, so it takes
 * two. One that does not try for so long is taken at its word.
 */
static bool has_tried(const struct gpu *gpu, const struct place *at)
{
	const struct fgv_paging *paging = &at->part->paging;

	return !paging->room_ns || at->account.tries - paging->tries >= 2 ||
	       gpu->now_ns - paging->room_ns >= TURN_NS;
}

static void serve(struct gpu *gpu)
{
	if (!gpu->first.part)
		return;
	if (gpu->first.part->paging.is_out) {
		/* It goes in once it is out: what it asks for may have come meanwhile. */
		if (has_arrived(&gpu->first))
			welcome(gpu);
		return;
	}
	if (gpu->moves)
		return;
	if (gpu->first.account.asks != FGV_ASKS_ROOM) {
		let_come(gpu);
		return;
	}
	if (!has_tried(gpu, &gpu->first))
		return;
	choose(gpu);
	if (gpu->victim.part) {
		tell(&gpu->victim, true, gpu->now_ns);
	} else if (!gpu->has_others) {
		set_alone(&gpu->first, true);
		gpu->first.part->paging.asks_ns = gpu->now_ns;
	}
}

static bool is_paged(const struct fgv_sessions *sessions)
{
	return fgv_config_pages(sessions->config) && !LIST_EMPTY(&sessions->list);
}

/* After a change of the configuration none stays out because it is no longer called in. */
static void end_paging(struct fgv_sessions *sessions)
{
	for (unsigned device = 0; device < sessions->warm->devices->count; device++) {
		struct place at = {0};

		while (next(sessions, device, &at)) {
			fgv_session_page(at.session);
			claim(&at, false);
			if (at.part->paging.is_out)
				tell(&at, false, fgv_now_ns());
		}
	}
	sessions->page_ns = 0;
}

uint64_t fgv_sessions_page_deadline_ns(const struct fgv_sessions *sessions)
{
	return is_paged(sessions) ? fgv_max_u64(sessions->page_ns, 1) : 0;
}

void fgv_sessions_page_tick(struct fgv_sessions *sessions)
{
	uint64_t now_ns = fgv_now_ns();
	bool asks = false;

	if (!is_paged(sessions)) {
		if (sessions->page_ns)
			end_paging(sessions);
		return;
	}
	if (now_ns < sessions->page_ns)
		return;
	for (unsigned device = 0; device < sessions->warm->devices->count; device++) {
		struct gpu gpu = {.sessions = sessions, .device = device, .now_ns = now_ns};

		survey(&gpu);
		judge_movers(&gpu);
		serve(&gpu);
		asks |= gpu.asks;
	}
	sessions->page_ns = now_ns + (asks ? LOOK_ASKS_NS : LOOK_NS);
}
