/*
 * A vGPU process and what no honest guest asks of textures, surfaces and tensor maps: enumerations
 * and sizes that there are not, levels and layers beyond those of an array. The session goes on;
 * but where a kernel reads by what is no texture, which is a fault.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define WIDTH  8
#define HEIGHT 4
#define DEPTH  3
#define NO_ONE 4096 /* an address that nothing lies at */

static const char fetch_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				".visible .entry fetch(.param .u64 object)\n"
				"{\n"
				".reg .b64 %d<2>;\n.reg .b32 %r<2>;\n.reg .f32 %f<5>;\n"
				"ld.param.u64 %d1, [object];\n"
				"mov.u32 %r1, 3;\n"
				"tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1}];\n"
				"ret;\n"
				"}\n";

static const uint64_t size[3] = {WIDTH, HEIGHT, DEPTH};

static struct vgpu vgpu;

static void setup(void)
{
	vgpu_start(&vgpu);
}

static void teardown(void)
{
	vgpu_leave(&vgpu);
}

/* Enumerations, formats and sizes that there are not. */
START_TEST(makes_no_impossible_texture)
{
	uint64_t memory = vgpu_must_alloc(&vgpu, 4096);
	struct fgv_texture_create_request right = vgpu_right_texture(0), wrong[20];
	struct fgv_texture_create_reply made;
	unsigned count = 0;

	right.address = memory;
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &right, &made), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		wrong[i] = right;
	wrong[count++].type = CU_RESOURCE_TYPE_PITCH2D + 1;
	wrong[count++].type = CU_RESOURCE_TYPE_ARRAY;
	wrong[count++].type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	wrong[count++].format = UINT32_MAX;
	wrong[count++].channels = 3;
	wrong[count++].size[0] = 0;
	wrong[count++].size[0] = UINT64_MAX;
	wrong[count++].address_modes[2] = CU_TR_ADDRESS_MODE_BORDER + 1;
	wrong[count++].filter = CU_TR_FILTER_MODE_LINEAR + 1;
	wrong[count++].mipmap_filter = UINT32_MAX;
	wrong[count++].flags = 1u << 31;
	wrong[count++].is_view = 1;
	for (unsigned i = count; i < count + 5; i++) {
		wrong[i].type = CU_RESOURCE_TYPE_PITCH2D;
		wrong[i].size[0] = wrong[i].size[1] = 8;
		wrong[i].size[2] = 32;
	}
	wrong[count++].size[2] = 31;
	wrong[count++].size[2] = UINT64_MAX;
	wrong[count++].size[0] = 1ull << 62;
	wrong[count++].size[1] = UINT64_MAX;
	wrong[count++].size[1] = 0;
	for (unsigned i = 0; i < count; i++)
		ck_assert_msg(vgpu_create_texture(&vgpu, &wrong[i], &made) ==
				      CUDA_ERROR_INVALID_VALUE,
			      "texture %u", i);
}
END_TEST

/* Levels and layers that the array does not have, and another size or format than its own. */
START_TEST(views_nothing_beyond_an_array)
{
	struct fgv_texture_create_request right = {
		.array = vgpu_must_create_array(&vgpu, size, CUDA_ARRAY3D_LAYERED, 3),
		.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
		.is_view = 1,
		.view_format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
		.view_size = {WIDTH, HEIGHT, DEPTH},
		.view_levels = {0, 2},
		.view_layers = {0, DEPTH - 1},
	};
	struct fgv_texture_create_request wrong[12];
	struct fgv_texture_create_reply made;
	unsigned count = 0;

	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &right, &made), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		wrong[i] = right;
	wrong[count++].view_levels[1] = 4;
	wrong[count++].view_levels[1] = UINT32_MAX;
	wrong[count++].view_levels[0] = 3;
	wrong[count++].view_levels[0] = UINT32_MAX;
	wrong[count++].view_layers[1] = DEPTH + 1;
	wrong[count++].view_layers[1] = UINT32_MAX;
	wrong[count++].view_layers[0] = DEPTH;
	wrong[count++].view_layers[0] = UINT32_MAX;
	wrong[count++].view_size[0] = UINT64_MAX;
	wrong[count++].view_size[2] = DEPTH + 1;
	wrong[count++].view_format = CU_RES_VIEW_FORMAT_FLOAT_4X32;
	wrong[count++].view_format = UINT32_MAX;
	for (unsigned i = 0; i < count; i++)
		ck_assert_msg(vgpu_create_texture(&vgpu, &wrong[i], &made) ==
				      CUDA_ERROR_INVALID_VALUE,
			      "view %u", i);
}
END_TEST

static uint32_t make_map(const struct fgv_tensor_shape *shape, uint32_t len)
{
	struct {
		struct fgv_tensor_map_request head;
		struct fgv_tensor_shape shape;
	} request = {
		.head = {.map_off = vgpu.window.arena_off, .map_len = FGV_TENSOR_MAP_BYTES},
		.shape = *shape,
	};

	return vgpu_call(&vgpu, 0, FGV_OP_TENSOR_MAP, &request,
			 (uint32_t)sizeof(request.head) + len, NULL);
}

/* Enumerations that select something in the driver, and ranks beyond its arrays. */
START_TEST(makes_no_impossible_map)
{
	const struct fgv_tensor_shape right = {
		.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
		.rank = 3,
		.size = {64, 8, 8},
		.stride = {256, 2048},
		.box = {8, 8, 8},
		.step = {1, 1, 1},
	};
	struct fgv_tensor_shape wrong[9];
	unsigned count = 0;

	ck_assert_uint_eq(make_map(&right, sizeof(right)), CUDA_SUCCESS);
	ck_assert_uint_eq(make_map(&right, sizeof(right) - 8), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(make_map(&right, 0), CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		wrong[i] = right;
	wrong[count++].form = UINT32_MAX;
	wrong[count++].type = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B + 1;
	wrong[count++].rank = 0;
	wrong[count++].rank = UINT32_MAX;
	wrong[count++].interleave = CU_TENSOR_MAP_INTERLEAVE_32B + 1;
	wrong[count++].swizzle = UINT32_MAX;
	wrong[count++].promotion = UINT32_MAX;
	wrong[count++].fill = 2;
	wrong[count++].mode = UINT32_MAX;
	for (unsigned i = 0; i < count; i++)
		ck_assert_msg(make_map(&wrong[i], sizeof(right)) == CUDA_ERROR_INVALID_VALUE,
			      "map %u", i);
}
END_TEST

/* Another address for what never was a map. */
START_TEST(moves_no_noise)
{
	struct {
		struct fgv_tensor_map_replace_request head;
		uint8_t old[FGV_TENSOR_MAP_BYTES];
	} request = {.head = {.map_off = vgpu.window.arena_off, .map_len = FGV_TENSOR_MAP_BYTES}};

	for (int i = 0; i < 256; i += 85) {
		memset(request.old, i, sizeof(request.old));
		ck_assert_uint_eq(vgpu_call(&vgpu, 0, FGV_OP_TENSOR_MAP_REPLACE, &request,
					    sizeof(request), NULL),
				  CUDA_ERROR_INVALID_VALUE);
	}
	ck_assert_uint_eq(
		vgpu_call(&vgpu, 0, FGV_OP_TENSOR_MAP_REPLACE, &request, sizeof(request) - 1, NULL),
		CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* What a kernel gets for a texture that is none: the number of nothing, or of what has gone. */
static uint64_t wrong_number(int which)
{
	struct fgv_texture_create_request texture = vgpu_right_texture(0);
	struct fgv_texture_create_reply made = {0};
	struct fgv_surface_create_reply surface = {0};

	if (which == 0)
		return 0;
	if (which == 1)
		return UINT64_MAX;
	if (which == 2) {
		ck_assert_uint_eq(
			vgpu_create_surface(
				&vgpu,
				vgpu_must_create_array(&vgpu, size, CUDA_ARRAY3D_SURFACE_LDST, 0),
				&surface),
			CUDA_SUCCESS);
		return surface.number;
	}
	if (which == 6) {
		texture = vgpu_right_texture(vgpu_must_create_array(&vgpu, size, 0, 0));
	} else {
		texture.address = which == 3   ? vgpu_must_alloc(&vgpu, 4096)
				  : which == 4 ? NO_ONE
					       : UINT64_MAX - 15;
	}
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &texture, &made), CUDA_SUCCESS);
	if (which == 3)
		vgpu_destroy_texture(&vgpu, made.texture);
	if (which == 6)
		vgpu_destroy_array(&vgpu, texture.array);
	return made.number;
}

START_TEST(reads_by_no_texture)
{
	uint64_t number;
	unsigned lines;

	vgpu_start(&vgpu);
	number = wrong_number(_i);
	vgpu_launch(&vgpu, vgpu_must_get(&vgpu, fetch_ptx, "fetch"), 1, &number, 1);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(vgpu_hang_up(&vgpu, &lines), FGV_EXIT_FAULT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_textures");
	TCase *tests = tcase_create("vgpu_textures"), *faults = tcase_create("faults");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, makes_no_impossible_texture);
	tcase_add_test(tests, views_nothing_beyond_an_array);
	tcase_add_test(tests, makes_no_impossible_map);
	tcase_add_test(tests, moves_no_noise);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(faults, 120);
	tcase_add_loop_test(faults, reads_by_no_texture, 0, 7);
	suite_add_tcase(suite, faults);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
