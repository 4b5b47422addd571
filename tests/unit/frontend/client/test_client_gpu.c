/* The handlers of the tests' host: a device that does everything at once, and says that it
 * is an H200. */
#include "tests/unit/frontend/client/test_client_host.h"

#include <string.h>

#include "common/util.h"
#include "tests/unit/frontend/client/test_client_h200.h"

#define UNUSED (void)session, (void)request

/* The kernel "NAME" has the parameter sizes that its entry here says. */
static const struct {
	const char *name;
	uint32_t count;
	uint32_t sizes[4];
} kernels[] = {
	{"empty", 0, {0}},
	{"add", 3, {8, 4, 1}},
	{"big", 2, {100, 8}},
};

void host_be_h200(void)
{
	for (int i = 1; i < FGV_DEVICE_ATTRIBUTES; i++)
		host.attributes[i] = i < H200_ATTRIBUTES ? h200_attributes[i] : INT32_MIN;
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
	host.function_attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 8;
	host.function_attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
}

void *fgv_session_resolve(struct fgv_session *session, uint64_t off, uint64_t len)
{
	(void)session;
	return fgv_window_resolve(&host.window, off, len);
}

static struct fgv_object *own_place(enum fgv_kind kind, uint32_t handle)
{
	bool is_event = kind == FGV_KIND_EVENT;

	return &host.own[is_event ? FGV_OWN_EVENT : FGV_OWN_STREAM][handle % HOST_OWN];
}

static struct fgv_object *lookup_own(enum fgv_kind kind, uint32_t handle)
{
	struct fgv_object *object = own_place(kind, handle);

	return object->kind == (int)kind + 1 && object->handle == handle ? object : NULL;
}

struct fgv_object *fgv_session_lookup(struct fgv_session *session, enum fgv_kind kind,
				      uint32_t handle)
{
	(void)session;
	if (handle & FGV_OWN_BIT)
		return lookup_own(kind, handle);
	if (handle >= HOST_OBJECTS || host.objects[handle].kind != (int)kind + 1)
		return NULL;
	return &host.objects[handle];
}

static uint32_t add_object(enum fgv_kind kind)
{
	host.objects[host.object_count].kind = (int)kind + 1;
	return host.object_count++;
}

uint32_t host_handle_of(const struct fgv_object *object)
{
	if (object && object->handle)
		return object->handle;
	return object ? (uint32_t)(object - host.objects) : 0;
}

/* What the knob says of an operation. */
static CUresult status_of(const struct fgv_request *request)
{
	return (CUresult)HOST_GET(status[request->op]);
}

static void *place(uint64_t address, uint64_t len)
{
	uint64_t off = address - HOST_VA_BASE;

	for (uint64_t i = 0; i < host.freed_count && i < 64; i++) {
		if (host.freed[i] == address)
			return NULL;
	}
	return off < host.allocated && len <= host.allocated - off ? host.memory + off : NULL;
}

/* The same in host memory that was shown. */
static void *place_anywhere(uint64_t address, uint64_t len)
{
	for (uint32_t i = 0; i < host.mapped_count; i++) {
		uint64_t off = address - host.mapped[i].address;

		if (off < host.mapped[i].len && len <= host.mapped[i].len - off)
			return (void *)(uintptr_t)address;
	}
	return place(address, len);
}

CUresult fgv_do_device_info(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_device_info_in *in)
{
	struct fgv_device_info info = {
		.memory_bytes = HOST_MEMORY,
		.va_base = HOST_VA_BASE,
		.va_len = HOST_MEMORY,
		.devices = 1,
		.driver_version = 13000,
		.name = "test device",
		.pci_bus_id = "0000:06:00.0",
	};

	UNUSED;
	memcpy(info.attributes, host.attributes, sizeof(info.attributes));
	for (int i = 1; i < FGV_DEVICE_ATTRIBUTES; i++) {
		if (info.attributes[i] != INT32_MIN)
			info.attribute_known[i / 32] |= 1u << (i % 32);
	}
	memcpy(in->info, &info, sizeof(info));
	return status_of(request);
}

CUresult fgv_do_mem_alloc(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_mem_alloc_in *in, struct fgv_mem_alloc_out *out)
{
	UNUSED;
	if (host.misfit_count) {
		out->address = host.misfits[--host.misfit_count];
		return status_of(request);
	}
	if (in->size > HOST_MEMORY - host.allocated)
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->address = HOST_VA_BASE + host.allocated;
	host.allocated += (in->size + 511) / 512 * 512;
	return status_of(request);
}

CUresult fgv_do_mem_free(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_mem_free_in *in)
{
	UNUSED;
	host.freed[host.freed_count++ % 64] = in->address;
	return CUDA_SUCCESS;
}

CUresult fgv_do_mem_info(struct fgv_session *session, struct fgv_request *request,
			 struct fgv_mem_info_out *out)
{
	UNUSED;
	out->free = HOST_MEMORY - host.allocated;
	out->total = HOST_MEMORY;
	return status_of(request);
}

static CUresult copy_to(uint64_t address, const void *data, uint64_t len)
{
	void *to = place(address, len);

	if (!to)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, data, len);
	return CUDA_SUCCESS;
}

CUresult fgv_do_copy_in(struct fgv_session *session, struct fgv_request *request,
			const struct fgv_copy_in_in *in)
{
	UNUSED;
	return copy_to(in->address, in->data, in->data_len);
}

CUresult fgv_do_copy_in_bulk(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_copy_in_bulk_in *in)
{
	CUresult status = copy_to(in->address, in->data, in->data_len);

	UNUSED;
	host_give_back(in->loan, in->number);
	return status;
}

CUresult fgv_do_copy_out(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_copy_out_in *in)
{
	const void *from = place(in->address, in->data_len);
	CUresult status = status_of(request);

	UNUSED;
	if (status || !from)
		return status ? status : CUDA_ERROR_INVALID_VALUE;
	memcpy(in->data, from, in->data_len);
	return CUDA_SUCCESS;
}

CUresult fgv_do_copy_device(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_copy_device_in *in)
{
	void *to = place_anywhere(in->to, in->size);
	const void *from = place_anywhere(in->from, in->size);

	UNUSED;
	if (!to || !from)
		return CUDA_ERROR_INVALID_VALUE;
	memmove(to, from, in->size);
	return CUDA_SUCCESS;
}

CUresult fgv_do_fill(struct fgv_session *session, struct fgv_request *request,
		     const struct fgv_fill_in *in)
{
	uint8_t *to = place(in->address, in->count * in->width);

	UNUSED;
	if (!to)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t i = 0; i < in->count; i++)
		memcpy(to + i * in->width, &in->value, in->width);
	return CUDA_SUCCESS;
}

CUresult fgv_do_fill_rows(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_fill_rows_in *in)
{
	uint8_t *to = place(in->address, in->pitch * (in->height - 1) + in->width);

	UNUSED;
	if (!to)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t row = 0; row < in->height; row++)
		memset(to + row * in->pitch, (int)in->value, in->width);
	return CUDA_SUCCESS;
}

/* At @info, all that is known of kernel @k but its handle; how long that is. */
static uint32_t describe(unsigned k, struct fgv_function_info *info)
{
	info->param_count = kernels[k].count;
	memcpy(info->attributes, host.function_attributes, sizeof(info->attributes));
	memcpy(info->param_sizes, kernels[k].sizes, kernels[k].count * sizeof(uint32_t));
	for (uint32_t i = 0; i < kernels[k].count; i++)
		info->param_sizes[kernels[k].count + i] = 128 * i;
	return (uint32_t)(sizeof(*info) + 2 * kernels[k].count * sizeof(uint32_t));
}

static uint32_t add_function(unsigned k)
{
	uint32_t handle = add_object(FGV_KIND_FUNCTION);

	strcpy(host.objects[handle].name, kernels[k].name);
	return handle;
}

static void describe_all(uint8_t *to, struct fgv_module_load_out *out)
{
	out->kernels = 3;
	for (unsigned k = 0; k < 3; k++) {
		struct fgv_kernel_record record = {
			.function = add_function(k),
			.info_len = describe(k, (void *)(to + out->bytes + sizeof(record))),
			.name_len = (uint32_t)strlen(kernels[k].name) + 1,
		};

		record.len = (uint32_t)fgv_align_up(
			sizeof(record) + record.info_len + record.name_len, 8);
		record.len += host.misdescribes;
		memcpy(to + out->bytes, &record, sizeof(record));
		memcpy(to + out->bytes + sizeof(record) + record.info_len, kernels[k].name,
		       record.name_len);
		out->bytes += record.len;
	}
}

CUresult fgv_do_module_load(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_module_load_in *in, struct fgv_module_load_out *out)
{
	UNUSED;
	host.image_len = in->image_len;
	if (in->image_len <= sizeof(host.image))
		memcpy(host.image, in->image, in->image_len);
	if (in->look && host.managed_bytes) {
		out->bytes = host.managed_bytes;
		memcpy(in->description, host.managed,
		       fgv_min_u64(host.managed_bytes, in->description_len));
		return status_of(request);
	}
	out->module = add_object(FGV_KIND_MODULE);
	out->kernels = FGV_KERNELS_UNKNOWN;
	if (host.describes)
		describe_all(in->description, out);
	return status_of(request);
}

CUresult fgv_do_image_known(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_image_known_in *in, struct fgv_image_known_out *out)
{
	UNUSED;
	out->known = host.kept_len && in->len == host.kept_len;
	return status_of(request);
}

CUresult fgv_do_module_load_known(struct fgv_session *session, struct fgv_request *request,
				  const struct fgv_module_load_known_in *in,
				  struct fgv_module_load_known_out *out)
{
	UNUSED;
	if (in->len != host.kept_len || memcmp(in->digest, host.kept_digest, sizeof(in->digest)))
		return status_of(request);
	out->known = 1;
	out->module = add_object(FGV_KIND_MODULE);
	out->kernels = FGV_KERNELS_UNKNOWN;
	return status_of(request);
}

CUresult fgv_do_module_load_placed(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_module_load_placed_in *in,
				   struct fgv_module_load_placed_out *out)
{
	UNUSED, (void)in;
	out->module = add_object(FGV_KIND_MODULE);
	return status_of(request);
}

CUresult fgv_do_module_managed(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_module_managed_in *in,
			       struct fgv_module_managed_out *out)
{
	UNUSED;
	out->bytes = host.managed_bytes;
	memcpy(in->variables, host.managed, fgv_min_u64(host.managed_bytes, in->variables_len));
	return status_of(request);
}

CUresult fgv_do_module_unload(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_module_unload_in *in)
{
	UNUSED;
	in->module->kind = 0;
	return CUDA_SUCCESS;
}

CUresult fgv_do_function_get(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_function_get_in *in, struct fgv_function_get_out *out)
{
	unsigned k = 0;

	UNUSED;
	while (k < 3 && (strlen(kernels[k].name) != in->name_len ||
			 memcmp(kernels[k].name, in->name, in->name_len)))
		k++;
	if (k == 3)
		return CUDA_ERROR_NOT_FOUND;
	out->info_len = describe(k, in->info);
	out->function = add_function(k);
	return status_of(request);
}

CUresult fgv_do_module_kernels(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_module_kernels_in *in,
			       struct fgv_module_kernels_out *out)
{
	UNUSED, (void)in;
	out->bytes = 0;
	return status_of(request);
}

CUresult fgv_do_global_get(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_global_get_in *in, struct fgv_global_get_out *out)
{
	UNUSED;
	if (in->name_len != 5 || memcmp(in->name, "table", 5))
		return CUDA_ERROR_NOT_FOUND;
	out->address = HOST_VA_BASE + host.allocated;
	out->size = 64;
	host.allocated += 512;
	return status_of(request);
}

CUresult fgv_do_launch(struct fgv_session *session, struct fgv_request *request,
		       const struct fgv_launch_in *in)
{
	struct host_launch *launch = &host.launches[host.launch_count % HOST_LAUNCHES];

	UNUSED;
	strcpy(launch->kernel, in->function->name);
	memcpy(launch->grid, in->grid, sizeof(launch->grid));
	memcpy(launch->block, in->block, sizeof(launch->block));
	launch->shared_bytes = in->shared_bytes;
	launch->stream = host_handle_of(in->stream);
	launch->param_count = in->param_count;
	launch->args_len = in->args_len;
	if (in->args_len <= sizeof(launch->args))
		memcpy(launch->args, in->args, in->args_len);
	__atomic_fetch_add(&host.launch_count, 1, __ATOMIC_RELEASE);
	return status_of(request);
}

CUresult fgv_do_launch_cooperative(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_launch_cooperative_in *in)
{
	UNUSED, (void)in;
	return status_of(request);
}

CUresult fgv_do_host_func(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_host_func_in *in)
{
	UNUSED, (void)in;
	return status_of(request);
}

CUresult fgv_do_host_func_next(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_host_func_next_in *in,
			       struct fgv_host_func_next_out *out)
{
	UNUSED, (void)in;
	out->number = 0;
	return status_of(request);
}

CUresult fgv_do_own_reserve(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_own_reserve_in *in)
{
	UNUSED;
	if (host.most_reserved && host.reserved[in->kind] + in->count > host.most_reserved)
		return CUDA_ERROR_OUT_OF_MEMORY;
	host.reserved[in->kind] += in->count;
	host.room[in->kind] += in->count;
	return status_of(request);
}

CUresult fgv_do_own_return(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_own_return_in *in)
{
	UNUSED;
	host.reserved[in->kind] -= in->count;
	host.room[in->kind] -= in->count;
	return CUDA_SUCCESS;
}

/* What there is no room for, or exists, an honest guest does not make. */
static CUresult add_own(enum fgv_kind kind, uint32_t handle)
{
	struct fgv_object *object = own_place(kind, handle);
	int64_t *room = &host.room[kind == FGV_KIND_EVENT ? FGV_OWN_EVENT : FGV_OWN_STREAM];

	if (object->kind || *room <= 0)
		__atomic_fetch_add(&host.violations, 1, __ATOMIC_RELEASE);
	--*room;
	*object = (struct fgv_object){.kind = (int)kind + 1, .handle = handle};
	return CUDA_SUCCESS;
}

static void remove_own(struct fgv_object *object, enum fgv_own_kind which)
{
	object->kind = 0;
	if (object->handle)
		host.room[which]++;
}

CUresult fgv_do_stream_make(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_stream_make_in *in)
{
	UNUSED;
	return add_own(FGV_KIND_STREAM, in->handle);
}

CUresult fgv_do_event_make(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_event_make_in *in)
{
	UNUSED;
	return add_own(FGV_KIND_EVENT, in->handle);
}

CUresult fgv_do_stream_create(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_stream_create_in *in,
			      struct fgv_stream_create_out *out)
{
	UNUSED, (void)in;
	out->stream = add_object(FGV_KIND_STREAM);
	return status_of(request);
}

CUresult fgv_do_stream_destroy(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_stream_destroy_in *in)
{
	UNUSED;
	remove_own(in->stream, FGV_OWN_STREAM);
	return CUDA_SUCCESS;
}

CUresult fgv_do_stream_sync(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_stream_sync_in *in)
{
	UNUSED, (void)in;
	return host_hold(request->lane, request->call) ? FGV_PENDING : status_of(request);
}

CUresult fgv_do_stream_query(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_stream_query_in *in)
{
	UNUSED, (void)in;
	return status_of(request);
}

CUresult fgv_do_device_sync(struct fgv_session *session, struct fgv_request *request)
{
	UNUSED;
	return status_of(request);
}

CUresult fgv_do_stream_wait_event(struct fgv_session *session, struct fgv_request *request,
				  const struct fgv_stream_wait_event_in *in)
{
	UNUSED, (void)in;
	return CUDA_SUCCESS;
}

CUresult fgv_do_event_create(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_event_create_in *in, struct fgv_event_create_out *out)
{
	UNUSED, (void)in;
	out->event = add_object(FGV_KIND_EVENT);
	return status_of(request);
}

CUresult fgv_do_event_destroy(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_event_destroy_in *in)
{
	UNUSED;
	remove_own(in->event, FGV_OWN_EVENT);
	return CUDA_SUCCESS;
}

CUresult fgv_do_event_record(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_event_record_in *in)
{
	UNUSED;
	in->event->recorded = 1;
	return CUDA_SUCCESS;
}

CUresult fgv_do_event_sync(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_event_sync_in *in)
{
	UNUSED, (void)in;
	return status_of(request);
}

CUresult fgv_do_event_query(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_event_query_in *in)
{
	UNUSED, (void)in;
	return status_of(request);
}

CUresult fgv_do_event_elapsed(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_event_elapsed_in *in,
			      struct fgv_event_elapsed_out *out)
{
	UNUSED;
	if (!in->start->recorded || !in->end->recorded)
		return CUDA_ERROR_INVALID_HANDLE;
	out->ms = 1.5f;
	return status_of(request);
}

CUresult fgv_do_host_map(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_host_map_in *in)
{
	CUresult status = status_of(request);

	UNUSED;
	if (!status && host.mapped_count < 16) {
		host.mapped[host.mapped_count].address = in->address;
		host.mapped[host.mapped_count++].len = in->pages_len;
	}
	return status;
}

CUresult fgv_do_host_show(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_host_show_in *in)
{
	UNUSED;
	(void)in;
	return status_of(request);
}

CUresult fgv_do_host_unmap(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_host_unmap_in *in)
{
	UNUSED;
	for (uint32_t i = 0; i < host.mapped_count; i++) {
		if (host.mapped[i].address == in->address)
			host.mapped[i] = host.mapped[--host.mapped_count];
	}
	return status_of(request);
}

CUresult fgv_do_text_read(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_text_read_in *in, struct fgv_text_read_out *out)
{
	UNUSED, (void)in;
	out->stdout_bytes = 0;
	out->stderr_bytes = 0;
	return status_of(request);
}

CUresult fgv_do_limit_get(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_limit_get_in *in, struct fgv_limit_get_out *out)
{
	UNUSED;
	out->value = host.limits[in->limit % HOST_LIMITS];
	return status_of(request);
}

CUresult fgv_do_limit_set(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_limit_set_in *in)
{
	UNUSED;
	/* As drivers do, which round up. */
	host.limits[in->limit % HOST_LIMITS] = (in->value + 15) / 16 * 16;
	return status_of(request);
}

CUresult fgv_do_texture_linear_width(struct fgv_session *session, struct fgv_request *request,
				     const struct fgv_texture_linear_width_in *in,
				     struct fgv_texture_linear_width_out *out)
{
	UNUSED, (void)in;
	out->texels = 1 << 27;
	return status_of(request);
}

CUresult fgv_do_peer_attribute(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_peer_attribute_in *in,
			       struct fgv_peer_attribute_out *out)
{
	UNUSED, (void)in;
	out->value = 0;
	return status_of(request);
}

CUresult fgv_do_peer_enable(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_peer_enable_in *in)
{
	UNUSED, (void)in;
	return status_of(request);
}

CUresult fgv_do_peer_disable(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_peer_disable_in *in)
{
	UNUSED, (void)in;
	return status_of(request);
}

CUresult fgv_do_host_atomics(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_host_atomics_in *in, struct fgv_host_atomics_out *out)
{
	UNUSED;
	out->capabilities = 1u << in->operation;
	return status_of(request);
}
