/*
 * The handlers of the operations that load modules, and tell what is in them.
 */
#include "backend/vgpu/handlers_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/log.h"
#include "common/util.h"

/* Of the data that comes with a module, what the GPU has done in a few microseconds. */
#define DATA_SMALL (256u * 1024)

/* What is loaded: a private copy of an image, and where its managed variables are to lie. */
struct loading {
	const void *image;
	size_t len;
	const struct fgv_gpu_placed *placed;
	size_t placed_count;
	char *log; /* where the program is told what is wrong; NULL: the host's log has it */
	size_t log_len;
};

static void complain(struct fgv_session *session, const char *log)
{
	if (*log && session->complaints++ < FGV_COMPLAINTS_MAX)
		fgv_warning("a module does not load: %s", log);
}

static void tell(struct fgv_session *session, const struct loading *what, const char *log)
{
	if (what->log)
		snprintf(what->log, what->log_len, "%s", log);
	else
		complain(session, log);
}

static CUresult load_on_gpu(struct fgv_session *session, const struct loading *what,
			    struct fgv_gpu_module **module)
{
	struct fgv_gpu *gpu = session->gpu;
	char log[512] = "";
	CUresult status;

	if (what->placed_count > 0)
		status = gpu->ops->module_load_placed(gpu, what->image, what->len, what->placed,
						      what->placed_count, log, sizeof(log), module);
	else
		status = gpu->ops->module_load(gpu, what->image, what->len, log, sizeof(log),
					       module);
	if (status != CUDA_SUCCESS)
		tell(session, what, log);
	return status;
}

/*
 * The driver has the GPU zero a module's variables, or copy to them, while it loads it. Where that
 * is more than next to nothing it is work: it waits for the grant, and is charged.
 */
static CUresult pass_gate(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_gpu_module_cost *cost)
{
	if (cost->data <= DATA_SMALL)
		return CUDA_SUCCESS;
	request->is_work = 1;
	request->amount = cost->data;
	if (!fgv_gate_admits(session, &session->gate, request, session->message, 0) ||
	    !(fgv_gate_is_alone(&session->gate) || fgv_errands_fit_load(session)))
		return FGV_CLOSED;
	fgv_gate_begin(&session->gate);
	return CUDA_SUCCESS;
}

/* Charges for the module before the driver takes any memory for it. */
static CUresult load(struct fgv_session *session, struct fgv_request *request,
		     const struct loading *what, struct fgv_object **made)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_gpu_module_cost cost;
	struct fgv_object *object;
	char log[512] = "";
	uint64_t bytes;
	CUresult status = gpu->ops->module_cost(gpu, what->image, what->len, what->placed,
						what->placed_count, log, sizeof(log), &cost);

	if (status != CUDA_SUCCESS) {
		tell(session, what, log);
		return status;
	}
	if (__builtin_add_overflow(cost.data, cost.code, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = fgv_session_add(session, FGV_KIND_MODULE, bytes, &object);
	if (status != CUDA_SUCCESS)
		return status;
	status = pass_gate(session, request, &cost);
	if (status == CUDA_SUCCESS)
		status = load_on_gpu(session, what, &object->module.gpu);
	if (status != CUDA_SUCCESS) {
		fgv_session_abandon(session, object);
		return status;
	}
	object->module.image_bytes = what->len;
	if (session->kernels.book)
		object->module.content = fgv_kernels_image(what->image, what->len);
	session->image_bytes += what->len;
	*made = object;
	return CUDA_SUCCESS;
}

static bool has_room(const struct fgv_session *session, uint64_t len)
{
	return len <= FGV_IMAGE_MAX && len <= FGV_IMAGES_MAX - session->image_bytes;
}

char *fgv_module_copy_image(const struct fgv_session *session, const void *image, uint64_t len)
{
	char *copy;

	if (!has_room(session, len))
		return NULL;
	copy = malloc(len + 1);
	if (!copy)
		return NULL;
	memcpy(copy, image, len);
	copy[len] = '\0';
	return copy;
}

static CUresult load_image(struct fgv_session *session, struct fgv_request *request,
			   const void *from, uint64_t len, struct loading *what,
			   struct fgv_object **module)
{
	struct fgv_image image;
	CUresult status;

	if (!has_room(session, len) || fgv_image_copy(&session->images, from, len, &image) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	what->image = image.bytes;
	what->len = len;
	status = load(session, request, what, module);
	if (status == CUDA_SUCCESS)
		fgv_image_keep(&session->images, &image);
	fgv_image_fini(&image);
	return status;
}

CUresult fgv_module_try(struct fgv_session *session, struct fgv_request *request, const void *image,
			uint64_t len, char *log, size_t log_len)
{
	const struct loading what = {.image = image, .len = len, .log = log, .log_len = log_len};
	struct fgv_object *module;
	CUresult status = load(session, request, &what, &module);

	if (status != CUDA_SUCCESS)
		return status;
	return fgv_session_remove(session, module);
}

/* One variable at *@at: its address and its size, 8 bytes each, and its name with a NUL. */
static CUresult read_placed(struct fgv_session *session, const uint8_t **at, size_t *left,
			    struct fgv_gpu_placed *placed)
{
	const char *name = (const char *)*at + 2 * sizeof(uint64_t);
	uint64_t address, bytes;
	size_t len;

	if (*left < 2 * sizeof(uint64_t))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&address, *at, sizeof(address));
	memcpy(&bytes, *at + sizeof(address), sizeof(bytes));
	*left -= 2 * sizeof(uint64_t);
	len = strnlen(name, *left);
	if (len == 0 || len == *left)
		return CUDA_ERROR_INVALID_VALUE;
	*at = (const uint8_t *)name + len + 1;
	*left -= len + 1;
	*placed = (struct fgv_gpu_placed){name, fgv_mapped_find(&session->mapped, address, bytes),
					  bytes};
	return placed->memory && bytes > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fgv_do_module_load_placed(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_module_load_placed_in *in,
				   struct fgv_module_load_placed_out *out)
{
	const size_t least = 2 * sizeof(uint64_t) + 2;
	CUresult status = fgv_session_take_deferred(session);
	const uint8_t *at = in->variables;
	size_t left = in->variables_len;
	struct fgv_gpu_placed *placed;
	struct loading what = {0};
	struct fgv_object *module;

	if (status != CUDA_SUCCESS)
		return status;
	if (left < least)
		return CUDA_ERROR_INVALID_VALUE;
	placed = calloc(left / least, sizeof(*placed));
	if (!placed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (status == CUDA_SUCCESS && left > 0)
		status = read_placed(session, &at, &left, &placed[what.placed_count++]);
	what.placed = placed;
	if (status == CUDA_SUCCESS) {
		status = load_image(session, request, in->image, in->image_len, &what, &module);
		if (status == CUDA_SUCCESS)
			out->module = module->handle;
	}
	free(placed);
	return status;
}

CUresult fgv_do_module_unload(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_module_unload_in *in)
{
	(void)request;
	return fgv_session_remove(session, in->module);
}

/* Where names are written, and how much all of them are. */
struct names {
	uint8_t *at;
	uint64_t room;
	uint64_t bytes;
};

static void write_bytes(struct names *names, const void *from, size_t len)
{
	if (names->bytes <= names->room && len <= names->room - names->bytes)
		memcpy(names->at + names->bytes, from, len);
	names->bytes += len;
}

static void write_name(const char *name, void *arg)
{
	write_bytes(arg, name, strlen(name) + 1);
}

CUresult fgv_do_module_kernels(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_module_kernels_in *in,
			       struct fgv_module_kernels_out *out)
{
	struct names names = {.at = in->names, .room = in->names_len};
	CUresult status = session->gpu->ops->module_kernels(session->gpu, in->module->module.gpu,
							    write_name, &names);

	(void)request;
	out->bytes = names.bytes;
	return status;
}

/* --- Loading, with all that is asked next -------------------------------------- */

struct kernel_names {
	char *names[FGV_KERNELS_DESCRIBED];
	uint32_t count; /* of all, described or not */
};

static void note_kernel(const char *name, void *arg)
{
	struct kernel_names *all = arg;

	if (all->count < FGV_KERNELS_DESCRIBED)
		all->names[all->count] = strdup(name);
	all->count++;
}

/* Writes the record of @module's kernel @name to the window, at *@at of what there is. */
static CUresult describe_kernel(struct fgv_session *session, struct fgv_object *module,
				const char *name, uint8_t *to, uint64_t room, uint64_t *at)
{
	struct fgv_kernel_record record = {.name_len = (uint32_t)strlen(name) + 1};
	uint64_t rest = sizeof(record) + fgv_align_up(record.name_len, 8);
	struct fgv_object *function;
	CUresult status;

	if (room - *at < rest)
		return CUDA_ERROR_OUT_OF_MEMORY;
	to += *at;
	status = fgv_function_open(session, module, name, to + sizeof(record), room - *at - rest,
			       &record.info_len, &function);
	if (status != CUDA_SUCCESS)
		return status;
	record.function = function->handle;
	record.len = (uint32_t)fgv_align_up(sizeof(record) + record.info_len + record.name_len, 8);
	memcpy(to, &record, sizeof(record));
	memcpy(to + sizeof(record) + record.info_len, name, record.name_len);
	*at += record.len;
	return CUDA_SUCCESS;
}

/* Those that can't be described, for whatever reason, are asked for when they are needed. */
static void describe(struct fgv_session *session, struct fgv_object *module, uint8_t *to,
		     uint64_t room, struct fgv_module_load_out *out)
{
	struct kernel_names all = {.count = 0};
	CUresult status = session->gpu->ops->module_kernels(session->gpu, module->module.gpu,
							    note_kernel, &all);
	uint64_t bytes = 0;

	if (status == CUDA_SUCCESS && all.count > FGV_KERNELS_DESCRIBED)
		status = CUDA_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; i < all.count && status == CUDA_SUCCESS; i++)
		status = all.names[i]
				 ? describe_kernel(session, module, all.names[i], to, room, &bytes)
				 : CUDA_ERROR_OUT_OF_MEMORY;
	if (status != CUDA_SUCCESS)
		fgv_session_remove_functions(session, module);
	out->kernels = status == CUDA_SUCCESS ? all.count : FGV_KERNELS_UNKNOWN;
	out->bytes = status == CUDA_SUCCESS ? bytes : 0;
	for (uint32_t i = 0; i < FGV_KERNELS_DESCRIBED; i++)
		free(all.names[i]);
}

static void write_managed(const char *name, uint64_t bytes, void *arg)
{
	write_bytes(arg, &bytes, sizeof(bytes));
	write_name(name, arg);
}

/* Of @image, a private copy. */
static CUresult list_managed(struct fgv_session *session, const char *image, uint64_t len,
			     struct names *names)
{
	char log[512] = "";
	CUresult status = session->gpu->ops->module_managed(session->gpu, image, len, write_managed,
							    names, log, sizeof(log));

	if (status != CUDA_SUCCESS)
		complain(session, log);
	return status;
}

/* What all operations that load a module say in the end. */
static CUresult load_described(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_image *image, bool look, uint8_t *description,
			       uint64_t room, struct fgv_module_load_out *out,
			       struct fgv_object **module)
{
	const struct loading what = {.image = image->bytes, .len = image->len};
	struct names managed = {.at = description, .room = room};
	CUresult status = CUDA_SUCCESS;

	*module = NULL;
	if (look)
		status = list_managed(session, image->bytes, image->len, &managed);
	if (status == CUDA_SUCCESS && !managed.bytes)
		status = load(session, request, &what, module);
	out->bytes = managed.bytes;
	if (status != CUDA_SUCCESS || !*module)
		return status;
	out->module = (*module)->handle;
	describe(session, *module, description, room, out);
	return CUDA_SUCCESS;
}

CUresult fgv_do_module_load(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_module_load_in *in, struct fgv_module_load_out *out)
{
	CUresult status = fgv_session_take_deferred(session);
	struct fgv_object *module;
	struct fgv_image image;

	if (status != CUDA_SUCCESS)
		return status;
	if (!has_room(session, in->image_len) ||
	    fgv_image_copy(&session->images, in->image, in->image_len, &image) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = load_described(session, request, &image, in->look, in->description,
				in->description_len, out, &module);
	if (status == CUDA_SUCCESS)
		fgv_image_keep(&session->images, &image);
	fgv_slices_take_image(session, module, &image);
	fgv_image_fini(&image);
	return status;
}

CUresult fgv_do_image_known(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_image_known_in *in, struct fgv_image_known_out *out)
{
	(void)request;
	out->known = fgv_images_know(&session->images, in->len, in->sample);
	return CUDA_SUCCESS;
}

CUresult fgv_do_module_load_known(struct fgv_session *session, struct fgv_request *request,
				  const struct fgv_module_load_known_in *in,
				  struct fgv_module_load_known_out *out)
{
	CUresult status = fgv_session_take_deferred(session);
	struct fgv_module_load_out loaded = {.module = 0};
	struct fgv_object *module;
	struct fgv_image image;

	if (status != CUDA_SUCCESS)
		return status;
	if (!has_room(session, in->len))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (fgv_image_get(&session->images, in->digest, in->len, &image) < 0)
		return CUDA_SUCCESS;
	status = load_described(session, request, &image, in->look, in->description,
				in->description_len, &loaded, &module);
	fgv_slices_take_image(session, module, &image);
	fgv_image_fini(&image);
	out->module = loaded.module;
	out->kernels = loaded.kernels;
	out->bytes = loaded.bytes;
	out->known = 1;
	return status;
}

CUresult fgv_do_module_managed(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_module_managed_in *in,
			       struct fgv_module_managed_out *out)
{
	struct names names = {.at = in->variables, .room = in->variables_len};
	char *copy = fgv_module_copy_image(session, in->image, in->image_len);
	CUresult status;

	(void)request;
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = list_managed(session, copy, in->image_len, &names);
	free(copy);
	out->bytes = names.bytes;
	return status;
}
