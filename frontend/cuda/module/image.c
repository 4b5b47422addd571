/*
 * Finding the containers of a fat binary. The wrapper, the array of version 2 and the
 * containers lie in the program's own segments, whose bounds the dynamic linker
 * knows; nothing is read past them. Where something else made them, in memory that it
 * allocated, their own lengths have to do.
 */
#define _GNU_SOURCE
#include "frontend/cuda/module/image.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fatbin.h"

#define WRAPPER_MAGIC	0x466243b1u
#define FILE_MAX	(1l << 31)
#define CONTAINER_MAGIC 0xba55ed50u
#define LEN_MAX		(1ull << 31) /* of a container; the largest seen is 11 MB */
#define PARTS_MAX	4096	     /* separately compiled files in one program */

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	const void *const *more; /* version 2: containers, up to a NULL */
};

struct search {
	uintptr_t address;
	uint64_t left; /* bytes from it to its segment's end */
};

static int look_in_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || search->address - start >= segment->p_memsz)
			continue;
		search->left = segment->p_memsz - (search->address - start);
		return 1;
	}
	return 0;
}

/* How many bytes at @data may be read; without end if it is in no loaded object. */
static uint64_t readable(const void *data)
{
	struct search search = {.address = (uintptr_t)data, .left = UINT64_MAX};

	dl_iterate_phdr(look_in_object, &search);
	return search.left;
}

int fgv_image_container(const void *data, struct fgv_image_part *part)
{
	uint64_t left = readable(data);
	size_t len;

	if (!data || fgv_fatbin_extent(data, left, &len) < 0 || len > LEN_MAX)
		return -EBADMSG;
	part->data = data;
	part->len = len;
	return 0;
}

enum fgv_image_kind fgv_image_kind(const void *data)
{
	uint32_t magic;

	memcpy(&magic, data, sizeof(magic));
	if (magic == WRAPPER_MAGIC)
		return FGV_IMAGE_WRAPPER;
	if (magic == CONTAINER_MAGIC)
		return FGV_IMAGE_CONTAINER;
	return memcmp(data, ELFMAG, SELFMAG) ? FGV_IMAGE_TEXT : FGV_IMAGE_ELF;
}

/* How many containers @more lists; -EBADMSG if it does not end. */
static int count_more(const void *const *more)
{
	uint64_t left = readable(more) / sizeof(*more);

	for (int i = 0; i < PARTS_MAX && (uint64_t)i < left; i++) {
		if (!more[i])
			return i;
	}
	return -EBADMSG;
}

static int read_wrapper(const void *data, struct wrapper *wrapper)
{
	if (!data || readable(data) < sizeof(*wrapper))
		return -EBADMSG;
	memcpy(wrapper, data, sizeof(*wrapper));
	if (wrapper->magic != WRAPPER_MAGIC || wrapper->version < 1 || wrapper->version > 2)
		return -EBADMSG;
	/* In version 1 the field is a file's name. */
	if (wrapper->version == 1)
		wrapper->more = NULL;
	return 0;
}

int fgv_image_read(const void *wrapper_data, struct fgv_image_part **parts, uint32_t *count)
{
	struct wrapper wrapper;
	struct fgv_image_part *list;
	int err = read_wrapper(wrapper_data, &wrapper);
	int more = 0;

	if (!err && wrapper.more)
		more = count_more(wrapper.more);
	if (err || more < 0)
		return -EBADMSG;
	list = calloc((size_t)more + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	err = fgv_image_container(wrapper.data, &list[0]);
	for (int i = 0; i < more && !err; i++)
		err = fgv_image_container(wrapper.more[i], &list[i + 1]);
	if (err) {
		free(list);
		return err;
	}
	*parts = list;
	*count = (uint32_t)more + 1;
	return 0;
}

/* All of @file. */
static CUresult read_file(FILE *file, char **data, size_t *len)
{
	long size = -1;

	if (!fseek(file, 0, SEEK_END))
		size = ftell(file);
	if (size <= 0 || size > FILE_MAX || fseek(file, 0, SEEK_SET))
		return CUDA_ERROR_INVALID_IMAGE;
	*len = (size_t)size;
	*data = malloc(*len);
	if (!*data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (fread(*data, 1, *len, file) == *len)
		return CUDA_SUCCESS;
	free(*data);
	return CUDA_ERROR_INVALID_IMAGE;
}

CUresult fgv_image_read_file(const char *name, char **data, size_t *len)
{
	FILE *file = fopen(name, "re");
	CUresult res;

	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	res = read_file(file, data, len);
	fclose(file);
	return res;
}
