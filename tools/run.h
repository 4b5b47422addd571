/*
 * The parts of fairgv-run: finding a daemon and becoming the program (fairgv-run.c), keeping it from
 * the GPU's own devices (run_strict.c), a private daemon with the program beside it (run_private.c),
 * and what a look at its file tells (run_hint.c).
 *
 * Threads: one.
 */
#ifndef FGV_TOOLS_RUN_H
#define FGV_TOOLS_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Exit statuses, those of env(1) and nohup(1). */
#define FGV_RUN_FAILED	       125
#define FGV_RUN_NOT_EXECUTABLE 126
#define FGV_RUN_NOT_FOUND      127

struct fgv_run {
	const char *vm;		 /* NULL: the first that the user may use */
	const char *config_path; /* NULL: none given */
	const char *socket;	 /* NULL: not decided, or use_device */
	bool use_device;	 /* of a guest; the program finds it */
	bool is_private;	 /* a daemon for this run is asked for */
	bool is_strict;		 /* the program can open no GPU itself */
	const char *hint;	 /* why the program may never use FairGV; NULL: nothing is known */
	char **program;		 /* its arguments, NULL at the end */
	char library_folder[PATH_MAX + 64];
	char backend_path[PATH_MAX + 64];
};

/* Becomes the program, with run->socket as its daemon, if set. Returns an exit status if it can't.
 */
int fgv_run_execute(const struct fgv_run *run);

/*
 * Why @program, as it will be found in PATH and with run->library_folder before all others, does
 * not load that libcudart, if that is so, in @text; else NULL.
 */
const char *fgv_run_hint(const struct fgv_run *run, char *text, size_t len);

/*
 * From here on this process and what it becomes have a /dev without NVIDIA's devices. 0 or a
 * negative errno, which has been logged.
 */
int fgv_run_strict(void);

/* Runs the program beside a private daemon, and returns the exit status. */
int fgv_run_private(struct fgv_run *run);

#endif
