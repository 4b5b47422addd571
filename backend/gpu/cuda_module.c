/*
 * Loading modules. The driver reads fat binaries itself, but trusts what they say of
 * their own size; so their structure is checked first.
 */
#include "backend/gpu/cuda_internal.h"

#include "backend/fatbin.h"

/* The compiler's messages go to @log; the driver wants the values of options as pointers. */
struct log_options {
	CUjit_option names[2];
	void *values[2];
};

static struct log_options log_options(char *log, size_t log_len)
{
	return (struct log_options){
		.names = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
		.values = {log, (void *)(uintptr_t)log_len},
	};
}

static CUresult load(struct cuda *cuda, const void *image, char *log, size_t log_len,
		     CUmodule *module)
{
	struct log_options options = log_options(log, log_len);

	return cuda->driver->module_load(module, image, 2, options.names, options.values);
}

/* Adds all containers of an image that was checked. */
static CUresult add_containers(struct cuda *cuda, CUlinkState state, const uint8_t *at, size_t len)
{
	CUresult status = CUDA_SUCCESS;
	size_t container_len;

	while (status == CUDA_SUCCESS && len > 0) {
		if (fgv_fatbin_extent(at, len, &container_len) < 0)
			return CUDA_ERROR_INVALID_IMAGE;
		status = cuda->driver->link_add(state, CU_JIT_INPUT_FATBINARY, (void *)at,
						container_len, "module", 0, NULL, NULL);
		at += container_len;
		len -= container_len;
	}
	return status;
}

/* Compiles and links what separate compilation left as PTX, one container per source. */
static CUresult load_linked(struct cuda *cuda, const void *image, size_t len, char *log,
			    size_t log_len, CUmodule *module)
{
	struct log_options options = log_options(log, log_len);
	CUlinkState state;
	void *cubin;
	size_t cubin_len;
	CUresult status = cuda->driver->link_create(2, options.names, options.values, &state);

	if (status != CUDA_SUCCESS)
		return status;
	status = add_containers(cuda, state, image, len);
	if (status == CUDA_SUCCESS)
		status = cuda->driver->link_complete(state, &cubin, &cubin_len);
	/* The linker's state owns the cubin, so it goes last. */
	if (status == CUDA_SUCCESS)
		status = cuda->driver->module_load(module, cubin, 0, NULL, NULL);
	cuda->driver->link_destroy(state);
	return status;
}

/*
 * The first container is a program by itself: the only one, or the one that nvcc has
 * linked. Where that has nothing for this GPU, the others are its sources.
 */
CUresult fgv_cuda_module_load(struct fgv_gpu *gpu, const void *image, size_t len, char *log,
			      size_t log_len, struct fgv_gpu_module **module)
{
	struct cuda *cuda = cuda_of(gpu);
	CUmodule loaded = NULL;
	unsigned containers;
	size_t first_len;
	CUresult status;

	if (fgv_fatbin_check(image, len, &containers) < 0 ||
	    fgv_fatbin_extent(image, len, &first_len) < 0)
		return CUDA_ERROR_INVALID_IMAGE;
	status = load(cuda, image, log, log_len, &loaded);
	if (status == CUDA_ERROR_NO_BINARY_FOR_GPU && containers > 1)
		status = load_linked(cuda, (const uint8_t *)image + first_len, len - first_len, log,
				     log_len, &loaded);
	if (status != CUDA_SUCCESS)
		return status;
	fgv_cuda_note_image(cuda, image, len);
	*module = (struct fgv_gpu_module *)loaded;
	return CUDA_SUCCESS;
}
