/*
 * Stands in the place of fairgv-vgpu where the daemon is tested: says that its GPU is open,
 * takes its setup, says welcome, and does what the name of the guest program tells it to.
 *
 *   (other)   ends when the guest's connection or the daemon does
 *   fail      ends with status 3 before the welcome
 *   crash     kills itself before the welcome
 *   stubborn  does not end when told to
 *   greedy    takes the grant, and keeps it
 *   forger    takes the grant without being given it
 *   unable    says in the welcome that it can't begin
 *   deaf      does not answer lane messages
 *   liar      answers them wrongly
 *   babbler   says something more when all lanes are attached
 *   shouter   writes a line into its log that names another VM, and then many
 *
 * Lanes may be attached. Each time that its doorbell rings it counts up the first word of the
 * arena, and rings the last lane's. The arena's second word is the session's number.
 *
 * Before there is a program, it does what the file $FAKE_OPENING says: "fail" says that the
 * GPU can't be opened, "die" ends at once with status 5, "wait" says nothing.
 *
 * The welcome's text lists its descriptors at the start; its account shows what
 * tests look for in the log.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/sched/arbiter.h"
#include "backend/sched/grant.h"
#include "backend/shared.h"
#include "shmring/park.h"
#include "shmring/window.h"

static void list_descriptors(char *text, size_t len)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t used = 0;

	if (!folder)
		exit(10);
	text[0] = '\0';
	while ((entry = readdir(folder)) && used < len) {
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
			used += (size_t)snprintf(text + used, len - used, " %s", entry->d_name);
	}
	closedir(folder);
}

/* A message of @len bytes from the daemon. Returns how many descriptors came with it. */
static unsigned receive(void *data, size_t len, int *fds)
{
	char control[CMSG_SPACE(FGV_SETUP_FDS * sizeof(int))];
	struct iovec iov = {data, len};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t got = recvmsg(FGV_CONTROL_FD, &message, 0);

	if (!got)
		exit(0); /* not wanted */
	if (got != (ssize_t)len)
		exit(11);
	header = CMSG_FIRSTHDR(&message);
	if (!header)
		return 0;
	memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	return (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

static void read_mode(char *mode, size_t len)
{
	const char *path = getenv("FAKE_OPENING");
	FILE *file = path ? fopen(path, "r") : NULL;

	mode[0] = '\0';
	if (!file)
		return;
	if (!fgets(mode, (int)len, file))
		mode[0] = '\0';
	fclose(file);
}

/* As the keeper of a VM's images, until the daemon wants none. */
static void keep_nothing(void)
{
	char word;

	while (recv(FGV_CONTROL_FD, &word, sizeof(word), 0) > 0)
		continue;
	exit(0);
}

static void open_gpu(void)
{
	struct fgv_prepared report = {0};
	struct fgv_prepare prepare;
	int fds[FGV_SETUP_FDS];
	unsigned count = receive(&prepare, sizeof(prepare), fds);
	char mode[8];

	if (prepare.keeps_images)
		keep_nothing();
	if (count != (prepare.soft ? FGV_SEAT_FDS : 0))
		exit(12);
	read_mode(mode, sizeof(mode));
	for (unsigned i = 0; prepare.soft && i < FGV_SEAT_FDS; i++)
		close(fds[i]);
	if (!strcmp(mode, "die"))
		exit(5);
	if (!strcmp(mode, "wait"))
		return;
	if (!strcmp(mode, "fail")) {
		report.status = CUDA_ERROR_NO_DEVICE;
		strcpy(report.reason, "the test says so");
	}
	send(FGV_CONTROL_FD, &report, sizeof(report), MSG_NOSIGNAL);
}

static bool can_write(int fd)
{
	uint64_t word = 0;

	return mmap(NULL, sizeof(word), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED ||
	       pwrite(fd, &word, sizeof(word), 0) >= 0;
}

static void fill_account(const struct fgv_setup *setup, const int *fds)
{
	struct fgv_accounts *accounts = mmap(NULL, sizeof(*accounts), PROT_READ | PROT_WRITE,
					     MAP_SHARED, fds[FGV_SETUP_ACCOUNT], 0);
	struct fgv_account *account;

	if (accounts == MAP_FAILED)
		exit(13);
	/* What the VM may have, and the others' accounts, are not a session's to write. */
	if (can_write(fds[FGV_SETUP_ALLOWANCE]) || can_write(fds[FGV_SETUP_ACCOUNTS]))
		exit(21);
	account = &accounts->sessions[setup->account];
	if (account->memory_bytes || account->requests)
		exit(14); /* something stayed behind from the session before */
	account->memory_bytes = 4096 + setup->context_bytes;
	account->requests = 7;
	account->round_trips = 5;
	account->launches = 3;
	account->doorbells_rung = 2;
	account->doorbells_received = 6;
}

static struct fgv_grant *map_grant(const int *fds)
{
	struct fgv_grant *grant = mmap(NULL, sizeof(*grant), PROT_READ | PROT_WRITE, MAP_SHARED,
				       fds[FGV_SETUP_GRANT], 0);

	if (grant == MAP_FAILED || fgv_grant_load(grant) || grant->wants)
		exit(16);
	return grant;
}

static void take_grant(const int *fds)
{
	struct fgv_grant *grant = map_grant(fds);

	__atomic_store_n(&grant->wants, 1, __ATOMIC_RELEASE);
	fgv_doorbell_ring(fds[FGV_SETUP_SCHED_BELL]);
	while (fgv_grant_state(fgv_grant_load(grant)) != FGV_GRANT_BUSY)
		usleep(100);
}

static void forge_grant(const int *fds)
{
	struct fgv_grant *grant = map_grant(fds);

	fgv_grant_move(grant, 0, FGV_GRANT_BUSY);
	fgv_doorbell_ring(fds[FGV_SETUP_SCHED_BELL]);
}

static void write_line(const char *line)
{
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		return; /* nobody keeps up with it */
}

static void shout(void)
{
	write_line("<3>vm b: this is not so\nfairgv-backend: nor this\n");
	for (unsigned i = 0; i < 10000; i++)
		write_line("<4>more\n");
}

static void send_welcome(const struct fgv_setup *setup, const int *fds, const char *text)
{
	struct fgv_msg_welcome welcome = {
		.type = FGV_MSG_WELCOME,
		.version = FGV_WIRE_VERSION,
		.lanes = setup->lanes,
		.window_len = setup->window_len,
		.lanes_off = setup->lanes_off,
		.arena_off = setup->arena_off,
		.arena_len = setup->arena_len,
		.staging_len = setup->staging_len,
	};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec iov = {&welcome, sizeof(welcome)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	if (!strcmp(setup->program, "unable"))
		welcome.status = CUDA_ERROR_NO_DEVICE;
	snprintf(welcome.vm, sizeof(welcome.vm), "%s", setup->vm);
	snprintf(welcome.text, sizeof(welcome.text), "%s", text);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fds[FGV_SETUP_WINDOW], 2 * sizeof(int));
	sendmsg(fds[FGV_SETUP_CONNECTION], &message, MSG_NOSIGNAL);
}

static uint32_t *map_arena(const struct fgv_setup *setup, const int *fds)
{
	struct fgv_window window = {.len = setup->window_len};
	uint32_t *arena;

	if (fgv_window_map_at(&window, fds[FGV_SETUP_WINDOW], setup->window_off))
		exit(18);
	arena = (uint32_t *)(window.base + setup->arena_off);
	if (arena[0] || arena[1])
		exit(19); /* something stayed behind from the session before */
	arena[1] = setup->session;
	return arena;
}

/* The lane's doorbell, or -1 where the guest has hung up. */
static int attach_lane(const struct fgv_setup *setup, int connection_fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct fgv_msg_lane lane;
	struct iovec iov = {&lane, sizeof(lane)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int bell_fd;

	if (recvmsg(connection_fd, &message, 0) != sizeof(lane) || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&bell_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(bell_fd));
	if (lane.type != FGV_MSG_LANE || lane.lane >= setup->lanes || lane.status)
		exit(20);
	if (!strcmp(setup->program, "liar"))
		lane.lane++;
	if (strcmp(setup->program, "deaf"))
		send(connection_fd, &lane, sizeof(lane), MSG_NOSIGNAL);
	if (!strcmp(setup->program, "babbler") && lane.lane + 1 == setup->lanes)
		send(connection_fd, &lane, sizeof(lane), MSG_NOSIGNAL);
	return bell_fd;
}

static void serve(const struct fgv_setup *setup, const int *fds)
{
	struct pollfd polled[] = {
		{.fd = fds[FGV_SETUP_CONNECTION], .events = POLLIN | POLLRDHUP},
		{.fd = FGV_CONTROL_FD, .events = POLLIN},
		{.fd = fds[FGV_SETUP_DOORBELL], .events = POLLIN},
	};
	uint32_t *arena = map_arena(setup, fds);
	int bell_fd = -1;

	for (;;) {
		if (poll(polled, 3, -1) < 1)
			continue;
		if (polled[1].revents || polled[0].revents & (POLLRDHUP | POLLHUP))
			return;
		if (polled[0].revents) {
			close(bell_fd);
			bell_fd = attach_lane(setup, fds[FGV_SETUP_CONNECTION]);
			if (bell_fd < 0)
				return;
		}
		if (polled[2].revents) {
			fgv_doorbell_clear(fds[FGV_SETUP_DOORBELL]);
			__atomic_add_fetch(&arena[0], 1, __ATOMIC_SEQ_CST);
			fgv_doorbell_ring(bell_fd);
		}
	}
}

int main(void)
{
	char text[200];
	struct fgv_setup setup;
	int fds[FGV_SETUP_FDS];

	list_descriptors(text, sizeof(text));
	open_gpu();
	if (receive(&setup, sizeof(setup), fds) != FGV_SETUP_FDS)
		exit(15);
	if (!setup.slice_ns || !setup.idle_ns)
		exit(17);
	fill_account(&setup, fds);
	if (!strcmp(setup.program, "fail"))
		return 3;
	if (!strcmp(setup.program, "crash"))
		raise(SIGKILL);
	if (!strcmp(setup.program, "stubborn"))
		signal(SIGTERM, SIG_IGN);
	if (!strcmp(setup.program, "greedy"))
		take_grant(fds);
	if (!strcmp(setup.program, "shouter"))
		shout();
	send_welcome(&setup, fds, text);
	if (!strcmp(setup.program, "unable"))
		return 4;
	if (!strcmp(setup.program, "forger"))
		forge_grant(fds);
	while (!strcmp(setup.program, "stubborn"))
		pause();
	serve(&setup, fds);
	return 0;
}
