/*
 * The one place that writes log lines. State: the program's name, the level, the form of lines, the
 * descriptor and the sink, all set before threads start; and how many lines are lost.
 */
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/util.h"

enum form {
	PLAIN,	 /* the name and the text */
	TIMED,	 /* the time before these */
	JOURNAL, /* the priority before these */
	RELAYED, /* the priority and the text */
};

static struct {
	char name[64];
	enum fgv_log_level level;
	enum form form;
	int fd;
	unsigned lost; /* atomic: lines since the last one that was written */
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
	logger.form = is_journal(logger.fd) ? JOURNAL : TIMED;
	tzset();
}

void fgv_log_be_relayed(void)
{
	logger.form = RELAYED;
}

/* What goes before the name; its length. */
static size_t begin_line(enum fgv_log_level level, char *line, size_t len)
{
	static const int priorities[] = {3, 4, 6, 7};
	struct timespec now;
	struct tm tm;
	size_t used;

	line[0] = '\0';
	if (logger.form == PLAIN)
		return 0;
	if (logger.form != TIMED)
		return (size_t)snprintf(line, len, "<%d>", priorities[level]);
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

void fgv_log_set_sink(fgv_log_sink *sink)
{
	if (logger.form == JOURNAL)
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

/* The name, and the level's where it is not the usual one. */
static size_t add_name(enum fgv_log_level level, const struct fgv_log_subject *subject, char *line,
		       size_t len)
{
	const char *name = subject && subject->writer ? subject->writer : logger.name;

	if (logger.form == RELAYED)
		return 0;
	return (size_t)snprintf(line, len, "%s: %s%s", name,
				level == FGV_LOG_INFO ? "" : level_names[level],
				level == FGV_LOG_INFO ? "" : ": ");
}

static size_t add_text(const char *text, unsigned lost, char *line, size_t len)
{
	if (lost)
		return (size_t)snprintf(line, len, "%s (lines lost before it: %u)\n", text, lost);
	return (size_t)snprintf(line, len, "%s\n", text);
}

static void write_line(enum fgv_log_level level, const struct fgv_log_subject *subject,
		       const char *text)
{
	unsigned lost = __atomic_exchange_n(&logger.lost, 0, __ATOMIC_RELAXED);
	char line[FGV_LOG_LINE_MAX + 160];
	size_t len = begin_line(level, line, sizeof(line));
	ssize_t written;

	len += add_name(level, subject, line + len, sizeof(line) - len);
	len += add_text(text, lost, line + len, sizeof(line) - len);
	do
		written = write(logger.fd, line, len);
	while (written < 0 && errno == EINTR);
	if (written < 0 && errno == EAGAIN)
		__atomic_fetch_add(&logger.lost, lost + 1, __ATOMIC_RELAXED);
}

bool fgv_log_has_room(void)
{
	struct pollfd out = {.fd = logger.fd, .events = POLLOUT};

	return logger.sink || poll(&out, 1, 0) > 0;
}

void fgv_log_of(enum fgv_log_level level, const struct fgv_log_subject *subject, const char *format,
		...)
{
	int saved_errno = errno;
	char text[FGV_LOG_LINE_MAX];
	va_list args;
	size_t len;

	if (level > logger.level)
		return;
	len = add_label(subject, text, sizeof(text));
	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - len, format, args);
	va_end(args);
	fgv_log_flatten(text); /* some of it came from outside */
	if (!logger.sink || logger.sink(level, subject, text) < 0)
		write_line(level, subject, text);
	errno = saved_errno;
}
