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

static void add_process(struct fgv_msg_view *view, const struct fgv_session *session)
{
	struct fgv_view_process *process = &view->process[view->processes++];
	struct fgv_session_view shown;

	fgv_session_look(session, &shown);
	process->pid = shown.guest_pid;
	process->memory_bytes = shown.account.memory_bytes;
	process->busy_ns = fgv_min_u64(shown.stats.recent_ns, FGV_VIEW_NS);
	snprintf(process->program, sizeof(process->program), "%s", shown.program);
	view->used_bytes += process->memory_bytes;
}

static void describe_device(struct fgv_msg_view *view, const struct fgv_vm *vm,
			    struct fgv_figures *figures)
{
	const struct fgv_share *share = &vm->shares[0];
	const uint32_t *values =
		fgv_figures_read(figures, share->number, share->device->place, fgv_now_ns());

	view->device = share->device->info;
	view->device.devices = 1;
	view->device.memory_bytes =
		fgv_min_u64(share->device->info.memory_bytes, share->allowance->memory_bytes);
	view->memory_bytes = view->device.memory_bytes;
	snprintf(view->driver, sizeof(view->driver), "%s", share->device->driver);
	memcpy(view->figures, values, sizeof(view->figures));
}

void fgv_view_take(struct fgv_msg_view *view, const struct fgv_vm *vm,
		   const struct fgv_sessions *sessions)
{
	const struct fgv_session *session = NULL;
	struct fgv_gpusched_stats stats;

	*view = (struct fgv_msg_view){
		.type = FGV_MSG_VIEW,
		.version = FGV_WIRE_VERSION,
		.time_us = clock_us(),
	};
	snprintf(view->vm, sizeof(view->vm), "%s", vm->config->name);
	describe_device(view, vm, sessions->figures);
	fgv_gpusched_vgpu_stats(vm->shares[0].vgpu, &stats);
	view->busy_ns = fgv_min_u64(stats.recent_ns, FGV_VIEW_NS);
	while ((session = fgv_sessions_next(sessions, session))) {
		if (fgv_session_vm(session) == vm && view->processes < FGV_VIEW_PROCESSES)
			add_process(view, session);
	}
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
