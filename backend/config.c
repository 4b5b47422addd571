/*
 * Reading the configuration file: libconfig parses it, the table of keys says what
 * may stand in it. All text that messages and values point to lives in the parsed
 * configuration, which struct fgv_config keeps.
 */
#include "backend/config.h"

#include <errno.h>
#include <libconfig.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/config_text.h"
#include "common/util.h"
#include "shmring/window.h"

struct reader {
	struct fgv_config *config;
	const char *file;
	char *why;
	size_t why_len;
};

/* Writes "file:line: key: text"; returns -EINVAL for the caller to pass on. */
__attribute__((format(printf, 4, 5))) static int refuse(const struct reader *reader,
							const config_setting_t *place,
							const char *key, const char *format, ...)
{
	const char *file = place ? config_setting_source_file(place) : NULL;
	unsigned line = place ? config_setting_source_line(place) : 0;
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(reader->why, reader->why_len, "%s:%u: %s: %s", file ? file : reader->file,
		 line ? line : 1, key, text);
	return -EINVAL;
}

static bool is_whole(const config_setting_t *setting)
{
	int type = config_setting_type(setting);

	return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

static bool is_sequence(const config_setting_t *setting)
{
	int type = config_setting_type(setting);

	return type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST;
}

/* A number or a size that has been read: in range? */
static int check_range(const struct reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, uint64_t value)
{
	char min[32], max[32];

	if (value >= key->min && value <= key->max)
		return 0;
	if (key->type == FGV_CONFIG_SIZE) {
		fgv_config_text_show_size(key->min, min, sizeof(min));
		fgv_config_text_show_size(key->max, max, sizeof(max));
	} else {
		snprintf(min, sizeof(min), "%llu", (unsigned long long)key->min);
		snprintf(max, sizeof(max), "%llu", (unsigned long long)key->max);
	}
	return refuse(reader, setting, key->name, "out of range: must be %s to %s", min, max);
}

static int read_number(const struct reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, uint64_t *value)
{
	long long number;
	int ret;

	if (!is_whole(setting))
		return refuse(reader, setting, key->name, "must be a whole number");
	number = config_setting_get_int64(setting);
	ret = check_range(reader, key, setting, number < 0 ? UINT64_MAX : (uint64_t)number);
	if (!ret)
		*value = (uint64_t)number;
	return ret;
}

static int read_size(const struct reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, uint64_t *value)
{
	const char *text = config_setting_get_string(setting);
	uint64_t bytes = UINT64_MAX;
	int ret;

	if (is_whole(setting))
		return read_number(reader, key, setting, value);
	if (!text)
		return refuse(reader, setting, key->name,
			      "must be a size: a number of bytes, or a string as \"4G\"");
	if (fgv_config_text_size(text, &bytes) == -EINVAL)
		return refuse(reader, setting, key->name,
			      "\"%s\" is no size: digits, then K, M, G or T", text);
	ret = check_range(reader, key, setting, bytes);
	if (!ret)
		*value = bytes;
	return ret;
}

static int read_gpu(const struct reader *reader, const struct fgv_config_key *key,
		    const config_setting_t *setting, struct fgv_gpu_choice *choice)
{
	const char *text = config_setting_get_string(setting);

	if (!text)
		return refuse(reader, setting, key->name, "must be a string");
	if (fgv_config_text_gpu(text, choice))
		return refuse(reader, setting, key->name,
			      "\"%s\" is none of auto, cuda, cuda:0,1, soft, soft:2 "
			      "(at most %d devices)",
			      text, FGV_GPU_DEVICES_MAX);
	return 0;
}

static int read_path(const struct reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, const char **path)
{
	const char *text = config_setting_get_string(setting);
	size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

	if (!text)
		return refuse(reader, setting, key->name, "must be a string");
	if (text[0] != '/')
		return refuse(reader, setting, key->name, "must be an absolute path");
	if (strlen(text) > max)
		return refuse(reader, setting, key->name, "longer than %zu characters", max);
	*path = text;
	return 0;
}

static int read_name(const struct reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, const char **name)
{
	const struct fgv_config *config = reader->config;
	const char *text = config_setting_get_string(setting);

	if (!text)
		return refuse(reader, setting, key->name, "must be a string");
	if (!fgv_config_text_is_name(text))
		return refuse(reader, setting, key->name,
			      "\"%s\" is no name: 1 to %d of A-Z, a-z, 0-9, _, . and -", text,
			      FGV_NAME_MAX - 1);
	for (size_t i = 0; i < config->vm_count; i++) {
		if (config->vms[i].name && !strcmp(config->vms[i].name, text))
			return refuse(reader, setting, key->name,
				      "another VM is called \"%s\" already", text);
	}
	*name = text;
	return 0;
}

static int read_user(const struct reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, uid_t *uid)
{
	const char *text = config_setting_get_string(setting);
	int ret;

	if (is_whole(setting)) {
		long long number = config_setting_get_int64(setting);

		if (number < 0 || number >= UINT32_MAX)
			return refuse(reader, setting, key->name, "%lld is no user's number",
				      number);
		*uid = (uid_t)number;
		return 0;
	}
	if (!text)
		return refuse(reader, setting, key->name, "a user must be a name or a number");
	ret = fgv_config_text_user(text, uid);
	if (ret == -ENOENT)
		return refuse(reader, setting, key->name, "no user is called \"%s\"", text);
	if (ret)
		return refuse(reader, setting, key->name, "%s is no user's number", text);
	return 0;
}

static int read_users(const struct reader *reader, const struct fgv_config_key *key,
		      const config_setting_t *setting, struct fgv_config_users *users)
{
	int count;

	if (!is_sequence(setting))
		return refuse(reader, setting, key->name, "must be a list, as [\"root\"]");
	count = config_setting_length(setting);
	if (count == 0)
		return refuse(reader, setting, key->name, "names nobody");
	users->uids = calloc((size_t)count, sizeof(*users->uids));
	if (!users->uids)
		return refuse(reader, setting, key->name, "out of memory");
	for (int i = 0; i < count; i++) {
		const config_setting_t *user = config_setting_get_elem(setting, (unsigned)i);
		int ret = read_user(reader, key, user, &users->uids[i]);

		if (ret)
			return ret;
	}
	users->count = (size_t)count;
	return 0;
}

static int read_group(const struct reader *reader, const config_setting_t *group, bool of_vm,
		      void *values);

static int read_vms(const struct reader *reader, const struct fgv_config_key *key,
		    const config_setting_t *setting)
{
	struct fgv_config *config = reader->config;
	int count;

	if (!is_sequence(setting))
		return refuse(reader, setting, key->name, "must be a list of groups: ( { ... } )");
	count = config_setting_length(setting);
	if (count == 0)
		return refuse(reader, setting, key->name, "names no VM");
	config->vms = calloc((size_t)count, sizeof(*config->vms));
	if (!config->vms)
		return refuse(reader, setting, key->name, "out of memory");
	for (int i = 0; i < count; i++) {
		const config_setting_t *group = config_setting_get_elem(setting, (unsigned)i);
		struct fgv_config_vm *vm = &config->vms[i];
		int ret;

		if (!config_setting_is_group(group))
			return refuse(reader, group, key->name, "a VM must be a group: { ... }");
		config->vm_count++; /* for fgv_config_fini(), also after an error */
		vm->place = group;
		ret = read_group(reader, group, true, vm);
		if (ret)
			return ret;
	}
	return 0;
}

static int read_value(const struct reader *reader, const struct fgv_config_key *key,
		      const config_setting_t *setting, void *values)
{
	void *value = (char *)values + key->offset;

	switch (key->type) {
	case FGV_CONFIG_GPU:
		return read_gpu(reader, key, setting, value);
	case FGV_CONFIG_PATH:
		return read_path(reader, key, setting, value);
	case FGV_CONFIG_SIZE:
		return read_size(reader, key, setting, value);
	case FGV_CONFIG_NUMBER:
		return read_number(reader, key, setting, value);
	case FGV_CONFIG_NAME:
		return read_name(reader, key, setting, value);
	case FGV_CONFIG_USERS:
		return read_users(reader, key, setting, value);
	case FGV_CONFIG_VMS:
		return read_vms(reader, key, setting);
	}
	return -EINVAL;
}

static int default_users(struct fgv_config_users *users)
{
	users->uids = calloc(1, sizeof(*users->uids));
	if (!users->uids)
		return -ENOMEM;
	users->uids[0] = geteuid();
	users->count = 1;
	return 0;
}

/* @group lacks @key. */
static int read_default(const struct reader *reader, const struct fgv_config_key *key,
			const config_setting_t *group, void *values)
{
	void *value = (char *)values + key->offset;

	if (!key->standard_text)
		return refuse(reader, group, key->name, "is missing");
	if (key->type == FGV_CONFIG_NUMBER || key->type == FGV_CONFIG_SIZE)
		*(uint64_t *)value = key->standard;
	else if (key->type == FGV_CONFIG_PATH)
		*(const char **)value = key->standard_text;
	else if (key->type == FGV_CONFIG_USERS && default_users(value))
		return refuse(reader, group, key->name, "out of memory");
	return 0; /* FGV_CONFIG_GPU: zero is the default, auto */
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
static int read_group(const struct reader *reader, const config_setting_t *group, bool of_vm,
		      void *values)
{
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);
	int ret = 0;

	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(setting);

		if (!find_key(name, of_vm))
			return refuse(reader, setting, name, "unknown key");
	}
	for (size_t i = 0; i < count && !ret; i++) {
		const config_setting_t *setting;

		if (keys[i].of_vm != of_vm)
			continue;
		setting = config_setting_get_member(group, keys[i].name);
		if (setting)
			ret = read_value(reader, &keys[i], setting, values);
		else
			ret = read_default(reader, &keys[i], group, values);
	}
	return ret;
}

/* "window" and "lanes" must go together. */
static int check_window(const struct reader *reader, const config_setting_t *top)
{
	const struct fgv_config *config = reader->config;
	const config_setting_t *place = config_setting_get_member(top, "window");
	struct fgv_window window;

	if (config->window_bytes % FGV_PAGE_BYTES)
		return refuse(reader, place, "window", "must be a multiple of %d", FGV_PAGE_BYTES);
	if (fgv_window_layout(&window, config->window_bytes, (uint32_t)config->lanes)) {
		if (!place)
			place = config_setting_get_member(top, "lanes");
		return refuse(reader, place, "window", "too small for %llu lanes",
			      (unsigned long long)config->lanes);
	}
	return 0;
}

static int parse_text(const struct reader *reader, const char *text)
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
	struct reader reader = {config, file, why, why_len};
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
		ret = check_window(&reader, config_root_setting(config->parsed));
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

int fgv_config_check_devices(const struct fgv_config *config, size_t devices, char *why,
			     size_t why_len)
{
	struct reader reader = {NULL, config->file, why, why_len};

	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];
		const config_setting_t *place = config_setting_get_member(vm->place, "device");

		if (vm->device >= devices)
			return refuse(&reader, place ? place : vm->place, "device",
				      "there is no device %llu: there are %zu, counted from 0",
				      (unsigned long long)vm->device, devices);
	}
	return 0;
}

int fgv_config_refuse_gpu(const struct fgv_config *config, char *why, size_t why_len,
			  const char *text)
{
	struct reader reader = {NULL, config->file, why, why_len};
	const config_setting_t *top = config_root_setting(config->parsed);

	return refuse(&reader, config_setting_get_member(top, "gpu"), "gpu", "%s", text);
}
