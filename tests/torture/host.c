/*
 * The host: one dispatcher that serves all lanes in the order of fgv_lanes_next(),
 * checks every request and answers calls.
 */
#define _GNU_SOURCE
#include "tests/torture/torture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shmring/lanes.h"
#include "shmring/park.h"
#include "shmring/spin.h"

struct dispatcher {
	struct world *world;
	struct fgv_lanes *lanes;
	uint64_t received[TORTURE_LANES];
	uint64_t random;
	uint8_t data[FGV_MESSAGE_MAX];
};

static void reply(struct dispatcher *host, uint32_t lane, const struct message *message,
		  uint64_t number)
{
	struct fgv_reply answer = {
		.op = message->op,
		.call = (uint32_t)number,
		.status = reply_status(message),
		.data = &message->key,
		.len = sizeof(message->key),
	};
	int err = fgv_lanes_reply(host->lanes, lane, &answer);

	if (err)
		torture_fail("lane %u: reply: %d", lane, err);
	__atomic_add_fetch(&host->world->score->replied[lane], 1, __ATOMIC_RELEASE);
}

static void serve(struct dispatcher *host, const struct fgv_slot *slot, uint32_t lane)
{
	uint64_t number = host->received[lane]++;
	struct message message = message_of(host->world, lane, number);
	const void *data = slot->data;

	if (slot->call != (uint32_t)number || slot->op != message.op || slot->len != message.len)
		torture_fail("lane %u: request %u of %u bytes came as number %ju", lane, slot->call,
			     slot->len, (uintmax_t)number);
	if (slot->len > FGV_SLOT_INLINE)
		data = fgv_window_resolve(&host->world->window, slot->heap_off, slot->len);
	if (!data)
		torture_fail("lane %u: message outside the window", lane);
	memcpy(host->data, data, slot->len);
	fgv_lanes_release(host->lanes, lane);
	message_verify(&message, host->data);
	if (message.op == TORTURE_CALL)
		reply(host, lane, &message, number);
}

static bool serve_all(struct dispatcher *host)
{
	const struct fgv_slot *slot;
	bool did = false;
	uint32_t lane;

	while ((slot = fgv_lanes_next(host->lanes, &lane))) {
		serve(host, slot, lane);
		did = true;
	}
	return did;
}

static bool is_done(const struct dispatcher *host)
{
	for (uint32_t i = 0; i < TORTURE_LANES; i++) {
		if (host->received[i] < host->world->requests)
			return false;
	}
	return true;
}

static int sleep_for_requests(struct dispatcher *host)
{
	struct world *world = host->world;
	uint32_t *parked = &fgv_window_head(&world->window)->host_parked;
	int result = 1;

	fgv_doorbell_clear(world->host_doorbell);
	fgv_park_announce(parked);
	if (!fgv_lanes_any_ordered(host->lanes))
		result = fgv_doorbell_wait(world->host_doorbell, world->host_socket, -1);
	fgv_park_withdraw(parked);
	return result < 0 ? result : 0;
}

/* Until the guest is done or has hung up. */
static int serve_until_end(struct dispatcher *host)
{
	struct fgv_spin spin = fgv_spin_start();
	int err = 0;

	while (!is_done(host) && !err) {
		if (serve_all(host))
			spin = fgv_spin_start();
		else if (random_u64(&host->random) % 64 && fgv_spin_again(&spin))
			continue;
		else if (!is_done(host))
			err = sleep_for_requests(host);
	}
	serve_all(host);
	return err;
}

/* Whatever the guest has published has come; it may have died before counting the last. */
static void compare_score(const struct dispatcher *host)
{
	for (uint32_t i = 0; i < TORTURE_LANES; i++) {
		uint64_t sent =
			__atomic_load_n(&host->world->score->published[i], __ATOMIC_ACQUIRE);

		if (host->received[i] != sent && host->received[i] != sent + 1)
			torture_fail("lane %u: %ju requests of %ju", i,
				     (uintmax_t)host->received[i], (uintmax_t)sent);
	}
}

int host_run(struct world *world)
{
	static struct dispatcher host;
	int result;

	memset(&host, 0, sizeof(host));
	host.world = world;
	host.random = ~world->seed;
	host.lanes = fgv_lanes_create(&world->window);
	if (!host.lanes)
		torture_fail("no memory for lanes");
	for (uint32_t i = 0; i < TORTURE_LANES; i++) {
		if (fgv_lanes_attach(host.lanes, i, dup(world->lane_doorbells[i])))
			torture_fail("lane %u can't be attached", i);
	}
	result = serve_until_end(&host);
	if (result == -ECONNRESET)
		compare_score(&host);
	fgv_lanes_destroy(host.lanes);
	return result;
}
