/*
 * The sandbox: namespaces, files, capabilities, user, limits, system calls; see sandbox.h.
 */
#define _GNU_SOURCE
#include "backend/vgpu/sandbox/sandbox.h"

#include <cap-ng.h>
#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/shared.h"
#include "backend/vgpu/sandbox/landlock.h"
#include "backend/vgpu/sandbox/remap.h"
#include "common/log.h"
#include "common/util.h"

#define NOBODY 65534

/* Sleeps end within this of what was asked for; the default is 50 us. */
#define TIMER_SLACK_NS 1000

static int end_with_parent(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

int fgv_sandbox_begin(void)
{
	int err = end_with_parent();

	if (err < 0)
		return err;
	fgv_limits_begin();
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS) < 0)
		return -errno;
	return 0;
}

/*
 * Nothing here needs a network, other processes' shared memory or the host's name; the filter
 * ends the calls that lead there. These are for the day when it has a hole. Clients of MPS keep
 * the network: they find each other by abstract sockets.
 */
static uint32_t leave_namespaces(bool mps)
{
	int flags = CLONE_NEWIPC | CLONE_NEWUTS | (mps ? 0 : CLONE_NEWNET);

	if (unshare(flags) == 0)
		return 0;
	fgv_debug("can't leave the namespaces");
	return FGV_LACKS_NAMESPACES;
}

static int drop_capabilities(void)
{
	capng_clear(CAPNG_SELECT_BOTH);
	if (geteuid() == 0 && capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED,
					    CAP_SETUID, CAP_SETGID, -1) != 0)
		return -EPERM;
	/* The bounding set needs a capability to change; without that there is no need to. */
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return -EPERM;
	return 0;
}

/*
 * The groups without which the GPU's device files can't be opened again, which the driver does
 * for each mapping.
 */
static void find_groups(struct fgv_sandbox *sandbox)
{
	glob_t found;

	if (glob("/dev/nvidia*", 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct stat file;
		size_t count = sandbox->group_count;

		if (stat(found.gl_pathv[i], &file) < 0 || !S_ISCHR(file.st_mode) ||
		    (file.st_mode & (S_IROTH | S_IWOTH)) == (S_IROTH | S_IWOTH))
			continue;
		if (file.st_gid == 0 || !(file.st_mode & S_IWGRP) || count == FGV_SANDBOX_GROUPS)
			sandbox->lacks |= FGV_LACKS_DEVICES;
		else if (count == 0 || sandbox->groups[count - 1] != file.st_gid)
			sandbox->groups[sandbox->group_count++] = file.st_gid;
	}
	globfree(&found);
}

int fgv_sandbox_enter(struct fgv_sandbox *sandbox, const struct fgv_prepare *prepare)
{
	const struct fgv_filter_terms terms = {
		.cuda = !prepare->soft,
		.listen = prepare->listen,
		.record = prepare->record,
	};
	int err;

	*sandbox = (struct fgv_sandbox){.listener = -1};
	if (terms.cuda)
		find_groups(sandbox);
	sandbox->lacks |= leave_namespaces(prepare->shares_context);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	err = fgv_landlock_enter(terms.cuda, prepare->shares_context);
	if (err == -ENOSYS || err == -EOPNOTSUPP || err == -EPERM)
		sandbox->lacks |= FGV_LACKS_LANDLOCK;
	else if (err < 0)
		return err;
	err = drop_capabilities();
	return err < 0 ? err : fgv_filter_init(&sandbox->filter, &terms);
}

/* 0; -EINVAL: a number that this user namespace does not have; or another negative errno. */
static int become(const struct fgv_sandbox *sandbox, uid_t uid)
{
	if (setgroups(sandbox->group_count, sandbox->groups) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

/*
 * With the user go, in all threads, the capabilities. A process that is root only in
 * a user namespace without anybody else stays what it is, which is nobody outside.
 */
static int change_user(struct fgv_sandbox *sandbox, uint32_t uid)
{
	int err = -EINVAL;

	if (uid == FGV_NO_UID || geteuid() != 0)
		sandbox->lacks |= FGV_LACKS_UID;
	if (geteuid() != 0)
		return 0;
	if (uid != FGV_NO_UID)
		err = become(sandbox, uid);
	if (err == -EINVAL || err == -EPERM) {
		sandbox->lacks |= FGV_LACKS_UID;
		err = become(sandbox, NOBODY);
	}
	if (err == -EINVAL || err == -EPERM) {
		fgv_debug("cannot become nobody here");
		err = 0;
	}
	return err;
}

/* A change of the user takes both back. */
static int renew_begin(void)
{
	int err = end_with_parent();

	if (err < 0)
		return err;
	return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

static int take_limits(struct fgv_sandbox *sandbox, struct fgv_limits limits)
{
	/* Others who are this user would be counted. */
	if (sandbox->lacks & FGV_LACKS_UID)
		limits.threads = 0;
	return fgv_limits_set(&limits);
}

int fgv_sandbox_close(struct fgv_sandbox *sandbox, const struct fgv_sandbox_terms *terms)
{
	int err = change_user(sandbox, terms->uid);

	if (err == 0)
		err = renew_begin();
	if (err == 0)
		err = take_limits(sandbox, terms->limits);
	if (err < 0)
		return err;
	/* Where the user could not be changed: at least this thread keeps no capability. */
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return -EPERM;
	err = fgv_remap_confine(terms->window, terms->window_len);
	if (err == 0)
		err = fgv_filter_load(&sandbox->filter, &sandbox->listener);
	if (err == 0 && sandbox->filter.terms.listen && sandbox->listener < 0)
		sandbox->lacks |= FGV_LACKS_LISTENER;
	fgv_filter_fini(&sandbox->filter);
	return err;
}
