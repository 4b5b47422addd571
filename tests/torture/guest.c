/*
 * The guest: a thread per lane that posts requests and awaits the replies to calls.
 * It waits as a client does: spins, announces, looks once more, sleeps; but now and
 * then it does not spin at all.
 */
#include "tests/torture/torture.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "shmring/heap.h"
#include "shmring/park.h"
#include "shmring/ring.h"
#include "shmring/spin.h"

struct client {
	struct world *world;
	uint32_t lane;
	struct fgv_ring requests;
	struct fgv_ring replies;
	struct fgv_heap heap;
	uint32_t reclaimed; /* position of the oldest request not known to be freed */
	uint32_t *parked;
	uint64_t random;
	uint64_t replied; /* replies that came */
	int result;
};

enum event { EVENT_REPLY, EVENT_ROOM };

static bool has_come(const struct client *client, enum event event)
{
	if (event == EVENT_REPLY)
		return fgv_ring_peek(&client->replies);
	return fgv_ring_freed(&client->requests, client->reclaimed);
}

static bool has_come_ordered(const struct client *client, enum event event)
{
	if (event == EVENT_REPLY)
		return fgv_ring_peek_ordered(&client->replies);
	return fgv_ring_freed_ordered(&client->requests, client->reclaimed);
}

static int sleep_for(struct client *client, enum event event)
{
	int doorbell = client->world->lane_doorbells[client->lane], result = 1;

	fgv_doorbell_clear(doorbell);
	if (event == EVENT_REPLY)
		fgv_park_announce(client->parked);
	else
		fgv_park_announce_for_room(client->parked);
	if (!has_come_ordered(client, event))
		result = fgv_doorbell_wait(doorbell, client->world->guest_socket, -1);
	fgv_park_withdraw(client->parked);
	/* What came before the end counts. */
	return result < 0 && !has_come(client, event) ? result : 0;
}

static int await(struct client *client, enum event event)
{
	bool spins = random_u64(&client->random) % 4;
	struct fgv_spin spin = fgv_spin_start();
	int err;

	while (!has_come(client, event)) {
		if (spins && fgv_spin_again(&spin))
			continue;
		err = sleep_for(client, event);
		if (err)
			return err;
		spin = fgv_spin_start();
	}
	return 0;
}

static uint32_t slot_of(uint32_t position)
{
	return position % FGV_REQUEST_SLOTS;
}

static void reclaim(struct client *client)
{
	while (client->reclaimed != client->requests.position &&
	       fgv_ring_freed(&client->requests, client->reclaimed))
		fgv_heap_reclaim(&client->heap, slot_of(client->reclaimed++));
}

/* A slot, and room in the heap if that is needed; NULL while there is none. */
static struct fgv_slot *take_room(struct client *client, uint32_t len, uint64_t *off)
{
	struct fgv_slot *slot;
	int err;

	reclaim(client);
	slot = fgv_ring_reserve(&client->requests);
	if (!slot || len <= FGV_SLOT_INLINE)
		return slot;
	err = fgv_heap_alloc(&client->heap, slot_of(client->requests.position), len, off);
	if (err && err != -EAGAIN)
		torture_fail("heap: %d for %u bytes", err, len);
	return err ? NULL : slot;
}

static int post(struct client *client, const struct message *message, uint64_t number)
{
	struct world *world = client->world;
	struct fgv_slot *slot;
	uint64_t off = 0;
	int err;

	while (!(slot = take_room(client, message->len, &off))) {
		err = await(client, EVENT_ROOM);
		if (err)
			return err;
	}
	slot->op = message->op;
	slot->vcpu = 0;
	slot->call = (uint32_t)number;
	slot->len = message->len;
	if (message->len > FGV_SLOT_INLINE) {
		slot->heap_off = off;
		message_fill(message, fgv_window_resolve(&world->window, off, message->len));
	} else {
		message_fill(message, slot->data);
	}
	slot->ticket = __atomic_add_fetch(&world->ticket, 1, __ATOMIC_RELAXED);
	fgv_ring_publish(&client->requests);
	__atomic_add_fetch(&world->score->published[client->lane], 1, __ATOMIC_RELEASE);
	if (fgv_park_is_announced(&fgv_window_head(&world->window)->host_parked))
		fgv_doorbell_ring(world->host_doorbell);
	return 0;
}

static int take_reply(struct client *client, const struct message *message, uint64_t number)
{
	const struct fgv_slot *slot;
	int err = await(client, EVENT_REPLY);

	if (err)
		return err;
	slot = fgv_ring_peek(&client->replies);
	if (slot->op != message->op || slot->call != (uint32_t)number ||
	    slot->status != reply_status(message) || slot->len != sizeof(message->key) ||
	    memcmp(slot->data, &message->key, sizeof(message->key)))
		torture_fail("lane %u: wrong reply to request %ju", client->lane,
			     (uintmax_t)number);
	fgv_ring_release(&client->replies);
	client->replied++;
	return 0;
}

static void *client_main(void *arg)
{
	struct client *client = arg;
	struct world *world = client->world;

	for (uint64_t number = 0; number < world->requests && !client->result; number++) {
		struct message message = message_of(world, client->lane, number);

		client->result = post(client, &message, number);
		if (!client->result && message.op == TORTURE_CALL)
			client->result = take_reply(client, &message, number);
	}
	return NULL;
}

static void client_init(struct client *client, struct world *world, uint32_t lane)
{
	const struct fgv_window *window = &world->window;
	uint64_t heap_off = window->lanes_off + lane * (uint64_t)FGV_LANE_BYTES + FGV_LANE_HEAP;

	*client = (struct client){.world = world, .lane = lane, .random = world->seed + lane};
	fgv_ring_attach(&client->requests, fgv_window_requests(window, lane), FGV_REQUEST_SLOTS,
			FGV_RING_START);
	fgv_ring_attach(&client->replies, fgv_window_replies(window, lane), FGV_REPLY_SLOTS,
			FGV_RING_START);
	fgv_heap_init(&client->heap, heap_off, FGV_LANE_HEAP_LEN);
	client->reclaimed = FGV_RING_START;
	client->parked = &fgv_window_lane_head(window, lane)->guest_parked;
}

int guest_run(struct world *world)
{
	static struct client clients[TORTURE_LANES];
	pthread_t threads[TORTURE_LANES];
	int result = 0;

	for (uint32_t i = 0; i < TORTURE_LANES; i++) {
		client_init(&clients[i], world, i);
		if (pthread_create(&threads[i], NULL, client_main, &clients[i]))
			torture_fail("no thread for lane %u", i);
	}
	for (uint32_t i = 0; i < TORTURE_LANES; i++) {
		uint64_t sent;

		pthread_join(threads[i], NULL);
		if (!clients[i].result)
			continue;
		result = clients[i].result;
		/* The host may have died between publishing and counting. */
		sent = __atomic_load_n(&world->score->replied[i], __ATOMIC_ACQUIRE);
		if (clients[i].replied != sent && clients[i].replied != sent + 1)
			torture_fail("lane %u: %ju replies of %ju", i,
				     (uintmax_t)clients[i].replied, (uintmax_t)sent);
	}
	return result;
}
