/*
 * The one place that writes log lines. State: the program's name, the level and
 * the descriptor, all set before threads start.
 */
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/util.h"

static struct {
	char name[64];
	enum fgv_log_level level;
	int fd;
	bool has_time, has_priority; /* at the beginning of each line */
} logger = {.name = "fairgv", .level = FGV_LOG_INFO, .fd = STDERR_FILENO};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void fgv_log_init(const char *name)
{
	const char *quiet = getenv("FAIRGV_QUIET"), *wanted = getenv("FAIRGV_LOG");

	snprintf(logger.name, sizeof(logger.name), "%s", name);
	if (quiet && *quiet && strcmp(quiet, "0") != 0)
		logger.level = FGV_LOG_ERROR;
	for (int i = FGV_LOG_ERROR; wanted && i <= FGV_LOG_DEBUG; i++) {
		if (!strcmp(wanted, level_names[i]))
			logger.level = (enum fgv_log_level)i;
	}
}

/* systemd says which stream of its journal a service's output goes to. */
static bool is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat file;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(fd, &file) &&
	       file.st_dev == device && file.st_ino == inode;
}

void fgv_log_be_service(void)
{
	logger.has_priority = is_journal(logger.fd);
	logger.has_time = !logger.has_priority;
	tzset();
}

/* What goes before the name; its length. */
static size_t begin_line(enum fgv_log_level level, char *line, size_t len)
{
	static const int priorities[] = {3, 4, 6, 7};
	struct timespec now;
	struct tm tm;
	size_t used;

	line[0] = '\0';
	if (logger.has_priority)
		return (size_t)snprintf(line, len, "<%d>", priorities[level]);
	if (!logger.has_time)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	used = strftime(line, len, "%Y-%m-%d %H:%M:%S", &tm);
	return used + (size_t)snprintf(line + used, len - used, ".%03ld ",
				       now.tv_nsec / (long)FGV_NS_PER_MS);
}

int fgv_log_move(void)
{
	int fd = fcntl(logger.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd < 0)
		return -errno;
	logger.fd = fd;
	return fd;
}

void fgv_log_flatten(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 127)
			*text = '?';
	}
}

bool fgv_log_may(struct fgv_log_limit *limit, const char *what)
{
	uint64_t second = fgv_now_ns() / FGV_NS_PER_SEC;

	if (second != limit->second) {
		if (limit->unsaid)
			fgv_warning("%s %u more", what, limit->unsaid);
		*limit = (struct fgv_log_limit){.second = second};
	}
	if (limit->lines == FGV_LOG_LIMIT) {
		limit->unsaid++;
		return false;
	}
	limit->lines++;
	return true;
}

void fgv_log(enum fgv_log_level level, const char *format, ...)
{
	int saved_errno = errno;
	char line[1024];
	va_list args;
	size_t len;

	if (level > logger.level)
		return;
	len = begin_line(level, line, sizeof(line));
	len += (size_t)snprintf(line + len, sizeof(line) - len, "%s: %s", logger.name,
				level == FGV_LOG_INFO ? "" : level_names[level]);
	if (level != FGV_LOG_INFO)
		len += (size_t)snprintf(line + len, sizeof(line) - len, ": ");
	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - len - 1, format, args);
	va_end(args);
	fgv_log_flatten(line); /* some of it came from outside */
	len = strlen(line);
	line[len++] = '\n';
	while (write(logger.fd, line, len) < 0 && errno == EINTR)
		continue;
	errno = saved_errno;
}
