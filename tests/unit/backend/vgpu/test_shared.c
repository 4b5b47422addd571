/*
 * Memory that a VM's sessions share, as their keeper has it, and vGPU processes that lie to it. It
 * runs in a thread of the test, without its sandbox; the memory is files.
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
#include "backend/fds.h"
#include "backend/shared.h"
#include "backend/vgpu/images/keeper.h"
#include "backend/vgpu/images/shared.h"
#include "common/util.h"

#define MIB	    (1024ull * 1024)
#define GPUS	    2
#define PATIENCE_MS 60000

static int control[2]; /* the daemon's end, and the keeper's */
static pthread_t thread;
static struct fgv_shared shared;
static struct fgv_shared_account accounts[GPUS];

static void *serve(void *unused)
{
	(void)unused;
	fgv_keeper_serve(control[1], 0, &shared);
	return NULL;
}

static void start(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void setup(void)
{
	memset(accounts, 0, sizeof(accounts));
	fgv_shared_init(&shared);
	for (unsigned i = 0; i < GPUS; i++)
		fgv_shared_add_gpu(&shared, &accounts[i]);
	start();
}

static void stop(void)
{
	close(control[0]);
	pthread_join(thread, NULL);
	close(control[1]);
}

/* It ends as the daemon goes, whatever has happened to it, and leaves nothing charged. */
static void teardown(void)
{
	stop();
	ck_assert_uint_eq(shared.count, 0);
	for (unsigned i = 0; i < GPUS; i++) {
		ck_assert_uint_eq(accounts[i].memory_bytes, 0);
		for (unsigned j = 0; j < FGV_SESSIONS_MAX; j++)
			ck_assert_uint_eq(accounts[i].has_bytes[j], 0);
	}
}

/* --- What the daemon and sessions say --------------------------------------------- */

/* The end of a session's vGPU process; its number is that of its account. */
static int begin(uint32_t account)
{
	const struct fgv_keeper_session who = {.number = account, .account = account};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(fgv_fds_send(control[0], &who, sizeof(who), &pair[1], 1), 0);
	close(pair[1]);
	return pair[0];
}

static void end(uint32_t account)
{
	const struct fgv_keeper_session who = {.number = account, .account = account};

	ck_assert_int_eq(fgv_fds_send(control[0], &who, sizeof(who), NULL, 0), 0);
}

static int make_memory(void)
{
	int fd = memfd_create("shared", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static ino_t inode_of(int fd)
{
	struct stat status;

	ck_assert_int_eq(fstat(fd, &status), 0);
	return status.st_ino;
}

/* False: it has hung up. */
static bool receive(int session, struct fgv_sharing_reply *reply, int *fd)
{
	struct pollfd wait = {.fd = session, .events = POLLIN};
	ssize_t len;

	ck_assert_int_eq(poll(&wait, 1, PATIENCE_MS), 1);
	len = fgv_fds_receive(session, reply, sizeof(*reply), fd);
	if (len == 0 || len == -ECONNRESET)
		return false;
	ck_assert_int_eq(len, sizeof(*reply));
	return true;
}

static uint32_t put(int session, uint32_t gpu, uint64_t bytes, int memory, struct fgv_key *key)
{
	const struct fgv_sharing_request request = {
		.op = FGV_SHARING_PUT, .gpu = gpu, .bytes = bytes};
	struct fgv_sharing_reply reply;
	int fd;

	ck_assert_int_eq(fgv_fds_send(session, &request, sizeof(request), &memory, 1), 0);
	ck_assert(receive(session, &reply, &fd));
	ck_assert_int_eq(fd, -1);
	*key = reply.key;
	return reply.error;
}

/* Its error; and *@fd, which is the caller's, or -1. */
static uint32_t get(int session, uint32_t gpu, const struct fgv_key *key, int *fd)
{
	const struct fgv_sharing_request request = {.op = FGV_SHARING_GET, .gpu = gpu, .key = *key};
	struct fgv_sharing_reply reply;

	ck_assert_int_eq(fgv_fds_send(session, &request, sizeof(request), NULL, 0), 0);
	ck_assert(receive(session, &reply, fd));
	ck_assert_int_eq(*fd >= 0, !reply.error);
	return reply.error;
}

static void drop(int session, const struct fgv_key *key)
{
	const struct fgv_sharing_request request = {.op = FGV_SHARING_DROP, .key = *key};

	ck_assert_int_eq(fgv_fds_send(session, &request, sizeof(request), NULL, 0), 0);
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

/* What it was asked before has been done. */
static void settle(int session)
{
	const struct fgv_key none = {{1, 2}};
	int fd;

	ck_assert_uint_eq(get(session, 0, &none, &fd), ENOENT);
}

/* --- Those that keep to the rules -------------------------------------------------- */

START_TEST(is_charged_once_until_nobody_has_it)
{
	int one = begin(3), two = begin(9), memory = make_memory(), fd;
	struct fgv_key key, other;

	ck_assert_uint_eq(put(one, 1, 2 * MIB, memory, &key), 0);
	ck_assert_uint_eq(load(&accounts[1].memory_bytes), 2 * MIB);
	ck_assert_uint_eq(load(&accounts[1].has_bytes[3]), 2 * MIB);
	ck_assert_uint_eq(get(two, 1, &key, &fd), 0);
	ck_assert_uint_eq(inode_of(fd), inode_of(memory));
	close(fd);
	ck_assert_uint_eq(get(two, 1, &key, &fd), 0);
	close(fd);
	settle(two);
	ck_assert_uint_eq(load(&accounts[1].memory_bytes), 2 * MIB);
	ck_assert_uint_eq(load(&accounts[1].has_bytes[9]), 2 * MIB);
	drop(one, &key);
	settle(one);
	ck_assert_uint_eq(load(&accounts[1].has_bytes[3]), 0);
	ck_assert_uint_eq(load(&accounts[1].memory_bytes), 2 * MIB);
	ck_assert_uint_eq(put(two, 0, MIB, memory, &other), 0);
	ck_assert(memcmp(&key, &other, sizeof(key)) != 0);
	drop(two, &key);
	settle(two);
	ck_assert_uint_eq(load(&accounts[1].memory_bytes), 0);
	ck_assert_uint_eq(load(&accounts[0].memory_bytes), MIB);
	ck_assert_uint_eq(get(one, 1, &key, &fd), ENOENT);
	close(memory);
	close(one);
	close(two);
}
END_TEST

/* Whoever dies first: the daemon's word counts, and no other end. */
START_TEST(the_daemon_says_when_a_session_has_ended)
{
	int one = begin(0), two = begin(1), memory = make_memory(), copy, fd;
	struct fgv_key key;

	ck_assert_uint_eq(put(one, 0, MIB, memory, &key), 0);
	copy = fcntl(one, F_DUPFD_CLOEXEC, 0);
	close(one);
	ck_assert_uint_eq(get(two, 0, &key, &fd), 0);
	close(fd);
	ck_assert_uint_eq(load(&accounts[0].has_bytes[0]), MIB);
	end(0);
	await(&accounts[0].has_bytes[0], 0);
	ck_assert_uint_eq(load(&accounts[0].memory_bytes), MIB);
	/* Another process has its socket yet, which leads nowhere. */
	ck_assert(fgv_fds_send(copy, &key, sizeof(key), NULL, 0) == -EPIPE);
	close(copy);
	/* The next one with the same account has nothing of it. */
	one = begin(0);
	settle(one);
	ck_assert_uint_eq(load(&accounts[0].has_bytes[0]), 0);
	close(two);
	settle(one);
	ck_assert_uint_eq(load(&accounts[0].memory_bytes), MIB);
	end(1);
	await(&accounts[0].memory_bytes, 0);
	close(one);
	close(memory);
}
END_TEST

/* Words that tell of events are charged to nobody, and over once their maker has ended. */
START_TEST(words_are_over_with_their_maker)
{
	int one = begin(6), two = begin(7), memory = make_memory(), fd;
	uint8_t page[FGV_PAGE_BYTES];
	struct fgv_key key;

	ck_assert_int_eq(ftruncate(memory, FGV_PAGE_BYTES), 0);
	ck_assert_uint_eq(put(one, FGV_SHARED_HOST, FGV_PAGE_BYTES, memory, &key), 0);
	ck_assert_uint_eq(get(two, 0, &key, &fd), EXDEV);
	ck_assert_uint_eq(get(two, FGV_SHARED_HOST, &key, &fd), 0);
	for (unsigned i = 0; i < GPUS; i++)
		ck_assert_uint_eq(load(&accounts[i].memory_bytes), 0);
	ck_assert_int_eq(pread(fd, page, sizeof(page), 0), sizeof(page));
	ck_assert_uint_eq(page[0] | page[FGV_PAGE_BYTES - 1], 0);
	end(7);
	end(6);
	do
		ck_assert_int_eq(pread(fd, page, sizeof(page), 0), sizeof(page));
	while (page[FGV_PAGE_BYTES - 1] != FGV_WORDS_OVER);
	ck_assert_uint_eq(page[0], FGV_WORDS_OVER);
	close(fd);
	close(memory);
	close(one);
	close(two);
}
END_TEST

/* --- Those that do not ------------------------------------------------------------- */

START_TEST(what_can_not_be_shared)
{
	int one = begin(0), memory = make_memory(), fd;
	struct fgv_key key;

	ck_assert_uint_eq(put(one, GPUS, MIB, memory, &key), EINVAL);
	ck_assert_uint_eq(put(one, UINT32_MAX - 1, MIB, memory, &key), EINVAL);
	ck_assert_uint_eq(put(one, 0, 0, memory, &key), EINVAL);
	ck_assert_uint_eq(put(one, 0, UINT64_MAX, memory, &key), EINVAL);
	ck_assert_uint_eq(put(one, FGV_SHARED_HOST, MIB, memory, &key), EINVAL);
	ck_assert_uint_eq(put(one, 0, FGV_SHARED_BYTES_MAX + 1, memory, &key), EINVAL);
	ck_assert_uint_eq(load(&accounts[0].memory_bytes), 0);
	ck_assert_uint_eq(put(one, 0, MIB, memory, &key), 0);
	ck_assert_uint_eq(get(one, 1, &key, &fd), EXDEV);
	ck_assert_uint_eq(get(one, UINT32_MAX, &key, &fd), EXDEV);
	key.words[1] ^= 1;
	ck_assert_uint_eq(get(one, 0, &key, &fd), ENOENT);
	drop(one, &key);
	settle(one);
	ck_assert_uint_eq(load(&accounts[0].memory_bytes), MIB);
	close(memory);
	close(one);
}
END_TEST

START_TEST(no_more_than_there_may_be)
{
	int one = begin(5), memory = make_memory();
	struct fgv_key key;

	for (uint32_t i = 0; i < FGV_SHARED_MAX; i++)
		ck_assert_uint_eq(put(one, 0, FGV_SHARED_BYTES_MAX, memory, &key), 0);
	ck_assert_uint_eq(put(one, 0, MIB, memory, &key), ENOSPC);
	ck_assert_uint_eq(load(&accounts[0].memory_bytes), FGV_SHARED_MAX * FGV_SHARED_BYTES_MAX);
	end(5);
	await(&accounts[0].memory_bytes, 0);
	close(memory);
	close(one);
}
END_TEST

/* What is no request ends the talk, but what the session has stays charged until it has ended. */
START_TEST(words_that_are_none)
{
	int one = begin(2), two = begin(4), memory = make_memory(), fd;
	struct fgv_sharing_request bad = {.op = FGV_SHARING_PUT, .bytes = MIB};
	struct fgv_sharing_reply reply;
	size_t len = sizeof(bad);
	struct fgv_key key;

	ck_assert_uint_eq(put(one, 0, MIB, memory, &key), 0);
	if (_i == 1)
		bad.op = FGV_IMAGES_KNOWN;
	if (_i == 2)
		len--;
	if (_i >= 3)
		bad.op = _i == 3 ? FGV_SHARING_GET : FGV_SHARING_DROP;
	ck_assert_int_eq(fgv_fds_send(one, &bad, len, &memory, _i >= 3), 0);
	ck_assert(!receive(one, &reply, &fd));
	ck_assert_uint_eq(get(two, 0, &key, &fd), 0);
	close(fd);
	ck_assert_uint_eq(load(&accounts[0].has_bytes[2]), MIB);
	end(2);
	await(&accounts[0].has_bytes[2], 0);
	close(memory);
	close(one);
	close(two);
}
END_TEST

START_TEST(accounts_that_are_none)
{
	int one = begin(FGV_SESSIONS_MAX), two = begin(UINT32_MAX), three = begin(1), fd;
	struct fgv_sharing_reply reply;

	ck_assert(!receive(one, &reply, &fd));
	ck_assert(!receive(two, &reply, &fd));
	end(UINT32_MAX);
	settle(three);
	close(one);
	close(two);
	close(three);
}
END_TEST

/* A VM whose configuration does not let its programs share anything. */
START_TEST(nothing_is_shared)
{
	int one, memory = make_memory(), fd;
	struct fgv_key key = {{1, 2}};

	stop();
	shared.gpus = 0;
	start();
	one = begin(0);
	ck_assert_uint_eq(put(one, 0, MIB, memory, &key), EPERM);
	ck_assert_uint_eq(get(one, 0, &key, &fd), EPERM);
	close(memory);
	close(one);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shared");
	TCase *tcase = tcase_create("keeper");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, is_charged_once_until_nobody_has_it);
	tcase_add_test(tcase, the_daemon_says_when_a_session_has_ended);
	tcase_add_test(tcase, words_are_over_with_their_maker);
	tcase_add_test(tcase, what_can_not_be_shared);
	tcase_add_test(tcase, no_more_than_there_may_be);
	tcase_add_loop_test(tcase, words_that_are_none, 0, 5);
	tcase_add_test(tcase, accounts_that_are_none);
	tcase_add_test(tcase, nothing_is_shared);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
