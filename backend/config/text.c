/*
 * Configuration as text; see text.h.
 */
#include "backend/config/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/util.h"

#define FILE_MAX   (1024 * 1024)
#define FILE_FIRST 4096 /* room for one, at first */

static const char units[] = "KMGT";

static const struct {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{"s", FGV_NS_PER_SEC},
	{"ms", FGV_NS_PER_MS},
	{"us", FGV_NS_PER_US},
};

/* Room for a byte behind @len others, and a NUL; at most for one byte more than a file may have. */
static int grow(char **text, size_t *room, size_t len)
{
	size_t wanted = fgv_min_u64(*room ? 2 * *room : FILE_FIRST, FILE_MAX + 2);
	char *larger;

	if (len + 1 < *room)
		return 0;
	larger = realloc(*text, wanted);
	if (!larger)
		return -ENOMEM;
	*text = larger;
	*room = wanted;
	return 0;
}

/* Until the end, or until it is too long; *@text is for free() in any case. */
static int read_all(int fd, char **text, size_t *len)
{
	size_t room = 0;
	ssize_t got;
	int ret;

	*text = NULL;
	*len = 0;
	do {
		ret = grow(text, &room, *len);
		if (ret)
			return ret;
		got = read(fd, *text + *len, room - 1 - *len);
		if (got < 0 && errno != EINTR)
			return -errno;
		*len += got > 0 ? (size_t)got : 0;
	} while (got != 0 && *len <= FILE_MAX);
	return 0;
}

int fgv_config_text_load(const char *path, char **text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *buffer;
	size_t len;
	int ret;

	if (fd < 0)
		return -errno;
	ret = read_all(fd, &buffer, &len);
	close(fd);
	if (!ret && len > FILE_MAX)
		ret = -EFBIG;
	else if (!ret && memchr(buffer, 0, len))
		ret = -EILSEQ;
	if (ret) {
		free(buffer);
		return ret;
	}
	buffer[len] = '\0';
	*text = buffer;
	return 0;
}

/* Behind the comment or string at @text; at @text itself where there is none. */
static const char *skip_quoted(const char *text)
{
	const char *end;

	if (*text == '#' || !strncmp(text, "//", 2))
		return text + strcspn(text, "\n");
	if (!strncmp(text, "/*", 2)) {
		end = strstr(text + 2, "*/");
		return end ? end + 2 : text + strlen(text);
	}
	if (*text != '"')
		return text;
	for (text++; *text && *text != '"'; text++) {
		if (*text == '\\' && text[1])
			text++;
	}
	return *text ? text + 1 : text;
}

static bool overflows(const char *number)
{
	uint64_t max = number[0] == '0' && (number[1] | ' ') == 'x' ? UINT32_MAX : INT32_MAX;
	char *end;
	uint64_t value = strtoull(number, &end, 0);

	return value > max && *end != 'L';
}

unsigned fgv_config_text_find_overflow(const char *text)
{
	static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789_";
	unsigned line = 1;

	while (*text) {
		const char *next = skip_quoted(text);

		if (next == text && isdigit((unsigned char)*text) && overflows(text))
			return line;
		if (next == text)
			next += strspn(text, word);
		if (next == text)
			next++;
		for (; text < next; text++)
			line += *text == '\n';
	}
	return 0;
}

/* Digits only: no sign, no space. -ERANGE for what is above @max. */
static int parse_digits(const char *text, uint64_t max, uint64_t *value, const char **end)
{
	uint64_t sum = 0;
	int ret = 0;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (sum > max / 10 || sum * 10 > max - digit)
			ret = -ERANGE;
		else
			sum = sum * 10 + digit;
	}
	*end = text;
	if (!ret)
		*value = sum;
	return ret;
}

int fgv_config_text_size(const char *text, uint64_t *bytes)
{
	uint64_t value = 0;
	const char *end = text;
	const char *unit;
	int shift = 0;
	int ret = parse_digits(text, UINT64_MAX, &value, &end);

	if (ret == -EINVAL)
		return ret;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (int)(unit - units + 1);
	}
	if (ret || value > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = value << shift;
	return 0;
}

void fgv_config_text_show_size(uint64_t bytes, char *text, size_t len)
{
	char unit[2] = "";

	for (size_t i = 0; units[i] && bytes && bytes % 1024 == 0; i++) {
		bytes /= 1024;
		unit[0] = units[i];
	}
	snprintf(text, len, "%llu%s", (unsigned long long)bytes, unit);
}

int fgv_config_text_duration(const char *text, uint64_t *ns)
{
	uint64_t value = 0, unit_ns = 0;
	const char *end = text;
	int ret = parse_digits(text, UINT64_MAX, &value, &end);

	if (ret == -EINVAL)
		return ret;
	for (size_t i = 0; i < FGV_ARRAY_LEN(duration_units); i++) {
		if (!strcmp(end, duration_units[i].name))
			unit_ns = duration_units[i].ns;
	}
	if (!unit_ns && (*end || ret || value))
		return -EINVAL;
	if (ret || __builtin_mul_overflow(value, unit_ns, &value))
		return -ERANGE;
	*ns = value;
	return 0;
}

void fgv_config_text_show_duration(uint64_t ns, char *text, size_t len)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(duration_units); i++) {
		if (ns && ns % duration_units[i].ns == 0) {
			snprintf(text, len, "%llu%s",
				 (unsigned long long)(ns / duration_units[i].ns),
				 duration_units[i].name);
			return;
		}
	}
	snprintf(text, len, "%llu", (unsigned long long)ns);
}

/* A ten-thousandth of a percent is the smallest part. */
#define PERCENT	 (FGV_SCHED_WHOLE / 100)
#define DECIMALS 4

int fgv_config_text_share(const char *text, uint64_t *share)
{
	uint64_t value, unit = PERCENT;
	const char *end;

	if (parse_digits(text, 100, &value, &end))
		return -EINVAL;
	value *= unit;
	if (*end == '.') {
		for (end++; isdigit((unsigned char)*end) && unit > 1; end++) {
			unit /= 10;
			value += unit * (uint64_t)(*end - '0');
		}
		if (!isdigit((unsigned char)end[-1]))
			return -EINVAL;
	}
	if (strcmp(end, "%") != 0 || value > FGV_SCHED_WHOLE)
		return -EINVAL;
	*share = value;
	return 0;
}

void fgv_config_text_show_share(uint64_t share, char *text, size_t len)
{
	char decimals[DECIMALS + 1];
	int count = DECIMALS;

	snprintf(decimals, sizeof(decimals), "%0*u", DECIMALS, (unsigned)(share % PERCENT));
	while (count > 0 && decimals[count - 1] == '0')
		count--;
	snprintf(text, len, "%llu%s%.*s%%", (unsigned long long)(share / PERCENT),
		 count > 0 ? "." : "", count, decimals);
}

static void show_value(enum fgv_config_type type, uint64_t value, char *text, size_t len)
{
	if (type == FGV_CONFIG_SIZE)
		fgv_config_text_show_size(value, text, len);
	else if (type == FGV_CONFIG_DURATION || type == FGV_CONFIG_TIMEOUT)
		fgv_config_text_show_duration(value, text, len);
	else if (type == FGV_CONFIG_SHARE)
		fgv_config_text_show_share(value, text, len);
	else
		snprintf(text, len, "%llu", (unsigned long long)value);
}

void fgv_config_text_show_range(const struct fgv_config_key *key, char *text, size_t len)
{
	char min[32], max[32];

	show_value(key->type, key->min, min, sizeof(min));
	show_value(key->type, key->max, max, sizeof(max));
	snprintf(text, len, "%s%s to %s", key->type == FGV_CONFIG_TIMEOUT ? "0 or " : "", min, max);
}

static bool has_ordinal(const struct fgv_gpu_choice *choice, uint64_t ordinal)
{
	for (unsigned i = 0; i < choice->count; i++) {
		if (choice->ordinals[i] == ordinal)
			return true;
	}
	return false;
}

/* "0,1": numbers, each once. */
static int parse_ordinals(const char *text, struct fgv_gpu_choice *choice)
{
	uint64_t ordinal;

	for (;; text++) {
		if (choice->count == FGV_GPU_DEVICES_MAX)
			return -EINVAL;
		if (parse_digits(text, FGV_GPU_DEVICES_MAX - 1, &ordinal, &text))
			return -EINVAL;
		if (has_ordinal(choice, ordinal))
			return -EINVAL;
		choice->ordinals[choice->count++] = (unsigned)ordinal;
		if (*text == '\0')
			return 0;
		if (*text != ',')
			return -EINVAL;
	}
}

static int parse_soft_count(const char *text, struct fgv_gpu_choice *choice)
{
	uint64_t count;

	if (parse_digits(text, FGV_GPU_DEVICES_MAX, &count, &text) || *text || !count)
		return -EINVAL;
	for (; choice->count < count; choice->count++)
		choice->ordinals[choice->count] = choice->count;
	return 0;
}

int fgv_config_text_gpu(const char *text, struct fgv_gpu_choice *choice)
{
	struct fgv_gpu_choice parsed = {.kind = FGV_GPU_AUTO};
	int ret = 0;

	if (!strcmp(text, "cuda")) {
		parsed.kind = FGV_GPU_CUDA;
	} else if (!strncmp(text, "cuda:", 5)) {
		parsed.kind = FGV_GPU_CUDA;
		ret = parse_ordinals(text + 5, &parsed);
	} else if (!strcmp(text, "soft")) {
		parsed.kind = FGV_GPU_SOFT;
	} else if (!strncmp(text, "soft:", 5)) {
		parsed.kind = FGV_GPU_SOFT;
		ret = parse_soft_count(text + 5, &parsed);
	} else if (strcmp(text, "auto") != 0) {
		ret = -EINVAL;
	}
	if (!ret)
		*choice = parsed;
	return ret;
}

int fgv_config_text_user(const char *text, uid_t *uid)
{
	const char *end = text;
	const struct passwd *user;
	uint64_t number = 0;
	int ret = parse_digits(text, UINT32_MAX - 1, &number, &end);

	if (ret != -EINVAL && *end == '\0') {
		if (ret)
			return -EINVAL;
		*uid = (uid_t)number;
		return 0;
	}
	user = getpwnam(text);
	if (!user)
		return -ENOENT;
	*uid = user->pw_uid;
	return 0;
}

int fgv_config_text_uids(const char *text, struct fgv_config_uids *uids)
{
	unsigned long long first, last;
	char *end;

	if (!strcmp(text, "none")) {
		*uids = (struct fgv_config_uids){0};
		return 0;
	}
	if (*text < '1' || *text > '9')
		return -EINVAL;
	first = strtoull(text, &end, 10);
	if (*end != '-' || end[1] < '1' || end[1] > '9')
		return -EINVAL;
	last = strtoull(end + 1, &end, 10);
	if (*end || first > last || last >= UINT32_MAX)
		return -EINVAL;
	*uids = (struct fgv_config_uids){.first = (uid_t)first, .count = last - first + 1};
	return 0;
}

bool fgv_config_text_is_name(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t len = strlen(text);

	return len > 0 && len < FGV_NAME_MAX && strspn(text, allowed) == len;
}
