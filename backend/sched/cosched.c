/*
 * Coscheduling; see cosched.h. To favour a thread takes three system calls, 3 to 6 us in all,
 * and as much to put it back: little enough for the scheduler's thread, which does it once the
 * grant has been handed over.
 */
#define _GNU_SOURCE
#include "backend/sched/cosched.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/sched/cosched_proc.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

/* Ten steps of nice make nine times the weight; the slice is the shortest that Linux has. */
#define BETTER	 10
#define NICE_MIN (-20)
#define SHORT_NS (100 * FGV_NS_PER_US)

#define KNOWN 16 /* vCPUs of one session */

/* A guest that names others all the time does not keep the main thread busy. */
#define ASK_NS (100 * FGV_NS_PER_MS)

/* The kernel's struct sched_attr, as far as it is older than what the C library has. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns; /* of SCHED_OTHER: its slice */
	uint64_t deadline_ns;
	uint64_t period_ns;
};
_Static_assert(sizeof(struct attributes) == 48, "SCHED_ATTR_SIZE_VER0");

/* What a favoured thread starts gets nice 0; only root can take that back. */
#define RESET_ON_FORK 1

/* A thread is judged so often: whether it waited for a processor for this part of the time. */
#define JUDGE_NS   FGV_NS_PER_SEC
#define WAIT_SHARE 200

struct known {
	int32_t vcpu;
	pid_t thread; /* 0: nothing is known here */
	uint64_t judged_ns;
	uint64_t waited_ns; /* up to then, in all */
	bool waits;
};

struct fgv_cosched_guest {
	struct fgv_cosched *cosched;
	struct fgv_cosched_owner owner;
	int folder;	   /* /proc/PID/task; negative: there is none */
	int32_t asked;	   /* the vCPU to look for; -1: none */
	uint64_t asked_ns; /* when it was asked last; 0: never */
	struct known known[KNOWN];
	unsigned oldest; /* of those, the next to be forgotten */
	pid_t thread;	 /* that is favoured; 0: none is */
	int32_t vcpu;	 /* whose */
	struct attributes before, favoured;
	uint64_t count;
};

static int get_attributes(pid_t thread, struct attributes *attributes)
{
	*attributes = (struct attributes){0};
	return syscall(SYS_sched_getattr, thread, attributes, sizeof(*attributes), 0) ? -errno : 0;
}

static int set_attributes(pid_t thread, const struct attributes *attributes)
{
	struct attributes copy = *attributes;

	copy.size = sizeof(copy);
	return syscall(SYS_sched_setattr, thread, &copy, 0) ? -errno : 0;
}

int fgv_cosched_init(struct fgv_cosched *cosched)
{
	struct attributes own;
	int fd = fgv_doorbell_create();

	if (fd < 0)
		return fd;
	*cosched = (struct fgv_cosched){.bell_fd = fd};
	if (!get_attributes(0, &own) && own.policy == SCHED_OTHER)
		cosched->slice_ns = own.runtime_ns;
	return 0;
}

void fgv_cosched_fini(struct fgv_cosched *cosched)
{
	close(cosched->bell_fd);
}

struct fgv_cosched_guest *fgv_cosched_attach(struct fgv_cosched *cosched,
					     const struct fgv_cosched_owner *owner)
{
	struct fgv_cosched_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->cosched = cosched;
	guest->owner = *owner;
	guest->asked = -1;
	guest->folder = owner->pid > 0 ? fgv_cosched_proc_open(owner->pid) : -ESRCH;
	return guest;
}

void fgv_cosched_detach(struct fgv_cosched_guest *guest)
{
	fgv_cosched_put_back(guest);
	if (guest->folder >= 0)
		close(guest->folder);
	free(guest);
}

bool fgv_cosched_is_local(const struct fgv_cosched_guest *guest)
{
	return !guest->owner.vcpus;
}

uint64_t fgv_cosched_count(const struct fgv_cosched_guest *guest)
{
	return guest->count;
}

/* --- Whose thread it is ------------------------------------------------------ */

static struct known *find_known(struct fgv_cosched_guest *guest, int32_t vcpu)
{
	for (unsigned i = 0; i < KNOWN; i++) {
		if (guest->known[i].thread && guest->known[i].vcpu == vcpu)
			return &guest->known[i];
	}
	return NULL;
}

static void ask(struct fgv_cosched_guest *guest, int32_t vcpu)
{
	uint64_t now_ns = fgv_now_ns();

	if (guest->asked_ns && now_ns - guest->asked_ns < ASK_NS)
		return;
	guest->asked_ns = now_ns;
	guest->asked = vcpu;
	fgv_doorbell_ring(guest->cosched->bell_fd);
}

int32_t fgv_cosched_asks(const struct fgv_cosched_guest *guest)
{
	return guest->asked;
}

pid_t fgv_cosched_find(const struct fgv_cosched_guest *guest, int32_t vcpu)
{
	const struct fgv_cosched_owner *owner = &guest->owner;
	pid_t called = vcpu;

	if (owner->vcpus) {
		bool is_there =
			owner->vcpus->pid == owner->pid && (uint32_t)vcpu < owner->vcpus->count;

		called = is_there ? owner->vcpus->threads[vcpu] : 0;
	}
	if (called <= 0 || guest->folder < 0)
		return 0;
	return fgv_cosched_proc_find(guest->folder, owner->pid, called, owner->uid);
}

void fgv_cosched_learn(struct fgv_cosched_guest *guest, int32_t vcpu, pid_t thread)
{
	struct known *known;

	guest->asked = -1;
	if (!thread)
		return;
	guest->known[guest->oldest] = (struct known){
		.vcpu = vcpu,
		.thread = thread,
		.judged_ns = fgv_now_ns(),
		.waits = true,
	};
	known = &guest->known[guest->oldest];
	fgv_cosched_proc_waited(guest->folder, thread, &known->waited_ns);
	guest->oldest = (guest->oldest + 1) % KNOWN;
}

/* Whether it is any use to favour the thread; where the kernel does not say, it is. */
static bool is_waiting(const struct fgv_cosched_guest *guest, struct known *known)
{
	uint64_t now_ns = fgv_now_ns(), passed_ns = now_ns - known->judged_ns, waited_ns;

	if (passed_ns < JUDGE_NS)
		return known->waits;
	if (!fgv_cosched_proc_waited(guest->folder, known->thread, &waited_ns))
		return true;
	known->waits = waited_ns - known->waited_ns > passed_ns / WAIT_SHARE;
	known->judged_ns = now_ns;
	known->waited_ns = waited_ns;
	return known->waits;
}

/* The thread of @vcpu, if it is to be favoured, or 0. */
static pid_t thread_of(struct fgv_cosched_guest *guest, int32_t vcpu)
{
	struct known *known;

	if (vcpu < 0 || guest->folder < 0)
		return 0;
	known = find_known(guest, vcpu);
	if (known && fgv_cosched_proc_has(guest->folder, known->thread))
		return is_waiting(guest, known) ? known->thread : 0;
	if (known)
		known->thread = 0;
	ask(guest, vcpu);
	return 0;
}

/* --- Favouring --------------------------------------------------------------- */

static void say(struct fgv_cosched *cosched, enum fgv_cosched_means means, int error)
{
	if (__atomic_fetch_or(&cosched->said, means, __ATOMIC_RELAXED) & means)
		return;
	switch (means) {
	case FGV_COSCHED_NICE:
		fgv_info("coscheduling: an interactive vCPU's thread gets a nice value better by "
			 "%d%s for its turns",
			 BETTER, cosched->slice_ns ? " and short slices" : "");
		break;
	case FGV_COSCHED_SLICE:
		fgv_info("coscheduling: an interactive vCPU's thread gets short slices for its "
			 "turns, and no better nice value: the daemon lacks CAP_SYS_NICE, or the "
			 "thread's is worse than 0");
		break;
	case FGV_COSCHED_NONE:
		fgv_warning("coscheduling: this kernel does not let the daemon favour a vCPU's "
			    "thread: %s",
			    strerror(error));
		break;
	}
}

/*
 * A better nice value than @before has. What the thread starts meanwhile gets 0, so a thread
 * that has worse is left with that, or it could better itself for good.
 */
static int apply_nice(struct fgv_cosched_guest *guest, pid_t thread)
{
	struct attributes better = guest->favoured;
	int ret;

	if (better.nice > 0)
		return -EPERM;
	better.nice -= BETTER;
	if (better.nice < NICE_MIN)
		better.nice = NICE_MIN;
	better.flags |= RESET_ON_FORK;
	ret = set_attributes(thread, &better);
	if (ret)
		return ret;
	guest->favoured = better;
	say(guest->cosched, FGV_COSCHED_NICE, 0);
	return 0;
}

/* With a better nice value, if that is allowed, and in any case with a short slice. */
static int apply(struct fgv_cosched_guest *guest, pid_t thread)
{
	struct fgv_cosched *cosched = guest->cosched;
	int ret;

	guest->favoured = guest->before;
	if (cosched->slice_ns)
		guest->favoured.runtime_ns = SHORT_NS;
	ret = apply_nice(guest, thread);
	if ((ret != -EPERM && ret != -EACCES) || !cosched->slice_ns)
		return ret;
	ret = set_attributes(thread, &guest->favoured);
	if (!ret)
		say(cosched, FGV_COSCHED_SLICE, 0);
	return ret;
}

/* A kernel without slices has nothing for a thread with a bad nice value. */
static bool can_favour(const struct fgv_cosched_guest *guest)
{
	return guest->before.nice <= 0 || guest->cosched->slice_ns;
}

static void favour(struct fgv_cosched_guest *guest, pid_t thread)
{
	struct attributes *before = &guest->before;
	int ret = get_attributes(thread, before);

	/* A thread that was given a policy of its own keeps it. */
	if (ret || before->policy != SCHED_OTHER || !can_favour(guest))
		return;
	/* What is usual is asked for as 0, so that it stays the usual. */
	if (before->runtime_ns == guest->cosched->slice_ns)
		before->runtime_ns = 0;
	ret = apply(guest, thread);
	if (ret == -ESRCH)
		return;
	if (ret) {
		say(guest->cosched, FGV_COSCHED_NONE, -ret);
		return;
	}
	guest->thread = thread;
	guest->count++;
}

/* Without the right to take RESET_ON_FORK back, it stays. */
static void restore(const struct fgv_cosched_guest *guest, pid_t thread)
{
	struct attributes before = guest->before;

	if (set_attributes(thread, &before) == -EPERM) {
		before.flags |= RESET_ON_FORK;
		set_attributes(thread, &before);
	}
}

/* A thread that executes a program takes its process's id, and keeps what it was given. */
static void restore_leader(const struct fgv_cosched_guest *guest)
{
	pid_t leader = guest->owner.pid;
	struct attributes now;

	if (fgv_cosched_proc_has(guest->folder, leader) && !get_attributes(leader, &now) &&
	    now.nice == guest->favoured.nice && now.nice != guest->before.nice)
		restore(guest, leader);
}

void fgv_cosched_put_back(struct fgv_cosched_guest *guest)
{
	if (!guest->thread)
		return;
	if (fgv_cosched_proc_has(guest->folder, guest->thread))
		restore(guest, guest->thread);
	else
		restore_leader(guest);
	guest->thread = 0;
}

void fgv_cosched_favour(struct fgv_cosched_guest *guest, int32_t vcpu)
{
	pid_t thread;

	if (guest->thread && guest->vcpu == vcpu)
		return;
	fgv_cosched_put_back(guest);
	thread = thread_of(guest, vcpu);
	guest->vcpu = vcpu;
	if (thread)
		favour(guest, thread);
}
