/*
 * fairgvctl set and reload: what the daemon is asked to change, and what it says that has changed.
 */
#include "tools/ctl.h"

#include <errno.h>
#include <stdio.h>

/* A line for each change: "vm1: weight 1 -> 3", "vm2: added". */
static int print_change(const json_t *change)
{
	const char *vm = NULL, *key, *before, *after;

	json_unpack((json_t *)change, "{s:s}", "vm", &vm);
	if (!json_unpack((json_t *)change, "{s:s, s:s, s:s}", "key", &key, "before", &before,
			 "after", &after))
		printf("%s%s%s %s -> %s\n", vm ? vm : "", vm ? ": " : "", key, before, after);
	else if (vm && !json_unpack((json_t *)change, "{s:s}", "event", &key))
		printf("%s: %s\n", vm, key);
	else
		return fgv_ctl_bad_reply();
	return 0;
}

/* Takes @reply over; NULL: there is none, which has been said. */
static int print_changes(json_t *reply)
{
	const json_t *changes = json_object_get(reply, "changes");
	json_t *change;
	size_t i;
	int ret = 0;

	if (!reply)
		return -EIO;
	if (!json_is_array(changes))
		ret = fgv_ctl_bad_reply();
	json_array_foreach(changes, i, change)
	{
		if (!ret)
			ret = print_change(change);
	}
	if (!ret && !json_array_size(changes))
		puts("nothing has changed");
	json_decref(reply);
	return ret ? ret : fgv_ctl_flush();
}

int fgv_ctl_set(const char *socket, const char *vm, json_t *settings, bool save)
{
	return print_changes(
		fgv_ctl_ask(socket, json_pack("{s:s, s:s, s:o, s:b}", "request", "set", "vm", vm,
					      "settings", settings, "save", save)));
}

int fgv_ctl_reload(const char *socket, bool end)
{
	return print_changes(
		fgv_ctl_ask(socket, json_pack("{s:s, s:b}", "request", "reload", "end", end)));
}
