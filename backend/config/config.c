/*
 * Reading the configuration file: libconfig parses it, the table of keys says what
 * may stand in it. All text that messages and values point to lives in the parsed
 * configuration, which struct fgv_config keeps.
 */
#include "backend/config/config.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/config/devices.h"
#include "backend/config/includes.h"
#include "backend/config/shares.h"
#include "backend/config/sharing.h"
#include "backend/config/spatial.h"
#include "backend/config/text.h"
#include "backend/config/uids.h"
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

		if (!fgv_config_find_key(name, of_vm))
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
	/* Multiprocessors are taken back at the end of kernels, not in the middle. */
	if (config->policy->set_units)
		config->hold = false;
	config->hang_held_ns = config->hang_ns == FGV_CONFIG_NO_LIMIT ? 0 : config->hang_ns;
	if (config->hang_ns == FGV_CONFIG_NO_LIMIT)
		config->hang_ns = HANG_NS;
}

static void choose_defaults(struct fgv_config *config)
{
	choose_slice(config);
	choose_hang(config);
}

/* Has libconfig look for what @text includes; *@copy, for free(): the text to give it. */
static int find_includes(const struct fgv_config_reader *reader, const char *text, char **copy)
{
	struct fgv_config *config = reader->config;
	char *file = strdup(config->file);
	char *folder = file ? realpath(dirname(file), NULL) : NULL;
	int ret = 0;

	*copy = folder ? fgv_config_includes_root(text, folder) : NULL;
	if (!*copy) {
		ret = -errno;
		snprintf(reader->why, reader->why_len, "%s: %s", config->file, strerror(-ret));
	} else {
		ret = fgv_config_includes_check(*copy, config->file, folder, reader->why,
						reader->why_len);
		config_set_include_dir(config->parsed, folder);
	}
	free(folder);
	free(file);
	return ret;
}

static int parse_text(const struct fgv_config_reader *reader, const char *text)
{
	struct fgv_config *config = reader->config;
	config_t *parsed = config->parsed;
	unsigned overflow = fgv_config_text_find_overflow(text);
	char *copy;
	int ok, ret;

	if (overflow) {
		snprintf(reader->why, reader->why_len, "%s:%u: a number is too large", config->file,
			 overflow);
		return -EINVAL;
	}
	ret = find_includes(reader, text, &copy);
	if (ret) {
		free(copy);
		return ret;
	}
	ok = config_read_string(parsed, copy);
	free(copy);
	if (!ok) {
		const char *file = config_error_file(parsed);

		snprintf(reader->why, reader->why_len, "%s:%d: %s", file ? file : config->file,
			 config_error_line(parsed), config_error_text(parsed));
		return -EINVAL;
	}
	return 0;
}

/* What has been parsed has values, which go together. */
static int read_all(const struct fgv_config_reader *reader)
{
	struct fgv_config *config = reader->config;
	config_setting_t *top = config_root_setting(config->parsed);
	int ret = read_group(reader, top, false, config);

	if (!ret)
		choose_defaults(config);
	if (!ret)
		ret = fgv_config_devices_join(reader);
	if (!ret)
		ret = check_window(reader, top);
	if (!ret)
		ret = fgv_config_shares_check(reader, top);
	if (!ret)
		ret = fgv_config_spatial_check(reader, top);
	if (!ret)
		ret = fgv_config_sharing_check(reader);
	if (!ret)
		ret = check_own_sockets(reader, top);
	if (!ret)
		ret = check_sockets(reader);
	if (!ret)
		ret = fgv_config_uids_assign(reader, NULL, 0);
	return ret;
}

/* For fgv_config_fini(), also where it fails. */
static int begin(const struct fgv_config_reader *reader)
{
	struct fgv_config *config = reader->config;

	*config = (struct fgv_config){
		.file = strdup(reader->file),
		.parsed = malloc(sizeof(config_t)),
	};
	if (config->parsed)
		config_init(config->parsed);
	if (config->file && config->parsed)
		return 0;
	snprintf(reader->why, reader->why_len, "%s%sout of memory", reader->file,
		 *reader->file ? ": " : "");
	return -ENOMEM;
}

int fgv_config_parse(struct fgv_config *config, const char *text, const char *file, char *why,
		     size_t why_len)
{
	struct fgv_config_reader reader = {config, file, why, why_len};
	int ret = begin(&reader);

	if (!ret)
		ret = parse_text(&reader, text);
	if (!ret)
		ret = read_all(&reader);
	if (ret)
		fgv_config_fini(config);
	return ret;
}

/* A copy of what @from was parsed to, by way of its text. */
static int copy_parsed(config_t *to, const config_t *from)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);
	int ret = -ENOMEM;

	if (file) {
		config_write(from, file);
		if (!fclose(file) && config_read_string(to, text))
			ret = 0;
	}
	free(text);
	return ret;
}

int fgv_config_derive(struct fgv_config *config, const struct fgv_config *base,
		      int (*change)(struct config_setting_t *vms, const void *arg), const void *arg,
		      char *why, size_t why_len)
{
	struct fgv_config_reader reader = {config, "", why, why_len};
	int ret = begin(&reader);

	if (!ret) {
		ret = copy_parsed(config->parsed, base->parsed);
		if (!ret)
			ret = change(config_lookup(config->parsed, "vms"), arg);
		if (ret)
			snprintf(why, why_len, "%s", strerror(-ret));
	}
	if (!ret)
		ret = read_all(&reader);
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

/* The same, NULL where there is none. False: out of memory. */
static bool copy_text(const char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

int fgv_config_copy_vm(struct fgv_config_vm *to, const struct fgv_config_vm *from)
{
	size_t users_len = from->users.count * sizeof(*from->users.uids);

	*to = *from;
	to->place = NULL;
	to->users.uids = malloc(users_len);
	/* All of them, so that what is not there is NULL. */
	if (copy_text(&to->name, from->name) & copy_text(&to->socket, from->socket) &
	    copy_text(&to->ivshmem, from->ivshmem) & (to->users.uids != NULL)) {
		memcpy(to->users.uids, from->users.uids, users_len);
		return 0;
	}
	fgv_config_free_vm(to);
	return -ENOMEM;
}

void fgv_config_free_vm(struct fgv_config_vm *copy)
{
	free(copy->users.uids);
	free((void *)copy->ivshmem);
	free((void *)copy->socket);
	free((void *)copy->name);
	*copy = (struct fgv_config_vm){0};
}

bool fgv_config_pages(const struct fgv_config *config)
{
	return config->overcommit && config->overcommit != FGV_CONFIG_NO_LIMIT;
}

/* Memory of @bytes that VMs may be given, and what of that is for those whose memory stays. */
static uint64_t may_give(const struct fgv_config *config, uint64_t bytes)
{
	if (!fgv_config_pages(config))
		return bytes;
	return bytes / FGV_CONFIG_FACTOR_ONE * config->overcommit;
}

/* What VMs whose memory may move have of their GPUs, @bytes each at most, together. */
static uint64_t movable_bytes(const struct fgv_config *config, uint64_t bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		for (size_t device = 0; vm->movable && device < FGV_GPU_DEVICES_MAX; device++) {
			if (fgv_config_uses(vm, device))
				sum += fgv_min_u64(vm->memory_bytes, bytes);
		}
	}
	return sum;
}

/* All that may be out at a time: all but one, and the one that comes in. */
static int check_host_memory(const struct fgv_config *config, uint64_t bytes, char *why,
			     size_t why_len)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};
	const config_setting_t *top = config_root_setting(config->parsed);
	uint64_t movable = movable_bytes(config, bytes);

	if (!fgv_config_pages(config) || movable <= config->frozen_memory_bytes)
		return 0;
	fgv_config_values_refuse(&reader, config_setting_get_member(top, "overcommit"),
				 "overcommit",
				 "VMs with movable = true are given %llu MiB together, and "
				 "frozen_memory sets %llu MiB "
				 "of the host aside for what is not on a GPU",
				 (unsigned long long)(movable >> 20),
				 (unsigned long long)(config->frozen_memory_bytes >> 20));
	return -ENOMEM;
}

/* With a factor: memory that stays can't be moved out of anybody's way. */
static int check_fixed(const struct fgv_config *config, size_t device, uint64_t bytes, char *why,
		       size_t why_len)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};
	uint64_t fixed = 0;

	for (size_t i = 0; i < config->vm_count && fgv_config_pages(config); i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		if (!fgv_config_uses(vm, device) || vm->movable ||
		    vm->memory_bytes == FGV_CONFIG_NO_LIMIT)
			continue;
		fixed += vm->memory_bytes;
		if (fixed <= bytes)
			continue;
		fgv_config_values_refuse(&reader, config_setting_get_member(vm->place, "memory"),
					 "memory",
					 "the VMs of GPU %zu without movable = true are given %llu "
					 "MiB together, and "
					 "it has %llu",
					 device, (unsigned long long)(fixed >> 20),
					 (unsigned long long)(bytes >> 20));
		return -ENOMEM;
	}
	return check_host_memory(config, bytes, why, why_len);
}

int fgv_config_check_memory(const struct fgv_config *config, size_t device, uint64_t bytes,
			    char *why, size_t why_len)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};
	const config_setting_t *place = NULL;
	uint64_t given = 0, most = may_give(config, bytes);

	why[0] = '\0';
	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		if (!fgv_config_uses(vm, device) || vm->memory_bytes == FGV_CONFIG_NO_LIMIT)
			continue;
		given += vm->memory_bytes;
		if (given > most && !place)
			place = config_setting_get_member(vm->place, "memory");
	}
	if (!place)
		return check_fixed(config, device, bytes, why, why_len);
	fgv_config_values_refuse(
		&reader, place, "memory",
		"the VMs of GPU %zu are given %llu MiB together, and it has %llu%s", device,
		(unsigned long long)(given >> 20), (unsigned long long)(bytes >> 20),
		fgv_config_pages(config) ? ", not so many times as key overcommit says"
		: config->overcommit	 ? ""
					 : "; \"overcommit = true;\" allows that");
	return config->overcommit == FGV_CONFIG_NO_LIMIT ? 0 : -ENOMEM;
}

int fgv_config_refuse(const struct fgv_config *config, const char *key, char *why, size_t why_len,
		      const char *text)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};
	const config_setting_t *top = config_root_setting(config->parsed);

	return fgv_config_values_refuse(&reader, config_setting_get_member(top, key), key, "%s",
					text);
}
