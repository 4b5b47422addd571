/*
 * Linking, by the driver's own linker. Containers are checked first, as where modules are loaded;
 * other formats are for the driver to judge.
 */
#include "backend/gpu/cuda_internal.h"

#include <stdlib.h>
#include <string.h>
#include "backend/gpu/fatbin.h"

#define LOG_OPTIONS 4

struct options {
	unsigned count;
	CUjit_option names[LOG_OPTIONS + FGV_LINK_OPTIONS_MAX];
	void *values[LOG_OPTIONS + FGV_LINK_OPTIONS_MAX];
};

static void put(struct options *options, CUjit_option name, void *value)
{
	options->names[options->count] = name;
	options->values[options->count++] = value;
}

/* The driver wants numbers as pointers. */
static void set_options(const struct fgv_gpu_link *what, struct options *options)
{
	void *log_len = (void *)(uintptr_t)what->log_len;

	options->count = 0;
	put(options, CU_JIT_ERROR_LOG_BUFFER, what->errors);
	put(options, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, log_len);
	put(options, CU_JIT_INFO_LOG_BUFFER, what->info);
	put(options, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, log_len);
	for (size_t i = 0; i < what->options_count; i++)
		put(options, what->options[i], (void *)(uintptr_t)what->values[i]);
}

/* Of PTX the NUL counts. */
static CUresult add(struct cuda *cuda, CUlinkState state, const struct fgv_gpu_link_input *input)
{
	unsigned containers;
	size_t len = input->len;

	if (fgv_fatbin_form(input->data, input->len) == FGV_FATBIN_CONTAINER &&
	    fgv_fatbin_check(input->data, input->len, &containers) < 0)
		return CUDA_ERROR_INVALID_IMAGE;
	if (input->type == CU_JIT_INPUT_PTX)
		len = strlen(input->data) + 1;
	return cuda->driver->link_add(state, input->type, (void *)(uintptr_t)input->data, len,
				      input->name, 0, NULL, NULL);
}

/* The linker's state owns what it has made. */
static CUresult copy_image(const void *made, size_t made_len, void **image, size_t *len)
{
	*image = malloc(made_len);
	if (!*image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(*image, made, made_len);
	*len = made_len;
	return CUDA_SUCCESS;
}

CUresult fgv_cuda_link(struct fgv_gpu *gpu, const struct fgv_gpu_link *what, void **image,
		       size_t *len)
{
	struct cuda *cuda = cuda_of(gpu);
	struct options options;
	CUlinkState state;
	void *made;
	size_t made_len;
	CUresult status;

	set_options(what, &options);
	status = cuda->driver->link_create(options.count, options.names, options.values, &state);
	if (status != CUDA_SUCCESS)
		return status;
	for (size_t i = 0; i < what->inputs_count && status == CUDA_SUCCESS; i++)
		status = add(cuda, state, &what->inputs[i]);
	if (status == CUDA_SUCCESS)
		status = cuda->driver->link_complete(state, &made, &made_len);
	if (status == CUDA_SUCCESS)
		status = copy_image(made, made_len, image, len);
	cuda->driver->link_destroy(state);
	return status;
}
