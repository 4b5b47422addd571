/*
 * What comes to the administrator's socket, in pieces: the reply is one line of JSON, whatever was
 * asked and changed; and the daemon still answers afterwards.
 *
 * The first byte: FLAG_QUESTIONS, and in its upper bits how many bytes come at a time.
 */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/admin/admin.h"
#include "common/util.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/world.h"

#define FLAG_QUESTIONS 1u
#define FLAG_END       2u /* the end of what is sent ends the request */
#define REPLY_MAX      (1u << 20)

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* All of a reply, until the daemon hangs up; how long it is. */
static size_t take_reply(const struct fuzz_world *world, int fd, char *reply)
{
	size_t got = 0;
	ssize_t len;

	do {
		fuzz_loop_turn(world->loop);
		len = recv(fd, reply + got, REPLY_MAX - got, MSG_DONTWAIT);
		got += len > 0 ? (size_t)len : 0;
	} while (len > 0 && got < REPLY_MAX);
	return got;
}

static void check_reply(const char *reply, size_t len)
{
	json_t *parsed;

	must(len > 1 && reply[len - 1] == '\n' && memchr(reply, '\n', len) == reply + len - 1);
	parsed = json_loadb(reply, len, JSON_REJECT_DUPLICATES, NULL);
	must(json_is_object(parsed));
	json_decref(parsed);
}

/* Whether the request is one, so that there is a reply, shows in what comes. */
static void ask(const struct fuzz_world *world, const uint8_t *data, size_t len, size_t step,
		bool ends)
{
	static char reply[REPLY_MAX];
	int fd = fuzz_connect(world->control, SOCK_STREAM);
	size_t got;

	must(fd >= 0);
	fuzz_loop_turn(world->loop);
	for (size_t at = 0; at < len; at += step) {
		if (send(fd, data + at, fgv_min_u64(step, len - at), MSG_NOSIGNAL | MSG_DONTWAIT) <
		    0)
			break;
		fuzz_loop_turn(world->loop);
	}
	if (ends)
		shutdown(fd, SHUT_WR);
	got = take_reply(world, fd, reply);
	if (got || (ends && len))
		check_reply(reply, got);
	close(fd);
	fuzz_loop_turn(world->loop);
}

/* A connection with the input, and one with a question. */
static void run_input(const struct fuzz_world *world, const uint8_t *data, size_t len)
{
	static const char list[] = "{\"request\": \"stat\"}\n";
	size_t step = data[0] >> 3 ? data[0] >> 3 : FGV_ADMIN_REQUEST_MAX;

	ask(world, data + 1, len - 1, step, data[0] & FLAG_END);
	ask(world, (const uint8_t *)list, strlen(list), sizeof(list), false);
}

/* One where nothing has been set yet. */
static struct fuzz_world *fresh_world(void)
{
	static struct fuzz_world world;

	if (world.vms.count && !world.live.settings.count)
		return &world;
	if (world.vms.count)
		fuzz_world_end(&world);
	fuzz_world_begin(&world);
	return &world;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_world *world = fresh_world();
	const struct fgv_admin_scope scope = {.devices = &world->devices,
					      .sessions = &world->sessions,
					      .warm = &world->warm,
					      .vms = &world->vms,
					      .live = &world->live,
					      .questions_only = len && data[0] & FLAG_QUESTIONS};
	struct fgv_admin admin;
	char why[256];
	int next_fd = fuzz_next_fd();

	if (!len)
		return 0;
	must(!fgv_admin_init(&admin, world->loop, world->control, &scope, why, sizeof(why)));
	run_input(world, data, len);
	must(admin.client_count == 0);
	fgv_admin_fini(&admin);
	must(fuzz_next_fd() == next_fd);
	return 0;
}
