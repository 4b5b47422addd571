/* See qemu_guest.h. Limits of time are for a host that hangs, not for a slow one. */
#define _GNU_SOURCE
#include "common/util.h"
#include "tests/unit/qemu-device/qemu_guest.h"

#include <check.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "shmring/park.h"
#include "tests/unit/backend/daemon_harness.h"

#define LOOK_MS 20

int qemu_guest_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = HANG_LIMIT_SEC};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	ck_assert_msg(!connect(fd, (struct sockaddr *)&address, sizeof(address)), "connect: %s",
		      strerror(errno));
	return fd;
}

/* The next message, which must come with a descriptor if @fd is not NULL, and else without. */
static int64_t receive(int connection, int *fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control;
	uint64_t message;
	struct iovec part = {&message, sizeof(message)};
	struct msghdr msg = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};

	ck_assert_int_eq(recvmsg(connection, &msg, MSG_CMSG_CLOEXEC | MSG_WAITALL),
			 sizeof(message));
	if (!fd) {
		ck_assert_uint_eq(msg.msg_controllen, 0);
	} else {
		ck_assert_uint_eq(control.head.cmsg_len, CMSG_LEN(sizeof(int)));
		memcpy(fd, CMSG_DATA(&control.head), sizeof(int));
	}
	return (int64_t)le64toh(message);
}

void qemu_guest_expect_refusal(int fd)
{
	char byte;

	ck_assert_int_lt(receive(fd, NULL), 0); /* a version, and none that QEMU knows */
	ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
	close(fd);
}

static void map_region(struct qemu_guest *guest)
{
	struct stat file;

	ck_assert_int_eq(fstat(guest->region_fd, &file), 0);
	guest->len = (uint64_t)file.st_size;
	guest->base =
		mmap(NULL, guest->len, PROT_READ | PROT_WRITE, MAP_SHARED, guest->region_fd, 0);
	ck_assert_ptr_ne(guest->base, MAP_FAILED);
	memcpy(&guest->head, guest->base, sizeof(guest->head));
	ck_assert_uint_ge(guest->head.windows, 1);
	ck_assert_uint_le(guest->head.windows, FGV_REGION_WINDOWS_MAX);
	guest->vectors = 1 + guest->head.windows;
}

void qemu_guest_attach(struct qemu_guest *guest, const char *path)
{
	guest->fd = qemu_guest_connect(path);
	ck_assert_int_eq(receive(guest->fd, NULL), 0);
	ck_assert_int_eq(receive(guest->fd, NULL), FGV_REGION_GUEST);
	ck_assert_int_eq(receive(guest->fd, &guest->region_fd), -1);
	map_region(guest);
	for (int peer = 0; peer < 2; peer++) {
		for (uint32_t v = 0; v < guest->vectors; v++)
			ck_assert_int_eq(receive(guest->fd, &guest->bells[peer][v]), peer);
	}
}

void qemu_guest_detach(struct qemu_guest *guest)
{
	close(guest->fd);
	munmap(guest->base, guest->len);
	close(guest->region_fd);
	for (int peer = 0; peer < 2; peer++) {
		for (uint32_t v = 0; v < guest->vectors; v++)
			close(guest->bells[peer][v]);
	}
}

struct fgv_region_slot *qemu_guest_slot(const struct qemu_guest *guest, uint32_t window)
{
	return (struct fgv_region_slot *)(guest->base + FGV_REGION_SLOTS_OFF) + window;
}

uint8_t *qemu_guest_window(const struct qemu_guest *guest, uint32_t window)
{
	return guest->base + guest->head.windows_off + window * guest->head.window_len;
}

void qemu_guest_request(const struct qemu_guest *guest, uint32_t window, uint32_t what)
{
	struct fgv_region_slot *slot = qemu_guest_slot(guest, window);

	__atomic_store_n(&slot->request, what, __ATOMIC_RELAXED);
	fgv_store_release(&slot->serial, slot->serial + 1);
	fgv_doorbell_ring(guest->bells[FGV_REGION_HOST][0]);
}

void qemu_guest_await(const struct qemu_guest *guest, uint32_t window, uint32_t state)
{
	struct fgv_region_slot *slot = qemu_guest_slot(guest, window);

	while (fgv_load_acquire(&slot->answer) != slot->serial)
		qemu_guest_await_bell(guest, 0);
	ck_assert_msg(slot->state == state, "window %u is in state %u, not %u: %s", window,
		      slot->state, state, slot->welcome.text);
}

void qemu_guest_await_state(const struct qemu_guest *guest, uint32_t window, uint32_t state)
{
	while (fgv_load_acquire(&qemu_guest_slot(guest, window)->state) != state)
		qemu_guest_await_bell(guest, 0);
}

void qemu_guest_ask(const struct qemu_guest *guest, uint32_t window, const char *program)
{
	struct fgv_msg_hello hello = {
		.type = FGV_MSG_HELLO,
		.version = FGV_WIRE_VERSION,
		.pid = QEMU_GUEST_PID,
		.hash = FGV_API_HASH,
	};

	snprintf(hello.program, sizeof(hello.program), "%s", program);
	qemu_guest_slot(guest, window)->hello = hello;
	qemu_guest_request(guest, window, FGV_SLOT_OPEN);
}

const struct fgv_msg_welcome *qemu_guest_open(const struct qemu_guest *guest, uint32_t window,
					      const char *program)
{
	const struct fgv_msg_welcome *welcome = &qemu_guest_slot(guest, window)->welcome;

	qemu_guest_ask(guest, window, program);
	qemu_guest_await(guest, window, FGV_SLOT_READY);
	ck_assert_uint_eq(welcome->type, FGV_MSG_WELCOME);
	ck_assert_uint_eq(welcome->version, FGV_WIRE_VERSION);
	ck_assert_uint_eq(welcome->status, 0);
	ck_assert_uint_eq(welcome->window_len, guest->head.window_len);
	return welcome;
}

const struct fgv_msg_welcome *qemu_guest_open_refused(const struct qemu_guest *guest,
						      uint32_t window, const char *program,
						      uint32_t status)
{
	const struct fgv_msg_welcome *welcome = &qemu_guest_slot(guest, window)->welcome;

	qemu_guest_ask(guest, window, program);
	qemu_guest_await(guest, window, FGV_SLOT_REFUSED);
	ck_assert_uint_eq(welcome->type, FGV_MSG_WELCOME);
	ck_assert_msg(welcome->status == status, "status %u, not %u: %s", welcome->status, status,
		      welcome->text);
	return welcome;
}

void qemu_guest_close(const struct qemu_guest *guest, uint32_t window)
{
	qemu_guest_request(guest, window, FGV_SLOT_CLOSE);
	qemu_guest_await(guest, window, FGV_SLOT_FREE);
}

void qemu_guest_await_bell(const struct qemu_guest *guest, uint32_t vector)
{
	int fd = guest->bells[FGV_REGION_GUEST][vector];

	ck_assert_msg(fgv_doorbell_wait(fd, -1, HANG_LIMIT_SEC * (int64_t)FGV_NS_PER_SEC) == 1,
		      "vector %u is not rung", vector);
	fgv_doorbell_clear(fd);
}

void qemu_guest_lane_init(struct qemu_guest_lane *lane, const struct qemu_guest *guest,
			  uint32_t window, uint32_t number, uint64_t *ticket)
{
	const struct fgv_msg_welcome *welcome = &qemu_guest_slot(guest, window)->welcome;

	*lane = (struct qemu_guest_lane){
		.guest = guest,
		.number = number,
		.window = window,
		.view =
			{
				.base = qemu_guest_window(guest, window),
				.len = welcome->window_len,
				.lanes_off = welcome->lanes_off,
				.lanes = welcome->lanes,
				.arena_off = welcome->arena_off,
				.arena_len = welcome->arena_len,
				.staging_len = welcome->staging_len,
			},
		.ticket = ticket,
	};
	ck_assert_int_eq(fgv_window_check(&lane->view), 0);
	fgv_ring_attach(&lane->requests, fgv_window_requests(&lane->view, number),
			FGV_REQUEST_SLOTS, FGV_RING_START);
	fgv_ring_attach(&lane->replies, fgv_window_replies(&lane->view, number), FGV_REPLY_SLOTS,
			FGV_RING_START);
}

static void publish(struct qemu_guest_lane *lane, uint16_t op, const void *arguments, uint32_t len)
{
	struct fgv_slot *slot = fgv_ring_reserve(&lane->requests);

	ck_assert_ptr_nonnull(slot);
	slot->op = op;
	slot->vcpu = 0;
	slot->ticket = ++*lane->ticket;
	slot->call = lane->calls++;
	slot->len = len;
	if (len > 0)
		memcpy(slot->data, arguments, len);
	fgv_ring_publish(&lane->requests);
	if (fgv_park_is_announced(&fgv_window_head(&lane->view)->host_parked))
		fgv_doorbell_ring(lane->guest->bells[FGV_REGION_HOST][1 + lane->window]);
}

uint32_t qemu_guest_call(struct qemu_guest_lane *lane, uint16_t op, const void *arguments,
			 uint32_t len, void *reply)
{
	uint32_t *parked = &fgv_window_lane_head(&lane->view, lane->number)->guest_parked;
	const struct fgv_slot *slot;
	uint32_t status;

	publish(lane, op, arguments, len);
	while (!(slot = fgv_ring_peek(&lane->replies))) {
		fgv_park_announce(parked);
		if (!fgv_ring_peek_ordered(&lane->replies))
			qemu_guest_await_bell(lane->guest, 1 + lane->window);
		fgv_park_withdraw(parked);
	}
	status = (uint32_t)slot->status;
	ck_assert_uint_eq(slot->op, op);
	ck_assert_uint_le(slot->len, FGV_SLOT_INLINE);
	if (reply)
		memcpy(reply, slot->data, slot->len);
	fgv_ring_release(&lane->replies);
	return status;
}
