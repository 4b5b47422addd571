/*
 * fairgvctl: shows what the VMs and their sessions use, changes what VMs have, and has the
 * configuration read again, by asking the daemon at its control socket.
 *
 * Exit status: 0; 1 where the daemon refuses or can't be reached; 2 for a wrong command line.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/config/config.h"
#include "backend/config/text.h"
#include "common/log.h"
#include "common/options.h"
#include "common/util.h"
#include "tools/ctl.h"

#define EXIT_USAGE     2
#define INTERVAL_MAX_S 86400

static const char default_config[] = FGV_SYSCONFDIR "/fairgv/backend.conf";

struct options {
	const char *socket;
	const char *config_path;
	const char *root; /* doctor: of the system that it looks at */
	char **arguments; /* of the command, NULL at the end */
	struct fgv_ctl_stat stat;
	const char *to, *from, *key_path; /* freeze, thaw: the file, and its key */
	bool save, end;
};

static const char usage[] =
	"usage: fairgvctl [OPTION]... list\n"
	"       fairgvctl [OPTION]... stat [VM]...\n"
	"       fairgvctl [OPTION]... set VM KEY=VALUE...\n"
	"       fairgvctl [OPTION]... end SESSION\n"
	"       fairgvctl [OPTION]... freeze VM|SESSION\n"
	"       fairgvctl [OPTION]... thaw VM|SESSION\n"
	"       fairgvctl [OPTION]... reload\n"
	"       fairgvctl [OPTION]... top\n"
	"       fairgvctl [OPTION]... metrics\n"
	"       fairgvctl [OPTION]... doctor\n"
	"       fairgvctl [OPTION]... cdi\n"
	"  --socket PATH       the daemon's control socket\n"
	"  --config FILE       the daemon's configuration, which says where that is\n"
	"                      (" FGV_SYSCONFDIR "/fairgv/backend.conf)\n"
	"  --json              list, stat: print JSON, one object a line\n"
	"  --interval SECONDS  stat: print the figures of each interval; top: show them\n"
	"  --count N           stat: end after N reports\n"
	"  --save              set: keep it when the daemon is started again\n"
	"  --end               reload: end the programs of VMs that have been removed\n"
	"  --to FILE           freeze: move the memory of a session into a new file\n"
	"  --from FILE         thaw: bring it back from there\n"
	"  --key-file FILE     encrypt what goes there with this key, and decrypt it\n"
	"  --root DIR          doctor: look at the system below this folder\n"
	"  --version           print the version\n"
	"  --help              print this\n";

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
	char why[512];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	fgv_error("%s", why);
	exit(EXIT_USAGE);
}

/* "0.5", "10": a number that is all of @text. */
static uint64_t parse_interval(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.001 && seconds <= INTERVAL_MAX_S))
		refuse("--interval %s: seconds are wanted, 0.001 to %d", text, INTERVAL_MAX_S);
	return (uint64_t)llround(seconds * FGV_NS_PER_SEC);
}

/* A whole number that is all of @text; false if that is something else. */
static bool parse_number(const char *text, long long *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, 10);
	return end != text && !*end && !errno;
}

static uint64_t parse_count(const char *text)
{
	long long count;

	if (!parse_number(text, &count) || count < 1)
		refuse("--count %s: a whole number from 1 is wanted", text);
	return (uint64_t)count;
}

static void parse_options(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{"socket", required_argument, NULL, 's'},
		{"config", required_argument, NULL, 'c'},
		{"json", no_argument, NULL, 'j'},
		{"interval", required_argument, NULL, 'i'},
		{"count", required_argument, NULL, 'n'},
		{"root", required_argument, NULL, 'r'},
		{"save", no_argument, NULL, 'S'},
		{"end", no_argument, NULL, 'e'},
		{"to", required_argument, NULL, 't'},
		{"from", required_argument, NULL, 'f'},
		{"key-file", required_argument, NULL, 'k'},
		FGV_OPTIONS_END,
	};
	static const struct fgv_options command_line = {
		.usage = usage, .table = table, .order = "", .refusal = EXIT_USAGE};
	int option;

	*options = (struct options){.root = ""};
	while ((option = fgv_options_next(&command_line, argc, argv)) != -1) {
		switch (option) {
		case 's':
			options->socket = optarg;
			break;
		case 'c':
			options->config_path = optarg;
			break;
		case 'j':
			options->stat.json = true;
			break;
		case 'i':
			options->stat.interval_ns = parse_interval(optarg);
			break;
		case 'r':
			options->root = optarg;
			break;
		case 'S':
			options->save = true;
			break;
		case 'e':
			options->end = true;
			break;
		case 't':
			options->to = optarg;
			break;
		case 'f':
			options->from = optarg;
			break;
		case 'k':
			options->key_path = optarg;
			break;
		case 'n':
			options->stat.count = parse_count(optarg);
			break;
		}
	}
	options->arguments = argv + optind;
}

static void check_options(const struct options *options)
{
	bool is_stat = !strcmp(options->arguments[0], "stat");
	bool is_top = !strcmp(options->arguments[0], "top");
	bool is_list = !strcmp(options->arguments[0], "list");

	const struct fgv_ctl_stat *stat = &options->stat;

	if (options->socket && options->config_path)
		refuse("--socket says where to ask, --config where to look that up: not both");
	if (!is_stat && !is_top && stat->interval_ns)
		refuse("--interval is for stat and top");
	if (!is_stat && stat->count)
		refuse("--count is for stat");
	if (!is_stat && !is_list && stat->json)
		refuse("--json is for list and stat");
	if (options->save && strcmp(options->arguments[0], "set") != 0)
		refuse("--save is for set");
	if (options->end && strcmp(options->arguments[0], "reload") != 0)
		refuse("--end is for reload");
	if (options->to && strcmp(options->arguments[0], "freeze") != 0)
		refuse("--to is for freeze");
	if (options->from && strcmp(options->arguments[0], "thaw") != 0)
		refuse("--from is for thaw");
	if (options->key_path && !options->to && !options->from)
		refuse("--key-file is for freeze --to and thaw --from");
	if (*options->root && strcmp(options->arguments[0], "doctor") != 0)
		refuse("--root is for doctor");
	if (stat->count && !stat->interval_ns)
		refuse("--count is for reports at an --interval");
}

/* --- Commands ---------------------------------------------------------------- */

/* Names come from the command line, and must fit into JSON. */
static void check_name(const char *name)
{
	if (!fgv_config_text_is_name(name))
		refuse("no VM can be called \"%s\"", name);
}

static int list(const char *socket, const struct options *options)
{
	if (options->arguments[1])
		refuse("list takes no argument; see --help");
	return fgv_ctl_list(socket, options->stat.json);
}

static int stat(const char *socket, const struct options *options)
{
	struct fgv_ctl_stat what = options->stat;

	what.vms = options->arguments + 1;
	for (size_t i = 0; what.vms[i]; i++)
		check_name(what.vms[i]);
	return fgv_ctl_stat(socket, &what);
}

/* "weight=3": which key, one of a VM's in the configuration, and what it is to be, as it stands
 * there. */
static void add_setting(json_t *settings, const char *text)
{
	const char *value = strchr(text, '=');
	char key[32];

	if (!value)
		refuse("%s: KEY=VALUE is wanted; see --help", text);
	snprintf(key, sizeof(key), "%.*s", (int)(value - text), text);
	if (!fgv_config_find_key(key, true))
		refuse("%s: a VM has no key \"%s\"", text, key);
	if (json_object_get(settings, key))
		refuse("%s: set already", text);
	if (json_object_set_new(settings, key, json_string(value + 1)))
		refuse("%s: not text", text);
}

static int set(const char *socket, const struct options *options)
{
	char **arguments = options->arguments;
	json_t *settings = json_object();

	if (!arguments[1] || !arguments[2])
		refuse("set takes a VM and one or more KEY=VALUE; see --help");
	check_name(arguments[1]);
	for (char **setting = arguments + 2; *setting; setting++)
		add_setting(settings, *setting);
	return fgv_ctl_set(socket, arguments[1], settings, options->save);
}

static int reload(const char *socket, const struct options *options)
{
	if (options->arguments[1])
		refuse("reload takes no argument; see --help");
	return fgv_ctl_reload(socket, options->end);
}

static int end(const char *socket, const struct options *options)
{
	const char *text = options->arguments[1];
	long long number;
	json_t *reply;
	int ret = 0;

	if (!text || options->arguments[2])
		refuse("end takes the number of a session, as list shows it; see --help");
	if (!parse_number(text, &number) || number < 1)
		refuse("%s: a session's number is a whole number from 1", text);
	reply = fgv_ctl_ask(
		socket, json_pack("{s:s, s:I}", "request", "end", "session", (json_int_t)number));
	if (!reply)
		return -EIO;
	if (!json_is_string(json_object_get(reply, "vm")))
		ret = fgv_ctl_bad_reply();
	json_decref(reply);
	return ret;
}

/* A session's number, or the name of a VM, whatever it is made of: what @request is for. */
static json_t *ask_for(const struct options *options, const char *request)
{
	const char *text = options->arguments[1];
	long long number;

	if (!text || options->arguments[2])
		refuse("%s takes a VM or the number of a session; see --help", request);
	if (parse_number(text, &number) && number > 0)
		return json_pack("{s:s, s:I}", "request", request, "session", (json_int_t)number);
	check_name(text);
	return json_pack("{s:s, s:s}", "request", request, "vm", text);
}

static int freeze(const char *socket, const struct options *options)
{
	json_t *asked = ask_for(options, "freeze");

	if (options->to)
		return fgv_ctl_save(socket, asked, options->to, options->key_path);
	return fgv_ctl_freeze(socket, asked, true);
}

static int thaw(const char *socket, const struct options *options)
{
	json_t *asked = ask_for(options, "thaw");

	if (options->from)
		return fgv_ctl_load(socket, asked, options->from, options->key_path);
	return fgv_ctl_freeze(socket, asked, false);
}

static int metrics(const char *socket, const struct options *options)
{
	if (options->arguments[1])
		refuse("metrics takes no argument; see --help");
	return fgv_ctl_metrics(socket);
}

static int top(const char *socket, const struct options *options)
{
	uint64_t interval_ns = options->stat.interval_ns;

	if (options->arguments[1])
		refuse("top takes no argument; see --help");
#ifdef FGV_TOP
	return fgv_ctl_top(socket, interval_ns ? interval_ns : FGV_NS_PER_SEC);
#else
	(void)socket;
	(void)interval_ns;
	fgv_error("this fairgvctl was built without top (configure --disable-top)");
	return -ENOTSUP;
#endif
}

/* --- Where the daemon is ----------------------------------------------------- */

/* Where the control socket is if nothing says otherwise. */
static const char *standard_socket(void)
{
	size_t count;
	const struct fgv_config_key *key = fgv_config_keys(&count);

	while (key->of_vm || strcmp(key->name, "control") != 0)
		key++;
	return key->standard_text;
}

/* The control socket: as given, or as configured. 0 or a negative errno. */
static int find_socket(const struct options *options, char *path, size_t len)
{
	const char *file = options->config_path;
	struct fgv_config config;
	char why[1024];
	int ret;

	if (!file && !options->socket && !access(default_config, R_OK))
		file = default_config;
	if (!file) {
		snprintf(path, len, "%s", options->socket ? options->socket : standard_socket());
		return 0;
	}
	ret = fgv_config_load(&config, file, why, sizeof(why));
	if (ret) {
		fgv_error("%s", why);
		return ret;
	}
	snprintf(path, len, "%s", config.control);
	fgv_config_fini(&config);
	return 0;
}

/* Without a daemon. */
static int doctor(const struct options *options)
{
	if (options->arguments[1])
		refuse("doctor takes no argument; see --help");
	return fgv_ctl_doctor(options->config_path ? options->config_path : default_config,
			      options->socket, options->root);
}

static int cdi(const struct options *options)
{
	if (options->arguments[1] || options->socket)
		refuse("cdi takes no argument but --config; see --help");
	return fgv_ctl_cdi(options->config_path ? options->config_path : default_config);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*perform)(const char *socket, const struct options *options);
	} commands[] = {{"list", list},	    {"stat", stat}, {"set", set},	  {"end", end},
			{"freeze", freeze}, {"thaw", thaw}, {"reload", reload},
			{"top", top},	    {"metrics", metrics}};
	struct options options;
	char socket[PATH_MAX];

	fgv_log_init("fairgvctl");
	parse_options(argc, argv, &options);
	if (!options.arguments[0])
		refuse("list, stat, set, end, freeze, thaw, reload, top, metrics, doctor or cdi? See --help");
	check_options(&options);
	if (!strcmp(options.arguments[0], "doctor"))
		return doctor(&options) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (!strcmp(options.arguments[0], "cdi"))
		return cdi(&options) ? EXIT_FAILURE : EXIT_SUCCESS;
	for (size_t i = 0; i < FGV_ARRAY_LEN(commands); i++) {
		if (strcmp(commands[i].name, options.arguments[0]) != 0)
			continue;
		if (find_socket(&options, socket, sizeof(socket)))
			return EXIT_FAILURE;
		return commands[i].perform(socket, &options) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	refuse("there is no command %s; see --help", options.arguments[0]);
}
