/*
 * fairgvctl list: the GPUs, the VMs with what they are owed, and the sessions.
 */
#include "tools/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include "backend/config/text.h"
#include "tools/ctl_figures.h"

static uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "?";
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static void print_gpus(const json_t *gpus)
{
	static const char *const names[] = {"GPU", "<policy", "warm", "memory", "<name", NULL};
	struct fgv_table table;
	json_t *gpu;
	size_t i;

	fgv_table_init(&table, names);
	json_array_foreach(gpus, i, gpu)
	{
		fgv_table_add(&table, "%" PRIu64, number(gpu, "device"));
		fgv_table_add(&table, "%s", text(gpu, "policy"));
		fgv_table_add(&table, "%" PRIu64, number(gpu, "warm"));
		fgv_table_add_bytes(&table, number(gpu, "memory_bytes"));
		fgv_table_add(&table, "%s", text(gpu, "name"));
	}
	fgv_table_print(&table);
}

/* The process id of the QEMU that has the VM's region; "none" where it is awaited. */
static void add_qemu(struct fgv_table *table, const json_t *vm)
{
	const json_t *pid = json_object_get(vm, "qemu_pid");

	if (json_is_integer(pid))
		fgv_table_add(table, "%" PRIu64, number(vm, "qemu_pid"));
	else
		fgv_table_add(table, "%s", pid ? "none" : "-");
}

/* What its weight gives it; of a VM that was promised something, or is limited, that. */
static void add_share(struct fgv_table *table, const json_t *gpu, const json_t *vm)
{
	const json_t *limit = json_object_get(vm, "limit_ppm");
	char text[2][32];

	if (!limit || (!number(vm, "request_ppm") && number(vm, "limit_ppm") == FGV_SCHED_WHOLE)) {
		fgv_table_add_share(table, number(vm, "weight"), number(gpu, "weight"));
		return;
	}
	fgv_config_text_show_share(number(vm, "request_ppm"), text[0], sizeof(text[0]));
	fgv_config_text_show_share(number(vm, "limit_ppm"), text[1], sizeof(text[1]));
	fgv_table_add(table, "%s..%s", text[0], text[1]);
}

void fgv_ctl_add_limit(struct fgv_table *table, const json_t *vm)
{
	if (json_is_integer(json_object_get(vm, "memory_limit_bytes")))
		fgv_table_add_bytes(table, number(vm, "memory_limit_bytes"));
	else
		fgv_table_add(table, "-");
}

static size_t sessions_on(const json_t *vm, const json_t *share)
{
	size_t i, count = 0;
	json_t *session;

	json_array_foreach(json_object_get(vm, "sessions"), i, session)
	{
		if (fgv_ctl_find_like(json_object_get(session, "gpus"), share, "device"))
			count++;
	}
	return count;
}

/* What a VM has of one of its GPUs. */
static void add_vm(struct fgv_table *table, const json_t *gpus, const json_t *vm,
		   const json_t *share)
{
	fgv_table_add(table, "%s", text(vm, "name"));
	fgv_table_add(table, "%" PRIu64, number(vm, "weight"));
	add_share(table, json_array_get(gpus, number(share, "device")), vm);
	fgv_table_add(table, "%" PRIu64, number(share, "device"));
	fgv_table_add_bytes(table, number(share, "memory_bytes"));
	fgv_ctl_add_limit(table, vm);
	fgv_table_add(table, "%zu", sessions_on(vm, share));
	add_qemu(table, vm);
}

static void print_vms(const json_t *gpus, const json_t *vms)
{
	static const char *const names[] = {"<VM",   "weight",	 "share", "GPU", "memory",
					    "limit", "sessions", "QEMU",  NULL};
	struct fgv_table table;
	json_t *vm, *share;
	size_t i, j;

	fgv_table_init(&table, names);
	json_array_foreach(vms, i, vm)
	{
		json_array_foreach(json_object_get(vm, "gpus"), j, share)
			add_vm(&table, gpus, vm, share);
	}
	fgv_table_print(&table);
}

/* The name, where the user has one here. */
static void add_user(struct fgv_table *table, uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		fgv_table_add(table, "%s", user->pw_name);
	else
		fgv_table_add(table, "%u", (unsigned)uid);
}

/* One, or several with commas between them. */
static void add_session_gpus(struct fgv_table *table, const json_t *session)
{
	char list[128] = "";
	json_t *gpu;
	size_t i;

	json_array_foreach(json_object_get(session, "gpus"), i, gpu)
	{
		size_t len = strlen(list);

		snprintf(list + len, sizeof(list) - len, "%s%" PRIu64, i ? "," : "",
			 number(gpu, "device"));
	}
	fgv_table_add(table, "%s", *list ? list : "-");
}

static void add_session(struct fgv_table *table, const json_t *vm, const json_t *session)
{
	fgv_table_add(table, "%s", text(vm, "name"));
	fgv_table_add(table, "%" PRIu64, number(session, "number"));
	add_session_gpus(table, session);
	fgv_table_add(table, "%s", text(session, "state"));
	fgv_table_add(table, "%s", is_true(session, "interactive") ? "yes" : "no");
	fgv_table_add(table, "%" PRIu64, number(session, "pid"));
	add_user(table, (uid_t)number(session, "uid"));
	fgv_table_add(table, "%s", text(session, "program"));
}

static void print_sessions(const json_t *vms)
{
	static const char *const names[] = {"<VM",    "session",      "GPU",
					    "<state", "<interactive", "process",
					    "<user",  "<program",     NULL};
	struct fgv_table table;
	json_t *vm, *session;
	size_t i, j;

	fgv_table_init(&table, names);
	json_array_foreach(vms, i, vm)
	{
		json_array_foreach(json_object_get(vm, "sessions"), j, session)
			add_session(&table, vm, session);
	}
	fgv_table_print(&table);
}

int fgv_ctl_list(const char *socket, bool json)
{
	json_t *report = fgv_ctl_ask(socket, json_pack("{s:s}", "request", "list"));
	const json_t *gpus = json_object_get(report, "gpus");
	const json_t *vms = json_object_get(report, "vms");
	int ret = 0;

	if (!report)
		return -EIO;
	if (json_is_array(gpus) && json_is_array(vms) && json) {
		json_dumpf(report, stdout, JSON_COMPACT);
		putchar('\n');
	} else if (json_is_array(gpus) && json_is_array(vms)) {
		print_gpus(gpus);
		putchar('\n');
		print_vms(gpus, vms);
		putchar('\n');
		print_sessions(vms);
	} else {
		ret = fgv_ctl_bad_reply();
	}
	json_decref(report);
	return ret ? ret : fgv_ctl_flush();
}
