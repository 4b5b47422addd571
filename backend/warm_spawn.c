/*
 * How a vGPU process is started, and what it and further parts of its session are told of their
 * GPUs.
 */
#define _GNU_SOURCE
#include "backend/warm_priv.h"

#include <errno.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/fds.h"
#include "backend/sched/arbiter.h"
#include "backend/spawn.h"

/* What personality() only answers to. */
#define PERSONALITY_ASK 0xffffffffu

static struct fgv_prepare prepare_for(const struct fgv_warm *warm, const struct fgv_device *device)
{
	return (struct fgv_prepare){
		.soft = device->soft,
		.ordinal = device->ordinal,
		.shares_context = warm->config->context == FGV_CONTEXT_MPS,
		.soft_memory_bytes = warm->config->soft_memory_bytes,
		.is_divided = warm->config->policy->set_units != NULL,
		.listen = 1,
		.record = warm->config->record,
	};
}

/* @seat: the descriptors of its seat, where the device is a soft one. */
static int send_prepare(const struct fgv_warm *warm, unsigned number, int control_fd,
			const int seat[FGV_SEAT_FDS])
{
	const struct fgv_device *device = &warm->devices->list[number];
	const struct fgv_prepare prepare = prepare_for(warm, device);

	return fgv_fds_send(control_fd, &prepare, sizeof(prepare), seat,
			    device->soft ? FGV_SEAT_FDS : 0);
}

/*
 * What is the device's and what the program has must not lie at the same addresses, in either
 * process. Programs have their memory at the upper end; with the kernel's earlier layout the
 * vGPU's, and what the driver takes for the device, begins at a third of the address space. Where
 * that is forbidden other addresses are asked for when two meet, which may fail.
 */
static int spawn_apart(const char *path, char *const argv[], const struct fgv_spawn_fd fds[3],
		       pid_t *pid)
{
#ifdef __SANITIZE_THREAD__ /* which has other plans for these addresses */
	int before = -1;
#else
	int before = personality(PERSONALITY_ASK);
#endif
	int ret;

	if (before >= 0)
		personality((unsigned)before | ADDR_COMPAT_LAYOUT);
	ret = fgv_spawn(path, argv, fds, 3, false, pid);
	if (before >= 0)
		personality((unsigned)before);
	return ret;
}

/*
 * The order is sent before the process is there to take it: so whatever fails, there
 * is no process to get rid of.
 */
static int spawn_with(const struct fgv_warm *warm, unsigned device, const int seat[FGV_SEAT_FDS],
		      int log_fd, pid_t *pid, int *control_fd)
{
	char *argv[] = {"fairgv-vgpu", NULL};
	struct fgv_spawn_fd fds[] = {
		{log_fd, STDOUT_FILENO},
		{log_fd, STDERR_FILENO},
		{.its = FGV_CONTROL_FD},
	};
	int pair[2];
	int ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fds[2].ours = pair[1];
	ret = send_prepare(warm, device, pair[0], seat);
	if (!ret)
		ret = spawn_apart(warm->vgpu_path, argv, fds, pid);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	*control_fd = pair[0];
	return ret;
}

int fgv_warm_spawn(const struct fgv_warm *warm, unsigned device, int log_fd, pid_t *pid,
		   int *control_fd)
{
	struct fgv_arbiter *arbiter = warm->devices->list[device].arbiter;
	struct fgv_arbiter_seat *seat = NULL;
	int fds[FGV_SEAT_FDS];
	int ret = arbiter ? fgv_arbiter_attach(arbiter, fgv_config_pages(warm->config), &seat, fds)
			  : 0;

	if (ret)
		return ret;
	ret = spawn_with(warm, device, fds, log_fd, pid, control_fd);
	if (seat && ret)
		fgv_arbiter_detach(seat);
	else if (seat)
		fgv_arbiter_started(seat, *pid);
	return ret;
}

int fgv_warm_add_part(struct fgv_warm *warm, unsigned device, struct fgv_setup_part *part,
		      int fds[FGV_SETUP_PART_FDS], pid_t pid, int control_fd)
{
	const struct fgv_device *of = &warm->devices->list[device];
	struct fgv_arbiter_seat *seat = NULL;
	int ret = of->arbiter ? fgv_arbiter_attach(of->arbiter, fgv_config_pages(warm->config),
						   &seat, &fds[FGV_SETUP_SEAT])
			      : 0;

	if (ret)
		return ret;
	part->prepare = prepare_for(warm, of);
	ret = fgv_fds_send(control_fd, part, sizeof(*part), fds,
			   seat ? FGV_SETUP_PART_FDS : FGV_SETUP_SEAT);
	if (seat && ret)
		fgv_arbiter_detach(seat);
	else if (seat)
		fgv_arbiter_started(seat, pid);
	return ret;
}
