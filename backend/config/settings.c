/*
 * Settings in memory; see settings.h. Their file is in settings_file.c.
 */
#include "backend/config/settings.h"

#include <errno.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/config/settings_priv.h"
#include "common/log.h"

static void fini_one(struct fgv_setting *setting)
{
	free(setting->value);
	free(setting->was);
}

void fgv_settings_fini(struct fgv_settings *settings)
{
	for (size_t i = 0; i < settings->count; i++)
		fini_one(&settings->list[i]);
	free(settings->list);
	*settings = (struct fgv_settings){0};
}

int fgv_settings_add(struct fgv_settings *settings, const struct fgv_setting *setting)
{
	struct fgv_setting *list = reallocarray(settings->list, settings->count + 1, sizeof(*list));
	struct fgv_setting copy = *setting;

	if (!list)
		return -ENOMEM;
	settings->list = list;
	copy.value = strdup(setting->value);
	copy.was = strdup(setting->was);
	if (!copy.value || !copy.was) {
		fini_one(&copy);
		return -ENOMEM;
	}
	list[settings->count++] = copy;
	return 0;
}

int fgv_settings_copy(struct fgv_settings *to, const struct fgv_settings *from)
{
	int ret = 0;

	*to = (struct fgv_settings){0};
	for (size_t i = 0; i < from->count && !ret; i++)
		ret = fgv_settings_add(to, &from->list[i]);
	if (ret)
		fgv_settings_fini(to);
	return ret;
}

bool fgv_settings_may_set(const struct fgv_config_key *key)
{
	return key->of_vm && key->type != FGV_CONFIG_PATH && key->type != FGV_CONFIG_SLICING &&
	       (key->when == FGV_CONFIG_AT_ONCE || key->when == FGV_CONFIG_LATER);
}

/* In the order in which they were set, which is the order in which they are applied. */
static void drop(struct fgv_settings *settings, size_t i)
{
	fini_one(&settings->list[i]);
	settings->count--;
	memmove(&settings->list[i], &settings->list[i + 1],
		(settings->count - i) * sizeof(*settings->list));
}

/* The one of @vm's @key that is @kept or not; NULL: there is none. */
static struct fgv_setting *find(struct fgv_settings *settings, const char *vm,
				const struct fgv_config_key *key, bool kept)
{
	for (size_t i = 0; i < settings->count; i++) {
		struct fgv_setting *setting = &settings->list[i];

		if (setting->key == key && setting->kept == kept && !strcmp(setting->vm, vm))
			return setting;
	}
	return NULL;
}

static void forget(struct fgv_settings *settings, const char *vm, const struct fgv_config_key *key,
		   bool kept)
{
	const struct fgv_setting *setting = find(settings, vm, key, kept);

	if (setting)
		drop(settings, (size_t)(setting - settings->list));
}

int fgv_settings_set(struct fgv_settings *settings, const struct fgv_config *base, const char *vm,
		     const struct fgv_config_key *key, const char *value, bool kept)
{
	char *was = fgv_config_show(key, fgv_config_find_vm(base, vm));
	struct fgv_setting setting = {.key = key, .was = was, .kept = kept};
	bool is_back = was && (!*value || !strcmp(value, was));
	int ret = 0;

	if (!was)
		return -ENOMEM;
	snprintf(setting.vm, sizeof(setting.vm), "%s", vm);
	setting.value = is_back ? was : (char *)value;
	forget(settings, vm, key, false);
	if (kept)
		forget(settings, vm, key, true);
	/* Where a kept one stays, the configuration's value has to be set against it. */
	if (!is_back || find(settings, vm, key, true))
		ret = fgv_settings_add(settings, &setting);
	free(was);
	return ret;
}

/* Whether @base says what it said when @setting was made. -ENOMEM. */
static int holds(const struct fgv_setting *setting, const struct fgv_config *base)
{
	const struct fgv_config_vm *vm = fgv_config_find_vm(base, setting->vm);
	char *now;
	int ret;

	if (!vm)
		return 0;
	now = fgv_config_show(setting->key, vm);
	ret = now ? !strcmp(now, setting->was) : -ENOMEM;
	free(now);
	return ret;
}

int fgv_settings_prune(struct fgv_settings *settings, const struct fgv_config *base,
		       struct fgv_settings *dropped)
{
	int ret = 0;

	*dropped = (struct fgv_settings){0};
	for (size_t i = 0; i < settings->count && ret >= 0;) {
		ret = holds(&settings->list[i], base);
		if (!ret)
			ret = fgv_settings_add(dropped, &settings->list[i]);
		else if (ret > 0)
			i++;
		if (!ret)
			drop(settings, i);
	}
	if (ret < 0)
		fgv_settings_fini(dropped);
	return ret < 0 ? ret : 0;
}

bool fgv_settings_say_dropped(const struct fgv_settings *dropped)
{
	bool was_kept = false;

	for (size_t i = 0; i < dropped->count; i++) {
		const struct fgv_setting *setting = &dropped->list[i];

		fgv_info("vm %s: %s %s, which was set, is dropped: the configuration no longer "
			 "says %s",
			 setting->vm, setting->key->name, setting->value, setting->was);
		was_kept |= setting->kept;
	}
	return was_kept;
}

/* --- In the place of the configuration's values -------------------------------- */

static int put_users(config_setting_t *group, const char *key, const char *value)
{
	config_setting_t *list = config_setting_add(group, key, CONFIG_TYPE_LIST);
	char *copy = strdup(value), *rest = copy, *user;
	int ret = list && copy ? 0 : -ENOMEM;

	while (!ret && (user = strsep(&rest, ","))) {
		config_setting_t *item = config_setting_add(list, NULL, CONFIG_TYPE_STRING);

		if (!item || !config_setting_set_string(item, user))
			ret = -ENOMEM;
	}
	free(copy);
	return ret;
}

static int put_number(config_setting_t *group, const char *key, long long number)
{
	config_setting_t *setting = config_setting_add(group, key, CONFIG_TYPE_INT64);

	return setting && config_setting_set_int64(setting, number) ? 0 : -ENOMEM;
}

/* What is not a number where one belongs is refused when it is read. */
static int put_text(config_setting_t *group, const char *key, const char *value)
{
	config_setting_t *setting = config_setting_add(group, key, CONFIG_TYPE_STRING);

	return setting && config_setting_set_string(setting, value) ? 0 : -ENOMEM;
}

static int put(config_setting_t *group, const struct fgv_config_key *key, const char *value)
{
	char *end;
	long long number;

	config_setting_remove(group, key->name); /* where it is there */
	if (key->type == FGV_CONFIG_USERS)
		return put_users(group, key->name, value);
	errno = 0;
	number = strtoll(value, &end, 10);
	if (key->type == FGV_CONFIG_NUMBER && *value && !*end && !errno)
		return put_number(group, key->name, number);
	return put_text(group, key->name, value);
}

/* The group of the VM called @name; NULL: there is none. */
static config_setting_t *find_group(config_setting_t *vms, const char *name)
{
	for (int i = 0; i < config_setting_length(vms); i++) {
		config_setting_t *group = config_setting_get_elem(vms, (unsigned)i);
		const char *its = NULL;

		if (config_setting_lookup_string(group, "name", &its) && !strcmp(its, name))
			return group;
	}
	return NULL;
}

static int put_one(config_setting_t *vms, const struct fgv_setting *setting)
{
	config_setting_t *group = find_group(vms, setting->vm);

	return group ? put(group, setting->key, setting->value) : 0;
}

/* Those that are not kept are newer than the kept ones that they stand beside. */
static int put_all(config_setting_t *vms, const void *arg)
{
	const struct fgv_settings *settings = arg;
	int ret = 0;

	for (size_t i = 0; i < settings->count && !ret; i++)
		ret = settings->list[i].kept ? put_one(vms, &settings->list[i]) : 0;
	for (size_t i = 0; i < settings->count && !ret; i++)
		ret = settings->list[i].kept ? 0 : put_one(vms, &settings->list[i]);
	return ret;
}

int fgv_settings_apply(const struct fgv_settings *settings, const struct fgv_config *base,
		       struct fgv_config *config, char *why, size_t why_len)
{
	return fgv_config_derive(config, base, put_all, settings, why, why_len);
}
