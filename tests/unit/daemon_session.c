/*
 * Stands in the place of fairgv-vgpu where the daemon is tested: takes its setup,
 * says welcome, and does what the name of the guest program tells it to.
 *
 *   (other)   ends when the guest's connection or the daemon does
 *   fail      ends with status 3 before the welcome
 *   crash     kills itself before the welcome
 *   stubborn  does not end when told to
 *   greedy    takes the grant, and keeps it
 *   forger    takes the grant without being given it
 *
 * The welcome's text lists its descriptors at the start; its account shows what
 * tests look for in the log.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/grant.h"
#include "backend/shared.h"
#include "shmring/park.h"

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

/* Returns how many descriptors came with the setup. */
static unsigned receive_setup(struct fgv_setup *setup, int *fds)
{
	char control[CMSG_SPACE(FGV_SETUP_FDS * sizeof(int))];
	struct iovec iov = {setup, sizeof(*setup)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;

	if (recvmsg(FGV_CONTROL_FD, &message, 0) != sizeof(*setup))
		exit(11);
	header = CMSG_FIRSTHDR(&message);
	if (!header)
		exit(12);
	memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	return (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

static void fill_account(const struct fgv_setup *setup, const int *fds)
{
	struct fgv_accounts *accounts = mmap(NULL, sizeof(*accounts), PROT_READ | PROT_WRITE,
					     MAP_SHARED, fds[FGV_SETUP_ACCOUNTS], 0);
	struct fgv_account *account;

	if (accounts == MAP_FAILED)
		exit(13);
	account = &accounts->sessions[setup->account];
	if (account->memory_bytes || account->requests)
		exit(14); /* something stayed behind from the session before */
	account->memory_bytes = 4096;
	account->requests = 7;
	account->round_trips = 5;
	account->launches = 3;
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

	snprintf(welcome.vm, sizeof(welcome.vm), "%s", setup->vm);
	snprintf(welcome.text, sizeof(welcome.text), "%s", text);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fds[FGV_SETUP_WINDOW], 2 * sizeof(int));
	sendmsg(fds[FGV_SETUP_CONNECTION], &message, MSG_NOSIGNAL);
}

static void await_end(int connection_fd)
{
	struct pollfd fds[] = {
		{.fd = connection_fd, .events = POLLRDHUP},
		{.fd = FGV_CONTROL_FD, .events = POLLIN},
	};

	while (poll(fds, 2, -1) < 1)
		continue;
}

int main(void)
{
	char text[200];
	struct fgv_setup setup;
	int fds[FGV_SETUP_FDS];
	unsigned count;

	list_descriptors(text, sizeof(text));
	count = receive_setup(&setup, fds);
	if (count != (setup.soft ? FGV_SETUP_FDS : FGV_SETUP_SOFT_DEVICE))
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
	send_welcome(&setup, fds, text);
	if (!strcmp(setup.program, "forger"))
		forge_grant(fds);
	while (!strcmp(setup.program, "stubborn"))
		pause();
	await_end(fds[FGV_SETUP_CONNECTION]);
	return 0;
}
