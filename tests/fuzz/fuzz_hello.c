/*
 * What programs say to the daemon's socket before they have a session: several connections at a
 * time, with messages whole, cut or mixed up, and with descriptors that nobody asked for. Each is
 * answered or left, and no descriptor stays behind.
 *
 * An input is records: a kind, whose upper bits are how many descriptors come with it; which
 * connection; how many bytes follow, and these.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "api/gpu_wire.h"
#include "backend/fds.h"
#include "common/util.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/world.h"

#define CONNECTIONS 4
#define FDS_MAX	    3
#define HEAD	    3

enum { SAY_BYTES, SAY_HELLO, SAY_LOOK, SAY_END, HANG_UP, TAKE_REPLY, TICK, KINDS };

static void take_reply(int fd)
{
	struct fgv_msg_view view;
	uint32_t type;
	ssize_t len = recv(fd, &view, sizeof(view), MSG_DONTWAIT);

	if (len <= 0)
		return;
	type = view.type;
	if (len != (ssize_t)(type == FGV_MSG_VIEW ? sizeof(view) : sizeof(struct fgv_msg_welcome)))
		abort();
}

/* A hello that is right but where the bytes, an offset and a value each, say otherwise. */
static void say_hello(int fd, uint32_t type, const uint8_t *bytes, size_t len, const int *fds,
		      size_t fd_count)
{
	struct fgv_msg_hello hello = {.type = type,
				      .version = FGV_WIRE_VERSION,
				      .hash = FGV_API_HASH,
				      .vm = "a",
				      .program = "fuzzer"};
	uint8_t *at = (uint8_t *)&hello;

	for (size_t i = 0; i + 1 < len; i += 2)
		at[bytes[i] % sizeof(hello)] = bytes[i + 1];
	fgv_fds_send(fd, &hello, sizeof(hello), fds, fd_count);
}

static void say(int fd, unsigned kind, const uint8_t *bytes, size_t len, const int *fds,
		size_t fd_count)
{
	if (kind == SAY_BYTES && len)
		fgv_fds_send(fd, bytes, len, fds, fd_count);
	else if (kind == SAY_HELLO || kind == SAY_LOOK)
		say_hello(fd, kind == SAY_LOOK ? FGV_MSG_LOOK : FGV_MSG_HELLO, bytes, len, fds,
			  fd_count);
	else if (kind == SAY_END)
		shutdown(fd, SHUT_WR);
	else if (kind == TAKE_REPLY)
		take_reply(fd);
}

/* What is sent on is a descriptor of any kind, the connection among them. */
static void run_record(struct fuzz_world *world, int connections[CONNECTIONS], const uint8_t *head,
		       const uint8_t *bytes, size_t len)
{
	int *fd = &connections[head[1] % CONNECTIONS];
	unsigned kind = (head[0] & 15u) % KINDS;
	int fds[FDS_MAX];

	if (*fd < 0)
		*fd = fuzz_connect(world->socket, SOCK_SEQPACKET);
	if (*fd < 0)
		return;
	if (kind == HANG_UP) {
		close(*fd);
		*fd = -1;
	} else if (kind == TICK) {
		fgv_doors_tick(&world->doors);
	} else {
		for (int i = 0; i < FDS_MAX; i++)
			fds[i] = i % 2 ? world->loop : *fd;
		say(*fd, kind, bytes, len, fds, (head[0] >> 4) % (FDS_MAX + 1));
	}
	if (!(head[1] & 0x80))
		fuzz_loop_turn(world->loop);
}

static struct fuzz_world *the_world(void)
{
	static struct fuzz_world world;

	if (!world.vms.count)
		fuzz_world_begin(&world);
	return &world;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_world *world = the_world();
	int connections[CONNECTIONS] = {-1, -1, -1, -1};
	int next_fd = fuzz_next_fd();

	for (size_t at = 0; len - at >= HEAD;) {
		size_t bytes = fgv_min_u64(data[at + 2], len - at - HEAD);

		run_record(world, connections, data + at, data + at + HEAD, bytes);
		at += HEAD + bytes;
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		if (connections[i] >= 0)
			close(connections[i]);
	}
	fuzz_loop_turn(world->loop);
	if (fuzz_next_fd() != next_fd || world->sessions.count)
		abort();
	return 0;
}
