/*
 * The administrator's requests and what is answered; see reply.h. Values are made
 * with jansson, which gives NULL where memory is short, and passes a NULL that it is given on.
 */
#define _GNU_SOURCE /* struct ucred */
#include "backend/admin/reply.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/admin/freeze.h"
#include "backend/admin/report.h"
#include "backend/admin/set.h"
#include "backend/config/config.h"
#include "common/log.h"
#include "common/util.h"

#define WHY_LEN 1024

/* --- Replies ----------------------------------------------------------------- */

/* A reply as one line. Takes @reply over. */
static char *line_of(json_t *reply)
{
	char *text = json_dumps(reply, JSON_COMPACT);
	char *line = text ? realloc(text, strlen(text) + 2) : NULL;

	json_decref(reply);
	if (!line) {
		free(text);
		return NULL;
	}
	return strcat(line, "\n");
}

static json_t *refuse_with(const char *format, va_list args)
{
	char why[WHY_LEN];

	vsnprintf(why, sizeof(why), format, args);
	fgv_log_flatten(why);
	return json_pack("{s:o}", "error", fgv_admin_string(why));
}

__attribute__((format(printf, 1, 2))) static json_t *refuse(const char *format, ...)
{
	json_t *reply;
	va_list args;

	va_start(args, format);
	reply = refuse_with(format, args);
	va_end(args);
	return reply;
}

char *fgv_admin_refusal(const char *format, ...)
{
	json_t *reply;
	va_list args;

	va_start(args, format);
	reply = refuse_with(format, args);
	va_end(args);
	return line_of(reply);
}

/* --- Requests ---------------------------------------------------------------- */

static json_t *refuse_vm(const char *name)
{
	return refuse("there is no VM called \"%.*s\"", FGV_NAME_MAX, name);
}

/* NULL, or the refusal of a key that is none of @known, which ends with NULL. */
static json_t *check_keys(const json_t *request, const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)request, key, value)
	{
		const char *const *at = known;

		while (*at && strcmp(*at, key) != 0)
			at++;
		if (!*at)
			return refuse("this request has no key \"%.32s\"", key);
	}
	return NULL;
}

static json_t *do_list(const struct fgv_admin_scope *scope, const json_t *request,
		       const struct fgv_admin_asker *asker)
{
	static const char *const keys[] = {"request", NULL};
	json_t *refused = check_keys(request, keys);

	(void)asker;
	return refused ? refused : fgv_admin_report(scope, NULL, false);
}

static json_t *do_stat(const struct fgv_admin_scope *scope, const json_t *request,
		       const struct fgv_admin_asker *asker)
{
	static const char *const keys[] = {"request", "vms", NULL};
	const json_t *names = json_object_get(request, "vms");
	json_t *refused = check_keys(request, keys);
	json_t *name;
	size_t i;

	(void)asker;
	if (refused)
		return refused;
	if (names && !json_is_array(names))
		return refuse("\"vms\" is a list of names");
	json_array_foreach(names, i, name)
	{
		if (!json_is_string(name))
			return refuse("\"vms\" is a list of names");
		if (!fgv_vms_find(scope->vms, json_string_value(name)))
			return refuse_vm(json_string_value(name));
	}
	return fgv_admin_report(scope, names, true);
}

static json_t *do_set(const struct fgv_admin_scope *scope, const json_t *request,
		      const struct fgv_admin_asker *asker)
{
	static const char *const keys[] = {"request", "vm", "settings", "weight", "save", NULL};
	const char *name = json_string_value(json_object_get(request, "vm"));
	json_t *refused = check_keys(request, keys);
	char why[WHY_LEN] = "";
	json_t *reply;

	if (refused)
		return refused;
	if (!name)
		return refuse("\"vm\", the name of a VM, is missing");
	if (!fgv_vms_find(scope->vms, name))
		return refuse_vm(name);
	reply = fgv_admin_set(scope->live, request, asker->peer, why, sizeof(why));
	return *why ? refuse("%s", why) : reply;
}

static json_t *do_reload(const struct fgv_admin_scope *scope, const json_t *request,
			 const struct fgv_admin_asker *asker)
{
	static const char *const keys[] = {"request", "end", NULL};
	json_t *refused = check_keys(request, keys);
	char why[WHY_LEN] = "";
	json_t *reply;

	if (refused)
		return refused;
	reply = fgv_admin_reload(scope->live, request, asker->peer, why, sizeof(why));
	return *why ? refuse("%s", why) : reply;
}

static json_t *do_end(const struct fgv_admin_scope *scope, const json_t *request,
		      const struct fgv_admin_asker *asker)
{
	static const char *const keys[] = {"request", "session", NULL};
	const json_t *value = json_object_get(request, "session");
	json_int_t number = json_integer_value(value);
	json_t *refused = check_keys(request, keys);
	struct fgv_session *session = NULL;

	if (refused)
		return refused;
	if (!json_is_integer(value))
		return refuse("\"session\", the number of a session, is missing");
	if (number > 0 && number <= UINT32_MAX)
		session = fgv_sessions_find(scope->sessions, (uint32_t)number);
	if (!session)
		return refuse("there is no session %" JSON_INTEGER_FORMAT, number);
	fgv_info("session %u: is ended by process %d of user %u", (unsigned)number,
		 (int)asker->peer->pid, (unsigned)asker->peer->uid);
	fgv_session_end(session, "the host's administrator has ended it");
	return json_pack("{s:I, s:s}", "session", number, "vm",
			 fgv_session_vm(session)->config->name);
}

static json_t *do_freeze(const struct fgv_admin_scope *scope, const json_t *request,
			 const struct fgv_admin_asker *asker)
{
	char why[WHY_LEN] = "";
	json_t *reply =
		fgv_admin_freeze(scope->sessions, scope->vms, request, true, why, sizeof(why));

	(void)asker;
	return *why ? refuse("%s", why) : reply;
}

static json_t *do_thaw(const struct fgv_admin_scope *scope, const json_t *request,
		       const struct fgv_admin_asker *asker)
{
	char why[WHY_LEN] = "";
	json_t *reply =
		fgv_admin_freeze(scope->sessions, scope->vms, request, false, why, sizeof(why));

	(void)asker;
	return *why ? refuse("%s", why) : reply;
}

static json_t *do_file(const struct fgv_admin_scope *scope, const json_t *request,
		       const struct fgv_admin_asker *asker)
{
	char why[WHY_LEN] = "";
	json_t *reply =
		fgv_admin_file(scope->sessions, scope->vms, request, asker->fd, why, sizeof(why));

	return *why ? refuse("%s", why) : reply;
}

static json_t *reply_to(const struct fgv_admin_scope *scope, const json_t *request,
			const struct fgv_admin_asker *asker)
{
	static const struct {
		const char *name;
		bool is_question;
		json_t *(*perform)(const struct fgv_admin_scope *, const json_t *,
				   const struct fgv_admin_asker *);
	} requests[] = {{"list", true, do_list},      {"stat", true, do_stat},
			{"set", false, do_set},	      {"end", false, do_end},
			{"freeze", false, do_freeze}, {"thaw", false, do_thaw},
			{"save", false, do_file},     {"load", false, do_file},
			{"reload", false, do_reload}};
	const char *name = json_string_value(json_object_get(request, "request"));

	if (!name)
		return refuse("a request is an object with the key \"request\"");
	for (size_t i = 0; i < FGV_ARRAY_LEN(requests); i++) {
		if (strcmp(requests[i].name, name) != 0)
			continue;
		if (scope->questions_only && !requests[i].is_question)
			return refuse("this socket answers questions only; \"%s\" goes to the "
				      "control socket",
				      name);
		return requests[i].perform(scope, request, asker);
	}
	return refuse("there is no request \"%.32s\"", name);
}

char *fgv_admin_reply(const struct fgv_admin_scope *scope, const char *request, size_t len,
		      const struct fgv_admin_asker *asker)
{
	json_error_t error;
	json_t *root = json_loadb(request, len, JSON_REJECT_DUPLICATES, &error);
	char *reply;

	if (!root)
		return fgv_admin_refusal("the request is not JSON: %s", error.text);
	reply = line_of(reply_to(scope, root, asker));
	json_decref(root);
	return reply;
}
