/*
 * The keeper of a VM's images, and vGPU processes that lie to it. It runs in a thread of the test,
 * without its sandbox.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/wire.h"
#include "backend/fds.h"
#include "backend/shared.h"
#include "backend/vgpu/images/file.h"
#include "backend/vgpu/images/images.h"
#include "backend/vgpu/images/keeper.h"
#include "backend/vgpu/images/kept.h"
#include "backend/vgpu/images/shared.h"
#include "common/util.h"

#define LEN	    (FGV_DIGEST_LEAF + 4711u)
#define BYTES_MAX   (4 * (uint64_t)LEN)
#define PATIENCE_MS 60000

static int control[2]; /* the daemon's end, and the keeper's */
static pthread_t thread;
static uint8_t *image;
static struct fgv_shared shared; /* nothing */

static void *serve(void *unused)
{
	(void)unused;
	fgv_keeper_serve(control[1], BYTES_MAX, &shared);
	return NULL;
}

static void setup(void)
{
	image = malloc(LEN);
	ck_assert_ptr_nonnull(image);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

/* It ends as the daemon goes, whatever has happened to it. */
static void teardown(void)
{
	close(control[0]);
	pthread_join(thread, NULL);
	close(control[1]);
	free(image);
}

/* The end of a new session's vGPU process. */
static int connect_session(void)
{
	static struct fgv_keeper_session who;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(fgv_fds_send(control[0], &who, sizeof(who), &pair[1], 1), 0);
	who.number++;
	close(pair[1]);
	return pair[0];
}

static void fill(uint32_t seed)
{
	for (size_t i = 0; i < LEN; i++) {
		seed = seed * 1664525 + 1013904223;
		image[i] = (uint8_t)(seed >> 24);
	}
}

static struct fgv_digest digest_of(const void *bytes, uint64_t len)
{
	const struct iovec piece = {(void *)bytes, len};
	struct fgv_digest leaves[2];

	ck_assert_uint_le(fgv_digest_leaves(len), 2);
	for (size_t i = 0; i < fgv_digest_leaves(len); i++)
		leaves[i] = fgv_digest_leaf(&piece, 1, len, i);
	return fgv_digest_root(leaves, len);
}

static uint64_t sample_of(const void *bytes, uint64_t len)
{
	const struct iovec piece = {(void *)bytes, len};

	return fgv_digest_sample(&piece, 1, len);
}

static void send_put(int session, int fd, uint64_t len)
{
	struct fgv_images_request request = {.op = FGV_IMAGES_PUT, .len = len};

	ck_assert_int_eq(fgv_fds_send(session, &request, sizeof(request), &fd, 1), 0);
}

/* An answer; -1: it has hung up. @fd: what came with it, or -1. */
static int receive(int session, int *fd)
{
	struct pollfd wait = {.fd = session, .events = POLLIN};
	struct fgv_images_reply reply;
	ssize_t len;

	ck_assert_int_eq(poll(&wait, 1, PATIENCE_MS), 1);
	len = fgv_fds_receive(session, &reply, sizeof(reply), fd);
	if (len == 0 || len == -ECONNRESET)
		return -1;
	ck_assert_int_eq(len, sizeof(reply));
	return (int)reply.found;
}

static bool is_known(int session, uint64_t len, uint64_t sample)
{
	struct fgv_images_request request = {.op = FGV_IMAGES_KNOWN, .len = len, .sample = sample};
	int fd, found;

	ck_assert_int_eq(fgv_fds_send(session, &request, sizeof(request), NULL, 0), 0);
	found = receive(session, &fd);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_ge(found, 0);
	return found;
}

/* The file of the image with @digest, or -1. */
static int get(int session, const struct fgv_digest *digest, uint64_t len)
{
	struct fgv_images_request request = {.op = FGV_IMAGES_GET, .len = len};
	int fd, found;

	memcpy(request.digest, digest, sizeof(request.digest));
	ck_assert_int_eq(fgv_fds_send(session, &request, sizeof(request), NULL, 0), 0);
	found = receive(session, &fd);
	ck_assert_int_ge(found, 0);
	ck_assert_int_eq(found, fd >= 0);
	return fd;
}

static bool has(int session, const void *bytes, uint64_t len)
{
	struct fgv_digest digest = digest_of(bytes, len);
	int fd = get(session, &digest, len);
	const char *mapped;

	if (fd < 0)
		return false;
	mapped = fgv_image_file_map(fd, len);
	ck_assert_ptr_nonnull(mapped);
	ck_assert_mem_eq(mapped, bytes, len);
	ck_assert_int_eq(mapped[len], '\0');
	munmap((void *)mapped, len + 1);
	close(fd);
	return true;
}

static void put(int session, const void *bytes, uint64_t len)
{
	int fd = fgv_image_file_create(bytes, len);

	ck_assert_int_ge(fd, 0);
	send_put(session, fd, len);
	close(fd);
}

/* Digests are made when there is nothing else to do. */
static void await(int session, const void *bytes, uint64_t len)
{
	while (!is_known(session, len, sample_of(bytes, len)))
		usleep(1000);
}

/* Number @seed of images that it gets and keeps. */
static void put_number(int session, uint32_t seed)
{
	fill(seed);
	put(session, image, LEN);
	await(session, image, LEN);
}

static bool has_number(int session, uint32_t seed)
{
	fill(seed);
	return has(session, image, LEN);
}

START_TEST(one_session_has_what_another_had)
{
	int first = connect_session(), second = connect_session();

	fill(1);
	ck_assert(!is_known(first, LEN, sample_of(image, LEN)));
	ck_assert(!has(first, image, LEN));
	put(first, image, LEN);
	await(second, image, LEN);
	close(first);
	ck_assert(has(second, image, LEN));
	ck_assert(!has_number(second, 2));
	close(second);
}
END_TEST

/* What is kept under a digest is what has it, whatever its sender says. */
START_TEST(a_digest_cannot_be_claimed)
{
	struct fgv_images_request request = {.op = FGV_IMAGES_PUT, .len = LEN, .sample = 1};
	int liar = connect_session(), victim = connect_session(), fd;
	struct fgv_digest right;

	fill(1);
	right = digest_of(image, LEN);
	image[LEN - 1] ^= 1;
	memcpy(request.digest, &right, sizeof(request.digest));
	fd = fgv_image_file_create(image, LEN);
	ck_assert_int_eq(fgv_fds_send(liar, &request, sizeof(request), &fd, 1), 0);
	close(fd);
	await(victim, image, LEN);
	ck_assert_int_eq(get(victim, &right, LEN), -1);
	ck_assert(has(victim, image, LEN));
	close(liar);
	close(victim);
}
END_TEST

/* A file of @len and one bytes with these seals. */
static int make_file(uint64_t len, int seals, uint8_t last)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)len + 1), 0);
	ck_assert_int_eq(pwrite(fd, &last, 1, (off_t)len), 1);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

#define ALL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Memory behind the file's end is the VM's, and nobody's. */
static int make_fat_file(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, LEN + 1), 0);
	ck_assert_int_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4 * LEN), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, ALL_SEALS), 0);
	return fd;
}

static int make_pipe(void)
{
	int pair[2];

	ck_assert_int_eq(pipe(pair), 0);
	close(pair[1]);
	return pair[0];
}

static int make_bad_file(int which)
{
	switch (which) {
	case 0:
		return make_file(LEN, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW, 0);
	case 1:
		return make_file(LEN, F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW, 0);
	case 2:
		return make_file(LEN, F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_GROW, 0);
	case 3:
		return make_file(LEN - 1, ALL_SEALS, 0);
	case 4:
		return make_file(LEN + 1, ALL_SEALS, 0);
	case 5:
		return make_file(LEN, ALL_SEALS, 1);
	case 6:
		return make_fat_file();
	case 7:
		return make_pipe();
	default:
		return open("/dev/zero", O_RDONLY | O_CLOEXEC);
	}
}

/* All are sent as the image of zeros that a good one would be. */
START_TEST(no_file_that_can_change_or_is_another)
{
	int session = connect_session(), fd = make_bad_file(_i);

	memset(image, 0, LEN);
	send_put(session, fd, LEN);
	close(fd);
	put_number(session, 1);
	memset(image, 0, LEN);
	ck_assert(!has(session, image, LEN));
	put(session, image, LEN);
	await(session, image, LEN);
	ck_assert(has(session, image, LEN));
	close(session);
}
END_TEST

/* Holes stay holes: to hash a file takes none of its memory. */
START_TEST(a_file_of_holes)
{
	int session = connect_session(), fd = make_file(LEN, ALL_SEALS, 0);
	struct stat before, after;

	memset(image, 0, LEN);
	ck_assert_int_eq(fstat(fd, &before), 0);
	send_put(session, fd, LEN);
	await(session, image, LEN);
	ck_assert_int_eq(fstat(fd, &after), 0);
	ck_assert_int_eq(before.st_blocks, after.st_blocks);
	ck_assert(has(session, image, LEN));
	close(fd);
	close(session);
}
END_TEST

START_TEST(no_image_of_a_wrong_length)
{
	const uint64_t lens[] = {0, 1, FGV_IMAGE_KEPT_MIN - 1, BYTES_MAX + 1, UINT64_MAX};
	int session = connect_session();

	for (size_t i = 0; i < FGV_ARRAY_LEN(lens); i++) {
		int fd = make_file(fgv_min_u64(lens[i], BYTES_MAX + 1), ALL_SEALS, 0);

		send_put(session, fd, lens[i]);
		close(fd);
	}
	put_number(session, 1);
	ck_assert(has_number(session, 1));
	for (size_t i = 0; i < FGV_ARRAY_LEN(lens); i++)
		ck_assert(!is_known(session, lens[i], 0));
	close(session);
}
END_TEST

/* There is room for four. */
START_TEST(what_was_not_used_goes_first)
{
	int session = connect_session();

	for (uint32_t i = 1; i <= 4; i++)
		put_number(session, i);
	ck_assert(has_number(session, 1));
	put_number(session, 5);
	put_number(session, 6);
	ck_assert(has_number(session, 1));
	ck_assert(!has_number(session, 2));
	ck_assert(!has_number(session, 3));
	for (uint32_t i = 4; i <= 6; i++)
		ck_assert(has_number(session, i));
	close(session);
}
END_TEST

/* One that sends without end is not waited for by another, and what it sends is bounded. */
START_TEST(endless_files)
{
	int greedy = connect_session(), other = connect_session();

	fill(1);
	for (int i = 0; i < 200; i++) {
		struct fgv_images_request request = {.op = FGV_IMAGES_PUT, .len = LEN};
		int fd = fgv_image_file_create(image, LEN), ret;

		ck_assert_int_ge(fd, 0);
		do
			ret = fgv_fds_send(greedy, &request, sizeof(request), &fd, 1);
		while (ret == -EAGAIN && usleep(100) == 0);
		ck_assert_int_eq(ret, 0);
		close(fd);
		ck_assert(!is_known(other, LEN, 0));
	}
	put_number(other, 2);
	ck_assert(has_number(other, 2));
	close(greedy);
	close(other);
}
END_TEST

START_TEST(words_that_are_none)
{
	struct fgv_images_request request = {.op = 99, .len = LEN};
	int bad = connect_session(), other = connect_session(), fd = -1;
	int file = make_file(LEN, ALL_SEALS, 0);

	switch (_i) {
	case 0:
		ck_assert_int_eq(fgv_fds_send(bad, &request, sizeof(request), NULL, 0), 0);
		break;
	case 1: /* too short */
		ck_assert_int_eq(fgv_fds_send(bad, &request, 4, NULL, 0), 0);
		break;
	case 2: /* a file, but not to be kept */
		request.op = FGV_IMAGES_KNOWN;
		ck_assert_int_eq(fgv_fds_send(bad, &request, sizeof(request), &file, 1), 0);
		break;
	case 3: /* to be kept, but no file */
		request.op = FGV_IMAGES_PUT;
		ck_assert_int_eq(fgv_fds_send(bad, &request, sizeof(request), NULL, 0), 0);
		break;
	}
	/* Before it hangs up it may say that it has nothing. */
	while (receive(bad, &fd) >= 0)
		continue;
	put_number(other, 1);
	ck_assert(has_number(other, 1));
	close(file);
	close(bad);
	close(other);
}
END_TEST

/* Its answers fill its socket; it is the only one that is cut off. */
START_TEST(one_that_reads_nothing)
{
	struct fgv_images_request request = {.op = FGV_IMAGES_KNOWN, .len = LEN};
	int deaf = connect_session(), other = connect_session(), ret;

	do {
		ret = fgv_fds_send(deaf, &request, sizeof(request), NULL, 0);
		if (ret == -EAGAIN)
			usleep(100);
	} while (ret == 0 || ret == -EAGAIN);
	ck_assert(ret == -EPIPE || ret == -ECONNRESET);
	put_number(other, 1);
	ck_assert(has_number(other, 1));
	close(deaf);
	close(other);
}
END_TEST

START_TEST(one_that_leaves_files_behind)
{
	int first = connect_session(), second = connect_session();

	fill(1);
	put(first, image, LEN);
	close(first);
	await(second, image, LEN);
	ck_assert(has(second, image, LEN));
	close(second);
}
END_TEST

START_TEST(more_sessions_than_there_can_be)
{
	int sessions[4 * FGV_SESSIONS_MAX], fd, last;

	for (size_t i = 0; i < FGV_ARRAY_LEN(sessions); i++)
		sessions[i] = connect_session();
	ck_assert_int_eq(receive(sessions[FGV_ARRAY_LEN(sessions) - 1], &fd), -1);
	for (size_t i = 0; i < FGV_ARRAY_LEN(sessions); i++)
		close(sessions[i]);
	/* There is room again, when it has seen that. */
	do {
		struct fgv_images_request request = {.op = FGV_IMAGES_KNOWN};

		last = connect_session();
		fgv_fds_send(last, &request, sizeof(request), NULL, 0);
		if (receive(last, &fd) == 0)
			break;
		close(last);
	} while (true);
	close(last);
}
END_TEST

START_TEST(unused_ones_expire)
{
	struct fgv_kept kept;
	struct fgv_digest one = {{1}}, two = {{2}};

	fgv_kept_init(&kept, BYTES_MAX);
	ck_assert_int_eq(fgv_kept_add(&kept, &one, LEN, 1, make_pipe(), 10), 0);
	ck_assert_int_eq(fgv_kept_add(&kept, &two, LEN, 2, make_pipe(), 20), 0);
	ck_assert_int_eq(fgv_kept_add(&kept, &two, LEN, 2, make_pipe(), 20), -EEXIST);
	ck_assert_int_eq(fgv_kept_add(&kept, &one, BYTES_MAX + 1, 1, make_pipe(), 10), -EFBIG);
	ck_assert_int_ge(fgv_kept_find(&kept, &one, LEN, 30), 0);
	ck_assert_int_eq(fgv_kept_find(&kept, &one, LEN + 1, 30), -ENOENT);
	fgv_kept_expire(&kept, 30);
	ck_assert_int_eq(fgv_kept_find(&kept, &two, LEN, 30), -ENOENT);
	ck_assert_int_ge(fgv_kept_find(&kept, &one, LEN, 30), 0);
	ck_assert_uint_eq(kept.bytes, LEN);
	ck_assert_uint_eq(kept.count, 1);
	fgv_kept_fini(&kept);
}
END_TEST

/* --- The other side: a vGPU process whose keeper lies ------------------------- */

static struct fgv_images ask_liar(int *liar)
{
	struct fgv_images images;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fgv_images_init(&images, pair[0]);
	*liar = pair[1];
	return images;
}

START_TEST(a_bad_file_is_not_taken)
{
	struct fgv_images_reply reply = {.found = 1};
	struct fgv_digest digest = {{0}};
	struct fgv_image got;
	int liar, fd = make_bad_file(_i);
	struct fgv_images images = ask_liar(&liar);

	ck_assert_int_eq(fgv_fds_send(liar, &reply, sizeof(reply), &fd, 1), 0);
	ck_assert_int_eq(fgv_image_get(&images, &digest, LEN, &got), -ENOENT);
	close(fd);
	close(liar);
	if (images.fd >= 0)
		close(images.fd);
}
END_TEST

START_TEST(no_file_where_there_should_be_one)
{
	struct fgv_images_reply reply = {.found = 1};
	struct fgv_digest digest = {{0}};
	struct fgv_image got;
	int liar;
	struct fgv_images images = ask_liar(&liar);

	ck_assert_int_eq(fgv_fds_send(liar, &reply, sizeof(reply), NULL, 0), 0);
	ck_assert_int_eq(fgv_image_get(&images, &digest, LEN, &got), -ENOENT);
	/* Then it says nothing at all: it is asked once more, and never again. */
	ck_assert(!fgv_images_know(&images, LEN, 0));
	ck_assert_int_eq(images.fd, -1);
	ck_assert(!fgv_images_know(&images, LEN, 0));
	close(liar);
}
END_TEST

START_TEST(a_copy_does_not_change)
{
	int liar;
	struct fgv_images images = ask_liar(&liar);
	struct fgv_image copy;
	uint8_t first;

	fill(1);
	first = image[0];
	ck_assert_int_eq(fgv_image_copy(&images, image, LEN, &copy), 0);
	ck_assert_int_ge(copy.fd, 0);
	image[0]++;
	ck_assert_uint_eq((uint8_t)copy.bytes[0], first);
	ck_assert_int_eq(copy.bytes[LEN], '\0');
	fgv_image_fini(&copy);
	/* Nobody has use for a small one's file. */
	ck_assert_int_eq(fgv_image_copy(&images, image, FGV_IMAGE_KEPT_MIN - 1, &copy), 0);
	ck_assert_int_eq(copy.fd, -1);
	fgv_image_fini(&copy);
	close(images.fd);
	close(liar);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("images");
	TCase *keeper = tcase_create("keeper"), *reader = tcase_create("reader");
	SRunner *runner;
	int failed;

	tcase_set_timeout(keeper, 120);
	tcase_add_checked_fixture(keeper, setup, teardown);
	tcase_add_test(keeper, one_session_has_what_another_had);
	tcase_add_test(keeper, a_digest_cannot_be_claimed);
	tcase_add_loop_test(keeper, no_file_that_can_change_or_is_another, 0, 9);
	tcase_add_test(keeper, a_file_of_holes);
	tcase_add_test(keeper, no_image_of_a_wrong_length);
	tcase_add_test(keeper, what_was_not_used_goes_first);
	tcase_add_test(keeper, endless_files);
	tcase_add_loop_test(keeper, words_that_are_none, 0, 4);
	tcase_add_test(keeper, one_that_reads_nothing);
	tcase_add_test(keeper, one_that_leaves_files_behind);
	tcase_add_test(keeper, more_sessions_than_there_can_be);
	tcase_add_test(keeper, unused_ones_expire);
	suite_add_tcase(suite, keeper);
	tcase_add_checked_fixture(reader, setup, teardown);
	tcase_add_loop_test(reader, a_bad_file_is_not_taken, 0, 9);
	tcase_add_test(reader, no_file_where_there_should_be_one);
	tcase_add_test(reader, a_copy_does_not_change);
	suite_add_tcase(suite, reader);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
