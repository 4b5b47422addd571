/*
 * The guest's end of a lane: filling and posting requests, waiting for replies. The
 * way of a post that finds room has no lock, no system call and no clock in it.
 *
 * The ticket is drawn from the session's counter just before the slot is published,
 * and the post returns after. So whoever acts after a post has returned draws a later
 * ticket, and the host, which runs what it sees in the order of tickets, sees that
 * post's slot when it sees the later one.
 */
#define _GNU_SOURCE
#include "frontend/client/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/util.h"
#include "frontend/client/connect.h"
#include "shmring/park.h"
#include "shmring/spin.h"
#include "shmring/usual.h"

/*
 * How much later a nap ends, how much less than usual what is waited for may take, and which
 * sleeps are not worth their while.
 */
#define SLEEP_LATE_NS  (12 * FGV_NS_PER_US)
#define VARIES_BY_PART 64
#define SLEEP_MIN_NS   (100 * FGV_NS_PER_US)

/* A thread that finds the ring full waits until so many slots of it are free. */
#define ROOM_WAITED_FOR (FGV_REQUEST_SLOTS / 4)

/* A nap, or two in one, and how much of a sleep is spent in naps. */
#define NAP_NS	(150 * FGV_NS_PER_US)
#define NAPS_NS (5 * FGV_NS_PER_MS)

/* So much later may a timer end, that the kernel can wake for several at once: not for these. */
#define TIMER_SLACK_NS 1

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct fgv_lane *fgv_lane_create(struct fgv_client *client, uint32_t index, bool shared)
{
	const struct fgv_window *window = &client->window;
	struct fgv_lane *lane =
		aligned_alloc(FGV_CACHE_LINE, (sizeof(*lane) + FGV_CACHE_LINE - 1) /
						      FGV_CACHE_LINE * FGV_CACHE_LINE);

	if (!lane)
		return NULL;
	*lane = (struct fgv_lane){
		.client = client,
		.head = fgv_window_lane_head(window, index),
		.reclaimed = FGV_RING_START,
		.index = index,
		.shared = shared,
	};
	lane->nowhere = malloc(FGV_MESSAGE_MAX);
	lane->doorbell = fgv_connect_raise(fgv_doorbell_create());
	if (!lane->nowhere || lane->doorbell < 0) {
		if (lane->doorbell >= 0)
			close(lane->doorbell);
		free(lane->nowhere);
		free(lane);
		return NULL;
	}
	pthread_mutex_init(&lane->lock, NULL);
	fgv_ring_attach(&lane->requests, fgv_window_requests(window, index), FGV_REQUEST_SLOTS,
			FGV_RING_START);
	fgv_ring_attach(&lane->replies, fgv_window_replies(window, index), FGV_REPLY_SLOTS,
			FGV_RING_START);
	fgv_heap_init(&lane->heap,
		      window->lanes_off + (uint64_t)index * FGV_LANE_BYTES + FGV_LANE_HEAP,
		      FGV_LANE_HEAP_LEN);
	return lane;
}

void fgv_lane_destroy(struct fgv_lane *lane)
{
	close(lane->doorbell);
	pthread_mutex_destroy(&lane->lock);
	free(lane->nowhere);
	free(lane);
}

void fgv_lane_own(struct fgv_lane *lane)
{
	struct fgv_thread *self = &fgv_thread_self;

	if (!self->id)
		self->id = (uint32_t)gettid();
	__atomic_store_n(&lane->head->guest_thread, self->id, __ATOMIC_RELAXED);
}

void fgv_lane_lock(struct fgv_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	fgv_lane_own(lane);
}

CUresult fgv_lane_status(struct fgv_lane *lane)
{
	CUresult res = fgv_session_status(lane->client);

	return unlikely(lane->recorder) && !res ? lane->recorder->failed : res;
}

/*
 * Sleeps until this lane's doorbell is rung, for @limit_ns at most unless that is negative, or
 * for a moment only; whether it was for the limit. What the session's end looks like from here is
 * that the connection hangs up. A message on it is an acknowledgement that another thread is
 * about to read (attach.c). CUDA's calls are no cancellation points, and a lane must not be
 * left in the middle of one.
 */
bool fgv_lane_sleep(struct fgv_lane *lane, int64_t limit_ns)
{
	int cancel, rung;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rung = fgv_doorbell_wait(lane->doorbell, lane->client->connection, limit_ns);
	pthread_setcancelstate(cancel, NULL);
	switch (rung) {
	case 0:
	case 1:
	case -EINTR:
		break;
	case -EAGAIN:
		sched_yield();
		break;
	case -ECONNRESET:
		fgv_session_lose(lane->client, "the backend has closed the connection");
		break;
	default:
		fgv_session_lose(lane->client, "waiting on its descriptors fails");
		break;
	}
	fgv_doorbell_clear(lane->doorbell);
	return rung == 0;
}

/*
 * The same for @ns, but the last of it in naps: from a long sleep a processor wakes up late, and
 * with nothing left in its caches.
 */
void fgv_lane_doze(struct fgv_lane *lane, uint64_t ns)
{
	uint64_t end_ns = fgv_now_ns() + ns, now_ns = end_ns - ns;
	int slack = prctl(PR_GET_TIMERSLACK);
	bool undisturbed = true;

	if (slack > TIMER_SLACK_NS)
		prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	for (; now_ns < end_ns && undisturbed; now_ns = fgv_now_ns()) {
		uint64_t left_ns = end_ns - now_ns;
		uint64_t nap_ns = left_ns < 2 * NAP_NS ? left_ns : NAP_NS;

		undisturbed = fgv_lane_sleep(
			lane, (int64_t)(left_ns > NAPS_NS ? left_ns - NAPS_NS : nap_ns));
	}
	if (slack > TIMER_SLACK_NS)
		prctl(PR_SET_TIMERSLACK, slack);
}

/*
 * How long to sleep before looking at all: for the most of what such a wait usually lasts.
 * Else a busy GPU would have two processors busy with waiting, this one and the host's.
 * Where spinning is dear, or is to last longer, that decides.
 */
uint64_t fgv_lane_rest_ns(uint32_t usual_ns)
{
	uint64_t ns = fgv_usual_rest_ns(usual_ns, SLEEP_LATE_NS + usual_ns / VARIES_BY_PART);

	if (!fgv_spin_is_cheap())
		return 0;
	return ns > fgv_max_u64(SLEEP_MIN_NS, fgv_spin_time_ns()) ? ns : 0;
}

static void reclaim_one(struct fgv_lane *lane)
{
	fgv_heap_reclaim(&lane->heap, lane->reclaimed++ % FGV_REQUEST_SLOTS);
}

/*
 * With the next slot in hand, all requests of a ring's worth ago and earlier are done:
 * gives the heap back what they took, without a look at slots that the host has at
 * hand. Called at least once in a lap, so that reclaimed is never far behind.
 */
static void reclaim_last_lap(struct fgv_lane *lane)
{
	while (lane->requests.position - lane->reclaimed >= FGV_REQUEST_SLOTS)
		reclaim_one(lane);
}

/* The same for all that the host is done with. */
static void reclaim_all(struct fgv_lane *lane)
{
	struct fgv_ring *ring = &lane->requests;

	while (lane->reclaimed != ring->position && fgv_ring_freed(ring, lane->reclaimed))
		reclaim_one(lane);
}

/*
 * Waits until the host has given back the slot of @position, an earlier request's: at first asleep,
 * for the most of what that usually takes, then looking, and at last parked. The host rings a
 * thread that is parked for room when there is a fair amount of it (park.h). False once the session
 * has ended.
 */
static bool wait_for_room(struct fgv_lane *lane, uint32_t position)
{
	uint64_t first_ns = fgv_lane_rest_ns(lane->room_usual_ns), since_ns = fgv_now_ns();
	struct fgv_spin spin = fgv_spin_start();
	bool overslept = false;

	if (first_ns) {
		fgv_lane_doze(lane, first_ns);
		overslept = fgv_ring_freed(&lane->requests, position);
	}
	while (!fgv_ring_freed(&lane->requests, position)) {
		if (fgv_session_status(lane->client))
			return false;
		if (fgv_spin_again(&spin))
			continue;
		fgv_park_announce_for_room(&lane->head->guest_parked);
		if (!fgv_ring_freed_ordered(&lane->requests, position))
			fgv_lane_sleep(lane, -1);
		fgv_park_withdraw(&lane->head->guest_parked);
		spin = fgv_spin_start();
	}
	fgv_usual_note(&lane->room_usual_ns, fgv_now_ns() - since_ns, overslept);
	return true;
}

/*
 * A ring's worth of requests ago the host was given the slot that is wanted now. To be there
 * for each slot that it gives back would only be in its way: there is work enough in the ring.
 */
static struct fgv_slot *wait_for_slot(struct fgv_lane *lane)
{
	uint32_t oldest = lane->requests.position - FGV_REQUEST_SLOTS;

	if (!wait_for_room(lane, oldest + ROOM_WAITED_FOR - 1))
		return NULL;
	return fgv_ring_reserve(&lane->requests);
}

/* Room for the open request's message; NULL once the session has ended. */
static void *open_in_heap(struct fgv_lane *lane, uint32_t len)
{
	uint32_t slot = lane->requests.position % FGV_REQUEST_SLOTS;

	reclaim_last_lap(lane);
	if (!fgv_heap_alloc(&lane->heap, slot, len, &lane->open_heap))
		return lane->client->window.base + lane->open_heap;
	reclaim_all(lane);
	while (fgv_heap_alloc(&lane->heap, slot, len, &lane->open_heap)) {
		/* Full, so there is a request that the host is not done with. */
		if (!wait_for_room(lane, lane->reclaimed))
			return NULL;
		reclaim_all(lane);
	}
	return lane->client->window.base + lane->open_heap;
}

static void *refuse(struct fgv_lane *lane, const struct fgv_op_info *info, CUresult code)
{
	if (info->call)
		lane->refused = code;
	return lane->nowhere;
}

void *fgv_lane_begin_recorded(struct fgv_lane *lane, uint16_t op, uint32_t len)
{
	const struct fgv_op_info *info = &fgv_op_infos[op];
	CUresult (*judge)(void);
	CUresult res = CUDA_SUCCESS;
	void *message;

	if (info->apart)
		return NULL;
	if (!lane->recorder) {
		/* Pairs with the release in fgv_record_forbid(). */
		judge = __atomic_load_n(&fgv_record_judge, __ATOMIC_ACQUIRE);
		if (judge && info->call)
			res = judge();
		return res ? refuse(lane, info, res) : NULL;
	}
	if (info->call || info->stream_off == FGV_OP_NO_STREAM) {
		fgv_recorder_fail(lane->recorder, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		return refuse(lane, info, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	message = fgv_recorder_add(lane->recorder, NULL, op, len);
	return message ? message : lane->nowhere;
}

void fgv_lane_leave_recorder(struct fgv_lane *lane)
{
	struct fgv_recorder *recorder = lane->recorder;

	lane->recorder = NULL;
	if (recorder->finish)
		recorder->finish(recorder);
}

void *fgv_lane_begin(struct fgv_lane *lane, uint16_t op, uint32_t len)
{
	void *message;

	if (unlikely(len > FGV_MESSAGE_MAX))
		return NULL;
	lane->open_op = op;
	lane->open_len = len;
	lane->open = NULL;
	if (unlikely(fgv_session_status(lane->client)))
		return lane->nowhere;
	if (unlikely(lane->recorder || __atomic_load_n(&fgv_record_judge, __ATOMIC_RELAXED))) {
		message = fgv_lane_begin_recorded(lane, op, len);
		if (message)
			return message;
	}
	lane->open = fgv_ring_reserve(&lane->requests);
	if (unlikely(!lane->open))
		lane->open = wait_for_slot(lane);
	if (unlikely(!lane->open))
		return lane->nowhere;
	if (!(lane->requests.position % FGV_REQUEST_SLOTS))
		reclaim_last_lap(lane);
	if (len <= FGV_SLOT_INLINE)
		return lane->open->data;
	message = open_in_heap(lane, len);
	if (unlikely(!message)) {
		lane->open = NULL;
		return lane->nowhere;
	}
	return message;
}

/* Work whose end the program can see, and does not wait for anyway; see sync.h. */
static bool is_seen(uint16_t op)
{
	switch (op) {
	case FGV_OP_COPY_IN:
	case FGV_OP_COPY_IN_BULK:
	case FGV_OP_BOX_IN:
	case FGV_OP_BOX_IN_BULK:
	case FGV_OP_COPY_OUT:
	case FGV_OP_BOX_OUT:
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
		return false;
	default:
		return fgv_op_infos[op].work;
	}
}

uint32_t fgv_lane_commit(struct fgv_lane *lane)
{
	struct fgv_client *client = lane->client;
	struct fgv_slot *slot = lane->open;

	if (unlikely(!slot))
		return lane->call++;
	lane->open = NULL;
	slot->op = lane->open_op;
	slot->vcpu = (uint16_t)sched_getcpu();
	slot->call = lane->call;
	slot->len = lane->open_len;
	if (lane->open_len > FGV_SLOT_INLINE)
		slot->heap_off = lane->open_heap;
	fgv_count_up(&lane->counts[lane->open_op].requests);
	slot->ticket = __atomic_fetch_add(&client->ticket, 1, __ATOMIC_RELAXED);
	if (is_seen(lane->open_op))
		__atomic_store_n(&lane->seen_ticket, slot->ticket, __ATOMIC_RELAXED);
	fgv_ring_publish(&lane->requests);
	/* Partner of the dispatcher's announcement: park.h. */
	if (fgv_park_is_announced(&fgv_window_head(&client->window)->host_parked))
		fgv_doorbell_ring(client->doorbell);
	return lane->call++;
}
