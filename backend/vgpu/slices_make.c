/* The modules of kernels that run in parts: made, charged and loaded when they are needed. */
#include "backend/vgpu/slices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/vgpu/session.h"
#include "common/fatbin.h"
#include "common/log.h"

/* Lines in the log that a session causes by kernels that are left whole. */
#define TOLD_MAX 8

void fgv_slices_note_whole(struct fgv_session *session, const struct fgv_sliced *sliced,
			   const char *why)
{
	fgv_account_add(&session->account->left_whole, 1);
	if (*why && session->slices.told++ < TOLD_MAX)
		fgv_info("kernel %.100s is left whole: %s", sliced->name, why);
}

/* --- Images ---------------------------------------------------------------------- */

static bool container_has_text(const uint8_t *container, size_t len)
{
	struct fgv_fatbin_entry entry;
	size_t at = 0;

	while (fgv_fatbin_entry(container, len, &at, &entry) > 0) {
		if (entry.kind == FGV_FATBIN_PTX)
			return true;
	}
	return false;
}

/* An image that was loaded, so all of it is right. */
static bool has_text(const void *image, size_t len)
{
	const uint8_t *at;
	size_t container_len;

	fgv_fatbin_unwrap(&image, &len);
	if (fgv_fatbin_form(image, len) != FGV_FATBIN_CONTAINER)
		return fgv_fatbin_form(image, len) == FGV_FATBIN_BARE_PTX;
	for (at = image; len > 0 && fgv_fatbin_extent(at, len, &container_len) == 0;) {
		if (container_has_text(at, container_len))
			return true;
		at += container_len;
		len -= container_len;
	}
	return false;
}

void fgv_slices_take_image(struct fgv_session *session, struct fgv_object *module,
			   struct fgv_image *image)
{
	if (!module || !fgv_slices_are_on(session) || !has_text(image->bytes, image->len))
		return;
	module->module.image = malloc(sizeof(*image));
	if (!module->module.image)
		return;
	fgv_image_detach(image);
	*module->module.image = *image;
	*image = (struct fgv_image){.fd = -1};
}

void fgv_slices_put_image(struct fgv_object *module)
{
	if (!module->module.image)
		return;
	fgv_image_fini(module->module.image);
	free(module->module.image);
	module->module.image = NULL;
}

/* --- Functions --------------------------------------------------------------------- */

CUresult fgv_slices_open(struct fgv_session *session, struct fgv_object *function, const char *name)
{
	struct fgv_sliced *sliced;

	if (!fgv_slices_are_on(session))
		return CUDA_SUCCESS;
	sliced = calloc(1, sizeof(*sliced) + strlen(name) + 1);
	if (!sliced)
		return CUDA_ERROR_OUT_OF_MEMORY;
	strcpy(sliced->name, name);
	function->function.sliced = sliced;
	return CUDA_SUCCESS;
}

static void unload(struct fgv_session *session, struct fgv_sliced *sliced)
{
	if (sliced->module)
		session->gpu->ops->module_unload(session->gpu, sliced->module,
						 sliced->charge.bytes);
	sliced->module = NULL;
	fgv_quota_release(&session->quota, &sliced->charge);
}

void fgv_slices_close(struct fgv_session *session, struct fgv_object *function)
{
	struct fgv_sliced *sliced = function->function.sliced;

	if (!sliced)
		return;
	unload(session, sliced);
	free(sliced);
	function->function.sliced = NULL;
}

/* --- Making ---------------------------------------------------------------------------- */

struct making {
	struct fgv_session *session;
	struct fgv_sliced *sliced;
	char why[512];
};

/* As for any other module, before it takes anything. */
static CUresult charge(struct making *m, const char *text)
{
	struct fgv_session *session = m->session;
	struct fgv_gpu_module_cost cost;
	uint64_t bytes;
	CUresult status = session->gpu->ops->module_cost(session->gpu, text, strlen(text), NULL, 0,
							 m->why, sizeof(m->why), &cost);

	if (status != CUDA_SUCCESS)
		return status;
	if (__builtin_add_overflow(cost.data, cost.code, &bytes) ||
	    fgv_quota_charge(&session->quota, &m->sliced->charge, bytes) < 0) {
		snprintf(m->why, sizeof(m->why), "its VM has no memory for another module");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* What the other compilation of it needs is no more than the session may have. */
static CUresult look_at(struct making *m)
{
	struct fgv_session *session = m->session;
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	struct fgv_sliced *sliced = m->sliced;
	int local = 0, threads = 0, registers = 0, shared = 0;
	CUresult status =
		ops->module_function(session->gpu, sliced->module, sliced->name, &sliced->gpu);

	if (status == CUDA_SUCCESS)
		status = ops->function_attribute(session->gpu, sliced->gpu,
						 CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local);
	if (status == CUDA_SUCCESS)
		status = ops->function_attribute(session->gpu, sliced->gpu,
						 CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads);
	if (status == CUDA_SUCCESS)
		status = ops->function_attribute(session->gpu, sliced->gpu,
						 CU_FUNC_ATTRIBUTE_NUM_REGS, &registers);
	if (status == CUDA_SUCCESS)
		status = ops->function_attribute(session->gpu, sliced->gpu,
						 CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared);
	if (status == CUDA_SUCCESS && local > 0 && (uint32_t)local > session->local_bytes)
		status = fgv_session_grow_local(session, (uint32_t)local);
	sliced->threads_max = threads > 0 ? (uint32_t)threads : 0;
	sliced->registers = registers > 0 ? (uint32_t)registers : 0;
	sliced->shared = shared > 0 ? (uint32_t)shared : 0;
	return status;
}

static CUresult load(struct making *m, const char *text)
{
	struct fgv_gpu *gpu = m->session->gpu;
	CUresult status = charge(m, text);

	if (status == CUDA_SUCCESS)
		status = gpu->ops->module_load(gpu, text, strlen(text), m->why, sizeof(m->why),
					       &m->sliced->module);
	if (status == CUDA_SUCCESS)
		status = look_at(m);
	if (status != CUDA_SUCCESS)
		unload(m->session, m->sliced);
	return status;
}

static CUresult make(struct making *m, const struct fgv_object *function)
{
	const struct fgv_object *module = function->function.module;
	struct fgv_gpu *gpu = m->session->gpu;
	struct fgv_gpu_slicing what = {
		.module = module->module.gpu,
		.function = function->function.gpu,
		.name = m->sliced->name,
	};
	CUresult status;
	char *text;

	if (function->function.param_count >= FGV_PARAMS_MAX) {
		snprintf(m->why, sizeof(m->why), "it has too many parameters");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!module->module.image) {
		snprintf(m->why, sizeof(m->why), "there is no PTX of it");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	what.image = module->module.image->bytes;
	what.len = module->module.image->len;
	status = gpu->ops->module_slice(gpu, &what, &text, m->why, sizeof(m->why));
	if (status != CUDA_SUCCESS)
		return status;
	status = load(m, text);
	free(text);
	return status;
}

CUresult fgv_slices_make(struct fgv_session *session, struct fgv_object *function)
{
	struct making m = {.session = session, .sliced = function->function.sliced};
	uint64_t begun_ns;
	CUresult status;

	if (!fgv_gate_is_alone(&session->gate) && !fgv_errands_fit_load(session))
		return FGV_CLOSED;
	fgv_batch_flush(session);
	begun_ns = fgv_errands_begin(session);
	status = make(&m, function);
	if (begun_ns)
		fgv_errands_end(session, FGV_OP_MODULE_LOAD, begun_ns);
	m.sliced->state = status == CUDA_SUCCESS ? FGV_SLICED_READY : FGV_SLICED_NEVER;
	if (status == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	if (!*m.why)
		snprintf(m.why, sizeof(m.why), "it does not load in parts: error %d", (int)status);
	fgv_slices_note_whole(session, m.sliced, m.why);
	return status;
}
