/*
 * What systemd's journal gets of the daemon's lines: this program has an sd_journal_sendv() of its
 * own, which keeps the entry, or refuses it.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#include <unistd.h>
#include "backend/journald.h"
#include "common/log.h"

static char entries[4096]; /* fields end with "|", entries with a newline */
static int answer;
static int err_fd;

int sd_journal_sendv(const struct iovec *fields, int count)
{
	size_t len = strlen(entries);

	for (int i = 0; i < count; i++)
		len += (size_t)snprintf(entries + len, sizeof(entries) - len, "%.*s|",
					(int)fields[i].iov_len, (const char *)fields[i].iov_base);
	snprintf(entries + len, sizeof(entries) - len, "\n");
	return answer;
}

static void lead_stderr_to_a_file(bool is_journal)
{
	char stream[64];
	struct stat file;

	err_fd = memfd_create("stderr", MFD_CLOEXEC);
	ck_assert_int_ge(dup2(err_fd, STDERR_FILENO), 0);
	ck_assert_int_eq(fstat(err_fd, &file), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)file.st_dev,
		 (unsigned long long)file.st_ino + !is_journal);
	setenv("JOURNAL_STREAM", stream, 1);
	unsetenv("FAIRGV_LOG");
	unsetenv("FAIRGV_QUIET");
	fgv_log_init("name");
	fgv_log_be_service();
	fgv_journald_begin();
}

static const char *stderr_text(void)
{
	static char text[1024];

	text[pread(err_fd, text, sizeof(text) - 1, 0)] = '\0';
	return text;
}

static const struct fgv_log_subject session = {
	.label = "session 3: vm a, program \"p\"",
	.vm = "a",
	.program = "p",
	.gpu = "soft GPU 0",
	.session = 3,
};

static const struct fgv_log_subject passed_on = {
	.label = "vm a, program p, session 3",
	.vm = "a",
	.program = "p",
	.gpu = "soft GPU 0",
	.session = 3,
	.writer = "fairgv-vgpu",
	.writer_pid = 7,
};

START_TEST(fields)
{
	lead_stderr_to_a_file(true);
	fgv_error("no subject");
	fgv_warning_of(FGV_LOG_VM("a"), "number %d", 1);
	fgv_info_of(FGV_LOG_GPU("GPU 1"), "text");
	fgv_info_of(&session, "ended");
	fgv_error_of(&passed_on, "what it said");
	fgv_debug("not at this level");
	ck_assert_str_eq(entries,
			 "MESSAGE=no subject|PRIORITY=3|\n"
			 "MESSAGE=vm a: number 1|PRIORITY=4|FAIRGV_VM=a|\n"
			 "MESSAGE=GPU 1: text|PRIORITY=6|FAIRGV_GPU=GPU 1|\n"
			 "MESSAGE=session 3: vm a, program \"p\": ended|PRIORITY=6|FAIRGV_VM=a|"
			 "FAIRGV_PROGRAM=p|FAIRGV_GPU=soft GPU 0|FAIRGV_SESSION=3|\n"
			 "MESSAGE=vm a, program p, session 3: what it said|PRIORITY=3|FAIRGV_VM=a|"
			 "FAIRGV_PROGRAM=p|FAIRGV_GPU=soft GPU 0|FAIRGV_SESSION=3|"
			 "SYSLOG_IDENTIFIER=fairgv-vgpu|SYSLOG_PID=7|\n");
	ck_assert_str_eq(stderr_text(), ""); /* an event is logged once */
}
END_TEST

/* The priorities stay where the journal takes no entries. */
START_TEST(no_journal)
{
	lead_stderr_to_a_file(true);
	answer = -ENOENT;
	errno = EAGAIN;
	fgv_warning_of(&session, "ended");
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_str_eq(stderr_text(),
			 "<4>name: warning: session 3: vm a, program \"p\": ended\n");
}
END_TEST

START_TEST(stderr_leads_elsewhere)
{
	lead_stderr_to_a_file(false);
	fgv_warning("text");
	ck_assert_str_eq(entries, "");
	ck_assert_ptr_nonnull(strstr(stderr_text(), " name: warning: text\n"));
}
END_TEST

/* A name and a text of any length leave an entry of whole fields. */
START_TEST(long_line)
{
	char name[4000];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	lead_stderr_to_a_file(true);
	fgv_error_of(FGV_LOG_VM(name), "%s", name);
	ck_assert_ptr_nonnull(strstr(entries, "|PRIORITY=3|FAIRGV_VM=nnn"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("journald");
	TCase *tests = tcase_create("journald");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tests, fields);
	tcase_add_test(tests, no_journal);
	tcase_add_test(tests, stderr_leads_elsewhere);
	tcase_add_test(tests, long_line);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
