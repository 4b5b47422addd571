/*
 * For each operation of gpu.api, what a hostile guest says with it and what that brings: an error,
 * nothing, or the end of its session. An operation without a case fails every_operation_has_a_case.
 *
 * All but those that end a session are sent to one vGPU process, which must go on serving.
 */
#include <check.h>
#include <cuda.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define BYTES	 4096 /* of the memory and the array that the guest has */
#define TEXT_OFF 8192 /* where its image lies in the arena */

/* Stand for places that are known only when the guest is there; the lower half is added to them. */
#define ARENA  0xa1e1a00000000000ull
#define MEMORY 0xb2e2b00000000000ull
#define PLACES 0xffffffff00000000ull

/* The first handle of each kind; and one that was never given out. */
#define FIRST	(1u << 20)
#define UNKNOWN (2u << 20 | 7)

enum outcome {
	REFUSED, /* with a status, in its reply or that of the next call */
	NOTHING, /* a reply whose first word is 0, or no effect that a call would tell of */
	ENDED,	 /* a violation */
};

struct refusal {
	uint16_t op;
	enum outcome outcome;
	CUresult status;
	const void *request;
	uint32_t request_len;
	const char *bytes;
	uint32_t bytes_len;
};

#define REQUEST(name, ...)                                                                         \
	.request = &(const struct fgv_##name##_request){__VA_ARGS__},                              \
	.request_len = sizeof(struct fgv_##name##_request)
#define TEXT(text) .bytes = (text), .bytes_len = sizeof(text) - 1
#define SAYS(code) .outcome = REFUSED, .status = (code)

/* Of addresses that nobody can have: what mmap() says, and ThreadSanitizer's says another thing. */
#ifdef __SANITIZE_THREAD__
#define BEYOND_ALL CUDA_ERROR_ALREADY_MAPPED
#else
#define BEYOND_ALL CUDA_ERROR_OUT_OF_MEMORY
#endif

static const char image[] = "neither PTX nor a fat binary";

/* clang-format off */
static const struct refusal refusals[] = {
	{FGV_OP_DEVICE_INFO, SAYS(CUDA_ERROR_INVALID_DEVICE),
		REQUEST(device_info, .device = 1, .info_off = ARENA, .info_len = 4096)},
	{FGV_OP_DEVICE_INFO, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(device_info, .info_off = ARENA, .info_len = 983)},
	{FGV_OP_MEM_ALLOC, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(mem_alloc, .size = 0)},
	{FGV_OP_MEM_ALLOC, SAYS(CUDA_ERROR_OUT_OF_MEMORY), REQUEST(mem_alloc, .size = UINT64_MAX)},
	{FGV_OP_MEM_FREE, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(mem_free, .address = MEMORY + 512)},
	{FGV_OP_MEM_INFO, .outcome = ENDED, TEXT("more than nothing")},
	{FGV_OP_COPY_IN, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(copy_in, .address = MEMORY + BYTES - 1), TEXT("two")},
	{FGV_OP_COPY_IN, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(copy_in, .address = MEMORY, .stream = UNKNOWN), TEXT("two")},
	{FGV_OP_COPY_IN_BULK, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(copy_in_bulk, .address = MEMORY, .data_off = ARENA, .data_len = 8,
			.loan = UINT32_MAX)},
	{FGV_OP_COPY_IN_BULK, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(copy_in_bulk, .address = MEMORY, .data_off = ARENA, .data_len = BYTES + 1)},
	{FGV_OP_COPY_OUT, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(copy_out, .address = MEMORY + 1, .data_off = ARENA, .data_len = BYTES)},
	{FGV_OP_COPY_OUT, .outcome = ENDED,
		REQUEST(copy_out, .address = MEMORY, .data_off = ARENA, .data_len = UINT64_MAX)},
	{FGV_OP_COPY_DEVICE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(copy_device, .to = MEMORY, .from = MEMORY + 8, .size = UINT64_MAX - 4)},
	{FGV_OP_FILL, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(fill, .address = MEMORY, .count = 1, .width = 3)},
	{FGV_OP_FILL, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(fill, .address = MEMORY, .count = 1ull << 62, .width = 4)},
	{FGV_OP_FILL_ROWS, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(fill_rows, .address = MEMORY, .pitch = 8, .width = 9, .height = 1)},
	{FGV_OP_FILL_ROWS, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(fill_rows, .address = MEMORY, .pitch = 1ull << 63, .width = 1, .height = 3)},
	{FGV_OP_MODULE_LOAD, SAYS(CUDA_ERROR_INVALID_IMAGE),
		REQUEST(module_load, .image_off = ARENA + TEXT_OFF, .image_len = sizeof(image),
			.description_off = ARENA)},
	{FGV_OP_MODULE_LOAD, SAYS(CUDA_ERROR_INVALID_IMAGE),
		REQUEST(module_load, .image_off = ARENA, .description_off = ARENA)},
	{FGV_OP_MODULE_UNLOAD, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(module_unload, UNKNOWN)},
	{FGV_OP_FUNCTION_GET, SAYS(CUDA_ERROR_NOT_FOUND),
		REQUEST(function_get, .module = FIRST, .info_off = ARENA, .info_len = 4096),
		TEXT("add\0")},
	{FGV_OP_FUNCTION_GET, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(function_get, .module = FIRST, .info_off = ARENA, .info_len = 71),
		TEXT("add")},
	{FGV_OP_GLOBAL_GET, SAYS(CUDA_ERROR_NOT_FOUND), REQUEST(global_get, FIRST), TEXT("bias\0")},
	{FGV_OP_GLOBAL_GET, SAYS(CUDA_ERROR_NOT_FOUND), REQUEST(global_get, FIRST), TEXT("add")},
	{FGV_OP_LAUNCH, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(launch, .function = FIRST, .grid = {1, 1, 1}, .block = {1, 1, 1},
			.param_count = UINT32_MAX), TEXT("arguments")},
	{FGV_OP_LAUNCH, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(launch, .function = FIRST, .grid = {0, 1, 1}, .block = {1, 1, 1},
			.param_count = 3), TEXT("24 bytes of arguments...")},
	{FGV_OP_LAUNCH, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(launch, .function = FIRST, .grid = {1, 1, 1},
			.block = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, .param_count = 3),
		TEXT("24 bytes of arguments...")},
	{FGV_OP_STREAM_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(stream_create, .flags = UINT32_MAX, .priority = INT32_MIN)},
	{FGV_OP_STREAM_DESTROY, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(stream_destroy, 0)},
	{FGV_OP_STREAM_SYNC, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(stream_sync, UNKNOWN)},
	{FGV_OP_STREAM_QUERY, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(stream_query, UNKNOWN)},
	{FGV_OP_DEVICE_SYNC, .outcome = ENDED, TEXT("more than nothing")},
	{FGV_OP_STREAM_WAIT_EVENT, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(stream_wait_event, .stream = FIRST, .event = 0)},
	{FGV_OP_EVENT_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(event_create, UINT32_MAX)},
	{FGV_OP_EVENT_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(event_create, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)},
	{FGV_OP_EVENT_DESTROY, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(event_destroy, UNKNOWN)},
	{FGV_OP_EVENT_RECORD, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(event_record, .event = FIRST, .stream = UNKNOWN)},
	{FGV_OP_EVENT_SYNC, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(event_sync, UNKNOWN)},
	{FGV_OP_EVENT_QUERY, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(event_query, UNKNOWN)},
	{FGV_OP_EVENT_ELAPSED, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(event_elapsed, .start = FIRST, .end = FIRST)},
	{FGV_OP_HOST_MAP, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(host_map, .address = 0, .pages_off = ARENA, .pages_len = 4096)},
	{FGV_OP_HOST_MAP, SAYS(BEYOND_ALL),
		REQUEST(host_map, .address = UINT64_MAX - 4095, .pages_off = ARENA,
			.pages_len = 8192)},
	{FGV_OP_HOST_UNMAP, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(host_unmap, MEMORY)},
	{FGV_OP_HOST_SHOW, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(host_show, MEMORY)},
	{FGV_OP_COPY_BOX, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(copy_box, .to = {MEMORY}, .from = {MEMORY},
			.box = {1ull << 33, 1ull << 33, 2})},
	{FGV_OP_COPY_BOX, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(copy_box, .to_array = FIRST, .to = {UINT64_MAX - 3}, .from = {MEMORY, 8, 1},
			.box = {8, 1, 1})},
	{FGV_OP_BOX_IN, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(box_in, .to = {MEMORY, 8, 1}, .box = {8, 1, 1}), TEXT("seven b")},
	{FGV_OP_BOX_IN, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(box_in, .array = FIRST, .to = {BYTES - 4}, .box = {8, 1, 1}),
		TEXT("of eight")},
	{FGV_OP_BOX_IN_BULK, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(box_in_bulk, .to = {MEMORY, 1ull << 63, 1ull << 63}, .box = {8, 2, 2},
			.data_off = ARENA, .data_len = 32)},
	{FGV_OP_BOX_OUT, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(box_out, .from = {MEMORY, 8, 1}, .box = {8, 2, 1}, .data_off = ARENA,
			.data_len = 8)},
	{FGV_OP_BOX_OUT, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(box_out, .array = FIRST, .from = {0, 1}, .box = {8, 1, 1},
			.data_off = ARENA, .data_len = 8)},
	{FGV_OP_ARRAY_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(array_create, .size = {64}, .format = CU_AD_FORMAT_FLOAT, .channels = 1,
			.levels = UINT32_MAX)},
	{FGV_OP_ARRAY_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(array_create, .size = {UINT64_MAX, UINT64_MAX, 2},
			.format = CU_AD_FORMAT_FLOAT, .channels = 4)},
	{FGV_OP_ARRAY_DESTROY, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(array_destroy, 0)},
	{FGV_OP_ARRAY_LEVEL, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(array_level, .array = FIRST, .level = 0)},
	{FGV_OP_TEXTURE_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(texture_create, .array = FIRST, .type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)},
	{FGV_OP_TEXTURE_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(texture_create, .type = CU_RESOURCE_TYPE_LINEAR, .address = MEMORY,
			.size = {UINT64_MAX}, .format = CU_AD_FORMAT_FLOAT, .channels = 1)},
	{FGV_OP_SURFACE_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(surface_create, 0)},
	{FGV_OP_TEXTURE_DESTROY, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(texture_destroy, UNKNOWN)},
	{FGV_OP_HOST_FUNC, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(host_func, .stream = UNKNOWN, .number = 1)},
	/* The first lane that asks waits. */
	{FGV_OP_HOST_FUNC_NEXT, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(host_func_next, .done = 99)},
	{FGV_OP_LAUNCH_COOPERATIVE, SAYS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
		REQUEST(launch_cooperative, .function = FIRST, .grid = {1u << 30, 1, 1},
			.block = {1, 1, 1}, .param_count = 3), TEXT("24 bytes of arguments...")},
	{FGV_OP_TEXT_READ, .outcome = ENDED,
		REQUEST(text_read, .text_off = UINT64_MAX, .text_len = UINT64_MAX)},
	{FGV_OP_LIMIT_GET, SAYS(CUDA_ERROR_UNSUPPORTED_LIMIT), REQUEST(limit_get, UINT32_MAX)},
	{FGV_OP_LIMIT_SET, SAYS(CUDA_ERROR_UNSUPPORTED_LIMIT),
		REQUEST(limit_set, .limit = UINT32_MAX, .value = 1)},
	{FGV_OP_LIMIT_SET, SAYS(CUDA_ERROR_OUT_OF_MEMORY),
		REQUEST(limit_set, .limit = CU_LIMIT_MALLOC_HEAP_SIZE, .value = UINT64_MAX)},
	{FGV_OP_MODULE_LOAD_PLACED, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(module_load_placed, .image_off = ARENA + TEXT_OFF,
			.image_len = sizeof(image)), TEXT("address.bytes...no NUL behind the name")},
	{FGV_OP_MODULE_KERNELS, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(module_kernels, .module = UNKNOWN, .names_off = ARENA, .names_len = 64)},
	/* The soft GPU has no clusters, and says so before it looks any further. */
	{FGV_OP_LAUNCH_CLUSTERS, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(launch_clusters, .function = UNKNOWN, .policy = UINT32_MAX)},
	{FGV_OP_CLUSTERS_ACTIVE, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(clusters_active, .function = UNKNOWN, .policy = UINT32_MAX)},
	{FGV_OP_CLUSTERS_LARGEST, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(clusters_largest, .function = UNKNOWN)},
	{FGV_OP_TEXTURE_LINEAR_WIDTH, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(texture_linear_width, .format = UINT32_MAX, .channels = 1)},
	{FGV_OP_HOST_ATOMICS, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(host_atomics, UINT32_MAX)},
	{FGV_OP_PEER_ATTRIBUTE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(peer_attribute, .peer = 1, .attribute = UINT32_MAX)},
	{FGV_OP_PEER_ATTRIBUTE, SAYS(CUDA_ERROR_INVALID_DEVICE),
		REQUEST(peer_attribute, .peer = 1,
			.attribute = CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)},
	{FGV_OP_PEER_ENABLE, SAYS(CUDA_ERROR_INVALID_DEVICE), REQUEST(peer_enable, UINT32_MAX)},
	{FGV_OP_PEER_DISABLE, SAYS(CUDA_ERROR_INVALID_DEVICE), REQUEST(peer_disable, 0)},
	{FGV_OP_MODULE_MANAGED, SAYS(CUDA_ERROR_INVALID_IMAGE),
		REQUEST(module_managed, .image_off = ARENA + TEXT_OFF,
			.image_len = sizeof(image), .variables_off = ARENA)},
	{FGV_OP_MODULE_MANAGED, .outcome = ENDED,
		REQUEST(module_managed, .image_off = ARENA, .image_len = 16u << 20,
			.variables_off = ARENA)},
	{FGV_OP_TENSOR_MAP, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(tensor_map, .map_off = ARENA, .map_len = 128), TEXT("no shape")},
	{FGV_OP_TENSOR_MAP_REPLACE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(tensor_map_replace, .map_off = ARENA, .map_len = 128), TEXT("no map")},
	{FGV_OP_ADDRESS_RESERVE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(address_reserve, .size = 2u << 20, .alignment = 3)},
	{FGV_OP_ADDRESS_RESERVE, SAYS(CUDA_ERROR_OUT_OF_MEMORY),
		REQUEST(address_reserve, .size = 0 - (2ull << 20))},
	{FGV_OP_ADDRESS_FREE, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(address_free, MEMORY)},
	{FGV_OP_MEMORY_CREATE, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(memory_create, .size = 1)},
	{FGV_OP_MEMORY_CREATE, SAYS(CUDA_ERROR_OUT_OF_MEMORY),
		REQUEST(memory_create, .size = 0 - (2ull << 20))},
	{FGV_OP_MEMORY_RELEASE, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(memory_release, UNKNOWN)},
	{FGV_OP_MEMORY_MAP, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(memory_map, .address = 4u << 20, .size = 2u << 20, .memory = FIRST)},
	{FGV_OP_MEMORY_MAP, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(memory_map, .address = 4u << 20, .size = 2u << 20,
			.offset = 0 - (2ull << 20), .memory = FIRST)},
	{FGV_OP_MEMORY_UNMAP, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(memory_unmap, .address = 4u << 20, .size = 0 - (2ull << 20))},
	{FGV_OP_MEMORY_ACCESS, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(memory_access, .address = 4u << 20, .size = 2u << 20, .flags = UINT32_MAX)},
	{FGV_OP_MEMORY_GRANULARITY, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(memory_granularity, UINT32_MAX)},
	/* Its VM shares nothing. */
	{FGV_OP_MEMORY_SHARE, SAYS(CUDA_ERROR_NOT_SUPPORTED), REQUEST(memory_share, MEMORY)},
	{FGV_OP_MEMORY_EXPORT, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(memory_export, UNKNOWN)},
	{FGV_OP_MEMORY_EXPORT, SAYS(CUDA_ERROR_NOT_SUPPORTED), REQUEST(memory_export, FIRST)},
	{FGV_OP_MEMORY_IMPORT, SAYS(CUDA_ERROR_NOT_SUPPORTED), REQUEST(memory_import, {1, 2})},
	{FGV_OP_WORDS_MAKE, SAYS(CUDA_ERROR_NOT_SUPPORTED)},
	{FGV_OP_WORDS_OPEN, SAYS(CUDA_ERROR_NOT_SUPPORTED), REQUEST(words_open, {1, 2})},
	{FGV_OP_WORD_ADD, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(word_add, MEMORY, 1)},
	{FGV_OP_WORD_ADD, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(word_add, UINT64_MAX - 7, 1)},
	{FGV_OP_WORD_ADD, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(word_add, 0, 1)},
	{FGV_OP_LINK, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(link, .inputs_off = ARENA + TEXT_OFF, .inputs_len = sizeof(image),
			.linked_off = ARENA, .log_off = ARENA)},
	{FGV_OP_LINK, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(link, .inputs_off = ARENA + TEXT_OFF, .inputs_len = sizeof(image),
			.linked_off = ARENA, .log_off = ARENA), TEXT("options of 17...")},
	{FGV_OP_VALUE_WRITE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(value_write, .address = MEMORY + 1, .width = 8)},
	{FGV_OP_VALUE_WAIT, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(value_wait, .address = MEMORY, .width = 3)},
	/* What was kept of a text is not behind another. */
	{FGV_OP_GRAPH_PART, .outcome = NOTHING, REQUEST(graph_part, .offset = 24), TEXT("text")},
	{FGV_OP_GRAPH_BUILD, .outcome = NOTHING,
		REQUEST(graph_build, .offset = 28, .nodes = 1), TEXT("more of it")},
	{FGV_OP_GRAPH_BUILD, .outcome = NOTHING, REQUEST(graph_build, .nodes = UINT32_MAX)},
	{FGV_OP_GRAPH_BUILD, .outcome = NOTHING, REQUEST(graph_build, .nodes = 1, .home = UNKNOWN)},
	{FGV_OP_GRAPH_UPDATE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(graph_update, .graph = FIRST), TEXT("no node")},
	{FGV_OP_GRAPH_LAUNCH, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(graph_launch, .graph = UNKNOWN)},
	{FGV_OP_GRAPH_LAUNCH, SAYS(CUDA_ERROR_INVALID_VALUE), REQUEST(graph_launch, .graph = FIRST)},
	{FGV_OP_GRAPH_DESTROY, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(graph_destroy, UNKNOWN)},
	{FGV_OP_GRAPH_HOME, .outcome = ENDED, TEXT("more than nothing")},
	{FGV_OP_GRAPH_CONDITION, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(graph_condition, .home = UNKNOWN)},
	{FGV_OP_GRAPH_CONDITION, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(graph_condition, .home = FIRST, .flags = UINT32_MAX)},
	{FGV_OP_OWN_RESERVE, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(own_reserve, .kind = FGV_OWN_KINDS, .count = 1)},
	{FGV_OP_OWN_RESERVE, SAYS(CUDA_ERROR_OUT_OF_MEMORY),
		REQUEST(own_reserve, .kind = FGV_OWN_EVENT, .count = UINT32_MAX)},
	{FGV_OP_OWN_RETURN, SAYS(CUDA_ERROR_INVALID_VALUE),
		REQUEST(own_return, .kind = FGV_OWN_STREAM, .count = 1)},
	{FGV_OP_STREAM_MAKE, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(stream_make, .handle = FIRST)},
	{FGV_OP_STREAM_MAKE, SAYS(CUDA_ERROR_INVALID_HANDLE),
		REQUEST(stream_make, .handle = FGV_OWN_BIT | (FGV_OWN_BIT - 1))},
	{FGV_OP_EVENT_MAKE, SAYS(CUDA_ERROR_INVALID_HANDLE), REQUEST(event_make, .handle = 0)},
	{FGV_OP_IMAGE_KNOWN, .outcome = NOTHING,
		REQUEST(image_known, .len = UINT64_MAX, .sample = UINT64_MAX)},
	{FGV_OP_MODULE_LOAD_KNOWN, SAYS(CUDA_ERROR_OUT_OF_MEMORY),
		REQUEST(module_load_known, .len = UINT64_MAX, .description_off = ARENA)},
	{FGV_OP_MODULE_LOAD_KNOWN, .outcome = NOTHING,
		REQUEST(module_load_known, .len = 1u << 20, .description_off = ARENA)},
};
/* clang-format on */

static struct vgpu vgpu;
static uint64_t address;

START_TEST(every_operation_has_a_case)
{
	bool found[FGV_OP_MAX + 1] = {false};

	for (size_t i = 0; i < FGV_ARRAY_LEN(refusals); i++)
		found[refusals[i].op] = true;
	for (unsigned op = 0; op <= FGV_OP_MAX; op++)
		ck_assert_msg(found[op] == !!fgv_op_infos[op].name,
			      "operation %u, %s: add what a hostile guest does with it", op,
			      fgv_op_infos[op].name ? fgv_op_infos[op].name : "which is none");
}
END_TEST

/* Memory, and the first object of each kind that cases take for granted. */
static void furnish(void)
{
	const uint64_t size[3] = {BYTES / 4};
	struct fgv_host_func_next_request next = {0};

	vgpu_start(&vgpu);
	address = vgpu_must_alloc(&vgpu, BYTES);
	ck_assert_uint_eq(vgpu_must_get(&vgpu, vgpu_add_ptx, "add"), FIRST);
	ck_assert_uint_eq(vgpu_must_create_stream(&vgpu, 0), FIRST);
	ck_assert_uint_eq(vgpu_must_create_event(&vgpu), FIRST);
	ck_assert_uint_eq(vgpu_must_create_array(&vgpu, size, 0, 0), FIRST);
	memcpy(vgpu_arena(&vgpu, TEXT_OFF), image, sizeof(image));
	ck_assert(vgpu_post(&vgpu, 1, FGV_OP_HOST_FUNC_NEXT, &next, sizeof(next)));
}

/* The first memory and the first home. */
static void furnish_more(void)
{
	struct fgv_memory_create_request memory = {.size = 2u << 20};
	struct fgv_memory_create_reply made;
	struct fgv_graph_home_reply home;

	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEMORY_CREATE, &memory, sizeof(memory), &made),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(made.memory, FIRST);
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_GRAPH_HOME, NULL, 0, &home), CUDA_SUCCESS);
	ck_assert_uint_eq(home.home, FIRST);
}

static uint32_t write_message(const struct refusal *refusal, uint8_t *message)
{
	uint64_t value;

	if (refusal->request_len)
		memcpy(message, refusal->request, refusal->request_len);
	for (uint32_t at = 0; at + 8 <= refusal->request_len; at += 8) {
		memcpy(&value, message + at, sizeof(value));
		if ((value & PLACES) == ARENA)
			value += vgpu.window.arena_off - ARENA;
		else if ((value & PLACES) == MEMORY)
			value += address - MEMORY;
		memcpy(message + at, &value, sizeof(value));
	}
	if (refusal->bytes_len)
		memcpy(message + refusal->request_len, refusal->bytes, refusal->bytes_len);
	return refusal->request_len + refusal->bytes_len;
}

static void expect(const struct refusal *refusal, size_t number)
{
	uint8_t message[512];
	uint32_t len = write_message(refusal, message), status, reply[10] = {0};
	const char *name = fgv_op_infos[refusal->op].name;

	ck_assert(vgpu_post(&vgpu, 0, refusal->op, message, len));
	status = fgv_op_infos[refusal->op].call ? vgpu_wait(&vgpu, 0, reply)
						: vgpu_device_sync(&vgpu);
	ck_assert_msg(status == (uint32_t)refusal->status, "case %zu, %s: status %u, not %d",
		      number, name, status, (int)refusal->status);
	ck_assert_msg(reply[0] == 0, "case %zu, %s: replies %u", number, name, reply[0]);
	status = vgpu_device_sync(&vgpu);
	ck_assert_msg(status == CUDA_SUCCESS, "case %zu, %s: status %u later", number, name,
		      status);
}

START_TEST(is_refused_and_served_on)
{
	struct fgv_mem_info_reply before, after;

	furnish();
	furnish_more();
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &before), CUDA_SUCCESS);
	for (size_t i = 0; i < FGV_ARRAY_LEN(refusals); i++) {
		if (refusals[i].outcome != ENDED)
			expect(&refusals[i], i);
	}
	/* Nothing of all this is charged. */
	ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_MEM_INFO, NULL, 0, &after), CUDA_SUCCESS);
	ck_assert_uint_eq(after.free, before.free);
	vgpu_end_orderly(&vgpu);
}
END_TEST

START_TEST(ends_the_session)
{
	const struct refusal *refusal = &refusals[_i];
	uint8_t message[512];
	unsigned lines;

	if (refusal->outcome != ENDED)
		return;
	vgpu_start(&vgpu);
	address = vgpu_must_alloc(&vgpu, BYTES);
	vgpu_post(&vgpu, 0, refusal->op, message, write_message(refusal, message));
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_refusals");
	TCase *cases = tcase_create("cases");
	SRunner *runner = srunner_create(suite);
	int failed;

	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, every_operation_has_a_case);
	tcase_add_test(cases, is_refused_and_served_on);
	tcase_add_loop_test(cases, ends_the_session, 0, FGV_ARRAY_LEN(refusals));
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
