/*
 * A vGPU process, a guest that keeps the rules, and the keeper of the VM's images, which the test
 * is: its answers are there before they are asked for.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/fds.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

/* An image that is long enough: add() and a comment. */
#define LEN   (FGV_IMAGE_KEPT_MIN + 100)
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static struct vgpu vgpu;
static int keeper;
static char *image;

static void setup(void)
{
	size_t len = strlen(vgpu_add_ptx);

	vgpu_spawn(&vgpu);
	vgpu.images_fd = &keeper;
	vgpu_begin(&vgpu);
	image = malloc(LEN + 1);
	ck_assert_ptr_nonnull(image);
	memset(image, ' ', LEN);
	memcpy(image, vgpu_add_ptx, len);
	image[LEN] = '\0';
}

static void teardown(void)
{
	free(image);
	vgpu_leave(&vgpu);
	close(keeper);
}

/* The image in a file as the keeper has them. */
static int make_file(int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, image, LEN + 1), LEN + 1);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* @fd -1: none; else it is closed. */
static void answer(uint32_t found, int fd)
{
	const struct fgv_images_reply reply = {.found = found};

	ck_assert_int_eq(fgv_fds_send(keeper, &reply, sizeof(reply), &fd, fd >= 0), 0);
	if (fd >= 0)
		close(fd);
}

static void expect_request(uint32_t op, struct fgv_images_request *request, int *fd)
{
	struct pollfd wait = {.fd = keeper, .events = POLLIN};

	ck_assert_int_eq(poll(&wait, 1, VGPU_PATIENCE_MS), 1);
	ck_assert_int_eq(fgv_fds_receive(keeper, request, sizeof(*request), fd), sizeof(*request));
	ck_assert_uint_eq(request->op, op);
	ck_assert_uint_eq(request->len, LEN);
}

static uint32_t ask_known(void)
{
	const struct fgv_image_known_request request = {.len = LEN, .sample = 0x1234};
	struct fgv_image_known_reply reply = {0};

	ck_assert_uint_eq(
		vgpu_call(&vgpu, 0, FGV_OP_IMAGE_KNOWN, &request, sizeof(request), &reply),
		CUDA_SUCCESS);
	return reply.known;
}

static uint32_t load_known(uint64_t len, struct fgv_module_load_known_reply *reply)
{
	const struct fgv_module_load_known_request request = {
		.len = len,
		.digest = {1, 2, 3, 4},
		.description_off = vgpu.window.arena_off,
		.description_len = 8192,
	};

	memset(reply, 0, sizeof(*reply));
	return vgpu_call(&vgpu, 0, FGV_OP_MODULE_LOAD_KNOWN, &request, sizeof(request), reply);
}

START_TEST(what_is_loaded_is_kept)
{
	struct fgv_images_request request;
	uint32_t module;
	const char *kept;
	int fd;

	memcpy(vgpu_arena(&vgpu, 0), image, LEN);
	ck_assert_uint_eq(vgpu_load(&vgpu, LEN, &module), CUDA_SUCCESS);
	expect_request(FGV_IMAGES_PUT, &request, &fd);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
	kept = mmap(NULL, LEN + 1, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(kept, MAP_FAILED);
	ck_assert_mem_eq(kept, image, LEN + 1);
	munmap((void *)kept, LEN + 1);
	close(fd);
}
END_TEST

START_TEST(what_does_not_load_is_not_kept)
{
	struct fgv_images_request request;
	uint32_t module;
	int fd;

	memset(vgpu_arena(&vgpu, 0), 'x', LEN);
	ck_assert_uint_ne(vgpu_load(&vgpu, LEN, &module), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_load_ptx(&vgpu, vgpu_add_ptx, &module), CUDA_SUCCESS);
	answer(0, -1);
	ck_assert_uint_eq(ask_known(), 0);
	expect_request(FGV_IMAGES_KNOWN, &request, &fd);
	ck_assert_uint_eq(request.sample, 0x1234);
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(what_is_kept_is_loaded)
{
	const uint64_t digest[4] = {1, 2, 3, 4};
	struct fgv_module_load_known_reply reply;
	struct fgv_images_request request;
	uint32_t function;
	int fd;

	answer(1, -1);
	ck_assert_uint_eq(ask_known(), 1);
	answer(1, make_file(SEALS));
	ck_assert_uint_eq(load_known(LEN, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(reply.known, 1);
	ck_assert_uint_eq(reply.kernels, 1);
	ck_assert_uint_ne(reply.module, 0);
	ck_assert_uint_eq(vgpu_get_function(&vgpu, reply.module, "add", &function), CUDA_SUCCESS);
	expect_request(FGV_IMAGES_KNOWN, &request, &fd);
	expect_request(FGV_IMAGES_GET, &request, &fd);
	ck_assert_mem_eq(request.digest, digest, sizeof(digest));
}
END_TEST

START_TEST(what_is_not_kept_is_not_known)
{
	struct fgv_module_load_known_reply reply;

	answer(0, -1);
	ck_assert_uint_eq(load_known(LEN, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(reply.known, 0);
	ck_assert_uint_eq(reply.module, 0);
}
END_TEST

/* A keeper that was taken over gives what can change, or nothing, or what does not load. */
START_TEST(a_keeper_that_lies)
{
	struct fgv_module_load_known_reply reply;

	answer(1, make_file(SEALS & ~F_SEAL_WRITE));
	ck_assert_uint_eq(load_known(LEN, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(reply.known, 0);
	answer(1, -1);
	ck_assert_uint_eq(load_known(LEN, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(reply.known, 0);
	memset(image, 'x', 100);
	answer(1, make_file(SEALS));
	ck_assert_uint_ne(load_known(LEN, &reply), CUDA_SUCCESS);
}
END_TEST

/* Lengths at which nothing is asked. */
START_TEST(no_length_of_an_image)
{
	const uint64_t lens[] = {0, FGV_IMAGE_KEPT_MIN - 1};
	struct fgv_module_load_known_reply reply;

	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		ck_assert_uint_eq(load_known(lens[i], &reply), CUDA_SUCCESS);
		ck_assert_uint_eq(reply.known, 0);
	}
	ck_assert_uint_eq(load_known(FGV_IMAGE_MAX + 1, &reply), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(load_known(UINT64_MAX, &reply), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

START_TEST(a_keeper_that_dies)
{
	struct fgv_module_load_known_reply reply;
	uint32_t module;

	shutdown(keeper, SHUT_RDWR);
	ck_assert_uint_eq(ask_known(), 0);
	ck_assert_uint_eq(load_known(LEN, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(reply.known, 0);
	memcpy(vgpu_arena(&vgpu, 0), image, LEN);
	ck_assert_uint_eq(vgpu_load(&vgpu, LEN, &module), CUDA_SUCCESS);
}
END_TEST

/* It is asked once, waited for a moment, and left alone from then on. */
START_TEST(a_keeper_that_says_nothing)
{
	struct fgv_module_load_known_reply reply;
	struct fgv_images_request request;
	int fd;

	ck_assert_uint_eq(ask_known(), 0);
	ck_assert_uint_eq(load_known(LEN, &reply), CUDA_SUCCESS);
	ck_assert_uint_eq(reply.known, 0);
	expect_request(FGV_IMAGES_KNOWN, &request, &fd);
	ck_assert_int_eq(fgv_fds_receive(keeper, &request, sizeof(request), &fd), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu images");
	TCase *tests = tcase_create("images");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, what_is_loaded_is_kept);
	tcase_add_test(tests, what_does_not_load_is_not_kept);
	tcase_add_test(tests, what_is_kept_is_loaded);
	tcase_add_test(tests, what_is_not_kept_is_not_known);
	tcase_add_test(tests, a_keeper_that_lies);
	tcase_add_test(tests, no_length_of_an_image);
	tcase_add_test(tests, a_keeper_that_dies);
	tcase_add_test(tests, a_keeper_that_says_nothing);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
