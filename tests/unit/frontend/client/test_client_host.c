/* The transport of the tests' host: socket, welcome, lanes, and the loop. */
#define _GNU_SOURCE
#include "common/util.h"
#include "tests/unit/frontend/client/test_client_host.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/gpu_wire.h"
#include "shmring/park.h"

#define WINDOW_LEN (64ull << 20)

struct host host;

void host_init(void)
{
	memset(&host, 0, sizeof(host));
	host.lanes = 16;
	host.version = FGV_WIRE_VERSION;
	host.granule = 2u << 20;
	host.connection = host.listener = host.doorbell = host.window_fd = -1;
	host.object_count = 1;
	host.memory = mmap(NULL, HOST_MEMORY, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(host.memory, MAP_FAILED);
}

static void send_welcome(void)
{
	struct fgv_msg_welcome welcome = {
		.type = FGV_MSG_WELCOME,
		.version = host.version,
		.status = host.refuse,
		.lanes = host.window.lanes,
		.window_len = host.window.len,
		.lanes_off = host.window.lanes_off,
		.arena_off = host.window.arena_off,
		.arena_len = host.window.arena_len,
		.staging_len = host.window.staging_len,
	};
	int fds[2] = {host.window_fd, host.doorbell};
	union {
		char room[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr head;
	} control = {.room = {0}};
	struct iovec iov = {.iov_base = &welcome, .iov_len = sizeof(welcome)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	strcpy(welcome.text, host.refuse ? "the VM is full" : "test device");
	strcpy(welcome.vm, "vm1");
	if (!host.refuse && !host.no_descriptors) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	}
	sendmsg(host.connection, &msg, MSG_NOSIGNAL);
}

static bool take_hello(void)
{
	struct fgv_msg_hello hello;

	host.connection = accept4(host.listener, NULL, NULL, SOCK_CLOEXEC);
	if (host.connection < 0 ||
	    recv(host.connection, &hello, sizeof(hello), 0) != (ssize_t)sizeof(hello) ||
	    hello.hash != FGV_API_HASH)
		return false;
	memcpy(host.vm, hello.vm, sizeof(host.vm));
	send_welcome();
	return !host.refuse;
}

/* A lane message, with its eventfd. False: the client is gone. */
static bool take_lane(void)
{
	struct fgv_msg_lane message;
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control;
	struct iovec iov = {.iov_base = &message, .iov_len = sizeof(message)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got = recvmsg(host.connection, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd;

	if (got < 0 && errno == EAGAIN)
		return true;
	if (got != (ssize_t)sizeof(message) || !CMSG_FIRSTHDR(&msg))
		return false;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	if (fgv_doorbell_check(fd) || fgv_lanes_attach(host.looking, message.lane, fd)) {
		host.violations++;
		message.status = CUDA_ERROR_INVALID_VALUE;
	}
	__atomic_fetch_add(&host.lanes_attached, 1, __ATOMIC_RELEASE);
	return send(host.connection, &message, sizeof(message), MSG_NOSIGNAL) > 0;
}

static void reply(uint32_t lane, uint16_t op, uint32_t call, CUresult status, const void *data,
		  uint32_t len)
{
	struct fgv_reply out = {.op = op, .call = call, .status = status, .data = data, .len = len};

	fgv_lanes_reply(host.looking, lane, &out);
}

bool host_hold(uint32_t lane, uint32_t call)
{
	if (!HOST_GET(hold_sync))
		return false;
	host.held[host.held_count].lane = lane;
	host.held[host.held_count++].call = call;
	return true;
}

static void release_held(void)
{
	if (HOST_GET(hold_sync))
		return;
	while (host.held_count) {
		host.held_count--;
		reply(host.held[host.held_count].lane, FGV_OP_STREAM_SYNC,
		      host.held[host.held_count].call, CUDA_SUCCESS, NULL, 0);
	}
}

static void execute(const struct fgv_slot *slot, uint32_t lane)
{
	static uint8_t message[FGV_MESSAGE_MAX];
	struct fgv_request request = {
		.op = slot->op, .vcpu = slot->vcpu, .lane = lane, .call = slot->call};
	uint32_t len = slot->len;
	uint8_t out[FGV_SLOT_INLINE];
	uint32_t out_len = 0;
	CUresult status;
	bool is_call = slot->op <= FGV_OP_MAX && fgv_op_infos[slot->op].call;

	if (len > sizeof(message)) {
		host.violations++;
		return;
	}
	memcpy(message, len <= FGV_SLOT_INLINE ? slot->data : host.window.base + slot->heap_off,
	       len);
	fgv_lanes_release(host.looking, lane);
	if (request.op <= FGV_OP_MAX)
		__atomic_fetch_add(&host.requests[request.op], 1, __ATOMIC_RELEASE);
	host_seen();
	if (fgv_dispatch(NULL, &request, message, len, out, &out_len, &status)) {
		host.violations++;
		return;
	}
	host_seen();
	if (status == FGV_PENDING)
		return;
	/* What went wrong in a post is said by the next call. */
	if (!is_call) {
		if (status && !host.deferred)
			host.deferred = status;
		return;
	}
	if (!status && host.deferred) {
		status = host.deferred;
		host.deferred = CUDA_SUCCESS;
	}
	reply(lane, request.op, request.call, status, out, status ? 0 : out_len);
}

static bool look(void)
{
	const struct fgv_slot *slot;
	struct fgv_slot copy;
	uint32_t lane;

	if (HOST_GET(pause))
		return false;
	slot = fgv_lanes_next(host.looking, &lane);
	if (!slot)
		return false;
	copy = *slot;
	execute(&copy, lane);
	return true;
}

/* Parked for a moment at a time, as the knobs ring no doorbell. */
static void park(void)
{
	uint32_t *parked = &fgv_window_head(&host.window)->host_parked;

	fgv_park_announce(parked);
	if (HOST_GET(pause) || !fgv_lanes_any_ordered(host.looking))
		fgv_doorbell_wait(host.doorbell, host.connection, 2 * FGV_NS_PER_MS);
	fgv_park_withdraw(parked);
	fgv_doorbell_clear(host.doorbell);
}

static void *run(void *arg)
{
	int idle = 0;

	(void)arg;
	if (!take_hello())
		goto out;
	while (!HOST_GET(die)) {
		release_held();
		if (!take_lane())
			break;
		if (look())
			idle = 0;
		else if (++idle > 200)
			park();
	}
out:
	if (host.connection >= 0)
		close(host.connection);
	return NULL;
}

void host_start(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	ck_assert_int_eq(fgv_window_layout(&host.window, WINDOW_LEN, host.lanes), 0);
	host.window_fd = fgv_window_create(&host.window);
	ck_assert_int_ge(host.window_fd, 0);
	ck_assert_int_eq(fgv_window_map(&host.window, host.window_fd), 0);
	host.looking = fgv_lanes_create(&host.window);
	host.doorbell = fgv_doorbell_create();
	snprintf(host.path, sizeof(host.path), "/tmp/fgv-test-%d.sock", (int)getpid());
	unlink(host.path);
	strcpy(address.sun_path, host.path);
	host.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(host.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(host.listener, 4), 0);
	setenv("FAIRGV_SOCKET", host.path, 1);
	ck_assert_int_eq(pthread_create(&host.thread, NULL, run, NULL), 0);
}

void host_stop(void)
{
	HOST_SET(die, 1);
	/* Where no client ever came. */
	shutdown(host.listener, SHUT_RDWR);
	pthread_join(host.thread, NULL);
	close(host.listener);
	unlink(host.path);
}
