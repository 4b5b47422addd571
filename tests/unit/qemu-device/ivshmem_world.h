/*
 * A daemon with QEMU guests for the tests of the ivshmem server: VM a has three windows, and
 * its guest is there when a test begins; VM b has one window and is user NOBODY's; VM c is
 * for local programs. All checks are Check's assertions.
 */
#ifndef FGV_TESTS_IVSHMEM_WORLD_H
#define FGV_TESTS_IVSHMEM_WORLD_H

#include <check.h>
#include <sys/types.h>
#include "tests/unit/backend/daemon_harness.h"
#include "tests/unit/qemu-device/qemu_guest.h"

#define WINDOWS	   3u
#define WINDOW_LEN (8ull << 20)
#define NOBODY	   65534

extern char path_a[64], path_b[64]; /* the sockets of QEMU */
extern struct daemon server;
extern unsigned descriptors;	/* of the daemon where no QEMU is connected */
extern struct qemu_guest guest; /* of VM a */

/* Fixtures: sessions are served by daemon_session.c, or by the real process. */
void start_server(void);
void start_real_server(void);
/*
 * Whatever a test did: QEMU can come back, a session can be had, and nothing stays behind. A
 * guest whose fd is -1 has been detached.
 */
void stop_server(void);
/* The same where there is no guest any more. */
void stop_daemon(void);

/* The process that serves the session whose program is called @name. */
pid_t session_process(const char *name);
/* Rings the window's dispatcher: it counts, in the window, and rings back. */
void check_window(uint32_t window);
void check_is_clean(uint32_t window);
/* What daemon_session.c keeps in the window. */
uint32_t *arena(uint32_t window);

/* Test cases of all that follows, and main(). */
TCase *served_case(void);
TCase *real_case(void);
int run_suite(const char *name, TCase *first, TCase *second);

#endif
