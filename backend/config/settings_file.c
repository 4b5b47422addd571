/*
 * The file of settings that are kept; see settings.h. It is written beside its place and moved
 * there, so that a reader finds the old one or the new one, whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libconfig.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/config/settings.h"
#include "backend/config/settings_priv.h"
#include "backend/config/text.h"

static const char heading[] =
	"# Written by fairgv-backend: what \"fairgvctl set --save\" keeps. Each "
	"setting holds as\n# long as the configuration says what it did then "
	"(was).\n";

/* --- Reading -------------------------------------------------------------------- */

static int refuse(const char *path, const config_setting_t *place, const char *text, char *why,
		  size_t why_len)
{
	snprintf(why, why_len, "%s:%u: %s", path, place ? config_setting_source_line(place) : 1,
		 text);
	return -EINVAL;
}

static int read_one(struct fgv_settings *settings, const char *path, const config_setting_t *group,
		    char *why, size_t why_len)
{
	const char *vm = NULL, *key = NULL, *value = NULL, *was = NULL;
	struct fgv_setting setting = {.kept = true};

	if (!config_setting_is_group(group) || !config_setting_lookup_string(group, "vm", &vm) ||
	    !config_setting_lookup_string(group, "key", &key) ||
	    !config_setting_lookup_string(group, "value", &value) ||
	    !config_setting_lookup_string(group, "was", &was))
		return refuse(path, group, "a setting has vm, key, value and was, all strings", why,
			      why_len);
	setting.key = fgv_config_find_key(key, true);
	if (!fgv_config_text_is_name(vm) || !setting.key || !fgv_settings_may_set(setting.key))
		return refuse(path, group, "there is nothing of that name to be set", why, why_len);
	snprintf(setting.vm, sizeof(setting.vm), "%s", vm);
	setting.value = (char *)value;
	setting.was = (char *)was;
	if (!fgv_settings_add(settings, &setting))
		return 0;
	snprintf(why, why_len, "%s: out of memory", path);
	return -ENOMEM;
}

static int read_parsed(struct fgv_settings *settings, const char *path, const config_t *parsed,
		       char *why, size_t why_len)
{
	const config_setting_t *list = config_lookup(parsed, "settings");
	int ret = 0;

	if (!list || !config_setting_is_list(list))
		return refuse(path, list, "settings must be a list", why, why_len);
	for (int i = 0; i < config_setting_length(list) && !ret; i++)
		ret = read_one(settings, path, config_setting_get_elem(list, (unsigned)i), why,
			       why_len);
	return ret;
}

int fgv_settings_load(struct fgv_settings *settings, const char *path, char *why, size_t why_len)
{
	config_t parsed;
	char *text;
	int ret = fgv_config_text_load(path, &text);

	*settings = (struct fgv_settings){0};
	if (ret == -ENOENT)
		return 0;
	if (ret) {
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
		return ret;
	}
	config_init(&parsed);
	if (config_read_string(&parsed, text)) {
		ret = read_parsed(settings, path, &parsed, why, why_len);
	} else {
		snprintf(why, why_len, "%s:%d: %s", path, config_error_line(&parsed),
			 config_error_text(&parsed));
		ret = -EINVAL;
	}
	config_destroy(&parsed);
	free(text);
	if (ret)
		fgv_settings_fini(settings);
	return ret;
}

/* --- Writing -------------------------------------------------------------------- */

static int add_text(config_setting_t *group, const char *key, const char *text)
{
	config_setting_t *setting = config_setting_add(group, key, CONFIG_TYPE_STRING);

	return setting && config_setting_set_string(setting, text) ? 0 : -ENOMEM;
}

static int add_one(config_setting_t *list, const struct fgv_setting *setting)
{
	config_setting_t *group = config_setting_add(list, NULL, CONFIG_TYPE_GROUP);
	int ret = group ? add_text(group, "vm", setting->vm) : -ENOMEM;

	if (!ret)
		ret = add_text(group, "key", setting->key->name);
	if (!ret)
		ret = add_text(group, "value", setting->value);
	if (!ret)
		ret = add_text(group, "was", setting->was);
	return ret;
}

/* How many there are, or a negative errno. */
static int fill(config_t *parsed, const struct fgv_settings *settings)
{
	config_setting_t *list =
		config_setting_add(config_root_setting(parsed), "settings", CONFIG_TYPE_LIST);
	int count = 0, ret = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < settings->count && !ret; i++) {
		if (!settings->list[i].kept)
			continue;
		ret = add_one(list, &settings->list[i]);
		count++;
	}
	return ret ? ret : count;
}

/* To the file at @path, which is there as a whole when this returns. */
static int write_file(const config_t *parsed, const char *path)
{
	FILE *file;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	int ret = 0;

	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (!file) {
		ret = -errno;
		close(fd);
		return ret;
	}
	fputs(heading, file);
	config_write(parsed, file);
	if (fflush(file) || ferror(file) || fsync(fd))
		ret = errno ? -errno : -EIO;
	fclose(file);
	return ret;
}

/* That a file in there has another name, or none, has reached the disk. */
static int sync_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = fsync(fd) ? -errno : 0;
	close(fd);
	return ret;
}

static int replace(const config_t *parsed, const char *path, const char *folder, bool is_empty)
{
	char beside[PATH_MAX];
	int ret;

	if (is_empty)
		return unlink(path) && errno != ENOENT ? -errno : sync_folder(folder);
	if (mkdir(folder, 0755) && errno != EEXIST)
		return -errno;
	if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
		return -ENAMETOOLONG;
	ret = write_file(parsed, beside);
	if (!ret && rename(beside, path))
		ret = -errno;
	if (ret)
		unlink(beside);
	return ret ? ret : sync_folder(folder);
}

int fgv_settings_save(const struct fgv_settings *settings, const char *path, char *why,
		      size_t why_len)
{
	char *copy = strdup(path);
	config_t parsed;
	int ret;

	config_init(&parsed);
	ret = copy ? fill(&parsed, settings) : -ENOMEM;
	if (ret >= 0)
		ret = replace(&parsed, path, dirname(copy), ret == 0);
	if (ret)
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
	config_destroy(&parsed);
	free(copy);
	return ret;
}
