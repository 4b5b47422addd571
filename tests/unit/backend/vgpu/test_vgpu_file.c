/*
 * The memory of a frozen vGPU process goes into a file and comes back; this is whoever has the
 * file, who may go away, or say something else, at any time.
 */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/fds.h"
#include "tests/unit/backend/vgpu/vgpu_frozen.h"

#define FILE_BYTES (20 * MIB)

static const uint8_t tokens[2][FGV_TOKEN_BYTES] = {"the first token", "another token.."};
static uint8_t *content;

/* Orders the process to do @what with a file; our end of its stream. */
static int order(uint32_t what, const uint8_t *token)
{
	struct fgv_order order = {.what = what};
	int pair[2];

	memcpy(order.token, token, sizeof(order.token));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(fgv_fds_send(vgpu.control_fd, &order, sizeof(order), &pair[1], 1), 0);
	close(pair[1]);
	return pair[0];
}

static int hear(int fd)
{
	uint8_t word;
	ssize_t got = recv(fd, &word, sizeof(word), 0);

	return got == 1 ? word : 0;
}

static void say(int fd, uint8_t word)
{
	ck_assert_int_eq(send(fd, &word, sizeof(word), MSG_NOSIGNAL), 1);
}

/* One that can't be obeyed: it is said why, and that is all. */
static void expect_refused(uint32_t what, const uint8_t *token, int word)
{
	int fd = order(what, token);

	ck_assert_int_eq(hear(fd), word);
	ck_assert_int_eq(hear(fd), 0);
	close(fd);
}

/* One that it obeys, as soon as it has noticed that the one before has come to nothing. */
static int order_anew(uint32_t what, const uint8_t *token)
{
	for (;;) {
		int fd = order(what, token), word = hear(fd);

		if (word == FGV_STORE_READY)
			return fd;
		ck_assert_int_eq(word, FGV_STORE_NOT_NOW);
		close(fd);
	}
}

static uint64_t take_length(int fd)
{
	uint64_t len;

	ck_assert_int_eq(recv(fd, &len, sizeof(len), MSG_WAITALL), sizeof(len));
	ck_assert_uint_eq(len, FILE_BYTES);
	return len;
}

/* All but the last word. */
static int take_content(const uint8_t *token)
{
	int fd = order_anew(FGV_ORDER_SAVE, token);
	uint64_t len = take_length(fd);

	ck_assert_int_eq(recv(fd, content, len, MSG_WAITALL), (ssize_t)len);
	return fd;
}

static void save(const uint8_t *token)
{
	int fd = take_content(token);

	say(fd, FGV_STORE_KEPT);
	ck_assert_int_eq(hear(fd), FGV_STORE_KEPT);
	ck_assert_int_eq(hear(fd), 0);
	close(fd);
	await(FGV_FROZEN_SAVED);
}

static void give(int fd, const void *bytes, size_t len)
{
	while (len) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		ck_assert_int_gt(sent, 0);
		bytes = (const uint8_t *)bytes + sent;
		len -= (size_t)sent;
	}
}

static int give_content(const uint8_t *token, uint64_t len)
{
	int fd = order_anew(FGV_ORDER_LOAD, token);

	give(fd, &len, sizeof(len));
	return fd;
}

static void load(const uint8_t *token)
{
	int fd = give_content(token, FILE_BYTES);

	give(fd, content, FILE_BYTES);
	say(fd, FGV_STORE_KEPT);
	ck_assert_int_eq(hear(fd), FGV_STORE_KEPT);
	close(fd);
	await(FGV_FROZEN);
}

/* Frozen, with memory that is 7 all over. */
static uint64_t freeze_sevens(void)
{
	uint64_t address = vgpu_must_alloc(&vgpu, FILE_BYTES);

	content = malloc(FILE_BYTES);
	ck_assert_ptr_nonnull(content);
	vgpu_fill(&vgpu, address, FILE_BYTES / 4, 7, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	freeze();
	return address;
}

static void expect_sevens(uint64_t address)
{
	thaw();
	expect_words(address, 1000, 7);
	expect_words(address + FILE_BYTES - 4000, 1000, 7);
	free(content);
}

START_TEST(goes_into_a_file_and_comes_back)
{
	uint64_t address = freeze_sevens();

	save(tokens[0]);
	for (size_t i = 0; i < FILE_BYTES; i += 4096)
		ck_assert_uint_eq(content[i], 7);
	load(tokens[0]);
	/* Of what comes back nothing else is left, so what is put there is what there is. */
	save(tokens[1]);
	content[0] = 8;
	load(tokens[1]);
	content[0] = 7;
	thaw();
	expect_words(address, 1, 8);
	vgpu_fill(&vgpu, address, 1, 7, 4);
	expect_sevens(address);
}
END_TEST

START_TEST(orders_at_the_wrong_time)
{
	uint64_t address = vgpu_must_alloc(&vgpu, MIB);

	vgpu_fill(&vgpu, address, 10, 7, 4);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	expect_refused(FGV_ORDER_SAVE, tokens[0], FGV_STORE_NOT_NOW);
	expect_refused(FGV_ORDER_LOAD, tokens[0], FGV_STORE_NOT_NOW);
	expect_refused(0, tokens[0], FGV_STORE_NOT_NOW);
	address = freeze_sevens();
	expect_refused(FGV_ORDER_LOAD, tokens[0], FGV_STORE_NOT_NOW);
	expect_refused(77, tokens[0], FGV_STORE_NOT_NOW);
	thaw();
	vgpu_mem_free(&vgpu, address);
	ck_assert_uint_eq(vgpu_device_sync(&vgpu), CUDA_SUCCESS);
	free(content);
}
END_TEST

/* Without a descriptor, or of another length, it is no order. */
START_TEST(what_is_no_order)
{
	struct fgv_order save = {.what = FGV_ORDER_SAVE};
	uint64_t address = freeze_sevens();
	int pair[2];

	ck_assert_int_eq(fgv_fds_send(vgpu.control_fd, &save, sizeof(save), NULL, 0), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(fgv_fds_send(vgpu.control_fd, &save, sizeof(save) - 1, &pair[1], 1), 0);
	close(pair[1]);
	ck_assert_int_eq(hear(pair[0]), 0);
	close(pair[0]);
	expect_sevens(address);
}
END_TEST

/* Whoever takes it goes away at any time, says something else, or it is thawed meanwhile. */
START_TEST(saving_that_comes_to_nothing)
{
	uint64_t address = freeze_sevens();
	int fd = order(FGV_ORDER_SAVE, tokens[0]);

	ck_assert_int_eq(hear(fd), FGV_STORE_READY);
	expect_refused(FGV_ORDER_SAVE, tokens[1], FGV_STORE_NOT_NOW);
	close(fd);
	fd = take_content(tokens[0]);
	close(fd);
	fd = take_content(tokens[0]);
	say(fd, 'x');
	ck_assert_int_eq(hear(fd), 0);
	close(fd);
	ck_assert_uint_eq(word(&account()->frozen), FGV_FROZEN);
	fd = order_anew(FGV_ORDER_SAVE, tokens[0]);
	take_length(fd);
	thaw();
	while (recv(fd, content, FILE_BYTES, 0) > 0)
		continue;
	close(fd);
	expect_sevens(address);
}
END_TEST

START_TEST(loading_that_comes_to_nothing)
{
	uint64_t address = freeze_sevens();
	int fd;

	save(tokens[0]);
	expect_refused(FGV_ORDER_SAVE, tokens[0], FGV_STORE_NOT_NOW);
	expect_refused(FGV_ORDER_LOAD, tokens[1], FGV_STORE_OTHER);
	fd = give_content(tokens[0], FILE_BYTES + 1);
	ck_assert_int_eq(hear(fd), 0);
	close(fd);
	fd = give_content(tokens[0], FILE_BYTES);
	give(fd, content, FILE_BYTES / 2);
	close(fd);
	fd = give_content(tokens[0], FILE_BYTES);
	give(fd, content, FILE_BYTES);
	say(fd, 'x');
	ck_assert_int_eq(hear(fd), 0);
	close(fd);
	ck_assert_uint_eq(word(&account()->frozen), FGV_FROZEN_SAVED);
	/* It does not come back without its file, whatever is wanted. */
	want(false);
	want(true);
	ck_assert_uint_eq(word(&account()->frozen), FGV_FROZEN_SAVED);
	load(tokens[0]);
	expect_sevens(address);
}
END_TEST

/* Thawed while it is in the file: it comes back as soon as it has been loaded. */
START_TEST(thawed_while_it_is_saved)
{
	uint32_t function = vgpu_must_get(&vgpu, vgpu_add_ptx, "add");
	uint64_t address = freeze_sevens(), args[] = {address, 1000, 2};
	int fd;

	save(tokens[0]);
	vgpu_launch(&vgpu, function, 8, args, 3);
	want(false);
	fd = give_content(tokens[0], FILE_BYTES);
	give(fd, content, FILE_BYTES);
	ck_assert_uint_eq(word(&account()->launches), 0);
	say(fd, FGV_STORE_KEPT);
	ck_assert_int_eq(hear(fd), FGV_STORE_KEPT);
	close(fd);
	await(FGV_FROZEN_NOT);
	expect_words(address, 1000, 7 + 5 + 2);
	free(content);
}
END_TEST

/* It ends in each of these states. */
START_TEST(ends_with_a_file)
{
	int fd;

	freeze_sevens();
	switch (_i) {
	case 0:
		fd = order(FGV_ORDER_SAVE, tokens[0]);
		ck_assert_int_eq(hear(fd), FGV_STORE_READY);
		break;
	case 1:
		save(tokens[0]);
		break;
	default:
		save(tokens[0]);
		fd = give_content(tokens[0], FILE_BYTES);
		give(fd, content, MIB);
	}
	free(content);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_file");
	TCase *tests = tcase_create("one");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, start, leave);
	tcase_add_test(tests, goes_into_a_file_and_comes_back);
	tcase_add_test(tests, orders_at_the_wrong_time);
	tcase_add_test(tests, what_is_no_order);
	tcase_add_test(tests, saving_that_comes_to_nothing);
	tcase_add_test(tests, loading_that_comes_to_nothing);
	tcase_add_test(tests, thawed_while_it_is_saved);
	tcase_add_loop_test(tests, ends_with_a_file, 0, 3);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
