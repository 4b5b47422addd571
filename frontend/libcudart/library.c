/*
 * Libraries: code that the program has at run time, as PTX, as machine code or as a fat
 * binary, and loads by itself. Each is a module of which a copy is kept, so that the program
 * need not; what stands for its kernels is what does for those of the program's own.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/module/image.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/module/registry.h"
#include "frontend/libcudart/cudart.h"

#define FILE_MAX (1l << 31)

static struct fgv_module *module_of(cudaLibrary_t library)
{
	return fgv_object_address(FGV_OBJECT_LIBRARY, library);
}

static cudaError_t load_module(struct fgv_module *module)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_module_need(lane, module));
	fgv_lane_leave(lane);
	return error;
}

static cudaError_t find_managed(struct fgv_module *module)
{
	struct fgv_lane *lane;
	cudaError_t error = fgv_enter(&lane);

	if (error)
		return error;
	error = fgv_error_from(fgv_module_find_managed(lane, module));
	fgv_lane_leave(lane);
	return error;
}

static cudaError_t load(cudaLibrary_t *library, const void *image, uint64_t len)
{
	struct fgv_module *module;
	cudaLibrary_t made = NULL;
	cudaError_t error;

	if (!len)
		return cudaErrorInvalidKernelImage;
	module = fgv_registry_add_image(image, len);
	if (!module)
		return cudaErrorMemoryAllocation;
	error = find_managed(module);
	if (!error)
		error = load_module(module);
	if (!error) {
		made = fgv_object_create_for(FGV_OBJECT_LIBRARY, module);
		if (!made)
			error = cudaErrorMemoryAllocation;
	}
	if (error)
		fgv_registry_remove(module);
	else
		*library = made;
	return error;
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
static cudaError_t load_containers(cudaLibrary_t *library, const struct fgv_image_part *parts,
				   uint32_t count)
{
	uint64_t len = 0, at = 0;
	uint8_t *image;
	cudaError_t error;

	for (uint32_t i = 0; i < count; i++)
		len += parts[i].len;
	image = malloc(len);
	if (!image)
		return cudaErrorMemoryAllocation;
	for (uint32_t i = 0; i < count; at += parts[i++].len)
		memcpy(image + at, parts[i].data, parts[i].len);
	error = load(library, image, len);
	free(image);
	return error;
}

static cudaError_t load_wrapped(cudaLibrary_t *library, const void *code)
{
	struct fgv_image_part *parts;
	uint32_t count;
	cudaError_t error;
	int err = fgv_image_read(code, &parts, &count);

	if (err)
		return err == -ENOMEM ? cudaErrorMemoryAllocation : cudaErrorInvalidKernelImage;
	error = load_containers(library, parts, count);
	free(parts);
	return error;
}

static cudaError_t load_data(cudaLibrary_t *library, const void *code)
{
	struct fgv_image_part part;

	switch (fgv_image_kind(code)) {
	case FGV_IMAGE_WRAPPER:
		return load_wrapped(library, code);
	case FGV_IMAGE_CONTAINER:
		if (fgv_image_container(code, &part))
			return cudaErrorInvalidKernelImage;
		return load(library, part.data, part.len);
	case FGV_IMAGE_ELF:
		return load(library, code, measure_elf(code));
	case FGV_IMAGE_TEXT:
		return load(library, code, strlen(code));
	}
	return cudaErrorInvalidKernelImage;
}

/* That the code is kept unchanged is no more than a promise; what else there is says what to do. */
static cudaError_t check(const cudaLibrary_t *library, const void *source, unsigned jit_count,
			 const enum cudaLibraryOption *options, unsigned count)
{
	if (!library || !source)
		return cudaErrorInvalidValue;
	if (jit_count)
		return FGV_NOT_SUPPORTED("options of the compiler in cudaLibraryLoadData");
	if (count && !options)
		return cudaErrorInvalidValue;
	for (unsigned i = 0; i < count; i++) {
		if (options[i] != cudaLibraryBinaryIsPreserved)
			return FGV_NOT_SUPPORTED("options of cudaLibraryLoadData");
	}
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
					   enum cudaJitOption *jitOptions, void **jitOptionsValues,
					   unsigned int numJitOptions,
					   enum cudaLibraryOption *libraryOptions,
					   void **libraryOptionValues,
					   unsigned int numLibraryOptions)
{
	cudaError_t error = check(library, code, numJitOptions, libraryOptions, numLibraryOptions);

	(void)jitOptions, (void)jitOptionsValues, (void)libraryOptionValues;
	if (!error)
		error = load_data(library, code);
	return fgv_error_set(error);
}

/* All of @file. */
static cudaError_t read_file(FILE *file, char **data, size_t *len)
{
	long size = -1;

	if (!fseek(file, 0, SEEK_END))
		size = ftell(file);
	if (size <= 0 || size > FILE_MAX || fseek(file, 0, SEEK_SET))
		return cudaErrorInvalidKernelImage;
	*len = (size_t)size;
	*data = malloc(*len);
	if (!*data)
		return cudaErrorMemoryAllocation;
	if (fread(*data, 1, *len, file) == *len)
		return cudaSuccess;
	free(*data);
	return cudaErrorInvalidKernelImage;
}

static cudaError_t load_file(cudaLibrary_t *library, const char *name)
{
	FILE *file = fopen(name, "re");
	cudaError_t error;
	size_t len;
	char *data;

	if (!file)
		return cudaErrorFileNotFound;
	error = read_file(file, &data, &len);
	fclose(file);
	if (error)
		return error;
	error = load(library, data, len);
	free(data);
	return error;
}

FGV_EXPORT cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
					       enum cudaJitOption *jitOptions,
					       void **jitOptionsValues, unsigned int numJitOptions,
					       enum cudaLibraryOption *libraryOptions,
					       void **libraryOptionValues,
					       unsigned int numLibraryOptions)
{
	cudaError_t error =
		check(library, fileName, numJitOptions, libraryOptions, numLibraryOptions);

	(void)jitOptions, (void)jitOptionsValues, (void)libraryOptionValues;
	if (!error)
		error = load_file(library, fileName);
	return fgv_error_set(error);
}

static cudaError_t unload(cudaLibrary_t library)
{
	struct fgv_module *module = module_of(library);
	struct fgv_object_info info;

	if (!module || !fgv_object_destroy(FGV_OBJECT_LIBRARY, library, &info))
		return cudaErrorInvalidResourceHandle;
	fgv_registry_remove(module);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	return fgv_error_set(unload(library));
}

static cudaError_t of_symbol(CUresult res)
{
	return res == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound : fgv_error_from(res);
}

static cudaError_t get_kernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	struct fgv_module *module = module_of(library);
	struct fgv_kernel *found;
	struct fgv_lane *lane;
	cudaError_t error;

	if (!kernel || !name)
		return cudaErrorInvalidValue;
	if (!module)
		return cudaErrorInvalidResourceHandle;
	error = fgv_enter(&lane);
	if (error)
		return error;
	found = fgv_registry_kernel_named(module, name);
	error = found ? of_symbol(fgv_kernel_need(lane, found)) : cudaErrorMemoryAllocation;
	fgv_lane_leave(lane);
	if (!error)
		*kernel = (cudaKernel_t)found;
	return error;
}

FGV_EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library,
					    const char *name)
{
	return fgv_error_set(get_kernel(pKernel, library, name));
}

static cudaError_t get_global(void **address, size_t *bytes, cudaLibrary_t library,
			      const char *name)
{
	struct fgv_module *module = module_of(library);
	struct fgv_variable *found;
	struct fgv_lane *lane;
	cudaError_t error;

	if ((!address && !bytes) || !name)
		return cudaErrorInvalidValue;
	if (!module)
		return cudaErrorInvalidResourceHandle;
	error = fgv_enter(&lane);
	if (error)
		return error;
	found = fgv_registry_variable_named(module, name);
	error = found ? of_symbol(fgv_variable_need(lane, found)) : cudaErrorMemoryAllocation;
	fgv_lane_leave(lane);
	if (!error && address)
		*address = (void *)(uintptr_t)found->address;
	if (!error && bytes)
		*bytes = found->size;
	return error;
}

FGV_EXPORT cudaError_t cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library,
					    const char *name)
{
	return fgv_error_set(get_global(dptr, bytes, library, name));
}

/* Where machine code has its managed variables is not known here: they may be among the others. */
static cudaError_t no_managed(cudaLibrary_t library, const char *name)
{
	size_t bytes;

	if (fgv_image_kind(module_of(library)->image) != FGV_IMAGE_ELF ||
	    get_global(NULL, &bytes, library, name))
		return cudaErrorSymbolNotFound;
	return FGV_NOT_SUPPORTED("managed variables of a library of machine code");
}

static cudaError_t get_managed(void **address, size_t *bytes, cudaLibrary_t library,
			       const char *name)
{
	struct fgv_module *module = module_of(library);
	struct fgv_variable *found;
	cudaError_t error;

	if ((!address && !bytes) || !name)
		return cudaErrorInvalidValue;
	if (!module)
		return cudaErrorInvalidResourceHandle;
	found = fgv_registry_managed_named(module, name);
	if (!found)
		return no_managed(library, name);
	/* Loaded it is, unless the device was reset. */
	error = load_module(module);
	if (!error && address)
		*address = (void *)(uintptr_t)found->address;
	if (!error && bytes)
		*bytes = found->size;
	return error;
}

FGV_EXPORT cudaError_t cudaLibraryGetManaged(void **dptr, size_t *bytes, cudaLibrary_t library,
					     const char *name)
{
	return fgv_error_set(get_managed(dptr, bytes, library, name));
}

/* The names of the library's kernels, for free(), and the module that they are in. */
static cudaError_t list_kernels(cudaLibrary_t library, struct fgv_module **module, char **names,
				uint64_t *bytes)
{
	struct fgv_lane *lane;
	cudaError_t error;

	*module = module_of(library);
	if (!*module)
		return cudaErrorInvalidResourceHandle;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_error_from(fgv_module_kernel_names(lane, *module, names, bytes));
	fgv_lane_leave(lane);
	return error;
}

static cudaError_t count_kernels(unsigned *count, cudaLibrary_t library)
{
	struct fgv_module *module;
	uint64_t bytes;
	char *names;
	cudaError_t error =
		count ? list_kernels(library, &module, &names, &bytes) : cudaErrorInvalidValue;

	if (error)
		return error;
	*count = 0;
	for (uint64_t at = 0; at < bytes; at += strlen(names + at) + 1)
		(*count)++;
	free(names);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
	return fgv_error_set(count_kernels(count, lib));
}

static cudaError_t enumerate_kernels(cudaKernel_t *kernels, unsigned room, cudaLibrary_t library)
{
	struct fgv_module *module;
	uint64_t bytes, at = 0;
	char *names;
	cudaError_t error = kernels && room ? list_kernels(library, &module, &names, &bytes)
					    : cudaErrorInvalidValue;

	if (error)
		return error;
	for (unsigned i = 0; i < room && at < bytes && !error; i++) {
		kernels[i] = (cudaKernel_t)fgv_registry_kernel_named(module, names + at);
		if (!kernels[i])
			error = cudaErrorMemoryAllocation;
		at += strlen(names + at) + 1;
	}
	free(names);
	return error;
}

FGV_EXPORT cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels,
						   cudaLibrary_t lib)
{
	return fgv_error_set(enumerate_kernels(kernels, numKernels, lib));
}

/* Functions that run on both sides are of GPUs that read the program's own memory. */
FGV_EXPORT cudaError_t cudaLibraryGetUnifiedFunction(void **fptr, cudaLibrary_t library,
						     const char *symbol)
{
	if (!fptr || !symbol)
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(module_of(library) ? cudaErrorInvalidValue
						: cudaErrorInvalidResourceHandle);
}
