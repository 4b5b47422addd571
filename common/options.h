/*
 * The command line of a program: getopt_long(), and all programs alike in --version,
 * --help and how they refuse what is wrong. Before threads start.
 */
#ifndef FGV_COMMON_OPTIONS_H
#define FGV_COMMON_OPTIONS_H

#include <getopt.h>
#include <stddef.h>

/* The end of each program's table; these two letters are taken. */
#define FGV_OPTIONS_END                                                                            \
	{"version", no_argument, NULL, 'v'}, {"help", no_argument, NULL, 'h'},                     \
	{                                                                                          \
		0                                                                                  \
	}

struct fgv_options {
	const char *usage; /* what --help prints, whole lines */
	const struct option *table;
	const char *order; /* "+": the first word that is no option ends them; "": it does not */
	int refusal;	   /* the program's status where an option is wrong */
};

/*
 * The next option's letter, its value in optarg; -1 at their end, the arguments from
 * argv[optind] on. Does not return where the program has nothing more to do.
 */
int fgv_options_next(const struct fgv_options *options, int argc, char **argv);

/* For programs without arguments: refuses those that follow the options. */
void fgv_options_end(const struct fgv_options *options, int argc, char **argv);

#endif
