#include <config.h>

#include "common/options.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"

int fgv_options_next(const struct fgv_options *options, int argc, char **argv)
{
	int option = getopt_long(argc, argv, options->order, options->table, NULL);

	switch (option) {
	case 'v':
		puts(PACKAGE_STRING);
		exit(EXIT_SUCCESS);
	case 'h':
		fputs(options->usage, stdout);
		exit(EXIT_SUCCESS);
	case '?':
		exit(options->refusal); /* getopt has said why */
	default:
		return option;
	}
}

void fgv_options_end(const struct fgv_options *options, int argc, char **argv)
{
	if (optind == argc)
		return;
	fgv_error("%s: no such argument; see --help", argv[optind]);
	exit(options->refusal);
}
