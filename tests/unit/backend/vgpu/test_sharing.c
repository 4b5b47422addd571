/*
 * What a session shares, as its own process keeps it: with the VM's keeper, which runs in a thread
 * of the test, beside another session that lies; and with a keeper that does not keep to the rules.
 * The GPU's memory is files.
 */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/images/images.h"
#include "backend/vgpu/images/keeper.h"
#include "backend/vgpu/images/shared.h"
#include "backend/vgpu/sharing.h"
#include "common/util.h"

#define MIB   (1024ull * 1024)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct fgv_shared_account account;
static struct fgv_shared shared;
static struct fgv_images images;
static struct fgv_sharing sharing;
static int control[2], other; /* of the keeper; and a session that is not @sharing's */
static pthread_t thread;
static CUresult import_says;
static ino_t imported;

struct fgv_gpu_memory {
	int fd;
};

static CUresult export_memory(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory, int *fd)
{
	(void)gpu;
	*fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
	return CUDA_SUCCESS;
}

static CUresult import_memory(struct fgv_gpu *gpu, int fd, uint64_t bytes,
			      struct fgv_gpu_memory **memory)
{
	struct stat status;

	(void)gpu;
	(void)memory;
	ck_assert_uint_eq(bytes, MIB);
	ck_assert_int_eq(fstat(fd, &status), 0);
	imported = status.st_ino;
	return import_says;
}

static const struct fgv_gpu_ops ops = {
	.memory_export = export_memory,
	.memory_import = import_memory,
};
static struct fgv_gpu gpu = {.ops = &ops};

static void *serve(void *unused)
{
	(void)unused;
	fgv_keeper_serve(control[1], 0, &shared);
	return NULL;
}

static int connect_session(uint32_t number)
{
	const struct fgv_keeper_session who = {number, number};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(fgv_fds_send(control[0], &who, sizeof(who), &pair[1], 1), 0);
	close(pair[1]);
	return pair[0];
}

static void setup(void)
{
	import_says = CUDA_SUCCESS;
	memset(&account, 0, sizeof(account));
	fgv_shared_init(&shared);
	fgv_shared_add_gpu(&shared, &account);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
	fgv_images_init(&images, connect_session(0));
	fgv_sharing_init(&sharing, &images, &gpu, 0);
	other = connect_session(1);
}

static void teardown(void)
{
	fgv_sharing_fini(&sharing);
	if (images.fd >= 0)
		close(images.fd);
	close(other);
	close(control[0]);
	pthread_join(thread, NULL);
	close(control[1]);
	ck_assert_uint_eq(account.memory_bytes, 0);
}

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void await(const uint64_t *word, uint64_t value)
{
	while (load(word) != value)
		usleep(100);
}

/* What the other session puts there, whatever it is: its key. */
static struct fgv_key put_by_other(uint32_t number, uint64_t bytes, int fd)
{
	const struct fgv_sharing_request request = {
		.op = FGV_SHARING_PUT, .gpu = number, .bytes = bytes};
	struct fgv_sharing_reply reply;
	int none;

	ck_assert_int_eq(fgv_fds_send(other, &request, sizeof(request), &fd, 1), 0);
	while (fgv_fds_receive(other, &reply, sizeof(reply), &none) < 0)
		usleep(100);
	ck_assert_uint_eq(reply.error, 0);
	return reply.key;
}

static int make_file(uint64_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

START_TEST(has_it_as_often_as_it_got_it)
{
	struct fgv_gpu_memory memory = {make_file(MIB, 0)}, *same;
	struct fgv_key key;
	uint64_t bytes;

	ck_assert(gpu.exports);
	ck_assert_int_eq(fgv_sharing_export(&sharing, &memory, MIB, &key), CUDA_SUCCESS);
	await(&account.has_bytes[0], MIB);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(fgv_sharing_import(&sharing, &key, &same, &bytes), CUDA_SUCCESS);
		ck_assert_uint_eq(bytes, MIB);
	}
	fgv_sharing_drop(&sharing, &key);
	fgv_sharing_drop(&sharing, &key);
	ck_assert_int_eq(fgv_sharing_import(&sharing, &key, &same, &bytes), CUDA_SUCCESS);
	fgv_sharing_drop(&sharing, &key);
	ck_assert_uint_eq(load(&account.has_bytes[0]), MIB);
	fgv_sharing_drop(&sharing, &key);
	await(&account.memory_bytes, 0);
	/* It is gone, and once more is nothing. */
	fgv_sharing_drop(&sharing, &key);
	ck_assert_int_eq(fgv_sharing_import(&sharing, &key, &same, &bytes),
			 CUDA_ERROR_INVALID_HANDLE);
	close(memory.fd);
}
END_TEST

/* The driver does not take what another session gave for memory. */
START_TEST(what_is_no_memory_is_not_kept)
{
	int fd = make_file(MIB, 0);
	struct fgv_key key = put_by_other(0, MIB, fd);
	struct fgv_gpu_memory *memory;
	uint64_t bytes;

	import_says = CUDA_ERROR_INVALID_VALUE;
	ck_assert_int_eq(fgv_sharing_import(&sharing, &key, &memory, &bytes),
			 CUDA_ERROR_INVALID_VALUE);
	await(&account.has_bytes[0], 0);
	ck_assert_uint_eq(load(&account.memory_bytes), MIB);
	close(fd);
}
END_TEST

START_TEST(words_of_another)
{
	/* Pages that could be taken from under the mapping, or are too small or large. */
	static const struct {
		uint64_t bytes;
		int seals;
	} bad[] = {
		{FGV_PAGE_BYTES, 0},
		{FGV_PAGE_BYTES, F_SEAL_GROW},
		{FGV_PAGE_BYTES / 2, SEALS},
		{2 * FGV_PAGE_BYTES, SEALS},
	};
	void *page, *same;
	struct fgv_key key;
	int fd;

	ck_assert_int_eq(fgv_sharing_make_words(&sharing, &key, &page), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_sharing_open_words(&sharing, &key, &same), CUDA_SUCCESS);
	((uint64_t *)page)[5] = 7;
	ck_assert_uint_eq(((uint64_t *)same)[5], 7);
	munmap(page, FGV_PAGE_BYTES);
	munmap(same, FGV_PAGE_BYTES);
	for (unsigned i = 0; i < FGV_ARRAY_LEN(bad); i++) {
		fd = make_file(bad[i].bytes, bad[i].seals);
		key = put_by_other(FGV_SHARED_HOST, FGV_PAGE_BYTES, fd);
		ck_assert_int_eq(fgv_sharing_open_words(&sharing, &key, &page),
				 CUDA_ERROR_INVALID_HANDLE);
		close(fd);
	}
	/* Memory is no words, nor the other way round. */
	fd = make_file(FGV_PAGE_BYTES, SEALS);
	key = put_by_other(0, MIB, fd);
	ck_assert_int_eq(fgv_sharing_open_words(&sharing, &key, &page), CUDA_ERROR_INVALID_DEVICE);
	close(fd);
}
END_TEST

START_TEST(only_so_many_pages)
{
	struct fgv_key key;
	void *page;

	for (unsigned i = 0; i < FGV_WORDS_PAGES_MAX; i++) {
		ck_assert_int_eq(fgv_sharing_make_words(&sharing, &key, &page), CUDA_SUCCESS);
		munmap(page, FGV_PAGE_BYTES);
	}
	ck_assert_int_eq(fgv_sharing_make_words(&sharing, &key, &page), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(fgv_sharing_open_words(&sharing, &key, &page), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

/* It hangs up, or its answers are odd: there is no keeper any more. */
START_TEST(a_keeper_that_fails)
{
	struct fgv_sharing_reply reply = {.bytes = MIB};
	struct fgv_gpu_memory memory = {make_file(MIB, 0)}, *same;
	struct fgv_key key = {{1, 2}};
	size_t len = sizeof(reply);
	struct fgv_images line;
	struct fgv_sharing odd;
	uint64_t bytes;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fgv_images_init(&line, pair[0]);
	fgv_sharing_init(&odd, &line, &gpu, 0);
	if (_i == 1)
		len--;
	if (_i == 2)
		reply.error = UINT32_MAX;
	/* With _i == 3 there should have been a descriptor. */
	if (_i > 0)
		ck_assert_int_eq(fgv_fds_send(pair[1], &reply, len, NULL, 0), 0);
	else
		close(pair[1]);
	ck_assert_int_eq(fgv_sharing_import(&odd, &key, &same, &bytes),
			 CUDA_ERROR_OPERATING_SYSTEM);
	fgv_sharing_drop(&odd, &key);
	if (_i < 2)
		ck_assert_int_eq(fgv_sharing_export(&odd, &memory, MIB, &key),
				 CUDA_ERROR_OPERATING_SYSTEM);
	fgv_sharing_fini(&odd);
	if (line.fd >= 0)
		close(line.fd);
	if (_i > 0)
		close(pair[1]);
	close(memory.fd);
}
END_TEST

START_TEST(nothing_is_shared)
{
	struct fgv_sharing none = {.gpu = &gpu};
	struct fgv_gpu_memory *memory = NULL;
	struct fgv_key key = {{1, 2}};
	uint64_t bytes;
	void *page;

	ck_assert_int_eq(fgv_sharing_export(&none, memory, MIB, &key), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(fgv_sharing_import(&none, &key, &memory, &bytes),
			 CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(fgv_sharing_make_words(&none, &key, &page), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(fgv_sharing_open_words(&none, &key, &page), CUDA_ERROR_NOT_SUPPORTED);
	fgv_sharing_drop(&none, &key);
	fgv_sharing_fini(&none);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sharing");
	TCase *tcase = tcase_create("session");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, has_it_as_often_as_it_got_it);
	tcase_add_test(tcase, what_is_no_memory_is_not_kept);
	tcase_add_test(tcase, words_of_another);
	tcase_add_test(tcase, only_so_many_pages);
	tcase_add_loop_test(tcase, a_keeper_that_fails, 0, 4);
	tcase_add_test(tcase, nothing_is_shared);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
