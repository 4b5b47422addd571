/*
 * The one place that writes log lines. State: the program's name, the level, the descriptor and the
 * sink, all set before threads start; and the subject.
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

/* Of a line without what begins it; the rest is cut off. */
#define LINE_MAX_LEN 960

static struct {
	char name[64];
	enum fgv_log_level level;
	int fd;
	bool has_time, has_priority; /* at the beginning of each line */
	const struct fgv_log_subject *subject;
	fgv_log_sink *sink;
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

void fgv_log_set_subject(const struct fgv_log_subject *subject)
{
	/* Pairs with the load where a line is written: threads may be there. */
	__atomic_store_n(&logger.subject, subject, __ATOMIC_RELEASE);
}

void fgv_log_set_sink(fgv_log_sink *sink)
{
	if (logger.has_priority)
		logger.sink = sink;
}

static size_t add_label(const struct fgv_log_subject *subject, char *text, size_t len)
{
	size_t used;

	if (!subject || (!subject->label && !subject->vm))
		return 0;
	used = (size_t)snprintf(text, len, "%s%s: ", subject->label ? "" : "vm ",
				subject->label ? subject->label : subject->vm);
	return used < len ? used : len - 1;
}

static void write_line(enum fgv_log_level level, const char *text)
{
	char line[LINE_MAX_LEN + 128];
	size_t len = begin_line(level, line, sizeof(line));

	len += (size_t)snprintf(line + len, sizeof(line) - len, "%s: %s%s%s\n", logger.name,
				level == FGV_LOG_INFO ? "" : level_names[level],
				level == FGV_LOG_INFO ? "" : ": ", text);
	while (write(logger.fd, line, len) < 0 && errno == EINTR)
		continue;
}

void fgv_log_of(enum fgv_log_level level, const struct fgv_log_subject *subject, const char *format,
		...)
{
	int saved_errno = errno;
	char text[LINE_MAX_LEN];
	va_list args;
	size_t len;

	if (level > logger.level)
		return;
	if (!subject)
		subject = __atomic_load_n(&logger.subject, __ATOMIC_ACQUIRE);
	len = add_label(subject, text, sizeof(text));
	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - len, format, args);
	va_end(args);
	fgv_log_flatten(text); /* some of it came from outside */
	if (!logger.sink || logger.sink(level, subject, text) < 0)
		write_line(level, text);
	errno = saved_errno;
}
