/*
 * Settings: values of VMs that "fairgvctl set" has put in the place of the configuration's. Each
 * holds as long as the configuration says what it said then: an edit of the file has the last word.
 * Those that are kept are in a file of their own, which is written anew with each change:
 *
 *	settings = ( { vm = "vm1"; key = "weight"; value = "3"; was = "1"; } );
 *
 * Threads: none.
 */
#ifndef FGV_BACKEND_CONFIG_SETTINGS_H
#define FGV_BACKEND_CONFIG_SETTINGS_H

#include "backend/config/config.h"

struct fgv_setting {
	char vm[FGV_NAME_MAX];
	const struct fgv_config_key *key;
	char *value; /* as it would stand in the configuration, without quotes */
	char *was;   /* the configuration's, as fgv_config_show() has it */
	bool kept;
};

/* All zero: none. */
struct fgv_settings {
	struct fgv_setting *list;
	size_t count;
};

void fgv_settings_fini(struct fgv_settings *settings);
/* -ENOMEM, and *@to is empty. */
int fgv_settings_copy(struct fgv_settings *to, const struct fgv_settings *from);

/* Whether "set" may change @key: one of a VM that needs no restart, but its socket and slicing. */
bool fgv_settings_may_set(const struct fgv_config_key *key);

/*
 * Reads the file at @path, and where there is none, no settings. A negative errno, and @why with
 * the line that is wrong.
 */
int fgv_settings_load(struct fgv_settings *settings, const char *path, char *why, size_t why_len);

/*
 * Writes those that are kept, whole or not at all, also where the power fails. Without any there is
 * no file. A negative errno and @why.
 */
int fgv_settings_save(const struct fgv_settings *settings, const char *path, char *why,
		      size_t why_len);

/*
 * Puts @value in the place of @base's for @key of @vm, which @base has; an empty one takes that
 * back. Whether it is a value of this key shows when the settings are applied. -ENOMEM.
 */
int fgv_settings_set(struct fgv_settings *settings, const struct fgv_config *base, const char *vm,
		     const struct fgv_config_key *key, const char *value, bool kept);

/*
 * Takes out those that @base, which has been read anew, has overtaken: *@dropped has them, for
 * fgv_settings_fini(). -ENOMEM.
 */
int fgv_settings_prune(struct fgv_settings *settings, const struct fgv_config *base,
		       struct fgv_settings *dropped);
/* A line in the log for each of them; whether any was kept. */
bool fgv_settings_say_dropped(const struct fgv_settings *dropped);

/* @config is what @base and these come to. A negative errno and @why, as of fgv_config_parse(). */
int fgv_settings_apply(const struct fgv_settings *settings, const struct fgv_config *base,
		       struct fgv_config *config, char *why, size_t why_len);

#endif
