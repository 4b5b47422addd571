/*
 * fairgv-vm: runs QEMU with the device through which a guest gets its VM's share of the GPU,
 * or shows the arguments that do it, where QEMU is started by other means.
 *
 * Exit status: QEMU's; 127 where that was not found, 126 where it can't be executed, 125 for
 * what is wrong here.
 */
#include <config.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/config/config.h"
#include "backend/config/text.h"
#include "common/log.h"
#include "common/options.h"
#include "common/util.h"
#include "qemu-device/region.h"
#include "tools/run.h"

/*
 * Firmware puts a BAR below 4 GiB if it fits there, and makes that uncachable. No port that
 * asks for as much fits.
 */
#define RESERVE_MIN (4ull << 30)

/* Of the port. Whoever adds ports of their own counts from the other end. */
#define CHASSIS 255

#define ARGUMENTS 10

enum way { RUN, PRINT, LIBVIRT };

struct options {
	const char *config_path;
	const char *vm;
	enum way way;
	char **command; /* QEMU's, NULL at the end */
};

static const char usage[] =
	"usage: fairgv-vm [--config FILE] NAME [--] QEMU [ARGUMENT]...\n"
	"       fairgv-vm [--config FILE] NAME --print | --libvirt\n"
	"  NAME           the VM's name in the daemon's configuration\n"
	"  QEMU           qemu-system-x86_64, as a name or a path\n"
	"  --config FILE  the daemon's configuration (" FGV_SYSCONFDIR "/fairgv/backend.conf)\n"
	"  --print        print the arguments that QEMU would get\n"
	"  --libvirt      print the same for the XML of a libvirt domain\n"
	"  --version      print the version\n"
	"  --help         print this\n";

/* Up to the first word that is none. */
static void parse_some(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{"config", required_argument, NULL, 'c'},
		{"print", no_argument, NULL, 'p'},
		{"libvirt", no_argument, NULL, 'l'},
		FGV_OPTIONS_END,
	};
	static const struct fgv_options command_line = {
		.usage = usage, .table = table, .order = "+", .refusal = FGV_RUN_FAILED};
	int option;

	while ((option = fgv_options_next(&command_line, argc, argv)) != -1) {
		switch (option) {
		case 'c':
			options->config_path = optarg;
			break;
		case 'p':
			options->way = PRINT;
			break;
		case 'l':
			options->way = LIBVIRT;
			break;
		}
	}
}

static int parse_options(int argc, char **argv, struct options *options)
{
	*options = (struct options){.config_path = FGV_SYSCONFDIR "/fairgv/backend.conf"};
	parse_some(argc, argv, options);
	options->vm = argv[optind];
	if (options->vm) {
		optind++;
		parse_some(argc, argv, options);
	}
	options->command = argv + (options->vm ? optind : argc);
	if (!options->vm || (options->way == RUN && !options->command[0])) {
		fputs(usage, stderr);
		return -EINVAL;
	}
	if (options->way != RUN && options->command[0]) {
		fgv_error("%s: no such argument; see --help", options->command[0]);
		return -EINVAL;
	}
	return 0;
}

static const struct fgv_config_vm *find_vm(const struct fgv_config *config, const char *name)
{
	for (size_t i = 0; i < config->vm_count; i++) {
		if (strcmp(config->vms[i].name, name))
			continue;
		if (config->vms[i].ivshmem)
			return &config->vms[i];
		fgv_error("%s: VM %s is no QEMU guest: it has no key ivshmem", config->file, name);
		return NULL;
	}
	fgv_error("%s: there is no VM called \"%s\"", config->file, name);
	return NULL;
}

/* --- The arguments ------------------------------------------------------------- */

/* In an option of QEMU's a comma is written twice. */
static char *escape_commas(const char *text)
{
	char *escaped = malloc(2 * strlen(text) + 1);
	char *at = escaped;

	for (; escaped && *text; text++) {
		if (*text == ',')
			*at++ = ',';
		*at++ = *text;
	}
	if (escaped)
		*at = '\0';
	return escaped;
}

static int make_arguments(const struct fgv_config *config, const struct fgv_config_vm *vm,
			  char *arguments[ARGUMENTS + 1])
{
	uint64_t reserve = fgv_max_u64(fgv_region_len((uint32_t)vm->windows, config->window_bytes),
				       RESERVE_MIN);
	char size[32];
	char *path = escape_commas(vm->ivshmem);

	fgv_config_text_show_size(reserve, size, sizeof(size));
	arguments[0] = "-chardev";
	arguments[2] = "-device";
	arguments[4] = "-device";
	arguments[6] = "-chardev";
	arguments[8] = "-mon";
	arguments[ARGUMENTS] = NULL;
	if (!path || asprintf(&arguments[1], "socket,id=fairgv,path=%s", path) < 0 ||
	    asprintf(&arguments[3], "pcie-root-port,id=fairgv-port,chassis=%d,pref64-reserve=%s",
		     CHASSIS, size) < 0 ||
	    asprintf(&arguments[5],
		     "ivshmem-doorbell,id=fairgv-region,bus=fairgv-port,chardev=fairgv,vectors=%u",
		     1 + (unsigned)vm->windows) < 0 ||
	    asprintf(&arguments[7], "socket,id=fairgv-qmp,path=%s" FGV_QMP_SUFFIX, path) < 0 ||
	    asprintf(&arguments[9], "chardev=fairgv-qmp,mode=control") < 0) {
		fgv_error("out of memory");
		return -ENOMEM;
	}
	free(path);
	return 0;
}

/* As a word for a shell. */
static void print_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=,./:@%";

	if (strspn(word, plain) == strlen(word)) {
		fputs(word, stdout);
		return;
	}
	putchar('\'');
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*word);
	}
	putchar('\'');
}

static int print(char *const *arguments)
{
	for (; *arguments; arguments++) {
		print_word(*arguments);
		putchar(arguments[1] ? ' ' : '\n');
	}
	return EXIT_SUCCESS;
}

static void print_attribute(const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", stdout);
			break;
		case '<':
			fputs("&lt;", stdout);
			break;
		case '\'':
			fputs("&apos;", stdout);
			break;
		default:
			putchar(*text);
		}
	}
}

static int print_libvirt(char *const *arguments)
{
	puts("<!-- the machine must be q35; goes into\n"
	     "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'> -->\n"
	     "<qemu:commandline>");
	for (; *arguments; arguments++) {
		fputs("  <qemu:arg value='", stdout);
		print_attribute(*arguments);
		puts("'/>");
	}
	puts("</qemu:commandline>");
	return EXIT_SUCCESS;
}

static size_t count(char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

static void free_arguments(char **arguments)
{
	for (size_t i = 1; arguments[i - 1]; i += 2)
		free(arguments[i]);
}

/* Becomes QEMU. Returns an exit status if it can't. */
static int run(const struct fgv_config_vm *vm, char *const *command, char *const *arguments)
{
	size_t ours = count(arguments), theirs = count(command);
	char **all;
	int error;

	if (access(vm->ivshmem, R_OK | W_OK)) {
		fgv_error("%s: %s", vm->ivshmem,
			  errno == ENOENT ? "no daemon listens there" : strerror(errno));
		return FGV_RUN_FAILED;
	}
	all = calloc(theirs + ours + 1, sizeof(*all));
	if (!all) {
		fgv_error("out of memory");
		return FGV_RUN_FAILED;
	}
	memcpy(all, command, theirs * sizeof(*all));
	memcpy(all + theirs, arguments, ours * sizeof(*all));
	execvp(all[0], all);
	error = errno;
	free(all);
	fgv_error("%s: %s", command[0], error == ENOENT ? "no such program" : strerror(error));
	return error == ENOENT ? FGV_RUN_NOT_FOUND : FGV_RUN_NOT_EXECUTABLE;
}

static int go(const struct options *options, const struct fgv_config_vm *vm, char *const *arguments)
{
	switch (options->way) {
	case PRINT:
		return print(arguments);
	case LIBVIRT:
		return print_libvirt(arguments);
	case RUN:
		break;
	}
	return run(vm, options->command, arguments);
}

int main(int argc, char **argv)
{
	struct options options;
	struct fgv_config config;
	const struct fgv_config_vm *vm;
	char *arguments[ARGUMENTS + 1];
	char why[1024];
	int ret = FGV_RUN_FAILED;

	fgv_log_init("fairgv-vm");
	if (parse_options(argc, argv, &options))
		return FGV_RUN_FAILED;
	if (fgv_config_load(&config, options.config_path, why, sizeof(why))) {
		fgv_error("%s", why);
		return FGV_RUN_FAILED;
	}
	vm = find_vm(&config, options.vm);
	if (vm && !make_arguments(&config, vm, arguments)) {
		ret = go(&options, vm, arguments);
		free_arguments(arguments);
	}
	fgv_config_fini(&config);
	return ret;
}
