/*
 * A vGPU process and what no honest guest asks of arrays: handles of other kinds or of nothing,
 * sizes that overflow, levels that there are not, copies beyond the end. Each request is well
 * formed, so the session goes on.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define WIDTH  8
#define HEIGHT 4
#define DEPTH  3
#define BYTES  (WIDTH * HEIGHT * DEPTH * 4)

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

static uint64_t charged_bytes(void)
{
	return __atomic_load_n(&vgpu.accounts->sessions[2].memory_bytes, __ATOMIC_SEQ_CST);
}

/* Of so many bytes at @from of the array, to the arena's beginning. */
static uint32_t box_out(uint32_t array, const uint64_t from[3], const uint64_t box[3], uint64_t len)
{
	struct fgv_box_out_request request = {
		.array = array, .data_off = vgpu.window.arena_off, .data_len = len};

	memcpy(request.from, from, sizeof(request.from));
	memcpy(request.box, box, sizeof(request.box));
	return vgpu_call(&vgpu, 0, FGV_OP_BOX_OUT, &request, sizeof(request), NULL);
}

static void box_in(uint32_t array, const uint64_t to[3], const uint64_t box[3], const void *data,
		   uint32_t len)
{
	struct fgv_box_in_request head = {.array = array};
	uint8_t message[sizeof(head) + 1024];

	memcpy(head.to, to, sizeof(head.to));
	memcpy(head.box, box, sizeof(head.box));
	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), data, len);
	vgpu_must_post(&vgpu, 0, FGV_OP_BOX_IN, message, (uint32_t)sizeof(head) + len);
}

static const uint64_t origin[3], whole[3] = {WIDTH * 4, HEIGHT, DEPTH};

/* An array of which each byte is its number. */
static uint32_t create_filled(uint8_t data[BYTES])
{
	uint32_t array = vgpu_must_create_array(&vgpu, size, 0, 0);

	for (unsigned i = 0; i < BYTES; i++)
		data[i] = (uint8_t)i;
	box_in(array, origin, whole, data, BYTES);
	return array;
}

static void expect_filled(uint32_t array, const uint8_t data[BYTES])
{
	ck_assert_uint_eq(box_out(array, origin, whole, BYTES), CUDA_SUCCESS);
	ck_assert_mem_eq(vgpu_arena(&vgpu, 0), data, BYTES);
}

/* Sizes that no memory has, shapes that there are not, more levels than halvings. */
START_TEST(makes_no_impossible_array)
{
	static const struct fgv_array_create_request wrong[] = {
		{.size = {0, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {0, 4, 4}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {UINT64_MAX, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {1ull << 62, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {1ull << 32, 1ull << 32, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {1ull << 21, 1ull << 21, 1ull << 21},
		 .format = CU_AD_FORMAT_FLOAT,
		 .channels = 4},
		{.size = {1ull << 31, 1ull << 31, 4}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {WIDTH, 1ull << 40, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {VGPU_QUOTA, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 1},
		{.size = {WIDTH, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 0},
		{.size = {WIDTH, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 3},
		{.size = {WIDTH, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = UINT32_MAX},
		{.size = {WIDTH, 0, 0}, .format = 0, .channels = 1},
		{.size = {WIDTH, 0, 0}, .format = UINT32_MAX, .channels = 1},
		{.size = {WIDTH, 0, 0}, .format = CU_AD_FORMAT_FLOAT, .channels = 1, .levels = 5},
		{.size = {WIDTH, 0, 0},
		 .format = CU_AD_FORMAT_FLOAT,
		 .channels = 1,
		 .levels = UINT32_MAX},
		{.size = {WIDTH, 0, 1u << 20},
		 .format = CU_AD_FORMAT_FLOAT,
		 .channels = 1,
		 .flags = CUDA_ARRAY3D_LAYERED,
		 .levels = 20},
		{.size = {WIDTH, HEIGHT, 6},
		 .format = CU_AD_FORMAT_FLOAT,
		 .channels = 1,
		 .flags = CUDA_ARRAY3D_CUBEMAP},
		{.size = {WIDTH, 0, 0},
		 .format = CU_AD_FORMAT_FLOAT,
		 .channels = 1,
		 .flags = UINT32_MAX},
	};
	uint32_t array, status;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		status = vgpu_create_array(&vgpu, &wrong[i], &array);
		ck_assert_msg(status == CUDA_ERROR_INVALID_VALUE ||
				      status == CUDA_ERROR_OUT_OF_MEMORY,
			      "array %zu: %u", i, status);
		ck_assert_uint_eq(charged_bytes(), 0);
	}
}
END_TEST

/* As long as the quota lasts; what is destroyed, with its levels, is given back. */
START_TEST(charges_for_arrays)
{
	const struct fgv_array_create_request large = {
		.size = {VGPU_QUOTA / 4 / 4, 0, 0},
		.format = CU_AD_FORMAT_FLOAT,
		.channels = 1,
		.levels = 8,
	};
	uint32_t arrays[2], part;

	ck_assert_uint_eq(vgpu_create_array(&vgpu, &large, &arrays[0]), CUDA_SUCCESS);
	ck_assert_uint_ge(charged_bytes(), VGPU_QUOTA / 4);
	ck_assert_uint_eq(vgpu_create_array(&vgpu, &large, &arrays[1]), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_create_array(&vgpu, &large, &part), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(vgpu_get_level(&vgpu, arrays[0], 7, &part), CUDA_SUCCESS);
	vgpu_destroy_array(&vgpu, arrays[0]);
	vgpu_destroy_array(&vgpu, arrays[1]);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	ck_assert_uint_eq(charged_bytes(), 0);
}
END_TEST

/* A handle names an object of its kind, or nothing. */
START_TEST(knows_other_kinds)
{
	uint32_t array = vgpu_must_create_array(&vgpu, size, CUDA_ARRAY3D_SURFACE_LDST, 0), part,
		 status, other;
	struct fgv_texture_create_request texture = vgpu_right_texture(array);
	struct fgv_texture_create_reply made = {0};
	struct fgv_surface_create_reply surface = {0};
	uint32_t wrong[3] = {UINT32_MAX};

	for (int i = 0; i < 3; i++) {
		wrong[1] = vgpu_must_create_event(&vgpu);
		wrong[2] = vgpu_must_create_stream(&vgpu, CU_STREAM_NON_BLOCKING);
	}
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &texture, &made), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_create_surface(&vgpu, array, &surface), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++) {
		other = wrong[i];
		texture.array = other;
		status = vgpu_create_texture(&vgpu, &texture, &made);
		ck_assert_uint_eq(status, CUDA_ERROR_INVALID_HANDLE);
		ck_assert_uint_eq(vgpu_create_surface(&vgpu, other, &surface),
				  CUDA_ERROR_INVALID_HANDLE);
		ck_assert_uint_eq(vgpu_get_level(&vgpu, other, 0, &part),
				  CUDA_ERROR_INVALID_HANDLE);
		ck_assert_uint_eq(box_out(other, origin, whole, BYTES), CUDA_ERROR_INVALID_HANDLE);
		vgpu_destroy_array(&vgpu, other);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
		vgpu_destroy_texture(&vgpu, other);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	}
	ck_assert_uint_eq(vgpu_get_level(&vgpu, 0, 0, &part), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_create_surface(&vgpu, 0, &surface), CUDA_ERROR_INVALID_VALUE);
	vgpu_destroy_array(&vgpu, 0);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* A mipmapped array is not one of its levels, nor is a level a mipmapped array. */
START_TEST(tells_levels_from_arrays)
{
	uint32_t mipmapped = vgpu_must_create_array(&vgpu, size, CUDA_ARRAY3D_SURFACE_LDST, 3),
		 plain = vgpu_must_create_array(&vgpu, size, 0, 0);
	struct fgv_texture_create_request texture = vgpu_right_texture(mipmapped);
	struct fgv_texture_create_reply made;
	struct fgv_surface_create_reply surface;
	uint32_t part, none;

	ck_assert_uint_eq(vgpu_get_level(&vgpu, mipmapped, 2, &part), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_level(&vgpu, mipmapped, 3, &none), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_get_level(&vgpu, mipmapped, UINT32_MAX, &none),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_get_level(&vgpu, plain, 0, &none), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_get_level(&vgpu, part, 0, &none), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &texture, &made), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_create_surface(&vgpu, mipmapped, &surface),
			  CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(box_out(mipmapped, origin, whole, BYTES), CUDA_ERROR_INVALID_VALUE);
	texture.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &texture, &made), CUDA_SUCCESS);
	texture.array = part;
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &texture, &made), CUDA_ERROR_INVALID_VALUE);
	/* Only as large as the level is. */
	ck_assert_uint_eq(box_out(part, origin, whole, BYTES), CUDA_ERROR_INVALID_VALUE);
	vgpu_destroy_array(&vgpu, part);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(destroys_once)
{
	uint32_t mipmapped = vgpu_must_create_array(&vgpu, size, 0, 3), part;
	struct fgv_texture_create_request texture = vgpu_right_texture(0);
	struct fgv_texture_create_reply made;

	texture.address = vgpu_must_alloc(&vgpu, 4096);
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &texture, &made), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_get_level(&vgpu, mipmapped, 1, &part), CUDA_SUCCESS);
	vgpu_destroy_array(&vgpu, mipmapped);
	vgpu_destroy_texture(&vgpu, made.texture);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	vgpu_destroy_array(&vgpu, mipmapped);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	vgpu_destroy_array(&vgpu, part);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	vgpu_destroy_texture(&vgpu, made.texture);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(box_out(part, origin, whole, BYTES), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(vgpu_get_level(&vgpu, mipmapped, 0, &part), CUDA_ERROR_INVALID_HANDLE);
	texture.array = mipmapped;
	texture.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	ck_assert_uint_eq(vgpu_create_texture(&vgpu, &texture, &made), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(charged_bytes(), 4096);
}
END_TEST

static const struct {
	uint64_t at[3], box[3];
} beyond[] = {
	{{4, 0, 0}, {WIDTH * 4, 1, 1}},
	{{WIDTH * 4, 0, 0}, {4, 1, 1}},
	{{0, 1, 0}, {4, HEIGHT, 1}},
	{{0, HEIGHT, 0}, {4, 1, 1}},
	{{0, 0, 1}, {4, 1, DEPTH}},
	{{0, 0, DEPTH}, {4, 1, 1}},
	{{UINT64_MAX - 3, 0, 0}, {4, 1, 1}},
	{{UINT64_MAX - 3, 0, 0}, {8, 1, 1}},
	{{0, UINT64_MAX, 0}, {4, 2, 1}},
	{{0, 0, UINT64_MAX}, {4, 1, 2}},
	{{1, 0, 0}, {4, 1, 1}},
	{{0, 0, 0}, {6, 1, 1}},
	{{1ull << 63, 1ull << 63, 1ull << 63}, {4, 1, 1}},
};

/* In and out, an element, row or slice too far or very far: nothing of it is copied. */
START_TEST(copies_nothing_beyond_an_array)
{
	uint8_t data[BYTES], zeros[BYTES] = {0};
	uint32_t array = create_filled(data);

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		const uint64_t *box = beyond[i].box;
		uint32_t len = (uint32_t)(box[0] * box[1] * box[2]);

		ck_assert_uint_eq(box_out(array, beyond[i].at, box, len), CUDA_ERROR_INVALID_VALUE);
		box_in(array, beyond[i].at, box, zeros, len);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	}
	expect_filled(array, data);
}
END_TEST

/* Boxes that are not what the data is, products that overflow among them. */
START_TEST(copies_no_more_than_the_data)
{
	static const uint64_t boxes[][3] = {
		{4, 1, 2},
		{8, 1, 1},
		{4, 0, 1},
		{0, 4, 4},
		{1ull << 40, 1ull << 24, 1},
		{(1ull << 40) + 4, 1, 1},
		{4, 1ull << 62, 1},
		{4, 1ull << 32, 1ull << 32},
		{4, UINT64_MAX, UINT64_MAX},
		{UINT64_MAX, 1, 1},
	};
	uint8_t data[BYTES];
	uint32_t array = create_filled(data);

	for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
		ck_assert_uint_eq(box_out(array, origin, boxes[i], 4), CUDA_ERROR_INVALID_VALUE);
		box_in(array, origin, boxes[i], "zero", 4);
		ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_ERROR_INVALID_VALUE);
	}
	expect_filled(array, data);
}
END_TEST

/* Linear memory at the other end: a place is an address, a pitch and the rows of a slice. */
START_TEST(copies_nothing_beyond_memory)
{
	uint64_t memory = vgpu_must_alloc(&vgpu, 4096), gone = vgpu_must_alloc(&vgpu, 4096);
	const struct {
		uint64_t at[3], box[3];
	} wrong[] = {
		{{memory + 4096, 32, HEIGHT}, {32, 1, 1}},
		{{memory + 4080, 32, HEIGHT}, {32, 1, 1}},
		{{memory - 4, 32, HEIGHT}, {32, 1, 1}},
		{{memory, 2048, HEIGHT}, {32, HEIGHT, 1}},
		{{memory, 31, HEIGHT}, {32, HEIGHT, 1}},
		{{memory, 32, HEIGHT - 1}, {32, HEIGHT, DEPTH}},
		{{memory, 32, 1ull << 60}, {32, HEIGHT, DEPTH}},
		{{memory, 1ull << 63, 2}, {32, 2, 1}},
		{{memory, UINT64_MAX, UINT64_MAX}, {32, HEIGHT, DEPTH}},
		{{UINT64_MAX - 31, 32, HEIGHT}, {32, HEIGHT, 1}},
		{{0, 32, HEIGHT}, {32, 1, 1}},
		{{gone, 32, HEIGHT}, {32, 1, 1}},
		{{VGPU_SHARED_ADDRESS + 4080, 32, HEIGHT}, {32, 1, 1}},
		{{VGPU_SHARED_ADDRESS, 2048, HEIGHT}, {32, HEIGHT, 1}},
		{{VGPU_SHARED_ADDRESS, UINT64_MAX / 2, 3}, {32, 3, 1}},
	};
	uint8_t data[BYTES];
	struct fgv_copy_box_request request = {.to_array = create_filled(data)};
	uint32_t array = request.to_array;

	vgpu_mem_free(&vgpu, gone);
	ck_assert_uint_eq(vgpu_host_map(&vgpu, VGPU_SHARED_ADDRESS, 1 << 20, 4096), CUDA_SUCCESS);
	for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(wrong[0]); i++) {
		request.to_array = i % 2 ? array : 0;
		request.from_array = i % 2 ? 0 : array;
		memcpy(request.box, wrong[i / 2].box, sizeof(request.box));
		memcpy(i % 2 ? request.from : request.to, wrong[i / 2].at, sizeof(request.to));
		memset(i % 2 ? request.to : request.from, 0, sizeof(request.to));
		vgpu_must_post(&vgpu, 0, FGV_OP_COPY_BOX, &request, sizeof(request));
		ck_assert_msg(vgpu_device_sync(&vgpu) == CUDA_ERROR_INVALID_VALUE, "copy %zu", i);
	}
	expect_filled(array, data);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_arrays");
	TCase *tests = tcase_create("vgpu_arrays");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, makes_no_impossible_array);
	tcase_add_test(tests, charges_for_arrays);
	tcase_add_test(tests, knows_other_kinds);
	tcase_add_test(tests, tells_levels_from_arrays);
	tcase_add_test(tests, destroys_once);
	tcase_add_test(tests, copies_nothing_beyond_an_array);
	tcase_add_test(tests, copies_no_more_than_the_data);
	tcase_add_test(tests, copies_nothing_beyond_memory);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
