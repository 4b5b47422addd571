/* The tests' host (test_client_gpu.c): boxes of its memory. Of arrays it knows the names only. */
#include "tests/unit/frontend/client/test_client_host.h"

#include <string.h>

/* A box's rows in memory, or with a pitch and rows of their own beside it. */
struct rows {
	uint8_t *base;
	uint64_t pitch, slice;
};

static CUresult find_rows(const uint64_t at[3], const uint64_t box[3], struct rows *rows)
{
	uint64_t slice = at[1] * at[2];
	uint64_t span = slice * (box[2] - 1) + at[1] * (box[1] - 1) + box[0];
	uint64_t off = at[0] - HOST_VA_BASE;

	if (off > host.allocated || span > host.allocated - off)
		return CUDA_ERROR_INVALID_VALUE;
	*rows = (struct rows){host.memory + off, at[1], slice};
	return CUDA_SUCCESS;
}

static struct rows dense(const void *data, const uint64_t box[3])
{
	return (struct rows){(uint8_t *)(uintptr_t)data, box[0], box[0] * box[1]};
}

static void copy(struct rows to, struct rows from, const uint64_t box[3])
{
	for (uint64_t z = 0; z < box[2]; z++) {
		for (uint64_t y = 0; y < box[1]; y++)
			memmove(to.base + z * to.slice + y * to.pitch,
				from.base + z * from.slice + y * from.pitch, box[0]);
	}
}

static CUresult box_in(const struct fgv_object *array, const uint64_t at[3], const uint64_t box[3],
		       const void *data)
{
	struct rows to;
	CUresult status = array ? CUDA_ERROR_NOT_SUPPORTED : find_rows(at, box, &to);

	if (!status)
		copy(to, dense(data, box), box);
	return status;
}

CUresult fgv_do_copy_box(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_copy_box_in *in)
{
	struct rows to, from;
	CUresult status = CUDA_ERROR_NOT_SUPPORTED;

	(void)session, (void)request;
	if (!in->to_array && !in->from_array)
		status = find_rows(in->to, in->box, &to);
	if (!status)
		status = find_rows(in->from, in->box, &from);
	if (!status)
		copy(to, from, in->box);
	return status;
}

CUresult fgv_do_box_in(struct fgv_session *session, struct fgv_request *request,
		       const struct fgv_box_in_in *in)
{
	(void)session, (void)request;
	return box_in(in->array, in->to, in->box, in->data);
}

CUresult fgv_do_box_in_bulk(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_box_in_bulk_in *in)
{
	CUresult status = box_in(in->array, in->to, in->box, in->data);

	(void)session, (void)request;
	host_give_back(in->loan, in->number);
	return status;
}

CUresult fgv_do_box_out(struct fgv_session *session, struct fgv_request *request,
			const struct fgv_box_out_in *in)
{
	struct rows from;
	CUresult status = CUDA_ERROR_NOT_SUPPORTED;

	(void)session, (void)request;
	if (!in->array)
		status = find_rows(in->from, in->box, &from);
	if (!status)
		copy(dense(in->data, in->box), from, in->box);
	return status;
}

static uint32_t add_array(void)
{
	host.objects[host.object_count].kind = FGV_KIND_ARRAY + 1;
	return host.object_count++;
}

CUresult fgv_do_array_create(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_array_create_in *in, struct fgv_array_create_out *out)
{
	(void)session, (void)in;
	out->array = add_array();
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_array_destroy(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_array_destroy_in *in)
{
	(void)session, (void)request;
	in->array->kind = 0;
	return CUDA_SUCCESS;
}

CUresult fgv_do_array_level(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_array_level_in *in, struct fgv_array_level_out *out)
{
	(void)session, (void)in;
	out->part = add_array();
	return (CUresult)HOST_GET(status[request->op]);
}

static uint32_t add_texture(void)
{
	host.objects[host.object_count].kind = FGV_KIND_TEXTURE + 1;
	return host.object_count++;
}

CUresult fgv_do_texture_create(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_texture_create_in *in,
			       struct fgv_texture_create_out *out)
{
	(void)session, (void)in;
	out->texture = add_texture();
	out->number = out->texture;
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_surface_create(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_surface_create_in *in,
			       struct fgv_surface_create_out *out)
{
	(void)session, (void)in;
	out->texture = add_texture();
	out->number = out->texture;
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_texture_destroy(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_texture_destroy_in *in)
{
	(void)session, (void)request;
	in->texture->kind = 0;
	return CUDA_SUCCESS;
}
