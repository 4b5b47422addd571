/*
 * The journal: what a daemon that was killed has left is ended by the next one; nothing else is.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/journal.h"

static char folder[] = "/tmp/fairgv-journal-XXXXXX";
static char path[64];

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/journal", folder);
}

static void teardown(void)
{
	unlink(path);
	rmdir(folder);
}

static pid_t child(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pid == 0)
		pause();
	return pid;
}

static bool is_dead(pid_t pid)
{
	siginfo_t end = {0};

	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT), 0);
	return end.si_pid != 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* As kill -9 leaves it. */
static void die(struct fgv_journal *journal)
{
	struct stat file;

	ck_assert_int_eq(fstat(journal->fd, &file), 0);
	munmap(journal->file, (size_t)file.st_size);
	close(journal->fd);
	free(journal->path);
}

static void init(struct fgv_journal *journal, unsigned expected)
{
	unsigned ended = 99;

	ck_assert_int_eq(fgv_journal_init(journal, path, &ended), 0);
	ck_assert_uint_eq(ended, expected);
}

START_TEST(ends_what_was_left)
{
	struct fgv_journal journal;
	pid_t left = child(), gone = child(), other = child();

	init(&journal, 0);
	fgv_journal_add(&journal, left);
	fgv_journal_add(&journal, gone);
	fgv_journal_add(&journal, other);
	fgv_journal_remove(&journal, other);
	end(gone);
	die(&journal);
	init(&journal, 1);
	ck_assert(is_dead(left));
	ck_assert(!is_dead(other));
	die(&journal);
	init(&journal, 0);
	fgv_journal_fini(&journal);
	ck_assert_int_lt(access(path, F_OK), 0);
	end(left);
	end(other);
}
END_TEST

/* Writes over all that is equal to @from in the file. */
static void forge(const void *from, const void *to, size_t len)
{
	FILE *file = fopen(path, "r+");
	static char bytes[1 << 20];
	size_t got = fread(bytes, 1, sizeof(bytes), file);
	unsigned found = 0;

	for (size_t i = 0; i + len <= got; i++) {
		if (memcmp(bytes + i, from, len) != 0)
			continue;
		memcpy(bytes + i, to, len);
		found++;
	}
	ck_assert_uint_eq(found, 1);
	rewind(file);
	ck_assert_uint_eq(fwrite(bytes, 1, got, file), got);
	fclose(file);
}

/* The number of a process that has gone may be another's by now. */
START_TEST(not_another_process)
{
	struct fgv_journal journal;
	pid_t listed = child(), other;

	usleep(30000); /* later by more than a clock tick */
	other = child();
	init(&journal, 0);
	fgv_journal_add(&journal, listed);
	die(&journal);
	forge(&listed, &other, sizeof(listed));
	init(&journal, 0);
	ck_assert(!is_dead(listed) && !is_dead(other));
	fgv_journal_fini(&journal);
	end(listed);
	end(other);
}
END_TEST

START_TEST(not_of_another_boot)
{
	struct fgv_journal journal;
	pid_t listed = child();
	char boot[36];

	init(&journal, 0);
	fgv_journal_add(&journal, listed);
	memcpy(boot, journal.file, sizeof(boot));
	die(&journal);
	forge(boot, "another boot of the same machine    ", sizeof(boot));
	init(&journal, 0);
	ck_assert(!is_dead(listed));
	fgv_journal_fini(&journal);
	end(listed);
}
END_TEST

START_TEST(one_daemon_at_a_time)
{
	struct fgv_journal first, second;
	pid_t listed = child();
	unsigned ended;

	init(&first, 0);
	fgv_journal_add(&first, listed);
	ck_assert_int_eq(fgv_journal_init(&second, path, &ended), -EBUSY);
	fgv_journal_add(&second, listed);
	fgv_journal_remove(&second, listed);
	fgv_journal_fini(&second);
	ck_assert(!is_dead(listed));
	fgv_journal_fini(&first);
	end(listed);
}
END_TEST

START_TEST(not_where_a_link_leads)
{
	struct fgv_journal journal;
	char target[80];
	unsigned ended;

	snprintf(target, sizeof(target), "%s/target", folder);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(fgv_journal_init(&journal, path, &ended), -ELOOP);
	ck_assert_int_lt(access(target, F_OK), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("journal");
	TCase *tcase = tcase_create("journal");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, ends_what_was_left);
	tcase_add_test(tcase, not_another_process);
	tcase_add_test(tcase, not_of_another_boot);
	tcase_add_test(tcase, one_daemon_at_a_time);
	tcase_add_test(tcase, not_where_a_link_leads);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
