/*
 * Reading the configuration file: libconfig parses it, the table of keys says what
 * may stand in it. All text that messages and values point to lives in the parsed
 * configuration, which struct fgv_config keeps.
 */
#include "backend/config/config.h"

#include <errno.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/config/devices.h"
#include "backend/config/shares.h"
#include "backend/config/text.h"
#include "backend/config/values.h"
#include "common/util.h"
#include "shmring/window.h"

/* What "hang" is, of what can't be held, if the file does not say. */
#define HANG_NS (10 * FGV_NS_PER_SEC)

#define PATH_ROOM sizeof(((struct sockaddr_un *)NULL)->sun_path)

static int read_group(const struct fgv_config_reader *reader, const config_setting_t *group,
		      bool of_vm, void *values);

static int read_vms(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		    const config_setting_t *setting)
{
	struct fgv_config *config = reader->config;
	int count;

	if (!fgv_config_values_is_sequence(setting))
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be a list of groups: ( { ... } )");
	count = config_setting_length(setting);
	if (count == 0)
		return fgv_config_values_refuse(reader, setting, key->name, "names no VM");
	config->vms = calloc((size_t)count, sizeof(*config->vms));
	if (!config->vms)
		return fgv_config_values_refuse(reader, setting, key->name, "out of memory");
	for (int i = 0; i < count; i++) {
		const config_setting_t *group = config_setting_get_elem(setting, (unsigned)i);
		struct fgv_config_vm *vm = &config->vms[i];
		int ret;

		if (!config_setting_is_group(group))
			return fgv_config_values_refuse(reader, group, key->name,
							"a VM must be a group: { ... }");
		config->vm_count++; /* for fgv_config_fini(), also after an error */
		vm->place = group;
		ret = read_group(reader, group, true, vm);
		if (ret)
			return ret;
	}
	return 0;
}

/* @group lacks @key. */
static int read_default(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
			const config_setting_t *group, void *value)
{
	if (!key->standard_text)
		return fgv_config_values_refuse(reader, group, key->name, "is missing");
	if (fgv_config_values_default(key, value))
		return fgv_config_values_refuse(reader, group, key->name, "out of memory");
	return 0;
}

static const struct fgv_config_key *find_key(const char *name, bool of_vm)
{
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);

	for (size_t i = 0; i < count; i++) {
		if (keys[i].of_vm == of_vm && !strcmp(keys[i].name, name))
			return &keys[i];
	}
	return NULL;
}

/* Reads the keys of the top or of one VM into the struct at @values, which is zero. */
static int read_group(const struct fgv_config_reader *reader, const config_setting_t *group,
		      bool of_vm, void *values)
{
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);
	int ret = 0;

	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(setting);

		if (!find_key(name, of_vm))
			return fgv_config_values_refuse(reader, setting, name, "unknown key");
	}
	for (size_t i = 0; i < count && !ret; i++) {
		const config_setting_t *setting;
		void *value;

		if (keys[i].of_vm != of_vm)
			continue;
		setting = config_setting_get_member(group, keys[i].name);
		value = (char *)values + keys[i].offset;
		if (!setting)
			ret = read_default(reader, &keys[i], group, value);
		else if (keys[i].type == FGV_CONFIG_VMS)
			ret = read_vms(reader, &keys[i], setting);
		else
			ret = fgv_config_values_read(reader, &keys[i], setting, value);
	}
	return ret;
}

/* "window" and "lanes" must go together. */
static int check_window(const struct fgv_config_reader *reader, const config_setting_t *top)
{
	const struct fgv_config *config = reader->config;
	const config_setting_t *place = config_setting_get_member(top, "window");
	struct fgv_window window;

	if (config->window_bytes % FGV_PAGE_BYTES)
		return fgv_config_values_refuse(reader, place, "window", "must be a multiple of %d",
						FGV_PAGE_BYTES);
	if (fgv_window_layout(&window, config->window_bytes, (uint32_t)config->lanes)) {
		if (!place)
			place = config_setting_get_member(top, "lanes");
		return fgv_config_values_refuse(reader, place, "window", "too small for %llu lanes",
						(unsigned long long)config->lanes);
	}
	return 0;
}

/* Whether @path is one of @vm's sockets; @count: of those in the order of this function. */
static bool is_socket_of(const struct fgv_config_vm *vm, const char *path, int count)
{
	char beside[PATH_ROOM];

	if (count > 0 && vm->socket && !strcmp(path, vm->socket))
		return true;
	if (count < 2 || !vm->ivshmem)
		return false;
	snprintf(beside, sizeof(beside), "%s" FGV_QMP_SUFFIX, vm->ivshmem);
	return !strcmp(path, vm->ivshmem) || !strcmp(path, beside);
}

/* Refuses @path where it is another socket's, of those before @vm's; @what: its name here. */
static int check_path(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
		      const char *key, const char *what, const char *path)
{
	const struct fgv_config *config = reader->config;
	const config_setting_t *place = config_setting_get_member(vm->place, key);

	if (!strcmp(path, config->socket))
		return fgv_config_values_refuse(reader, place, key, "%sis \"socket\" already",
						what);
	if (!strcmp(path, config->control))
		return fgv_config_values_refuse(reader, place, key, "%sis \"control\" already",
						what);
	if (config->observe && !strcmp(path, config->observe))
		return fgv_config_values_refuse(reader, place, key, "%sis \"observe\" already",
						what);
	for (const struct fgv_config_vm *other = config->vms; other <= vm; other++) {
		int before = other < vm ? 2 : path != vm->socket;

		if (is_socket_of(other, path, before))
			return fgv_config_values_refuse(
				reader, place, key, "%sis VM \"%s\"'s already", what, other->name);
	}
	return 0;
}

/* Two sockets of the daemon's own can't be at one path. */
static int check_own_sockets(const struct fgv_config_reader *reader, const config_setting_t *top)
{
	const struct fgv_config *config = reader->config;
	const config_setting_t *place = config_setting_get_member(top, "observe");

	if (!config->observe)
		return 0;
	if (!strcmp(config->observe, config->socket))
		return fgv_config_values_refuse(reader, place, "observe", "is \"socket\" already");
	if (!strcmp(config->observe, config->control))
		return fgv_config_values_refuse(reader, place, "observe", "is \"control\" already");
	return 0;
}

/* Each socket is somebody's alone, and so is the one beside @vm's, for QMP. */
static int check_ivshmem(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "ivshmem");
	char beside[PATH_ROOM];
	int ret;

	if (snprintf(beside, sizeof(beside), "%s" FGV_QMP_SUFFIX, vm->ivshmem) >= (int)PATH_ROOM)
		return fgv_config_values_refuse(reader, place, "ivshmem",
						"longer than %zu characters",
						PATH_ROOM - sizeof(FGV_QMP_SUFFIX));
	ret = check_path(reader, vm, "ivshmem", "", vm->ivshmem);
	return ret ? ret
		   : check_path(reader, vm, "ivshmem", "with " FGV_QMP_SUFFIX " behind it ",
				beside);
}

static int check_sockets(const struct fgv_config_reader *reader)
{
	int ret = 0;

	for (size_t i = 0; i < reader->config->vm_count && !ret; i++) {
		const struct fgv_config_vm *vm = &reader->config->vms[i];

		if (vm->socket)
			ret = check_path(reader, vm, "socket", "", vm->socket);
		if (!ret && vm->ivshmem)
			ret = check_ivshmem(reader, vm);
	}
	return ret;
}

/* Whether somebody who may reach the daemon is user @uid. */
static bool is_taken(const struct fgv_config *config, uid_t uid)
{
	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		if (uid == vm->ivshmem_user)
			return true;
		for (size_t j = 0; j < vm->users.count; j++) {
			if (vm->users.uids[j] == uid)
				return true;
		}
	}
	return uid == geteuid();
}

/* Gives each VM the user that its processes run as, who must not be anybody else. */
static int assign_uids(const struct fgv_config_reader *reader, const config_setting_t *top)
{
	struct fgv_config *config = reader->config;
	const config_setting_t *place = config_setting_get_member(top, "uids");

	if (!config->uids.count)
		return 0;
	if (config->uids.count < config->vm_count)
		return fgv_config_values_refuse(reader, place, "uids",
						"%zu users for %zu VMs: one each is needed",
						config->uids.count, config->vm_count);
	for (size_t i = 0; i < config->vm_count; i++) {
		uid_t uid = config->uids.first + (uid_t)i;
		const struct passwd *user = getpwuid(uid);

		if (user)
			return fgv_config_values_refuse(reader, place, "uids",
							"%u is user \"%s\"; it must be nobody",
							(unsigned)uid, user->pw_name);
		if (is_taken(config, uid))
			return fgv_config_values_refuse(reader, place, "uids",
							"%u is a user of a VM, too", (unsigned)uid);
		config->vms[i].uid = uid;
	}
	return 0;
}

/* What "slice" is if the file does not say. */
static void choose_slice(struct fgv_config *config)
{
	if (!config->slice_ns)
		config->slice_ns =
			config->preemptive ? FGV_SCHED_PREEMPTIVE_SLICE_NS : FGV_SCHED_SLICE_NS;
}

/* The same of "hang": what can be held never hangs. */
static void choose_hang(struct fgv_config *config)
{
	config->hang_held_ns = config->hang_ns == FGV_CONFIG_NO_LIMIT ? 0 : config->hang_ns;
	if (config->hang_ns == FGV_CONFIG_NO_LIMIT)
		config->hang_ns = HANG_NS;
}

static void choose_defaults(struct fgv_config *config)
{
	choose_slice(config);
	choose_hang(config);
}

static int parse_text(const struct fgv_config_reader *reader, const char *text)
{
	struct fgv_config *config = reader->config;
	config_t *parsed = config->parsed;
	unsigned overflow = fgv_config_text_find_overflow(text);
	char *folder = strdup(config->file);

	if (overflow) {
		free(folder);
		snprintf(reader->why, reader->why_len, "%s:%u: a number is too large", config->file,
			 overflow);
		return -EINVAL;
	}
	if (!folder) {
		snprintf(reader->why, reader->why_len, "%s: out of memory", config->file);
		return -ENOMEM;
	}
	config_set_include_dir(parsed, dirname(folder));
	free(folder);
	if (!config_read_string(parsed, text)) {
		const char *file = config_error_file(parsed);

		snprintf(reader->why, reader->why_len, "%s:%d: %s", file ? file : config->file,
			 config_error_line(parsed), config_error_text(parsed));
		return -EINVAL;
	}
	return 0;
}

int fgv_config_parse(struct fgv_config *config, const char *text, const char *file, char *why,
		     size_t why_len)
{
	struct fgv_config_reader reader = {config, file, why, why_len};
	int ret;

	*config = (struct fgv_config){.file = strdup(file), .parsed = malloc(sizeof(config_t))};
	if (config->parsed)
		config_init(config->parsed);
	if (!config->file || !config->parsed) {
		snprintf(why, why_len, "%s: out of memory", file);
		ret = -ENOMEM;
	} else {
		ret = parse_text(&reader, text);
	}
	if (!ret)
		ret = read_group(&reader, config_root_setting(config->parsed), false, config);
	if (!ret)
		choose_defaults(config);
	if (!ret)
		ret = fgv_config_devices_join(&reader);
	if (!ret)
		ret = check_window(&reader, config_root_setting(config->parsed));
	if (!ret)
		ret = fgv_config_shares_check(&reader, config_root_setting(config->parsed));
	if (!ret)
		ret = check_own_sockets(&reader, config_root_setting(config->parsed));
	if (!ret)
		ret = check_sockets(&reader);
	if (!ret)
		ret = assign_uids(&reader, config_root_setting(config->parsed));
	if (ret)
		fgv_config_fini(config);
	return ret;
}

int fgv_config_load(struct fgv_config *config, const char *path, char *why, size_t why_len)
{
	char *text;
	int ret = fgv_config_text_load(path, &text);

	if (ret) {
		snprintf(why, why_len, "%s: %s", path,
			 ret == -EILSEQ ? "not a text file" : strerror(-ret));
		return ret;
	}
	ret = fgv_config_parse(config, text, path, why, why_len);
	free(text);
	return ret;
}

void fgv_config_fini(struct fgv_config *config)
{
	for (size_t i = 0; i < config->vm_count; i++)
		free(config->vms[i].users.uids);
	free(config->vms);
	if (config->parsed)
		config_destroy(config->parsed);
	free(config->parsed);
	free(config->file);
	*config = (struct fgv_config){0};
}

int fgv_config_check_memory(const struct fgv_config *config, size_t device, uint64_t bytes,
			    char *why, size_t why_len)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};
	const config_setting_t *place = NULL;
	uint64_t given = 0;

	why[0] = '\0';
	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		if (!fgv_config_uses(vm, device) || vm->memory_bytes == FGV_CONFIG_NO_LIMIT)
			continue;
		given += vm->memory_bytes;
		if (given > bytes && !place)
			place = config_setting_get_member(vm->place, "memory");
	}
	if (!place)
		return 0;
	fgv_config_values_refuse(
		&reader, place, "memory",
		"the VMs of GPU %zu are given %llu MiB together, and it has %llu%s", device,
		(unsigned long long)(given >> 20), (unsigned long long)(bytes >> 20),
		config->overcommit ? "" : "; \"overcommit = true;\" allows that");
	return config->overcommit ? 0 : -ENOMEM;
}

int fgv_config_refuse(const struct fgv_config *config, const char *key, char *why, size_t why_len,
		      const char *text)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};
	const config_setting_t *top = config_root_setting(config->parsed);

	return fgv_config_values_refuse(&reader, config_setting_get_member(top, key), key, "%s",
					text);
}
