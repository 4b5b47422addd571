/*
 * Reading single values of the configuration: each by its type and the range in the table
 * of keys. Used by config.c, which puts them together.
 */
#ifndef FGV_BACKEND_CONFIG_VALUES_H
#define FGV_BACKEND_CONFIG_VALUES_H

#include <libconfig.h>
#include "backend/config/config.h"

struct fgv_config_reader {
	struct fgv_config *config;
	const char *file;
	char *why;
	size_t why_len;
};

/* Writes "file:line: key: text"; returns -EINVAL for the caller to pass on. */
int fgv_config_values_refuse(const struct fgv_config_reader *reader, const config_setting_t *place,
			     const char *key, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

bool fgv_config_values_is_sequence(const config_setting_t *setting);

/* Reads @setting to @value, whose type is the key's; not for FGV_CONFIG_VMS. */
int fgv_config_values_read(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
			   const config_setting_t *setting, void *value);

/* Writes the default of @key, which has one, to @value; -ENOMEM. */
int fgv_config_values_default(const struct fgv_config_key *key, void *value);

#endif
