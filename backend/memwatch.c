/*
 * Looking and judging. A look asks NVML once for each device that has something to watch, which
 * takes it a millisecond or so: seldom as long as no VM is near its quota.
 */
#include "backend/memwatch.h"

#include <stdio.h>
#include <string.h>
#include "backend/vm.h"
#include "backend/warm.h"
#include "common/log.h"
#include "common/util.h"

#define LOOK_NS	     (2 * FGV_NS_PER_SEC)
#define LOOK_NEAR_NS (250 * FGV_NS_PER_MS)

/* A VM is near its quota when this part of it is left, or less. */
#define NEAR_SHARE 8

/* The part of its charge that a process may have besides, for padding that nobody knows of. */
#define CHARGE_SHARE 16

/* --- Judging ----------------------------------------------------------------- */

static uint64_t believed(const struct fgv_memwatch_claim *claim, uint64_t quota_bytes)
{
	uint64_t shared = fgv_min_u64(claim->shared_bytes, quota_bytes);

	return fgv_min_u64(claim->charged_bytes, quota_bytes - shared) + shared;
}

static uint64_t allowed(uint64_t charged_bytes, uint64_t context_bytes)
{
	return charged_bytes + charged_bytes / CHARGE_SHARE + context_bytes + FGV_MEMWATCH_SLACK;
}

static uint64_t beyond(const struct fgv_memwatch_claim *claim, uint64_t quota_bytes)
{
	return claim->used_bytes - fgv_min_u64(believed(claim, quota_bytes), claim->used_bytes);
}

/* Has most beyond its charge; where none has more than the others, has most of all. */
static struct fgv_memwatch_claim *worst(struct fgv_memwatch_claim *claims, size_t count,
					uint64_t quota_bytes)
{
	struct fgv_memwatch_claim *found = &claims[0];

	for (size_t i = 1; i < count; i++) {
		uint64_t its = beyond(&claims[i], quota_bytes), most = beyond(found, quota_bytes);

		if (its > most || (its == most && claims[i].used_bytes > found->used_bytes))
			found = &claims[i];
	}
	return found;
}

void fgv_memwatch_judge(struct fgv_memwatch_claim *claims, size_t count, uint64_t quota_bytes,
			uint64_t context_bytes, uint64_t shared_bytes)
{
	uint64_t sum = 0, seen = 0, has = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t charged = believed(&claims[i], quota_bytes);

		claims[i].over = claims[i].used_bytes > allowed(charged, context_bytes);
		sum += claims[i].used_bytes;
		seen += claims[i].used_bytes > 0;
		has += fgv_min_u64(claims[i].shared_bytes, quota_bytes);
	}
	/* What is counted several times. */
	has -= fgv_min_u64(shared_bytes, has);
	if (seen &&
	    sum > allowed(quota_bytes, 0) + has + seen * (context_bytes + FGV_MEMWATCH_SLACK))
		worst(claims, count, quota_bytes)->over = true;
}

/* --- Looking ----------------------------------------------------------------- */

static bool has_quota(const struct fgv_vm *vm)
{
	return vm->config->memory_bytes != FGV_CONFIG_NO_LIMIT;
}

static bool is_watched(const struct fgv_vm *vm)
{
	return has_quota(vm) && !vm->shares[0].device->soft && vm->taken;
}

/* On any of its GPUs. */
static bool is_near_quota(const struct fgv_vm *vm)
{
	uint64_t quota_bytes = vm->config->memory_bytes;

	for (unsigned i = 0; i < vm->share_count; i++) {
		if (fgv_vm_memory_on(vm, &vm->shares[i]) >= quota_bytes - quota_bytes / NEAR_SHARE)
			return true;
	}
	return false;
}

static uint64_t used_by(pid_t pid, const struct fgv_nvml_use *uses, int count)
{
	for (int i = 0; i < count; i++) {
		if (uses[i].pid == pid)
			return uses[i].bytes;
	}
	return 0;
}

static bool was_suspect(const struct fgv_memwatch *watch, uint32_t number)
{
	for (size_t i = 0; i < watch->suspect_count; i++) {
		if (watch->suspects[i] == number)
			return true;
	}
	return false;
}

/* Fills @claims with the VM's sessions and what they have of @share; how many they are. */
static size_t collect(const struct fgv_memwatch *watch, const struct fgv_vm *vm,
		      const struct fgv_share *share, const struct fgv_nvml_use *uses, int count,
		      struct fgv_memwatch_claim *claims)
{
	const struct fgv_session *session = NULL;
	size_t claimed = 0;

	while ((session = fgv_sessions_next(watch->sessions, session))) {
		struct fgv_session_view view;

		if (fgv_session_vm(session) != vm || claimed == FGV_SESSIONS_MAX)
			continue;
		fgv_session_look(session, &view);
		claims[claimed++] = (struct fgv_memwatch_claim){
			.number = view.number,
			.charged_bytes = fgv_session_resident_on(session, share),
			.used_bytes = used_by(view.vgpu_pid, uses, count),
			.shared_bytes = fgv_session_shared_on(session, share),
			.suspect = was_suspect(watch, view.number),
		};
	}
	return claimed;
}

static void end(struct fgv_memwatch *watch, const struct fgv_memwatch_claim *claim)
{
	char why[160];

	snprintf(why, sizeof(why),
		 "the driver counts %llu MiB of GPU memory in use, of which %llu MiB were charged",
		 (unsigned long long)(claim->used_bytes >> 20),
		 (unsigned long long)(claim->charged_bytes >> 20));
	fgv_sessions_kill(watch->sessions, claim->number, why);
}

/* Whoever is over for the second time in a row is ended; the others are remembered. */
static void judge(struct fgv_memwatch *watch, const struct fgv_vm *vm,
		  const struct fgv_share *share, const struct fgv_nvml_use *uses, int count,
		  uint32_t *suspects, size_t *suspected)
{
	struct fgv_memwatch_claim claims[FGV_SESSIONS_MAX];
	size_t claimed = collect(watch, vm, share, uses, count, claims);

	fgv_memwatch_judge(claims, claimed, vm->config->memory_bytes,
			   fgv_device_context_bytes(share->device), fgv_share_shared(share));
	for (size_t i = 0; i < claimed; i++) {
		if (!claims[i].over)
			continue;
		if (claims[i].suspect)
			end(watch, &claims[i]);
		else if (*suspected < FGV_MEMWATCH_SUSPECTS)
			suspects[(*suspected)++] = claims[i].number;
	}
}

/* Processes that are ready and wait have nothing but their context. */
static void measure_context(struct fgv_memwatch *watch, unsigned device,
			    const struct fgv_nvml_use *uses, int count)
{
	struct fgv_device *of = &watch->devices->list[device];

	for (int i = 0; i < count; i++) {
		if (uses[i].bytes <= of->context_bytes ||
		    !fgv_warm_is_ready(watch->sessions->warm, device, uses[i].pid))
			continue;
		of->context_bytes = uses[i].bytes;
		fgv_debug("%s: a context takes %llu MiB", of->name,
			  (unsigned long long)(of->context_bytes >> 20));
	}
}

static bool is_device_watched(const struct fgv_memwatch *watch, unsigned device)
{
	if (watch->devices->list[device].soft)
		return false;
	if (!watch->devices->list[device].context_bytes &&
	    fgv_warm_ready(watch->sessions->warm, device))
		return true;
	for (size_t i = 0; i < watch->vms->count; i++) {
		if (fgv_vm_share_of(watch->vms->list[i], device) &&
		    is_watched(watch->vms->list[i]))
			return true;
	}
	return false;
}

static int ask(struct fgv_memwatch *watch, unsigned device)
{
	const struct fgv_device *of = &watch->devices->list[device];
	int count = fgv_nvml_uses(watch->nvml, of->place, watch->uses, FGV_MEMWATCH_USES);

	if (count < 0 && !watch->is_silent[device])
		fgv_warning_of(FGV_LOG_GPU(of->name),
			       "NVML does not tell what its processes use (%s): quotas are kept "
			       "without a second opinion",
			       strerror(-count));
	watch->is_silent[device] = count < 0;
	return count;
}

static void look(struct fgv_memwatch *watch)
{
	uint32_t suspects[FGV_MEMWATCH_SUSPECTS] = {0};
	size_t suspected = 0;

	for (unsigned device = 0; device < watch->devices->count; device++) {
		int count = is_device_watched(watch, device) ? ask(watch, device) : 0;

		if (count <= 0)
			continue;
		measure_context(watch, device, watch->uses, count);
		for (size_t i = 0; i < watch->vms->count; i++) {
			const struct fgv_vm *vm = watch->vms->list[i];

			const struct fgv_share *share = fgv_vm_share_of(vm, device);

			if (share && is_watched(vm))
				judge(watch, vm, share, watch->uses, count, suspects, &suspected);
		}
	}
	memcpy(watch->suspects, suspects, suspected * sizeof(*suspects));
	watch->suspect_count = suspected;
}

/* --- The daemon's ------------------------------------------------------------- */

static bool is_any_of_nvidia(const struct fgv_devices *devices)
{
	for (size_t i = 0; i < devices->count; i++) {
		if (!devices->list[i].soft)
			return true;
	}
	return false;
}

void fgv_memwatch_init(struct fgv_memwatch *watch, const struct fgv_config *config,
		       struct fgv_devices *devices, struct fgv_sessions *sessions,
		       const struct fgv_vms *vms)
{
	char why[256];

	*watch = (struct fgv_memwatch){
		.config = config,
		.devices = devices,
		.sessions = sessions,
		.vms = vms,
	};
	if (!is_any_of_nvidia(devices))
		return;
	if (fgv_nvml_open(&watch->nvml, why, sizeof(why)))
		fgv_warning("memory quotas are kept without a second opinion: %s", why);
}

void fgv_memwatch_fini(struct fgv_memwatch *watch)
{
	fgv_nvml_close(watch->nvml);
	watch->nvml = NULL;
}

static bool is_anything_watched(const struct fgv_memwatch *watch)
{
	for (unsigned device = 0; watch->nvml && device < watch->devices->count; device++) {
		if (is_device_watched(watch, device))
			return true;
	}
	return false;
}

/* How long after a look the next one comes. */
static uint64_t pause_ns(const struct fgv_memwatch *watch)
{
	if (watch->suspect_count)
		return LOOK_NEAR_NS;
	for (size_t i = 0; i < watch->vms->count; i++) {
		if (is_watched(watch->vms->list[i]) && is_near_quota(watch->vms->list[i]))
			return LOOK_NEAR_NS;
	}
	return LOOK_NS;
}

/* Without a look so far, or after a time without any, there is one soon. */
uint64_t fgv_memwatch_deadline_ns(const struct fgv_memwatch *watch)
{
	if (!is_anything_watched(watch))
		return 0;
	return watch->looked_ns + pause_ns(watch);
}

void fgv_memwatch_tick(struct fgv_memwatch *watch)
{
	uint64_t due_ns = fgv_memwatch_deadline_ns(watch);

	if (!due_ns || fgv_now_ns() < due_ns)
		return;
	look(watch);
	watch->looked_ns = fgv_now_ns();
}
