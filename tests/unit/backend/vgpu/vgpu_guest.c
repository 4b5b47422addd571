/* Waits look at the process's life every few milliseconds, so that a test fails and not hangs. */
#define _GNU_SOURCE
#include "tests/unit/backend/vgpu/vgpu_guest.h"

#include <check.h>
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/util.h"
#include "shmring/park.h"
#include "softgpu/ledger.h"
#include "softgpu/seat.h"

#define WINDOW_LEN (16ull << 20)

static int shared_memory(size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	return fd;
}

/* The process has the engine, and nobody else wants it. */
static void make_seat(struct vgpu *vgpu)
{
	const struct softgpu_seat seat = {.state = SOFTGPU_SEAT_IDLE};
	static const struct softgpu_ledger ledger = {.bound = 1};

	vgpu->seat_fds[FGV_SEAT_PAGE] = shared_memory(sizeof(seat));
	ck_assert_int_eq(pwrite(vgpu->seat_fds[FGV_SEAT_PAGE], &seat, sizeof(seat), 0),
			 sizeof(seat));
	vgpu->seat_fds[FGV_SEAT_BELL] = fgv_doorbell_create();
	vgpu->seat_fds[FGV_SEAT_ARBITER] = fgv_doorbell_create();
	vgpu->seat_fds[FGV_SEAT_LEDGER] = shared_memory(sizeof(ledger));
	ck_assert_int_eq(
		pwrite(vgpu->seat_fds[FGV_SEAT_LEDGER], &ledger.bound, sizeof(ledger.bound), 0),
		sizeof(ledger.bound));
}

static void make_accounts(struct vgpu *vgpu)
{
	vgpu->accounts_fd = shared_memory(sizeof(struct fgv_accounts));
	vgpu->accounts = mmap(NULL, sizeof(struct fgv_accounts), PROT_READ | PROT_WRITE, MAP_SHARED,
			      vgpu->accounts_fd, 0);
	ck_assert_ptr_ne(vgpu->accounts, MAP_FAILED);
	vgpu->allowance_fd = shared_memory(sizeof(struct fgv_allowance));
	vgpu->allowance = mmap(NULL, sizeof(struct fgv_allowance), PROT_READ | PROT_WRITE,
			       MAP_SHARED, vgpu->allowance_fd, 0);
	ck_assert_ptr_ne(vgpu->allowance, MAP_FAILED);
	vgpu->allowance->memory_bytes = VGPU_QUOTA;
	vgpu->allowance->taken = UINT64_MAX;
}

static struct vgpu_copying make_grant(void)
{
	struct vgpu_copying made = {
		.grant_fd = shared_memory(sizeof(struct fgv_grant)),
		.grant_bell_fd = fgv_doorbell_create(),
		.sched_bell_fd = fgv_doorbell_create(),
	};

	made.grant = mmap(NULL, sizeof(struct fgv_grant), PROT_READ | PROT_WRITE, MAP_SHARED,
			  made.grant_fd, 0);
	ck_assert_ptr_ne(made.grant, MAP_FAILED);
	return made;
}

static void make_grants(struct vgpu *vgpu)
{
	struct vgpu_copying computing = make_grant();

	vgpu->grant = computing.grant;
	vgpu->grant_fd = computing.grant_fd;
	vgpu->grant_bell_fd = computing.grant_bell_fd;
	vgpu->sched_bell_fd = computing.sched_bell_fd;
	for (unsigned i = 0; i < 2; i++)
		vgpu->copying[i] = make_grant();
	vgpu_grant(vgpu, FGV_GRANT_NO_LIMIT);
}

static void drop_grant(const struct vgpu_copying *grant)
{
	munmap(grant->grant, sizeof(*grant->grant));
	close(grant->grant_fd);
	close(grant->grant_bell_fd);
	close(grant->sched_bell_fd);
}

static void put_grant(const struct vgpu_copying *grant, int *fds)
{
	fds[0] = grant->grant_fd;
	fds[1] = grant->grant_bell_fd;
	fds[2] = grant->sched_bell_fd;
}

static void exec_vgpu(int control_fd, int log_fd)
{
	if (dup2(log_fd, STDERR_FILENO) < 0 || dup2(control_fd, FGV_CONTROL_FD) < 0)
		_exit(127);
	if (control_fd == FGV_CONTROL_FD)
		fcntl(control_fd, F_SETFD, 0);
	execl(FGV_TEST_VGPU, "fairgv-vgpu", (char *)NULL);
	_exit(127);
}

static void make(struct vgpu *vgpu)
{
	memset(vgpu, 0, sizeof(*vgpu));
	vgpu->connection_fd = vgpu->window_fd = vgpu->doorbell_fd = -1;
	make_accounts(vgpu);
	make_grants(vgpu);
	make_seat(vgpu);
}

void vgpu_spawn(struct vgpu *vgpu)
{
	int pair[2];

	make(vgpu);
	vgpu->log_fd = shared_memory(0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	vgpu->control_fd = pair[0];
	vgpu->pid = fork();
	ck_assert_int_ge(vgpu->pid, 0);
	if (vgpu->pid == 0)
		exec_vgpu(pair[1], vgpu->log_fd);
	close(pair[1]);
}

void vgpu_right_setup(const struct vgpu *vgpu, struct fgv_setup *setup)
{
	struct fgv_window layout;

	ck_assert_int_eq(fgv_window_layout(&layout, WINDOW_LEN, VGPU_LANES), 0);
	*setup = (struct fgv_setup){
		.vm = "vm1",
		.program = "test",
		.session = 7,
		.account = 2,
		.window_len = layout.len,
		.lanes_off = layout.lanes_off,
		.arena_off = layout.arena_off,
		.arena_len = layout.arena_len,
		.staging_len = layout.staging_len,
		.slice_ns = vgpu->slice_ns ? vgpu->slice_ns : VGPU_SLICE,
		.idle_ns = vgpu->fills_gaps ? VGPU_IDLE_LONG : VGPU_IDLE,
		.batching = 1,
		.engines = vgpu->has_engines,
		.fills_gaps = vgpu->fills_gaps,
		.slicing = vgpu->slicing,
		.movable = vgpu->movable,
		.slice_blocks = vgpu->slice_blocks,
		.lanes = layout.lanes,
	};
}

static void send_fds(int socket, const void *data, size_t len, const int *fds, size_t count)
{
	char control[CMSG_SPACE(FGV_SETUP_PART_FDS * sizeof(int))] = {0};
	struct iovec part = {(void *)data, len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *head;

	if (count > 0) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	}
	/* Fails where the process has ended; the reading that follows notices. */
	if (sendmsg(socket, &msg, MSG_NOSIGNAL) < 0)
		ck_assert_int_eq(errno, EPIPE);
}

/* The process's end of what leads to a keeper, or to nobody. */
static int images_socket(struct vgpu *vgpu)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	if (vgpu->images_fd)
		*vgpu->images_fd = pair[0];
	else
		close(pair[0]);
	return pair[1];
}

/* Of a setup. Those that are made here are closed by close_fds(); the guest's end: *@peer_fd. */
static void make_fds(struct vgpu *vgpu, int *fds, int *peer_fd)
{
	struct fgv_window layout;
	int pair[2];

	ck_assert_int_eq(fgv_window_layout(&layout, WINDOW_LEN, VGPU_LANES), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fds[FGV_SETUP_CONNECTION] = pair[1];
	fds[FGV_SETUP_WINDOW] = fgv_window_create(&layout);
	fds[FGV_SETUP_DOORBELL] = fgv_doorbell_create();
	fds[FGV_SETUP_ALLOWANCE] = vgpu->allowance_fd;
	fds[FGV_SETUP_ACCOUNTS] = vgpu->accounts_fd;
	fds[FGV_SETUP_ACCOUNT] = vgpu->accounts_fd;
	fds[FGV_SETUP_GRANT] = vgpu->grant_fd;
	fds[FGV_SETUP_GRANT_BELL] = vgpu->grant_bell_fd;
	fds[FGV_SETUP_SCHED_BELL] = vgpu->sched_bell_fd;
	put_grant(&vgpu->copying[0], &fds[FGV_SETUP_GRANT_IN]);
	put_grant(&vgpu->copying[1], &fds[FGV_SETUP_GRANT_OUT]);
	fds[FGV_SETUP_CGROUP] = open("/dev/null", O_WRONLY | O_CLOEXEC); /* it has none */
	ck_assert_int_ge(fds[FGV_SETUP_CGROUP], 0);
	fds[FGV_SETUP_IMAGES] = images_socket(vgpu);
	ck_assert_int_ge(fds[FGV_SETUP_WINDOW], 0);
	ck_assert_int_ge(fds[FGV_SETUP_DOORBELL], 0);
	*peer_fd = pair[0];
}

static void close_fds(const int *fds)
{
	close(fds[FGV_SETUP_WINDOW]);
	close(fds[FGV_SETUP_DOORBELL]);
	close(fds[FGV_SETUP_CGROUP]);
	close(fds[FGV_SETUP_IMAGES]);
	close(fds[FGV_SETUP_CONNECTION]);
}

void vgpu_send_setup(struct vgpu *vgpu, const struct fgv_setup *setup)
{
	struct fgv_setup right;
	int fds[FGV_SETUP_FDS];

	vgpu_right_setup(vgpu, &right);
	make_fds(vgpu, fds, &vgpu->connection_fd);
	send_fds(vgpu->control_fd, setup ? setup : &right, sizeof(right), fds, FGV_SETUP_FDS);
	close_fds(fds);
}

void vgpu_send_part(struct vgpu *vgpu, struct vgpu *part, uint32_t ordinal)
{
	struct fgv_setup_part message = {
		.prepare =
			{
				.soft = 1,
				.ordinal = ordinal,
				.soft_memory_bytes = VGPU_MEMORY,
				.shares_context = !vgpu->leaves_at_once,
			},
	};
	int fds[FGV_SETUP_PART_FDS];

	make(part);
	part->pid = vgpu->pid;
	part->is_part = true;
	part->control_fd = -1;
	part->log_fd = -1;
	vgpu_right_setup(part, &message.setup);
	make_fds(part, fds, &fds[FGV_SETUP_PEER]);
	memcpy(&fds[FGV_SETUP_SEAT], part->seat_fds, sizeof(part->seat_fds));
	send_fds(vgpu->control_fd, &message, sizeof(message), fds, FGV_SETUP_PART_FDS);
	close(fds[FGV_SETUP_PEER]);
	close_fds(fds);
}

/* Waits until @fd has something; false if it does not before the process has ended. */
static bool await_input(struct vgpu *vgpu, int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int waited_ms = 0;

	while (poll(&poll_fd, 1, VGPU_LOOK_MS) == 0) {
		if (vgpu_has_ended(vgpu))
			return poll(&poll_fd, 1, 0) > 0;
		waited_ms += VGPU_LOOK_MS;
		ck_assert_msg(waited_ms < VGPU_PATIENCE_MS, "the vGPU process says nothing");
	}
	return true;
}

void vgpu_send_prepare(struct vgpu *vgpu, uint64_t memory_bytes)
{
	const struct fgv_prepare prepare = {
		.soft = 1,
		.soft_memory_bytes = memory_bytes,
		.shares_context = !vgpu->leaves_at_once,
	};

	send_fds(vgpu->control_fd, &prepare, sizeof(prepare), vgpu->seat_fds, FGV_SEAT_FDS);
}

void vgpu_read_report(struct vgpu *vgpu, struct fgv_prepared *report)
{
	ck_assert(await_input(vgpu, vgpu->control_fd));
	ck_assert_int_eq(recv(vgpu->control_fd, report, sizeof(*report), 0), sizeof(*report));
}

/* What comes on @connection_fd, with up to three descriptors: window, doorbell, connection. */
static void read_welcome(struct vgpu *vgpu, int connection_fd, unsigned wanted)
{
	char control[CMSG_SPACE(3 * sizeof(int))];
	struct iovec part = {&vgpu->welcome, sizeof(vgpu->welcome)};
	struct msghdr msg = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *head;
	int fds[3];

	ck_assert(await_input(vgpu, connection_fd));
	ck_assert_int_eq(recvmsg(connection_fd, &msg, MSG_CMSG_CLOEXEC), sizeof(vgpu->welcome));
	ck_assert_uint_eq(vgpu->welcome.type, FGV_MSG_WELCOME);
	head = CMSG_FIRSTHDR(&msg);
	if (vgpu->welcome.status) {
		ck_assert_ptr_null(head);
		return;
	}
	ck_assert_ptr_nonnull(head);
	ck_assert_uint_eq(head->cmsg_len, CMSG_LEN(wanted * sizeof(int)));
	memcpy(fds, CMSG_DATA(head), wanted * sizeof(int));
	vgpu->window_fd = fds[0];
	vgpu->doorbell_fd = fds[1];
	if (wanted > 2)
		vgpu->connection_fd = fds[2];
	vgpu->window = (struct fgv_window){
		.len = vgpu->welcome.window_len,
		.lanes_off = vgpu->welcome.lanes_off,
		.lanes = vgpu->welcome.lanes,
		.arena_off = vgpu->welcome.arena_off,
		.arena_len = vgpu->welcome.arena_len,
		.staging_len = vgpu->welcome.staging_len,
	};
	ck_assert_int_eq(fgv_window_check(&vgpu->window), 0);
	ck_assert_int_eq(fgv_window_map(&vgpu->window, vgpu->window_fd), 0);
}

void vgpu_read_welcome(struct vgpu *vgpu)
{
	read_welcome(vgpu, vgpu->connection_fd, 2);
}

void vgpu_read_part(struct vgpu *vgpu, struct vgpu *part)
{
	read_welcome(part, vgpu->connection_fd, 3);
}

uint32_t vgpu_send_lane(struct vgpu *vgpu, uint32_t lane, int fd)
{
	struct fgv_msg_lane msg = {.type = FGV_MSG_LANE, .lane = lane};

	send_fds(vgpu->connection_fd, &msg, sizeof(msg), &fd, fd >= 0);
	__atomic_add_fetch(&fgv_window_head(&vgpu->window)->control_seq, 1, __ATOMIC_SEQ_CST);
	ck_assert(await_input(vgpu, vgpu->connection_fd));
	ck_assert_int_eq(recv(vgpu->connection_fd, &msg, sizeof(msg), 0), sizeof(msg));
	ck_assert_uint_eq(msg.type, FGV_MSG_LANE);
	ck_assert_uint_eq(msg.lane, lane);
	return msg.status;
}

static void attach_lane(struct vgpu *vgpu, uint32_t number)
{
	struct vgpu_lane *lane = &vgpu->lanes[number];
	uint64_t heap_off = (uint64_t)(fgv_window_lane(&vgpu->window, number) - vgpu->window.base) +
			    FGV_LANE_HEAP;

	fgv_ring_attach(&lane->requests, fgv_window_requests(&vgpu->window, number),
			FGV_REQUEST_SLOTS, FGV_RING_START);
	fgv_ring_attach(&lane->replies, fgv_window_replies(&vgpu->window, number), FGV_REPLY_SLOTS,
			FGV_RING_START);
	fgv_heap_init(&lane->heap, heap_off, FGV_LANE_HEAP_LEN);
	lane->reclaimed = FGV_RING_START;
	lane->doorbell_fd = fgv_doorbell_create();
	ck_assert_int_ge(lane->doorbell_fd, 0);
	ck_assert_uint_eq(vgpu_send_lane(vgpu, number, lane->doorbell_fd), CUDA_SUCCESS);
}

void vgpu_attach_lanes(struct vgpu *vgpu)
{
	for (uint32_t i = 0; i < VGPU_LANES; i++)
		attach_lane(vgpu, i);
}

void vgpu_begin(struct vgpu *vgpu)
{
	vgpu_send_prepare(vgpu, VGPU_MEMORY);
	vgpu_send_setup(vgpu, NULL);
	vgpu_read_welcome(vgpu);
	ck_assert_msg(vgpu->welcome.status == CUDA_SUCCESS, "refused: %s", vgpu->welcome.text);
	vgpu_attach_lanes(vgpu);
}

void vgpu_start(struct vgpu *vgpu)
{
	vgpu_spawn(vgpu);
	vgpu_begin(vgpu);
}

void vgpu_wake(struct vgpu *vgpu)
{
	if (fgv_park_is_announced(&fgv_window_head(&vgpu->window)->host_parked))
		fgv_doorbell_ring(vgpu->doorbell_fd);
}

struct fgv_slot vgpu_slot(struct vgpu *vgpu, uint16_t op, uint32_t len)
{
	return (struct fgv_slot){.op = op, .len = len, .ticket = ++vgpu->ticket};
}

bool vgpu_publish(struct vgpu *vgpu, uint32_t number, const struct fgv_slot *slot)
{
	struct vgpu_lane *lane = &vgpu->lanes[number];
	struct fgv_slot *room;

	while (!(room = fgv_ring_reserve(&lane->requests))) {
		if (vgpu_has_ended(vgpu))
			return false;
		sched_yield();
	}
	memcpy((uint8_t *)room + sizeof(room->mark), (const uint8_t *)slot + sizeof(slot->mark),
	       sizeof(*slot) - sizeof(slot->mark));
	fgv_ring_publish(&lane->requests);
	vgpu_wake(vgpu);
	return true;
}

/* Room in the lane's heap for the request that is published next. */
static bool heap_alloc(struct vgpu *vgpu, struct vgpu_lane *lane, uint32_t len, uint64_t *off)
{
	uint32_t slot = lane->requests.position % FGV_REQUEST_SLOTS;

	do {
		while (lane->reclaimed != lane->requests.position &&
		       fgv_ring_freed(&lane->requests, lane->reclaimed))
			fgv_heap_reclaim(&lane->heap, lane->reclaimed++ % FGV_REQUEST_SLOTS);
		if (fgv_heap_alloc(&lane->heap, slot, len, off) == 0)
			return true;
		sched_yield();
	} while (!vgpu_has_ended(vgpu));
	return false;
}

bool vgpu_post(struct vgpu *vgpu, uint32_t number, uint16_t op, const void *message, uint32_t len)
{
	struct vgpu_lane *lane = &vgpu->lanes[number];
	struct fgv_slot slot = {.op = op, .len = len, .call = lane->calls++};

	if (len <= FGV_SLOT_INLINE) {
		if (len > 0)
			memcpy(slot.data, message, len);
	} else {
		/* The slot must be free before the heap knows which request it is for. */
		while (!fgv_ring_reserve(&lane->requests)) {
			if (vgpu_has_ended(vgpu))
				return false;
			sched_yield();
		}
		if (!heap_alloc(vgpu, lane, len, &slot.heap_off))
			return false;
		memcpy(vgpu->window.base + slot.heap_off, message, len);
	}
	slot.ticket = ++vgpu->ticket;
	return vgpu_publish(vgpu, number, &slot);
}

/* What the process had to say, for a look into the test's failure. */
static void show_log(int fd)
{
	char text[4096];
	ssize_t got;

	lseek(fd, 0, SEEK_SET);
	while ((got = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)got, stderr);
}

static const struct fgv_slot *await_reply(struct vgpu *vgpu, uint32_t number)
{
	struct fgv_lane_head *head = fgv_window_lane_head(&vgpu->window, number);
	struct vgpu_lane *lane = &vgpu->lanes[number];
	const struct fgv_slot *slot;
	int waited_ms = 0;

	while (!(slot = fgv_ring_peek(&lane->replies))) {
		fgv_park_announce(&head->guest_parked);
		if (!fgv_ring_peek_ordered(&lane->replies) &&
		    fgv_doorbell_wait(lane->doorbell_fd, -1, VGPU_LOOK_MS * FGV_NS_PER_MS) == 0)
			waited_ms += VGPU_LOOK_MS;
		fgv_park_withdraw(&head->guest_parked);
		fgv_doorbell_clear(lane->doorbell_fd);
		if (vgpu_has_ended(vgpu)) {
			show_log(vgpu->log_fd);
			ck_abort_msg("the vGPU process has ended");
		}
		ck_assert_msg(waited_ms < VGPU_PATIENCE_MS, "no reply");
	}
	return slot;
}

uint32_t vgpu_wait(struct vgpu *vgpu, uint32_t number, void *reply)
{
	struct fgv_slot slot = *await_reply(vgpu, number);

	fgv_ring_release(&vgpu->lanes[number].replies);
	ck_assert_uint_le(slot.op, FGV_OP_MAX);
	ck_assert_uint_eq(slot.len, slot.status ? 0 : fgv_op_infos[slot.op].reply_len);
	if (slot.len > 0)
		memcpy(reply, slot.data, slot.len);
	return (uint32_t)slot.status;
}

uint32_t vgpu_call(struct vgpu *vgpu, uint32_t lane, uint16_t op, const void *message, uint32_t len,
		   void *reply)
{
	ck_assert(vgpu_post(vgpu, lane, op, message, len));
	return vgpu_wait(vgpu, lane, reply);
}

void *vgpu_arena(struct vgpu *vgpu, uint64_t off)
{
	return vgpu->window.base + vgpu->window.arena_off + off;
}

bool vgpu_has_ended(struct vgpu *vgpu)
{
	siginfo_t info = {0};

	ck_assert_int_eq(waitid(P_PID, (id_t)vgpu->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid != 0;
}

static unsigned count_lines(int fd)
{
	char text[4096];
	unsigned lines = 0;
	ssize_t got;

	lseek(fd, 0, SEEK_SET);
	while ((got = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < got; i++)
			lines += text[i] == '\n';
	}
	return lines;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

void vgpu_give_back(struct vgpu *vgpu)
{
	if (vgpu->window.base)
		fgv_window_unmap(&vgpu->window);
	for (unsigned i = 0; i < VGPU_LANES; i++) {
		if (vgpu->lanes[i].requests.slots)
			close(vgpu->lanes[i].doorbell_fd);
	}
	munmap(vgpu->accounts, sizeof(*vgpu->accounts));
	munmap(vgpu->allowance, sizeof(*vgpu->allowance));
	munmap(vgpu->grant, sizeof(*vgpu->grant));
	close_if(vgpu->connection_fd);
	close_if(vgpu->control_fd);
	close_if(vgpu->window_fd);
	close_if(vgpu->doorbell_fd);
	close(vgpu->accounts_fd);
	close(vgpu->allowance_fd);
	close(vgpu->grant_fd);
	close(vgpu->grant_bell_fd);
	close(vgpu->sched_bell_fd);
	for (unsigned i = 0; i < 2; i++)
		drop_grant(&vgpu->copying[i]);
	for (unsigned i = 0; i < FGV_SEAT_FDS; i++)
		close(vgpu->seat_fds[i]);
	close_if(vgpu->log_fd);
}

int vgpu_finish(struct vgpu *vgpu, unsigned *lines)
{
	int status, waited_ms = 0;

	while (!vgpu_has_ended(vgpu)) {
		poll(NULL, 0, VGPU_LOOK_MS);
		waited_ms += VGPU_LOOK_MS;
		if (waited_ms >= VGPU_PATIENCE_MS) {
			kill(vgpu->pid, SIGKILL);
			ck_abort_msg("the vGPU process does not end");
		}
	}
	ck_assert_int_eq(waitpid(vgpu->pid, &status, 0), vgpu->pid);
	ck_assert_msg(WIFEXITED(status), "the vGPU process was killed by signal %d",
		      WTERMSIG(status));
	*lines = count_lines(vgpu->log_fd);
	if (getenv("FGV_TEST_SHOW_LOG"))
		show_log(vgpu->log_fd);
	vgpu_give_back(vgpu);
	return WEXITSTATUS(status);
}

int vgpu_hang_up(struct vgpu *vgpu, unsigned *lines)
{
	close(vgpu->connection_fd);
	vgpu->connection_fd = -1;
	return vgpu_finish(vgpu, lines);
}

void vgpu_leave(struct vgpu *vgpu)
{
	unsigned lines;

	ck_assert_int_eq(vgpu_hang_up(vgpu, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
}

void vgpu_end_orderly(struct vgpu *vgpu)
{
	unsigned lines;
	int status = vgpu_hang_up(vgpu, &lines);

	ck_assert(status == EXIT_SUCCESS || status == EXIT_FAILURE);
	ck_assert_uint_eq(lines, status == EXIT_SUCCESS ? 0 : 1);
}
