/*
 * fairgvctl metrics: the daemon's figures in Prometheus' text format, version 0.0.4, by the names
 * that Prometheus' conventions ask for: base units, and _total behind what only grows.
 */
#include "tools/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/util.h"

#define SECONDS 1e-9 /* of what the daemon tells in nanoseconds */

/* What is told of each object of a kind. @key: the daemon's name of it. */
struct family {
	const char *name, *type, *help, *key;
	double scale;
};

static const struct family of_gpus[] = {
	{"memory_bytes", "gauge", "Memory that the GPU has.", "memory_bytes", 1},
	{"warm_processes", "gauge", "Processes that are ready for programs.", "warm", 1},
	{"weight", "gauge", "Sum of the weights of its VMs.", "weight", 1},
	{"busy_seconds_total", "counter", "GPU time that its VMs have used.", "gpu_ns", SECONDS},
};

static const struct family of_vms[] = {
	{"weight", "gauge", "Share of the GPU, relative to other VMs.", "weight", 1},
	{"memory_limit_bytes", "gauge", "GPU memory that the VM may use; absent if not limited.",
	 "memory_limit_bytes", 1},
	{"starved_total", "counter", "How often the VM was seen to wait unduly.", "starved", 1},
};

/* Of VMs, with their sessions that have ended, and of sessions. */
static const struct family of_both[] = {
	{"gpu_seconds_total", "counter", "GPU time used.", "gpu_ns", SECONDS},
	{"grants_total", "counter", "How often it got the GPU.", "grants", 1},
	{"overruns_total", "counter", "Grants that used more than their slice.", "overruns", 1},
	{"overrun_seconds_total", "counter", "By how much in all.", "overrun_ns", SECONDS},
	{"holds_total", "counter", "Turns that ended with kernels held.", "holds", 1},
	{"stalls_total", "counter", "Waits for the GPU that no program asked for.", "stalls", 1},
	{"favoured_total", "counter", "Turns for which a thread was favoured.", "favoured", 1},
	{"requests_total", "counter", "What programs asked for.", "requests", 1},
	{"round_trips_total", "counter", "Requests that programs waited for.", "round_trips", 1},
	{"launches_total", "counter", "Kernels launched.", "launches", 1},
	{"memory_bytes", "gauge", "GPU memory in use.", "memory_bytes", 1},
};

/* Upper ends of the buckets of waits, always the same, as Prometheus wants. */
static const double edges_s[] = {1e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
				 5e-2, 0.1,  0.25, 0.5,	 1,	 2.5,  5,    10};

/* What a line is about. */
struct labels {
	const char *kind; /* gpu, vm, session */
	const json_t *object, *vm;
};

static void print_text(const char *text)
{
	for (; text && *text; text++) {
		if (*text == '\\' || *text == '"')
			putchar('\\');
		putchar((unsigned char)*text < ' ' ? '?' : *text);
	}
}

static void print_string(const char *name, const json_t *object, const char *key)
{
	printf("%s=\"", name);
	print_text(json_string_value(json_object_get(object, key)));
	putchar('"');
}

static void print_number(const char *name, const json_t *object, const char *key)
{
	printf("%s=\"%" JSON_INTEGER_FORMAT "\"", name,
	       json_integer_value(json_object_get(object, key)));
}

/* All but the closing brace. */
static void print_labels(const struct labels *labels)
{
	putchar('{');
	if (!labels->vm) {
		print_number("gpu", labels->object, "device");
		return;
	}
	print_string("vm", labels->vm, "name");
	putchar(',');
	print_number("gpu", labels->vm, "device");
	if (labels->object == labels->vm)
		return;
	putchar(',');
	print_number("session", labels->object, "number");
	putchar(',');
	print_string("program", labels->object, "program");
}

static void print_head(const char *kind, const char *name, const char *type, const char *help)
{
	printf("# HELP fairgv_%s_%s %s\n# TYPE fairgv_%s_%s %s\n", kind, name, help, kind, name,
	       type);
}

static void print_sample(const struct labels *labels, const void *context)
{
	const struct family *family = context;
	const json_t *value = json_object_get(labels->object, family->key);

	if (!json_is_integer(value))
		return;
	printf("fairgv_%s_%s", labels->kind, family->name);
	print_labels(labels);
	printf("} %.15g\n", (double)json_integer_value(value) * family->scale);
}

typedef void visit_fn(const struct labels *labels, const void *context);

/* Calls @tell for each object of @kind in the report. */
static void visit(const json_t *report, const char *kind, visit_fn *tell, const void *context)
{
	bool is_gpu = !strcmp(kind, "gpu"), is_vm = !strcmp(kind, "vm");
	struct labels labels = {.kind = kind};
	json_t *object, *session;
	size_t i, j;

	json_array_foreach(json_object_get(report, is_gpu ? "gpus" : "vms"), i, object)
	{
		labels.object = object;
		labels.vm = is_gpu ? NULL : object;
		if (is_gpu || is_vm) {
			tell(&labels, context);
			continue;
		}
		json_array_foreach(json_object_get(object, "sessions"), j, session)
		{
			labels.object = session;
			tell(&labels, context);
		}
	}
}

static void print_families(const json_t *report, const char *kind, const struct family *families,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		print_head(kind, families[i].name, families[i].type, families[i].help);
		visit(report, kind, print_sample, &families[i]);
	}
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

static void print_wait(const struct labels *labels, const void *context)
{
	const json_t *wait = json_object_get(labels->object, "wait");
	json_int_t count = json_integer_value(json_object_get(wait, "count"));

	(void)context;
	for (size_t i = 0; i < FGV_ARRAY_LEN(edges_s); i++) {
		printf("fairgv_%s_wait_seconds_bucket", labels->kind);
		print_labels(labels);
		printf(",le=\"%g\"} %" PRIu64 "\n", edges_s[i], waits_up_to(wait, edges_s[i]));
	}
	printf("fairgv_%s_wait_seconds_bucket", labels->kind);
	print_labels(labels);
	printf(",le=\"+Inf\"} %" JSON_INTEGER_FORMAT "\nfairgv_%s_wait_seconds_sum", count,
	       labels->kind);
	print_labels(labels);
	printf("} %.15g\nfairgv_%s_wait_seconds_count",
	       (double)json_integer_value(json_object_get(wait, "sum_ns")) * SECONDS, labels->kind);
	print_labels(labels);
	printf("} %" JSON_INTEGER_FORMAT "\n", count);
}

static void print_info(const struct labels *labels, const void *context)
{
	(void)context;
	printf("fairgv_gpu_info");
	print_labels(labels);
	putchar(',');
	print_string("name", labels->object, "name");
	putchar(',');
	print_string("policy", labels->object, "policy");
	puts("} 1");
}

static void print_sessions(const struct labels *labels, const void *context)
{
	(void)context;
	printf("fairgv_vm_sessions");
	print_labels(labels);
	printf("} %zu\n", json_array_size(json_object_get(labels->object, "sessions")));
}

static void print_all(const json_t *report)
{
	static const char wait_help[] = "From asking for the GPU to getting it.";

	print_head("gpu", "info", "gauge", "What the GPU is called, and how it is scheduled.");
	visit(report, "gpu", print_info, NULL);
	print_families(report, "gpu", of_gpus, FGV_ARRAY_LEN(of_gpus));
	print_families(report, "vm", of_vms, FGV_ARRAY_LEN(of_vms));
	print_head("vm", "sessions", "gauge", "Programs that run.");
	visit(report, "vm", print_sessions, NULL);
	print_families(report, "vm", of_both, FGV_ARRAY_LEN(of_both));
	print_head("vm", "wait_seconds", "histogram", wait_help);
	visit(report, "vm", print_wait, NULL);
	print_families(report, "session", of_both, FGV_ARRAY_LEN(of_both));
	print_head("session", "wait_seconds", "histogram", wait_help);
	visit(report, "session", print_wait, NULL);
}

int fgv_ctl_metrics(const char *socket)
{
	json_t *report = fgv_ctl_ask(socket, json_pack("{s:s}", "request", "stat"));
	int ret = 0;

	if (!report)
		return -EIO;
	if (json_is_array(json_object_get(report, "gpus")) &&
	    json_is_array(json_object_get(report, "vms")))
		print_all(report);
	else
		ret = fgv_ctl_bad_reply();
	json_decref(report);
	return ret ? ret : fgv_ctl_flush();
}
