/*
 * fairgv-region: how a program's way to its host performs, with a session of its own. It is
 * meant for a guest, whose region's mapping and doorbells it judges; on the host it measures
 * a local window.
 *
 * A round trip is a request that the host answers without the GPU. It costs most where
 * somebody sleeps: how that is brought about is in measure_sleepers().
 */
#define _GNU_SOURCE
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "api/gpu_guest.h"
#include "common/log.h"
#include "common/options.h"
#include "common/util.h"
#include "frontend/client/lane.h"
#include "frontend/client/transport.h"
#include "guest-kmod/uapi/fairgv.h"
#include "shmring/park.h"
#include "shmring/spin.h"

#define EXIT_USAGE 2

#define CALLS_DEFAULT 10000
#define CALLS_MAX     10000000
#define SLEEPERS_MAX  200 /* calls that wake somebody */
#define COPY_BYTES    (16ull << 20)
#define STAGGER_BYTES (5 * FGV_PAGE_BYTES + 1024) /* so that addresses differ in their low bits */
#define COPY_NS	      (100 * FGV_NS_PER_MS)
#define ROOT_PORT                                                                                  \
	"on the host, QEMU's root port of the device needs pref64-reserve, as fairgv-vm gives it"

struct latency {
	long calls;
	uint64_t p50_ns, p99_ns, max_ns;
};

struct result {
	struct latency awake, host_asleep, both_asleep;
	double write_gb_s, read_gb_s, ordinary_gb_s;
	bool has_device; /* else nothing of what follows */
	struct fairgv_counts before, after;
};

/* --- Round trips ------------------------------------------------------------- */

/* How long this program looks for an answer before it sleeps. */
static void set_spin(const char *us)
{
	setenv("FAIRGV_SPIN_US", us, 1);
	fgv_spin_init();
}

static uint64_t call_ns(struct fgv_lane *lane)
{
	uint64_t started_ns = fgv_now_ns(), free_bytes, total_bytes;
	CUresult res = fgv_call_mem_info(lane, &free_bytes, &total_bytes);

	if (res) {
		/* A session that is lost says so itself. */
		if (!fgv_lane_status(lane))
			fgv_error("the host refuses a request (CUDA error %d)", (int)res);
		exit(EXIT_FAILURE);
	}
	return fgv_now_ns() - started_ns;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct latency summary(uint64_t *samples_ns, long calls)
{
	qsort(samples_ns, (size_t)calls, sizeof(*samples_ns), compare);
	return (struct latency){
		.calls = calls,
		.p50_ns = samples_ns[calls / 2],
		.p99_ns = samples_ns[calls * 99 / 100],
		.max_ns = samples_ns[calls - 1],
	};
}

/* A millisecond; or the end, where the session has ended. */
static void pause_ms(const struct fgv_lane *lane)
{
	fgv_doorbell_clear(lane->doorbell);
	if (fgv_doorbell_wait(lane->doorbell, lane->client->connection, FGV_NS_PER_MS) !=
	    -ECONNRESET)
		return;
	fgv_error("the session is lost");
	exit(EXIT_FAILURE);
}

/* Until the host's dispatcher sleeps, and for a moment more, as it says so just before. */
static void await_sleep(const struct fgv_lane *lane)
{
	const uint32_t *parked = &fgv_window_head(&lane->client->window)->host_parked;

	while (!fgv_park_is_announced(parked))
		pause_ms(lane);
	pause_ms(lane);
}

static void measure_awake(struct fgv_lane *lane, uint64_t *samples_ns, long calls,
			  struct latency *latency)
{
	for (long i = 0; i < calls / 10; i++)
		call_ns(lane);
	for (long i = 0; i < calls; i++)
		samples_ns[i] = call_ns(lane);
	*latency = summary(samples_ns, calls);
}

/* The host sleeps at each call; this program does if it has no time to spin. */
static void measure_sleepers(struct fgv_lane *lane, uint64_t *samples_ns, long calls,
			     struct latency *latency)
{
	for (long i = 0; i < calls; i++) {
		await_sleep(lane);
		samples_ns[i] = call_ns(lane);
	}
	*latency = summary(samples_ns, calls);
}

static void measure_calls(struct fgv_lane *lane, long calls, struct result *result)
{
	uint64_t *samples_ns = calloc((size_t)calls, sizeof(*samples_ns));
	long sleepers = calls < SLEEPERS_MAX ? calls : SLEEPERS_MAX;

	if (!samples_ns) {
		fgv_error("out of memory");
		exit(EXIT_FAILURE);
	}
	set_spin("100000");
	measure_awake(lane, samples_ns, calls, &result->awake);
	measure_sleepers(lane, samples_ns, sleepers, &result->host_asleep);
	set_spin("0");
	measure_sleepers(lane, samples_ns, sleepers, &result->both_asleep);
	free(samples_ns);
}

/* --- Memory ------------------------------------------------------------------ */

static double copy_gb_s(void *to, const void *from, uint64_t bytes)
{
	uint64_t started_ns, took_ns, copied = 0;

	memcpy(to, from, bytes);
	started_ns = fgv_now_ns();
	do {
		memcpy(to, from, bytes);
		__asm__ volatile("" : : "r"(to) : "memory");
		copied += bytes;
		took_ns = fgv_now_ns() - started_ns;
	} while (took_ns < COPY_NS);
	return (double)copied / (double)took_ns;
}

/* Memory of the window; *bytes becomes what there is of it. */
static uint8_t *allocate(struct fgv_client *client, uint64_t *bytes)
{
	uint64_t off;

	while (fgv_arena_alloc(client->arena, *bytes, &off)) {
		*bytes /= 2;
		if (*bytes < FGV_PAGE_BYTES) {
			fgv_error("the window has no free memory");
			exit(EXIT_FAILURE);
		}
	}
	return client->window.base + off;
}

static void measure_memory(struct fgv_client *client, struct result *result)
{
	uint64_t bytes = COPY_BYTES;
	uint8_t *shared = allocate(client, &bytes), *own = malloc(2 * bytes + STAGGER_BYTES);

	if (!own) {
		fgv_error("out of memory");
		exit(EXIT_FAILURE);
	}
	memset(own, 1, 2 * bytes + STAGGER_BYTES);
	result->write_gb_s = copy_gb_s(shared, own, bytes);
	result->read_gb_s = copy_gb_s(own, shared, bytes);
	result->ordinary_gb_s = copy_gb_s(own, own + bytes + STAGGER_BYTES, bytes);
	free(own);
	fgv_arena_free(client->arena, (uint64_t)(shared - client->window.base));
}

/* --- All of it --------------------------------------------------------------- */

static void count(const struct fgv_client *client, struct fairgv_counts *counts)
{
	if (!ioctl(client->connection, FAIRGV_IOC_COUNTS, counts))
		return;
	fgv_error("the device does not tell its counts: %m");
	exit(EXIT_FAILURE);
}

static void measure(struct fgv_lane *lane, long calls, struct result *result)
{
	struct fgv_client *client = lane->client;

	result->has_device = client->transport == &fgv_transport_device;
	if (result->has_device)
		count(client, &result->before);
	measure_calls(lane, calls, result);
	measure_memory(client, result);
	if (result->has_device)
		count(client, &result->after);
}

/* --- Telling ----------------------------------------------------------------- */

static void print_latency(const char *what, const struct latency *latency)
{
	printf("%-36s p50 %9.2f us   p99 %9.2f us   max %9.2f us\n", what,
	       (double)latency->p50_ns / FGV_NS_PER_US, (double)latency->p99_ns / FGV_NS_PER_US,
	       (double)latency->max_ns / FGV_NS_PER_US);
}

/* What a wake-up adds: the difference of two medians, which noise can turn round. */
static double added_us(const struct latency *with, const struct latency *without)
{
	return ((double)with->p50_ns - (double)without->p50_ns) / FGV_NS_PER_US;
}

static void print_counts(const char *what, const struct fairgv_counts *counts,
			 const struct fairgv_counts *base)
{
	printf("%-36s doorbells %llu   interrupts %llu   for control %llu\n", what,
	       (unsigned long long)(counts->doorbells - base->doorbells),
	       (unsigned long long)(counts->interrupts - base->interrupts),
	       (unsigned long long)(counts->control - base->control));
}

/* What sleeping costs beyond the round trip; on a busy machine that varies by more. */
static void print_wake_up(const char *what, const struct latency *asleep,
			  const struct latency *base)
{
	double us = added_us(asleep, base);

	if (us > 0)
		printf("%-36s %13.2f us\n", what, us);
	else
		printf("%-36s lost in the round trips' variation: the machine is busy\n", what);
}

static void print(const struct fgv_client *client, const struct result *result)
{
	static const struct fairgv_counts zero;

	printf("VM %s, a window of %" PRIu64 " MiB\n\n", client->vm, client->window.len >> 20);
	print_latency("round trip, both awake", &result->awake);
	print_latency("round trip that wakes the host", &result->host_asleep);
	print_latency("round trip that wakes both", &result->both_asleep);
	print_wake_up("a doorbell wakes the host in", &result->host_asleep, &result->awake);
	print_wake_up("and the host this program in", &result->both_asleep, &result->host_asleep);
	printf("%-36s %13.2f GB/s\n", "window, writing", result->write_gb_s);
	printf("%-36s %13.2f GB/s\n", "window, reading", result->read_gb_s);
	printf("%-36s %13.2f GB/s\n", "ordinary memory, copying", result->ordinary_gb_s);
	if (!result->has_device)
		return;
	print_counts("all programs of this VM, meanwhile", &result->after, &result->before);
	print_counts("since the device was found", &result->after, &zero);
	printf("%-36s %s\n", "mapping",
	       result->after.writeback ? "write-back, as it should be"
				       : "NOT write-back, which makes it slow: " ROOT_PORT);
}

static json_t *latency_json(const struct latency *latency)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "calls", (json_int_t)latency->calls, "p50_ns",
			 (json_int_t)latency->p50_ns, "p99_ns", (json_int_t)latency->p99_ns,
			 "max_ns", (json_int_t)latency->max_ns);
}

static json_t *counts_json(const struct fairgv_counts *counts)
{
	return json_pack("{s:I, s:I, s:I}", "doorbells", (json_int_t)counts->doorbells,
			 "interrupts", (json_int_t)counts->interrupts, "control",
			 (json_int_t)counts->control);
}

static json_t *device_json(const struct result *result)
{
	if (!result->has_device)
		return json_null();
	return json_pack("{s:b, s:o, s:o}", "write_back", (int)!!result->after.writeback, "before",
			 counts_json(&result->before), "after", counts_json(&result->after));
}

static void print_json(const struct fgv_client *client, const struct result *result)
{
	json_t *round_trip = json_pack("{s:o, s:o, s:o}", "awake", latency_json(&result->awake),
				       "host_asleep", latency_json(&result->host_asleep),
				       "both_asleep", latency_json(&result->both_asleep));
	json_t *memory = json_pack("{s:f, s:f, s:f}", "write", result->write_gb_s, "read",
				   result->read_gb_s, "ordinary", result->ordinary_gb_s);
	json_t *all = json_pack("{s:s, s:I, s:o, s:o, s:o}", "vm", client->vm, "window_bytes",
				(json_int_t)client->window.len, "round_trip", round_trip,
				"gb_per_s", memory, "device", device_json(result));

	if (!all || json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(4))) {
		fgv_error("out of memory");
		exit(EXIT_FAILURE);
	}
	putchar('\n');
	json_decref(all);
}

/* --- Options ----------------------------------------------------------------- */

static const char usage[] = "usage: fairgv-region [OPTION]...\n"
			    "  --json      print the result as one line of JSON\n"
			    "  --calls N   round trips to measure (10000)\n"
			    "  --version   print the version\n"
			    "  --help      print this\n";

static long parse_calls(const char *text)
{
	char *end;
	long calls = strtol(text, &end, 10);

	if (end != text && !*end && calls >= 1 && calls <= CALLS_MAX)
		return calls;
	fgv_error("--calls %s: not a number from 1 to %d", text, CALLS_MAX);
	exit(EXIT_USAGE);
}

static void parse_options(int argc, char **argv, bool *json, long *calls)
{
	static const struct option table[] = {
		{"json", no_argument, NULL, 'j'},
		{"calls", required_argument, NULL, 'c'},
		FGV_OPTIONS_END,
	};
	static const struct fgv_options command_line = {
		.usage = usage, .table = table, .order = "", .refusal = EXIT_USAGE};
	int option;

	while ((option = fgv_options_next(&command_line, argc, argv)) != -1) {
		switch (option) {
		case 'j':
			*json = true;
			break;
		case 'c':
			*calls = parse_calls(optarg);
			break;
		}
	}
	fgv_options_end(&command_line, argc, argv);
}

int main(int argc, char **argv)
{
	long calls = CALLS_DEFAULT;
	struct result result = {0};
	struct fgv_lane *lane;
	bool json = false;

	fgv_log_init("fairgv-region");
	parse_options(argc, argv, &json, &calls);
	/* Says itself why there is no session. */
	if (fgv_lane_enter(&lane))
		return EXIT_FAILURE;
	measure(lane, calls, &result);
	fgv_lane_leave(lane);
	if (json)
		print_json(lane->client, &result);
	else
		print(lane->client, &result);
	return EXIT_SUCCESS;
}
