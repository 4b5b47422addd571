/*
 * Reads a scenario and runs it. Each key is in a table with its type, range and place, so
 * that an unknown key, a wrong type and a value out of range are refused with file, line
 * and key.
 */
#include "scheduler/sim/scenario.h"

#include <errno.h>
#include <libconfig.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "scheduler/sim/figures.h"

enum key_type { KEY_NS, KEY_COUNT32, KEY_COUNT64, KEY_DOUBLE, KEY_BOOL, KEY_OTHER };

/* A value is multiplied by @unit before it is stored @offset bytes into its structure. */
struct key {
	const char *name;
	enum key_type type;
	size_t offset;
	double unit, min, max;
};

#define P(field) offsetof(struct sim_params, field)
#define V(field) offsetof(struct sim_vm, field)
#define MAX_US	 1e9

static const struct key top_keys[] = {
	{"policies", KEY_OTHER, 0, 0, 0, 0},
	{"vms", KEY_OTHER, 0, 0, 0, 0},
	{"costs", KEY_OTHER, 0, 0, 0, 0},
	{"preemptive", KEY_BOOL, P(preemptive), 0, 0, 1},
	{"slice_ms", KEY_NS, P(sched.slice_ns), 1e6, 0.001, 60000},
	{"awake_lead_us", KEY_NS, P(sched.awake_lead_ns), 1e3, 0, 1e6},
	{"seed", KEY_COUNT64, P(seed), 1, 0, 2147483647},
	{"seconds", KEY_NS, P(measure_ns), 1e9, 0.001, 3600},
	{"warm_up_seconds", KEY_NS, P(warm_up_ns), 1e9, 0, 3600},
	{NULL, KEY_OTHER, 0, 0, 0, 0},
};

static const struct key cost_keys[] = {
	{"spin_us", KEY_NS, P(spin_ns), 1e3, 1, MAX_US},
	{"call_us", KEY_NS, P(call_ns), 1e3, 0.001, MAX_US},
	{"reply_us", KEY_NS, P(reply_ns), 1e3, 0, MAX_US},
	{"dispatch_us", KEY_NS, P(dispatch_ns), 1e3, 0.001, MAX_US},
	{"sync_us", KEY_NS, P(sync_ns), 1e3, 0, MAX_US},
	{"copy_us", KEY_NS, P(copy_ns), 1e3, 0.001, MAX_US},
	{"hand_over_us", KEY_NS, P(hand_over_ns), 1e3, 0.001, MAX_US},
	{"wake_us", KEY_NS, P(wake_ns), 1e3, 0.001, MAX_US},
	{"gpu_switch_us", KEY_NS, P(gpu_switch_ns), 1e3, 0, MAX_US},
	{"gpu_quantum_us", KEY_NS, P(gpu_quantum_ns), 1e3, 1, MAX_US},
	{"gpu_queue", KEY_COUNT32, P(gpu_queue), 1, 1, 1024},
	{"ring", KEY_COUNT32, P(ring), 1, 2, 1024},
	{"samples", KEY_COUNT32, P(samples), 1, 1, 1000},
	{"favour", KEY_COUNT32, P(favour), 1, 1, 10000},
	{"grant_seen", KEY_BOOL, P(grant_seen), 0, 0, 1},
	{"blind_us", KEY_NS, P(blind_ns), 1e3, 0, MAX_US},
	{"slack_us", KEY_NS, P(slack_ns), 1e3, 0, MAX_US},
	{"cpu_tick_us", KEY_NS, P(cpu_tick_ns), 1e3, 0, MAX_US},
	{"cpu_switch_us", KEY_NS, P(cpu_switch_ns), 1e3, 0.001, MAX_US},
	{"cpu_latency_us", KEY_NS, P(cpu_latency_ns), 1e3, 1, MAX_US},
	{"cpu_min_us", KEY_NS, P(cpu_min_ns), 1e3, 1, MAX_US},
	{"cpu_wakeup_us", KEY_NS, P(cpu_wakeup_ns), 1e3, 0, MAX_US},
	{NULL, KEY_OTHER, 0, 0, 0, 0},
};

static const struct key vm_keys[] = {
	{"name", KEY_OTHER, 0, 0, 0, 0},
	{"workload", KEY_OTHER, 0, 0, 0, 0},
	{"weight", KEY_COUNT32, V(weight), 1, 1, FGV_SCHED_WEIGHT_MAX},
	{"processor_weight", KEY_COUNT32, V(processor_weight), 1, 1, 10000},
	{"processor", KEY_COUNT32, V(processor), 1, 0, SIM_PROCESSORS_MAX - 1},
	{"kernel_us", KEY_DOUBLE, V(program.kernel_ns), 1e3, 0.1, MAX_US},
	{"jitter", KEY_DOUBLE, V(program.jitter), 1, 0, 1},
	{"host_us", KEY_DOUBLE, V(program.host_ns), 1e3, 0.1, MAX_US},
	{"sync_per_async", KEY_DOUBLE, V(program.sync_per_async), 1, 0, 1000},
	{"waits", KEY_DOUBLE, V(program.waits), 1, 0, 1},
	{"burst", KEY_COUNT32, V(program.burst), 1, 0, 1e9},
	{"sleep_us", KEY_NS, V(program.sleep_ns), 1e3, 0, MAX_US},
	{NULL, KEY_OTHER, 0, 0, 0, 0},
};

struct reader {
	const char *path;
	char *why;
	size_t size;
};

static int refuse(const struct reader *r, const config_setting_t *setting, const char *key,
		  const char *reason)
{
	snprintf(r->why, r->size, "%s:%u: %s: %s", r->path, config_setting_source_line(setting),
		 key, reason);
	return -EINVAL;
}

static int number_of(const config_setting_t *setting, double *number)
{
	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_INT:
		*number = config_setting_get_int(setting);
		return 0;
	case CONFIG_TYPE_INT64:
		*number = (double)config_setting_get_int64(setting);
		return 0;
	case CONFIG_TYPE_FLOAT:
		*number = config_setting_get_float(setting);
		return 0;
	default:
		return -EINVAL;
	}
}

static void store(const struct key *key, double number, void *into)
{
	void *place = (char *)into + key->offset;

	switch (key->type) {
	case KEY_NS:
	case KEY_COUNT64:
		*(uint64_t *)place = (uint64_t)llround(number * key->unit);
		break;
	case KEY_COUNT32:
		*(uint32_t *)place = (uint32_t)number;
		break;
	case KEY_DOUBLE:
		*(double *)place = number * key->unit;
		break;
	case KEY_BOOL:
	case KEY_OTHER:
		break;
	}
}

static int read_value(const struct reader *r, const config_setting_t *setting,
		      const struct key *key, void *into)
{
	char reason[80];
	double number;

	if (key->type == KEY_BOOL) {
		if (config_setting_type(setting) != CONFIG_TYPE_BOOL)
			return refuse(r, setting, key->name, "true or false is wanted");
		*(bool *)((char *)into + key->offset) = config_setting_get_bool(setting);
		return 0;
	}
	if (number_of(setting, &number) != 0)
		return refuse(r, setting, key->name, "a number is wanted");
	if ((key->type == KEY_COUNT32 || key->type == KEY_COUNT64) && number != floor(number))
		return refuse(r, setting, key->name, "a whole number is wanted");
	if (!(number >= key->min && number <= key->max)) {
		snprintf(reason, sizeof(reason), "must be from %g to %g", key->min, key->max);
		return refuse(r, setting, key->name, reason);
	}
	store(key, number, into);
	return 0;
}

static const struct key *find_key(const struct key *keys, const char *name)
{
	for (; keys->name != NULL; keys++)
		if (strcmp(keys->name, name) == 0)
			return keys;
	return NULL;
}

/* All keys of the group @setting but those of KEY_OTHER, which only must be known. */
static int read_keys(const struct reader *r, config_setting_t *setting, const struct key *keys,
		     void *into)
{
	int err = 0;

	for (int i = 0; i < config_setting_length(setting) && err == 0; i++) {
		const config_setting_t *member = config_setting_get_elem(setting, (unsigned int)i);
		const char *name = config_setting_name(member);
		const struct key *key = find_key(keys, name);

		if (key == NULL)
			return refuse(r, member, name, "unknown key");
		if (key->type != KEY_OTHER)
			err = read_value(r, member, key, into);
	}
	return err;
}

/* --- The parts ------------------------------------------------------------- */

static int read_policies(const struct reader *r, const config_setting_t *list,
			 struct scenario *scenario)
{
	if (!config_setting_is_aggregate(list) || config_setting_length(list) == 0 ||
	    config_setting_length(list) > SCENARIO_POLICIES_MAX)
		return refuse(r, list, "policies", "a list of 1 to 16 names is wanted");
	for (int i = 0; i < config_setting_length(list); i++) {
		const char *name = config_setting_get_string_elem(list, i);
		const struct fgv_policy *policy = name != NULL ? fgv_policy_find(name) : NULL;

		if (policy == NULL)
			return refuse(r, list, "policies", "no such policy");
		scenario->policies[scenario->policy_count++] = policy;
	}
	return 0;
}

static void all_policies(struct scenario *scenario)
{
	while (fgv_policies[scenario->policy_count] != NULL) {
		scenario->policies[scenario->policy_count] = fgv_policies[scenario->policy_count];
		scenario->policy_count++;
	}
}

static int read_vm(const struct reader *r, config_setting_t *group, struct scenario *scenario)
{
	unsigned int place = scenario->vm_count;
	struct sim_vm *vm = &scenario->vms[place];
	const char *name = NULL, *workload = NULL;
	const struct sim_workload *row;
	int err;

	if (!config_setting_is_group(group))
		return refuse(r, group, "vms", "a list of groups is wanted");
	*vm = (struct sim_vm){.weight = 1, .processor = place};
	snprintf(scenario->names[place], sizeof(scenario->names[place]), "vm%u", place + 1);
	if (config_setting_get_member(group, "name") != NULL &&
	    config_setting_lookup_string(group, "name", &name) == CONFIG_FALSE)
		return refuse(r, group, "name", "a string is wanted");
	if (name != NULL)
		snprintf(scenario->names[place], sizeof(scenario->names[place]), "%s", name);
	vm->name = scenario->names[place];
	if (config_setting_lookup_string(group, "workload", &workload) == CONFIG_FALSE)
		return refuse(r, group, "workload", "the name of a row of table 3 is wanted");
	row = sim_workload_find(workload);
	if (row == NULL)
		return refuse(r, group, "workload", "no such row of table 3");
	vm->program = sim_program_of(row, &scenario->params);
	err = read_keys(r, group, vm_keys, vm);
	if (vm->processor_weight == 0)
		vm->processor_weight = vm->weight;
	scenario->vm_count++;
	return err;
}

static int read_vms(const struct reader *r, const config_setting_t *root, struct scenario *scenario)
{
	const config_setting_t *list = config_setting_get_member(root, "vms");
	int err = 0;

	if (list == NULL || !config_setting_is_list(list) || config_setting_length(list) == 0 ||
	    config_setting_length(list) > SIM_VMS_MAX)
		return refuse(r, list != NULL ? list : root, "vms",
			      "a list of 1 to 64 VMs is wanted");
	for (int i = 0; i < config_setting_length(list) && err == 0; i++)
		err = read_vm(r, config_setting_get_elem(list, (unsigned int)i), scenario);
	return err;
}

static int read_root(const struct reader *r, config_setting_t *root, struct scenario *scenario)
{
	config_setting_t *costs = config_setting_get_member(root, "costs");
	const config_setting_t *policies = config_setting_get_member(root, "policies");
	int err = read_keys(r, root, top_keys, &scenario->params);

	if (err == 0 && costs != NULL && !config_setting_is_group(costs))
		err = refuse(r, costs, "costs", "a group is wanted");
	if (err == 0 && costs != NULL)
		err = read_keys(r, costs, cost_keys, &scenario->params);
	if (err == 0 && policies != NULL)
		err = read_policies(r, policies, scenario);
	if (err == 0 && policies == NULL)
		all_policies(scenario);
	return err == 0 ? read_vms(r, root, scenario) : err;
}

int scenario_read(struct scenario *scenario, const char *path, char *why, size_t size)
{
	struct reader r = {.path = path, .why = why, .size = size};
	FILE *file = fopen(path, "re");
	config_t config;
	int err;

	if (file == NULL) {
		err = -errno;
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return err;
	}
	config_init(&config);
	config_set_options(&config, CONFIG_OPTION_AUTOCONVERT);
	if (config_read(&config, file) == CONFIG_TRUE) {
		err = read_root(&r, config_root_setting(&config), scenario);
	} else {
		snprintf(why, size, "%s:%d: %s", path, config_error_line(&config),
			 config_error_text(&config));
		err = -EINVAL;
	}
	config_destroy(&config);
	fclose(file);
	return err;
}

/* --- Running --------------------------------------------------------------- */

static void shape(struct report *report)
{
	report->title = "Scenario: progress is against alone; mmr and overhead are of all VMs";
	report_column(report, "policy", REPORT_STRING);
	report_column(report, "vm", REPORT_STRING);
	report_column(report, "weight", 0);
	report_column(report, "progress", 3);
	report_column(report, "gpu_share", 3);
	report_column(report, "processor_share", 3);
	report_column(report, "grants", 0);
	report_column(report, "wait_p50_us", 0);
	report_column(report, "wait_p99_us", 0);
	report_column(report, "mmr", 3);
	report_column(report, "overhead", 3);
	report->chart.kind = CHART_BARS;
	report->chart.title = "Progress of each VM against alone";
	report->chart.x_title = "policy";
	report->chart.y_title = "progress";
}

static void rows_of(const struct figure_run *run, struct report *report)
{
	unsigned int place = chart_group(report, run->policy->name);

	for (unsigned int i = 0; i < run->count; i++) {
		const struct sim_vm_result *vm = &run->result.vm[i];

		report_text(report, run->policy->name);
		report_text(report, run->vms[i].name);
		report_number(report, run->vms[i].weight);
		report_number(report, run->progress[i]);
		report_number(report, vm->gpu_share);
		report_number(report, vm->processor_share);
		report_number(report, (double)vm->grants);
		report_number(report, (double)vm->wait_p50_ns / FGV_NS_PER_US);
		report_number(report, (double)vm->wait_p99_ns / FGV_NS_PER_US);
		report_number(report, run->mmr);
		report_number(report, run->overhead);
		chart_point(report, chart_series(report, run->vms[i].name), place,
			    run->progress[i]);
	}
}

int scenario_run(const struct scenario *scenario, struct report *report)
{
	struct figure_run run = {
		.params = &scenario->params,
		.vms = scenario->vms,
		.count = scenario->vm_count,
	};
	int err = figure_alone(&run);

	shape(report);
	for (size_t i = 0; i < scenario->policy_count && err == 0; i++) {
		run.policy = scenario->policies[i];
		err = figure_together(&run);
		if (err == 0)
			rows_of(&run, report);
	}
	return err;
}
