/*
 * Libraries: code that the program has at run time, as PTX, as machine code or as a fat
 * binary, and loads by itself. Each is a module of which a copy is kept, so that the program
 * need not; what stands for its kernels is what does for those of the program's own.
 */
#include "frontend/cuda/module/library.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/module/image.h"
#include "frontend/cuda/module/module.h"

static struct fgv_module *module_of(CUlibrary library)
{
	return fgv_object_address(FGV_OBJECT_LIBRARY, library);
}

/* What the program holds for it, made at need. */
static CUresult name_module(struct fgv_module *module, CUlibrary *library)
{
	CUlibrary name;

	pthread_mutex_lock(&module->mutex);
	if (!module->library)
		module->library = fgv_object_create_for(FGV_OBJECT_LIBRARY, module);
	name = module->library;
	pthread_mutex_unlock(&module->mutex);
	if (!name)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*library = name;
	return CUDA_SUCCESS;
}

static CUresult load(CUlibrary *library, const void *image, uint64_t len)
{
	struct fgv_module *module;
	CUresult res;

	if (!len)
		return CUDA_ERROR_INVALID_IMAGE;
	module = fgv_registry_add_image(image, len);
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = fgv_module_enter(module);
	if (!res)
		res = name_module(module, library);
	if (res)
		fgv_registry_remove(module);
	return res;
}

/* How far the sections of machine code reach, and their table. */
static uint64_t measure_elf(const Elf64_Ehdr *elf)
{
	const Elf64_Shdr *sections = (const void *)((const uint8_t *)elf + elf->e_shoff);
	uint64_t end = elf->e_shoff + (uint64_t)elf->e_shnum * elf->e_shentsize;
	uint64_t programs = elf->e_phoff + (uint64_t)elf->e_phnum * elf->e_phentsize;

	if (programs > end)
		end = programs;
	for (unsigned i = 0; i < elf->e_shnum; i++) {
		uint64_t section = sections[i].sh_offset + sections[i].sh_size;

		if (sections[i].sh_type != SHT_NOBITS && section > end)
			end = section;
	}
	return end;
}

/* The containers of a fat binary, one after another. */
static CUresult load_containers(CUlibrary *library, const struct fgv_image_part *parts,
				uint32_t count)
{
	uint64_t len = 0, at = 0;
	uint8_t *image;
	CUresult res;

	for (uint32_t i = 0; i < count; i++)
		len += parts[i].len;
	image = malloc(len);
	if (!image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < count; at += parts[i++].len)
		memcpy(image + at, parts[i].data, parts[i].len);
	res = load(library, image, len);
	free(image);
	return res;
}

static CUresult load_wrapped(CUlibrary *library, const void *code)
{
	struct fgv_image_part *parts;
	uint32_t count;
	CUresult res;
	int err = fgv_image_read(code, &parts, &count);

	if (err)
		return err == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
	res = load_containers(library, parts, count);
	free(parts);
	return res;
}

CUresult fgv_library_load_data(CUlibrary *library, const void *code)
{
	struct fgv_image_part part;

	if (!library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	switch (fgv_image_kind(code)) {
	case FGV_IMAGE_WRAPPER:
		return load_wrapped(library, code);
	case FGV_IMAGE_CONTAINER:
		if (fgv_image_container(code, &part))
			return CUDA_ERROR_INVALID_IMAGE;
		return load(library, part.data, part.len);
	case FGV_IMAGE_ELF:
		return load(library, code, measure_elf(code));
	case FGV_IMAGE_TEXT:
		return load(library, code, strlen(code));
	}
	return CUDA_ERROR_INVALID_IMAGE;
}

CUresult fgv_library_load_file(CUlibrary *library, const char *name)
{
	CUresult res;
	size_t len;
	char *data;

	if (!library || !name)
		return CUDA_ERROR_INVALID_VALUE;
	res = fgv_image_read_file(name, &data, &len);
	if (res)
		return res;
	res = load(library, data, len);
	free(data);
	return res;
}

CUresult fgv_library_unload(CUlibrary library)
{
	struct fgv_module *module = module_of(library);
	struct fgv_object_info info;

	/* Without an image of its own it is the program's, and goes with it. */
	if (!module || !module->image || !fgv_object_destroy(FGV_OBJECT_LIBRARY, library, &info))
		return CUDA_ERROR_INVALID_HANDLE;
	fgv_registry_remove(module);
	return CUDA_SUCCESS;
}

CUresult fgv_library_get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	struct fgv_module *module = module_of(library);
	struct fgv_kernel *found, *here;
	struct fgv_lane *lane;
	CUresult res;

	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	found = here = fgv_registry_kernel_named(module, name);
	res = found ? fgv_registry_kernel_on(lane->client->device, &here)
		    : CUDA_ERROR_OUT_OF_MEMORY;
	if (!res)
		res = fgv_kernel_need(lane, here);
	fgv_lane_leave(lane);
	if (!res)
		*kernel = (CUkernel)found;
	return res;
}

CUresult fgv_library_get_global(CUdeviceptr *address, size_t *bytes, CUlibrary library,
				const char *name)
{
	struct fgv_module *module = module_of(library);
	struct fgv_variable *found;
	struct fgv_lane *lane;
	CUresult res;

	if ((!address && !bytes) || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	res = fgv_context_enter_any(&lane);
	if (res)
		return res;
	found = fgv_registry_variable_named(module, name);
	res = found ? fgv_registry_variable_on(lane->client->device, &found)
		    : CUDA_ERROR_OUT_OF_MEMORY;
	if (!res)
		res = fgv_variable_need(lane, found);
	fgv_lane_leave(lane);
	if (!res && address)
		*address = found->address;
	if (!res && bytes)
		*bytes = found->size;
	return res;
}

/* Where machine code has its managed variables is not known here: they may be among the others. */
static CUresult no_managed(CUlibrary library, const char *name)
{
	size_t bytes;

	if (fgv_image_kind(module_of(library)->image) != FGV_IMAGE_ELF ||
	    fgv_library_get_global(NULL, &bytes, library, name))
		return CUDA_ERROR_NOT_FOUND;
	return FGV_UNSUPPORTED("managed variables of a library of machine code");
}

CUresult fgv_library_get_managed(CUdeviceptr *address, size_t *bytes, CUlibrary library,
				 const char *name)
{
	struct fgv_module *module = module_of(library);
	struct fgv_variable *found;
	CUresult res;

	if ((!address && !bytes) || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	found = fgv_registry_managed_named(module, name);
	if (!found)
		return no_managed(library, name);
	/* Loaded it is, unless the device was reset. */
	res = fgv_module_enter(module);
	if (!res && address)
		*address = found->address;
	if (!res && bytes)
		*bytes = found->size;
	return res;
}

/* The names of the library's kernels, for free(), and the module that they are in. */
static CUresult list_kernels(CUlibrary library, struct fgv_module **module, char **names,
			     uint64_t *bytes)
{
	struct fgv_lane *lane;
	CUresult res;

	*module = module_of(library);
	if (!*module)
		return CUDA_ERROR_INVALID_HANDLE;
	res = fgv_context_enter_on(0, &lane);
	if (res)
		return res;
	res = fgv_module_kernel_names(lane, *module, names, bytes);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_library_count_kernels(unsigned *count, CUlibrary library)
{
	struct fgv_module *module;
	uint64_t bytes;
	char *names;
	CUresult res =
		count ? list_kernels(library, &module, &names, &bytes) : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	*count = 0;
	for (uint64_t at = 0; at < bytes; at += strlen(names + at) + 1)
		(*count)++;
	free(names);
	return CUDA_SUCCESS;
}

CUresult fgv_library_list_kernels(CUkernel *kernels, unsigned room, CUlibrary library)
{
	struct fgv_module *module;
	uint64_t bytes, at = 0;
	char *names;
	CUresult res = kernels && room ? list_kernels(library, &module, &names, &bytes)
				       : CUDA_ERROR_INVALID_VALUE;

	if (res)
		return res;
	for (unsigned i = 0; i < room && at < bytes && !res; i++) {
		kernels[i] = (CUkernel)fgv_registry_kernel_named(module, names + at);
		if (!kernels[i])
			res = CUDA_ERROR_OUT_OF_MEMORY;
		at += strlen(names + at) + 1;
	}
	free(names);
	return res;
}

CUresult fgv_library_check(CUlibrary library)
{
	return module_of(library) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fgv_library_of(struct fgv_kernel *kernel, CUlibrary *library)
{
	return name_module(kernel->module, library);
}
