/*
 * Lines that include files; see includes.h.
 */
#include "backend/config/includes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "backend/config/text.h"

#define DEPTH_MAX 10 /* libconfig's own */

/* Where the path of an include begins in its line; NULL: it is another one. */
static const char *find_path(const char *line)
{
	static const char include[] = "@include";

	line += strspn(line, " \t");
	if (strncmp(line, include, strlen(include)))
		return NULL;
	line += strlen(include);
	line += strspn(line, " \t");
	return line[0] == '"' ? line + 1 : NULL;
}

static void write_line(FILE *out, const char *line, const char *end, const char *folder)
{
	const char *path = find_path(line);

	if (path && path[0] == '/') {
		fwrite(line, 1, path - line, out);
		for (; folder[0] && folder[1]; folder += 1 + strcspn(folder + 1, "/"))
			fputs("../", out);
		line = path + 1;
	}
	fwrite(line, 1, end - line, out);
}

char *fgv_config_includes_root(const char *text, const char *folder)
{
	char *copy = NULL;
	size_t len;
	FILE *out = open_memstream(&copy, &len);
	const char *end;

	if (!out)
		return NULL;
	for (; *text; text = end) {
		end = text + strcspn(text, "\n");
		end += *end == '\n';
		write_line(out, text, end, folder);
	}
	if (fclose(out)) {
		free(copy);
		return NULL;
	}
	return copy;
}

/* The path at @path, below @folder; false where it is longer than any. */
static bool join_path(const char *folder, const char *path, char joined[PATH_MAX])
{
	size_t len = (size_t)snprintf(joined, PATH_MAX, "%s/", folder);

	for (; *path && *path != '"' && *path != '\n' && len < PATH_MAX; path++) {
		if (*path == '\\' && path[1])
			path++;
		joined[len++] = *path;
	}
	if (len >= PATH_MAX)
		return false;
	joined[len] = '\0';
	return true;
}

static int check(const char *text, const char *file, const char *folder, unsigned depth, char *why,
		 size_t why_len);

static int check_file(const char *path, const char *folder, unsigned depth, char *why,
		      size_t why_len)
{
	char *text;
	int ret;

	if (depth == DEPTH_MAX) {
		snprintf(why, why_len, "%s: includes nest too deep", path);
		return -EINVAL;
	}
	ret = fgv_config_text_load(path, &text);
	if (ret) {
		snprintf(why, why_len, "%s: %s", path, strerror(-ret));
		return -EINVAL;
	}
	ret = check(text, path, folder, depth + 1, why, why_len);
	free(text);
	return ret;
}

static int check(const char *text, const char *file, const char *folder, unsigned depth, char *why,
		 size_t why_len)
{
	char joined[PATH_MAX];
	struct stat info;
	int ret = 0;

	for (unsigned line = 1; *text && !ret; line++) {
		const char *path = find_path(text);

		if (path && join_path(folder, path, joined) && !stat(joined, &info)) {
			if (S_ISDIR(info.st_mode)) {
				snprintf(why, why_len, "%s:%u: a folder can't be included", file,
					 line);
				return -EINVAL;
			}
			if (S_ISREG(info.st_mode))
				ret = check_file(joined, folder, depth, why, why_len);
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return ret;
}

int fgv_config_includes_check(const char *text, const char *file, const char *folder, char *why,
			      size_t why_len)
{
	return check(text, file, folder, 0, why, why_len);
}
