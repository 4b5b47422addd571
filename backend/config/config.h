/*
 * The daemon's configuration: what fairgv-backend.conf(5) describes. One table of
 * keys (fgv_config_keys()) holds every key's type, range, default and meaning;
 * parsing, errors and the check of the man page are made from it.
 *
 * Errors are a negative errno and one line of text: "file:line: key: what is wrong".
 *
 * Threads: none; a configuration is read once and then only looked at.
 */
#ifndef FGV_BACKEND_CONFIG_CONFIG_H
#define FGV_BACKEND_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "backend/shared.h"
#include "scheduler/place.h"
#include "scheduler/policy.h"

struct config_t;
struct config_setting_t;

#define FGV_CONFIG_NO_LIMIT UINT64_MAX

#define FGV_CONFIG_FACTOR_ONE 1000 /* in a value of FGV_CONFIG_FACTOR: 1 */

/* In a value of FGV_CONFIG_SMS: the rest of it is a part of FGV_SCHED_WHOLE, not a number. */
#define FGV_CONFIG_PART (1ull << 32)

/* Behind the path of key "ivshmem": where the same QEMU connects its monitor. */
#define FGV_QMP_SUFFIX ".qmp"

/* The value of key "gpu". */
enum fgv_gpu_kind { FGV_GPU_AUTO, FGV_GPU_CUDA, FGV_GPU_SOFT };

struct fgv_gpu_choice {
	enum fgv_gpu_kind kind;
	unsigned count; /* of ordinals; 0: all that there are (CUDA), one (auto, soft) */
	unsigned ordinals[FGV_GPU_DEVICES_MAX];
};

/* The value of key "devices": indices in the list of GPUs, each once. */
struct fgv_config_devices {
	bool is_all;	/* every GPU that there is; the list has all that there can be */
	unsigned count; /* 0: the key is not there */
	unsigned list[FGV_GPU_DEVICES_MAX];
};

/* The value of key "context". */
enum fgv_context { FGV_CONTEXT_ISOLATED, FGV_CONTEXT_MPS };

/* The value of key "uids": a user for each VM's processes. */
struct fgv_config_uids {
	uid_t first;
	size_t count; /* 0: none */
};

struct fgv_config_users {
	uid_t *uids;
	size_t count;
};

/* Strings and places belong to the struct fgv_config. */
struct fgv_config_vm {
	const char *name;
	uint64_t weight;
	uint64_t request; /* of the GPU's time, in parts of FGV_SCHED_WHOLE */
	uint64_t limit;
	uint64_t slo_ns;		   /* 0: none */
	uint64_t priority;		   /* 0 is the most urgent */
	uint64_t sms;			   /* multiprocessors reserved, or FGV_CONFIG_PART; 0: none */
	uint64_t sms_limit;		   /* likewise, at most; 0: no limit */
	uint64_t memory_bytes;		   /* FGV_CONFIG_NO_LIMIT: as much as the device has */
	struct fgv_config_devices devices; /* never empty, once the file has been read */
	uint64_t device;		   /* the first of them */
	const struct fgv_place_rule *rule; /* by which its programs are placed on one of them */
	uint64_t place_wait_ns;		   /* for a place, at most; 0: not at all */
	uint64_t need_bytes;		   /* of a program that does not say what it needs */
	uint64_t sessions;		   /* at most, at once */
	struct fgv_config_users users;
	const char *ivshmem;	       /* where its QEMU connects; NULL: it has none */
	uid_t ivshmem_user;	       /* who runs that, beside the daemon's user */
	uint64_t windows;	       /* of its QEMU's guest */
	const char *socket;	       /* its programs' own; NULL: it has none */
	uid_t uid;		       /* its processes'; 0: it has none of its own */
	uint64_t process_memory_bytes; /* of the host, private, each */
	uint64_t host_memory_bytes;    /* of all; FGV_CONFIG_NO_LIMIT */
	uint64_t processors;	       /* 0: no limit */
	uint64_t images_bytes;	       /* of modules, kept for later programs; 0: none */
	enum fgv_slicing slicing;      /* FGV_SLICING_AS_ALL */
	bool movable;		       /* its programs' memory may leave the GPU */
	bool gang;		       /* its turns on several GPUs go together */
	bool sharing;		       /* its programs may share memory with each other */
	const struct config_setting_t *place;
};

struct fgv_config {
	struct fgv_gpu_choice gpu;
	const char *socket;
	const char *control;	    /* the administrator's socket */
	const char *observe;	    /* the same for questions only; NULL: none */
	uid_t observe_user;	    /* who may ask there, beside the daemon's user and root */
	const char *metrics_socket; /* of fairgv-metrics, as is the port */
	uint64_t metrics_port;	    /* 0: none */
	const char *settings;	    /* the file of those that are kept (settings.h) */
	const struct fgv_policy *policy;
	bool preemptive;
	bool batching;
	enum fgv_context context;
	uint64_t slice_ns;
	uint64_t share_window_ns;
	uint64_t idle_ns;
	uint64_t awake_lead_ns;
	bool hold;	       /* kernels, where that is possible */
	enum fgv_slicing slicing;
	uint64_t slice_blocks; /* of each part of a kernel; 0: by the forecast */
	uint64_t hang_ns;      /* 0: never */
	uint64_t hang_held_ns; /* of sessions that can be held; 0: never */
	bool engines;	       /* each engine of a GPU is granted by itself */
	bool cosched;	       /* favour vCPUs as far as the kernel allows it; else never */
	uint64_t interactive_calls;
	uint64_t interactive_window_ns;
	bool context_memory; /* sessions are charged for their contexts */
	/*
	 * How much of a GPU's memory VMs may be given, in FGV_CONFIG_FACTOR_ONE parts of what it has; 0:
	 * not more than that; FGV_CONFIG_NO_LIMIT: any, and what does not fit fails.
	 */
	uint64_t overcommit;
	uint64_t swap_share; /* of the time, for moving memory in and out, in parts of FGV_SCHED_WHOLE */
	uint64_t frozen_memory_bytes; /* of the host, for frozen sessions */
	uint64_t soft_memory_bytes;
	uint64_t window_bytes;
	uint64_t lanes; /* of a window */
	uint64_t warm;	/* vGPU processes kept ready for each device */
	struct fgv_config_uids uids;
	const char *cgroup;    /* "auto", "off" or a path */
	bool record;	       /* system calls off the list are let through, and named */
	bool refuse_pageable;  /* GPUs whose kernels reach the host's memory */
	uint64_t starts;       /* of sessions, a second, of each VM and of each user */
	uint64_t starts_burst; /* as many at once */
	struct fgv_config_vm *vms;
	size_t vm_count;

	struct config_t *parsed; /* owns the strings */
	char *file;		 /* "": derived from another */
};

enum fgv_config_type {
	FGV_CONFIG_GPU,
	FGV_CONFIG_PATH,
	FGV_CONFIG_SIZE,     /* bytes: a whole number, or a string with K, M, G or T behind it */
	FGV_CONFIG_NUMBER,   /* a whole number */
	FGV_CONFIG_DURATION, /* nanoseconds: a string with us, ms or s behind the number */
	FGV_CONFIG_TIMEOUT,  /* a duration, or 0 for never */
	FGV_CONFIG_SHARE,    /* a part of FGV_SCHED_WHOLE: a string as "12.5%" */
	FGV_CONFIG_SMS,	     /* a number of multiprocessors, or a share: FGV_CONFIG_PART */
	FGV_CONFIG_SWITCH,
	FGV_CONFIG_FACTOR, /* a switch, or a number from 1 on: in FGV_CONFIG_FACTOR_ONE parts */
	FGV_CONFIG_POLICY,
	FGV_CONFIG_PLACE,
	FGV_CONFIG_CONTEXT,
	FGV_CONFIG_SLICING,
	FGV_CONFIG_AUTO,     /* auto or off, a switch */
	FGV_CONFIG_SANDBOX,  /* enforce or record, a switch */
	FGV_CONFIG_PAGEABLE, /* warn or refuse, a switch */
	FGV_CONFIG_UIDS,
	FGV_CONFIG_CGROUP,
	FGV_CONFIG_NAME,
	FGV_CONFIG_USER,
	FGV_CONFIG_USERS,
	FGV_CONFIG_DEVICES,
	FGV_CONFIG_VMS,
};

/* From when on another value holds that the file has when it is read again. */
enum fgv_config_when {
	FGV_CONFIG_RESTART, /* when the daemon is started again; until then it is refused */
	FGV_CONFIG_AT_ONCE,
	FGV_CONFIG_LATER,   /* for programs that begin from then on */
	FGV_CONFIG_NO_QEMU, /* at once, but not while the VM's QEMU is connected */
};

struct fgv_config_key {
	const char *name;
	bool of_vm; /* stands in a VM's group, not at the top */
	enum fgv_config_type type;
	size_t offset; /* of the value, in struct fgv_config or fgv_config_vm */
	uint64_t min, max;
	uint64_t standard;	   /* the default of numbers, sizes, durations and switches */
	const char *standard_text; /* the default as the man page has it; NULL: required */
	const char *meaning;
	enum fgv_config_when when;
};

/* The table of keys; *@count is set to their number. */
const struct fgv_config_key *fgv_config_keys(size_t *count);

/* The key of that name; NULL: there is none. */
const struct fgv_config_key *fgv_config_find_key(const char *name, bool of_vm);

/*
 * The value of @key in @values, a struct fgv_config or fgv_config_vm, as it could stand in the
 * file, but without quotes: for free(). NULL where memory is short.
 */
char *fgv_config_show(const struct fgv_config_key *key, const void *values);

/* Whether it is the same in both. */
bool fgv_config_is_same(const struct fgv_config_key *key, const void *a, const void *b);

/* The VM called @name; NULL: there is none. */
const struct fgv_config_vm *fgv_config_find_vm(const struct fgv_config *config, const char *name);

/*
 * Reads @path into @config. On success fgv_config_fini() releases it; on failure
 * there is nothing to release, and @why says what is wrong.
 */
int fgv_config_load(struct fgv_config *config, const char *path, char *why, size_t why_len);

/* The same from @text, which messages call @file. */
int fgv_config_parse(struct fgv_config *config, const char *text, const char *file, char *why,
		     size_t why_len);

/*
 * The same from what @base was made of, with other values: @change puts them into the list of VMs,
 * whose order is @base's. Messages have no lines, but the names of VMs.
 */
int fgv_config_derive(struct fgv_config *config, const struct fgv_config *base,
		      int (*change)(struct config_setting_t *vms, const void *arg), const void *arg,
		      char *why, size_t why_len);

void fgv_config_fini(struct fgv_config *config);

/* Whether @vm's list has GPU number @device; and how many of it there are where there are @devices.
 */
bool fgv_config_uses(const struct fgv_config_vm *vm, uint64_t device);
size_t fgv_config_device_count(const struct fgv_config_vm *vm, size_t devices);

/* Whether @vm's programs are placed, each on one of its GPUs; otherwise they have all of them. */
static inline bool fgv_config_places(const struct fgv_config_vm *vm)
{
	return vm->rule != &fgv_place_fixed;
}

/* A copy with strings of its own, for fgv_config_free_vm(); it has no place. -ENOMEM. */
int fgv_config_copy_vm(struct fgv_config_vm *to, const struct fgv_config_vm *from);
void fgv_config_free_vm(struct fgv_config_vm *copy);

/*
 * What can be checked only when the devices are known: -EINVAL and @why where a VM
 * wants one that is not among the @devices.
 */
int fgv_config_check_devices(const struct fgv_config *config, size_t devices, char *why,
			     size_t why_len);

/* Whether memory of its GPUs is moved out and in as VMs take turns: key overcommit is a number. */
bool fgv_config_pages(const struct fgv_config *config);

/*
 * Whether GPU @device, with memory of @bytes, has what the VMs that use it are given together; VMs
 * without a limit are given nothing. Where it has not, @why says so: -ENOMEM, or 0 where the
 * configuration asks for that. 0 with an empty @why otherwise.
 */
int fgv_config_check_memory(const struct fgv_config *config, size_t device, uint64_t bytes,
			    char *why, size_t why_len);

/* What @vm's keys sms and sms_limit come to in such units; a limit of 0: none. */
void fgv_config_vm_units(const struct fgv_config_vm *vm, const struct fgv_units *gpu,
			 uint32_t *units, uint32_t *limit);

/*
 * Whether GPU @device can be divided as the VMs that use it want, under a policy that divides
 * GPUs. -EINVAL and @why: it can't.
 */
int fgv_config_check_units(const struct fgv_config *config, size_t device,
			   const struct fgv_units *gpu, char *why, size_t why_len);

/*
 * How long it takes until a VM with an slo has the GPU, as far as the configuration says: where
 * kernels can't be held, and are longer than a slice, it takes longer.
 */
uint64_t fgv_config_blocking_ns(const struct fgv_config *config);

/* Writes "file:line: key: " and the text to @why, for what is wrong with a @key at the top. */
int fgv_config_refuse(const struct fgv_config *config, const char *key, char *why, size_t why_len,
		      const char *text);

#endif
