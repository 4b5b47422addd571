/*
 * fairgvctl freeze and thaw: asks until all sessions are where they are to be, and says what they
 * have left where.
 */
#include "tools/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "common/log.h"
#include "common/util.h"

#define ASK_AGAIN_NS (2 * FGV_NS_PER_MS)

/* What stays on the GPU, with what of it can be named: " (modules 12.0 MiB, arrays 1.0 MiB)". */
static void print_stays(const json_t *session, uint64_t stays)
{
	char text[FGV_CTL_TEXT_LEN];
	const char *name, *before = " (";
	json_t *bytes;

	fgv_ctl_show_bytes(text, sizeof(text), stays);
	printf(", %s stays on the GPU", text);
	json_object_foreach(json_object_get(session, "stays"), name, bytes)
	{
		uint64_t part = (uint64_t)json_integer_value(bytes);

		if (!part)
			continue;
		fgv_ctl_show_bytes(text, sizeof(text), part);
		printf("%s%s %s", before, name, text);
		before = ", ";
	}
	puts(*before == ',' ? ")" : "");
}

/* "vm1: session 7 frozen, 8.0 GiB left the GPU, ..." */
static int print_session(const json_t *session)
{
	json_int_t number, memory, away;
	char text[FGV_CTL_TEXT_LEN];
	const char *vm, *state;

	if (json_unpack((json_t *)session, "{s:I, s:s, s:s, s:I, s:I}", "session", &number, "vm",
			&vm, "state", &state, "memory_bytes", &memory, "away_bytes", &away))
		return fgv_ctl_bad_reply();
	printf("%s: session %" JSON_INTEGER_FORMAT " %s", vm, number, state);
	if (strcmp(state, "frozen") != 0) {
		puts("");
		return 0;
	}
	fgv_ctl_show_bytes(text, sizeof(text), (uint64_t)away);
	printf(", %s of its memory not on the GPU", text);
	print_stays(session, (uint64_t)(memory > away ? memory - away : 0));
	return 0;
}

/* Thawed, and others have their turn at the GPU's memory; or frozen, and in a file besides. */
static bool is_there(const char *state, const char *there)
{
	if (!strcmp(there, "running"))
		return !strcmp(state, there) || !strcmp(state, "out");
	return !strcmp(state, there) || !strcmp(state, "saved");
}

/* Whether none of @sessions is on its way any more; and whether any has failed. */
static bool have_arrived(const json_t *sessions, const char *there, bool *failed)
{
	json_t *session;
	size_t i;

	json_array_foreach(sessions, i, session)
	{
		const char *state = json_string_value(json_object_get(session, "state"));

		if (state && !strcmp(state, "failed"))
			*failed = true;
		else if (state && !is_there(state, there))
			return false;
	}
	return true;
}

static int print_all(const json_t *sessions, bool failed)
{
	json_t *session;
	size_t i;
	int ret = 0;

	json_array_foreach(sessions, i, session)
	{
		if (!ret)
			ret = print_session(session);
	}
	if (!json_array_size(sessions))
		puts("there is no session");
	if (ret || fgv_ctl_flush())
		return ret ? ret : -EIO;
	if (failed)
		fgv_error("not all could be frozen: the host's log says why");
	return failed ? -EIO : 0;
}

json_t *fgv_ctl_await_frozen(const char *socket, json_t *request, bool freezes, bool *failed)
{
	const struct timespec pause = {.tv_nsec = ASK_AGAIN_NS};
	const char *there = freezes ? "frozen" : "running";
	json_t *reply;

	*failed = false;
	while ((reply = fgv_ctl_ask(socket, json_deep_copy(request)))) {
		const json_t *sessions = json_object_get(reply, "sessions");
		bool is_right = json_is_array(sessions);

		if (is_right && have_arrived(sessions, there, failed))
			break;
		json_decref(reply);
		reply = NULL;
		if (!is_right) {
			fgv_ctl_bad_reply();
			break;
		}
		nanosleep(&pause, NULL);
	}
	json_decref(request);
	return reply;
}

int fgv_ctl_freeze(const char *socket, json_t *request, bool freezes)
{
	bool failed;
	json_t *reply = fgv_ctl_await_frozen(socket, request, freezes, &failed);
	int ret = -EIO;

	if (reply)
		ret = print_all(json_object_get(reply, "sessions"), failed && freezes);
	json_decref(reply);
	return ret;
}
