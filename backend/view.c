/*
 * Views of a VM; see view.h.
 */
#include "backend/view.h"

#include <stdio.h>
#include <string.h>
#include "backend/figures.h"
#include "backend/sched/gpusched.h"
#include "backend/session.h"
#include "backend/vm.h"
#include "common/util.h"
#include "scheduler/recent.h"

_Static_assert(FGV_SESSIONS_MAX <= FGV_VIEW_PROCESSES, "a view has all sessions of a VM");
_Static_assert(FGV_RECENT_NS == FGV_VIEW_NS, "the same second");

static uint64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / FGV_NS_PER_US;
}

/* What is looked at: a share, or of a VM whose programs are placed, all of them as one. */
struct scope {
	const struct fgv_vm *vm;
	const struct fgv_share *share;
	bool is_whole;
};

static void add_process(struct fgv_msg_view *view, const struct scope *scope,
			const struct fgv_session *session)
{
	struct fgv_view_process *process = &view->process[view->processes++];
	struct fgv_session_view shown;
	uint64_t memory_bytes, busy_ns;

	fgv_session_look(session, &shown);
	memory_bytes = scope->is_whole ? shown.account.memory_bytes
				       : fgv_session_memory_on(session, scope->share);
	busy_ns = scope->is_whole ? shown.stats.recent_ns
				  : fgv_session_recent_on(session, scope->share);
	process->pid = shown.guest_pid;
	process->memory_bytes = memory_bytes;
	process->busy_ns = fgv_min_u64(busy_ns, FGV_VIEW_NS);
	snprintf(process->program, sizeof(process->program), "%s", shown.program);
	view->used_bytes += process->memory_bytes;
}

/* As programs find it when they ask CUDA: memory that may move is nobody else's. */
static uint64_t peers_of(const struct scope *scope)
{
	const struct fgv_vm *vm = scope->vm;
	uint64_t set = 0;

	if (scope->is_whole || vm->config->movable)
		return 0;
	for (unsigned i = 0; i < vm->share_count; i++) {
		unsigned ordinal = vm->shares[i].device->ordinal;

		set |= (uint64_t)(scope->share->device->peers >> ordinal & 1) << i;
	}
	return set;
}

static void describe_device(struct fgv_msg_view *view, const struct scope *scope,
			    struct fgv_figures *figures)
{
	const struct fgv_share *share = scope->share;
	const uint32_t *values =
		fgv_figures_read(figures, share->number, share->device->place, fgv_now_ns());

	view->device = share->device->info;
	view->device.devices = scope->is_whole ? 1 : scope->vm->share_count;
	view->device.memory_bytes =
		fgv_min_u64(share->device->info.memory_bytes, share->allowance->memory_bytes);
	view->memory_bytes = view->device.memory_bytes;
	snprintf(view->driver, sizeof(view->driver), "%s", share->device->driver);
	memcpy(view->figures, values, sizeof(view->figures));
}

static uint64_t recent_ns(const struct scope *scope)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < scope->vm->share_count; i++) {
		const struct fgv_share *share = &scope->vm->shares[i];
		struct fgv_gpusched_stats stats;

		if (!scope->is_whole && share != scope->share)
			continue;
		fgv_gpusched_vgpu_stats(share->vgpu, &stats);
		sum += stats.recent_ns;
	}
	return sum;
}

static void take(struct fgv_msg_view *view, const struct scope *scope,
		 const struct fgv_sessions *sessions)
{
	const struct fgv_session *session = NULL;

	*view = (struct fgv_msg_view){
		.type = FGV_MSG_VIEW,
		.version = FGV_WIRE_VERSION,
		.time_us = clock_us(),
	};
	snprintf(view->vm, sizeof(view->vm), "%s", scope->vm->config->name);
	describe_device(view, scope, sessions->figures);
	view->busy_ns = fgv_min_u64(recent_ns(scope), FGV_VIEW_NS);
	view->peers = peers_of(scope);
	if (view->peers)
		view->nvlinks = fgv_figures_nvlinks(sessions->figures, scope->share->number,
						    scope->share->device->place);
	while ((session = fgv_sessions_next(sessions, session))) {
		if (fgv_session_vm(session) == scope->vm && view->processes < FGV_VIEW_PROCESSES)
			add_process(view, scope, session);
	}
}

void fgv_view_take(struct fgv_msg_view *view, const struct fgv_vm *vm,
		   const struct fgv_sessions *sessions, uint32_t device)
{
	const struct scope scope = {
		.vm = vm,
		.share = &vm->shares[device < vm->share_count ? device : 0],
		.is_whole = fgv_config_places(vm->config),
	};
	unsigned count = scope.is_whole ? 1 : vm->share_count;

	if (device < count)
		take(view, &scope, sessions);
	else
		fgv_view_refuse(view, CUDA_ERROR_INVALID_DEVICE,
				"the VM's programs do not see so many GPUs");
}

void fgv_view_refuse(struct fgv_msg_view *view, CUresult status, const char *text)
{
	*view = (struct fgv_msg_view){
		.type = FGV_MSG_VIEW,
		.version = FGV_WIRE_VERSION,
		.status = status,
	};
	snprintf(view->text, sizeof(view->text), "%s", text);
}
