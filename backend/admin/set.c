/* Changing what the daemon runs; see set.h. */
#define _GNU_SOURCE /* struct ucred */
#include "backend/admin/set.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "backend/config/config.h"
#include "common/log.h"

/* No VM has more keys than that. */
#define VALUES_MAX 32
#define NUMBER_LEN 24
#define BY_LEN	   64

static void name_peer(const struct ucred *peer, char *by, size_t len)
{
	snprintf(by, len, "process %d of user %u", (int)peer->pid, (unsigned)peer->uid);
}

/* --- The reply ------------------------------------------------------------------- */

static json_t *change_of(const struct fgv_plan_change *change)
{
	json_t *vm = *change->vm ? json_string(change->vm) : json_null();

	switch (change->kind) {
	case FGV_PLAN_ADDED:
		return json_pack("{s:o, s:s}", "vm", vm, "event", "added");
	case FGV_PLAN_REMOVED:
		return json_pack("{s:o, s:s}", "vm", vm, "event", "removed");
	case FGV_PLAN_CHANGED:
		break;
	}
	return json_pack("{s:o, s:s, s:s, s:s}", "vm", vm, "key", change->key->name, "before",
			 change->before, "after", change->after);
}

/* Takes @done over. */
static json_t *report(struct fgv_plan *done)
{
	json_t *changes = json_array();
	int err = 0;

	for (size_t i = 0; i < done->count; i++)
		err |= json_array_append_new(changes, change_of(&done->changes[i]));
	fgv_plan_fini(done);
	if (!err)
		return json_pack("{s:o}", "changes", changes);
	json_decref(changes);
	return NULL;
}

/* --- The request ----------------------------------------------------------------- */

/* The keys that may be set, for a refusal. */
static void list_keys(char *text, size_t len)
{
	size_t count, used = 0;
	const struct fgv_config_key *keys = fgv_config_keys(&count);

	text[0] = '\0';
	for (size_t i = 0; i < count && used < len; i++) {
		if (fgv_settings_may_set(&keys[i]))
			used += (size_t)snprintf(text + used, len - used, "%s%s", used ? ", " : "",
						 keys[i].name);
	}
}

/* NULL, with @why: there is none that may be set. */
static const struct fgv_config_key *find_key(const char *name, char *why, size_t why_len)
{
	const struct fgv_config_key *key = fgv_config_find_key(name, true);
	char keys[256];

	if (key && fgv_settings_may_set(key))
		return key;
	list_keys(keys, sizeof(keys));
	snprintf(why, why_len, "\"%.32s\" can't be set, but %s can", name, keys);
	return NULL;
}

/* How many there are; 0, and @why: something is wrong. */
static size_t read_settings(const json_t *settings, struct fgv_live_value *values, char *why,
			    size_t why_len)
{
	const char *name;
	json_t *value;
	size_t count = 0;

	json_object_foreach((json_t *)settings, name, value)
	{
		const struct fgv_config_key *key = find_key(name, why, why_len);

		if (!key)
			return 0;
		if (!json_is_string(value)) {
			snprintf(why, why_len, "\"%s\" is set to a string", name);
			return 0;
		}
		if (count < VALUES_MAX)
			values[count++] = (struct fgv_live_value){key, json_string_value(value)};
	}
	if (!count)
		snprintf(why, why_len, "\"settings\", an object, is missing or empty");
	return count;
}

/* The short form of the one that is set most: "weight": 3. */
static size_t read_weight(const json_t *weight, struct fgv_live_value *values, char *text,
			  size_t text_len, char *why, size_t why_len)
{
	if (!json_is_integer(weight)) {
		snprintf(why, why_len, "a weight is a whole number");
		return 0;
	}
	snprintf(text, text_len, "%" JSON_INTEGER_FORMAT, json_integer_value(weight));
	values[0] = (struct fgv_live_value){fgv_config_find_key("weight", true), text};
	return 1;
}

static size_t read_values(const json_t *request, struct fgv_live_value *values, char *text,
			  size_t text_len, char *why, size_t why_len)
{
	const json_t *weight = json_object_get(request, "weight");
	const json_t *settings = json_object_get(request, "settings");

	if (weight && settings) {
		snprintf(why, why_len, "\"weight\" is one of \"settings\", or alone");
		return 0;
	}
	return weight ? read_weight(weight, values, text, text_len, why, why_len)
		      : read_settings(settings, values, why, why_len);
}

json_t *fgv_admin_set(struct fgv_live *live, const json_t *request, const struct ucred *peer,
		      char *why, size_t why_len)
{
	const char *vm = json_string_value(json_object_get(request, "vm"));
	const json_t *save = json_object_get(request, "save");
	struct fgv_live_value values[VALUES_MAX];
	char number[NUMBER_LEN], by[BY_LEN];
	struct fgv_plan done;
	size_t count = read_values(request, values, number, sizeof(number), why, why_len);

	if (!count)
		return NULL;
	if (save && !json_is_boolean(save)) {
		snprintf(why, why_len, "\"save\" is true or false");
		return NULL;
	}
	name_peer(peer, by, sizeof(by));
	if (fgv_live_set(live, vm, values, count, json_is_true(save), by, &done, why, why_len))
		return NULL;
	return report(&done);
}

json_t *fgv_admin_reload(struct fgv_live *live, const json_t *request, const struct ucred *peer,
			 char *why, size_t why_len)
{
	const json_t *end = json_object_get(request, "end");
	struct fgv_live_request what = {.ends = json_is_true(end)};
	struct fgv_plan done;
	char by[BY_LEN];

	if (end && !json_is_boolean(end)) {
		snprintf(why, why_len, "\"end\" is true or false");
		return NULL;
	}
	name_peer(peer, by, sizeof(by));
	what.by = by;
	if (fgv_live_reload(live, &what, &done, why, why_len))
		return NULL;
	return report(&done);
}
