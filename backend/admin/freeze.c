/* Freezing and thawing; see freeze.h. */
#include "backend/admin/freeze.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/util.h"

/* What a request is for: one session, or all of a VM. */
struct chosen {
	struct fgv_session *session; /* NULL: all of @vm */
	const struct fgv_vm *vm;
};

const char *fgv_admin_frozen_name(const struct fgv_session *session)
{
	if (!fgv_session_is_to_freeze(session) && fgv_session_is_out(session))
		return "out";
	switch (fgv_session_frozen(session)) {
	case FGV_FROZEN_GOING:
		return "freezing";
	case FGV_FROZEN:
		return "frozen";
	case FGV_FROZEN_SAVED:
		return "saved";
	case FGV_FROZEN_COMING:
		return "thawing";
	case FGV_FROZEN_NOT:
	case FGV_FROZEN_FAILED:
		break;
	}
	return NULL;
}

/* @keys: how many keys a request has. */
static bool choose(const struct fgv_sessions *sessions, struct fgv_vms *vms, const json_t *request,
		   size_t keys, struct chosen *chosen, char *why, size_t why_len)
{
	const json_t *number = json_object_get(request, "session");
	const char *vm = json_string_value(json_object_get(request, "vm"));
	json_int_t value = json_integer_value(number);

	*chosen = (struct chosen){0};
	if (json_object_size(request) != keys || (!json_is_integer(number) && !vm)) {
		snprintf(why, why_len,
			 "\"session\", the number of a session, or \"vm\", the name of a VM, is "
			 "wanted, and nothing else");
		return false;
	}
	if (vm) {
		chosen->vm = fgv_vms_find(vms, vm);
		if (!chosen->vm)
			snprintf(why, why_len, "there is no VM called \"%.*s\"", FGV_NAME_MAX, vm);
		return chosen->vm;
	}
	if (value > 0 && value <= UINT32_MAX)
		chosen->session = fgv_sessions_find(sessions, (uint32_t)value);
	if (!chosen->session)
		snprintf(why, why_len, "there is no session %" JSON_INTEGER_FORMAT, value);
	return chosen->session;
}

static struct fgv_session *next(const struct fgv_sessions *sessions, const struct chosen *chosen,
				const struct fgv_session *session)
{
	if (chosen->session)
		return session ? NULL : chosen->session;
	do
		session = fgv_sessions_next(sessions, session);
	while (session && fgv_session_vm(session) != chosen->vm);
	return (struct fgv_session *)session;
}

static const char *state_of(const struct fgv_session *session)
{
	enum fgv_frozen frozen = fgv_session_frozen(session);
	const char *name = fgv_admin_frozen_name(session);

	if (name)
		return name;
	return frozen == FGV_FROZEN_FAILED ? "failed" : "running";
}

static json_int_t integer(uint64_t value)
{
	return (json_int_t)fgv_min_u64(value, INT64_MAX);
}

static json_t *report_of(const struct fgv_session *session)
{
	struct fgv_session_view view;

	fgv_session_look(session, &view);
	return json_pack("{s:I, s:s, s:s, s:I, s:I, s:{s:I, s:I, s:I}}", "session",
			 integer(view.number), "vm", fgv_session_vm(session)->config->name, "state",
			 state_of(session), "memory_bytes", integer(view.account.memory_bytes),
			 "away_bytes", integer(view.account.away_bytes), "stays", "modules",
			 integer(view.account.stays_bytes[FGV_STAYS_MODULES]), "arrays",
			 integer(view.account.stays_bytes[FGV_STAYS_ARRAYS]), "mapped",
			 integer(view.account.stays_bytes[FGV_STAYS_MAPPED]));
}

static json_t *report(const struct fgv_sessions *sessions, const struct chosen *chosen)
{
	struct fgv_session *session = NULL;
	json_t *list = json_array();
	int err = 0;

	while ((session = next(sessions, chosen, session)))
		err |= json_array_insert_new(list, 0, report_of(session));
	if (!err)
		return json_pack("{s:o}", "sessions", list);
	json_decref(list);
	return NULL;
}

/* All or none: those before one that can't be frozen go on, if they were told by this request. */
static bool freeze(const struct fgv_sessions *sessions, const struct chosen *chosen, char *why,
		   size_t why_len)
{
	struct fgv_session *session = NULL, *failed = NULL, *told[FGV_SESSIONS_MAX];
	unsigned count = 0;

	while (!failed && (session = next(sessions, chosen, session))) {
		bool was_frozen = fgv_session_is_to_freeze(session);

		if (fgv_session_freeze(session, why, why_len))
			failed = session;
		else if (!was_frozen && count < FGV_SESSIONS_MAX)
			told[count++] = session;
	}
	while (failed && count > 0)
		fgv_session_thaw(told[--count]);
	return !failed;
}

static bool may_thaw(const struct fgv_sessions *sessions, const struct chosen *chosen, char *why,
		     size_t why_len)
{
	struct fgv_session *session = NULL;

	while ((session = next(sessions, chosen, session))) {
		if (fgv_session_check_thaw(session, why, why_len))
			return false;
	}
	return true;
}

json_t *fgv_admin_freeze(const struct fgv_sessions *sessions, struct fgv_vms *vms,
			 const json_t *request, bool freezes, char *why, size_t why_len)
{
	struct fgv_session *session = NULL;
	struct chosen chosen;

	if (!choose(sessions, vms, request, 2, &chosen, why, why_len))
		return NULL;
	if (freezes && !freeze(sessions, &chosen, why, why_len))
		return NULL;
	if (!freezes && !may_thaw(sessions, &chosen, why, why_len))
		return NULL;
	while (!freezes && (session = next(sessions, &chosen, session)))
		fgv_session_thaw(session);
	return report(sessions, &chosen);
}

/* --- Files ----------------------------------------------------------------------- */

#define TOKEN_DIGITS (2 * FGV_TOKEN_BYTES)

static void print_token(char text[TOKEN_DIGITS + 1], const uint8_t token[FGV_TOKEN_BYTES])
{
	for (unsigned i = 0; i < FGV_TOKEN_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", token[i]);
}

static bool parse_token(const char *text, uint8_t token[FGV_TOKEN_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	if (!text || strlen(text) != TOKEN_DIGITS || strspn(text, digits) != TOKEN_DIGITS)
		return false;
	for (unsigned i = 0; i < FGV_TOKEN_BYTES; i++)
		token[i] = (uint8_t)((strchr(digits, text[2 * i]) - digits) << 4 |
				     (strchr(digits, text[2 * i + 1]) - digits));
	return true;
}

/* The one session that is chosen. */
static struct fgv_session *only(const struct fgv_sessions *sessions, const struct chosen *chosen,
				char *why, size_t why_len)
{
	struct fgv_session *session = next(sessions, chosen, NULL);

	if (!session)
		snprintf(why, why_len, "VM %s has no session", chosen->vm->config->name);
	else if (next(sessions, chosen, session))
		snprintf(why, why_len, "VM %s has several sessions: name one, by its number",
			 chosen->vm->config->name);
	else
		return session;
	return NULL;
}

json_t *fgv_admin_file(const struct fgv_sessions *sessions, struct fgv_vms *vms,
		       const json_t *request, int fd, char *why, size_t why_len)
{
	bool saves = !strcmp(json_string_value(json_object_get(request, "request")), "save");
	const char *text = json_string_value(json_object_get(request, "token"));
	char said[TOKEN_DIGITS + 1];
	uint8_t token[FGV_TOKEN_BYTES];
	struct fgv_session *session;
	struct fgv_session_view view;
	struct chosen chosen;
	int ret;

	if (!saves && !parse_token(text, token)) {
		snprintf(why, why_len, "\"token\", %d hexadecimal digits, is missing",
			 TOKEN_DIGITS);
		return NULL;
	}
	if (!choose(sessions, vms, request, saves ? 2 : 3, &chosen, why, why_len))
		return NULL;
	session = only(sessions, &chosen, why, why_len);
	if (!session)
		return NULL;
	ret = saves ? fgv_session_save(session, fd, token, why, why_len)
		    : fgv_session_load(session, fd, token, why, why_len);
	if (ret)
		return NULL;
	print_token(said, token);
	fgv_session_look(session, &view);
	return json_pack("{s:I, s:s, s:I, s:s}", "session", integer(view.number), "vm",
			 fgv_session_vm(session)->config->name, "bytes",
			 integer(fgv_session_file_bytes(session)), "token", said);
}
