/*
 * Log lines to stderr: one line per event, "fairgv-backend: warning: text"; of a service with the
 * time before it, or for the journal its priority. A line may be about a VM, a session or a GPU:
 * then it begins with that, and a journal that takes fields gets them as such.
 * Any thread may log; a line is written with one write(). Where standard error does not block and
 * takes no more, lines are lost; the next one that is written says how many.
 *
 * fgv_log_init() is called once before the first line, by main(); a library
 * that is loaded into somebody else's program names itself the same way.
 */
#ifndef FGV_COMMON_LOG_H
#define FGV_COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum fgv_log_level { FGV_LOG_ERROR, FGV_LOG_WARNING, FGV_LOG_INFO, FGV_LOG_DEBUG };

/*
 * @name goes in front of each line and is copied (63 characters are kept). The
 * level is INFO unless the environment variable FAIRGV_LOG says error, warning,
 * info or debug; with FAIRGV_QUIET it is ERROR, unless FAIRGV_LOG says otherwise.
 */
void fgv_log_init(const char *name);

/*
 * For a process that runs for long: each line begins with the local time, to the millisecond, or,
 * where standard error leads to systemd's journal, which has the time, with the priority that
 * sd-daemon(3) describes. After fgv_log_init(), and before the process loses sight of
 * /etc/localtime.
 */
void fgv_log_be_service(void);

/*
 * For a process whose standard error another one reads, which knows better what its lines are
 * about (backend/relay.h): each is a priority and the text, "<4>text". After fgv_log_init().
 */
void fgv_log_be_relayed(void);

/*
 * Has lines go where standard error leads now, whatever becomes of that. Before threads
 * start. The descriptor that they go to, or a negative errno.
 */
int fgv_log_move(void);

/*
 * What a line is about, and which process it comes from where that is another one. What there is
 * not is NULL or 0.
 */
struct fgv_log_subject {
	const char *label; /* begins the line; NULL: "vm", and its name */
	const char *vm, *program, *gpu;
	uint32_t session;
	const char *writer; /* the program's name; NULL: this one */
	pid_t writer_pid;
};

#define FGV_LOG_VM(name)  (&(const struct fgv_log_subject){.vm = (name)})
#define FGV_LOG_GPU(name) (&(const struct fgv_log_subject){.label = (name), .gpu = (name)})

/*
 * Another place for the lines of a service, which takes them with their fields: @text is without
 * the program's name. 0, or a negative errno, and then the line goes to stderr. From any thread.
 */
typedef int fgv_log_sink(enum fgv_log_level level, const struct fgv_log_subject *subject,
			 const char *text);

/* After fgv_log_be_service(); without effect where standard error does not lead to the journal. */
void fgv_log_set_sink(fgv_log_sink *sink);

/* Whether a line could be written now without waiting for whatever reads standard error. */
bool fgv_log_has_room(void);

/* @subject: or NULL. */
void fgv_log_of(enum fgv_log_level level, const struct fgv_log_subject *subject, const char *format,
		...) __attribute__((format(printf, 3, 4)));

#define fgv_log(level, ...) fgv_log_of(level, NULL, __VA_ARGS__)

/* Of a line without what begins it; the rest is cut off. */
#define FGV_LOG_LINE_MAX 960

/* Puts '?' for the control characters in @text, so that it is one line and no terminal obeys it. */
void fgv_log_flatten(char *text);

/*
 * For lines that another process can cause: one that does so over and over gets no more than
 * FGV_LOG_LIMIT of them a second. One struct for each such process; zero at the start.
 */
#define FGV_LOG_LIMIT 5

struct fgv_log_limit {
	uint64_t second;
	unsigned lines, unsaid;
};

/*
 * Whether the next line may be logged. Lines that were not are made up for, when one may
 * again, by a warning that there were so many more: "@what 17 more".
 */
bool fgv_log_may(struct fgv_log_limit *limit, const char *what);

#define fgv_error(...)	 fgv_log(FGV_LOG_ERROR, __VA_ARGS__)
#define fgv_warning(...) fgv_log(FGV_LOG_WARNING, __VA_ARGS__)
#define fgv_info(...)	 fgv_log(FGV_LOG_INFO, __VA_ARGS__)
#define fgv_debug(...)	 fgv_log(FGV_LOG_DEBUG, __VA_ARGS__)

#define fgv_error_of(subject, ...)   fgv_log_of(FGV_LOG_ERROR, subject, __VA_ARGS__)
#define fgv_warning_of(subject, ...) fgv_log_of(FGV_LOG_WARNING, subject, __VA_ARGS__)
#define fgv_info_of(subject, ...)    fgv_log_of(FGV_LOG_INFO, subject, __VA_ARGS__)
#define fgv_debug_of(subject, ...)   fgv_log_of(FGV_LOG_DEBUG, subject, __VA_ARGS__)

#endif
