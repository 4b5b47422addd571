/*
 * The ticket rule. Each lane's first request (its head) is copied when it is first
 * seen, and kept until it is released. The head with the smallest ticket runs, after
 * a look at all lanes without a head that was begun after that head was seen:
 *
 *   Let post a have happened before post b, and b's head be seen. Then a was published
 *   before the look began. If a is the head of its lane, the look finds it, and a's
 *   ticket is smaller, as it was drawn earlier. If it is not, then what is before a in
 *   its lane has a smaller ticket still. Either way b does not run.
 *
 * Whoever turns up in the look with a smaller ticket needs a look of its own, since
 * the lanes passed before may have got something that happened before it.
 *
 * No look is needed where everything up to ticket n has run and the head's ticket is
 * n + 1. It does not suffice that ticket n ran last: n - 1 may have been published late,
 * and then n + 1 after it. models/ticket.pml has both checked.
 */
#include "shmring/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmring/park.h"
#include "shmring/ring.h"

struct lane {
	struct fgv_ring requests;
	struct fgv_ring replies;
	uint32_t *parked;
	uint32_t number;
	int doorbell_fd;
	bool is_attached;
	bool has_head;
	struct fgv_slot head;
};

struct fgv_lanes {
	uint64_t newest;   /* the greatest ticket that ran */
	uint64_t executed; /* how many ran: if none is missing, as many as newest */
	uint64_t rings;
	struct lane *last; /* that ran last, or NULL */
	uint32_t cursor;   /* where the next look begins, in attached */
	uint32_t attached_count;
	struct lane *attached[FGV_LANES_MAX];
	uint32_t lane_count;
	struct lane lanes[];
};

struct fgv_lanes *fgv_lanes_create(const struct fgv_window *window)
{
	struct fgv_lanes *lanes;

	lanes = calloc(1, sizeof(*lanes) + window->lanes * sizeof(struct lane));
	if (!lanes)
		return NULL;
	lanes->lane_count = window->lanes;
	for (uint32_t i = 0; i < window->lanes; i++) {
		struct lane *lane = &lanes->lanes[i];

		fgv_ring_attach(&lane->requests, fgv_window_requests(window, i), FGV_REQUEST_SLOTS,
				FGV_RING_START);
		fgv_ring_attach(&lane->replies, fgv_window_replies(window, i), FGV_REPLY_SLOTS,
				FGV_RING_START);
		lane->parked = &fgv_window_lane_head(window, i)->guest_parked;
		lane->number = i;
	}
	return lanes;
}

void fgv_lanes_destroy(struct fgv_lanes *lanes)
{
	if (!lanes)
		return;
	while (lanes->attached_count)
		fgv_lanes_detach(lanes, lanes->attached[0]->number);
	free(lanes);
}

int fgv_lanes_attach(struct fgv_lanes *lanes, uint32_t number, int doorbell_fd)
{
	struct lane *lane;

	if (number >= lanes->lane_count)
		return -EINVAL;
	lane = &lanes->lanes[number];
	if (lane->is_attached)
		return -EEXIST;
	lane->doorbell_fd = doorbell_fd;
	lane->is_attached = true;
	lanes->attached[lanes->attached_count++] = lane;
	return 0;
}

void fgv_lanes_detach(struct fgv_lanes *lanes, uint32_t number)
{
	struct lane *lane;
	uint32_t i = 0;

	if (number >= lanes->lane_count || !lanes->lanes[number].is_attached)
		return;
	lane = &lanes->lanes[number];
	if (lane->doorbell_fd >= 0)
		close(lane->doorbell_fd);
	lane->is_attached = false;
	lane->has_head = false;
	if (lanes->last == lane)
		lanes->last = NULL;
	while (lanes->attached[i] != lane)
		i++;
	lanes->attached[i] = lanes->attached[--lanes->attached_count];
	lanes->cursor = 0;
}

/*
 * Reads each word of a cache line exactly once, whatever the guest does to it meanwhile.
 * Relaxed: the acquire load of the mark came before.
 */
static inline void copy_line(void *to, const void *from)
{
	uint64_t words[FGV_CACHE_LINE / sizeof(uint64_t)];
	const uint64_t *source = from;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
	memcpy(to, words, sizeof(words));
}

/* What the second line holds of a message that does not reach it is an earlier one's. */
static void copy_slot(struct fgv_slot *to, const struct fgv_slot *from)
{
	copy_line(to, from);
	if (to->len > FGV_SLOT_FIRST && to->len <= FGV_SLOT_INLINE)
		copy_line((uint8_t *)to + FGV_CACHE_LINE, (const uint8_t *)from + FGV_CACHE_LINE);
}

/* Whether the lane has a head, after a look into its ring if it had none. */
static bool look(struct lane *lane)
{
	const struct fgv_slot *slot;

	if (lane->has_head)
		return true;
	slot = fgv_ring_peek(&lane->requests);
	if (!slot)
		return false;
	copy_slot(&lane->head, slot);
	lane->has_head = true;
	return true;
}

/* Whether nothing can have to run before the lane's head. */
static bool is_expected(const struct fgv_lanes *lanes, const struct lane *lane)
{
	return lanes->executed == lanes->newest && lane->head.ticket == lanes->newest + 1;
}

static struct lane *smallest_head(const struct fgv_lanes *lanes)
{
	struct lane *best = NULL;

	for (uint32_t i = 0; i < lanes->attached_count; i++) {
		struct lane *lane = lanes->attached[i];

		if (lane->has_head && (!best || lane->head.ticket < best->head.ticket))
			best = lane;
	}
	return best;
}

/*
 * Looks at lanes without a head, going round, until nothing smaller than @best has
 * turned up for a whole round. Each new round costs one more lane that has a head now,
 * so there are at most as many rounds as lanes.
 */
static struct lane *look_around(struct fgv_lanes *lanes, struct lane *best)
{
	for (uint32_t quiet = 0; quiet < lanes->attached_count; quiet++) {
		struct lane *lane = lanes->attached[lanes->cursor];

		if (++lanes->cursor == lanes->attached_count)
			lanes->cursor = 0;
		if (lane->has_head || !look(lane))
			continue;
		if (best && lane->head.ticket >= best->head.ticket)
			continue;
		best = lane;
		quiet = 0;
		if (is_expected(lanes, best))
			break;
	}
	return best;
}

const struct fgv_slot *fgv_lanes_next(struct fgv_lanes *lanes, uint32_t *number)
{
	struct lane *best = lanes->last;

	if (!best || !look(best) || !is_expected(lanes, best)) {
		best = smallest_head(lanes);
		if (!best || !is_expected(lanes, best))
			best = look_around(lanes, best);
	}
	if (!best)
		return NULL;
	*number = best->number;
	return &best->head;
}

const struct fgv_slot *fgv_lanes_next_of(struct fgv_lanes *lanes, uint16_t op, fgv_lanes_may *may,
					 const void *arg, uint32_t *number)
{
	for (uint32_t i = 0; i < lanes->attached_count; i++) {
		struct lane *lane = lanes->attached[i];

		if (!may(arg, lane->number) || !look(lane) || lane->head.op != op)
			continue;
		*number = lane->number;
		return &lane->head;
	}
	return NULL;
}

static void account(struct fgv_lanes *lanes, struct lane *lane)
{
	lanes->executed++;
	if (lane->head.ticket > lanes->newest)
		lanes->newest = lane->head.ticket;
	lanes->last = lane;
}

/*
 * A guest that waits for room has published all it can, so it waits at least until its
 * last request is released. To wake it for each slot would be to wake it for nothing.
 */
static bool room_is_worth_telling(const struct lane *lane)
{
	struct fgv_ring after = lane->requests;

	after.position++;
	if (!fgv_ring_peek(&after))
		return true;
	return !(after.position % (FGV_REQUEST_SLOTS / 4));
}

static void ring(struct fgv_lanes *lanes, const struct lane *lane)
{
	if (lane->doorbell_fd < 0)
		return;
	lanes->rings++;
	fgv_doorbell_ring(lane->doorbell_fd);
}

void fgv_lanes_release(struct fgv_lanes *lanes, uint32_t number)
{
	struct lane *lane;

	if (number >= lanes->lane_count || !lanes->lanes[number].has_head)
		return;
	lane = &lanes->lanes[number];
	account(lanes, lane);
	lane->has_head = false;
	if (!room_is_worth_telling(lane)) {
		fgv_ring_release(&lane->requests);
		return;
	}
	/* Pairs with the guest's announcement and fgv_ring_freed_ordered(). */
	fgv_ring_release_ordered(&lane->requests);
	if (fgv_park_is_announced_for_room(lane->parked))
		ring(lanes, lane);
}

bool fgv_lanes_any_ordered(const struct fgv_lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->attached_count; i++) {
		const struct lane *lane = lanes->attached[i];

		if (lane->has_head || fgv_ring_peek_ordered(&lane->requests))
			return true;
	}
	return false;
}

static void wake_parked(struct fgv_lanes *lanes, const struct lane *lane)
{
	if (fgv_park_is_announced(lane->parked))
		ring(lanes, lane);
}

int fgv_lanes_reply(struct fgv_lanes *lanes, uint32_t number, const struct fgv_reply *reply)
{
	struct fgv_slot *slot;
	struct lane *lane;

	if (number >= lanes->lane_count || reply->len > FGV_SLOT_INLINE)
		return -EINVAL;
	lane = &lanes->lanes[number];
	if (!lane->is_attached)
		return -EINVAL;
	slot = fgv_ring_reserve(&lane->replies);
	if (!slot)
		return -EAGAIN;
	slot->op = reply->op;
	slot->vcpu = 0;
	slot->status = reply->status;
	slot->call = reply->call;
	slot->len = reply->len;
	if (reply->len)
		memcpy(slot->data, reply->data, reply->len);
	fgv_ring_publish(&lane->replies);
	/* Pairs with the guest's announcement and fgv_ring_peek_ordered(). */
	wake_parked(lanes, lane);
	return 0;
}

void fgv_lanes_wake(struct fgv_lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->attached_count; i++)
		wake_parked(lanes, lanes->attached[i]);
}

uint64_t fgv_lanes_rings(const struct fgv_lanes *lanes)
{
	return lanes->rings;
}
