/*
 * A vGPU process and a guest that keeps the rules: modules, what is in them, and launches.
 */
#include <check.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/gpu/fatbin_build.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define COUNT 1000

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

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
		.image_len = vgpu_put_image(&vgpu, managed_ptx),
	};
	struct fgv_module_load_placed_reply reply = {0};
	uint8_t message[sizeof(head) + 64];
	uint32_t status;

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), &address, 8);
	memcpy(message + sizeof(head) + 8, &bytes, 8);
	memcpy(message + sizeof(head) + 16, name, name_len);
	status = vgpu_call(&vgpu, 0, FGV_OP_MODULE_LOAD_PLACED, message,
			   (uint32_t)sizeof(head) + 16 + name_len, &reply);
	*module = reply.module;
	return status;
}

/* The variable is memory that the guest sees, with its initial value. */
START_TEST(places_managed_variables)
{
	uint32_t *data = vgpu_arena(&vgpu, 1 << 20), module, function;

	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 1 << 20, 4096), CUDA_SUCCESS);
	data[0] = data[1] = data[2] = data[3] = 99;
	ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS + 4, 8, "count", 6, &module),
			  CUDA_SUCCESS);
	ck_assert(data[0] == 99 && data[1] == 7 && data[2] == 8 && data[3] == 99);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, module, "count_up", &function), CUDA_SUCCESS);
	data[2] = 12;
	vgpu_launch(&vgpu, function, 1, NULL, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(data[1], 42);
}
END_TEST

START_TEST(places_nothing_wrong)
{
	uint32_t *data = vgpu_arena(&vgpu, 1 << 20), module;

	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 1 << 20, 4096), CUDA_SUCCESS);
	*data = 99;
	ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS + 4096, 8, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS + 4092, 8, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS, UINT64_MAX, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS, 0, "count", 6, &module),
			  CUDA_ERROR_INVALID_VALUE);
	for (uint32_t len = 0; len < 6; len++)
		ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS, 8, "count", len, &module),
				  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS, 8, "", 1, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(load_placed(VGPU_SHARED_ADDRESS, 8, "count\0more", 10, &module),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(*data, 99);
}
END_TEST

/* What is asked for them, with so much room. */
static uint64_t list_managed(const char *ptx, void *list, uint64_t room, uint64_t claimed)
{
	struct fgv_module_managed_request request = {
		.image_off = vgpu.window.arena_off,
		.image_len = claimed ? claimed : vgpu_put_image(&vgpu, ptx),
		.variables_off = vgpu.window.arena_off + (1 << 20),
		.variables_len = room,
	};
	struct fgv_module_managed_reply reply = {0};
	uint32_t status =
		vgpu_call(&vgpu, 0, FGV_OP_MODULE_MANAGED, &request, sizeof(request), &reply);

	memcpy(list, vgpu_arena(&vgpu, 1 << 20), room);
	return status == CUDA_SUCCESS ? reply.bytes : UINT64_MAX;
}

START_TEST(lists_managed_variables)
{
	uint8_t list[16];
	uint64_t size;

	memset(vgpu_arena(&vgpu, 1 << 20), 99, sizeof(list));
	ck_assert_uint_eq(list_managed(managed_ptx, list, sizeof(list), 0), 14);
	memcpy(&size, list, sizeof(size));
	ck_assert_uint_eq(size, 8);
	ck_assert_mem_eq(list + 8, "count\0cc", 8);
	memset(vgpu_arena(&vgpu, 1 << 20), 99, sizeof(list));
	ck_assert_uint_eq(list_managed(managed_ptx, list, 10, 0), 14);
	ck_assert_uint_eq(list[8], 99);
	ck_assert_uint_eq(list_managed(vgpu_add_ptx, list, sizeof(list), 0), 0);
	/* Cut short, it is none. */
	ck_assert_uint_eq(list_managed(NULL, list, sizeof(list), 30), UINT64_MAX);
}
END_TEST

START_TEST(launches)
{
	uint64_t address = vgpu_must_alloc(&vgpu, COUNT * 4), args[3] = {address, COUNT, 3};
	uint32_t function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add"), data[COUNT], *out;

	for (unsigned i = 0; i < COUNT; i++)
		data[i] = i;
	vgpu_copy_in(&vgpu, address, data, sizeof(data));
	vgpu_launch(&vgpu, function, (COUNT + 127) / 128, args, 3);
	vgpu_launch(&vgpu, function, (COUNT + 127) / 128, args, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_copy_out(&vgpu, address, sizeof(data), 0), CUDA_SUCCESS);
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

	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, vgpu_add_ptx, &module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, module, "sub", &function), CUDA_ERROR_NOT_FOUND);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, module, "", &function), CUDA_ERROR_NOT_FOUND);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, module, "add", &function), CUDA_SUCCESS);
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
	ck_assert_uint_eq(
		vgpu_call(&vgpu, 0, FGV_OP_GLOBAL_GET, message, sizeof(message), &variable),
		CUDA_SUCCESS);
	ck_assert_uint_eq(variable.size, 4);
	ck_assert_uint_eq(vgpu_copy_out(&vgpu, variable.address, 4, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(*(uint32_t *)vgpu_arena(&vgpu, 0), 5);
}
END_TEST

/* What is kept for each handle of a function is bounded for all of them. */
START_TEST(keeps_sizes_for_so_many_functions)
{
	const unsigned params = 2000, most = (64 << 20) / (params * 4);
	struct fgv_module_unload_request unload;
	uint32_t module, function, status = CUDA_SUCCESS;
	unsigned count = 0;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	fputs(".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry many(", file);
	for (unsigned i = 0; i < params; i++)
		fprintf(file, "%s.param .u32 p%u", i ? ", " : "", i);
	fputs(")\n{ ret; }\n", file);
	fclose(file);
	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, text, &module), CUDA_SUCCESS);
	while (status == CUDA_SUCCESS && count <= most) {
		status = vgpu_get_function(&vgpu, module, "many", &function);
		count += status == CUDA_SUCCESS;
	}
	ck_assert_uint_eq(status, CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(count, most);
	/* They go with the module. */
	unload = (struct fgv_module_unload_request){.module = module};
	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_UNLOAD, &unload, sizeof(unload));
	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, text, &module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, module, "many", &function), CUDA_SUCCESS);
	free(text);
}
END_TEST

START_TEST(names_kernels)
{
	struct fgv_module_kernels_request request = {.names_off = vgpu.window.arena_off};
	struct fgv_module_kernels_reply reply = {0};
	char *names = vgpu_arena(&vgpu, 0);

	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, vgpu_add_ptx, &request.module), CUDA_SUCCESS);
	request.names_len = 3;
	memset(names, 'x', 8);
	ck_assert_uint_eq(
		vgpu_call(&vgpu, 0, FGV_OP_MODULE_KERNELS, &request, sizeof(request), &reply),
		CUDA_SUCCESS);
	ck_assert_uint_eq(reply.bytes, 4);
	ck_assert_mem_eq(names, "xxxxxxxx", 8);
	request.names_len = 4;
	ck_assert_uint_eq(
		vgpu_call(&vgpu, 0, FGV_OP_MODULE_KERNELS, &request, sizeof(request), &reply),
		CUDA_SUCCESS);
	ck_assert_uint_eq(reply.bytes, 4);
	ck_assert_mem_eq(names, "add\0xxxx", 8);
}
END_TEST

/* So many kernels, k0 to the last, of which each has a parameter more than the one before. */
static char *many_kernels(unsigned count)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	fputs(".version 8.0\n.target sm_70\n.address_size 64\n", file);
	for (unsigned i = 0; i < count; i++) {
		fprintf(file, ".visible .entry k%u(.param .u32 p", i);
		for (unsigned k = 0; k < i; k++)
			fprintf(file, ", .param .u32 p%u", k);
		fputs(")\n{ ret; }\n", file);
	}
	fclose(file);
	return text;
}

/* What comes with a module that is loaded, @room bytes of it. */
static struct fgv_module_load_reply load_described(const char *ptx, uint64_t room, uint32_t look)
{
	struct fgv_module_load_request request = {
		.image_off = vgpu.window.arena_off,
		.image_len = vgpu_put_image(&vgpu, ptx),
		.description_off = vgpu.window.arena_off + (1 << 20),
		.description_len = room,
		.look = look,
	};
	struct fgv_module_load_reply reply = {0};

	memset(vgpu_arena(&vgpu, 1 << 20), 99, 8192);
	ck_assert_uint_eq(
		vgpu_call(&vgpu, 0, FGV_OP_MODULE_LOAD, &request, sizeof(request), &reply),
		CUDA_SUCCESS);
	return reply;
}

/* A record says what function_get does, and its handle is as good. */
static void check_record(const struct fgv_kernel_record *record, uint32_t module, const char *name)
{
	uint8_t said[4096];
	uint32_t function;

	ck_assert_uint_le(record->info_len, sizeof(said));
	ck_assert_uint_eq(record->name_len, strlen(name) + 1);
	ck_assert_str_eq((const char *)(record + 1) + record->info_len, name);
	memcpy(said, record + 1, record->info_len);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, module, name, &function), CUDA_SUCCESS);
	ck_assert_uint_ne(function, record->function);
	ck_assert_mem_eq(vgpu_arena(&vgpu, 0), said, record->info_len);
	vgpu_launch(&vgpu, record->function, 1, (uint64_t[8]){0}, (uint32_t)atoi(name + 1) + 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}

START_TEST(describes_kernels)
{
	char *text = many_kernels(FGV_KERNELS_DESCRIBED), name[16];
	struct fgv_module_load_reply reply = load_described(text, 8192, 1);
	uint64_t at = 0;

	ck_assert_uint_ne(reply.module, 0);
	ck_assert_uint_eq(reply.kernels, FGV_KERNELS_DESCRIBED);
	for (unsigned i = 0; i < FGV_KERNELS_DESCRIBED; i++) {
		const struct fgv_kernel_record *record = vgpu_arena(&vgpu, (1 << 20) + at);

		snprintf(name, sizeof(name), "k%u", i);
		check_record(record, reply.module, name);
		at += record->len;
	}
	ck_assert_uint_eq(at, reply.bytes);
	free(text);
}
END_TEST

/* Too many of them, or no room: then none, and nothing lies behind the room. */
START_TEST(describes_all_kernels_or_none)
{
	char *many = many_kernels(FGV_KERNELS_DESCRIBED + 1), *few = many_kernels(2);
	struct fgv_module_load_reply reply = load_described(many, 8192, 0);
	uint64_t needed;

	ck_assert_uint_eq(reply.kernels, FGV_KERNELS_UNKNOWN);
	ck_assert_uint_eq(reply.bytes, 0);
	needed = load_described(few, 8192, 0).bytes;
	ck_assert_uint_eq(load_described(few, needed, 0).kernels, 2);
	for (uint64_t room = 0; room < needed; room += 4) {
		reply = load_described(few, room, 0);
		ck_assert_uint_ne(reply.module, 0);
		ck_assert_uint_eq(reply.kernels, FGV_KERNELS_UNKNOWN);
		ck_assert_uint_eq(*(uint8_t *)vgpu_arena(&vgpu, (1 << 20) + room), 99);
	}
	free(many);
	free(few);
}
END_TEST

/* Asked to, it lists managed variables instead of loading. */
START_TEST(looks_for_managed_variables)
{
	struct fgv_module_load_reply reply = load_described(managed_ptx, 10, 1);

	ck_assert_uint_eq(reply.module, 0);
	ck_assert_uint_eq(reply.bytes, 14);
	ck_assert_uint_eq(*(uint8_t *)vgpu_arena(&vgpu, (1 << 20) + 8), 99);
	load_described(managed_ptx, 14, 1);
	ck_assert_str_eq((char *)vgpu_arena(&vgpu, (1 << 20) + 8), "count");
	ck_assert_uint_ne(load_described(vgpu_add_ptx, 8192, 1).module, 0);
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
	ck_assert_uint_eq(vgpu_load(&vgpu, image.len, &module), CUDA_ERROR_NO_BINARY_FOR_GPU);
	ck_assert_uint_eq(vgpu_load(&vgpu, image.len - 1, &module), CUDA_ERROR_INVALID_IMAGE);
	ck_assert_uint_eq(vgpu_load(&vgpu, 0, &module), CUDA_ERROR_INVALID_IMAGE);
	fatbin_fini(&image);
	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, vgpu_add_ptx, &module), CUDA_SUCCESS);
}
END_TEST

START_TEST(unloads_functions_with_their_module)
{
	uint64_t address = vgpu_must_alloc(&vgpu, 4), args[3] = {address, 1, 3};
	struct fgv_module_unload_request unload = {0};
	uint32_t function;

	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, vgpu_add_ptx, &unload.module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, unload.module, "add", &function), CUDA_SUCCESS);
	vgpu_launch(&vgpu, function, 1, args, 3);
	vgpu_must_post(&vgpu, 0, FGV_OP_MODULE_UNLOAD, &unload, sizeof(unload));
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_launch(&vgpu, function, 1, args, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, unload.module, "add", &function),
			  CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(checks_a_launch)
{
	uint32_t function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint64_t args[4] = {0};

	vgpu_launch(&vgpu, function, 1, args, 2);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	vgpu_launch(&vgpu, function, 1, args, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	vgpu_launch(&vgpu, function, 0, args, 3);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
}
END_TEST

/* One part and what comes behind it, @len bytes of it all. */
static uint32_t link_part(struct fgv_link_input head, size_t len, const uint32_t *options,
			  size_t options_len)
{
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry nothing()\n{\nret;\n}\n";
	struct fgv_link_request request = {
		.inputs_off = vgpu.window.arena_off,
		.inputs_len = len,
		.linked_off = vgpu.window.arena_off + 4096,
		.linked_len = 4096,
		.log_off = vgpu.window.arena_off + 8192,
		.log_len = 1024,
	};
	uint8_t message[sizeof(request) + 256];
	struct fgv_link_reply reply;
	char *at = vgpu_arena(&vgpu, 0);

	memset(at, 0, 512);
	memcpy(at, &head, sizeof(head));
	strcpy(at + sizeof(head), "name");
	strcpy(at + sizeof(head) + 5, text);
	memcpy(message, &request, sizeof(request));
	memcpy(message + sizeof(request), options, options_len);
	return vgpu_call(&vgpu, 0, FGV_OP_LINK, message, (uint32_t)(sizeof(request) + options_len),
			 &reply);
}

/* Lengths that reach outside or wrap, strings without an end, and options that are none. */
START_TEST(links_nothing_wrong)
{
	const struct fgv_link_input right = {CU_JIT_INPUT_PTX, 4, 79};
	const uint32_t options[36] = {CU_JIT_MAX_REGISTERS, 32, CU_JIT_INFO_LOG_BUFFER, 4096};
	struct fgv_link_input wrong[7] = {right, right, right, right, right, right, right};

	ck_assert_uint_eq(link_part(right, 104, options, 8), CUDA_SUCCESS);
	ck_assert_uint_eq(link_part(right, 0, options, 0), CUDA_ERROR_INVALID_VALUE);
	for (size_t len = 1; len < 101; len += 9)
		ck_assert_uint_eq(link_part(right, len, options, 0), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(link_part(right, 104 + 8, options, 0), CUDA_ERROR_INVALID_VALUE);
	wrong[0].type = CU_JIT_NUM_INPUT_TYPES;
	wrong[1].name_len = 3;
	wrong[2].name_len = UINT32_MAX;
	wrong[3].data_len = UINT64_MAX;
	wrong[4].data_len = UINT64_MAX - 21;
	wrong[5].data_len = 0;
	wrong[6].data_len = 78;
	for (unsigned i = 0; i < 7; i++)
		ck_assert_uint_eq(link_part(wrong[i], 104, options, 0), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(link_part(right, 104, options, 7), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(link_part(right, 104, options, 16), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(link_part(right, 104, options, sizeof(options)),
			  CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_modules");
	TCase *tests = tcase_create("vgpu_modules");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, places_managed_variables);
	tcase_add_test(tests, places_nothing_wrong);
	tcase_add_test(tests, lists_managed_variables);
	tcase_add_test(tests, launches);
	tcase_add_test(tests, tells_of_functions_and_variables);
	tcase_add_test(tests, keeps_sizes_for_so_many_functions);
	tcase_add_test(tests, names_kernels);
	tcase_add_test(tests, describes_kernels);
	tcase_add_test(tests, describes_all_kernels_or_none);
	tcase_add_test(tests, looks_for_managed_variables);
	tcase_add_test(tests, refuses_modules);
	tcase_add_test(tests, unloads_functions_with_their_module);
	tcase_add_test(tests, checks_a_launch);
	tcase_add_test(tests, links_nothing_wrong);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
