/*
 * Taking over configurations; see live.h. What a change does to VMs is in live_step.c.
 */
#define _GNU_SOURCE
#include "backend/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include "backend/config/uids.h"
#include "backend/live_step.h"
#include "common/log.h"
#include "common/util.h"

#define LINE_LEN 512

/* --- The start ---------------------------------------------------------------- */

int fgv_live_init(struct fgv_live *live, struct fgv_config *config, const char *path,
		  const char *kept, char *why, size_t why_len)
{
	struct fgv_settings dropped;
	struct fgv_config next;
	int ret = 0;

	*live = (struct fgv_live){.path = path};
	snprintf(live->kept_path, sizeof(live->kept_path), "%s", kept ? kept : "");
	if (kept)
		ret = fgv_settings_load(&live->settings, kept, why, why_len);
	if (ret)
		return ret;
	ret = fgv_settings_prune(&live->settings, config, &dropped);
	if (ret)
		snprintf(why, why_len, "out of memory");
	else
		ret = fgv_settings_apply(&live->settings, config, &next, why, why_len);
	if (ret) {
		fgv_settings_fini(&live->settings);
		return ret;
	}
	/* They go from the file with the next change. */
	fgv_settings_say_dropped(&dropped);
	fgv_settings_fini(&dropped);
	/* Without settings it keeps its lines, which messages have. */
	live->base = live->settings.count ? *config : next;
	if (live->settings.count)
		*config = next;
	return 0;
}

void fgv_live_fini(struct fgv_live *live)
{
	fgv_settings_fini(&live->settings);
	fgv_config_fini(&live->base);
}

int fgv_live_start(struct fgv_live *live, const struct fgv_live_parts *parts, char *why,
		   size_t why_len)
{
	struct fgv_live_step step;
	int ret;

	live->parts = *parts;
	ret = fgv_live_step_prepare(&step, parts, parts->config, why, why_len);
	if (!ret)
		fgv_live_step_commit(&step);
	return ret;
}

/* --- A change ----------------------------------------------------------------- */

/* The users that VMs have, those included that are leaving: for free(), NULL: out of memory. */
static struct fgv_config_uid *list_uids(const struct fgv_vms *vms, size_t *count)
{
	const struct fgv_vm *vm;
	struct fgv_config_uid *list;
	size_t room = vms->count;

	LIST_FOREACH(vm, &vms->leaving, link)
		room++;
	list = calloc(room + 1, sizeof(*list));
	*count = 0;
	for (size_t i = 0; list && i < vms->count; i++) {
		const struct fgv_config_vm *config = vms->list[i]->config;

		list[(*count)++] = (struct fgv_config_uid){config->name, config->uid};
	}
	LIST_FOREACH(vm, &vms->leaving, link) {
		if (list)
			list[(*count)++] = (struct fgv_config_uid){NULL, vm->config->uid};
	}
	return list;
}

static int keep_uids(const struct fgv_live *live, struct fgv_config *next, char *why,
		     size_t why_len)
{
	size_t count;
	struct fgv_config_uid *taken = list_uids(live->parts.vms, &count);
	int ret;

	if (!taken) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	ret = fgv_config_uids_keep(next, taken, count, why, why_len);
	free(taken);
	return ret;
}

static int check_devices(const struct fgv_live *live, const struct fgv_config *next, char *why,
			 size_t why_len)
{
	const struct fgv_devices *devices = live->parts.devices;
	int ret = fgv_config_check_devices(next, devices->count, why, why_len);

	if (!ret)
		ret = fgv_devices_check_memory(devices, next, why, why_len);
	return ret ? ret : fgv_devices_check_units(devices, next, why, why_len);
}

/* What of the VMs that run the plan asks about, in the configuration's order: for free(). */
static struct fgv_plan_vm *look_at_vms(const struct fgv_live *live)
{
	const struct fgv_vms *vms = live->parts.vms;
	struct fgv_plan_vm *running = calloc(vms->count, sizeof(*running));

	for (size_t i = 0; running && i < vms->count; i++) {
		running[i].programs = fgv_sessions_programs(live->parts.sessions, vms->list[i]);
		running[i].has_qemu = vms->list[i]->qemu_pid != 0;
	}
	return running;
}

static int make_plan(const struct fgv_live *live, const struct fgv_config *next, bool ends,
		     struct fgv_plan *plan, char *why, size_t why_len)
{
	struct fgv_plan_vm *running = look_at_vms(live);
	int ret = -ENOMEM;

	if (running)
		ret = fgv_plan_make(plan, live->parts.config, next, running, ends, why, why_len);
	else
		snprintf(why, why_len, "out of memory");
	free(running);
	return ret;
}

/* Takes @next over, or leaves it to the caller. */
static int take_over(struct fgv_live *live, struct fgv_config *next, bool ends,
		     struct fgv_plan *plan, char *why, size_t why_len)
{
	struct fgv_live_step step;
	struct fgv_config before;
	int ret = keep_uids(live, next, why, why_len);

	if (!ret)
		ret = check_devices(live, next, why, why_len);
	if (!ret)
		ret = make_plan(live, next, ends, plan, why, why_len);
	if (ret)
		return ret;
	ret = fgv_live_step_prepare(&step, &live->parts, next, why, why_len);
	if (ret) {
		fgv_plan_fini(plan);
		return ret;
	}
	before = *live->parts.config;
	*live->parts.config = *next;
	fgv_live_step_commit(&step);
	fgv_config_fini(&before);
	return 0;
}

static void log_changes(const struct fgv_plan *plan, const char *by)
{
	char line[LINE_LEN];

	for (size_t i = 0; i < plan->count; i++) {
		fgv_plan_show(&plan->changes[i], line, sizeof(line));
		fgv_info("%s, by %s", line, by);
	}
}

/* It is in force already; that it won't be kept is no reason to take it back. */
static int keep_settings(const struct fgv_live *live, char *why, size_t why_len)
{
	if (!*live->kept_path)
		return 0;
	return fgv_settings_save(&live->settings, live->kept_path, why, why_len);
}

/* --- The file ------------------------------------------------------------------ */

/* What can be read only once is no file to read again. */
static int check_file(const struct fgv_live *live, char *why, size_t why_len)
{
	struct stat file;

	if (!live->path) {
		snprintf(why, why_len, "this daemon has no configuration that can be read again");
		return -EINVAL;
	}
	if (!stat(live->path, &file) && !S_ISREG(file.st_mode)) {
		snprintf(why, why_len, "%s: not a file that can be read again", live->path);
		return -EINVAL;
	}
	return 0;
}

/* What a file comes to that has been read again. */
struct reading {
	struct fgv_config base, next; /* without and with the settings that still hold */
	struct fgv_settings settings, dropped;
};

static void fini_reading(struct reading *reading)
{
	fgv_settings_fini(&reading->dropped);
	fgv_settings_fini(&reading->settings);
	fgv_config_fini(&reading->next);
	fgv_config_fini(&reading->base);
}

/* With lines in its messages, as long as there are no settings. */
static int apply_settings(struct reading *reading, char *why, size_t why_len)
{
	struct fgv_config other;
	int ret = fgv_settings_apply(&reading->settings, &reading->base, &other, why, why_len);

	if (ret)
		return ret;
	reading->next = reading->settings.count ? other : reading->base;
	if (!reading->settings.count)
		reading->base = other;
	return 0;
}

static int read_file(const struct fgv_live *live, struct reading *reading, char *why,
		     size_t why_len)
{
	int ret;

	*reading = (struct reading){0};
	ret = fgv_config_load(&reading->base, live->path, why, why_len);
	if (ret)
		return ret;
	ret = fgv_settings_copy(&reading->settings, &live->settings);
	if (!ret)
		ret = fgv_settings_prune(&reading->settings, &reading->base, &reading->dropped);
	if (ret)
		snprintf(why, why_len, "out of memory");
	else
		ret = apply_settings(reading, why, why_len);
	if (ret)
		fini_reading(reading);
	return ret;
}

/* Where the refusal does not name the file, as it is the difference that is refused. */
static void name_file(const char *path, char *why, size_t why_len)
{
	char text[LINE_LEN * 2];

	if (!strncmp(why, path, strlen(path)))
		return;
	snprintf(text, sizeof(text), "%s: %s", path, why);
	snprintf(why, why_len, "%s", text);
}

/* What was read is in force. */
static void keep_reading(struct fgv_live *live, struct reading *reading)
{
	char unkept[LINE_LEN];

	fgv_live_fini(live);
	live->base = reading->base;
	live->settings = reading->settings;
	if (fgv_settings_say_dropped(&reading->dropped) &&
	    keep_settings(live, unkept, sizeof(unkept)))
		fgv_warning("%s", unkept);
	fgv_settings_fini(&reading->dropped);
}

static int reload(struct fgv_live *live, const struct fgv_live_request *request,
		  struct fgv_plan *done, char *why, size_t why_len)
{
	struct reading reading;
	int ret = check_file(live, why, why_len);

	if (ret)
		return ret;
	ret = read_file(live, &reading, why, why_len);
	if (!ret) {
		ret = take_over(live, &reading.next, request->ends, done, why, why_len);
		if (ret)
			fini_reading(&reading);
	}
	if (ret)
		name_file(live->path, why, why_len);
	else
		keep_reading(live, &reading);
	return ret;
}

int fgv_live_reload(struct fgv_live *live, const struct fgv_live_request *request,
		    struct fgv_plan *done, char *why, size_t why_len)
{
	int ret;

	*done = (struct fgv_plan){0};
	sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%llu",
		   (unsigned long long)(fgv_now_ns() / FGV_NS_PER_US));
	ret = reload(live, request, done, why, why_len);
	sd_notifyf(false, "READY=1\nSTATUS=VMs: %zu; configuration %s", live->parts.vms->count,
		   ret ? "refused when it was read again" : "read again");
	if (ret) {
		fgv_error("the configuration stays as it is: %s", why);
		return ret;
	}
	fgv_info("%s is read again, by %s: changes: %zu", live->path, request->by, done->count);
	log_changes(done, request->by);
	return 0;
}

/* --- Settings ------------------------------------------------------------------- */

static int set_all(struct fgv_settings *settings, const struct fgv_live *live, const char *vm,
		   const struct fgv_live_value *values, size_t count, bool keeps)
{
	int ret = fgv_settings_copy(settings, &live->settings);

	for (size_t i = 0; i < count && !ret; i++)
		ret = fgv_settings_set(settings, &live->base, vm, values[i].key, values[i].text,
				       keeps);
	return ret;
}

int fgv_live_set(struct fgv_live *live, const char *vm, const struct fgv_live_value *values,
		 size_t count, bool keeps, const char *by, struct fgv_plan *done, char *why,
		 size_t why_len)
{
	struct fgv_settings settings;
	struct fgv_config next;
	int ret = 0;

	*done = (struct fgv_plan){0};
	if (keeps && !*live->kept_path) {
		snprintf(why, why_len, "this daemon keeps no settings");
		return -EINVAL;
	}
	ret = set_all(&settings, live, vm, values, count, keeps);
	if (ret)
		snprintf(why, why_len, "out of memory");
	else
		ret = fgv_settings_apply(&settings, &live->base, &next, why, why_len);
	if (!ret) {
		ret = take_over(live, &next, false, done, why, why_len);
		if (ret)
			fgv_config_fini(&next);
	}
	if (ret) {
		fgv_settings_fini(&settings);
		return ret;
	}
	fgv_settings_fini(&live->settings);
	live->settings = settings;
	log_changes(done, by);
	if (!keeps)
		return 0;
	ret = keep_settings(live, why, why_len);
	if (ret)
		fgv_plan_fini(done);
	return ret;
}
