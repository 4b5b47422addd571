/*
 * The command line's options; see options.h.
 */
#include <config.h>

#include "backend/options.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include "common/log.h"
#include "common/options.h"

#define EXIT_USAGE 2

static const char usage[] =
	"usage: fairgv-backend [OPTION]...\n"
	"  --config FILE   the configuration (" FGV_SYSCONFDIR "/fairgv/backend.conf)\n"
	"  --socket PATH   where programs connect, instead of the configured socket;\n"
	"                  fairgvctl then connects at PATH.control\n"
	"  --check         read the configuration, look for the GPUs, say what is wrong\n"
	"  --ready-fd N    write a line with the GPUs' names when programs may connect\n"
	"  --private N     serve one user until descriptor N is closed (fairgv-run)\n"
	"  --version       print the version\n"
	"  --help          print this\n";

static int parse_fd(const char *option, const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (!*text || *end || fd < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0) {
		fgv_error("--%s %s: no open descriptor", option, text);
		exit(EXIT_USAGE);
	}
	return (int)fd;
}

void fgv_backend_options_parse(int argc, char **argv, struct fgv_backend_options *options)
{
	static const struct option table[] = {
		{"config", required_argument, NULL, 'c'},
		{"socket", required_argument, NULL, 's'},
		{"ready-fd", required_argument, NULL, 'r'},
		{"private", required_argument, NULL, 'p'},
		{"check", no_argument, NULL, 'k'},
		FGV_OPTIONS_END,
	};
	static const struct fgv_options command_line = {
		.usage = usage, .table = table, .order = "", .refusal = EXIT_USAGE};
	int option;

	*options = (struct fgv_backend_options){.ready_fd = -1, .private_fd = -1};
	while ((option = fgv_options_next(&command_line, argc, argv)) != -1) {
		switch (option) {
		case 'c':
			options->config_path = optarg;
			break;
		case 's':
			options->socket = optarg;
			break;
		case 'r':
			options->ready_fd = parse_fd("ready-fd", optarg);
			break;
		case 'p':
			options->private_fd = parse_fd("private", optarg);
			break;
		case 'k':
			options->check = true;
			break;
		}
	}
	fgv_options_end(&command_line, argc, argv);
	if (!options->config_path && options->private_fd < 0)
		options->config_path = FGV_SYSCONFDIR "/fairgv/backend.conf";
}
