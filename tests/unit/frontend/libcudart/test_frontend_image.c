/*
 * Fat binaries, good and bad: what is sent of them, when, how often; and that a bad one is an
 * error of whoever uses it, and no crash.
 */
#define _GNU_SOURCE
#include "tests/unit/frontend/libcudart/test_frontend.h"

#include <pthread.h>
#include <string.h>

#include "common/digest.h"
#include "tests/unit/backend/gpu/fatbin_build.h"

static char kernel_here[1], variable_here[1];

static void **register_wrapper(void *wrapper)
{
	void **module = __cudaRegisterFatBinary(wrapper);

	__cudaRegisterFunction(module, kernel_here, NULL, "empty", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterVar(module, variable_here, NULL, "table", 0, 64, 0, 0);
	__cudaRegisterFatBinaryEnd(module);
	return module;
}

static cudaError_t use(void)
{
	return launch(kernel_here, of(1, 1, 1), of(1, 1, 1), 0);
}

START_TEST(sent_once_and_only_if_used)
{
	struct test_wrapper wrapper = {0x466243b1, 1, &test_container, "file.ptx"};
	void *p;

	register_wrapper(&wrapper);
	EXPECT(cudaMalloc(&p, 1), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 0);
	EXPECT(use(), cudaSuccess);
	EXPECT(use(), cudaSuccess);
	EXPECT(cudaGetSymbolAddress(&p, variable_here), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 1);
	host_seen();
	ck_assert_uint_eq(host.image_len, sizeof(test_container));
	ck_assert_mem_eq(host.image, &test_container, sizeof(test_container));
}
END_TEST

START_TEST(separate_compilation)
{
	static const struct test_container parts[] = {TEST_CONTAINER(1), TEST_CONTAINER(2)};
	static const void *const more[] = {&parts[0], &parts[1], NULL};
	struct test_wrapper wrapper = {0x466243b1, 2, &test_container, more};

	register_wrapper(&wrapper);
	EXPECT(use(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.image_len, 3 * sizeof(test_container));
	ck_assert_mem_eq(host.image, &test_container, sizeof(test_container));
	ck_assert_mem_eq(host.image + sizeof(test_container), parts, sizeof(parts));
}
END_TEST

#define CODE_LEN 64

static void add_code(struct fatbin *fatbin, unsigned kind, unsigned sm)
{
	char code[CODE_LEN];

	memset(code, (int)sm, sizeof(code));
	fatbin_add(fatbin, &(struct fatbin_entry){
				   .kind = kind, .sm = sm, .data = code, .len = sizeof(code)});
}

/* What the host gets of @image is @expected. */
static void check_sent(const struct fatbin *image, const struct fatbin *expected)
{
	struct test_wrapper wrapper = {0x466243b1, 1, image->bytes, NULL};

	register_wrapper(&wrapper);
	EXPECT(use(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.image_len, expected->len);
	ck_assert_mem_eq(host.image, expected->bytes, expected->len);
}

/* The device is of sm_90: code that it can't run stays at home, whatever else there is goes. */
START_TEST(only_what_the_gpu_can_use)
{
	static const struct {
		unsigned kind, sm;
		bool goes;
	} entries[] = {{2, 50, false}, {2, 89, false}, {1, 50, true},	{2, 90, true},
		       {2, 91, false}, {16, 89, true}, {2, 100, false}, {1, 120, true}};
	struct fatbin image, expected;

	fatbin_init(&image);
	fatbin_init(&expected);
	fatbin_begin(&image);
	fatbin_begin(&expected);
	for (unsigned i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		add_code(&image, entries[i].kind, entries[i].sm);
		if (entries[i].goes)
			add_code(&expected, entries[i].kind, entries[i].sm);
	}
	check_sent(&image, &expected);
	fatbin_fini(&image);
	fatbin_fini(&expected);
}
END_TEST

/* That there is nothing for it is for the host to say, and what is wrong with a container. */
START_TEST(all_that_is_not_understood)
{
	struct fatbin image;

	fatbin_init(&image);
	fatbin_begin(&image);
	add_code(&image, FGV_FATBIN_CUBIN, 50);
	if (_i)
		add_code(&image, FGV_FATBIN_CUBIN, 90);
	/* The last entry says that it is longer than the container. */
	if (_i)
		image.bytes[image.len - CODE_LEN - 64 + 8]++;
	check_sent(&image, &image);
	fatbin_fini(&image);
}
END_TEST

/* The second of three containers has nothing for the device; the others have half of what they are.
 */
static void fill_three(struct fatbin *image, struct fatbin *expected, size_t begins[3])
{
	for (unsigned i = 0; i < 3; i++) {
		begins[i] = image->len;
		fatbin_begin(image);
		fatbin_begin(expected);
		add_code(image, FGV_FATBIN_CUBIN, 80);
		if (i != 1)
			add_code(image, FGV_FATBIN_CUBIN, 90);
		add_code(expected, FGV_FATBIN_CUBIN, i == 1 ? 80 : 90);
	}
}

/* A library's containers are kept one behind the other. */
START_TEST(only_what_a_library_can_use)
{
	struct fatbin image, expected;
	struct test_wrapper wrapper;
	const void *more[3] = {NULL};
	cudaLibrary_t library;
	size_t begins[3];

	fatbin_init(&image);
	fatbin_init(&expected);
	fill_three(&image, &expected, begins);
	more[0] = image.bytes + begins[1];
	more[1] = image.bytes + begins[2];
	wrapper = (struct test_wrapper){0x466243b1, 2, image.bytes, more};
	EXPECT(cudaLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.image_len, expected.len);
	ck_assert_mem_eq(host.image, expected.bytes, expected.len);
	EXPECT(cudaLibraryUnload(library), cudaSuccess);
	fatbin_fini(&image);
	fatbin_fini(&expected);
}
END_TEST

/* An image that is worth keeping: PTX, and code that stays at home in the middle of it. */
static void fill_large(struct fatbin *image, struct fatbin *expected)
{
	static char text[FGV_IMAGE_KEPT_MIN];

	memset(text, ' ', sizeof(text));
	text[0] = '/';
	fatbin_begin(image);
	fatbin_begin(expected);
	add_code(image, FGV_FATBIN_CUBIN, 80);
	for (unsigned i = 0; i < 2; i++) {
		const struct fatbin_entry entry = {
			.kind = FGV_FATBIN_PTX, .sm = 70 + i, .data = text, .len = sizeof(text)};

		fatbin_add(image, &entry);
		fatbin_add(expected, &entry);
		add_code(image, FGV_FATBIN_CUBIN, 80);
	}
}

/* Tells the host that it has kept @image, or one that differs in its last byte. */
static void have_kept(const struct fatbin *image, bool same)
{
	struct iovec pieces[2] = {{image->bytes, image->len - 1},
				  {image->bytes + image->len - 1, 1}};
	uint8_t last = (uint8_t)(image->bytes[image->len - 1] + 1);
	struct fgv_digest leaf, root;

	if (!same)
		pieces[1].iov_base = &last;
	ck_assert_uint_eq(fgv_digest_leaves(image->len), 1);
	leaf = fgv_digest_leaf(pieces, 2, image->len, 0);
	root = fgv_digest_root(&leaf, image->len);
	host.kept_len = image->len;
	memcpy(host.kept_digest, root.bytes, sizeof(host.kept_digest));
}

/* 0: the host has nothing like it, 1: it has it, 2: it has one of the same length. */
START_TEST(not_sent_where_the_host_has_it)
{
	struct fatbin image, expected;
	struct test_wrapper wrapper;
	cudaLibrary_t library;

	fatbin_init(&image);
	fatbin_init(&expected);
	fill_large(&image, &expected);
	if (_i > 0)
		have_kept(&expected, _i == 1);
	wrapper = (struct test_wrapper){0x466243b1, 1, image.bytes, NULL};
	EXPECT(cudaLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_IMAGE_KNOWN]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD_KNOWN]), _i > 0);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), _i != 1);
	ck_assert_uint_eq(host.image_len, _i == 1 ? 0 : expected.len);
	EXPECT(cudaLibraryUnload(library), cudaSuccess);
	fatbin_fini(&image);
	fatbin_fini(&expected);
}
END_TEST

/* What is wrong with a kept image is wrong with the one that was asked for. */
START_TEST(a_kept_one_that_does_not_load)
{
	struct fatbin image, expected;
	struct test_wrapper wrapper;
	cudaLibrary_t library;

	fatbin_init(&image);
	fatbin_init(&expected);
	fill_large(&image, &expected);
	have_kept(&expected, true);
	HOST_SET(status[FGV_OP_MODULE_LOAD_KNOWN], CUDA_ERROR_NO_BINARY_FOR_GPU);
	wrapper = (struct test_wrapper){0x466243b1, 1, image.bytes, NULL};
	EXPECT(cudaLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0),
	       cudaErrorNoKernelImageForDevice);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 0);
	fatbin_fini(&image);
	fatbin_fini(&expected);
}
END_TEST

START_TEST(in_memory_of_its_own)
{
	struct test_container *container = malloc(sizeof(*container));
	struct test_wrapper wrapper = {0x466243b1, 1, container, NULL};

	*container = test_container;
	register_wrapper(&wrapper);
	EXPECT(use(), cudaSuccess);
	host_seen();
	ck_assert_uint_eq(host.image_len, sizeof(*container));
	free(container);
}
END_TEST

static struct test_container bad_magic = {0xba55ed51, 1, 16, 32, {0}};
static struct test_container bad_header = {0xba55ed50, 1, 15, 32, {0}};
static struct test_container too_long = {0xba55ed50, 1, 16, 1ull << 40, {0}};
static struct test_container endless = {0xba55ed50, 1, 16, UINT64_MAX, {0}};
/* Not absurd by itself, but this program's segment is not that large. */
static struct test_container cut_short = {0xba55ed50, 1, 16, 64u << 20, {0}};
static const void *const more_bad[] = {&bad_magic, NULL};

static struct test_wrapper bad_wrappers[] = {
	{0x466243b2, 1, &test_container, NULL}, {0x466243b1, 0, &test_container, NULL},
	{0x466243b1, 3, &test_container, NULL}, {0x466243b1, 1, NULL, NULL},
	{0x466243b1, 1, &bad_magic, NULL},	{0x466243b1, 1, &bad_header, NULL},
	{0x466243b1, 1, &too_long, NULL},	{0x466243b1, 1, &endless, NULL},
	{0x466243b1, 1, &cut_short, NULL},	{0x466243b1, 2, &test_container, more_bad},
};

START_TEST(bad_images)
{
	void *p;

	register_wrapper(&bad_wrappers[_i]);
	EXPECT(use(), cudaErrorInvalidKernelImage);
	EXPECT(use(), cudaErrorInvalidKernelImage);
	EXPECT(cudaGetSymbolAddress(&p, variable_here), cudaErrorInvalidKernelImage);
	/* The others are as good as before. */
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 1);
}
END_TEST

START_TEST(no_wrapper_at_all)
{
	register_wrapper(NULL);
	EXPECT(use(), cudaErrorInvalidKernelImage);
}
END_TEST

START_TEST(refused_by_the_host)
{
	static struct test_wrapper wrapper = {0x466243b1, 1, &test_container, NULL};

	HOST_SET(status[FGV_OP_MODULE_LOAD], CUDA_ERROR_NO_BINARY_FOR_GPU);
	register_wrapper(&wrapper);
	EXPECT(use(), cudaErrorNoKernelImageForDevice);
	EXPECT(use(), cudaErrorNoKernelImageForDevice);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 1);
}
END_TEST

START_TEST(unregistered)
{
	static struct test_wrapper wrapper = {0x466243b1, 1, &test_container, NULL};
	void **module = register_wrapper(&wrapper);
	cudaKernel_t handle;

	EXPECT(use(), cudaSuccess);
	EXPECT(__cudaGetKernel(&handle, kernel_here), cudaSuccess);
	__cudaUnregisterFatBinary(module);
	EXPECT(use(), cudaErrorInvalidResourceHandle);
	EXPECT(__cudaLaunchKernel(handle, of(1, 1, 1), of(1, 1, 1), NULL, 0, NULL),
	       cudaErrorInvalidResourceHandle);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_UNLOAD]), 1);
	/* As a library that is loaded again. */
	register_wrapper(&wrapper);
	EXPECT(use(), cudaSuccess);
	__cudaUnregisterFatBinary(NULL);
	__cudaUnregisterFatBinary((void **)&wrapper);
}
END_TEST

static void *use_it(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)launch(kernel_here, of(1, 1, 1), of(1, 1, 1), 0);
}

START_TEST(first_used_by_many_at_once)
{
	static struct test_wrapper wrapper = {0x466243b1, 1, &test_container, NULL};
	pthread_t threads[8];
	void *result;

	register_wrapper(&wrapper);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, use_it, NULL);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &result);
		ck_assert_ptr_eq(result, NULL);
	}
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_uint_eq(HOST_GET(launch_count), 8);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MODULE_LOAD]), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_FUNCTION_GET]), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: fat binaries");
	TCase *tests = tcase_create("images");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, sent_once_and_only_if_used);
	tcase_add_test(tests, separate_compilation);
	tcase_add_test(tests, only_what_the_gpu_can_use);
	tcase_add_loop_test(tests, all_that_is_not_understood, 0, 2);
	tcase_add_test(tests, only_what_a_library_can_use);
	tcase_add_loop_test(tests, not_sent_where_the_host_has_it, 0, 3);
	tcase_add_test(tests, a_kept_one_that_does_not_load);
	tcase_add_test(tests, in_memory_of_its_own);
	tcase_add_loop_test(tests, bad_images, 0,
			    (int)(sizeof(bad_wrappers) / sizeof(bad_wrappers[0])));
	tcase_add_test(tests, no_wrapper_at_all);
	tcase_add_test(tests, refused_by_the_host);
	tcase_add_test(tests, unregistered);
	tcase_add_test(tests, first_used_by_many_at_once);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
