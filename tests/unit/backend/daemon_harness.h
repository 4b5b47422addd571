/*
 * Runs a daemon for a test and plays guest programs. The daemon's sessions are served
 * by daemon_session.c, if nothing else is chosen between preparing and launching. All checks are
 * Check's assertions, so these return only where all went well. Limits of time here are for a
 * daemon that hangs, not for a slow one.
 */
#ifndef FGV_TEST_DAEMON_HARNESS_H
#define FGV_TEST_DAEMON_HARNESS_H

#include <stdbool.h>
#include <sys/types.h>
#include "api/gpu_wire.h"

#define HANG_LIMIT_SEC 60

struct daemon {
	pid_t pid;
	char folder[32];
	char config[48];
	char socket[48];
	char control[64]; /* the administrator's socket */
	char log[48];
	const char *vgpu; /* NULL: daemon_session serves */
	char ready[512];  /* the line that it wrote when it was ready */
};

/* Makes the folder and the configuration; no process is kept ready if that does not say so. */
void daemon_prepare(struct daemon *daemon, const char *config);
/* Starts the daemon; "" in daemon->ready where it ended instead. */
void daemon_launch(struct daemon *daemon);
/* Both, and it must start. */
void daemon_start(struct daemon *daemon, const char *config);
/* Its exit status; -signal where one killed it. */
int daemon_wait(struct daemon *daemon);
/* Ends it: that must go in order and leave no socket. Then removes the folder. */
void daemon_stop(struct daemon *daemon);
void daemon_remove(struct daemon *daemon);

unsigned daemon_descriptors(const struct daemon *daemon);
unsigned daemon_children(const struct daemon *daemon);
/* A process whose parent is gone is reaped by somebody else: then it is a zombie at the most. */
bool process_is_running(pid_t pid);
/* Waits until it has no session and as many descriptors as it had before. */
void daemon_await_idle(const struct daemon *daemon, unsigned descriptors);

/* Waits for a log line with @text in it. The line is in a static buffer. */
const char *daemon_await_log(const struct daemon *daemon, const char *text);
unsigned daemon_count_log(const struct daemon *daemon, const char *text);
/* The process that serves session @number, which is of VM a. */
pid_t daemon_session_pid(const struct daemon *daemon, unsigned number);

/* Waits until @condition, which is asked again and again. */
#define AWAIT(condition)                                                                           \
	do {                                                                                       \
		for (int tries_ = 0; !(condition); tries_++) {                                     \
			ck_assert_msg(tries_ < HANG_LIMIT_SEC * 100, "in vain: %s", #condition);   \
			usleep(10000);                                                             \
		}                                                                                  \
	} while (0)

int guest_connect(const struct daemon *daemon);
void guest_send_hello(int fd, const char *vm, const char *program);

struct guest_answer {
	bool closed; /* the connection ended, or says that it will, without a welcome */
	struct fgv_msg_welcome welcome;
	int fds[2];
	int fd_count;
};
void guest_receive(int fd, struct guest_answer *answer);
void guest_close(int fd, struct guest_answer *answer);

/* A session that is up: its connection. @answer may be NULL. */
int guest_open(const struct daemon *daemon, const char *vm, const char *program,
	       struct guest_answer *answer);
/* Waits for the end of a connection; and for one before which it is said why, with @text in it. */
void guest_await_end(int fd);
void guest_await_reason(int fd, const char *text);

/* Connects, says hello, and must be refused with @status and a text with @text in it. */
void guest_expect_refusal(const struct daemon *daemon, const char *vm, uint32_t status,
			  const char *text);

#endif
