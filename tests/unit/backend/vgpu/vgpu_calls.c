/* The requests of a guest that keeps the rules. */
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#include <check.h>
#include <cuda.h>
#include <string.h>
#include "tests/unit/backend/gpu/fatbin_build.h"

const char vgpu_add_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".global .align 4 .u32 bias = 5;\n"
	".visible .entry add(.param .u64 data, .param .u32 count, .param .u8 more)\n"
	"{\n"
	".reg .pred %p<2>;\n.reg .b32 %r<9>;\n.reg .b16 %h<2>;\n.reg .b64 %d<5>;\n"
	"ld.param.u64 %d1, [data];\n"
	"ld.param.u32 %r1, [count];\n"
	"ld.param.u8 %h1, [more];\n"
	"cvt.u32.u16 %r7, %h1;\n"
	"mov.u32 %r2, %ctaid.x;\n"
	"mov.u32 %r3, %ntid.x;\n"
	"mov.u32 %r4, %tid.x;\n"
	"mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"setp.ge.u32 %p1, %r5, %r1;\n"
	"@%p1 bra done;\n"
	"cvta.to.global.u64 %d2, %d1;\n"
	"mul.wide.u32 %d3, %r5, 4;\n"
	"add.s64 %d4, %d2, %d3;\n"
	"ld.global.u32 %r6, [%d4];\n"
	"add.u32 %r6, %r6, %r7;\n"
	"ld.global.u32 %r8, [bias];\n"
	"add.u32 %r6, %r6, %r8;\n"
	"st.global.u32 [%d4], %r6;\n"
	"done:\nret;\n"
	"}\n";

const char vgpu_forever_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				".visible .entry forever()\n{\nagain:\nbra.uni again;\nret;\n}\n";

void vgpu_must_post(struct vgpu *vgpu, uint32_t lane, uint16_t op, const void *message,
		    uint32_t len)
{
	ck_assert(vgpu_post(vgpu, lane, op, message, len));
}

uint32_t vgpu_device_sync(struct vgpu *vgpu)
{
	return vgpu_call(vgpu, 0, FGV_OP_DEVICE_SYNC, NULL, 0, NULL);
}

uint32_t vgpu_alloc(struct vgpu *vgpu, uint64_t size, uint64_t *address)
{
	struct fgv_mem_alloc_request request = {.size = size};
	struct fgv_mem_alloc_reply reply = {0};
	uint32_t status = vgpu_call(vgpu, 0, FGV_OP_MEM_ALLOC, &request, sizeof(request), &reply);

	*address = reply.address;
	return status;
}

uint64_t vgpu_must_alloc(struct vgpu *vgpu, uint64_t size)
{
	uint64_t address;

	ck_assert_uint_eq(vgpu_alloc(vgpu, size, &address), CUDA_SUCCESS);
	return address;
}

void vgpu_mem_free(struct vgpu *vgpu, uint64_t address)
{
	struct fgv_mem_free_request request = {.address = address};

	vgpu_must_post(vgpu, 0, FGV_OP_MEM_FREE, &request, sizeof(request));
}

void vgpu_copy_in(struct vgpu *vgpu, uint64_t address, const void *data, uint32_t len)
{
	struct fgv_copy_in_request head = {.address = address};
	uint8_t message[sizeof(head) + FGV_DATA_MAX];

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), data, len);
	vgpu_must_post(vgpu, 0, FGV_OP_COPY_IN, message, (uint32_t)sizeof(head) + len);
}

uint32_t vgpu_copy_out(struct vgpu *vgpu, uint64_t address, uint64_t len, uint64_t arena_off)
{
	struct fgv_copy_out_request request = {
		.address = address,
		.data_off = vgpu->window.arena_off + arena_off,
		.data_len = len,
	};

	return vgpu_call(vgpu, 0, FGV_OP_COPY_OUT, &request, sizeof(request), NULL);
}

void vgpu_fill(struct vgpu *vgpu, uint64_t address, uint64_t count, uint32_t value, uint32_t width)
{
	struct fgv_fill_request request = {
		.address = address, .count = count, .value = value, .width = width};

	vgpu_must_post(vgpu, 0, FGV_OP_FILL, &request, sizeof(request));
}

uint32_t vgpu_load(struct vgpu *vgpu, uint64_t len, uint32_t *module)
{
	struct fgv_module_load_request request = {
		.image_off = vgpu->window.arena_off,
		.image_len = len,
		.description_off = vgpu->window.arena_off,
	};
	struct fgv_module_load_reply reply = {0};
	uint32_t status = vgpu_call(vgpu, 0, FGV_OP_MODULE_LOAD, &request, sizeof(request), &reply);

	*module = reply.module;
	return status;
}

uint64_t vgpu_put_image(struct vgpu *vgpu, const char *text)
{
	struct fatbin image;
	uint64_t len;

	fatbin_init(&image);
	fatbin_begin(&image);
	fatbin_add_ptx(&image, text);
	memcpy(vgpu_arena(vgpu, 0), image.bytes, image.len);
	len = image.len;
	fatbin_fini(&image);
	return len;
}

uint32_t vgpu_load_ptx(struct vgpu *vgpu, const char *text, uint32_t *module)
{
	return vgpu_load(vgpu, vgpu_put_image(vgpu, text), module);
}

uint32_t vgpu_get_function(struct vgpu *vgpu, uint32_t module, const char *name, uint32_t *function)
{
	struct fgv_function_get_request head = {
		.module = module,
		.info_off = vgpu->window.arena_off,
		.info_len = 65536,
	};
	struct fgv_function_get_reply reply = {0};
	uint8_t message[sizeof(head) + 64];
	uint32_t status;

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), name, strlen(name));
	status = vgpu_call(vgpu, 0, FGV_OP_FUNCTION_GET, message,
			   (uint32_t)(sizeof(head) + strlen(name)), &reply);
	*function = reply.function;
	return status;
}

uint32_t vgpu_must_get(struct vgpu *vgpu, const char *text, const char *name)
{
	uint32_t module, function;

	ck_assert_uint_eq(vgpu_load_ptx(vgpu, text, &module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_function(vgpu, module, name, &function), CUDA_SUCCESS);
	return function;
}

void vgpu_launch(struct vgpu *vgpu, uint32_t function, uint32_t blocks, const uint64_t *args,
		 uint32_t count)
{
	struct fgv_launch_request head = {
		.function = function,
		.grid = {blocks, 1, 1},
		.block = {128, 1, 1},
		.param_count = count,
	};
	uint8_t message[sizeof(head) + 8 * 8];

	memcpy(message, &head, sizeof(head));
	if (count > 0)
		memcpy(message + sizeof(head), args, count * 8);
	vgpu_must_post(vgpu, 0, FGV_OP_LAUNCH, message, (uint32_t)sizeof(head) + count * 8);
}

uint32_t vgpu_host_map(struct vgpu *vgpu, uint64_t address, uint64_t off, uint64_t len)
{
	struct fgv_host_map_request request = {
		.address = address, .pages_off = vgpu->window.arena_off + off, .pages_len = len};

	return vgpu_call(vgpu, 0, FGV_OP_HOST_MAP, &request, sizeof(request), NULL);
}

uint32_t vgpu_host_unmap(struct vgpu *vgpu, uint64_t address)
{
	struct fgv_host_unmap_request request = {.address = address};

	return vgpu_call(vgpu, 0, FGV_OP_HOST_UNMAP, &request, sizeof(request), NULL);
}

uint32_t vgpu_must_create_stream(struct vgpu *vgpu, uint32_t flags)
{
	struct fgv_stream_create_request request = {.flags = flags};
	struct fgv_stream_create_reply reply = {0};

	ck_assert_uint_eq(
		vgpu_call(vgpu, 0, FGV_OP_STREAM_CREATE, &request, sizeof(request), &reply),
		CUDA_SUCCESS);
	return reply.stream;
}

uint32_t vgpu_must_create_event(struct vgpu *vgpu)
{
	struct fgv_event_create_request request = {0};
	struct fgv_event_create_reply reply = {0};

	ck_assert_uint_eq(
		vgpu_call(vgpu, 0, FGV_OP_EVENT_CREATE, &request, sizeof(request), &reply),
		CUDA_SUCCESS);
	return reply.event;
}

void vgpu_record(struct vgpu *vgpu, uint32_t event, uint32_t stream)
{
	struct fgv_event_record_request request = {.event = event, .stream = stream};

	vgpu_must_post(vgpu, 0, FGV_OP_EVENT_RECORD, &request, sizeof(request));
}

uint32_t vgpu_create_array(struct vgpu *vgpu, const struct fgv_array_create_request *request,
			   uint32_t *array)
{
	struct fgv_array_create_reply reply = {0};
	uint32_t status =
		vgpu_call(vgpu, 0, FGV_OP_ARRAY_CREATE, request, sizeof(*request), &reply);

	*array = reply.array;
	return status;
}

uint32_t vgpu_get_level(struct vgpu *vgpu, uint32_t array, uint32_t level, uint32_t *part)
{
	struct fgv_array_level_request request = {.array = array, .level = level};
	struct fgv_array_level_reply reply = {0};
	uint32_t status = vgpu_call(vgpu, 0, FGV_OP_ARRAY_LEVEL, &request, sizeof(request), &reply);

	*part = reply.part;
	return status;
}

uint32_t vgpu_create_texture(struct vgpu *vgpu, const struct fgv_texture_create_request *request,
			     struct fgv_texture_create_reply *reply)
{
	return vgpu_call(vgpu, 0, FGV_OP_TEXTURE_CREATE, request, sizeof(*request), reply);
}

uint32_t vgpu_create_surface(struct vgpu *vgpu, uint32_t array,
			     struct fgv_surface_create_reply *reply)
{
	struct fgv_surface_create_request request = {.array = array};

	return vgpu_call(vgpu, 0, FGV_OP_SURFACE_CREATE, &request, sizeof(request), reply);
}

void vgpu_destroy_array(struct vgpu *vgpu, uint32_t array)
{
	struct fgv_array_destroy_request request = {.array = array};

	vgpu_must_post(vgpu, 0, FGV_OP_ARRAY_DESTROY, &request, sizeof(request));
}

void vgpu_destroy_texture(struct vgpu *vgpu, uint32_t texture)
{
	struct fgv_texture_destroy_request request = {.texture = texture};

	vgpu_must_post(vgpu, 0, FGV_OP_TEXTURE_DESTROY, &request, sizeof(request));
}

uint32_t vgpu_must_create_array(struct vgpu *vgpu, const uint64_t size[3], uint32_t flags,
				uint32_t levels)
{
	const struct fgv_array_create_request request = {
		.size = {size[0], size[1], size[2]},
		.format = CU_AD_FORMAT_FLOAT,
		.channels = 1,
		.flags = flags,
		.levels = levels,
	};
	uint32_t array;

	ck_assert_uint_eq(vgpu_create_array(vgpu, &request, &array), CUDA_SUCCESS);
	return array;
}

struct fgv_texture_create_request vgpu_right_texture(uint32_t array)
{
	struct fgv_texture_create_request request = {
		.array = array,
		.type = array ? CU_RESOURCE_TYPE_ARRAY : CU_RESOURCE_TYPE_LINEAR,
		.size = {4096},
		.format = CU_AD_FORMAT_FLOAT,
		.channels = 1,
	};

	return request;
}
