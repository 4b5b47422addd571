/* What the program does with memory, arrays and what looks at them. */
#include "tests/fuzz/guest_program.h"

#include <string.h>
#include "common/util.h"

void guest_allocate(void)
{
	CUdeviceptr made;
	void *pinned;
	size_t pitch;

	switch (guest_draw() % 5) {
	case 0:
		if (!cuMemAlloc_v2(&made, guest_draw_len() + 1))
			guest_keep(MEMORY, made);
		break;
	case 1:
		if (!cuMemAllocPitch_v2(&made, &pitch, 16, 16, 4))
			guest_keep(MEMORY, made);
		break;
	case 2:
		if (!cuMemAllocManaged(&made, 4096, CU_MEM_ATTACH_GLOBAL)) {
			memset(TO(void *, made), 1, 4096);
			guest_keep(MEMORY, made);
		}
		break;
	case 3:
		if (!cuMemAllocHost_v2(&pinned, 4096)) {
			memset(pinned, 1, 4096);
			guest_keep(PINNED, FROM(pinned));
		}
		break;
	default:
		if (!cuMemAllocAsync(&made, 4096, guest_pick_stream()))
			guest_keep(ORDERED, made);
	}
}

void guest_copy(void)
{
	CUdeviceptr device = guest_pick(MEMORY);
	size_t len = guest_draw_len();

	switch (guest_draw() % 6) {
	case 0:
		cuMemcpyHtoD_v2(device, program.buffer, len);
		break;
	case 1:
		cuMemcpyDtoH_v2(program.buffer, device, len);
		break;
	case 2:
		cuMemcpyDtoD_v2(guest_pick(MEMORY), device, len);
		break;
	case 3:
		cuMemcpyHtoDAsync_v2(device, program.buffer, len, guest_pick_stream());
		break;
	case 4:
		cuMemcpyDtoHAsync_v2(program.buffer, device, len, guest_pick_stream());
		break;
	default:
		cuMemsetD8_v2(device, 1, len);
	}
}

/* Rows of 64 bytes. */
void guest_copy_box(void)
{
	CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			     .srcHost = program.buffer,
			     .srcPitch = 64,
			     .srcHeight = 16,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstDevice = guest_pick(MEMORY),
			     .dstPitch = 128,
			     .dstHeight = 16,
			     .WidthInBytes = guest_draw() % 65,
			     .Height = guest_draw() % 17,
			     .Depth = guest_draw() % 17};
	CUarray array = TO(CUarray, guest_pick(ARRAY));

	if (array && guest_draw() % 2) {
		box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		box.dstArray = array;
	}
	cuMemcpy3D_v2(&box);
	if (array)
		cuMemcpyAtoH_v2(program.buffer, array, 0, guest_draw());
}

void guest_ask_pointer(void)
{
	CUdeviceptr address = guest_pick(guest_draw() % 2 ? MEMORY : PINNED), base;
	uint64_t value[8];
	size_t size;

	cuPointerGetAttribute(value, (CUpointer_attribute)(guest_draw() % 24),
			      address + guest_draw());
	cuMemGetAddressRange_v2(&base, &size, address);
	cuMemGetInfo_v2(&size, &size);
}

void guest_ask_pool(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	CUdeviceptr made;
	uint64_t value = 0;

	if (guest_draw() % 2 && !cuMemPoolCreate(&pool, &props))
		guest_keep(POOL, FROM(pool));
	pool = TO(CUmemoryPool, guest_pick(POOL));
	if (!pool)
		return;
	if (!cuMemAllocFromPoolAsync(&made, guest_draw_len() + 1, pool, guest_pick_stream()))
		guest_keep(ORDERED, made);
	cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
	cuMemPoolTrimTo(pool, 0);
}

/* --- Memory and addresses, each by itself --------------------------------------------------- */

static const CUmemAllocationProp device_prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
						.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

void guest_map_memory(void)
{
	CUmemAccessDesc access = {.location = device_prop.location,
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	size_t granule;

	cuMemGetAllocationGranularity(&granule, &device_prop, guest_draw() % 2);
	if (guest_draw() % 2 && !cuMemCreate(&handle, MAPPED, &device_prop, 0))
		guest_keep(HANDLE, handle);
	if (guest_draw() % 2 && !cuMemAddressReserve(&address, MAPPED, 0, 0, 0))
		guest_keep(ADDRESS, address);
	address = guest_pick(ADDRESS);
	handle = guest_pick(HANDLE);
	if (!address || !handle)
		return;
	cuMemMap(address, MAPPED, 0, handle, 0);
	cuMemSetAccess(address, MAPPED, &access, 1);
	cuMemcpyDtoH_v2(program.buffer, address, guest_draw_len());
	if (guest_draw() % 2)
		cuMemUnmap(address, MAPPED);
}

/* --- Arrays and what looks at them ---------------------------------------------------------- */

void guest_make_array(void)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 16,
					 .Height = 8,
					 .Format = CU_AD_FORMAT_FLOAT,
					 .NumChannels = 1,
					 .Flags = CUDA_ARRAY3D_SURFACE_LDST};
	CUmipmappedArray mipmapped;
	CUarray array;

	if (guest_draw() % 2) {
		if (!cuArray3DCreate_v2(&array, &shape))
			guest_keep(ARRAY, FROM(array));
	} else if (!cuMipmappedArrayCreate(&mipmapped, &shape, 3)) {
		cuMipmappedArrayGetLevel(&array, mipmapped, guest_draw() % 4);
		cuMipmappedArrayDestroy(mipmapped);
	}
}

void guest_make_texture(void)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY,
				       .res.array.hArray = TO(CUarray, guest_pick(ARRAY))};
	CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
	unsigned long long made;

	if (!resource.res.array.hArray)
		return;
	if (guest_draw() % 2) {
		if (!cuTexObjectCreate(&made, &resource, &how, NULL))
			guest_keep(TEXTURE, made);
		cuTexObjectGetResourceDesc(&resource, guest_pick(TEXTURE));
	} else if (!cuSurfObjectCreate(&made, &resource)) {
		guest_keep(SURFACE, made);
	}
}

void guest_make_tensor_map(void)
{
	const cuuint64_t sizes[2] = {64, 64}, strides[1] = {256};
	const cuuint32_t box[2] = {16, 16}, steps[2] = {1, 1};
	static CUtensorMap map;

	cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
			       TO(void *, guest_pick(MEMORY)), sizes, strides, box, steps,
			       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
			       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	cuTensorMapReplaceAddress(&map, TO(void *, guest_pick(MEMORY)));
}
