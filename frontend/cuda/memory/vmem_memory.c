/*
 * Memory without an address. A handle is the device's ordinal and the host's number, which the
 * program may hold several times; mappings and open descriptors are uses, which keep the memory as
 * well.
 *
 * A descriptor is the reading end of a pipe. It is known again by its inode, whichever way it went,
 * and this process's end says when nobody has it any more. Where programs of the VM may share
 * memory, its key is in the pipe, from which another program copies it.
 */
#define _GNU_SOURCE
#include "frontend/cuda/memory/vmem_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/module/ptrhash.h"

struct fgv_vmem_memory {
	CUmemGenericAllocationHandle handle;
	unsigned handles; /* that the program holds */
	unsigned uses;
	CUmemAllocationProp prop;
};

#define TOKEN_MAGIC 0x31544b5356474661ull

/* What is in a descriptor's pipe. */
struct token {
	uint64_t magic;
	uint64_t key[2];
	uint32_t device; /* its ordinal */
	uint32_t reserved;
};

/* Memory for which a descriptor is open. */
struct shared {
	LIST_ENTRY(shared) link;
	struct fgv_vmem_memory *memory;
	int end_fd;
	dev_t device;
	ino_t inode;
};

static struct {
	pthread_mutex_t mutex;
	struct fgv_ptrhash memories; /* by handle */
	LIST_HEAD(shared_list, shared) shared;
	/* By CUmemAllocationGranularity_flags; 0: not known yet. */
	uint64_t granularity[FGV_DEVICES_MAX][2];
} vmem = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static CUmemGenericAllocationHandle handle_of(uint32_t device, uint32_t host_handle)
{
	return (CUmemGenericAllocationHandle)device << 32 | host_handle;
}

static void *key_of(CUmemGenericAllocationHandle handle)
{
	return (void *)(uintptr_t)handle;
}

/* One that the program holds. */
static struct fgv_vmem_memory *find_locked(CUmemGenericAllocationHandle handle)
{
	struct fgv_vmem_memory *found =
		handle ? fgv_ptrhash_find(&vmem.memories, key_of(handle)) : NULL;

	return found && found->handles ? found : NULL;
}

/* Once nobody has it, it is forgotten here, and the caller's to release. */
static bool is_over_locked(struct fgv_vmem_memory *memory)
{
	if (memory->handles || memory->uses)
		return false;
	fgv_ptrhash_remove(&vmem.memories, key_of(memory->handle));
	return true;
}

static void release(struct fgv_vmem_memory *memory)
{
	struct fgv_lane *lane;

	if (!fgv_context_enter_on(fgv_vmem_device(memory), &lane)) {
		fgv_post_memory_release(lane, fgv_vmem_host_handle(memory));
		fgv_lane_leave(lane);
	}
	free(memory);
}

struct fgv_vmem_memory *fgv_vmem_get(CUmemGenericAllocationHandle handle)
{
	struct fgv_vmem_memory *found;

	pthread_mutex_lock(&vmem.mutex);
	found = find_locked(handle);
	if (found)
		found->uses++;
	pthread_mutex_unlock(&vmem.mutex);
	return found;
}

void fgv_vmem_put(struct fgv_vmem_memory *memory)
{
	bool is_over;

	pthread_mutex_lock(&vmem.mutex);
	memory->uses--;
	is_over = is_over_locked(memory);
	pthread_mutex_unlock(&vmem.mutex);
	if (is_over)
		release(memory);
}

uint32_t fgv_vmem_device(const struct fgv_vmem_memory *memory)
{
	return (uint32_t)(memory->handle >> 32);
}

uint32_t fgv_vmem_host_handle(const struct fgv_vmem_memory *memory)
{
	return (uint32_t)memory->handle;
}

unsigned fgv_vmem_handle_types(const struct fgv_vmem_memory *memory)
{
	return (unsigned)memory->prop.requestedHandleTypes;
}

CUmemGenericAllocationHandle fgv_vmem_add_handle(struct fgv_vmem_memory *memory)
{
	pthread_mutex_lock(&vmem.mutex);
	memory->handles++;
	pthread_mutex_unlock(&vmem.mutex);
	return memory->handle;
}

/* --- Making it --- */

CUresult fgv_vmem_check_location(const CUmemLocation *location)
{
	const struct fgv_device_info *info;

	switch ((int)location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return fgv_context_find_device(location->id, &info);
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return FGV_UNSUPPORTED("virtual memory of the host");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* PyTorch tries handles of the fabric before descriptors, which is nothing to tell its user of. */
static CUresult refuse_types(void)
{
	static struct fgv_unsupported unsupported = {
		.name = "handles of memory other than descriptors"};

	fgv_errlog_unsupported_quietly(&unsupported);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	const unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 |
			       CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;
	unsigned types = prop ? (unsigned)prop->requestedHandleTypes : 0;

	if (!prop || (types & ~known) || prop->win32HandleMetaData)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return prop->type == CU_MEM_ALLOCATION_TYPE_MANAGED
			       ? FGV_UNSUPPORTED("managed virtual memory")
			       : CUDA_ERROR_INVALID_VALUE;
	if (types & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return refuse_types();
	if (prop->allocFlags.gpuDirectRDMACapable)
		return FGV_UNSUPPORTED("virtual memory for GPUDirect RDMA");
	if (prop->allocFlags.usage)
		return FGV_UNSUPPORTED("memory for sparse arrays");
	return fgv_vmem_check_location(&prop->location);
}

static CUresult ask_granularity(struct fgv_lane *lane, unsigned option, uint64_t *bytes)
{
	uint64_t *known = &vmem.granularity[lane->client->device][option];
	CUresult res = CUDA_SUCCESS;

	*bytes = __atomic_load_n(known, __ATOMIC_RELAXED);
	if (!*bytes) {
		res = fgv_call_memory_granularity(lane, option, bytes);
		/* Sizes are divided by it. */
		if (!res && !*bytes)
			res = CUDA_ERROR_UNKNOWN;
		if (!res)
			__atomic_store_n(known, *bytes, __ATOMIC_RELAXED);
	}
	return res;
}

CUresult fgv_vmem_granularity(size_t *bytes, const CUmemAllocationProp *prop,
			      CUmemAllocationGranularity_flags option)
{
	struct fgv_lane *lane;
	uint64_t found;
	CUresult res;

	if (!bytes || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	res = check_prop(prop);
	if (!res)
		res = fgv_context_enter_on((uint32_t)prop->location.id, &lane);
	if (res)
		return res;
	res = ask_granularity(lane, option, &found);
	fgv_lane_leave(lane);
	if (!res)
		*bytes = found;
	return res;
}

/* What is not compressed says so. */
static CUresult keep(CUmemGenericAllocationHandle handle, const CUmemAllocationProp *prop)
{
	struct fgv_vmem_memory *made = malloc(sizeof(*made));
	int err = -EEXIST;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = (struct fgv_vmem_memory){.handle = handle, .handles = 1, .prop = *prop};
	memset(&made->prop.allocFlags, 0, sizeof(made->prop.allocFlags));
	pthread_mutex_lock(&vmem.mutex);
	if ((uint32_t)handle && !fgv_ptrhash_find(&vmem.memories, key_of(handle)))
		err = fgv_ptrhash_set(&vmem.memories, key_of(handle), made);
	pthread_mutex_unlock(&vmem.mutex);
	if (!err)
		return CUDA_SUCCESS;
	free(made);
	/* Else other memory would go with it. */
	return err == -EEXIST ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- Descriptors --- */

static bool is_closed(const struct shared *shared)
{
	struct pollfd end = {.fd = shared->end_fd};

	return poll(&end, 1, 0) == 1 && (end.revents & POLLERR);
}

/* Takes one out that nobody has any more; or NULL. */
static struct shared *take_closed(void)
{
	struct shared *shared;

	pthread_mutex_lock(&vmem.mutex);
	LIST_FOREACH(shared, &vmem.shared, link) {
		if (is_closed(shared))
			break;
	}
	if (shared)
		LIST_REMOVE(shared, link);
	pthread_mutex_unlock(&vmem.mutex);
	return shared;
}

static void drop_shared(struct shared *shared)
{
	close(shared->end_fd);
	fgv_vmem_put(shared->memory);
	free(shared);
}

static void sweep(void)
{
	struct shared *closed;

	while ((closed = take_closed()))
		drop_shared(closed);
}

/* A pipe whose writing end is @shared's; its reading end, or -1. */
static int open_shared(struct shared *shared)
{
	struct stat status;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	if (fstat(fds[0], &status) < 0) {
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	shared->end_fd = fds[1];
	shared->device = status.st_dev;
	shared->inode = status.st_ino;
	return fds[0];
}

/* Where nothing is shared with other programs it is of no use to them, and good in this one. */
static CUresult tell_key(const struct shared *shared)
{
	struct token token = {.magic = TOKEN_MAGIC, .device = fgv_vmem_device(shared->memory)};
	struct fgv_lane *lane;
	CUresult res = fgv_context_enter_on(token.device, &lane);

	if (res)
		return res;
	res = fgv_call_memory_export(lane, fgv_vmem_host_handle(shared->memory), token.key);
	fgv_lane_leave(lane);
	if (res)
		return res == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : res;
	return write(shared->end_fd, &token, sizeof(token)) == sizeof(token)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OPERATING_SYSTEM;
}

/* Takes over @memory's use, unless it fails. */
static CUresult add_shared(struct fgv_vmem_memory *memory, int *fd)
{
	struct shared *made = malloc(sizeof(*made));
	CUresult res;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->memory = memory;
	*fd = open_shared(made);
	if (*fd < 0) {
		free(made);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	res = tell_key(made);
	if (res) {
		close(*fd);
		close(made->end_fd);
		free(made);
		return res;
	}
	pthread_mutex_lock(&vmem.mutex);
	LIST_INSERT_HEAD(&vmem.shared, made, link);
	pthread_mutex_unlock(&vmem.mutex);
	return CUDA_SUCCESS;
}

CUresult fgv_vmem_export(void *shareable, CUmemGenericAllocationHandle handle,
			 CUmemAllocationHandleType type, unsigned long long flags)
{
	struct fgv_vmem_memory *memory;
	CUresult res = CUDA_ERROR_INVALID_VALUE;
	int fd;

	if (!shareable || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	sweep();
	memory = fgv_vmem_get(handle);
	if (memory && (fgv_vmem_handle_types(memory) & type))
		res = add_shared(memory, &fd);
	if (res && memory)
		fgv_vmem_put(memory);
	if (!res)
		memcpy(shareable, &fd, sizeof(fd));
	return res;
}

/* False: it is none of this process's. */
static bool import_own(const struct stat *status, CUmemGenericAllocationHandle *handle)
{
	struct shared *shared;

	pthread_mutex_lock(&vmem.mutex);
	LIST_FOREACH(shared, &vmem.shared, link) {
		if (shared->device == status->st_dev && shared->inode == status->st_ino)
			break;
	}
	if (shared) {
		shared->memory->handles++;
		*handle = shared->memory->handle;
	}
	pthread_mutex_unlock(&vmem.mutex);
	return shared;
}

/* What is in the pipe stays there, for others that have its descriptor. */
static bool read_token(int fd, struct token *token)
{
	bool is_read = false;
	int copy[2];

	if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	if (tee(fd, copy[1], sizeof(*token), SPLICE_F_NONBLOCK) == sizeof(*token))
		is_read = read(copy[0], token, sizeof(*token)) == sizeof(*token);
	close(copy[0]);
	close(copy[1]);
	return is_read && token->magic == TOKEN_MAGIC;
}

static CUresult import_on(struct fgv_lane *lane, const struct token *token,
			  CUmemGenericAllocationHandle *handle)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)token->device},
	};
	uint64_t bytes;
	uint32_t made;
	CUresult res = fgv_call_memory_import(lane, token->key, &made, &bytes);

	if (res)
		return res;
	*handle = handle_of(token->device, made);
	res = keep(*handle, &prop);
	if (res == CUDA_ERROR_OUT_OF_MEMORY)
		fgv_post_memory_release(lane, made);
	return res;
}

/* What another program of the VM has exported. */
static CUresult import_other(int fd, CUmemGenericAllocationHandle *handle)
{
	const struct fgv_device_info *info;
	CUmemGenericAllocationHandle made = 0;
	struct fgv_lane *lane;
	struct token token;
	CUresult res;

	if (!read_token(fd, &token))
		return FGV_UNSUPPORTED("memory of another process");
	sweep();
	res = fgv_context_find_device((int)token.device, &info);
	if (!res)
		res = fgv_context_enter_on(token.device, &lane);
	if (res)
		return res;
	res = import_on(lane, &token, &made);
	fgv_lane_leave(lane);
	if (!res)
		*handle = made;
	return res;
}

CUresult fgv_vmem_import(CUmemGenericAllocationHandle *handle, void *shareable,
			 CUmemAllocationHandleType type)
{
	int fd = (int)(intptr_t)shareable;
	struct stat status;
	CUresult res;

	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(fd, &status) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (import_own(&status, handle))
		return CUDA_SUCCESS;
	res = import_other(fd, handle);
	/* There is no such memory (any more). */
	return res == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : res;
}

/* --- What programs call --- */

static CUresult create_on(struct fgv_lane *lane, uint64_t bytes, const CUmemAllocationProp *prop,
			  CUmemGenericAllocationHandle *handle)
{
	uint32_t made = 0;
	uint64_t granule;
	CUresult res = ask_granularity(lane, CU_MEM_ALLOC_GRANULARITY_MINIMUM, &granule);

	if (!res && bytes % granule)
		res = CUDA_ERROR_INVALID_VALUE;
	if (!res)
		res = fgv_call_memory_create(lane, bytes, &made);
	if (res)
		return res;
	*handle = handle_of(lane->client->device, made);
	res = keep(*handle, prop);
	if (res == CUDA_ERROR_OUT_OF_MEMORY)
		fgv_post_memory_release(lane, made);
	return res;
}

CUresult fgv_vmem_create(CUmemGenericAllocationHandle *handle, size_t bytes,
			 const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUmemGenericAllocationHandle made = 0;
	struct fgv_lane *lane;
	CUresult res;

	if (!handle || !bytes || flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = check_prop(prop);
	if (res)
		return res;
	sweep();
	res = fgv_context_enter_on((uint32_t)prop->location.id, &lane);
	if (res)
		return res;
	res = create_on(lane, bytes, prop, &made);
	fgv_lane_leave(lane);
	if (!res)
		*handle = made;
	return res;
}

CUresult fgv_vmem_release(CUmemGenericAllocationHandle handle)
{
	struct fgv_vmem_memory *memory;
	bool is_over = false;

	pthread_mutex_lock(&vmem.mutex);
	memory = find_locked(handle);
	if (memory) {
		memory->handles--;
		is_over = is_over_locked(memory);
	}
	pthread_mutex_unlock(&vmem.mutex);
	if (is_over)
		release(memory);
	sweep();
	return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_vmem_get_prop(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	const struct fgv_vmem_memory *memory;

	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmem.mutex);
	memory = find_locked(handle);
	if (memory)
		*prop = memory->prop;
	pthread_mutex_unlock(&vmem.mutex);
	return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
