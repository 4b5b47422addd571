/*
 * Sharing; see sharing.h.
 */
#define _GNU_SOURCE
#include "backend/vgpu/sharing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/images/images.h"

#define PAGE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct fgv_sharing_use {
	LIST_ENTRY(fgv_sharing_use) link;
	struct fgv_key key;
	uint32_t count;
};

void fgv_sharing_init(struct fgv_sharing *sharing, struct fgv_images *keeper, struct fgv_gpu *gpu,
		      uint32_t number)
{
	*sharing = (struct fgv_sharing){.keeper = keeper, .gpu = gpu, .number = number};
	LIST_INIT(&sharing->uses);
	gpu->exports = true;
}

void fgv_sharing_fini(struct fgv_sharing *sharing)
{
	struct fgv_sharing_use *use;

	while ((use = LIST_FIRST(&sharing->uses))) {
		LIST_REMOVE(use, link);
		free(use);
	}
}

static struct fgv_sharing_use *find(const struct fgv_sharing *sharing, const struct fgv_key *key)
{
	struct fgv_sharing_use *use;

	LIST_FOREACH(use, &sharing->uses, link) {
		if (use->key.words[0] == key->words[0] && use->key.words[1] == key->words[1])
			return use;
	}
	return NULL;
}

static CUresult status_of(uint32_t error)
{
	switch (error) {
	case 0:
		return CUDA_SUCCESS;
	case ENOENT:
		return CUDA_ERROR_INVALID_HANDLE;
	case EXDEV:
		return CUDA_ERROR_INVALID_DEVICE;
	case ENOSPC:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case EPERM:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
}

/* @fd: goes with it, or -1; and then what came with the reply. */
static CUresult ask(struct fgv_sharing *sharing, const struct fgv_sharing_request *request,
		    struct fgv_sharing_reply *reply, int *fd)
{
	struct fgv_images_talk talk = {
		.request = request,
		.request_len = sizeof(*request),
		.sent_fd = *fd,
		.reply = reply,
		.reply_len = sizeof(*reply),
	};
	int ret = fgv_images_ask(sharing->keeper, &talk);

	*fd = talk.fd;
	return ret < 0 ? CUDA_ERROR_OPERATING_SYSTEM : status_of(reply->error);
}

static void tell_drop(struct fgv_sharing *sharing, const struct fgv_key *key)
{
	const struct fgv_sharing_request request = {
		.op = FGV_SHARING_DROP,
		.gpu = sharing->number,
		.key = *key,
	};
	struct fgv_images_talk talk = {
		.request = &request,
		.request_len = sizeof(request),
		.sent_fd = -1,
	};

	/* Where it does not get through, the session has it until its end. */
	fgv_images_ask(sharing->keeper, &talk);
}

/* One more of it; without memory for that the keeper is told that it is none. */
static CUresult add(struct fgv_sharing *sharing, const struct fgv_key *key)
{
	struct fgv_sharing_use *use = find(sharing, key);

	if (!use) {
		use = calloc(1, sizeof(*use));
		if (!use) {
			tell_drop(sharing, key);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		use->key = *key;
		LIST_INSERT_HEAD(&sharing->uses, use, link);
	}
	use->count++;
	return CUDA_SUCCESS;
}

void fgv_sharing_drop(struct fgv_sharing *sharing, const struct fgv_key *key)
{
	struct fgv_sharing_use *use = find(sharing, key);

	if (!use || --use->count)
		return;
	LIST_REMOVE(use, link);
	free(use);
	tell_drop(sharing, key);
}

/* Takes over @made, which is shared from now on. */
static CUresult put(struct fgv_sharing *sharing, uint32_t number, uint64_t bytes, int made,
		    struct fgv_key *key)
{
	const struct fgv_sharing_request request = {
		.op = FGV_SHARING_PUT,
		.gpu = number,
		.bytes = bytes,
	};
	struct fgv_sharing_reply reply;
	int fd = made;
	CUresult status = ask(sharing, &request, &reply, &fd);

	close(made);
	if (fd >= 0)
		close(fd);
	if (status == CUDA_SUCCESS)
		status = add(sharing, &reply.key);
	if (status == CUDA_SUCCESS)
		*key = reply.key;
	return status;
}

/* What has @key is the session's as well, by *@fd, which is the caller's. */
static CUresult get(struct fgv_sharing *sharing, uint32_t number, const struct fgv_key *key,
		    uint64_t *bytes, int *fd)
{
	const struct fgv_sharing_request request = {
		.op = FGV_SHARING_GET,
		.gpu = number,
		.key = *key,
	};
	struct fgv_sharing_reply reply;
	CUresult status;

	*fd = -1;
	status = ask(sharing, &request, &reply, fd);
	if (status != CUDA_SUCCESS)
		return status;
	status = *fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : add(sharing, key);
	*bytes = reply.bytes;
	if (status != CUDA_SUCCESS && *fd >= 0)
		close(*fd);
	return status;
}

CUresult fgv_sharing_export(struct fgv_sharing *sharing, struct fgv_gpu_memory *memory,
			    uint64_t bytes, struct fgv_key *key)
{
	CUresult status;
	int made;

	if (!sharing->keeper)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = sharing->gpu->ops->memory_export(sharing->gpu, memory, &made);
	return status == CUDA_SUCCESS ? put(sharing, sharing->number, bytes, made, key) : status;
}

CUresult fgv_sharing_import(struct fgv_sharing *sharing, const struct fgv_key *key,
			    struct fgv_gpu_memory **memory, uint64_t *bytes)
{
	CUresult status;
	int fd;

	if (!sharing->keeper)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = get(sharing, sharing->number, key, bytes, &fd);
	if (status != CUDA_SUCCESS)
		return status;
	status = sharing->gpu->ops->memory_import(sharing->gpu, fd, *bytes, memory);
	close(fd);
	if (status != CUDA_SUCCESS)
		fgv_sharing_drop(sharing, key);
	return status;
}

/* --- Words ----------------------------------------------------------------- */

/* A page that can neither shrink nor grow; or -1. */
static int make_page(void)
{
	int fd = memfd_create("fairgv-words", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 &&
	    (ftruncate(fd, FGV_PAGE_BYTES) < 0 || fcntl(fd, F_ADD_SEALS, PAGE_SEALS) < 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Whoever made it can't take the page from under the mapping. */
static bool is_page(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;

	return seals >= 0 && (seals & PAGE_SEALS) == PAGE_SEALS && fstat(fd, &status) == 0 &&
	       status.st_size == FGV_PAGE_BYTES;
}

static CUresult map_page(int fd, void **page)
{
	void *base = mmap(NULL, FGV_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*page = base;
	return CUDA_SUCCESS;
}

CUresult fgv_sharing_make_words(struct fgv_sharing *sharing, struct fgv_key *key, void **page)
{
	CUresult status;
	int fd;

	if (!sharing->keeper)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (sharing->pages >= FGV_WORDS_PAGES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = make_page();
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = map_page(fd, page);
	if (status != CUDA_SUCCESS) {
		close(fd);
		return status;
	}
	status = put(sharing, FGV_SHARED_HOST, FGV_PAGE_BYTES, fd, key);
	if (status != CUDA_SUCCESS)
		munmap(*page, FGV_PAGE_BYTES);
	else
		sharing->pages++;
	return status;
}

CUresult fgv_sharing_open_words(struct fgv_sharing *sharing, const struct fgv_key *key, void **page)
{
	uint64_t bytes;
	CUresult status;
	int fd;

	if (!sharing->keeper)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (sharing->pages >= FGV_WORDS_PAGES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = get(sharing, FGV_SHARED_HOST, key, &bytes, &fd);
	if (status != CUDA_SUCCESS)
		return status;
	status = is_page(fd) ? map_page(fd, page) : CUDA_ERROR_INVALID_HANDLE;
	close(fd);
	if (status != CUDA_SUCCESS)
		fgv_sharing_drop(sharing, key);
	else
		sharing->pages++;
	return status;
}
