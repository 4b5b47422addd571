/*
 * The contexts of the process. Their structures are never given back, only used again, since
 * another thread may be looking at one; whether a handle still names one, the table of objects
 * says.
 *
 * Lock: contexts.mutex guards everything but what is atomic. It is not held while the GPU is
 * asked for anything, nor while ends are called.
 */
#include "frontend/cuda/context/ctx.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/wire.h"
#include "frontend/client/thread.h"
#include "frontend/cuda/context/device.h"
#include "frontend/cuda/context/object.h"

enum init { UNKNOWN, READY, FORKED };

static struct {
	pthread_mutex_t mutex;
	uint32_t init;	  /* atomic: enum init */
	uint32_t implied; /* atomic: some face knows no contexts, */
	uint32_t devices;
	struct fgv_ctx *primary; /* of each device; made by the first fgv_ctx_init() */
	struct fgv_ctx *unused;
	uint32_t active[FGV_DEVICES_MAX]; /* contexts of each device */
	uint64_t ids;
	CUresult (*last_end)(uint32_t device);
} contexts = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void fork_prepare(void)
{
	pthread_mutex_lock(&contexts.mutex);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&contexts.mutex);
}

static void fork_child(void)
{
	if (contexts.init == READY)
		contexts.init = FORKED;
	pthread_mutex_unlock(&contexts.mutex);
}

__attribute__((constructor)) static void start(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

CUresult fgv_ctx_status(void)
{
	/* Pairs with the release in init_locked(): the primary contexts are there. */
	return __atomic_load_n(&contexts.init, __ATOMIC_ACQUIRE) == READY
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult name_locked(struct fgv_ctx *context)
{
	context->handle = fgv_object_create_for(FGV_OBJECT_CONTEXT, context);
	if (!context->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->id = ++contexts.ids;
	context->cache = CU_FUNC_CACHE_PREFER_NONE;
	context->banks = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

static CUresult init_locked(uint32_t devices)
{
	struct fgv_ctx *primary = calloc(devices, sizeof(*primary));
	CUresult res = primary ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (uint32_t i = 0; i < devices && !res; i++) {
		primary[i].device = (CUdevice)i;
		primary[i].is_primary = true;
		primary[i].api_version = FGV_CTX_API;
		res = name_locked(&primary[i]);
	}
	if (res) {
		free(primary);
		return res;
	}
	contexts.primary = primary;
	contexts.devices = devices;
	__atomic_store_n(&contexts.init, READY, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

CUresult fgv_ctx_init(void)
{
	const struct fgv_device_info *info;
	CUresult res = fgv_ctx_status();

	if (!res || __atomic_load_n(&contexts.init, __ATOMIC_RELAXED) == FORKED)
		return res;
	res = fgv_device_know(&info);
	if (!res && !info->devices)
		res = CUDA_ERROR_NO_DEVICE;
	if (res)
		return res;
	pthread_mutex_lock(&contexts.mutex);
	if (contexts.init == UNKNOWN)
		res = init_locked(info->devices);
	pthread_mutex_unlock(&contexts.mutex);
	return res;
}

CUresult fgv_ctx_find(CUcontext handle, struct fgv_ctx **context)
{
	if (!handle)
		handle = fgv_ctx_top();
	*context = fgv_object_address(FGV_OBJECT_CONTEXT, handle);
	if (*context)
		return CUDA_SUCCESS;
	return fgv_object_was(FGV_OBJECT_CONTEXT, handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
							  : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult fgv_ctx_current(struct fgv_ctx **context)
{
	CUresult res = fgv_ctx_status();

	if (!res)
		res = fgv_ctx_find(NULL, context);
	if (!res && !fgv_ctx_is_active(*context))
		res = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return res;
}

/* One that the thread may work in. */
static CUresult find_usable(CUcontext handle)
{
	struct fgv_ctx *context;
	CUresult res = handle ? fgv_ctx_find(handle, &context) : CUDA_ERROR_INVALID_CONTEXT;

	if (!res && !fgv_ctx_is_active(context) && !context->is_primary)
		res = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return res;
}

/* A thread works on the device of its context; without one, on the one that it worked on. */
static void follow_top(void)
{
	struct fgv_ctx *context;

	if (contexts.devices > 1 && !fgv_ctx_find(NULL, &context))
		fgv_device_select((uint32_t)context->device);
}

CUresult fgv_ctx_push(CUcontext handle)
{
	CUresult res = find_usable(handle);

	if (!res)
		res = fgv_ctx_stack_push(handle);
	if (!res)
		follow_top();
	return res;
}

CUresult fgv_ctx_pop(CUcontext *handle)
{
	CUcontext top = fgv_ctx_top();

	if (!fgv_ctx_stack_pop())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (handle)
		*handle = top;
	follow_top();
	return CUDA_SUCCESS;
}

CUresult fgv_ctx_set(CUcontext handle)
{
	CUresult res = handle ? find_usable(handle) : CUDA_SUCCESS;

	if (res)
		return res;
	if (!handle)
		fgv_ctx_stack_pop();
	else if (!fgv_ctx_top())
		res = fgv_ctx_stack_push(handle);
	else
		fgv_ctx_stack_replace(handle);
	if (!res)
		follow_top();
	return res;
}

bool fgv_ctx_are_flags(unsigned flags)
{
	unsigned schedule = flags & CU_CTX_SCHED_MASK;

	return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) && !(schedule & (schedule - 1));
}

CUresult fgv_ctx_set_flags(struct fgv_ctx *context, unsigned flags)
{
	if (!fgv_ctx_are_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&context->flags, flags, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static void activate_locked(struct fgv_ctx *context)
{
	contexts.active[context->device] += !context->active;
	__atomic_store_n(&context->active, 1, __ATOMIC_RELEASE);
}

/* A structure that nobody uses; NULL: no memory. */
static struct fgv_ctx *take_locked(void)
{
	struct fgv_ctx *context = contexts.unused;

	if (!context)
		return calloc(1, sizeof(*context));
	contexts.unused = context->next;
	context->next = NULL;
	return context;
}

static CUresult make_locked(CUdevice device, unsigned flags, uint32_t api_version,
			    struct fgv_ctx **made)
{
	struct fgv_ctx *context = take_locked();
	CUresult res = context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	if (res)
		return res;
	context->device = device;
	context->flags = flags;
	context->api_version = api_version;
	context->uses = 1;
	res = name_locked(context);
	if (!res) {
		activate_locked(context);
		*made = context;
		return CUDA_SUCCESS;
	}
	context->next = contexts.unused;
	contexts.unused = context;
	return res;
}

void fgv_ctx_set_last_end(CUresult (*give_back)(uint32_t device))
{
	contexts.last_end = give_back;
}

CUresult fgv_ctx_create(CUdevice device, unsigned flags, uint32_t api_version, CUcontext *handle)
{
	struct fgv_ctx *made;
	CUresult res;

	pthread_mutex_lock(&contexts.mutex);
	res = make_locked(device, flags, api_version, &made);
	pthread_mutex_unlock(&contexts.mutex);
	if (res)
		return res;
	res = fgv_ctx_push(made->handle);
	if (res)
		fgv_ctx_destroy(made->handle);
	else
		*handle = made->handle;
	return res;
}

/* Of several threads, one ends it; *@is_last: none of its device is active any more. */
static bool deactivate(struct fgv_ctx *context, bool *is_last)
{
	bool was_active;

	pthread_mutex_lock(&contexts.mutex);
	was_active = __atomic_exchange_n(&context->active, 0, __ATOMIC_ACQ_REL);
	contexts.active[context->device] -= was_active;
	*is_last = !contexts.active[context->device];
	pthread_mutex_unlock(&contexts.mutex);
	return was_active;
}

static void keep_unused(struct fgv_ctx *context)
{
	struct fgv_object_info info;

	fgv_object_destroy(FGV_OBJECT_CONTEXT, context->handle, &info);
	pthread_mutex_lock(&contexts.mutex);
	context->next = contexts.unused;
	contexts.unused = context;
	pthread_mutex_unlock(&contexts.mutex);
}

/* What it has on the GPU goes with the last of all, since they share a context there. */
static CUresult end(struct fgv_ctx *context)
{
	CUresult res = CUDA_SUCCESS;
	bool is_last;

	if (!deactivate(context, &is_last))
		return CUDA_SUCCESS;
	fgv_ctx_storage_drain(&context->storage, context->handle);
	if (is_last)
		res = contexts.last_end((uint32_t)context->device);
	if (!context->is_primary)
		keep_unused(context);
	return res;
}

CUresult fgv_ctx_destroy(CUcontext handle)
{
	struct fgv_ctx *context;
	CUresult res = handle ? fgv_ctx_find(handle, &context) : CUDA_ERROR_INVALID_CONTEXT;

	if (!res && context->is_primary)
		res = CUDA_ERROR_INVALID_CONTEXT;
	if (res)
		return res;
	if (fgv_ctx_top() == handle)
		fgv_ctx_pop(NULL);
	return end(context);
}

CUresult fgv_ctx_attach(struct fgv_ctx *context)
{
	pthread_mutex_lock(&contexts.mutex);
	context->uses++;
	pthread_mutex_unlock(&contexts.mutex);
	return CUDA_SUCCESS;
}

CUresult fgv_ctx_detach(CUcontext handle)
{
	struct fgv_ctx *context;
	CUresult res = fgv_ctx_find(handle, &context);
	bool last;

	if (res || context->is_primary || fgv_ctx_top() != context->handle)
		return res ? res : CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&contexts.mutex);
	last = !--context->uses;
	pthread_mutex_unlock(&contexts.mutex);
	return last ? fgv_ctx_destroy(context->handle) : CUDA_SUCCESS;
}

CUresult fgv_ctx_primary(CUdevice device, struct fgv_ctx **context)
{
	CUresult res = fgv_ctx_status();

	if (res)
		return res;
	if (device < 0 || (uint32_t)device >= contexts.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*context = &contexts.primary[device];
	return CUDA_SUCCESS;
}

CUresult fgv_ctx_retain(CUdevice device, CUcontext *handle)
{
	struct fgv_ctx *primary;
	CUresult res = fgv_ctx_primary(device, &primary);

	if (res)
		return res;
	pthread_mutex_lock(&contexts.mutex);
	primary->uses++;
	activate_locked(primary);
	pthread_mutex_unlock(&contexts.mutex);
	*handle = primary->handle;
	return CUDA_SUCCESS;
}

CUresult fgv_ctx_release(CUdevice device)
{
	struct fgv_ctx *primary;
	CUresult res = fgv_ctx_primary(device, &primary);
	bool last;

	if (res)
		return res;
	pthread_mutex_lock(&contexts.mutex);
	if (!primary->uses)
		res = CUDA_ERROR_INVALID_CONTEXT;
	else
		primary->uses--;
	last = !res && !primary->uses;
	pthread_mutex_unlock(&contexts.mutex);
	return last ? end(primary) : res;
}

CUresult fgv_ctx_reset(CUdevice device)
{
	struct fgv_ctx *primary;
	CUresult res = fgv_ctx_primary(device, &primary);

	return res ? res : end(primary);
}

void fgv_ctx_imply(void)
{
	__atomic_store_n(&contexts.implied, 1, __ATOMIC_RELAXED);
}

static void retain_once(struct fgv_ctx *primary)
{
	pthread_mutex_lock(&contexts.mutex);
	if (!primary->is_implied) {
		primary->is_implied = true;
		primary->uses++;
		activate_locked(primary);
	}
	pthread_mutex_unlock(&contexts.mutex);
}

CUresult fgv_ctx_bind_to(CUdevice device)
{
	struct fgv_ctx *primary;
	CUresult res = fgv_ctx_init();

	if (!res)
		res = fgv_ctx_primary(device, &primary);
	if (res)
		return res;
	retain_once(primary);
	return fgv_ctx_set(primary->handle);
}

CUresult fgv_ctx_bind(void)
{
	if (!__atomic_load_n(&contexts.implied, __ATOMIC_RELAXED) || fgv_ctx_top())
		return CUDA_SUCCESS;
	return fgv_ctx_bind_to((CUdevice)fgv_thread_self.device);
}
