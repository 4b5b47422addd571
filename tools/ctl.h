/*
 * The parts of fairgvctl: the command line (fairgvctl.c), asking the daemon (ctl_client.c),
 * its reports as tables (ctl_list.c, ctl_stat.c) and for Prometheus (ctl_metrics.c), what it changes
 * (ctl_set.c, ctl_freeze.c, ctl_file.c), tables (ctl_table.c), a look at the host (ctl_doctor.c), and VMs as containers know
 * devices (ctl_cdi.c).
 * The requests and replies are those of backend/admin/reply.h.
 *
 * Whatever fails has said why, in one line, and returns a negative errno or NULL.
 *
 * Threads: one.
 */
#ifndef FGV_TOOLS_CTL_H
#define FGV_TOOLS_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- The daemon -------------------------------------------------------------- */

#define FGV_CTL_WHY_LEN 512 /* room for what is wrong */

/*
 * The daemon's reply to @request, which is taken over; json_decref() it. fgv_ctl_try() leaves it to
 * the caller to say what @why then holds, one line.
 */
json_t *fgv_ctl_try(const char *socket, json_t *request, char *why, size_t why_len);
/* With a copy of @fd. */
json_t *fgv_ctl_try_with(const char *socket, json_t *request, int fd, char *why, size_t why_len);
json_t *fgv_ctl_ask(const char *socket, json_t *request);

/* Whether a daemon listens at @socket: 0, or a negative errno of which nothing was said. */
int fgv_ctl_probe(const char *socket);

/* A reply that is not what it should be. Returns -EPROTO. */
int fgv_ctl_bad_reply(void);

/* --- Reports ----------------------------------------------------------------- */

/* @json: as it is, for programs. */
int fgv_ctl_list(const char *socket, bool json);

struct fgv_ctl_stat {
	char *const *vms; /* their names, NULL at the end; none: all */
	bool json;
	uint64_t interval_ns; /* 0: one report of the totals */
	uint64_t count;	      /* of reports; 0: without end */
};

int fgv_ctl_stat(const char *socket, const struct fgv_ctl_stat *stat);

/*
 * Has the daemon put @settings, an object of strings that is taken over, in the place of @vm's values
 * in the configuration, or read that again; and prints what has changed.
 */
int fgv_ctl_set(const char *socket, const char *vm, json_t *settings, bool save);
int fgv_ctl_reload(const char *socket, bool end);

/*
 * Asks the daemon by @request, which is taken over, until all the sessions that it is for are frozen
 * or, if not @freezes, run; and prints what is where.
 */
int fgv_ctl_freeze(const char *socket, json_t *request, bool freezes);
/* The same without printing: the reply, or NULL; *@failed: one of them could not be frozen. */
json_t *fgv_ctl_await_frozen(const char *socket, json_t *request, bool freezes, bool *failed);

/*
 * Freezes the one session that @asked names, an object with "vm" or "session" that is taken over,
 * and has its memory go into a new file at @path; and has it come back from there, and go on.
 * @key_path: NULL, or where the key is.
 */
int fgv_ctl_save(const char *socket, json_t *asked, const char *path, const char *key_path);
int fgv_ctl_load(const char *socket, json_t *asked, const char *path, const char *key_path);

/*
 * Says what is fine and what is wrong with the host, a line each, and what to do. @control: where
 * the daemon is asked, NULL: as @config_path says. @root: before the name of each file that it
 * looks at, "" for this system. -EINVAL if something is wrong.
 */
int fgv_ctl_doctor(const char *config_path, const char *control, const char *root);

/* Prints @config_path's VMs that have sockets of their own as devices for containers. */
int fgv_ctl_cdi(const char *config_path);

/* Prints the daemon's figures as Prometheus reads them. */
int fgv_ctl_metrics(const char *socket);

/* Shows them on the terminal, anew after each interval, until the user has seen enough. */
int fgv_ctl_top(const char *socket, uint64_t interval_ns);

/* --- Tables ------------------------------------------------------------------ */

struct fgv_table {
	struct libscols_table *table;
	struct libscols_line *line; /* the last one, which has @cells */
	size_t cells, columns;
};

/* Names of columns, NULL at the end; one that begins with '<' is aligned to the left. */
void fgv_table_init(struct fgv_table *table, const char *const *names);

/* The next cell; what came from outside is shown without control characters. */
__attribute__((format(printf, 2, 3))) void fgv_table_add(struct fgv_table *table,
							 const char *format, ...);
#define FGV_CTL_TEXT_LEN 32 /* room for these two */

/* "1.23 ms", "1.5 GiB" */
void fgv_ctl_show_time(char *text, size_t len, uint64_t ns);
void fgv_ctl_show_bytes(char *text, size_t len, uint64_t bytes);
void fgv_table_add_time(struct fgv_table *table, uint64_t ns);
void fgv_table_add_bytes(struct fgv_table *table, uint64_t bytes);
/* "33.3%" of @whole, or "-" where that is nothing. */
void fgv_table_add_share(struct fgv_table *table, uint64_t part, uint64_t whole);

/* How much memory @vm, of a report, may use, or "-". */
void fgv_ctl_add_limit(struct fgv_table *table, const json_t *vm);

/* Prints the table to stdout, and empties it. */
void fgv_table_print(struct fgv_table *table);

/* Ends a report: what was printed must have got out. */
int fgv_ctl_flush(void);

#endif
