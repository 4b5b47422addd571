/*
 * Where sessions go: the books of what they have of each GPU, and the choice of one for a program
 * that is placed (key place). What is known of a session's memory is what its program needs, as it
 * or the administrator says, or what it is charged, whichever is more. See docs/placement.md.
 */
#include "backend/session_priv.h"

#include <errno.h>
#include <stdio.h>
#include "backend/warm.h"
#include "common/util.h"

#define MIB (1024ull * 1024)

static uint32_t attribute(const struct fgv_device_info *info, unsigned which)
{
	bool known = info->attribute_known[which / 32] >> which % 32 & 1;

	return known && info->attributes[which] > 0 ? (uint32_t)info->attributes[which] : 0;
}

int fgv_sessions_open_place(struct fgv_sessions *sessions)
{
	const struct fgv_devices *devices = sessions->warm->devices;
	struct fgv_place_gpu gpus[FGV_GPU_DEVICES_MAX];

	_Static_assert(FGV_GPU_DEVICES_MAX <= FGV_PLACE_GPUS_MAX, "each GPU has its books");
	for (size_t i = 0; i < devices->count; i++) {
		const struct fgv_device_info *info = &devices->list[i].info;

		gpus[i] = (struct fgv_place_gpu){
			.memory_bytes = info->memory_bytes,
			.sms = attribute(info, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
			.sm_blocks =
				attribute(info, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
			.sm_warps = attribute(info,
					      CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) /
				    32,
		};
	}
	return fgv_place_create(&sessions->place, gpus, devices->count);
}

/* What a program's context takes there that its VM's quota does not count. */
static uint64_t overhead_of(const struct fgv_sessions *sessions, const struct fgv_share *share)
{
	return sessions->config->context_memory ? 0 : fgv_device_context_bytes(share->device);
}

/*
 * What has left the GPU for as long as an administrator wants is nobody's there; what several share
 * is a part of each.
 */
static uint64_t memory_of(const struct fgv_session *session, const struct fgv_share *share)
{
	uint64_t own = session->is_frozen ? fgv_session_resident_on(session, share)
					  : fgv_session_memory_on(session, share);

	return own + fgv_share_shared_part(share, session->account);
}

/* What is charged of a session is read anew. */
static void refresh(const struct fgv_sessions *sessions)
{
	struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		for (unsigned i = 0; i < session->part_count; i++) {
			struct fgv_part *part = &session->parts[i];
			uint64_t used = memory_of(session, part->share);

			used = fgv_min_u64(used, part->share->device->info.memory_bytes);
			fgv_place_charge(sessions->place, &part->task,
					 fgv_max_u64(used, session->is_frozen ? 0 : part->need_bytes) +
						 overhead_of(sessions, part->share));
		}
	}
}

/* How long GPUs have been at work in the last second, as it was measured. */
static void refresh_loads(const struct fgv_sessions *sessions)
{
	uint64_t loads[FGV_GPU_DEVICES_MAX] = {0};
	const struct fgv_session *session;

	LIST_FOREACH(session, &sessions->list, link) {
		for (unsigned i = 0; i < session->part_count; i++) {
			struct fgv_gpusched_stats stats;

			fgv_gpusched_session_stats(session->parts[i].sched, &stats);
			loads[session->parts[i].share->number] += stats.recent_ns;
		}
	}
	for (size_t i = 0; i < sessions->warm->devices->count; i++)
		fgv_place_set_load(sessions->place, (uint32_t)i, loads[i]);
}

/* What @vm's quota leaves it of @share's GPU. */
static uint64_t left_of(const struct fgv_sessions *sessions, const struct fgv_vm *vm,
			const struct fgv_share *share)
{
	uint64_t left = vm->config->memory_bytes, overhead = overhead_of(sessions, share);
	const struct fgv_session *session;

	if (left == FGV_CONFIG_NO_LIMIT)
		return left;
	LIST_FOREACH(session, &sessions->list, link) {
		for (unsigned i = 0; i < session->part_count && session->vm == vm; i++) {
			const struct fgv_part *part = &session->parts[i];

			if (part->share == share)
				left -= fgv_min_u64(left, part->task.memory_bytes - overhead);
		}
	}
	return left + overhead;
}

/* Memory that a program of @vm needs, by its own word or the administrator's; it pays for it. */
static uint64_t need_bytes(const struct fgv_sessions *sessions, const struct fgv_vm *vm,
			   const struct fgv_msg_need *said)
{
	uint64_t bytes = said->memory_bytes ? said->memory_bytes : vm->config->need_bytes;

	if (!bytes || !sessions->config->context_memory)
		return bytes;
	return bytes +
	       fgv_min_u64(fgv_device_context_bytes(vm->shares[0].device), UINT64_MAX - bytes);
}

/* Puts it by @rule on one of @vm's GPUs. As fgv_place_put(). */
static int put(const struct fgv_sessions *sessions, const struct fgv_vm *vm,
	       const struct fgv_place_rule *rule, const struct fgv_msg_need *said,
	       struct fgv_place_task *task)
{
	uint64_t bytes = need_bytes(sessions, vm, said), free_bytes[FGV_GPU_DEVICES_MAX] = {0};
	struct fgv_place_where where = {.free_bytes = free_bytes};
	struct fgv_place_need need = {.blocks = said->blocks, .block_warps = said->block_warps};
	uint64_t overhead = 0;

	if (bytes > vm->config->memory_bytes)
		return -E2BIG;
	refresh(sessions);
	if (rule == &fgv_place_least)
		refresh_loads(sessions);
	for (unsigned i = 0; i < vm->share_count; i++) {
		const struct fgv_share *share = &vm->shares[i];

		where.gpus |= UINT32_C(1) << share->number;
		free_bytes[share->number] = left_of(sessions, vm, share);
		overhead = fgv_max_u64(overhead, overhead_of(sessions, share));
	}
	need.memory_bytes = bytes > UINT64_MAX - overhead ? UINT64_MAX : bytes + overhead;
	return fgv_place_put(sessions->place, rule, &need, &where, task);
}

bool fgv_sessions_lack_place(const struct fgv_sessions *sessions, const struct fgv_vm *vm,
			     const struct fgv_msg_need *need)
{
	struct fgv_place_task task;
	int ret;

	if (!fgv_config_places(vm->config))
		return false;
	ret = put(sessions, vm, vm->config->rule, need, &task);
	if (!ret)
		fgv_place_take_back(sessions->place, &task);
	return ret == -EAGAIN;
}

/* All GPUs of its VM, whatever is free there. */
static int place_on_all(struct fgv_session *session)
{
	const struct fgv_place_need none = {0};
	struct fgv_vm *vm = session->vm;
	int ret = 0;

	for (unsigned i = 0; i < vm->share_count && !ret; i++) {
		const struct fgv_place_where there = {
			.gpus = UINT32_C(1) << vm->shares[i].number,
		};
		struct fgv_part *part = &session->parts[i];

		part->share = &vm->shares[i];
		ret = fgv_place_put(session->sessions->place, &fgv_place_fixed, &none, &there,
				    &part->task);
		session->placed += !ret;
	}
	return ret;
}

int fgv_session_place(struct fgv_session *session, const struct fgv_msg_need *need)
{
	const struct fgv_sessions *sessions = session->sessions;
	const struct fgv_vm *vm = session->vm;
	struct fgv_part *part = &session->parts[0];
	int ret;

	if (!fgv_config_places(vm->config))
		return place_on_all(session);
	ret = put(sessions, vm, vm->config->rule, need, &part->task);
	/* What others say of their kernels keeps nobody out for good; memory does. */
	if (ret == -EAGAIN && vm->config->rule == &fgv_place_mgb2)
		ret = put(sessions, vm, &fgv_place_mgb3, need, &part->task);
	if (ret)
		return ret;
	part->share = fgv_vm_share_of(vm, part->task.gpu);
	part->need_bytes = need_bytes(sessions, vm, need);
	session->placed = 1;
	return 0;
}

void fgv_session_unplace(struct fgv_session *session)
{
	for (unsigned i = 0; i < session->placed; i++)
		fgv_place_take_back(session->sessions->place, &session->parts[i].task);
	session->placed = 0;
}

void fgv_session_place_error(const struct fgv_session *session, const struct fgv_msg_need *need,
			     int error, char *text, size_t len)
{
	const struct fgv_config_vm *vm = session->vm->config;
	unsigned long long mib = (need_bytes(session->sessions, session->vm, need) + MIB - 1) / MIB;
	char gpus[32] = "its GPU";

	if (session->vm->share_count > 1)
		snprintf(gpus, sizeof(gpus), "any of its %u GPUs", session->vm->share_count);
	if (error == -E2BIG)
		snprintf(text, len, "the program needs %llu MiB, more than VM %s has on %s", mib,
			 vm->name, gpus);
	else if (mib)
		snprintf(text, len,
			 "the program needs %llu MiB, and VM %s has no room for it on %s, after "
			 "%llu ms (key place_wait)",
			 mib, vm->name, gpus,
			 (unsigned long long)(vm->place_wait_ns / FGV_NS_PER_MS));
	else
		snprintf(text, len, "VM %s has no room for another program on %s (key place_wait)",
			 vm->name, gpus);
}
