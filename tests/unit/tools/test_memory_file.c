/*
 * Files of frozen memory: what was written is read, and whatever else lies there is not.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/memory_file.h"

#define MIB   (1u << 20)
#define HEAD  192
#define SMALL 300

static const struct fgv_memory_file_key no_key;
static const struct fgv_memory_file_key key = {.bytes = "sixteen and some", .len = 17};
static const struct fgv_memory_file_key other_key = {.bytes = "sixteen and more", .len = 17};
static const struct fgv_memory_file_key *const keys[] = {&no_key, &key};

static char why[256];
static int fd;
static uint8_t *memory;

static void make(void)
{
	fd = memfd_create("memory", MFD_CLOEXEC);
	memory = malloc(9 * MIB);
	ck_assert(fd >= 0 && memory);
	srand(1);
}

static void drop(void)
{
	close(fd);
	free(memory);
}

/* Half of it is the same all over, half of it can't be compressed. */
static void fill(size_t len)
{
	for (size_t i = 0; i < len; i++)
		memory[i] = i < len / 2 ? 7 : (uint8_t)rand();
}

static void write_to(int to, size_t len, const struct fgv_memory_file_key *with)
{
	struct fgv_memory_file_of of = {.bytes = len,
					.saved_s = 12345,
					.session = 7,
					.token = "0123456789abcde",
					.vm = "vm1"};
	struct fgv_memory_file *file;

	ck_assert_int_eq(ftruncate(to, 0), 0);
	lseek(to, 0, SEEK_SET);
	ck_assert_int_eq(fgv_memory_file_create(&file, to, &of, with, why, sizeof(why)), 0);
	for (size_t at = 0, part; at < len; at += part) {
		part = len - at < FGV_MEMORY_FILE_CHUNK ? len - at : FGV_MEMORY_FILE_CHUNK;
		ck_assert_int_eq(fgv_memory_file_write(file, memory + at, part, why, sizeof(why)),
				 0);
	}
	ck_assert_int_eq(fgv_memory_file_finish(file, why, sizeof(why)), 0);
	fgv_memory_file_close(file);
}

/* 0 where all of it is as it was written; a byte that is not must never come. */
static int read_back(size_t len, const struct fgv_memory_file_key *with)
{
	struct fgv_memory_file *file;
	struct fgv_memory_file_of of;
	const uint8_t *bytes;
	size_t at = 0, count;
	int ret;

	lseek(fd, 0, SEEK_SET);
	ret = fgv_memory_file_open(&file, fd, &of, with, why, sizeof(why));
	if (ret)
		return ret;
	ck_assert_uint_eq(of.bytes, len);
	ck_assert_uint_eq(of.session, 7);
	ck_assert_uint_eq(of.saved_s, 12345);
	ck_assert_str_eq(of.vm, "vm1");
	ck_assert_str_eq((char *)of.token, "0123456789abcde");
	while (!(ret = fgv_memory_file_read(file, &bytes, &count, why, sizeof(why))) && count) {
		ck_assert_uint_le(at + count, len);
		ck_assert_mem_eq(bytes, memory + at, count);
		at += count;
	}
	if (!ret) {
		ck_assert_uint_eq(at, len);
		/* The end stays the end. */
		ck_assert_int_eq(fgv_memory_file_read(file, &bytes, &count, why, sizeof(why)), 0);
		ck_assert_uint_eq(count, 0);
	}
	fgv_memory_file_close(file);
	return ret;
}

START_TEST(is_read_as_it_was_written)
{
	const size_t lens[] = {0,      1, SMALL, FGV_MEMORY_FILE_CHUNK, FGV_MEMORY_FILE_CHUNK + 1,
			       9 * MIB};

	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		fill(lens[i]);
		write_to(fd, lens[i], keys[_i]);
		ck_assert_int_eq(read_back(lens[i], keys[_i]), 0);
	}
}
END_TEST

START_TEST(is_compressed)
{
	struct stat file;

	memset(memory, 0, 9 * MIB);
	write_to(fd, 9 * MIB, keys[_i]);
	ck_assert_int_eq(fstat(fd, &file), 0);
	ck_assert_int_lt(file.st_size, 10000);
	/* What can't be takes no more than itself. */
	for (size_t i = 0; i < 9 * MIB; i++)
		memory[i] = (uint8_t)rand();
	write_to(fd, 9 * MIB, keys[_i]);
	ck_assert_int_eq(fstat(fd, &file), 0);
	ck_assert_int_lt(file.st_size, 9 * MIB + 1000);
}
END_TEST

static void flip(off_t at, uint8_t bits)
{
	uint8_t byte;

	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= bits;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
}

START_TEST(any_bit_that_differs_is_found)
{
	off_t size;

	fill(SMALL);
	write_to(fd, SMALL, keys[_i]);
	size = lseek(fd, 0, SEEK_END);
	for (off_t at = 0; at < size; at++) {
		uint8_t bits = (uint8_t)(1u << at % 8);

		flip(at, bits);
		ck_assert_int_eq(read_back(SMALL, keys[_i]), -EBADMSG);
		ck_assert(*why);
		flip(at, bits);
	}
	ck_assert_int_eq(read_back(SMALL, keys[_i]), 0);
}
END_TEST

START_TEST(any_length_but_its_own_is_found)
{
	static uint8_t copy[4096];
	ssize_t size;

	fill(SMALL);
	write_to(fd, SMALL, keys[_i]);
	size = pread(fd, copy, sizeof(copy), 0);
	ck_assert(size > HEAD && size < (ssize_t)sizeof(copy) - 1);
	for (ssize_t len = 0; len <= size + 1; len++) {
		ck_assert_int_eq(ftruncate(fd, 0), 0);
		ck_assert_int_eq(pwrite(fd, copy, (size_t)len, 0), len);
		ck_assert_int_eq(read_back(SMALL, keys[_i]), len == size ? 0 : -EBADMSG);
	}
}
END_TEST

/* Chunks that are genuine, but stood elsewhere. */
START_TEST(chunks_keep_their_places)
{
	const size_t len = 2 * FGV_MEMORY_FILE_CHUNK, chunk = FGV_MEMORY_FILE_CHUNK + 24;
	uint8_t *one = malloc(chunk), *two = malloc(chunk);
	int another = memfd_create("another", MFD_CLOEXEC);

	for (size_t i = 0; i < len; i++)
		memory[i] = (uint8_t)rand();
	write_to(fd, len, keys[_i]);
	write_to(another, len, keys[_i]);
	ck_assert_int_eq(pread(fd, one, chunk, HEAD), (ssize_t)chunk);
	ck_assert_int_eq(pread(fd, two, chunk, HEAD + (off_t)chunk), (ssize_t)chunk);
	ck_assert_int_eq(pwrite(fd, two, chunk, HEAD), (ssize_t)chunk);
	ck_assert_int_eq(pwrite(fd, one, chunk, HEAD + (off_t)chunk), (ssize_t)chunk);
	ck_assert_int_eq(read_back(len, keys[_i]), -EBADMSG);
	/* Its own first one again, and then that of a file with the same content. */
	ck_assert_int_eq(pwrite(fd, one, chunk, HEAD), (ssize_t)chunk);
	ck_assert_int_eq(pwrite(fd, two, chunk, HEAD + (off_t)chunk), (ssize_t)chunk);
	ck_assert_int_eq(read_back(len, keys[_i]), 0);
	ck_assert_int_eq(pread(another, one, chunk, HEAD), (ssize_t)chunk);
	ck_assert_int_eq(pwrite(fd, one, chunk, HEAD), (ssize_t)chunk);
	ck_assert_int_eq(read_back(len, keys[_i]), -EBADMSG);
	close(another);
	free(one);
	free(two);
}
END_TEST

START_TEST(needs_its_key)
{
	fill(SMALL);
	write_to(fd, SMALL, &key);
	ck_assert_int_eq(read_back(SMALL, &no_key), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(why, "--key-file"));
	ck_assert_int_eq(read_back(SMALL, &other_key), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(why, "key"));
	ck_assert_int_eq(read_back(SMALL, &key), 0);
	write_to(fd, SMALL, &no_key);
	ck_assert_int_eq(read_back(SMALL, &key), -EBADMSG);
}
END_TEST

START_TEST(is_as_long_as_it_was_to_be)
{
	struct fgv_memory_file_of of = {.bytes = 10};
	struct fgv_memory_file *file;

	ck_assert_int_eq(fgv_memory_file_create(&file, fd, &of, &no_key, why, sizeof(why)), 0);
	ck_assert_int_eq(fgv_memory_file_write(file, memory, 11, why, sizeof(why)), -EINVAL);
	ck_assert_int_eq(fgv_memory_file_write(file, memory, 9, why, sizeof(why)), 0);
	ck_assert_int_eq(fgv_memory_file_finish(file, why, sizeof(why)), -EINVAL);
	ck_assert_int_eq(fgv_memory_file_write(file, memory, 1, why, sizeof(why)), 0);
	ck_assert_int_eq(fgv_memory_file_write(file, memory, 0, why, sizeof(why)), 0);
	ck_assert_int_eq(fgv_memory_file_finish(file, why, sizeof(why)), 0);
	fgv_memory_file_close(file);
	/* Nobody can write into what is only to be read. */
	file = NULL;
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(fgv_memory_file_create(&file, fd, &of, &no_key, why, sizeof(why)), -EBADF);
}
END_TEST

static int try_key(size_t len, mode_t mode)
{
	char path[] = "/tmp/fairgv-key-XXXXXX";
	struct fgv_memory_file_key got;
	int to = mkstemp(path), ret;

	ck_assert_int_ge(to, 0);
	memset(memory, 'k', len);
	ck_assert_int_eq(write(to, memory, len), (ssize_t)len);
	ck_assert_int_eq(fchmod(to, mode), 0);
	close(to);
	ret = fgv_memory_file_read_key(&got, path, why, sizeof(why));
	if (!ret) {
		ck_assert_uint_eq(got.len, len);
		ck_assert_mem_eq(got.bytes, memory, len);
	}
	unlink(path);
	return ret;
}

START_TEST(keys_are_files_of_ones_own)
{
	struct fgv_memory_file_key got;

	ck_assert_int_eq(try_key(FGV_MEMORY_FILE_KEY_MIN, 0600), 0);
	ck_assert_int_eq(try_key(FGV_MEMORY_FILE_KEY_MAX, 0400), 0);
	ck_assert_int_eq(try_key(FGV_MEMORY_FILE_KEY_MIN - 1, 0600), -EINVAL);
	ck_assert_int_eq(try_key(FGV_MEMORY_FILE_KEY_MAX + 1, 0600), -EINVAL);
	ck_assert_int_eq(try_key(0, 0600), -EINVAL);
	ck_assert_int_eq(try_key(32, 0640), -EPERM);
	ck_assert_int_eq(try_key(32, 0604), -EPERM);
	ck_assert_int_eq(fgv_memory_file_read_key(&got, "/tmp", why, sizeof(why)), -EINVAL);
	ck_assert_int_eq(fgv_memory_file_read_key(&got, "/nowhere", why, sizeof(why)), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory_file");
	TCase *all = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(all, make, drop);
	tcase_add_loop_test(all, is_read_as_it_was_written, 0, 2);
	tcase_add_loop_test(all, is_compressed, 0, 2);
	tcase_add_loop_test(all, any_bit_that_differs_is_found, 0, 2);
	tcase_add_loop_test(all, any_length_but_its_own_is_found, 0, 2);
	tcase_add_loop_test(all, chunks_keep_their_places, 0, 2);
	tcase_add_test(all, needs_its_key);
	tcase_add_test(all, is_as_long_as_it_was_to_be);
	tcase_add_test(all, keys_are_files_of_ones_own);
	suite_add_tcase(suite, all);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
