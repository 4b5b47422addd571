/*
 * What a QEMU guest writes into the slots of its region, and rings; and what the process of a
 * session says to the daemon, which plays the guest program to it. When all slots are closed they
 * are free, their windows are clean, and no descriptor stays behind.
 *
 * An input is records: a kind; which window; how many bytes follow, and these.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "api/gpu_wire.h"
#include "backend/fds.h"
#include "common/util.h"
#include "qemu-device/slots.h"
#include "shmring/park.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/world.h"

#define WINDOWS 3
#define HEAD	3
#define FDS_MAX 2

enum { OPEN, LOOK, CLOSE, SCRIBBLE, SCRIBBLE_WINDOW, RING, LINK, SAY, REAP, KINDS };

struct guest {
	struct fuzz_world *world;
	struct fgv_region region;
	struct fgv_slots slots;
	struct fgv_bell bell;
	uint8_t *memory; /* all of the region, as QEMU maps it */
	int qemu[2];
	int links[WINDOWS]; /* the ends of sessions' processes; -1: none */
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void begin(struct guest *guest)
{
	struct fuzz_world *world = guest->world;
	struct fgv_slots_scope scope = {.loop = world->loop,
					.sessions = &world->sessions,
					.vm = world->vms.list[0],
					.region = &guest->region,
					.bell = &guest->bell,
					.pid = getpid()};

	must(!fgv_bell_init(&guest->bell));
	must(!fgv_region_init(&guest->region, WINDOWS, &world->sessions.layout));
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, guest->qemu));
	scope.qemu_fd = guest->qemu[0];
	must(!fgv_slots_init(&guest->slots, &scope));
	guest->memory = mmap(NULL, guest->region.len, PROT_READ | PROT_WRITE, MAP_SHARED,
			     guest->region.fd, 0);
	must(guest->memory != MAP_FAILED);
	for (unsigned i = 0; i < WINDOWS; i++)
		guest->links[i] = -1;
}

static void end(struct guest *guest)
{
	fgv_slots_fini(&guest->slots);
	munmap(guest->memory, guest->region.len);
	fgv_region_fini(&guest->region);
	fgv_bell_fini(&guest->bell);
	for (unsigned i = 0; i < WINDOWS; i++) {
		if (guest->links[i] >= 0)
			close(guest->links[i]);
	}
	close(guest->qemu[0]);
	close(guest->qemu[1]);
}

static struct fgv_region_slot *slot_of(const struct guest *guest, unsigned window)
{
	return (struct fgv_region_slot *)(guest->memory + FGV_REGION_SLOTS_OFF) + window;
}

/* The daemon looks at a guest that rings too often when a while is over, which is now. */
static void turn(struct guest *guest)
{
	fuzz_loop_turn(guest->world->loop);
	if (guest->slots.look_again_ns)
		guest->slots.look_again_ns = 1;
	fgv_slots_tick(&guest->slots);
	fuzz_loop_turn(guest->world->loop);
}

static void ring(struct guest *guest)
{
	fgv_doorbell_ring(guest->region.bells[FGV_REGION_HOST][0]);
}

static void ask(struct guest *guest, unsigned window, uint32_t what)
{
	struct fgv_region_slot *slot = slot_of(guest, window);

	slot->request = what;
	__atomic_add_fetch(&slot->serial, 1, __ATOMIC_RELEASE);
	ring(guest);
}

/* A hello that is right but where the bytes, an offset and a value each, say otherwise. */
static void open_slot(struct guest *guest, unsigned window, uint32_t type, const uint8_t *bytes,
		      size_t len)
{
	struct fgv_msg_hello hello = {.type = type,
				      .version = FGV_WIRE_VERSION,
				      .hash = FGV_API_HASH,
				      .program = "fuzzer"};
	uint8_t *at = (uint8_t *)&hello;

	for (size_t i = 0; i + 1 < len; i += 2)
		at[bytes[i] % sizeof(hello)] = bytes[i + 1];
	slot_of(guest, window)->hello = hello;
	ask(guest, window, FGV_SLOT_OPEN);
}

/* Of the guest, its half and the host's: the first bytes say where. */
static void scribble(struct guest *guest, uint64_t off, uint64_t room, const uint8_t *bytes,
		     size_t len)
{
	uint64_t at;

	if (len < 2)
		return;
	at = (bytes[0] | bytes[1] << 8) % room;
	memcpy(guest->memory + off + at, bytes + 2, fgv_min_u64(len - 2, room - at));
}

/* A session's process, as far as the daemon can tell. */
static void link_process(struct guest *guest, unsigned window)
{
	struct fgv_slots_entry *entry = &guest->slots.entries[window];
	int pair[2];

	if (entry->phase != FGV_PHASE_FREE)
		return;
	if (guest->links[window] >= 0)
		close(guest->links[window]);
	must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	entry->link.fd = pair[0];
	entry->phase = FGV_PHASE_STARTING;
	entry->is_welcome = false;
	entry->end[0] = '\0';
	entry->lanes_sent = entry->lanes_attached = 0;
	must(!fgv_loop_add(guest->world->loop, &entry->link, EPOLLIN));
	guest->links[window] = pair[1];
}

/* The first byte: a message that is right, but for offsets and values; or what follows. */
static void say(struct guest *guest, unsigned window, const uint8_t *bytes, size_t len)
{
	union {
		struct fgv_msg_welcome welcome;
		struct fgv_msg_lane lane;
		struct fgv_msg_end end;
	} message = {0};
	unsigned kind = len ? bytes[0] & 3u : 3;
	size_t sizes[] = {sizeof(message.welcome), sizeof(message.lane), sizeof(message.end)};
	int fds[FDS_MAX] = {guest->links[window], guest->world->loop};
	uint8_t *at = (uint8_t *)&message;

	if (guest->links[window] < 0 || len < 2)
		return;
	if (kind == 0)
		message.welcome = (struct fgv_msg_welcome){.type = FGV_MSG_WELCOME,
							   .version = FGV_WIRE_VERSION};
	else if (kind == 1)
		message.lane = (struct fgv_msg_lane){.type = FGV_MSG_LANE, .lane = bytes[1]};
	else if (kind == 2)
		message.end = (struct fgv_msg_end){.type = FGV_MSG_END, .text = "it has ended"};
	for (size_t i = 2; kind < 3 && i + 1 < len; i += 2)
		at[bytes[i] % sizes[kind]] = bytes[i + 1];
	if (kind < 3)
		fgv_fds_send(guest->links[window], &message, sizes[kind], fds, bytes[0] >> 7);
	else
		fgv_fds_send(guest->links[window], bytes + 1, len - 1, fds, bytes[0] >> 7);
}

static void run_record(struct guest *guest, const uint8_t *head, const uint8_t *bytes, size_t len)
{
	const struct fgv_region *region = &guest->region;
	unsigned window = head[1] % WINDOWS;

	switch ((head[0] & 0x7fu) % KINDS) {
	case OPEN:
		open_slot(guest, window, FGV_MSG_HELLO, bytes, len);
		break;
	case LOOK:
		open_slot(guest, window, FGV_MSG_LOOK, bytes, len);
		break;
	case CLOSE:
		ask(guest, window, FGV_SLOT_CLOSE);
		break;
	case SCRIBBLE:
		scribble(guest, 0, FGV_REGION_SLOTS_OFF + WINDOWS * sizeof(struct fgv_region_slot),
			 bytes, len);
		break;
	case SCRIBBLE_WINDOW:
		scribble(guest, fgv_region_window_off(region, window), region->layout.len, bytes,
			 len);
		break;
	case RING:
		ring(guest);
		break;
	case LINK:
		link_process(guest, window);
		break;
	case SAY:
		say(guest, window, bytes, len);
		break;
	case REAP:
		fgv_slots_reaped(&guest->slots);
		break;
	}
	if (!(head[0] & 0x80))
		turn(guest);
}

static bool is_clean(const struct guest *guest, unsigned window)
{
	const uint8_t *at = guest->memory + fgv_region_window_off(&guest->region, window);

	return !at[0] && !memcmp(at, at + 1, FGV_PAGE_BYTES - 1);
}

/* By a guest that counts from where the daemon is, whatever it has written before. */
static void close_all(struct guest *guest)
{
	turn(guest);
	for (unsigned i = 0; i < WINDOWS; i++) {
		slot_of(guest, i)->serial = guest->slots.entries[i].seen;
		ask(guest, i, FGV_SLOT_CLOSE);
	}
	turn(guest);
	for (unsigned i = 0; i < WINDOWS; i++) {
		const struct fgv_slots_entry *entry = &guest->slots.entries[i];

		must(entry->phase == FGV_PHASE_FREE && entry->link.fd < 0);
		must(slot_of(guest, i)->state == FGV_SLOT_FREE);
		must(slot_of(guest, i)->answer == slot_of(guest, i)->serial);
	}
}

/* What the guest writes into a window that is free is its own affair, until that has been used. */
static void use_again(struct guest *guest)
{
	for (unsigned i = 0; i < WINDOWS; i++)
		open_slot(guest, i, FGV_MSG_LOOK, NULL, 0);
	turn(guest);
	for (unsigned i = 0; i < WINDOWS; i++)
		must(slot_of(guest, i)->state == FGV_SLOT_READY);
	close_all(guest);
	for (unsigned i = 0; i < WINDOWS; i++)
		must(is_clean(guest, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct fuzz_world world;
	struct guest guest = {.world = &world};
	int next_fd;

	if (!world.vms.count)
		fuzz_world_begin(&world);
	next_fd = fuzz_next_fd();
	begin(&guest);
	for (size_t at = 0; len - at >= HEAD;) {
		size_t bytes = fgv_min_u64(data[at + 2], len - at - HEAD);

		run_record(&guest, data + at, data + at + HEAD, bytes);
		at += HEAD + bytes;
	}
	close_all(&guest);
	use_again(&guest);
	end(&guest);
	must(fuzz_next_fd() == next_fd);
	return 0;
}
