/*
 * The daemon's GPUs, VMs and sessions in JSON; see report.h.
 */
#define _GNU_SOURCE
#include "backend/admin/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "backend/admin/freeze.h"
#include "backend/config/config.h"
#include "backend/sched/gpusched.h"
#include "common/util.h"

/* A process that writes nonsense into its account must not make it negative. */
static json_int_t integer(uint64_t value)
{
	return (json_int_t)fgv_min_u64(value, INT64_MAX);
}

json_t *fgv_admin_string(const char *text)
{
	json_t *value = json_string(text);
	char *copy;

	if (value)
		return value;
	copy = strdup(text);
	for (char *at = copy; at && *at; at++) {
		if ((unsigned char)*at > 127)
			*at = '?';
	}
	value = copy ? json_string(copy) : NULL;
	free(copy);
	return value;
}

/* [[edge, count], ...] of the buckets that hold something; the last has no upper edge. */
static json_t *histogram(const struct fgv_hist *hist)
{
	json_t *buckets = json_array();
	int err = 0;

	for (unsigned i = 0; buckets && i < FGV_HIST_BUCKETS; i++) {
		uint64_t edge_ns = fgv_hist_edge_ns(i);
		json_t *edge;

		if (!hist->bucket[i])
			continue;
		edge = edge_ns == UINT64_MAX ? json_null() : json_integer(integer(edge_ns));
		err |= json_array_append_new(buckets,
					     json_pack("[o, I]", edge, integer(hist->bucket[i])));
	}
	if (!err)
		return buckets;
	json_decref(buckets);
	return NULL;
}

static json_t *wait_of(const struct fgv_hist *hist)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "count", integer(hist->count), "sum_ns",
			 integer(hist->sum_ns), "p50_ns", integer(fgv_hist_quantile_ns(hist, 500)),
			 "p99_ns", integer(fgv_hist_quantile_ns(hist, 990)), "max_ns",
			 integer(hist->max_ns), "histogram", histogram(hist));
}

/* Adds to @object what a session or a VM has used. */
static int add_figures(json_t *object, const struct fgv_account *account,
		       const struct fgv_gpusched_stats *stats)
{
	const struct fgv_sched_stats *sched = &stats->sched;
	json_t *figures = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I,"
		" s:I, s:I, s:o}",
		"gpu_ns", integer(sched->gpu_ns), "grants", integer(sched->grants), "overruns",
		integer(sched->overruns), "overrun_ns", integer(sched->overrun_ns), "stalls",
		integer(stats->stalls), "sync_calls", integer(stats->sync_calls), "favoured",
		integer(stats->favoured), "holds", integer(stats->holds), "requests",
		integer(account->requests), "round_trips", integer(account->round_trips),
		"launches", integer(account->launches), "batched", integer(account->batched),
		"repeated", integer(account->repeated), "changed", integer(account->changed),
		"sliced", integer(account->sliced), "parts", integer(account->parts), "left_whole",
		integer(account->left_whole), "graphs", integer(account->graphs), "doorbells_rung",
		integer(account->doorbells_rung), "doorbells_received",
		integer(account->doorbells_received), "bytes_in", integer(account->bytes_in),
		"bytes_out", integer(account->bytes_out), "errors", integer(account->errors),
		"no_memory", integer(account->no_memory), "memory_bytes",
		integer(account->memory_bytes), "moved_in", integer(account->moved_in), "moved_out",
		integer(account->moved_out), "wait", wait_of(&sched->wait));

	return figures ? json_object_update_new(object, figures) : -1;
}

/* The same of the engines that copy, where they are granted by themselves. */
static int add_copying(json_t *object, const struct fgv_share *share)
{
	static const char *const names[FGV_COPY_ENGINES] = {"copy_in", "copy_out"};
	struct fgv_gpusched_stats stats;
	int err = 0;

	for (unsigned i = 0; i < FGV_COPY_ENGINES && !err; i++) {
		if (!fgv_share_copying_stats(share, i, &stats))
			continue;
		err = json_object_set_new(object, names[i],
					  json_pack("{s:I, s:I, s:o}", "gpu_ns",
						    integer(stats.sched.gpu_ns), "grants",
						    integer(stats.sched.grants), "wait",
						    wait_of(&stats.sched.wait)));
	}
	return err;
}

static const char *state_name(const struct fgv_session *session,
			      const struct fgv_gpusched_stats *stats)
{
	const char *name = fgv_admin_frozen_name(session);

	if (name)
		return name;
	if (stats->holding)
		return "holding";
	return stats->waiting ? "waiting" : "idle";
}

/* The GPUs that it is on, with the memory there that its program has been given. */
static json_t *gpus_of(const struct fgv_session *session)
{
	json_t *array = json_array();
	const struct fgv_share *share;

	for (unsigned i = 0; array && (share = fgv_session_share(session, i)); i++)
		json_array_append_new(
			array,
			json_pack("{s:I, s:I, s:I, s:I}", "device", integer(share->number),
				  "memory_bytes", integer(fgv_session_memory_on(session, share)),
				  "resident_bytes",
				  integer(fgv_session_resident_on(session, share)), "shared_bytes",
				  integer(fgv_session_shared_on(session, share))));
	return array;
}

static json_t *session_of(const struct fgv_session *session, bool figures)
{
	struct fgv_session_view view;
	json_t *object;

	fgv_session_look(session, &view);
	object = json_pack("{s:I, s:o, s:o, s:I, s:I, s:I, s:s, s:b}", "number",
			   integer(view.number), "gpus", gpus_of(session), "program",
			   fgv_admin_string(view.program), "pid", (json_int_t)view.pid, "vgpu_pid",
			   (json_int_t)view.vgpu_pid, "uid", (json_int_t)view.uid, "state",
			   state_name(session, &view.stats), "interactive", view.stats.interactive);
	if (!object || !figures || !add_figures(object, &view.account, &view.stats))
		return object;
	json_decref(object);
	return NULL;
}

/* The sessions of @vm, the oldest first. */
static json_t *sessions_of(const struct fgv_admin_scope *scope, const struct fgv_vm *vm,
			   bool figures)
{
	const struct fgv_session *session = NULL;
	json_t *array = json_array();
	int err = 0;

	while (array && (session = fgv_sessions_next(scope->sessions, session))) {
		if (fgv_session_vm(session) == vm)
			err |= json_array_insert_new(array, 0, session_of(session, figures));
	}
	if (!err)
		return array;
	json_decref(array);
	return NULL;
}

/* What a VM has of one GPU and, with @figures, what it has used there. */
static json_t *share_of(const struct fgv_vm *vm, const struct fgv_share *share, bool figures)
{
	json_t *object = json_pack("{s:I, s:I, s:I}", "device", integer(share->number),
				   "memory_bytes", integer(fgv_vm_memory_on(vm, share)),
				   "shared_bytes", integer(fgv_share_shared(share)));
	struct fgv_gpusched_stats stats;
	int err = object ? 0 : -1;

	fgv_gpusched_vgpu_stats(share->vgpu, &stats);
	if (!err && figures) {
		err |= json_object_set_new(object, "gpu_ns",
					   json_integer(integer(stats.sched.gpu_ns)));
		err |= json_object_set_new(object, "grants",
					   json_integer(integer(stats.sched.grants)));
		err |= add_copying(object, share);
	}
	if (!err)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *shares_of(const struct fgv_vm *vm, bool figures)
{
	json_t *array = json_array();
	int err = array ? 0 : -1;

	for (unsigned i = 0; i < vm->share_count && !err; i++)
		err = json_array_append_new(array, share_of(vm, &vm->shares[i], figures));
	if (!err)
		return array;
	json_decref(array);
	return NULL;
}

/* On all its GPUs together. */
static void vm_stats(const struct fgv_vm *vm, struct fgv_gpusched_stats *sum)
{
	*sum = (struct fgv_gpusched_stats){0};
	for (unsigned i = 0; i < vm->share_count; i++) {
		struct fgv_gpusched_stats stats;

		fgv_gpusched_vgpu_stats(vm->shares[i].vgpu, &stats);
		fgv_gpusched_stats_add(sum, &stats);
	}
}

/* Multiprocessors of a VM whose GPU is divided; of others nothing is said. */
static int add_sms(json_t *object, const struct fgv_vm *vm)
{
	const struct fgv_share *share = &vm->shares[0];
	uint32_t each = share->device->units.each, reserved, limit;
	uint64_t held, own = fgv_gpusched_units(share->vgpu, &held);

	if (!own && !held)
		return 0;
	fgv_config_vm_units(vm->config, &share->device->units, &reserved, &limit);
	return json_object_update_new(
		object, json_pack("{s:I, s:I, s:I}", "sms", integer(reserved * each), "sms_limit",
				  integer(limit * each), "sms_held",
				  integer((uint64_t)__builtin_popcountll(held) * each)));
}

/* How turns of a VM that is a gang went; of others nothing is said. */
static int add_gang(json_t *object, const struct fgv_vm *vm, bool figures)
{
	struct fgv_gang_stats stats;

	if (!vm->gang)
		return 0;
	fgv_gang_stats(vm->gang, &stats);
	return json_object_set_new(object, "gang", json_true()) |
	       (figures ? json_object_update_new(object, json_pack("{s:I, s:I}", "gang_turns",
								   integer(stats.turns),
								   "gang_turns_together",
								   integer(stats.together)))
			: 0);
}

static json_t *vm_of(const struct fgv_admin_scope *scope, const struct fgv_vm *vm, bool figures)
{
	json_t *sessions = sessions_of(scope, vm, figures);
	struct fgv_sched_shares shares;
	struct fgv_account account;
	json_t *object;
	int err;

	fgv_gpusched_shares(vm->shares[0].vgpu, &shares);
	object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "name", vm->config->name,
			   "weight", integer(fgv_gpusched_weight(vm->shares[0].vgpu)), "priority",
			   integer(fgv_gpusched_priority(vm->shares[0].vgpu)), "request_ppm",
			   integer(shares.request), "limit_ppm", integer(shares.limit), "slo_ns",
			   integer(shares.bound_ns), "device", integer(vm->config->device));
	err = object ? 0 : -1;
	err |= add_sms(object, vm);
	err |= add_gang(object, vm, figures);
	fgv_vm_usage(vm, &account);
	err |= json_object_set_new(object, "memory_bytes",
				   json_integer(integer(account.memory_bytes)));
	err |= json_object_set_new(object, "memory_limit_bytes",
				   vm->config->memory_bytes == FGV_CONFIG_NO_LIMIT
					   ? json_null()
					   : json_integer(integer(vm->config->memory_bytes)));
	/* A VM that has none says nothing of it. */
	if (vm->config->ivshmem)
		err |= json_object_set_new(object, "qemu_pid",
					   vm->qemu_pid ? json_integer(vm->qemu_pid) : json_null());
	if (!err && figures) {
		struct fgv_gpusched_stats stats;

		vm_stats(vm, &stats);
		err |= add_figures(object, &account, &stats);
		err |= add_copying(object, &vm->shares[0]);
		err |= json_object_set_new(object, "starved",
					   json_integer(integer(stats.sched.starved)));
		err |= json_object_update_new(object,
					      json_pack("{s:I, s:I, s:I}", "sessions_started",
							integer(vm->started), "sessions_refused",
							integer(vm->refused), "sessions_failed",
							integer(vm->failed)));
	}
	err |= json_object_set_new(object, "gpus", shares_of(vm, figures));
	err |= json_object_set_new(object, "sessions", sessions);
	if (!err)
		return object;
	json_decref(object);
	return NULL;
}

/* A GPU, with the sums over its VMs that a VM's share is a part of. */
static json_t *gpu_of(const struct fgv_admin_scope *scope, size_t device)
{
	const struct fgv_device *gpu = &scope->devices->list[device];
	uint64_t gpu_ns = fgv_vms_gone_ns(scope->vms, device), weight = 0;

	for (size_t i = 0; i < scope->vms->count; i++) {
		const struct fgv_share *share =
			fgv_vm_share_of(scope->vms->list[i], (unsigned)device);
		struct fgv_gpusched_stats stats;

		if (!share)
			continue;
		fgv_gpusched_vgpu_stats(share->vgpu, &stats);
		gpu_ns += stats.sched.gpu_ns;
		weight += fgv_gpusched_weight(share->vgpu);
	}
	return json_pack("{s:I, s:o, s:s, s:I, s:I, s:I, s:I}", "device", integer(device), "name",
			 fgv_admin_string(gpu->name), "policy", fgv_gpusched_policy(gpu->sched),
			 "warm", integer(fgv_warm_ready(scope->warm, (unsigned)device)), "weight",
			 integer(weight), "gpu_ns", integer(gpu_ns), "memory_bytes",
			 integer(gpu->info.memory_bytes));
}

static bool is_wanted(const json_t *names, const char *name)
{
	size_t i;
	json_t *wanted;

	json_array_foreach(names, i, wanted)
	{
		if (!strcmp(json_string_value(wanted), name))
			return true;
	}
	return !names;
}

json_t *fgv_admin_report(const struct fgv_admin_scope *scope, const json_t *names, bool figures)
{
	json_t *gpus = json_array(), *vms = json_array();
	int err = 0;

	for (size_t i = 0; i < scope->vms->count; i++) {
		if (is_wanted(names, scope->vms->list[i]->config->name))
			err |= json_array_append_new(vms,
						     vm_of(scope, scope->vms->list[i], figures));
	}
	for (size_t i = 0; i < scope->devices->count; i++)
		err |= json_array_append_new(gpus, gpu_of(scope, i));
	if (!err)
		return json_pack("{s:I, s:o, s:o}", "time_ns", integer(fgv_now_ns()), "gpus", gpus,
				 "vms", vms);
	json_decref(gpus);
	json_decref(vms);
	return NULL;
}
