/*
 * Single values of the configuration; see values.h.
 */
#include "backend/config/values.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/config/amounts.h"
#include "backend/config/devices.h"
#include "backend/config/text.h"
#include "common/util.h"

/* The name of the VM whose group @place is, or is in; NULL: none. */
static const char *vm_of(const config_setting_t *place)
{
	const char *name = NULL;

	for (; place && !name; place = config_setting_parent(place)) {
		if (config_setting_is_group(place))
			config_setting_lookup_string(place, "name", &name);
	}
	return name;
}

int fgv_config_values_refuse(const struct fgv_config_reader *reader, const config_setting_t *place,
			     const char *key, const char *format, ...)
{
	const char *file = place ? config_setting_source_file(place) : NULL;
	unsigned line = place ? config_setting_source_line(place) : 0;
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!*reader->file) {
		const char *vm = vm_of(place);

		snprintf(reader->why, reader->why_len, "%s%s%s%s: %s", vm ? "vm " : "",
			 vm ? vm : "", vm ? ": " : "", key, text);
		return -EINVAL;
	}
	snprintf(reader->why, reader->why_len, "%s:%u: %s: %s", file ? file : reader->file,
		 line ? line : 1, key, text);
	return -EINVAL;
}

bool fgv_config_values_is_sequence(const config_setting_t *setting)
{
	int type = config_setting_type(setting);

	return type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST;
}

static int read_switch(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, bool *value)
{
	if (config_setting_type(setting) != CONFIG_TYPE_BOOL)
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be true or false");
	*value = config_setting_get_bool(setting);
	return 0;
}

static int read_policy(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, const struct fgv_policy **policy)
{
	const char *text = config_setting_get_string(setting);
	const struct fgv_policy *found;
	char names[160] = "";

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	found = fgv_policy_find(text);
	if (!found) {
		for (size_t i = 0, len = 0; fgv_policies[i] && len < sizeof(names); i++)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						i ? ", " : "", fgv_policies[i]->name);
		return fgv_config_values_refuse(reader, setting, key->name, "\"%s\" is none of %s",
						text, names);
	}
	*policy = found;
	return 0;
}

static int read_place(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		      const config_setting_t *setting, const struct fgv_place_rule **rule)
{
	const char *text = config_setting_get_string(setting);
	const struct fgv_place_rule *found = text ? fgv_place_find(text) : NULL;

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (!found)
		return fgv_config_values_refuse(reader, setting, key->name,
						"\"%s\" is none of fixed, mgb2, mgb3, least", text);
	*rule = found;
	return 0;
}

static int read_context(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
			const config_setting_t *setting, enum fgv_context *context)
{
	const char *text = config_setting_get_string(setting);

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (!strcmp(text, "isolated"))
		*context = FGV_CONTEXT_ISOLATED;
	else if (!strcmp(text, "mps"))
		*context = FGV_CONTEXT_MPS;
	else
		return fgv_config_values_refuse(reader, setting, key->name,
						"\"%s\" is none of isolated, mps", text);
	return 0;
}

static int read_slicing(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
			const config_setting_t *setting, enum fgv_slicing *slicing)
{
	static const char *const words[] = {
		[FGV_SLICING_OFF] = "off", [FGV_SLICING_AUTO] = "auto", [FGV_SLICING_ON] = "on"};
	const char *text = config_setting_get_string(setting);

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	for (unsigned i = 0; i < FGV_ARRAY_LEN(words); i++) {
		if (strcmp(text, words[i]) != 0)
			continue;
		*slicing = (enum fgv_slicing)i;
		return 0;
	}
	return fgv_config_values_refuse(reader, setting, key->name,
					"\"%s\" is none of off, auto, on", text);
}

/* One of two words; *@value is whether it is the second. */
static int read_choice(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, const char *no, const char *yes,
		       bool *value)
{
	const char *text = config_setting_get_string(setting);

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
		return fgv_config_values_refuse(reader, setting, key->name,
						"\"%s\" is none of %s, %s", text, no, yes);
	*value = !strcmp(text, yes);
	return 0;
}

static int read_auto(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, bool *value)
{
	bool off;
	int ret = read_choice(reader, key, setting, "auto", "off", &off);

	if (!ret)
		*value = !off;
	return ret;
}

static int read_uids(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, struct fgv_config_uids *uids)
{
	const char *text = config_setting_get_string(setting);

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (fgv_config_text_uids(text, uids))
		return fgv_config_values_refuse(
			reader, setting, key->name,
			"\"%s\" is neither \"none\" nor a range of users as \"%s\"", text,
			key->standard_text);
	return 0;
}

static int read_cgroup(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, const char **value)
{
	const char *text = config_setting_get_string(setting);

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (strcmp(text, "auto") != 0 && strcmp(text, "off") != 0 && text[0] != '/')
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be auto, off or an absolute path");
	*value = text;
	return 0;
}

static int read_gpu(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		    const config_setting_t *setting, struct fgv_gpu_choice *choice)
{
	const char *text = config_setting_get_string(setting);

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (fgv_config_text_gpu(text, choice))
		return fgv_config_values_refuse(
			reader, setting, key->name,
			"\"%s\" is none of auto, cuda, cuda:0,1, soft, soft:2 "
			"(at most %d devices)",
			text, FGV_GPU_DEVICES_MAX);
	return 0;
}

static int read_path(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, const char **path)
{
	const char *text = config_setting_get_string(setting);
	size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (text[0] != '/')
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be an absolute path");
	if (strlen(text) > max)
		return fgv_config_values_refuse(reader, setting, key->name,
						"longer than %zu characters", max);
	*path = text;
	return 0;
}

static int read_name(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, const char **name)
{
	const struct fgv_config *config = reader->config;
	const char *text = config_setting_get_string(setting);

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name, "must be a string");
	if (!fgv_config_text_is_name(text))
		return fgv_config_values_refuse(
			reader, setting, key->name,
			"\"%s\" is not a name: 1 to %d of A-Z, a-z, 0-9, _, . and -", text,
			FGV_NAME_MAX - 1);
	for (size_t i = 0; i < config->vm_count; i++) {
		if (config->vms[i].name && !strcmp(config->vms[i].name, text))
			return fgv_config_values_refuse(reader, setting, key->name,
							"another VM is called \"%s\" already",
							text);
	}
	*name = text;
	return 0;
}

static int read_user(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		     const config_setting_t *setting, uid_t *uid)
{
	const char *text = config_setting_get_string(setting);
	int ret;

	if (fgv_config_amounts_is_whole(setting)) {
		long long number = config_setting_get_int64(setting);

		if (number < 0 || number >= UINT32_MAX)
			return fgv_config_values_refuse(reader, setting, key->name,
							"%lld is not a user's number", number);
		*uid = (uid_t)number;
		return 0;
	}
	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name,
						"a user must be a name or a number");
	ret = fgv_config_text_user(text, uid);
	if (ret == -ENOENT)
		return fgv_config_values_refuse(reader, setting, key->name,
						"no user is called \"%s\"", text);
	if (ret)
		return fgv_config_values_refuse(reader, setting, key->name,
						"%s is not a user's number", text);
	return 0;
}

static int read_users(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		      const config_setting_t *setting, struct fgv_config_users *users)
{
	int count;

	if (!fgv_config_values_is_sequence(setting))
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be a list, as [\"root\"]");
	count = config_setting_length(setting);
	if (count == 0)
		return fgv_config_values_refuse(reader, setting, key->name, "names nobody");
	users->uids = calloc((size_t)count, sizeof(*users->uids));
	if (!users->uids)
		return fgv_config_values_refuse(reader, setting, key->name, "out of memory");
	for (int i = 0; i < count; i++) {
		const config_setting_t *user = config_setting_get_elem(setting, (unsigned)i);
		int ret = read_user(reader, key, user, &users->uids[i]);

		if (ret)
			return ret;
	}
	users->count = (size_t)count;
	return 0;
}

int fgv_config_values_read(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
			   const config_setting_t *setting, void *value)
{
	switch (key->type) {
	case FGV_CONFIG_GPU:
		return read_gpu(reader, key, setting, value);
	case FGV_CONFIG_PATH:
		return read_path(reader, key, setting, value);
	case FGV_CONFIG_SIZE:
		return fgv_config_amounts_size(reader, key, setting, value);
	case FGV_CONFIG_NUMBER:
		return fgv_config_amounts_number(reader, key, setting, value);
	case FGV_CONFIG_DURATION:
	case FGV_CONFIG_TIMEOUT:
		return fgv_config_amounts_duration(reader, key, setting, value);
	case FGV_CONFIG_SHARE:
		return fgv_config_amounts_share(reader, key, setting, value);
	case FGV_CONFIG_SMS:
		return fgv_config_amounts_sms(reader, key, setting, value);
	case FGV_CONFIG_FACTOR:
		return fgv_config_amounts_factor(reader, key, setting, value);
	case FGV_CONFIG_SWITCH:
		return read_switch(reader, key, setting, value);
	case FGV_CONFIG_POLICY:
		return read_policy(reader, key, setting, value);
	case FGV_CONFIG_PLACE:
		return read_place(reader, key, setting, value);
	case FGV_CONFIG_CONTEXT:
		return read_context(reader, key, setting, value);
	case FGV_CONFIG_SLICING:
		return read_slicing(reader, key, setting, value);
	case FGV_CONFIG_AUTO:
		return read_auto(reader, key, setting, value);
	case FGV_CONFIG_SANDBOX:
		return read_choice(reader, key, setting, "enforce", "record", value);
	case FGV_CONFIG_PAGEABLE:
		return read_choice(reader, key, setting, "warn", "refuse", value);
	case FGV_CONFIG_UIDS:
		return read_uids(reader, key, setting, value);
	case FGV_CONFIG_CGROUP:
		return read_cgroup(reader, key, setting, value);
	case FGV_CONFIG_NAME:
		return read_name(reader, key, setting, value);
	case FGV_CONFIG_USER:
		return read_user(reader, key, setting, value);
	case FGV_CONFIG_USERS:
		return read_users(reader, key, setting, value);
	case FGV_CONFIG_DEVICES:
		return fgv_config_devices_read(reader, key, setting, value);
	case FGV_CONFIG_VMS:
		break;
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

int fgv_config_values_default(const struct fgv_config_key *key, void *value)
{
	switch (key->type) {
	case FGV_CONFIG_NUMBER:
	case FGV_CONFIG_SIZE:
	case FGV_CONFIG_DURATION:
	case FGV_CONFIG_TIMEOUT:
	case FGV_CONFIG_SHARE:
	case FGV_CONFIG_SMS:
	case FGV_CONFIG_FACTOR:
		*(uint64_t *)value = key->standard;
		return 0;
	case FGV_CONFIG_SWITCH:
	case FGV_CONFIG_AUTO:
	case FGV_CONFIG_SANDBOX:
	case FGV_CONFIG_PAGEABLE:
		*(bool *)value = key->standard;
		return 0;
	case FGV_CONFIG_PATH:
		/* A default in words is no path. */
		*(const char **)value = *key->standard_text == '/' ? key->standard_text : NULL;
		return 0;
	case FGV_CONFIG_SLICING:
		*(enum fgv_slicing *)value = (enum fgv_slicing)key->standard;
		return 0;
	case FGV_CONFIG_UIDS:
		return fgv_config_text_uids(key->standard_text, value);
	case FGV_CONFIG_CGROUP:
		*(const char **)value = key->standard_text;
		return 0;
	case FGV_CONFIG_POLICY:
		*(const struct fgv_policy **)value = fgv_policies[0];
		return 0;
	case FGV_CONFIG_PLACE:
		*(const struct fgv_place_rule **)value = &fgv_place_fixed;
		return 0;
	case FGV_CONFIG_USER:
		*(uid_t *)value = geteuid();
		return 0;
	case FGV_CONFIG_USERS:
		return default_users(value);
	default:
		return 0; /* FGV_CONFIG_GPU, _CONTEXT, _DEVICES: zero is the default */
	}
}
