/*
 * The command line of fairgv-backend.
 *
 * Threads: the daemon's main one, before there are others.
 */
#ifndef FGV_BACKEND_OPTIONS_H
#define FGV_BACKEND_OPTIONS_H

#include <stdbool.h>

struct fgv_backend_options {
	const char *config_path; /* NULL: the built-in one */
	const char *socket;	 /* NULL: where the configuration says */
	int ready_fd;		 /* -1: none */
	int private_fd;		 /* -1: none */
	bool check;
};

/* Ends the program where it is asked for its version or usage, and with 2 where it is misused. */
void fgv_backend_options_parse(int argc, char **argv, struct fgv_backend_options *options);

#endif
