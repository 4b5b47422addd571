/*
 * Reading single values of the configuration that are amounts: numbers, sizes, factors, durations,
 * and shares. Each is checked against the range in the table of keys. -EINVAL: @reader has been
 * told what is wrong, and *@value is as it was.
 */
#ifndef FGV_BACKEND_CONFIG_AMOUNTS_H
#define FGV_BACKEND_CONFIG_AMOUNTS_H

#include <libconfig.h>
#include <stdbool.h>
#include <stdint.h>
#include "backend/config/values.h"

/* Whether it is a whole number, of whatever width. */
bool fgv_config_amounts_is_whole(const config_setting_t *setting);

int fgv_config_amounts_number(const struct fgv_config_reader *reader,
			      const struct fgv_config_key *key, const config_setting_t *setting,
			      uint64_t *value);
int fgv_config_amounts_size(const struct fgv_config_reader *reader,
			    const struct fgv_config_key *key, const config_setting_t *setting,
			    uint64_t *value);
int fgv_config_amounts_factor(const struct fgv_config_reader *reader,
			      const struct fgv_config_key *key, const config_setting_t *setting,
			      uint64_t *value);
int fgv_config_amounts_duration(const struct fgv_config_reader *reader,
				const struct fgv_config_key *key, const config_setting_t *setting,
				uint64_t *value);
int fgv_config_amounts_share(const struct fgv_config_reader *reader,
			     const struct fgv_config_key *key, const config_setting_t *setting,
			     uint64_t *value);
int fgv_config_amounts_sms(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
			   const config_setting_t *setting, uint64_t *value);

#endif
