/* fairgv-vm: the arguments it gives QEMU, as they are run, printed and shown for libvirt. */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/util.h"

#define CONFIG                                                                                     \
	"window = \"256M\"; lanes = 8;\n"                                                          \
	"vms = ( { name = \"vm1\"; ivshmem = \"%s/socket\"; },\n"                                  \
	"        { name = \"large\"; ivshmem = \"%s/a, b'<&c\"; windows = 63; },\n"                \
	"        { name = \"local\"; } );\n"

static char folder[] = "/tmp/fairgv-test-XXXXXX";
static char config_path[64], socket_path[64];
static char output[4096];

/* Runs fairgv-vm with the configuration and these words; its status, and what it printed. */
static int run(char *const *words)
{
	char *argv[16] = {"fairgv-vm", "--config", config_path};
	int pipe_fds[2], status;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	for (size_t i = 0; words[i]; i++)
		argv[3 + i] = words[i];
	ck_assert_int_eq(pipe(pipe_fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(pipe_fds[1], STDOUT_FILENO);
		dup2(pipe_fds[1], STDERR_FILENO);
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		execv(FGV_TEST_VM, argv);
		_exit(99);
	}
	close(pipe_fds[1]);
	while ((got = read(pipe_fds[0], output + len, sizeof(output) - 1 - len)) > 0)
		len += (size_t)got;
	output[len] = '\0';
	close(pipe_fds[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define RUN(...) run((char *[]){__VA_ARGS__, NULL})

static void expect(const char *text)
{
	ck_assert_msg(strstr(output, text) != NULL, "no \"%s\" in:\n%s", text, output);
}

START_TEST(prints)
{
	char expected[512];

	ck_assert_int_eq(RUN("vm1", "--print"), 0);
	snprintf(expected, sizeof(expected),
		 "-chardev socket,id=fairgv,path=%s -device "
		 "pcie-root-port,id=fairgv-port,chassis=255,pref64-reserve=4G -device "
		 "ivshmem-doorbell,id=fairgv-region,bus=fairgv-port,chardev=fairgv,vectors=5 "
		 "-chardev socket,id=fairgv-qmp,path=%s.qmp -mon "
		 "chardev=fairgv-qmp,mode=control\n",
		 socket_path, socket_path);
	ck_assert_str_eq(output, expected);
	ck_assert_int_eq(RUN("--print", "vm1"), 0);
	ck_assert_str_eq(output, expected);
}
END_TEST

/* A region of 63 windows, 256 MiB each, does not fit into 4 GiB. */
START_TEST(prints_what_is_odd)
{
	ck_assert_int_eq(RUN("large", "--print"), 0);
	expect("'socket,id=fairgv,path=");
	expect("/a,, b'\\''<&c' -device");
	expect("pref64-reserve=16G");
	expect("vectors=64 -chardev 'socket,id=fairgv-qmp,path=");
	expect("/a,, b'\\''<&c.qmp' -mon");
	ck_assert_int_eq(RUN("large", "--libvirt"), 0);
	expect("/a,, b&apos;&lt;&amp;c'/>");
}
END_TEST

START_TEST(shows_for_libvirt)
{
	ck_assert_int_eq(RUN("vm1", "--libvirt"), 0);
	expect("<qemu:commandline>\n  <qemu:arg value='-chardev'/>\n");
	expect("  <qemu:arg value='ivshmem-doorbell,id=fairgv-region,bus=fairgv-port,"
	       "chardev=fairgv,vectors=5'/>\n");
	expect("  <qemu:arg value='chardev=fairgv-qmp,mode=control'/>\n</qemu:commandline>\n");
}
END_TEST

static void make_socket(void)
{
	close(open(socket_path, O_CREAT | O_WRONLY, 0600));
}

START_TEST(runs)
{
	make_socket();
	ck_assert_int_eq(RUN("vm1", "--", "/bin/sh", "-c", "echo \"$0\" \"$@\"; exit 7", "--x"), 7);
	expect("--x -chardev socket,id=fairgv,path=");
	expect(",vectors=5 ");
	expect(" -mon chardev=fairgv-qmp,mode=control\n");
	ck_assert_int_eq(RUN("vm1", "echo", "-m", "1G"), 0);
	expect("-m 1G -chardev ");
	ck_assert_int_eq(RUN("vm1", "no-such-qemu"), 127);
	expect("no-such-qemu: no such program");
	ck_assert_int_eq(RUN("vm1", socket_path), 126);
	unlink(socket_path);
}
END_TEST

START_TEST(refuses)
{
	ck_assert_int_eq(RUN("nobody", "--print"), 125);
	expect("there is no VM called \"nobody\"");
	ck_assert_int_eq(RUN("local", "--print"), 125);
	expect("VM local is no QEMU guest: it has no key ivshmem");
	ck_assert_int_eq(RUN("vm1", "true"), 125);
	expect("/socket: no daemon listens there");
	ck_assert_int_eq(RUN("vm1", "--print", "true"), 125);
	expect("true: no such argument");
	ck_assert_int_eq(RUN("vm1"), 125);
	expect("usage: fairgv-vm");
	ck_assert_int_eq(RUN("--config", "/nowhere", "vm1", "--print"), 125);
	expect("/nowhere: No such file or directory");
}
END_TEST

static bool prepare(void)
{
	FILE *file;

	if (!mkdtemp(folder))
		return false;
	snprintf(config_path, sizeof(config_path), "%s/conf", folder);
	snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
	file = fopen(config_path, "w");
	if (!file)
		return false;
	fprintf(file, CONFIG, folder, folder);
	return !fclose(file);
}

int main(void)
{
	Suite *suite = suite_create("fairgv-vm");
	TCase *tcase = tcase_create("fairgv-vm");
	SRunner *runner = srunner_create(suite);
	int failed;

	if (!prepare())
		return EXIT_FAILURE;
	tcase_add_test(tcase, prints);
	tcase_add_test(tcase, prints_what_is_odd);
	tcase_add_test(tcase, shows_for_libvirt);
	tcase_add_test(tcase, runs);
	tcase_add_test(tcase, refuses);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	unlink(config_path);
	unlink(socket_path);
	rmdir(folder);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
