/*
 * Loading modules. The driver reads fat binaries itself, but trusts what they say of
 * their own size; so their structure is checked first. Text ends with a NUL, and machine code is
 * for the driver to judge, in a fat binary or not.
 */
#include "backend/gpu/cuda_internal.h"

#include <stdlib.h>
#include <string.h>
#include "backend/gpu/fatbin.h"
#include "backend/gpu/placed.h"
#include "backend/gpu/sliced.h"

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

/* What a linker puts together: containers of an image that was checked, or texts. */
struct sources {
	const uint8_t *containers;
	size_t len;
	const struct fgv_fatbin_texts *texts; /* NULL: containers */
};

static CUresult add(struct cuda *cuda, CUlinkState state, CUjitInputType type, const void *data,
		    size_t len)
{
	return cuda->driver->link_add(state, type, (void *)(uintptr_t)data, len, "module", 0, NULL,
				      NULL);
}

static CUresult add_containers(struct cuda *cuda, CUlinkState state, const uint8_t *at, size_t len)
{
	CUresult status = CUDA_SUCCESS;
	size_t container_len;

	while (status == CUDA_SUCCESS && len > 0) {
		if (fgv_fatbin_extent(at, len, &container_len) < 0)
			return CUDA_ERROR_INVALID_IMAGE;
		status = add(cuda, state, CU_JIT_INPUT_FATBINARY, at, container_len);
		at += container_len;
		len -= container_len;
	}
	return status;
}

/* The driver counts the NUL. */
static CUresult add_texts(struct cuda *cuda, CUlinkState state,
			  const struct fgv_fatbin_texts *texts)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; status == CUDA_SUCCESS && i < texts->count; i++)
		status = add(cuda, state, CU_JIT_INPUT_PTX, texts->texts[i],
			     strlen(texts->texts[i]) + 1);
	return status;
}

/* Compiles and links what separate compilation left as PTX, one part per source. */
static CUresult load_linked(struct cuda *cuda, const struct sources *sources, char *log,
			    size_t log_len, CUmodule *module)
{
	struct log_options options = log_options(log, log_len);
	CUlinkState state;
	void *cubin;
	size_t cubin_len;
	CUresult status = cuda->driver->link_create(2, options.names, options.values, &state);

	if (status != CUDA_SUCCESS)
		return status;
	if (sources->texts)
		status = add_texts(cuda, state, sources->texts);
	else
		status = add_containers(cuda, state, sources->containers, sources->len);
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
	enum fgv_fatbin_form form = fgv_fatbin_form(image, len);
	struct cuda *cuda = cuda_of(gpu);
	struct sources rest = {0};
	CUmodule loaded = NULL;
	unsigned containers;
	size_t first_len;
	CUresult status;

	if (form == FGV_FATBIN_NOTHING)
		return CUDA_ERROR_INVALID_IMAGE;
	if (form == FGV_FATBIN_CONTAINER) {
		if (fgv_fatbin_check(image, len, &containers) < 0 ||
		    fgv_fatbin_extent(image, len, &first_len) < 0)
			return CUDA_ERROR_INVALID_IMAGE;
		rest.containers = (const uint8_t *)image + first_len;
		rest.len = len - first_len;
	}
	status = load(cuda, image, log, log_len, &loaded);
	if (status == CUDA_ERROR_NO_BINARY_FOR_GPU && rest.len > 0)
		status = load_linked(cuda, &rest, log, log_len, &loaded);
	if (status != CUDA_SUCCESS)
		return status;
	fgv_cuda_note_image(cuda, image, len);
	*module = (struct fgv_gpu_module *)loaded;
	return CUDA_SUCCESS;
}

unsigned fgv_cuda_sm(struct cuda *cuda)
{
	int major = 0, minor = 0;

	cuda->driver->device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
				       cuda->device);
	cuda->driver->device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
				       cuda->device);
	return (unsigned)(major * 10 + minor);
}

CUresult fgv_cuda_module_load_placed(struct fgv_gpu *gpu, const void *image, size_t len,
				     const struct fgv_gpu_placed *placed, size_t count, char *log,
				     size_t log_len, struct fgv_gpu_module **module)
{
	struct cuda *cuda = cuda_of(gpu);
	struct fgv_fatbin_texts texts;
	struct sources sources = {.texts = &texts};
	CUmodule loaded = NULL;
	CUresult status = fgv_placed_texts(image, len, fgv_cuda_sm(cuda), placed, count, log,
					   log_len, &texts);

	if (status != CUDA_SUCCESS)
		return status;
	if (texts.count == 1)
		status = load(cuda, texts.texts[0], log, log_len, &loaded);
	else
		status = load_linked(cuda, &sources, log, log_len, &loaded);
	fgv_fatbin_texts_free(&texts);
	if (status != CUDA_SUCCESS)
		return status;
	fgv_cuda_note_image(cuda, image, len);
	*module = (struct fgv_gpu_module *)loaded;
	return CUDA_SUCCESS;
}

CUresult fgv_cuda_module_slice(struct fgv_gpu *gpu, const struct fgv_gpu_slicing *what,
			       char **text, char *why, size_t why_len)
{
	return fgv_sliced_text(gpu, what, fgv_cuda_sm(cuda_of(gpu)), text, why, why_len);
}

CUresult fgv_cuda_module_managed(struct fgv_gpu *gpu, const void *image, size_t len,
				 fgv_gpu_each_managed *each, void *arg, char *log, size_t log_len)
{
	return fgv_placed_list(image, len, fgv_cuda_sm(cuda_of(gpu)), each, arg, log, log_len);
}

static CUresult name_each(struct cuda *cuda, const CUfunction *functions, unsigned count,
			  void (*each)(const char *name, void *arg), void *arg)
{
	CUresult status = CUDA_SUCCESS;
	const char *name;

	for (unsigned i = 0; i < count && status == CUDA_SUCCESS; i++) {
		status = cuda->driver->function_name(&name, functions[i]);
		if (status == CUDA_SUCCESS)
			each(name, arg);
	}
	return status;
}

CUresult fgv_cuda_module_kernels(struct fgv_gpu *gpu, struct fgv_gpu_module *module,
				 void (*each)(const char *name, void *arg), void *arg)
{
	struct cuda *cuda = cuda_of(gpu);
	unsigned count = 0;
	CUfunction *functions;
	CUresult status = cuda->driver->module_function_count(&count, (CUmodule)module);

	if (status != CUDA_SUCCESS || count == 0)
		return status;
	functions = calloc(count, sizeof(CUfunction));
	if (!functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = cuda->driver->module_functions(functions, count, (CUmodule)module);
	if (status == CUDA_SUCCESS)
		status = name_each(cuda, functions, count, each, arg);
	free(functions);
	return status;
}
