/*
 * Amounts in the configuration; see amounts.h.
 */
#include "backend/config/amounts.h"

#include <errno.h>
#include <string.h>
#include "backend/config/text.h"

bool fgv_config_amounts_is_whole(const config_setting_t *setting)
{
	int type = config_setting_type(setting);

	return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

/* A number, a size or a duration that has been read: in range? */
static int check_range(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, uint64_t value)
{
	char range[80];

	if ((value >= key->min && value <= key->max) || (key->type == FGV_CONFIG_TIMEOUT && !value))
		return 0;
	fgv_config_text_show_range(key, range, sizeof(range));
	return fgv_config_values_refuse(reader, setting, key->name, "out of range: must be %s",
					range);
}

int fgv_config_amounts_number(const struct fgv_config_reader *reader,
			      const struct fgv_config_key *key, const config_setting_t *setting,
			      uint64_t *value)
{
	long long number;
	int ret;

	if (!fgv_config_amounts_is_whole(setting))
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be a whole number");
	number = config_setting_get_int64(setting);
	ret = check_range(reader, key, setting, number < 0 ? UINT64_MAX : (uint64_t)number);
	if (!ret)
		*value = (uint64_t)number;
	return ret;
}

int fgv_config_amounts_size(const struct fgv_config_reader *reader,
			    const struct fgv_config_key *key, const config_setting_t *setting,
			    uint64_t *value)
{
	const char *text = config_setting_get_string(setting);
	uint64_t bytes = UINT64_MAX;
	int ret;

	if (fgv_config_amounts_is_whole(setting))
		return fgv_config_amounts_number(reader, key, setting, value);
	if (!text)
		return fgv_config_values_refuse(
			reader, setting, key->name,
			"must be a size: a number of bytes, or a string as \"4G\"");
	if (key->standard == FGV_CONFIG_NO_LIMIT && !strcmp(text, "none")) {
		*value = FGV_CONFIG_NO_LIMIT;
		return 0;
	}
	if (fgv_config_text_size(text, &bytes) == -EINVAL)
		return fgv_config_values_refuse(reader, setting, key->name,
						"\"%s\" is not a size: digits, then K, M, G or T",
						text);
	ret = check_range(reader, key, setting, bytes);
	if (!ret)
		*value = bytes;
	return ret;
}

int fgv_config_amounts_factor(const struct fgv_config_reader *reader,
			      const struct fgv_config_key *key, const config_setting_t *setting,
			      uint64_t *value)
{
	double factor = config_setting_get_float(setting);

	if (config_setting_type(setting) == CONFIG_TYPE_BOOL) {
		*value = config_setting_get_bool(setting) ? FGV_CONFIG_NO_LIMIT : 0;
		return 0;
	}
	if (fgv_config_amounts_is_whole(setting))
		factor = (double)config_setting_get_int64(setting);
	else if (config_setting_type(setting) != CONFIG_TYPE_FLOAT)
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be true, false, or a number as 1.5");
	if (!(factor >= 1 && factor <= (double)(key->max / FGV_CONFIG_FACTOR_ONE)))
		return fgv_config_values_refuse(
			reader, setting, key->name, "must be from 1 to %llu",
			(unsigned long long)(key->max / FGV_CONFIG_FACTOR_ONE));
	*value = (uint64_t)(factor * FGV_CONFIG_FACTOR_ONE + 0.5);
	return 0;
}

int fgv_config_amounts_duration(const struct fgv_config_reader *reader,
				const struct fgv_config_key *key, const config_setting_t *setting,
				uint64_t *value)
{
	const char *text = config_setting_get_string(setting);
	uint64_t ns = UINT64_MAX;
	int ret;

	if (fgv_config_amounts_is_whole(setting) && !config_setting_get_int64(setting))
		text = "0";
	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be a duration: a string as \"6ms\"");
	if (fgv_config_text_duration(text, &ns) == -EINVAL)
		return fgv_config_values_refuse(
			reader, setting, key->name,
			"\"%s\" is not a duration: digits, then us, ms or s", text);
	ret = check_range(reader, key, setting, ns);
	if (!ret)
		*value = ns;
	return ret;
}

int fgv_config_amounts_share(const struct fgv_config_reader *reader,
			     const struct fgv_config_key *key, const config_setting_t *setting,
			     uint64_t *value)
{
	const char *text = config_setting_get_string(setting);
	uint64_t share;
	int ret;

	if (!text)
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be a share: a string as \"25%%\"");
	if (fgv_config_text_share(text, &share))
		return fgv_config_values_refuse(
			reader, setting, key->name,
			"\"%s\" is not a share: 0%% to 100%%, with at most four decimals", text);
	ret = check_range(reader, key, setting, share);
	if (!ret)
		*value = share;
	return ret;
}

int fgv_config_amounts_sms(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
			   const config_setting_t *setting, uint64_t *value)
{
	const char *text = config_setting_get_string(setting);
	uint64_t share;

	if (fgv_config_amounts_is_whole(setting))
		return fgv_config_amounts_number(reader, key, setting, value);
	if (!text || fgv_config_text_share(text, &share))
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be a number of multiprocessors, or a share "
						"of them: a string as \"25%%\"");
	*value = share ? FGV_CONFIG_PART | share : 0;
	return 0;
}
