/*
 * Holding by NVIDIA's resource manager: a session's compute channels are disabled, which takes a
 * running kernel off the GPU, and enabled again. In the full form, both ways: what was disabled
 * for scheduling only sleeps on after it was enabled, until something else changes the runlist.
 *
 * A channel's numbers are good for the open file alone that made it (channels.h). Closing that file
 * is important too: it keeps a dead process's GPU memory alive.
 */
#include "backend/sched/hold.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "backend/sched/rm.h"
#include "common/log.h"
#include "common/util.h"

/* Of the hardware: how long others run beside what is about to be held, or has just been. */
#define TIMESLICE_US 1000

/* Holding one and letting another go takes 0.75 ms, and the GPU has two changes of context. */
#define DRAIN_NS FGV_NS_PER_MS

/* A control that ran into a time-out of the driver's is tried so often. */
#define TRIES 3

struct rm_hold {
	struct fgv_hold hold; /* first */
	fgv_hold_rm_call *call;
	int fd;
	struct fgv_channels channels;
};

_Static_assert(FGV_CHANNELS_MAX == 64, "as many as a control takes");

static int call_kernel(int fd, unsigned long number, void *data)
{
	return ioctl(fd, number, data);
}

/* The status, or a negative errno. */
static int control(const struct rm_hold *rm, uint32_t client, uint32_t object,
		   enum fgv_rm_command command, void *params, size_t len)
{
	struct fgv_rm_control message = {
		.client = client,
		.object = object,
		.command = (uint32_t)command,
		.params = (uintptr_t)params,
		.params_len = (uint32_t)len,
		.status = UINT32_MAX,
	};

	if (rm->call(rm->fd, FGV_RM_IOCTL(FGV_RM_CONTROL, struct fgv_rm_control), &message) < 0)
		return -errno;
	return (int)(message.status & INT32_MAX);
}

static int disable(const struct rm_hold *rm, bool disables)
{
	const struct fgv_channels *channels = &rm->channels;
	struct fgv_rm_disable params = {
		.disable = disables,
		.count = channels->channel_count,
	};
	int status = FGV_RM_TIMEOUT;

	for (uint32_t i = 0; i < channels->channel_count; i++) {
		params.clients[i] = channels->channels[i].client;
		params.channels[i] = channels->channels[i].channel;
	}
	for (int i = 0; i < TRIES && (status == FGV_RM_TIMEOUT || status == FGV_RM_TIMEOUT_RETRY);
	     i++)
		status = control(rm, channels->client, channels->subdevice, FGV_RM_DISABLE_CHANNELS,
				 &params, sizeof(params));
	return status;
}

static int restart(const struct rm_hold *rm)
{
	struct fgv_rm_restart params = {.force = 1};
	const struct fgv_channel *first = &rm->channels.channels[0];

	return control(rm, first->client, first->channel, FGV_RM_RESTART_RUNLIST, &params,
		       sizeof(params));
}

static int set_timeslices(const struct rm_hold *rm)
{
	int status = FGV_RM_OK;

	for (uint32_t i = 0; i < rm->channels.group_count && status == FGV_RM_OK; i++) {
		const struct fgv_channel_group *group = &rm->channels.groups[i];
		struct fgv_rm_timeslice params = {TIMESLICE_US};

		status = control(rm, group->client, group->group, FGV_RM_SET_TIMESLICE, &params,
				 sizeof(params));
	}
	return status;
}

static const char *status_text(int status)
{
	if (status < 0)
		return strerror(-status);
	switch (status) {
	case FGV_RM_OK:
		return "yes";
	case FGV_RM_NO_RIGHT:
		return "no right to";
	case FGV_RM_BAD_ARGUMENT:
		return "arguments not understood";
	case FGV_RM_BAD_CLIENT:
		return "not this file's client";
	case FGV_RM_NOT_SUPPORTED:
		return "not supported";
	case FGV_RM_TIMEOUT:
	case FGV_RM_TIMEOUT_RETRY:
		return "time-out";
	default:
		return "no";
	}
}

static int error_of(int status)
{
	if (status <= 0)
		return status;
	return status == FGV_RM_NO_RIGHT ? -EPERM : -EIO;
}

static int hold_rm(struct fgv_hold *hold)
{
	int status = disable((struct rm_hold *)hold, true);

	if (status)
		fgv_error("holding: channels can't be disabled: %s (%#x)", status_text(status),
			  (unsigned)status);
	return error_of(status);
}

/* Where the driver could not do it at once, it may do when it makes the runlist anew. */
static int release_rm(struct fgv_hold *hold)
{
	const struct rm_hold *rm = (struct rm_hold *)hold;
	int status = disable(rm, false), restarted;

	if (!status)
		return 0;
	restarted = restart(rm);
	fgv_error("holding: channels can't be enabled: %s (%#x); the runlist restarts: %s (%#x)",
		  status_text(status), (unsigned)status, status_text(restarted),
		  (unsigned)restarted);
	return error_of(disable(rm, false));
}

static void forget_rm(struct fgv_hold *hold)
{
	close(((struct rm_hold *)hold)->fd);
	free(hold);
}

static const struct fgv_holder rm_holder = {
	.name = "NVIDIA's resource manager",
	.drain_ns = DRAIN_NS,
	.keeps_memory = true, /* the open file does */
	.hold = hold_rm,
	.release = release_rm,
	.forget = forget_rm,
};

/* --- Trying it out ---------------------------------------------------------- */

struct text {
	char *text;
	size_t len, used;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text->text + text->used, text->len - text->used, format, args);
	va_end(args);
	if (len > 0)
		text->used += (size_t)len < text->len - text->used ? (size_t)len
								   : text->len - text->used - 1;
}

/* 0 or a negative errno. */
static int tell(struct text *text, const char *what, int status)
{
	say(text, "%s: %s (%#x); ", what, status_text(status), (unsigned)status);
	return error_of(status);
}

/* Only the resource manager's own file is sent calls of its kind. */
static int check_file(int fd, struct text *text)
{
	struct stat file;

	if (fd < 0 || fstat(fd, &file) < 0 || !S_ISCHR(file.st_mode) ||
	    major(file.st_rdev) != FGV_RM_MAJOR || minor(file.st_rdev) != FGV_RM_MINOR) {
		say(text, "no file of the resource manager came with it; ");
		return -EBADF;
	}
	return 0;
}

static int check(const struct fgv_channels *channels, struct text *text)
{
	if (!channels->subdevice || !channels->group_count || !channels->channel_count) {
		say(text, "not all that is needed was learnt; ");
		return -ENOENT;
	}
	if (channels->is_partial || channels->group_count > FGV_CHANNEL_GROUPS_MAX ||
	    channels->channel_count > FGV_CHANNELS_MAX) {
		say(text, "there are more channels than can be held at once; ");
		return -E2BIG;
	}
	return 0;
}

static int try_out(struct rm_hold *rm, struct text *text)
{
	int ret = tell(text, "time slice", set_timeslices(rm));

	if (!ret)
		ret = tell(text, "disable", disable(rm, true));
	if (ret)
		return ret;
	ret = tell(text, "enable", disable(rm, false));
	/* Not needed, and so no reason to refuse; but good to know. */
	tell(text, "restart the runlist", restart(rm));
	return ret && release_rm(&rm->hold) ? -ENOTRECOVERABLE : ret;
}

int fgv_hold_rm_adopt(const struct fgv_channels *channels, int fd, fgv_hold_rm_call *call,
		      struct fgv_hold **out, char *why, size_t why_len)
{
	struct text text = {why, why_len, 0};
	struct rm_hold *rm;
	int ret;

	*why = '\0';
	say(&text, "subdevice %#x, compute groups: %u, channels: %u; ", channels->subdevice,
	    channels->group_count, channels->channel_count);
	ret = check(channels, &text);
	if (!ret && !call)
		ret = check_file(fd, &text);
	if (ret)
		return ret;
	rm = calloc(1, sizeof(*rm));
	if (!rm)
		return -ENOMEM;
	rm->hold.holder = &rm_holder;
	rm->call = call ? call : call_kernel;
	rm->fd = fd;
	rm->channels = *channels;
	ret = try_out(rm, &text);
	if (ret) {
		free(rm);
		return ret;
	}
	*out = &rm->hold;
	return 0;
}
