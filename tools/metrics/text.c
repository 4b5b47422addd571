/*
 * The families of metrics and how each is written; see text.h. Both formats have the same samples.
 * They differ in what heads a counter, whose name has no _total in OpenMetrics, and in the end.
 */
#include "tools/metrics/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "common/util.h"

#define SECONDS 1e-9 /* of what the daemon tells in nanoseconds */

enum kind { GAUGE, COUNTER, HISTOGRAM };

/* What is told of each object of one sort. @key: the daemon's name of it. */
struct family {
	const char *name;
	enum kind kind;
	const char *help, *key;
	double scale;
};

static const struct family of_gpus[] = {
	{"memory_bytes", GAUGE, "Memory that the GPU has.", "memory_bytes", 1},
	{"warm_processes", GAUGE, "Processes that are ready for programs.", "warm", 1},
	{"weight", GAUGE, "Sum of the weights of its VMs.", "weight", 1},
	{"busy_seconds", COUNTER, "GPU time that its VMs have used.", "gpu_ns", SECONDS},
};

static const struct family of_vms[] = {
	{"weight", GAUGE, "Share of the GPU, relative to other VMs.", "weight", 1},
	{"priority", GAUGE, "How urgent the VM is under the policy fikit; 0 goes first.",
	 "priority", 1},
	{"request_ratio", GAUGE, "Part of the GPU's time that the VM is promised.", "request_ppm",
	 1e-6},
	{"limit_ratio", GAUGE, "Part of the GPU's time that the VM may use.", "limit_ppm", 1e-6},
	{"memory_limit_bytes", GAUGE, "GPU memory that the VM may use; absent if not limited.",
	 "memory_limit_bytes", 1},
	{"sessions_started", COUNTER, "Programs that have started.", "sessions_started", 1},
	{"sessions_refused", COUNTER, "Programs that were refused.", "sessions_refused", 1},
	{"sessions_failed", COUNTER, "Programs whose process on the host failed or was killed.",
	 "sessions_failed", 1},
	{"starved", COUNTER, "How often the VM was seen to wait unduly.", "starved", 1},
};

/* Of VMs, on each of their GPUs and with their sessions that have ended, and of sessions. */
static const struct family of_shares[] = {
	{"gpu_seconds", COUNTER, "GPU time used.", "gpu_ns", SECONDS},
	{"grants", COUNTER, "How often it got the GPU.", "grants", 1},
	{"memory_bytes", GAUGE, "GPU memory in use.", "memory_bytes", 1},
};

/* The same, but on all GPUs of a VM together, under the number of its first. */
static const struct family of_both[] = {
	{"overruns", COUNTER, "Grants that used more than their slice.", "overruns", 1},
	{"overrun_seconds", COUNTER, "By how much in all.", "overrun_ns", SECONDS},
	{"holds", COUNTER, "Turns that ended with kernels held.", "holds", 1},
	{"stalls", COUNTER, "Waits for the GPU that no program asked for.", "stalls", 1},
	{"favoured", COUNTER, "Turns for which a thread was favoured.", "favoured", 1},
	{"requests", COUNTER, "What programs asked for.", "requests", 1},
	{"round_trips", COUNTER, "Requests that programs waited for.", "round_trips", 1},
	{"launches", COUNTER, "Kernels launched.", "launches", 1},
	{"sliced", COUNTER, "Kernels that ran in parts.", "sliced", 1},
	{"left_whole", COUNTER, "Long kernels that could not run in parts.", "left_whole", 1},
	{"copied_in_bytes", COUNTER, "Copied from the host to the GPU, but by graphs.", "bytes_in",
	 1},
	{"copied_out_bytes", COUNTER, "Copied from the GPU to the host, but by graphs.",
	 "bytes_out", 1},
	{"errors", COUNTER, "Calls whose reply was an error.", "errors", 1},
	{"memory_refusals", COUNTER, "Calls that were refused for want of memory.", "no_memory", 1},
};

/* Of the engines that copy, where they are granted by themselves. */
static const struct family of_copying[] = {
	{"copy_seconds", COUNTER, "Time that the VM has used of an engine that copies.", "gpu_ns",
	 SECONDS},
	{"copy_grants", COUNTER, "How often it got that engine.", "grants", 1},
};

static const struct family wait_family = {"wait_seconds", HISTOGRAM,
					  "From asking for the GPU to getting it.", "wait", 1};
static const struct family copy_wait_family = {
	"copy_wait_seconds", HISTOGRAM, "From asking for an engine that copies to getting it.",
	"wait", 1};

static const char *const engines[] = {"copy_in", "copy_out"};

/* Upper ends of the buckets of waits, always the same, and written as OpenMetrics wants numbers. */
static const struct {
	double s;
	const char *text;
} edges[] = {{1e-5, "1e-05"},	 {1e-4, "0.0001"}, {5e-4, "0.0005"}, {1e-3, "0.001"},
	     {2.5e-3, "0.0025"}, {5e-3, "0.005"},  {1e-2, "0.01"},   {2.5e-2, "0.025"},
	     {5e-2, "0.05"},	 {0.1, "0.1"},	   {0.25, "0.25"},   {0.5, "0.5"},
	     {1, "1.0"},	 {2.5, "2.5"},	   {5, "5.0"},	     {10, "10.0"}};

struct writer {
	FILE *out;
	enum fgv_metrics_format format;
	const json_t *report;
};

/* What a line is about. */
struct subject {
	const char *sort; /* gpu, vm, session */
	const json_t *object, *vm;
	const json_t *share; /* of the VM, on one of its GPUs; NULL: on all of them */
	const char *engine;  /* NULL: computing */
};

/* --- Parts of lines ---------------------------------------------------------- */

static void write_text(FILE *out, const char *text)
{
	for (; text && *text; text++) {
		if (*text == '\\' || *text == '"')
			putc('\\', out);
		putc((unsigned char)*text < ' ' ? '?' : *text, out);
	}
}

static void write_string(FILE *out, const char *name, const json_t *object, const char *key)
{
	fprintf(out, "%s=\"", name);
	write_text(out, json_string_value(json_object_get(object, key)));
	putc('"', out);
}

static void write_number(FILE *out, const char *name, const json_t *object, const char *key)
{
	fprintf(out, "%s=\"%" JSON_INTEGER_FORMAT "\"", name,
		json_integer_value(json_object_get(object, key)));
}

/* All but the closing brace. */
static void write_labels(FILE *out, const struct subject *subject)
{
	putc('{', out);
	if (!subject->vm) {
		write_number(out, "gpu", subject->object, "device");
		return;
	}
	write_string(out, "vm", subject->vm, "name");
	putc(',', out);
	write_number(out, "gpu", subject->share ? subject->share : subject->vm, "device");
	if (subject->object != subject->vm) {
		putc(',', out);
		write_number(out, "session", subject->object, "number");
		putc(',', out);
		write_string(out, "program", subject->object, "program");
	}
	if (subject->engine)
		fprintf(out, ",engine=\"%s\"", subject->engine);
}

static void write_head(const struct writer *writer, const char *sort, const struct family *family)
{
	static const char *const kinds[] = {"gauge", "counter", "histogram"};
	bool total = family->kind == COUNTER && writer->format == FGV_METRICS_PROMETHEUS;
	const char *suffix = total ? "_total" : "";

	fprintf(writer->out, "# HELP fairgv_%s_%s%s %s\n# TYPE fairgv_%s_%s%s %s\n", sort,
		family->name, suffix, family->help, sort, family->name, suffix,
		kinds[family->kind]);
}

/* --- Samples ----------------------------------------------------------------- */

typedef void write_fn(FILE *out, const struct subject *subject, const struct family *family);

/* What @subject's figures are in. */
static const json_t *figures_of(const struct subject *subject)
{
	const json_t *figures = subject->share ? subject->share : subject->object;

	return subject->engine ? json_object_get(figures, subject->engine) : figures;
}

static void write_sample(FILE *out, const struct subject *subject, const struct family *family)
{
	const json_t *value = json_object_get(figures_of(subject), family->key);

	if (!json_is_integer(value))
		return;
	fprintf(out, "fairgv_%s_%s%s", subject->sort, family->name,
		family->kind == COUNTER ? "_total" : "");
	write_labels(out, subject);
	fprintf(out, "} %.15g\n", (double)json_integer_value(value) * family->scale);
}

/* How many waits took @edge_s at the most: those of all the daemon's buckets that end there. */
static uint64_t waits_up_to(const json_t *wait, double edge_s)
{
	uint64_t count = 0;
	json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(wait, "histogram"), i, pair)
	{
		const json_t *end = json_array_get(pair, 0);

		if (json_is_integer(end) && (double)json_integer_value(end) * SECONDS <= edge_s)
			count += (uint64_t)json_integer_value(json_array_get(pair, 1));
	}
	return count;
}

static void begin_line(FILE *out, const struct subject *subject, const struct family *family,
		       const char *suffix)
{
	fprintf(out, "fairgv_%s_%s%s", subject->sort, family->name, suffix);
	write_labels(out, subject);
}

static void write_histogram(FILE *out, const struct subject *subject, const struct family *family)
{
	const json_t *wait = json_object_get(figures_of(subject), family->key);
	json_int_t count = json_integer_value(json_object_get(wait, "count"));
	json_int_t sum_ns = json_integer_value(json_object_get(wait, "sum_ns"));

	if (!wait)
		return;
	for (size_t i = 0; i < FGV_ARRAY_LEN(edges); i++) {
		begin_line(out, subject, family, "_bucket");
		fprintf(out, ",le=\"%s\"} %" PRIu64 "\n", edges[i].text,
			waits_up_to(wait, edges[i].s));
	}
	begin_line(out, subject, family, "_bucket");
	fprintf(out, ",le=\"+Inf\"} %" JSON_INTEGER_FORMAT "\n", count);
	begin_line(out, subject, family, "_sum");
	fprintf(out, "} %.15g\n", (double)sum_ns * SECONDS);
	begin_line(out, subject, family, "_count");
	fprintf(out, "} %" JSON_INTEGER_FORMAT "\n", count);
}

static void write_info(FILE *out, const struct subject *subject, const struct family *family)
{
	begin_line(out, subject, family, "");
	putc(',', out);
	write_string(out, "name", subject->object, "name");
	putc(',', out);
	write_string(out, "policy", subject->object, "policy");
	fputs("} 1\n", out);
}

static void write_sessions(FILE *out, const struct subject *subject, const struct family *family)
{
	begin_line(out, subject, family, "");
	fprintf(out, "} %zu\n", json_array_size(json_object_get(subject->object, "sessions")));
}

static void write_per_engine(FILE *out, const struct subject *subject, const struct family *family)
{
	struct subject copying = *subject;

	for (size_t i = 0; i < FGV_ARRAY_LEN(engines); i++) {
		copying.engine = engines[i];
		if (family->kind == HISTOGRAM)
			write_histogram(out, &copying, family);
		else
			write_sample(out, &copying, family);
	}
}

/* @write, of each GPU of the VM. */
static void write_per_share(FILE *out, const struct subject *subject, const struct family *family,
			    write_fn *write)
{
	struct subject on_one = *subject;
	json_t *share;
	size_t i;

	json_array_foreach(json_object_get(subject->vm, "gpus"), i, share)
	{
		on_one.share = share;
		write(out, &on_one, family);
	}
}

static void write_share(FILE *out, const struct subject *subject, const struct family *family)
{
	write_per_share(out, subject, family, write_sample);
}

static void write_copying(FILE *out, const struct subject *subject, const struct family *family)
{
	write_per_share(out, subject, family, write_per_engine);
}

/* --- Families ---------------------------------------------------------------- */

static void write_each_session(FILE *out, const json_t *vm, const struct family *family,
			       write_fn *write)
{
	struct subject subject = {.sort = "session", .vm = vm};
	json_t *session;
	size_t i;

	json_array_foreach(json_object_get(vm, "sessions"), i, session)
	{
		subject.object = session;
		write(out, &subject, family);
	}
}

/* @family of each object of @sort. */
static void write_family(const struct writer *writer, const char *sort, const struct family *family,
			 write_fn *write)
{
	bool is_gpu = !strcmp(sort, "gpu"), is_session = !strcmp(sort, "session");
	struct subject subject = {.sort = sort};
	json_t *object;
	size_t i;

	write_head(writer, sort, family);
	json_array_foreach(json_object_get(writer->report, is_gpu ? "gpus" : "vms"), i, object)
	{
		subject.object = object;
		subject.vm = is_gpu ? NULL : object;
		if (is_session)
			write_each_session(writer->out, object, family, write);
		else
			write(writer->out, &subject, family);
	}
}

static void write_families(const struct writer *writer, const char *sort,
			   const struct family *families, size_t count, write_fn *write)
{
	for (size_t i = 0; i < count; i++)
		write_family(writer, sort, &families[i], write);
}

static void write_all(const struct writer *writer)
{
	static const struct family info = {
		"info", GAUGE, "What the GPU is called, and how it is scheduled.", NULL, 1};
	static const struct family sessions = {"sessions", GAUGE, "Programs that run.", NULL, 1};

	write_family(writer, "gpu", &info, write_info);
	write_families(writer, "gpu", of_gpus, FGV_ARRAY_LEN(of_gpus), write_sample);
	write_families(writer, "vm", of_vms, FGV_ARRAY_LEN(of_vms), write_sample);
	write_family(writer, "vm", &sessions, write_sessions);
	write_families(writer, "vm", of_shares, FGV_ARRAY_LEN(of_shares), write_share);
	write_families(writer, "vm", of_both, FGV_ARRAY_LEN(of_both), write_sample);
	write_family(writer, "vm", &wait_family, write_histogram);
	write_families(writer, "vm", of_copying, FGV_ARRAY_LEN(of_copying), write_copying);
	write_family(writer, "vm", &copy_wait_family, write_copying);
	write_families(writer, "session", of_shares, FGV_ARRAY_LEN(of_shares), write_sample);
	write_families(writer, "session", of_both, FGV_ARRAY_LEN(of_both), write_sample);
	write_family(writer, "session", &wait_family, write_histogram);
}

int fgv_metrics_write(FILE *out, const json_t *report, enum fgv_metrics_format format)
{
	const struct writer writer = {.out = out, .format = format, .report = report};

	if (!json_is_array(json_object_get(report, "gpus")) ||
	    !json_is_array(json_object_get(report, "vms")))
		return -EPROTO;
	write_all(&writer);
	if (format == FGV_METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
	return 0;
}
