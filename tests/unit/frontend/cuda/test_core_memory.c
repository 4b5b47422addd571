/*
 * Boxes, pitched memory, pools and textures in the driver's terms, as far as no program of the
 * runtime's reaches them.
 */
#include <string.h>
#include <unistd.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/array.h"
#include "frontend/cuda/memory/box.h"
#include "frontend/cuda/memory/memcpy.h"
#include "frontend/cuda/memory/memory.h"
#include "frontend/cuda/memory/mempool.h"
#include "frontend/cuda/memory/pitched.h"
#include "frontend/cuda/memory/tensor.h"
#include "frontend/cuda/memory/texture.h"
#include "frontend/cuda/memory/vmem.h"
#include "frontend/cuda/stream/ordered.h"
#include "tests/unit/frontend/cuda/test_core.h"

static const struct fgv_when waiting = {NULL, true};

START_TEST(boxes)
{
	CUdeviceptr address;
	const char from[16] = "abcd....efgh....";
	CUDA_MEMCPY3D box;
	CUDA_MEMCPY2D row = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			     .srcXInBytes = 16,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .WidthInBytes = 4,
			     .Height = 1};
	char got[4];

	EXPECT(fgv_memory_alloc(&address, 32), CUDA_SUCCESS);
	box = rows_in(address, from);
	EXPECT(fgv_box_copy(&box, waiting), CUDA_SUCCESS);
	/* Of one row nobody asks how far it is to the next. */
	row.srcDevice = address;
	row.dstHost = got;
	box = fgv_box_of_2d(&row);
	EXPECT(fgv_box_copy(&box, waiting), CUDA_SUCCESS);
	ck_assert_mem_eq(got, "efgh", 4);
	box = rows_in(address, from);
	box.dstPitch = 3;
	EXPECT(fgv_box_copy(&box, waiting), CUDA_ERROR_INVALID_VALUE);
	box = rows_in(address + 16, from);
	EXPECT(fgv_box_copy(&box, waiting), CUDA_ERROR_INVALID_VALUE);
	box = rows_in(address, from);
	box.srcLOD = 1;
	EXPECT(fgv_box_copy(&box, waiting), CUDA_ERROR_INVALID_VALUE);
	box = rows_in(address, from);
	box.srcMemoryType = 0;
	EXPECT(fgv_box_copy(&box, waiting), CUDA_ERROR_INVALID_VALUE);
	box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	EXPECT(fgv_box_copy(&box, waiting), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(fgv_box_copy(NULL, waiting), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(rows)
{
	CUdeviceptr address;
	size_t pitch;

	EXPECT(fgv_pitched_alloc(&address, &pitch, 513, 3), CUDA_SUCCESS);
	ck_assert_uint_eq(pitch, 1024);
	EXPECT(fgv_memory_free(address), CUDA_SUCCESS);
	EXPECT(fgv_pitched_alloc(&address, &pitch, SIZE_MAX - 5, 3), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_pitched_alloc(&address, &pitch, 1 << 20, SIZE_MAX / 2),
	       CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(fgv_pitched_alloc(&address, &pitch, 0, 3), CUDA_SUCCESS);
	ck_assert_uint_eq(address, 0);
}
END_TEST

START_TEST(pools)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
	CUmemPoolProps bad = props;
	CUmemoryPool pool, current;
	CUmemAccess_flags flags;
	CUdeviceptr address;
	uint64_t used;
	int reuse = 7;

	bad.location.id = 1;
	EXPECT(fgv_mempool_create(&pool, &bad), CUDA_ERROR_INVALID_VALUE);
	bad.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
	EXPECT(fgv_mempool_create(&pool, &bad), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(fgv_mempool_create(&pool, &props), CUDA_SUCCESS);
	EXPECT(fgv_mempool_set_current(1, pool), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(fgv_mempool_set_current(0, pool), CUDA_SUCCESS);
	EXPECT(fgv_mempool_get_current(&current, 0), CUDA_SUCCESS);
	ck_assert_ptr_eq(current, pool);
	EXPECT(fgv_ordered_alloc(&address, 5, NULL, NULL), CUDA_SUCCESS);
	EXPECT(fgv_mempool_get_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used),
	       CUDA_SUCCESS);
	ck_assert_uint_gt(used, 0);
	EXPECT(fgv_mempool_get_attribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse),
	       CUDA_SUCCESS);
	ck_assert_int_eq(reuse, 1);
	EXPECT(fgv_mempool_get_access(&flags, pool, &props.location), CUDA_SUCCESS);
	ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	EXPECT(fgv_ordered_free(address, NULL), CUDA_SUCCESS);
	EXPECT(fgv_mempool_destroy(pool), CUDA_SUCCESS);
	EXPECT(fgv_ordered_alloc(&address, 5, pool, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_mempool_destroy(pool), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* What is told of a texture is what it was made with, also what the device has no use for. */
START_TEST(textures)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = {
		.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
	CUDA_ARRAY3D_DESCRIPTOR bad = desc, told;
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY}, told_resource;
	const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
	const CUDA_RESOURCE_VIEW_DESC view = {.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1};
	CUDA_TEXTURE_DESC told_how;
	CUtexObject texture;
	CUarray array;

	bad.NumChannels = 3;
	EXPECT(fgv_array_create(&array, &bad), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_array_create(&array, &desc), CUDA_SUCCESS);
	EXPECT(fgv_array_get_descriptor(array, &told), CUDA_SUCCESS);
	ck_assert_mem_eq(&told, &desc, sizeof(told));
	EXPECT(fgv_texture_create(&texture, &resource, &how, NULL), CUDA_ERROR_INVALID_HANDLE);
	resource.res.array.hArray = array;
	EXPECT(fgv_texture_create(&texture, &resource, &how, &view), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(fgv_texture_create(&texture, &resource, &how, NULL), CUDA_SUCCESS);
	EXPECT(fgv_texture_get_how(&told_how, texture), CUDA_SUCCESS);
	ck_assert_uint_eq(told_how.flags, CU_TRSF_READ_AS_INTEGER);
	EXPECT(fgv_texture_get_resource(&told_resource, texture), CUDA_SUCCESS);
	ck_assert_ptr_eq(told_resource.res.array.hArray, array);
	EXPECT(fgv_texture_get_surface_resource(&told_resource, texture), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_texture_destroy(texture), CUDA_SUCCESS);
	EXPECT(fgv_texture_get_how(&told_how, texture), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_array_destroy(array), CUDA_SUCCESS);
	EXPECT(fgv_array_destroy(array), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* The host is asked for a map once, for one that it refuses each time. */
START_TEST(tensors)
{
	struct fgv_tensor_shape shape = {.rank = 2, .address = 4096, .size = {8, 8}};
	CUtensorMap map;

	for (int i = 0; i < 3; i++) {
		memset(&map, i, sizeof(map));
		EXPECT(fgv_tensor_encode(&map, &shape), CUDA_SUCCESS);
		ck_assert_mem_eq(&map, &shape, sizeof(map));
	}
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_TENSOR_MAP]), 1);
	/* More than are remembered: an older one is asked for again, and right. */
	for (uint64_t i = 0; i < 5000; i++) {
		shape.address = 4096 + i % 2500 * 16;
		EXPECT(fgv_tensor_encode(&map, &shape), CUDA_SUCCESS);
		ck_assert_mem_eq(&map, &shape, sizeof(map));
	}
	ck_assert_uint_ge(HOST_GET(requests[FGV_OP_TENSOR_MAP]), 2500);
	shape.address = 0;
	HOST_SET(status[FGV_OP_TENSOR_MAP], CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_tensor_encode(&map, &shape), CUDA_ERROR_INVALID_VALUE);
	HOST_SET(status[FGV_OP_TENSOR_MAP], CUDA_SUCCESS);
	EXPECT(fgv_tensor_encode(&map, &shape), CUDA_SUCCESS);
	EXPECT(fgv_tensor_replace(&map, 77), CUDA_SUCCESS);
	ck_assert_uint_eq(map.opaque[0], 77);
	shape.rank = FGV_TENSOR_RANK_MAX + 1;
	EXPECT(fgv_tensor_encode(&map, &shape), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_tensor_replace(NULL, 77), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

#define UNIT (2u << 20)

static const CUmemAllocationProp device_memory = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

/* A copy may go over mappings side by side, and not beyond the last one. */
START_TEST(mappings)
{
	CUmemGenericAllocationHandle handle;
	enum fgv_side side;
	CUdeviceptr address;
	uint32_t device = 7;
	bool ask = false;

	EXPECT(fgv_vmem_reserve(&address, 4 * UNIT, 0, 0, 0), CUDA_SUCCESS);
	EXPECT(fgv_vmem_create(&handle, UNIT, &device_memory, 0), CUDA_SUCCESS);
	for (uint64_t at = 0; at < 3 * UNIT; at += UNIT)
		EXPECT(fgv_vmem_map(address + at, UNIT, 0, handle, 0), CUDA_SUCCESS);
	ck_assert(fgv_memcpy_side((void *)address, 3 * UNIT, true, &side, &ask, &device));
	ck_assert(fgv_memcpy_side((void *)(address + UNIT - 1), 2, true, &side, &ask, &device));
	ck_assert(!fgv_memcpy_side((void *)address, 3 * UNIT + 1, true, &side, &ask, &device));
	ck_assert(!fgv_memcpy_side((void *)address, SIZE_MAX, true, &side, &ask, &device));
	ck_assert(!ask);
	ck_assert_uint_eq(device, 0);
	EXPECT(fgv_vmem_unmap(address, UNIT / 2), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_vmem_unmap(address + UNIT, UNIT), CUDA_SUCCESS);
	ck_assert(fgv_memcpy_side((void *)address, UNIT, true, &side, &ask, &device));
	ck_assert(!fgv_memcpy_side((void *)address, UNIT + 1, true, &side, &ask, &device));
	EXPECT(fgv_vmem_unmap(address, 3 * UNIT), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_vmem_unmap(address, UNIT), CUDA_SUCCESS);
	EXPECT(fgv_vmem_unmap(address + 2 * UNIT, UNIT), CUDA_SUCCESS);
	EXPECT(fgv_vmem_free(address, UNIT), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_vmem_free(address, 4 * UNIT), CUDA_SUCCESS);
	EXPECT(fgv_vmem_release(handle), CUDA_SUCCESS);
	EXPECT(fgv_vmem_release(handle), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static uint64_t released(void)
{
	EXPECT(fgv_context_synchronize(), CUDA_SUCCESS);
	return HOST_GET(requests[FGV_OP_MEMORY_RELEASE]);
}

/* Memory stays for whoever has a handle, a mapping or a descriptor of it, and no longer. */
START_TEST(descriptors)
{
	CUmemGenericAllocationHandle handle, other, imported;
	CUmemAllocationProp plain = device_memory;
	const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	int fd, copy, pipes[2];

	EXPECT(fgv_vmem_create(&handle, UNIT, &device_memory, 0), CUDA_SUCCESS);
	EXPECT(fgv_vmem_export(&fd, handle, type, 0), CUDA_SUCCESS);
	copy = dup(fd);
	close(fd);
	EXPECT(fgv_vmem_release(handle), CUDA_SUCCESS);
	EXPECT(fgv_vmem_get_prop(&plain, handle), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(released(), 0);
	EXPECT(fgv_vmem_import(&imported, (void *)(intptr_t)copy, type), CUDA_SUCCESS);
	EXPECT(fgv_vmem_release(imported), CUDA_SUCCESS);
	ck_assert_uint_eq(released(), 0);
	close(copy);
	plain = device_memory;
	plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	EXPECT(fgv_vmem_create(&other, UNIT, &plain, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(released(), 1);
	EXPECT(fgv_vmem_export(&fd, other, type, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(fgv_vmem_release(other), CUDA_SUCCESS);
	ck_assert_uint_eq(released(), 2);
	/* Another's, and what is none at all. */
	ck_assert_int_eq(pipe(pipes), 0);
	EXPECT(fgv_vmem_import(&imported, (void *)(intptr_t)pipes[0], type),
	       CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(fgv_vmem_import(&imported, (void *)(intptr_t)-1, type), CUDA_ERROR_INVALID_VALUE);
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_memory");
	TCase *tests = tcase_create("core_memory");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, boxes);
	tcase_add_test(tests, rows);
	tcase_add_test(tests, pools);
	tcase_add_test(tests, textures);
	tcase_add_test(tests, tensors);
	tcase_add_test(tests, mappings);
	tcase_add_test(tests, descriptors);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
