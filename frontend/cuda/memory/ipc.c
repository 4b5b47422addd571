/*
 * Handles of memory. The host knows a block by its key; where in it an allocation lies, and on
 * which of the session's GPUs, the handle says itself, which is another program's word: what is
 * mapped is no more than the block, whatever it says.
 */
#include "frontend/cuda/memory/ipc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/vmem.h"
#include "frontend/cuda/stream/capturing.h"

#define MAGIC 0x3152485356474661ull

/* What is in a handle. */
struct content {
	uint64_t magic;
	uint64_t program; /* whose it is; random */
	uint64_t key[2];
	uint64_t offset; /* of the allocation in its block */
	uint32_t device;
	uint32_t reserved[5];
};
_Static_assert(sizeof(struct content) == sizeof(CUipcMemHandle), "as CUDA has it");

struct opened {
	LIST_ENTRY(opened) link;
	struct content content;
	uint64_t address, bytes; /* of the block, here */
	uint32_t memory;	 /* the host's handle */
	unsigned count;
};

static struct {
	pthread_mutex_t mutex;
	uint64_t program; /* 0: it has made no handle yet */
	LIST_HEAD(, opened) list;
} ipc = {.mutex = PTHREAD_MUTEX_INITIALIZER};

uint64_t fgv_ipc_program(void)
{
	uint64_t number;

	pthread_mutex_lock(&ipc.mutex);
	if (!ipc.program && getrandom(&ipc.program, sizeof(ipc.program), 0) < 0)
		ipc.program = 0;
	number = ipc.program;
	pthread_mutex_unlock(&ipc.mutex);
	return number;
}

/* --- Getting --- */

static CUresult share(struct fgv_lane *lane, struct content *content, uint64_t start)
{
	uint64_t bytes;
	CUresult res = fgv_call_memory_share(lane, start, content->key, &content->offset, &bytes);

	return res == CUDA_ERROR_NOT_SUPPORTED
		       ? FGV_UNSUPPORTED("sharing memory with other programs")
		       : res;
}

CUresult fgv_ipc_get(CUipcMemHandle *handle, CUdeviceptr pointer)
{
	struct content content = {.magic = MAGIC};
	struct fgv_range_view view;
	struct fgv_lane *lane;
	CUresult res = handle ? fgv_context_need() : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	if (fgv_addrmap_look(pointer, 1, &view) == FGV_FIT_UNKNOWN || view.kind != FGV_RANGE_MEMORY)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_context_enter_on(view.device, &lane);
	if (res)
		return res;
	content.program = fgv_ipc_program();
	content.device = view.device;
	res = share(lane, &content, view.start);
	fgv_lane_leave(lane);
	if (!res)
		memcpy(handle, &content, sizeof(content));
	return res;
}

/* --- Opening --- */

static struct opened *find_locked(const struct content *content)
{
	struct opened *opened;

	LIST_FOREACH(opened, &ipc.list, link) {
		if (!memcmp(&opened->content, content, sizeof(*content)))
			return opened;
	}
	return NULL;
}

/* One that is open already is open once more. */
static bool open_again(const struct content *content, CUdeviceptr *pointer)
{
	struct opened *opened;

	pthread_mutex_lock(&ipc.mutex);
	opened = find_locked(content);
	if (opened) {
		opened->count++;
		*pointer = opened->address + content->offset;
	}
	pthread_mutex_unlock(&ipc.mutex);
	return opened;
}

/* Its memory is nowhere any more, and its addresses nobody's. Without a lane. */
static void release(const struct opened *opened)
{
	struct fgv_lane *lane;

	if (opened->address)
		fgv_vmem_free(opened->address, opened->bytes);
	if (fgv_context_enter_on(opened->content.device, &lane))
		return;
	fgv_post_memory_release(lane, opened->memory);
	fgv_lane_leave(lane);
}

static void unmap_on(struct fgv_lane *lane, const struct opened *opened)
{
	fgv_addrmap_remove(opened->address, FGV_RANGE_MAPPED);
	fgv_call_memory_unmap(lane, opened->address, opened->bytes);
}

static void unmap(const struct opened *opened)
{
	struct fgv_lane *lane;

	if (!fgv_context_enter_on(opened->content.device, &lane)) {
		unmap_on(lane, opened);
		fgv_lane_leave(lane);
	}
	release(opened);
}

static CUresult map_on(struct fgv_lane *lane, const struct opened *made)
{
	CUresult res = fgv_call_memory_map(lane, made->address, made->bytes, 0, made->memory);

	if (res)
		return res;
	res = fgv_call_memory_access(lane, made->address, made->bytes,
				     CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (!res &&
	    fgv_addrmap_add_on(lane->client->device, made->address, made->bytes, FGV_RANGE_MAPPED))
		res = CUDA_ERROR_OUT_OF_MEMORY;
	if (res)
		fgv_call_memory_unmap(lane, made->address, made->bytes);
	return res;
}

/* Addresses are the program's, and memory is the device's: each is asked for by itself. */
static CUresult map(struct opened *made)
{
	CUdeviceptr address = 0;
	struct fgv_lane *lane;
	CUresult res = fgv_vmem_reserve(&address, made->bytes, 0, 0, 0);

	made->address = address;
	if (!res)
		res = fgv_context_enter_on(made->content.device, &lane);
	if (res)
		return res;
	res = map_on(lane, made);
	fgv_lane_leave(lane);
	return res;
}

static CUresult import(struct opened *made)
{
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(made->content.device, &lane);

	if (res)
		return res;
	res = fgv_call_memory_import(lane, made->content.key, &made->memory, &made->bytes);
	fgv_lane_leave(lane);
	if (res)
		return res;
	res = made->content.offset < made->bytes ? map(made) : CUDA_ERROR_INVALID_HANDLE;
	if (res)
		release(made);
	return res;
}

/* Of two threads that open the same, one finds that the other has. */
static bool insert(struct opened *made)
{
	struct opened *other;

	pthread_mutex_lock(&ipc.mutex);
	other = find_locked(&made->content);
	if (other)
		other->count++;
	else
		LIST_INSERT_HEAD(&ipc.list, made, link);
	pthread_mutex_unlock(&ipc.mutex);
	return !other;
}

static CUresult open_new(const struct content *content, CUdeviceptr *pointer)
{
	struct opened *made = calloc(1, sizeof(*made));
	CUresult res;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->content = *content;
	made->count = 1;
	res = import(made);
	if (res == CUDA_ERROR_NOT_SUPPORTED)
		res = FGV_UNSUPPORTED("sharing memory with other programs");
	if (!res && insert(made)) {
		*pointer = made->address + content->offset;
		return CUDA_SUCCESS;
	}
	if (!res) {
		unmap(made);
		res = open_again(content, pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	free(made);
	return res;
}

CUresult fgv_ipc_open(CUdeviceptr *pointer, const CUipcMemHandle *handle, unsigned flags)
{
	const struct fgv_device_info *info;
	struct content content;
	CUresult res;

	if (!pointer || (flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&content, handle, sizeof(content));
	if (content.magic != MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	res = fgv_capturing_check_unsafe();
	if (!res)
		res = fgv_context_need();
	if (!res && content.program == fgv_ipc_program())
		res = CUDA_ERROR_INVALID_CONTEXT;
	if (!res)
		res = fgv_context_find_device((int)content.device, &info);
	if (res || open_again(&content, pointer))
		return res;
	return open_new(&content, pointer);
}

/* --- Closing --- */

/* Takes one out with which it is open no more; *@is_open: it was at all. */
static struct opened *take(CUdeviceptr pointer, bool *is_open)
{
	struct opened *opened;

	pthread_mutex_lock(&ipc.mutex);
	LIST_FOREACH(opened, &ipc.list, link) {
		if (opened->address + opened->content.offset == pointer)
			break;
	}
	*is_open = opened;
	if (opened && --opened->count)
		opened = NULL;
	if (opened)
		LIST_REMOVE(opened, link);
	pthread_mutex_unlock(&ipc.mutex);
	return opened;
}

CUresult fgv_ipc_close(CUdeviceptr pointer)
{
	struct opened *last;
	bool is_open;
	CUresult res = fgv_capturing_check_unsafe();

	if (!res)
		res = fgv_context_need();
	if (res)
		return res;
	last = take(pointer, &is_open);
	if (last)
		unmap(last);
	free(last);
	return is_open ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct opened *take_of(uint32_t device)
{
	struct opened *opened;

	pthread_mutex_lock(&ipc.mutex);
	LIST_FOREACH(opened, &ipc.list, link) {
		if (opened->content.device == device)
			break;
	}
	if (opened)
		LIST_REMOVE(opened, link);
	pthread_mutex_unlock(&ipc.mutex);
	return opened;
}

void fgv_ipc_drain(uint32_t device)
{
	struct opened *opened;

	while ((opened = take_of(device))) {
		unmap(opened);
		free(opened);
	}
}
