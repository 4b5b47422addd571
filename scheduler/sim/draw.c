/* Runs gnuplot on a report's chart. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/sim/report.h"

extern char **environ;

/* gnuplot's commands, to be read from their beginning; negative errno. */
static int commands_of(const struct report *report, FILE **commands)
{
	int err;

	*commands = tmpfile();
	if (*commands == NULL)
		return -errno;
	err = report_print_plot(report, *commands);
	if (err == 0 && fseek(*commands, 0, SEEK_SET) == 0)
		return 0;
	fclose(*commands);
	return err != 0 ? err : -EIO;
}

/* Starts gnuplot with these as its standard input and output. */
static int spawn(int in, int out, pid_t *child)
{
	char *const words[] = {"gnuplot", NULL};
	posix_spawn_file_actions_t actions;
	int err = posix_spawn_file_actions_init(&actions);

	if (err != 0)
		return -err;
	err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (err == 0)
		err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (err == 0)
		err = posix_spawnp(child, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* What is wrong with the commands it has said itself. */
static int run(int in, int out, char *why, size_t size)
{
	pid_t child;
	int status = -1, err = spawn(in, out, &child);

	if (err == -ENOENT)
		snprintf(why, size,
			 "gnuplot draws charts, and is not installed (package gnuplot-nox)");
	else if (err != 0)
		snprintf(why, size, "gnuplot: %s", strerror(-err));
	if (err != 0)
		return err;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	snprintf(why, size, "gnuplot has failed");
	return -EIO;
}

int report_draw(const struct report *report, const char *path, char *why, size_t size)
{
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	FILE *commands;
	int err;

	if (out < 0) {
		err = -errno;
		snprintf(why, size, "%s: %s", path, strerror(-err));
		return err;
	}
	err = commands_of(report, &commands);
	if (err == 0) {
		err = run(fileno(commands), out, why, size);
		fclose(commands);
	} else {
		snprintf(why, size, "%s", strerror(-err));
	}
	close(out);
	return err;
}
