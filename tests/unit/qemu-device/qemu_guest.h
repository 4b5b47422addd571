/*
 * Plays QEMU with a guest in it: connects to the daemon's ivshmem server as QEMU does, maps
 * the region, and does what the guest's kernel module and its programs do. What the server
 * says is checked on the way. All checks are Check's assertions.
 */
#ifndef FGV_TESTS_QEMU_GUEST_H
#define FGV_TESTS_QEMU_GUEST_H

#include "api/region.h"
#include "shmring/ring.h"
#include "shmring/window.h"

#define QEMU_GUEST_VECTORS_MAX (1 + FGV_REGION_WINDOWS_MAX)

struct qemu_guest {
	int fd; /* the connection */
	int region_fd;
	uint8_t *base;
	uint64_t len;
	struct fgv_region_head head; /* a copy */
	uint32_t vectors;
	int bells[2][QEMU_GUEST_VECTORS_MAX]; /* by peer */
};

/* Of its programs, as they say. */
#define QEMU_GUEST_PID 4711

/* A connection, and nothing read yet. */
int qemu_guest_connect(const char *path);
/* It must be told that it is refused, so that QEMU notices. Closes it. */
void qemu_guest_expect_refusal(int fd);

/* Connects, and takes the region. */
void qemu_guest_attach(struct qemu_guest *guest, const char *path);
/* Hangs up, and gives all back. */
void qemu_guest_detach(struct qemu_guest *guest);

struct fgv_region_slot *qemu_guest_slot(const struct qemu_guest *guest, uint32_t window);
uint8_t *qemu_guest_window(const struct qemu_guest *guest, uint32_t window);

/* Puts a request into the slot, and rings. */
void qemu_guest_request(const struct qemu_guest *guest, uint32_t window, uint32_t what);
/* Waits for the answer to the last request, which must be @state. */
void qemu_guest_await(const struct qemu_guest *guest, uint32_t window, uint32_t state);
/* Waits until the window's state is @state. */
void qemu_guest_await_state(const struct qemu_guest *guest, uint32_t window, uint32_t state);

/* Asks for a session of @program, without waiting for it. */
void qemu_guest_ask(const struct qemu_guest *guest, uint32_t window, const char *program);
/* ... and waits until it is there: its welcome. */
const struct fgv_msg_welcome *qemu_guest_open(const struct qemu_guest *guest, uint32_t window,
					      const char *program);
/* ... or until it is refused with @status. */
const struct fgv_msg_welcome *qemu_guest_open_refused(const struct qemu_guest *guest,
						      uint32_t window, const char *program,
						      uint32_t status);
/* Closes the window, and waits until it is free. */
void qemu_guest_close(const struct qemu_guest *guest, uint32_t window);

/* Waits until the guest's @vector is rung, and forgets the rings. */
void qemu_guest_await_bell(const struct qemu_guest *guest, uint32_t vector);

/* A lane of an open window, as the frontend has it; for one thread. */
struct qemu_guest_lane {
	const struct qemu_guest *guest;
	uint32_t number, window;
	struct fgv_window view;
	struct fgv_ring requests, replies;
	uint32_t calls;
	uint64_t *ticket; /* of the session, which all its lanes draw from */
};

void qemu_guest_lane_init(struct qemu_guest_lane *lane, const struct qemu_guest *guest,
			  uint32_t window, uint32_t number, uint64_t *ticket);
/* An operation whose arguments go into the slot. Its status. */
uint32_t qemu_guest_call(struct qemu_guest_lane *lane, uint16_t op, const void *arguments,
			 uint32_t len, void *reply);

#endif
