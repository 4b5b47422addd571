/*
 * The handler of linking. What comes from the guest is copied once, taken apart here, and handed to
 * the GPU's linker as modules are to its compiler.
 */
#include "backend/vgpu/handlers_module.h"

#include <stdlib.h>
#include <string.h>
#include "common/util.h"

#define LOG_BYTES 4096

struct linking {
	struct fgv_gpu_link what;
	struct fgv_gpu_link_input *inputs;
	CUjit_option options[FGV_LINK_OPTIONS_MAX];
	uint32_t values[FGV_LINK_OPTIONS_MAX];
	char *image; /* the copy that the inputs point into */
	size_t len;
};

/* Options that are numbers, and concern the code alone. */
static bool is_number(uint32_t option)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
		return true;
	default:
		return false;
	}
}

static CUresult read_options(struct linking *linking, const uint8_t *at, size_t len)
{
	uint32_t pair[2];

	if (len % sizeof(pair) || len / sizeof(pair) > FGV_LINK_OPTIONS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < len / sizeof(pair); i++) {
		memcpy(pair, at + i * sizeof(pair), sizeof(pair));
		if (!is_number(pair[0]))
			return CUDA_ERROR_INVALID_VALUE;
		linking->options[i] = (CUjit_option)pair[0];
		linking->values[i] = pair[1];
	}
	linking->what.options = linking->options;
	linking->what.values = linking->values;
	linking->what.options_count = len / sizeof(pair);
	return CUDA_SUCCESS;
}

/* A string of @len bytes and its NUL at *@at, which is moved behind them; NULL: there is none. */
static const char *read_bytes(const struct linking *linking, size_t *at, uint64_t len)
{
	const char *bytes = linking->image + *at;

	if (len >= linking->len - *at || bytes[len] != '\0')
		return NULL;
	*at += len + 1;
	return bytes;
}

static CUresult read_input(struct linking *linking, size_t *at)
{
	struct fgv_gpu_link_input *input = &linking->inputs[linking->what.inputs_count];
	struct fgv_link_input head;

	if (linking->what.inputs_count == FGV_LINK_INPUTS_MAX || linking->len - *at < sizeof(head))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&head, linking->image + *at, sizeof(head));
	*at += sizeof(head);
	input->type = (CUjitInputType)head.type;
	input->name = read_bytes(linking, at, head.name_len);
	input->data = input->name ? read_bytes(linking, at, head.data_len) : NULL;
	input->len = head.data_len;
	if (head.type >= CU_JIT_NUM_INPUT_TYPES || !input->data || !input->len)
		return CUDA_ERROR_INVALID_VALUE;
	*at = fgv_min_u64(fgv_align_up(*at, 8), linking->len);
	linking->what.inputs_count++;
	return CUDA_SUCCESS;
}

static CUresult read_inputs(struct linking *linking)
{
	CUresult status = CUDA_SUCCESS;
	size_t at = 0;

	linking->inputs = calloc(FGV_LINK_INPUTS_MAX, sizeof(*linking->inputs));
	if (!linking->inputs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	linking->what.inputs = linking->inputs;
	while (status == CUDA_SUCCESS && at < linking->len)
		status = read_input(linking, &at);
	return status == CUDA_SUCCESS && !linking->what.inputs_count ? CUDA_ERROR_INVALID_VALUE
								     : status;
}

static CUresult link_and_try(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_gpu_link *what, void **image, size_t *len)
{
	struct fgv_gpu *gpu = session->gpu;
	CUresult status = gpu->ops->link(gpu, what, image, len);

	if (status != CUDA_SUCCESS || !gpu->ops->links_late)
		return status;
	status = fgv_module_try(session, request, *image, *len, what->errors, what->log_len);
	if (status != CUDA_SUCCESS)
		free(*image);
	return status;
}

/* Texts of at most half the log, whatever the guest's is made of. */
static void write_log(const struct fgv_link_in *in, const char *errors, const char *info,
		      size_t room)
{
	size_t half = fgv_min_u64(in->log_len / 2, room);

	if (!half)
		return;
	memcpy(in->log, errors, half - 1);
	memcpy((char *)in->log + in->log_len / 2, info, half - 1);
}

static CUresult run(struct fgv_session *session, struct fgv_request *request,
		    const struct fgv_link_in *in, struct linking *linking, struct fgv_link_out *out)
{
	char errors[LOG_BYTES] = "", info[LOG_BYTES] = "";
	void *image;
	size_t len;
	CUresult status;

	linking->what.errors = errors;
	linking->what.info = info;
	linking->what.log_len = sizeof(errors);
	status = link_and_try(session, request, &linking->what, &image, &len);
	if (status == FGV_CLOSED)
		return status;
	write_log(in, errors, info, sizeof(errors));
	if (status != CUDA_SUCCESS)
		return status;
	out->len = len;
	if (len <= in->linked_len)
		memcpy(in->linked, image, len);
	free(image);
	return CUDA_SUCCESS;
}

CUresult fgv_do_link(struct fgv_session *session, struct fgv_request *request,
		     const struct fgv_link_in *in, struct fgv_link_out *out)
{
	struct linking linking = {.len = in->inputs_len};
	CUresult status = read_options(&linking, in->options, in->options_len);

	if (status != CUDA_SUCCESS)
		return status;
	linking.image = fgv_module_copy_image(session, in->inputs, in->inputs_len);
	if (!linking.image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = read_inputs(&linking);
	if (status == CUDA_SUCCESS)
		status = run(session, request, in, &linking, out);
	free(linking.inputs);
	free(linking.image);
	return status;
}
