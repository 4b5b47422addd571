/*
 * A vGPU process and a guest that keeps the rules: memory, modules, launches, streams,
 * events, the order of replies, deferred failures, quota, sleeping and waking, the ends.
 */
#include <check.h>
#include <cuda.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "shmring/park.h"
#include "tests/unit/fatbin_build.h"
#include "tests/unit/vgpu_guest.h"

#define COUNT 1000

static const char add_ptx[] =
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

static const char forever_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry forever()\n{\nagain:\nbra.uni again;\nret;\n}\n";

static const char wild_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry wild()\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<2>;\n"
	"mov.u64 %d1, 4096;\nmov.u32 %r1, 1;\nst.global.u32 [%d1], %r1;\nret;\n}\n";

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

/* A guest that kept the rules has caused no log line. */
static void teardown(void)
{
	unsigned lines;

	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}

static uint32_t call(uint16_t op, const void *message, uint32_t len, void *reply)
{
	return vgpu_call(&vgpu, 0, op, message, len, reply);
}

static void post(uint16_t op, const void *message, uint32_t len)
{
	ck_assert(vgpu_post(&vgpu, 0, op, message, len));
}

static uint32_t device_sync(void)
{
	return call(FGV_OP_DEVICE_SYNC, NULL, 0, NULL);
}

static uint32_t alloc(uint64_t size, uint64_t *address)
{
	struct fgv_mem_alloc_request request = {.size = size};
	struct fgv_mem_alloc_reply reply = {0};
	uint32_t status = call(FGV_OP_MEM_ALLOC, &request, sizeof(request), &reply);

	*address = reply.address;
	return status;
}

static uint64_t must_alloc(uint64_t size)
{
	uint64_t address;

	ck_assert_uint_eq(alloc(size, &address), CUDA_SUCCESS);
	return address;
}

static void mem_free(uint64_t address)
{
	struct fgv_mem_free_request request = {.address = address};

	post(FGV_OP_MEM_FREE, &request, sizeof(request));
}

static void copy_in(uint64_t address, const void *data, uint32_t len)
{
	struct fgv_copy_in_request head = {.address = address};
	uint8_t message[sizeof(head) + FGV_DATA_MAX];

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), data, len);
	post(FGV_OP_COPY_IN, message, (uint32_t)sizeof(head) + len);
}

static uint32_t copy_out(uint64_t address, uint64_t len, uint64_t arena_off)
{
	struct fgv_copy_out_request request = {
		.address = address,
		.data_off = vgpu.window.arena_off + arena_off,
		.data_len = len,
	};

	return call(FGV_OP_COPY_OUT, &request, sizeof(request), NULL);
}

static void fill(uint64_t address, uint64_t count, uint32_t value, uint32_t width)
{
	struct fgv_fill_request request = {
		.address = address, .count = count, .value = value, .width = width};

	post(FGV_OP_FILL, &request, sizeof(request));
}

/* Loads what lies at the arena's beginning. */
static uint32_t load(uint64_t len, uint32_t *module)
{
	struct fgv_module_load_request request = {
		.image_off = vgpu.window.arena_off,
		.image_len = len,
	};
	struct fgv_module_load_reply reply = {0};
	uint32_t status = call(FGV_OP_MODULE_LOAD, &request, sizeof(request), &reply);

	*module = reply.module;
	return status;
}

/* Puts an image of @text at the arena's beginning; its length. */
static uint64_t put_image(const char *text)
{
	struct fatbin image;
	uint64_t len;

	fatbin_init(&image);
	fatbin_begin(&image);
	fatbin_add_ptx(&image, text);
	memcpy(vgpu_arena(&vgpu, 0), image.bytes, image.len);
	len = image.len;
	fatbin_fini(&image);
	return len;
}

static uint32_t load_ptx(const char *text, uint32_t *module)
{
	return load(put_image(text), module);
}

static uint32_t get_function(uint32_t module, const char *name, uint32_t *function)
{
	struct fgv_function_get_request head = {
		.module = module,
		.info_off = vgpu.window.arena_off,
		.info_len = 4096,
	};
	struct fgv_function_get_reply reply = {0};
	uint8_t message[sizeof(head) + 64];
	uint32_t status;

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), name, strlen(name));
	status =
		call(FGV_OP_FUNCTION_GET, message, (uint32_t)(sizeof(head) + strlen(name)), &reply);
	*function = reply.function;
	return status;
}

static uint32_t must_get(const char *text, const char *name)
{
	uint32_t module, function;

	ck_assert_uint_eq(load_ptx(text, &module), CUDA_SUCCESS);
	ck_assert_uint_eq(get_function(module, name, &function), CUDA_SUCCESS);
	return function;
}

static void launch(uint32_t function, uint32_t blocks, const uint64_t *args, uint32_t count)
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
	post(FGV_OP_LAUNCH, message, (uint32_t)sizeof(head) + count * 8);
}

START_TEST(welcomes)
{
	ck_assert_uint_eq(vgpu.welcome.version, FGV_WIRE_VERSION);
	ck_assert_str_eq(vgpu.welcome.vm, "vm1");
	ck_assert_uint_gt(strlen(vgpu.welcome.text), 0);
}
END_TEST

START_TEST(tells_of_its_device)
{
	struct fgv_device_info_request request = {
		.info_off = vgpu.window.arena_off,
		.info_len = sizeof(struct fgv_device_info),
	};
	struct fgv_device_info info;

	ck_assert_uint_eq(call(FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL), CUDA_SUCCESS);
	memcpy(&info, vgpu_arena(&vgpu, 0), sizeof(info));
	ck_assert_str_eq(info.name, vgpu.welcome.text);
	ck_assert_uint_eq(info.devices, 1);
	ck_assert_uint_eq(info.memory_bytes, VGPU_QUOTA);
	ck_assert_uint_ne(info.va_base, 0);
	ck_assert_int_eq(info.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE], 32);
	ck_assert_int_eq(info.attributes[CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS], 0);
	request.device = 1;
	ck_assert_uint_eq(call(FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
			  CUDA_ERROR_INVALID_DEVICE);
	request.device = 0;
	request.info_len--;
	ck_assert_uint_eq(call(FGV_OP_DEVICE_INFO, &request, sizeof(request), NULL),
			  CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(copies_and_fills)
{
	uint64_t address = must_alloc(FGV_DATA_MAX);
	uint8_t *out = vgpu_arena(&vgpu, 4096);
	uint8_t data[FGV_DATA_MAX];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	copy_in(address, data, sizeof(data));
	fill(address + 100, 10, 0xab, 1);
	fill(address + 200, 10, 0x1234, 2);
	fill(address + 300, 10, 0x12345678, 4);
	ck_assert_uint_eq(copy_out(address, sizeof(data), 4096), CUDA_SUCCESS);
	memset(data + 100, 0xab, 10);
	for (unsigned i = 0; i < 10; i++) {
		memcpy(data + 200 + 2 * i, "\x34\x12", 2);
		memcpy(data + 300 + 4 * i, "\x78\x56\x34\x12", 4);
	}
	ck_assert_mem_eq(out, data, sizeof(data));
}
END_TEST

static void await_loan(uint32_t loan, uint32_t number)
{
	uint32_t *done = &fgv_window_head(&vgpu.window)->staging_done[loan];

	while (__atomic_load_n(done, __ATOMIC_ACQUIRE) != number)
		sched_yield();
}

/* What was lent comes back, whether the copy was good or not, and whatever the guest says else. */
START_TEST(gives_back_what_is_lent)
{
	struct fgv_copy_in_bulk_request in = {
		.address = must_alloc(4096), .data_off = vgpu.window.arena_off, .data_len = 4096};
	struct fgv_box_in_bulk_request box = {.to = {in.address, 64, 64},
					      .box = {64, 64, 1},
					      .data_off = vgpu.window.arena_off,
					      .data_len = 4096};

	for (uint32_t round = 1; round < 40; round++) {
		in.loan = box.loan = round % FGV_STAGING_LOANS;
		in.number = round;
		post(FGV_OP_COPY_IN_BULK, &in, sizeof(in));
		await_loan(in.loan, in.number);
		box.number = 100 + round;
		post(FGV_OP_BOX_IN_BULK, &box, sizeof(box));
		await_loan(box.loan, box.number);
	}
	ck_assert_uint_eq(call(FGV_OP_DEVICE_SYNC, NULL, 0, NULL), CUDA_SUCCESS);
	in.stream = 12345;
	in.number = 1000;
	post(FGV_OP_COPY_IN_BULK, &in, sizeof(in));
	await_loan(in.loan, in.number);
	ck_assert_uint_eq(call(FGV_OP_DEVICE_SYNC, NULL, 0, NULL), CUDA_ERROR_INVALID_HANDLE);
	box.data_len = 4095;
	box.number = 1001;
	post(FGV_OP_BOX_IN_BULK, &box, sizeof(box));
	await_loan(box.loan, box.number);
	ck_assert_uint_eq(call(FGV_OP_DEVICE_SYNC, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	in.stream = 0;
	in.loan = FGV_STAGING_LOANS;
	post(FGV_OP_COPY_IN_BULK, &in, sizeof(in));
	ck_assert_uint_eq(call(FGV_OP_DEVICE_SYNC, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(copies_in_bulk_and_on_the_device)
{
	uint64_t from = must_alloc(1 << 20), to = must_alloc(1 << 20);
	struct fgv_copy_in_bulk_request in = {
		.address = from, .data_off = vgpu.window.arena_off, .data_len = 1 << 20, .number = 7};
	struct fgv_copy_device_request across = {.to = to, .from = from, .size = 1 << 20};
	uint8_t *source = vgpu_arena(&vgpu, 0);

	for (unsigned i = 0; i < 1 << 20; i++)
		source[i] = (uint8_t)(i * 13 + i / 1024);
	post(FGV_OP_COPY_IN_BULK, &in, sizeof(in));
	await_loan(0, 7);
	post(FGV_OP_COPY_DEVICE, &across, sizeof(across));
	ck_assert_uint_eq(copy_out(to, 1 << 20, 2 << 20), CUDA_SUCCESS);
	ck_assert_mem_eq(vgpu_arena(&vgpu, 2 << 20), source, 1 << 20);
}
END_TEST

/* An address that neither process has anything at; ThreadSanitizer allows few. */
#ifdef __SANITIZE_THREAD__
#define SHARED_ADDRESS 0x006000000000ull
#else
#define SHARED_ADDRESS 0x400000000000ull
#endif

static uint32_t host_map(uint64_t address, uint64_t off, uint64_t len)
{
	struct fgv_host_map_request request = {
		.address = address, .pages_off = vgpu.window.arena_off + off, .pages_len = len};

	return call(FGV_OP_HOST_MAP, &request, sizeof(request), NULL);
}

static uint32_t host_unmap(uint64_t address)
{
	struct fgv_host_unmap_request request = {.address = address};

	return call(FGV_OP_HOST_UNMAP, &request, sizeof(request), NULL);
}

/* What is mapped is copied from and to by its address, and kernels reach it. */
START_TEST(shares_host_memory)
{
	const uint64_t len = 8192, off = 1 << 20;
	uint64_t device = must_alloc(len), args[3] = {SHARED_ADDRESS, COUNT, 3};
	struct fgv_copy_device_request in = {.to = device, .from = SHARED_ADDRESS, .size = len};
	struct fgv_copy_device_request out = {.to = SHARED_ADDRESS, .from = device, .size = len};
	uint32_t *data = vgpu_arena(&vgpu, off), function = must_get(add_ptx, "add");

	ck_assert_uint_eq(host_map(SHARED_ADDRESS, off, len), CUDA_SUCCESS);
	for (unsigned i = 0; i < len / 4; i++)
		data[i] = i;
	post(FGV_OP_COPY_DEVICE, &in, sizeof(in));
	launch(function, (COUNT + 127) / 128, args, 3);
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_uint_eq(data[i], i + 3 + 5);
	post(FGV_OP_COPY_DEVICE, &out, sizeof(out));
	ck_assert_uint_eq(host_unmap(SHARED_ADDRESS), CUDA_SUCCESS);
	for (unsigned i = 0; i < len / 4; i++)
		ck_assert_uint_eq(data[i], i);
	post(FGV_OP_COPY_DEVICE, &in, sizeof(in));
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(shares_nothing_wrong)
{
	uint64_t elsewhere = must_alloc(4096);
	struct fgv_copy_device_request beyond = {
		.to = elsewhere, .from = SHARED_ADDRESS + 4096, .size = 4097};

	ck_assert_uint_eq(host_map(SHARED_ADDRESS + 1, 0, 4096), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(host_map(SHARED_ADDRESS, 1, 4096), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(host_map(SHARED_ADDRESS, 0, 4095), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(host_map(SHARED_ADDRESS, 0, 0), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(host_map(0, 0, 4096), CUDA_ERROR_INVALID_VALUE);
	/* No such address; and one where the process has something itself: the soft GPU's memory.
	 */
	ck_assert_uint_ne(host_map(UINT64_MAX - 4095, 0, 4096), CUDA_SUCCESS);
	ck_assert_uint_eq(host_map(elsewhere, 0, 4096), CUDA_ERROR_ALREADY_MAPPED);
	ck_assert_uint_eq(host_map(SHARED_ADDRESS, 0, 8192), CUDA_SUCCESS);
	ck_assert_uint_eq(host_map(SHARED_ADDRESS + 4096, 0, 4096), CUDA_ERROR_ALREADY_MAPPED);
	ck_assert_uint_eq(host_unmap(SHARED_ADDRESS + 4096), CUDA_ERROR_INVALID_VALUE);
	post(FGV_OP_COPY_DEVICE, &beyond, sizeof(beyond));
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(host_unmap(SHARED_ADDRESS), CUDA_SUCCESS);
	ck_assert_uint_eq(host_unmap(SHARED_ADDRESS), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(host_map(SHARED_ADDRESS, 4096, 4096), CUDA_SUCCESS);
}
END_TEST

static const char managed_ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
				  ".global .attribute(.managed) .align 4 .u32 count[2] = {7, 8};\n"
				  ".visible .entry count_up()\n"
				  "{\n"
				  ".reg .b32 %r<3>;\n"
				  "ld.global.u32 %r1, [count+4];\n"
				  "add.u32 %r1, %r1, 30;\n"
				  "st.global.u32 [count], %r1;\n"
				  "ret;\n"
				  "}\n";

/* Loads managed_ptx with what is said of one variable, @name_len bytes of its name. */
static uint32_t load_placed(uint64_t address, uint64_t bytes, const char *name, uint32_t name_len,
			    uint32_t *module)
{
	struct fgv_module_load_placed_request head = {
		.image_off = vgpu.window.arena_off,
		.image_len = put_image(managed_ptx),
	};
	struct fgv_module_load_placed_reply reply = {0};
	uint8_t message[sizeof(head) + 64];
	uint32_t status;

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), &address, 8);
	memcpy(message + sizeof(head) + 8, &bytes, 8);
	memcpy(message + sizeof(head) + 16, name, name_len);
	status = call(FGV_OP_MODULE_LOAD_PLACED, message, (uint32_t)sizeof(head) + 16 + name_len,
		      &reply);
	*module = reply.module;
	return status;
}

/* The variable is memory that the guest sees, with its initial value. */
START_TEST(places_managed_variables)
{
	uint32_t *data = vgpu_arena(&vgpu, 1 << 20), module, function;

	ck_assert_uint_eq(host_map(SHARED_ADDRESS, 1 << 20, 4096), CUDA_SUCCESS);
	data[0] = data[1] = data[2] = data[3] = 99;
	ck_assert_uint_eq(load_placed(SHARED_ADDRESS + 4, 8, "count", 6, &module), CUDA_SUCCESS);
	ck_assert(data[0] == 99 && data[1] == 7 && data[2] == 8 && data[3] == 99);
	ck_assert_uint_eq(get_function(module, "count_up", &function), CUDA_SUCCESS);
	data[2] = 12;
	launch(function, 1, NULL, 0);
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 42);
}
END_TEST

START_TEST(places_nothing_wrong)
{
	uint32_t *data = vgpu_arena(&vgpu, 1 << 20), module;

	ck_assert_uint_eq(host_map(SHARED_ADDRESS, 1 << 20, 4096), CUDA_SUCCESS);
	*data = 99;
	ck_assert_uint_eq(load_placed(SHARED_ADDRESS + 4096, 8, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(SHARED_ADDRESS + 4092, 8, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(SHARED_ADDRESS, UINT64_MAX, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(SHARED_ADDRESS, 0, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	for (uint32_t len = 0; len < 6; len++)
		ck_assert_uint_eq(load_placed(SHARED_ADDRESS, 8, "count", len, &module),
				  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(SHARED_ADDRESS, 8, "", 1, &module), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(SHARED_ADDRESS, 8, "count\0more", 10, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(*data, 99);
}
END_TEST

START_TEST(launches)
{
	uint64_t address = must_alloc(COUNT * 4), args[3] = {address, COUNT, 3};
	uint32_t function = must_get(add_ptx, "add"), data[COUNT], *out;

	for (unsigned i = 0; i < COUNT; i++)
		data[i] = i;
	copy_in(address, data, sizeof(data));
	launch(function, (COUNT + 127) / 128, args, 3);
	launch(function, (COUNT + 127) / 128, args, 3);
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
	ck_assert_uint_eq(copy_out(address, sizeof(data), 0), CUDA_SUCCESS);
	out = vgpu_arena(&vgpu, 0);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_uint_eq(out[i], i + 2 * (3 + 5));
	ck_assert_uint_eq(vgpu.accounts->sessions[2].launches, 2);
}
END_TEST

START_TEST(tells_of_functions_and_variables)
{
	struct fgv_global_get_request head = {0};
	struct fgv_global_get_reply variable;
	uint8_t message[sizeof(head) + 4];
	uint32_t module, function;
	const struct fgv_function_info *info;

	ck_assert_uint_eq(load_ptx(add_ptx, &module), CUDA_SUCCESS);
	ck_assert_uint_eq(get_function(module, "sub", &function), CUDA_ERROR_NOT_FOUND);
	ck_assert_uint_eq(get_function(module, "", &function), CUDA_ERROR_NOT_FOUND);
	ck_assert_uint_eq(get_function(module, "add", &function), CUDA_SUCCESS);
	info = vgpu_arena(&vgpu, 0);
	ck_assert_uint_eq(info->param_count, 3);
	ck_assert_uint_eq(info->param_bytes, 24);
	ck_assert_uint_eq(info->param_sizes[0], 8);
	ck_assert_uint_eq(info->param_sizes[1], 4);
	ck_assert_uint_eq(info->param_sizes[2], 1);
	ck_assert_uint_eq(info->param_sizes[3], 0);
	ck_assert_uint_eq(info->param_sizes[4], 8);
	ck_assert_uint_eq(info->param_sizes[5], 12);
	ck_assert_int_gt(info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK], 0);
	head.module = module;
	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), "bias", 4);
	ck_assert_uint_eq(call(FGV_OP_GLOBAL_GET, message, sizeof(message), &variable),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(variable.size, 4);
	ck_assert_uint_eq(copy_out(variable.address, 4, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(*(uint32_t *)vgpu_arena(&vgpu, 0), 5);
}
END_TEST

START_TEST(names_kernels)
{
	struct fgv_module_kernels_request request = {.names_off = vgpu.window.arena_off};
	struct fgv_module_kernels_reply reply = {0};
	char *names = vgpu_arena(&vgpu, 0);

	ck_assert_uint_eq(load_ptx(add_ptx, &request.module), CUDA_SUCCESS);
	request.names_len = 3;
	memset(names, 'x', 8);
	ck_assert_uint_eq(call(FGV_OP_MODULE_KERNELS, &request, sizeof(request), &reply),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(reply.bytes, 4);
	ck_assert_mem_eq(names, "xxxxxxxx", 8);
	request.names_len = 4;
	ck_assert_uint_eq(call(FGV_OP_MODULE_KERNELS, &request, sizeof(request), &reply),
			  CUDA_SUCCESS);
	ck_assert_uint_eq(reply.bytes, 4);
	ck_assert_mem_eq(names, "add\0xxxx", 8);
}
END_TEST

START_TEST(refuses_modules)
{
	struct fatbin image;
	uint32_t module;

	fatbin_init(&image);
	fatbin_begin(&image);
	fatbin_add(&image, &(struct fatbin_entry){
				   .kind = FGV_FATBIN_CUBIN, .sm = 90, .data = "code", .len = 4});
	memcpy(vgpu_arena(&vgpu, 0), image.bytes, image.len);
	ck_assert_uint_eq(load(image.len, &module), CUDA_ERROR_NO_BINARY_FOR_GPU);
	ck_assert_uint_eq(load(image.len - 1, &module), CUDA_ERROR_INVALID_IMAGE);
	ck_assert_uint_eq(load(0, &module), CUDA_ERROR_INVALID_IMAGE);
	fatbin_fini(&image);
	ck_assert_uint_eq(load_ptx(add_ptx, &module), CUDA_SUCCESS);
}
END_TEST

START_TEST(unloads_functions_with_their_module)
{
	uint64_t address = must_alloc(4), args[3] = {address, 1, 3};
	struct fgv_module_unload_request unload = {0};
	uint32_t function;

	ck_assert_uint_eq(load_ptx(add_ptx, &unload.module), CUDA_SUCCESS);
	ck_assert_uint_eq(get_function(unload.module, "add", &function), CUDA_SUCCESS);
	launch(function, 1, args, 3);
	post(FGV_OP_MODULE_UNLOAD, &unload, sizeof(unload));
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
	launch(function, 1, args, 3);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(get_function(unload.module, "add", &function), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(checks_a_launch)
{
	uint32_t function = must_get(add_ptx, "add");
	uint64_t args[4] = {0};

	launch(function, 1, args, 2);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_VALUE);
	launch(function, 1, args, 4);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_VALUE);
	launch(function, 0, args, 3);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
}
END_TEST

/* The first failure of several, told once, by a call that would succeed, and not by one that makes
 * something. */
START_TEST(defers_failures)
{
	struct fgv_stream_destroy_request destroy = {.stream = 0};
	uint64_t address;

	post(FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	fill(0, 1, 0, 3);
	mem_free(0x1234);
	ck_assert_uint_eq(alloc(4096, &address), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu.accounts->sessions[2].memory_bytes, 0);
	ck_assert_uint_eq(alloc(4096, &address), CUDA_SUCCESS);
	fill(address, UINT64_MAX, 0, 4);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
}
END_TEST

START_TEST(knows_bad_handles)
{
	struct fgv_stream_sync_request sync = {.stream = 12345};
	struct fgv_event_query_request query = {.event = 0};
	struct fgv_stream_destroy_request destroy = {.stream = 0};

	ck_assert_uint_eq(call(FGV_OP_STREAM_SYNC, &sync, sizeof(sync), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(call(FGV_OP_EVENT_QUERY, &query, sizeof(query), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
	post(FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
}
END_TEST

START_TEST(keeps_to_the_quota)
{
	struct fgv_mem_info_reply info;
	struct fgv_account *other = &vgpu.accounts->sessions[5];
	uint64_t address, second;

	ck_assert_uint_eq(alloc(0, &address), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(alloc(VGPU_QUOTA + 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(alloc(UINT64_MAX, &address), CUDA_ERROR_OUT_OF_MEMORY);
	address = must_alloc(VGPU_QUOTA);
	ck_assert_uint_eq(alloc(1, &second), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(call(FGV_OP_MEM_INFO, NULL, 0, &info), CUDA_SUCCESS);
	ck_assert_uint_eq(info.free, 0);
	ck_assert_uint_eq(info.total, VGPU_QUOTA);
	mem_free(address);
	mem_free(address);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_INVALID_VALUE);
	__atomic_store_n(&other->memory_bytes, VGPU_QUOTA / 2, __ATOMIC_SEQ_CST);
	ck_assert_uint_eq(alloc(VGPU_QUOTA / 2 + 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
	must_alloc(VGPU_QUOTA / 2);
}
END_TEST

static uint32_t create_stream(void)
{
	struct fgv_stream_create_request request = {.flags = CU_STREAM_NON_BLOCKING};
	struct fgv_stream_create_reply reply;

	ck_assert_uint_eq(call(FGV_OP_STREAM_CREATE, &request, sizeof(request), &reply),
			  CUDA_SUCCESS);
	return reply.stream;
}

static uint32_t create_event(void)
{
	struct fgv_event_create_request request = {0};
	struct fgv_event_create_reply reply;

	ck_assert_uint_eq(call(FGV_OP_EVENT_CREATE, &request, sizeof(request), &reply),
			  CUDA_SUCCESS);
	return reply.event;
}

static void record(uint32_t event, uint32_t stream)
{
	struct fgv_event_record_request request = {.event = event, .stream = stream};

	post(FGV_OP_EVENT_RECORD, &request, sizeof(request));
}

START_TEST(orders_streams_and_events)
{
	uint32_t stream = create_stream(), start = create_event(), end = create_event();
	struct fgv_stream_wait_event_request wait = {.stream = 0, .event = end};
	struct fgv_event_sync_request sync = {.event = end};
	struct fgv_event_elapsed_request elapsed = {.start = start, .end = end};
	struct fgv_event_elapsed_reply time = {.ms = -1};
	struct fgv_stream_query_request query = {.stream = stream};
	struct fgv_stream_destroy_request destroy = {.stream = stream};
	struct fgv_event_destroy_request destroy_event = {.event = end};

	record(start, stream);
	record(end, stream);
	post(FGV_OP_STREAM_WAIT_EVENT, &wait, sizeof(wait));
	ck_assert_uint_eq(call(FGV_OP_EVENT_SYNC, &sync, sizeof(sync), NULL), CUDA_SUCCESS);
	ck_assert_uint_eq(call(FGV_OP_EVENT_ELAPSED, &elapsed, sizeof(elapsed), &time),
			  CUDA_SUCCESS);
	ck_assert(time.ms >= 0);
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
	ck_assert_uint_eq(call(FGV_OP_STREAM_QUERY, &query, sizeof(query), NULL), CUDA_SUCCESS);
	post(FGV_OP_STREAM_DESTROY, &destroy, sizeof(destroy));
	post(FGV_OP_EVENT_DESTROY, &destroy_event, sizeof(destroy_event));
	ck_assert_uint_eq(device_sync(), CUDA_SUCCESS);
	ck_assert_uint_eq(call(FGV_OP_EVENT_SYNC, &sync, sizeof(sync), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(call(FGV_OP_STREAM_QUERY, &query, sizeof(query), NULL),
			  CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* Calls that are posted together, the first of which wait for the GPU, are answered in turn. */
START_TEST(answers_in_order)
{
	uint64_t address = must_alloc(1 << 20);
	struct fgv_copy_out_request copy = {
		.address = address, .data_off = vgpu.window.arena_off, .data_len = 1 << 20};
	struct fgv_mem_info_reply info;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 8; i++)
			post(FGV_OP_COPY_OUT, &copy, sizeof(copy));
		post(FGV_OP_MEM_INFO, NULL, 0);
		post(FGV_OP_DEVICE_SYNC, NULL, 0);
		for (int i = 0; i < 10; i++) {
			const struct fgv_slot *slot;
			uint32_t call_number = vgpu.lanes[0].calls - 10 + (uint32_t)i;

			while (!(slot = fgv_ring_peek(&vgpu.lanes[0].replies)))
				ck_assert(!vgpu_has_ended(&vgpu));
			ck_assert_uint_eq(slot->call, call_number);
			ck_assert_uint_eq(vgpu_wait(&vgpu, 0, &info), CUDA_SUCCESS);
		}
	}
}
END_TEST

/* A lane that waits for a kernel without end holds up no other; nor does its end. */
START_TEST(serves_other_lanes_meanwhile)
{
	uint32_t function = must_get(forever_ptx, "forever");
	struct fgv_mem_info_reply info;

	launch(function, 1, NULL, 0);
	post(FGV_OP_DEVICE_SYNC, NULL, 0);
	for (int i = 0; i < 100; i++)
		ck_assert_uint_eq(vgpu_call(&vgpu, 1, FGV_OP_MEM_INFO, NULL, 0, &info),
				  CUDA_SUCCESS);
	ck_assert_ptr_null(fgv_ring_peek(&vgpu.lanes[0].replies));
}
END_TEST

START_TEST(sleeps_and_wakes)
{
	struct fgv_account *account = &vgpu.accounts->sessions[2];
	struct fgv_mem_info_reply info;

	for (int i = 0; i < 20; i++) {
		while (!fgv_park_is_announced(&fgv_window_head(&vgpu.window)->host_parked))
			poll(NULL, 0, 1);
		ck_assert_uint_eq(call(FGV_OP_MEM_INFO, NULL, 0, &info), CUDA_SUCCESS);
	}
	ck_assert_uint_ge(account->parks, 20);
	ck_assert_uint_ge(account->doorbells_received, 1);
	ck_assert_uint_le(account->doorbells_received, 20);
	ck_assert_uint_eq(account->requests, 20);
	ck_assert_uint_eq(account->round_trips, 20);
}
END_TEST

/* The value in the line of @task's status that begins with @key. */
static uint64_t status_of(const char *task, const char *key, int base)
{
	char path[300], line[256];
	uint64_t value = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)vgpu.pid, task);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, base);
	}
	fclose(file);
	return value;
}

/* In all its threads, those of the soft GPU too. */
static void expect_sandbox(void)
{
	char path[64];
	struct dirent *task;
	unsigned tasks = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)vgpu.pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((task = readdir(dir))) {
		if (task->d_name[0] == '.')
			continue;
		tasks++;
		ck_assert_uint_eq(status_of(task->d_name, "NoNewPrivs:", 10), 1);
		ck_assert_uint_eq(status_of(task->d_name, "Seccomp:", 10), 2);
		if (status_of(task->d_name, "Uid:", 10) != 0)
			ck_assert_uint_eq(status_of(task->d_name, "CapPrm:", 16), 0);
	}
	closedir(dir);
	ck_assert_uint_ge(tasks, 2);
}

START_TEST(gives_up_privileges)
{
	expect_sandbox();
}
END_TEST

/* The ends that are nobody's fault, and beginnings that fail. No fixture. */

START_TEST(ends_without_a_setup)
{
	struct fgv_prepared report;
	unsigned lines;

	vgpu_spawn(&vgpu);
	if (_i > 0) {
		vgpu_send_prepare(&vgpu, _i > 1 ? VGPU_MEMORY : 0);
		vgpu_read_report(&vgpu, &report);
	}
	close(vgpu.control_fd);
	vgpu.control_fd = -1;
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}
END_TEST

/* All that it can do without a guest, it has done. */
START_TEST(waits_in_its_sandbox)
{
	struct fgv_prepared report;
	unsigned lines;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_read_report(&vgpu, &report);
	ck_assert_uint_eq(report.status, CUDA_SUCCESS);
	expect_sandbox();
	vgpu_send_setup(&vgpu, NULL);
	vgpu_read_welcome(&vgpu);
	ck_assert_uint_eq(vgpu.welcome.status, CUDA_SUCCESS);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}
END_TEST

START_TEST(says_why_it_has_no_gpu)
{
	struct fgv_prepared report;
	unsigned lines;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, 0);
	vgpu_read_report(&vgpu, &report);
	ck_assert_uint_eq(report.status, CUDA_ERROR_INVALID_VALUE);
	ck_assert_str_eq(report.reason, "soft device 0 can't be opened: CUDA error 1");
	vgpu_send_setup(&vgpu, NULL);
	vgpu_read_welcome(&vgpu);
	ck_assert_uint_eq(vgpu.welcome.status, CUDA_ERROR_INVALID_VALUE);
	ck_assert_str_eq(vgpu.welcome.text, report.reason);
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

START_TEST(attaches_lanes_with_care)
{
	int doorbell = fgv_doorbell_create(), pipe_fds[2];
	unsigned lines;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_send_setup(&vgpu, NULL);
	vgpu_read_welcome(&vgpu);
	ck_assert_int_eq(pipe(pipe_fds), 0);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, VGPU_LANES, doorbell), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, -1), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, pipe_fds[1]), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, doorbell), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_send_lane(&vgpu, 1, doorbell), CUDA_ERROR_INVALID_VALUE);
	close(doorbell);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}
END_TEST

START_TEST(ends_with_the_daemon)
{
	unsigned lines;

	vgpu_start(&vgpu);
	close(vgpu.control_fd);
	vgpu.control_fd = -1;
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}
END_TEST

START_TEST(ends_over_a_kernel_without_end)
{
	unsigned lines;

	vgpu_start(&vgpu);
	launch(must_get(forever_ptx, "forever"), 1, NULL, 0);
	if (_i == 1)
		post(FGV_OP_DEVICE_SYNC, NULL, 0);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}
END_TEST

/* A fault stays, for all operations; what the GPU says of it is one log line. */
START_TEST(keeps_a_fault)
{
	uint64_t address;
	unsigned lines;

	vgpu_start(&vgpu);
	launch(must_get(wild_ptx, "wild"), 1, NULL, 0);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_uint_eq(alloc(4096, &address), CUDA_ERROR_ILLEGAL_ADDRESS);
	fill(0, 1, 1, 4);
	ck_assert_uint_eq(device_sync(), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), FGV_EXIT_FAULT);
	ck_assert_uint_le(lines, 1);
}
END_TEST

/* More calls than there is room for replies, none of which can be given yet. */
START_TEST(ends_over_too_many_calls)
{
	unsigned lines;

	vgpu_start(&vgpu);
	launch(must_get(forever_ptx, "forever"), 1, NULL, 0);
	for (int i = 0; i <= FGV_REPLY_SLOTS; i++)
		post(FGV_OP_DEVICE_SYNC, NULL, 0);
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

START_TEST(says_why_it_cannot_begin)
{
	struct fgv_setup wrong;
	unsigned lines;

	vgpu_spawn(&vgpu);
	vgpu_send_prepare(&vgpu, VGPU_MEMORY);
	vgpu_right_setup(&vgpu, &wrong);
	switch (_i) {
	case 0:
		wrong.window_len *= 2;
		break;
	case 1:
		wrong.account = FGV_SESSIONS_MAX;
		break;
	case 2:
		wrong.lanes = FGV_LANES_MAX + 1;
		break;
	}
	vgpu_send_setup(&vgpu, &wrong);
	vgpu_read_welcome(&vgpu);
	ck_assert_uint_ne(vgpu.welcome.status, CUDA_SUCCESS);
	ck_assert_uint_gt(strlen(vgpu.welcome.text), 0);
	ck_assert_int_eq(vgpu_finish(&vgpu, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu");
	TCase *work = tcase_create("work"), *ends = tcase_create("ends");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(work, setup, teardown);
	tcase_set_timeout(work, 120);
	tcase_add_test(work, welcomes);
	tcase_add_test(work, tells_of_its_device);
	tcase_add_test(work, copies_and_fills);
	tcase_add_test(work, copies_in_bulk_and_on_the_device);
	tcase_add_test(work, gives_back_what_is_lent);
	tcase_add_test(work, shares_host_memory);
	tcase_add_test(work, shares_nothing_wrong);
	tcase_add_test(work, places_managed_variables);
	tcase_add_test(work, places_nothing_wrong);
	tcase_add_test(work, launches);
	tcase_add_test(work, tells_of_functions_and_variables);
	tcase_add_test(work, names_kernels);
	tcase_add_test(work, refuses_modules);
	tcase_add_test(work, unloads_functions_with_their_module);
	tcase_add_test(work, checks_a_launch);
	tcase_add_test(work, defers_failures);
	tcase_add_test(work, knows_bad_handles);
	tcase_add_test(work, keeps_to_the_quota);
	tcase_add_test(work, orders_streams_and_events);
	tcase_add_test(work, answers_in_order);
	tcase_add_test(work, serves_other_lanes_meanwhile);
	tcase_add_test(work, sleeps_and_wakes);
	tcase_add_test(work, gives_up_privileges);
	tcase_set_timeout(ends, 120);
	tcase_add_loop_test(ends, ends_without_a_setup, 0, 3);
	tcase_add_test(ends, waits_in_its_sandbox);
	tcase_add_test(ends, says_why_it_has_no_gpu);
	tcase_add_test(ends, attaches_lanes_with_care);
	tcase_add_test(ends, ends_with_the_daemon);
	tcase_add_loop_test(ends, ends_over_a_kernel_without_end, 0, 2);
	tcase_add_test(ends, keeps_a_fault);
	tcase_add_test(ends, ends_over_too_many_calls);
	tcase_add_loop_test(ends, says_why_it_cannot_begin, 0, 3);
	suite_add_tcase(suite, work);
	suite_add_tcase(suite, ends);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
