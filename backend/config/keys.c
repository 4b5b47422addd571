/*
 * The table of configuration keys. fairgv-backend.conf(5) has a line for each; a test
 * compares them.
 */
#include "backend/config/config.h"

#include <string.h>
#include "api/region.h"
#include "common/util.h"

#define MIB (1024ull * 1024)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

#define TOP(member) offsetof(struct fgv_config, member)
#define VM(member)  offsetof(struct fgv_config_vm, member)

#define US FGV_NS_PER_US
#define MS FGV_NS_PER_MS
#define S  FGV_NS_PER_SEC

static const char default_socket[] = FGV_RUNSTATEDIR "/fairgv/backend.sock";
static const char default_control[] = FGV_RUNSTATEDIR "/fairgv/control.sock";
static const char default_settings[] = FGV_LOCALSTATEDIR "/lib/fairgv/settings.conf";
static const char default_metrics[] = FGV_RUNSTATEDIR "/fairgv-metrics/metrics.sock";

static const struct fgv_config_key keys[] = {
	{"gpu", false, FGV_CONFIG_GPU, TOP(gpu), 0, 0, 0, "auto",
	 "the GPUs to share: auto, cuda, cuda:0,1, soft or soft:2", FGV_CONFIG_RESTART},
	{"socket", false, FGV_CONFIG_PATH, TOP(socket), 0, 0, 0, default_socket,
	 "the Unix socket that programs connect to", FGV_CONFIG_RESTART},
	{"control", false, FGV_CONFIG_PATH, TOP(control), 0, 0, 0, default_control,
	 "the Unix socket of fairgvctl", FGV_CONFIG_RESTART},
	{"settings", false, FGV_CONFIG_PATH, TOP(settings), 0, 0, 0, default_settings,
	 "the file of what fairgvctl set --save keeps", FGV_CONFIG_RESTART},
	{"observe", false, FGV_CONFIG_PATH, TOP(observe), 0, 0, 0, "none",
	 "a Unix socket like it that tells what is used and changes nothing", FGV_CONFIG_RESTART},
	{"observe_user", false, FGV_CONFIG_USER, TOP(observe_user), 0, 0, 0, "the daemon's user",
	 "who may ask there, beside root: a name or a number", FGV_CONFIG_RESTART},
	{"metrics_socket", false, FGV_CONFIG_PATH, TOP(metrics_socket), 0, 0, 0, default_metrics,
	 "the Unix socket at which fairgv-metrics serves HTTP", FGV_CONFIG_LATER},
	{"metrics_port", false, FGV_CONFIG_NUMBER, TOP(metrics_port), 0, 65535, 0, "0",
	 "the TCP port of 127.0.0.1 at which it does so, too; 0: none", FGV_CONFIG_LATER},
	{"policy", false, FGV_CONFIG_POLICY, TOP(policy), 0, 0, 0, "fair",
	 "what decides which VM is next: fair, gemini, fikit, smguard, credit-poll, credit-hs, "
	 "strict-co or none",
	 FGV_CONFIG_RESTART},
	{"preemptive", false, FGV_CONFIG_SWITCH, TOP(preemptive), 0, 0, false, "false",
	 "whether the GPUs can interrupt a kernel", FGV_CONFIG_RESTART},
	{"slice", false, FGV_CONFIG_DURATION, TOP(slice_ns), 100 * US, S, 0,
	 "6ms; 30ms if preemptive", "GPU time of a turn, while others wait", FGV_CONFIG_RESTART},
	{"share_window", false, FGV_CONFIG_DURATION, TOP(share_window_ns), 100 * MS, 600 * S,
	 FGV_SCHED_SHARE_WINDOW_NS, "10s", "the time over which limits hold (gemini)",
	 FGV_CONFIG_RESTART},
	{"idle", false, FGV_CONFIG_DURATION, TOP(idle_ns), 0, S, 100 * US, "100us",
	 "time without work after which a turn ends early", FGV_CONFIG_LATER},
	{"awake_lead", false, FGV_CONFIG_DURATION, TOP(awake_lead_ns), 0, 10 * MS, 300 * US,
	 "300us", "the next in line is awake this long before its turn", FGV_CONFIG_RESTART},
	{"hold", false, FGV_CONFIG_AUTO, TOP(hold), 0, 0, true, "auto",
	 "auto, or off: whether kernels that take longer than a turn are interrupted",
	 FGV_CONFIG_RESTART},
	{"slicing", false, FGV_CONFIG_SLICING, TOP(slicing), 0, 0, FGV_SLICING_OFF, "off",
	 "off, auto or on: whether kernels that take longer than a turn run in parts",
	 FGV_CONFIG_LATER},
	{"slice_blocks", false, FGV_CONFIG_NUMBER, TOP(slice_blocks), 0, UINT32_MAX, 0, "0",
	 "thread blocks of each part; 0: as many as take half a turn", FGV_CONFIG_LATER},
	{"hang", false, FGV_CONFIG_TIMEOUT, TOP(hang_ns), 100 * MS, 3600 * S, FGV_CONFIG_NO_LIMIT,
	 "10s; 0 where kernels are held",
	 "a program that keeps the GPU this much too long is ended; 0: never", FGV_CONFIG_RESTART},
	{"engines", false, FGV_CONFIG_SWITCH, TOP(engines), 0, 0, true, "true",
	 "whether computing, copying in and copying out are granted by themselves",
	 FGV_CONFIG_RESTART},
	{"cosched", false, FGV_CONFIG_AUTO, TOP(cosched), 0, 0, true, "auto",
	 "auto, or off: whether vCPUs of interactive programs are favoured while they have the "
	 "GPU",
	 FGV_CONFIG_RESTART},
	{"interactive_calls", false, FGV_CONFIG_NUMBER, TOP(interactive_calls), 0, 1000000, 10,
	 "10", "a program is interactive if it waits for the GPU more often than this ...",
	 FGV_CONFIG_RESTART},
	{"interactive_window", false, FGV_CONFIG_DURATION, TOP(interactive_window_ns), 100 * US, S,
	 10 * MS, "10ms", "... in so long a time of having it", FGV_CONFIG_RESTART},
	{"batching", false, FGV_CONFIG_SWITCH, TOP(batching), 0, 0, true, "true",
	 "whether kernel launches that wait behind each other go to the driver together",
	 FGV_CONFIG_LATER},
	{"context", false, FGV_CONFIG_CONTEXT, TOP(context), 0, 0, 0, "isolated",
	 "isolated, or mps: programs are clients of an MPS server", FGV_CONFIG_RESTART},
	{"context_memory", false, FGV_CONFIG_SWITCH, TOP(context_memory), 0, 0, false, "false",
	 "whether a program's context counts against its VM's memory", FGV_CONFIG_LATER},
	{"overcommit", false, FGV_CONFIG_FACTOR, TOP(overcommit), FGV_CONFIG_FACTOR_ONE,
	 100 * FGV_CONFIG_FACTOR_ONE, 0, "false",
	 "whether VMs may be given more of a GPU's memory together than it has, or how much of it",
	 FGV_CONFIG_AT_ONCE},
	{"swap_share", false, FGV_CONFIG_SHARE, TOP(swap_share), FGV_SCHED_WHOLE / 100,
	 FGV_SCHED_WHOLE / 2, FGV_SCHED_WHOLE / 10, "10%",
	 "of the time, for moving memory that is over-committed out and in", FGV_CONFIG_AT_ONCE},
	{"frozen_memory", false, FGV_CONFIG_SIZE, TOP(frozen_memory_bytes), 0, 1024 * TIB, 0, "0",
	 "memory of the host that sessions may take together while they are frozen; 0: none",
	 FGV_CONFIG_LATER},
	{"soft_memory", false, FGV_CONFIG_SIZE, TOP(soft_memory_bytes), 64 * MIB, 16 * TIB, 4 * GIB,
	 "4G", "memory of a soft GPU", FGV_CONFIG_RESTART},
	{"window", false, FGV_CONFIG_SIZE, TOP(window_bytes), MIB, TIB, GIB, "1G",
	 "shared memory of one session, taken as it is used", FGV_CONFIG_RESTART},
	{"lanes", false, FGV_CONFIG_NUMBER, TOP(lanes), 1, FGV_LANES_MAX, 64, "64",
	 "threads of one program that may use the GPU", FGV_CONFIG_RESTART},
	{"warm", false, FGV_CONFIG_NUMBER, TOP(warm), 0, FGV_SESSIONS_MAX, 1, "1",
	 "processes kept ready on each GPU for programs to come", FGV_CONFIG_AT_ONCE},
	{"uids", false, FGV_CONFIG_UIDS, TOP(uids), 0, 0, 0, "1900000000-1900065535",
	 "users that nobody else is, one for the processes of each VM; or none",
	 FGV_CONFIG_RESTART},
	{"cgroup", false, FGV_CONFIG_CGROUP, TOP(cgroup), 0, 0, 0, "auto",
	 "the control group below which VMs have theirs: auto, off, or a path", FGV_CONFIG_RESTART},
	{"sandbox", false, FGV_CONFIG_SANDBOX, TOP(record), 0, 0, false, "enforce",
	 "enforce, or record: system calls that are not on the list are named, but not refused",
	 FGV_CONFIG_RESTART},
	{"pageable_memory", false, FGV_CONFIG_PAGEABLE, TOP(refuse_pageable), 0, 0, false, "warn",
	 "warn, or refuse: GPUs whose kernels reach the memory of the processes that serve them",
	 FGV_CONFIG_RESTART},
	{"starts", false, FGV_CONFIG_NUMBER, TOP(starts), 1, 1000000, 100, "100",
	 "sessions that a VM, and a user, may start in a second", FGV_CONFIG_AT_ONCE},
	{"starts_burst", false, FGV_CONFIG_NUMBER, TOP(starts_burst), 1, 1000000, 400, "400",
	 "as many may start at once", FGV_CONFIG_AT_ONCE},
	{"vms", false, FGV_CONFIG_VMS, 0, 0, 0, 0, NULL, "the VMs", FGV_CONFIG_AT_ONCE},
	{"name", true, FGV_CONFIG_NAME, VM(name), 0, 0, 0, NULL, "the name of the VM",
	 FGV_CONFIG_RESTART},
	{"weight", true, FGV_CONFIG_NUMBER, VM(weight), 1, 10000, 1, "1",
	 "its share of the GPU, relative to the others'", FGV_CONFIG_AT_ONCE},
	{"request", true, FGV_CONFIG_SHARE, VM(request), 0, FGV_SCHED_WHOLE, 0, "0%",
	 "GPU time that it gets whenever it wants it (gemini)", FGV_CONFIG_AT_ONCE},
	{"limit", true, FGV_CONFIG_SHARE, VM(limit), FGV_SCHED_WHOLE / 1000, FGV_SCHED_WHOLE,
	 FGV_SCHED_WHOLE, "100%", "GPU time that it never exceeds (gemini)", FGV_CONFIG_AT_ONCE},
	{"slo", true, FGV_CONFIG_TIMEOUT, VM(slo_ns), MS, 10 * S, 0, "0",
	 "time in which it has what it asks for of the GPU, within its request (gemini)",
	 FGV_CONFIG_AT_ONCE},
	{"priority", true, FGV_CONFIG_NUMBER, VM(priority), 0, FGV_SCHED_PRIORITIES - 1,
	 FGV_SCHED_PRIORITY_DEFAULT, "5",
	 "from 0, the most urgent, to 9: which VM comes before which (fikit)", FGV_CONFIG_AT_ONCE},
	{"sms", true, FGV_CONFIG_SMS, VM(sms), 0, 1024, 0, "0",
	 "multiprocessors that are reserved for it: a number, or a share as 25% (smguard)",
	 FGV_CONFIG_RESTART},
	{"sms_limit", true, FGV_CONFIG_SMS, VM(sms_limit), 0, 1024, 0, "0: no limit",
	 "multiprocessors that it has at most, with those that others lend it (smguard)",
	 FGV_CONFIG_RESTART},
	{"memory", true, FGV_CONFIG_SIZE, VM(memory_bytes), MIB, 1024 * TIB, FGV_CONFIG_NO_LIMIT,
	 "no limit", "GPU memory that its programs may use together", FGV_CONFIG_AT_ONCE},
	{"users", true, FGV_CONFIG_USERS, VM(users), 0, 0, 0, "the daemon's user",
	 "who may use it: names or numbers", FGV_CONFIG_LATER},
	{"device", true, FGV_CONFIG_NUMBER, VM(device), 0, FGV_GPU_DEVICES_MAX - 1, 0, "0",
	 "which of the GPUs it uses, counted from 0", FGV_CONFIG_RESTART},
	{"devices", true, FGV_CONFIG_DEVICES, VM(devices), 0, FGV_GPU_DEVICES_MAX - 1, 0,
	 "the one of key device", "which of them it uses, if several: a list, or all",
	 FGV_CONFIG_RESTART},
	{"place", true, FGV_CONFIG_PLACE, VM(rule), 0, 0, 0, "fixed",
	 "how its programs are placed, each on one of its GPUs: fixed (all see all), mgb2, mgb3 or "
	 "least",
	 FGV_CONFIG_RESTART},
	{"place_wait", true, FGV_CONFIG_TIMEOUT, VM(place_wait_ns), MS, 24 * 3600 * S, 30 * S,
	 "30s", "how long a program waits for a GPU with room for it; 0: not at all",
	 FGV_CONFIG_LATER},
	{"need", true, FGV_CONFIG_SIZE, VM(need_bytes), 0, 1024 * TIB, 0, "0",
	 "GPU memory that each of its programs needs, if it does not say so; 0: not known",
	 FGV_CONFIG_LATER},
	{"sessions", true, FGV_CONFIG_NUMBER, VM(sessions), 1, FGV_SESSIONS_MAX, FGV_SESSIONS_MAX,
	 "64", "programs that may run in it at once", FGV_CONFIG_AT_ONCE},
	{"socket", true, FGV_CONFIG_PATH, VM(socket), 0, 0, 0, "none",
	 "a Unix socket that leads to this VM alone, for containers", FGV_CONFIG_AT_ONCE},
	{"process_memory", true, FGV_CONFIG_SIZE, VM(process_memory_bytes), 64 * MIB, 1024 * TIB,
	 16 * GIB, "16G", "private memory of the host that each of its vGPU processes may take",
	 FGV_CONFIG_LATER},
	{"host_memory", true, FGV_CONFIG_SIZE, VM(host_memory_bytes), 64 * MIB, 1024 * TIB,
	 FGV_CONFIG_NO_LIMIT, "no limit", "memory of the host that these may take together",
	 FGV_CONFIG_AT_ONCE},
	{"processors", true, FGV_CONFIG_NUMBER, VM(processors), 0, 4096, 0, "0",
	 "processor time that these may take together, in processors; 0: no limit",
	 FGV_CONFIG_AT_ONCE},
	{"images", true, FGV_CONFIG_SIZE, VM(images_bytes), 0, TIB, 256 * MIB, "256M",
	 "memory of the host for images of its programs' modules, kept for later ones; 0: none",
	 FGV_CONFIG_LATER},
	{"slicing", true, FGV_CONFIG_SLICING, VM(slicing), 0, 0, FGV_SLICING_AS_ALL,
	 "as for all VMs", "off, auto or on: whether its programs' kernels run in parts",
	 FGV_CONFIG_LATER},
	{"movable", true, FGV_CONFIG_SWITCH, VM(movable), 0, 0, false, "false",
	 "whether its programs' memory may leave the GPU, and come back (fairgvctl freeze)",
	 FGV_CONFIG_LATER},
	{"gang", true, FGV_CONFIG_SWITCH, VM(gang), 0, 0, false, "false",
	 "whether its turns on several GPUs go together, as its kernels there wait for each other "
	 "(fair)",
	 FGV_CONFIG_RESTART},
	{"sharing", true, FGV_CONFIG_SWITCH, VM(sharing), 0, 0, false, "false",
	 "whether its programs may share memory of the GPU with each other", FGV_CONFIG_LATER},
	{"ivshmem", true, FGV_CONFIG_PATH, VM(ivshmem), 0, 0, 0, "none: no QEMU guest",
	 "the Unix socket that its QEMU connects to", FGV_CONFIG_NO_QEMU},
	{"ivshmem_user", true, FGV_CONFIG_USER, VM(ivshmem_user), 0, 0, 0, "the daemon's user",
	 "who runs that QEMU: a name or a number", FGV_CONFIG_NO_QEMU},
	{"windows", true, FGV_CONFIG_NUMBER, VM(windows), 1, FGV_REGION_WINDOWS_MAX, 4, "4",
	 "programs that may use the GPU at once in its QEMU guest", FGV_CONFIG_NO_QEMU},
};

const struct fgv_config_key *fgv_config_keys(size_t *count)
{
	*count = FGV_ARRAY_LEN(keys);
	return keys;
}

const struct fgv_config_key *fgv_config_find_key(const char *name, bool of_vm)
{
	for (size_t i = 0; i < FGV_ARRAY_LEN(keys); i++) {
		if (keys[i].of_vm == of_vm && !strcmp(keys[i].name, name))
			return &keys[i];
	}
	return NULL;
}
