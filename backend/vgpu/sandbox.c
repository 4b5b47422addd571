/*
 * The sandbox: capabilities, user, system calls.
 *
 * The filter names what is denied. A list of what is allowed would have to follow every
 * release of NVIDIA's driver library, which opens devices, maps them, starts threads
 * and talks to them over pipes and sockets whenever it sees fit.
 */
#define _GNU_SOURCE
#include "backend/vgpu/sandbox.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "common/log.h"
#include "common/util.h"

#define NOBODY 65534

/* Sleeps end within this of what was asked for; the default is 50 us. */
#define TIMER_SLACK_NS 1000

/* Denied whatever their arguments. Some are unknown to old kernels or libraries. */
static const char *const denied[] = {
	/* other programs */
	"execve",
	"execveat",
	"fork",
	"vfork",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"process_mrelease",
	"kcmp",
	"pidfd_open",
	"pidfd_getfd",
	"pidfd_send_signal",
	"tkill",
	"rt_sigqueueinfo",
	"rt_tgsigqueueinfo",
	"migrate_pages",
	"move_pages",
	"set_mempolicy_home_node",
	/* other machines */
	"socket",
	"connect",
	"bind",
	"listen",
	"accept",
	"accept4",
	/* other views of this one */
	"unshare",
	"setns",
	"chroot",
	"pivot_root",
	"mount",
	"umount",
	"umount2",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"name_to_handle_at",
	"open_by_handle_at",
	"mknod",
	"mknodat",
	/* other users */
	"setuid",
	"setgid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setfsuid",
	"setfsgid",
	"setgroups",
	"capset",
	"chown",
	"fchown",
	"lchown",
	"fchownat",
	/* the kernel */
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"keyctl",
	"add_key",
	"request_key",
	"init_module",
	"finit_module",
	"delete_module",
	"create_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"swapon",
	"swapoff",
	"iopl",
	"ioperm",
	"modify_ldt",
	"personality",
	"syslog",
	"acct",
	"quotactl",
	"quotactl_fd",
	"fanotify_init",
	"lookup_dcookie",
	"vhangup",
	"nfsservctl",
	"uselib",
	"ustat",
	"sysfs",
	"_sysctl",
	/* its clocks and names */
	"settimeofday",
	"stime",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"sethostname",
	"setdomainname",
};

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

static int end_with_parent(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

int fgv_sandbox_begin(void)
{
	struct rlimit none = {0, 0};
	int err = end_with_parent();

	if (err < 0)
		return err;
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	return drop_capabilities();
}

/*
 * With the user go, in all threads, the capabilities. A process that is root only in
 * a user namespace without anybody else stays what it is, which is nobody outside.
 */
static int become_nobody(void)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0) {
		if (errno != EINVAL && errno != EPERM)
			return -errno;
		fgv_debug("cannot become nobody here");
	}
	return end_with_parent();
}

static int deny(scmp_filter_ctx filter, const char *name)
{
	int number = seccomp_syscall_resolve_name(name);
	int err;

	if (number == __NR_SCMP_ERROR)
		return 0;
	err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
	/* -EDOM: one that this architecture does not have. */
	return err == -EDOM ? 0 : err;
}

/*
 * Threads may be made, processes and namespaces not. clone3() keeps its flags in memory,
 * where a filter can't look; told that there is none, the C library uses clone().
 */
static int deny_processes(scmp_filter_ctx filter)
{
	const uint32_t deny = SCMP_ACT_ERRNO(EPERM);
	int err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	if (err == 0)
		err = seccomp_rule_add(filter, deny, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
	return err;
}

/* Signals go to this process alone; with another number they would reach the user's others. */
static int deny_signals(scmp_filter_ctx filter)
{
	const uint32_t deny = SCMP_ACT_ERRNO(EPERM);
	scmp_datum_t self = (scmp_datum_t)getpid();
	int err = seccomp_rule_add(filter, deny, SCMP_SYS(kill), 1, SCMP_A0(SCMP_CMP_NE, self));

	if (err == 0)
		err = seccomp_rule_add(filter, deny, SCMP_SYS(tgkill), 1,
				       SCMP_A0(SCMP_CMP_NE, self));
	if (err == 0)
		err = seccomp_rule_add(filter, deny, SCMP_SYS(prlimit64), 1,
				       SCMP_A0(SCMP_CMP_NE, 0));
	return err;
}

static int load_filter(scmp_filter_ctx filter)
{
	/* Of all threads, those that the driver has started too; with it go new privileges. */
	int err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	for (size_t i = 0; err == 0 && i < FGV_ARRAY_LEN(denied); i++)
		err = deny(filter, denied[i]);
	if (err == 0)
		err = deny_processes(filter);
	if (err == 0)
		err = deny_signals(filter);
	return err == 0 ? seccomp_load(filter) : err;
}

int fgv_sandbox_close(void)
{
	scmp_filter_ctx filter;
	int err = become_nobody();

	if (err < 0)
		return err;
	/* Where nobody could not be become: at least this thread keeps no capability. */
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return -EPERM;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return -ENOMEM;
	err = load_filter(filter);
	seccomp_release(filter);
	return err;
}
