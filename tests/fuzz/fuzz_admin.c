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
#define INPUTS_MAX     64 /* of one daemon */

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

static struct {
	struct fuzz_world world;
	struct fgv_admin admin;
	unsigned inputs;
} server;

static void begin(void)
{
	struct fuzz_world *world = &server.world;
	const struct fgv_admin_scope scope = {.devices = &world->devices,
					      .sessions = &world->sessions,
					      .warm = &world->warm,
					      .vms = &world->vms,
					      .live = &world->live};
	char why[256];

	fuzz_world_begin(world);
	must(!fgv_admin_init(&server.admin, world->loop, world->control, &scope, why, sizeof(why)));
	server.inputs = 0;
}

static void end(void)
{
	fgv_admin_fini(&server.admin);
	fuzz_world_end(&server.world);
	server.world.vms.count = 0;
}

/* One where nothing has been set yet. */
static void begin_input(bool questions_only)
{
	if (server.world.vms.count &&
	    (server.world.live.settings.count || server.inputs == INPUTS_MAX))
		end();
	if (!server.world.vms.count)
		begin();
	server.inputs++;
	server.admin.scope.questions_only = questions_only;
}

/* The daemon is slow to take observers one after the other: it takes the next one now. */
static void take_the_next(void)
{
	if (server.admin.accept_again_ns)
		server.admin.accept_again_ns = 1;
	fgv_admin_tick(&server.admin);
}

/* Whether the request is one, so that there is a reply, shows in how many bytes come. */
static size_t ask(const struct fuzz_world *world, const uint8_t *data, size_t len, size_t step,
		  bool ends)
{
	static char reply[REPLY_MAX];
	int fd = fuzz_connect(world->control, SOCK_STREAM);
	size_t got;

	must(fd >= 0);
	take_the_next();
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
	return got;
}

/* A connection with the input, and one with a question. */
static void run_input(const struct fuzz_world *world, const uint8_t *data, size_t len)
{
	static const char list[] = "{\"request\": \"stat\"}\n";
	size_t step = data[0] >> 3 ? data[0] >> 3 : FGV_ADMIN_REQUEST_MAX;

	ask(world, data + 1, len - 1, step, data[0] & FLAG_END);
	must(ask(world, (const uint8_t *)list, strlen(list), sizeof(list), false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int next_fd;

	if (!len)
		return 0;
	begin_input(data[0] & FLAG_QUESTIONS);
	next_fd = fuzz_next_fd();
	run_input(&server.world, data, len);
	must(server.admin.client_count == 0);
	must(fuzz_next_fd() == next_fd);
	return 0;
}
