/*
 * What the daemon and its vGPU processes say to each other. They trust each other
 * more than either trusts a guest, and are always of the same build: no version.
 *
 * fairgv-vgpu is started with one descriptor, FGV_CONTROL_FD, a SOCK_SEQPACKET
 * socket to the daemon. On it comes one struct fgv_prepare, for a soft device with the
 * descriptors of a seat at its engine (arbiter.h): the process opens its GPU and answers with
 * one struct fgv_prepared. Then comes, at once or hours later, one struct fgv_setup with the
 * descriptors in the order of enum fgv_setup_fd, and behind it one struct fgv_setup_part for each
 * further GPU of the session (docs/design/0023-devices.md); the process says by what its kernels
 * can be held with one struct fgv_channels (channels.h), with their open file if there is one,
 * closes its sandbox, says so with one struct fgv_confined, with a listener if it was told to have
 * one, gets ready, says that with one struct fgv_serving, and serves that session. It sends nothing
 * else: no word comes from a process that a guest could have taken over. It may get orders (struct
 * fgv_order). The socket's end ends the process.
 *
 * The same program also keeps what a VM's programs have in common (struct fgv_keeper_setup).
 */
#ifndef FGV_BACKEND_SHARED_H
#define FGV_BACKEND_SHARED_H

#include <stdint.h>
#include "api/wire.h"

#define FGV_CONTROL_FD	    3
#define FGV_SESSIONS_MAX    64 /* of one VM at a time */
#define FGV_GPU_DEVICES_MAX FGV_DEVICES_MAX

/* Its exit status where the guest has ended and the GPU context has had a fault. */
#define FGV_EXIT_FAULT 2

/* The exit status of a private daemon that has had no session. */
#define FGV_EXIT_UNUSED 3

/*
 * What would fail only because a session of the same VM has not quite ended waits for that end,
 * for so long at most. The daemon kills what takes longer to end, well before: a kernel that is
 * busy needs seconds to take the memory of a killed process back. An MPS client that is killed at
 * work may take others along, and has longer to end by itself.
 */
#define FGV_ENDING_WAIT_MS     7000
#define FGV_ENDING_KILL_MS     1500
#define FGV_ENDING_KILL_MPS_MS 5000
_Static_assert(FGV_ENDING_WAIT_MS > FGV_ENDING_KILL_MPS_MS, "whoever waits outlasts the killed");

/* Whether kernels that are longer than a slice run in parts. */
enum fgv_slicing {
	FGV_SLICING_OFF,
	FGV_SLICING_AUTO, /* where the session can't be held */
	FGV_SLICING_ON,
	FGV_SLICING_AS_ALL, /* of a VM: as the daemon has it for all; in no setup */
};

/* Multiprocessors of a GPU as they can be divided: so many units of so many each. */
struct fgv_units {
	uint32_t units; /* 0: they can't be, @why not */
	uint32_t each;
	uint32_t lends; /* 1: what a session has can change while it runs */
	char why[164];
};

/* Of a soft GPU that is divided; otherwise it has as many as there are processors. */
#define FGV_SOFT_UNITS 16

/* What a process needs to open its GPU, before it is known whom it is for. */
struct fgv_prepare {
	uint32_t soft;		 /* 1: the soft GPU, 0: CUDA */
	uint32_t ordinal;	 /* of the device */
	uint32_t shares_context; /* 1: with others, as MPS clients do */
	uint32_t listen;	 /* 1: the daemon decides about refused system calls ... */
	uint32_t record;	 /* 1: ... and lets them through, to learn of them */
	uint32_t keeps_images;	 /* 1: it opens no GPU, and a struct fgv_keeper_setup follows */
	uint64_t soft_memory_bytes;
	uint32_t is_divided; /* 1: among sessions that run at once */
	uint32_t reserved;
};

struct fgv_prepared {
	uint32_t status;  /* a CUresult */
	char reason[256]; /* where that is no CUDA_SUCCESS */
};

/* What a vGPU process could not give up where it runs. */
enum fgv_lacks {
	FGV_LACKS_UID = 1,	  /* a user of its VM's own */
	FGV_LACKS_LANDLOCK = 2,	  /* a list of the files that it may open */
	FGV_LACKS_NAMESPACES = 4, /* a network and shared memory of its own */
	FGV_LACKS_LISTENER = 8,	  /* refused system calls are not told */
	FGV_LACKS_DEVICES = 16,	  /* the GPU's device files can't be opened again */
};

struct fgv_confined {
	uint32_t lacks;	       /* of enum fgv_lacks */
	uint32_t has_listener; /* 1: its descriptor comes with this */
};

/* The next thing that it does is to welcome the guest. */
struct fgv_serving {
	uint32_t reserved[4]; /* 0; its length tells it from the others */
};

enum fgv_setup_fd {
	FGV_SETUP_CONNECTION, /* to the guest; the hello has been read */
	FGV_SETUP_WINDOW,
	FGV_SETUP_DOORBELL,   /* wakes the dispatcher */
	FGV_SETUP_ALLOWANCE,  /* struct fgv_allowance of the VM, to read */
	FGV_SETUP_ACCOUNTS,   /* struct fgv_accounts of the VM, to read */
	FGV_SETUP_ACCOUNT,    /* the same, to write: for its own page, and closed then */
	FGV_SETUP_GRANT,      /* struct fgv_grant (grant.h) */
	FGV_SETUP_GRANT_BELL, /* wakes the dispatcher: look at the grant */
	FGV_SETUP_SCHED_BELL, /* wakes the scheduler: the grant has changed */
	FGV_SETUP_GRANT_IN,   /* the same three for copying in ... */
	FGV_SETUP_GRANT_IN_BELL,
	FGV_SETUP_SCHED_IN_BELL,
	FGV_SETUP_GRANT_OUT, /* ... and out; where engines are not granted separately, those above
			      */
	FGV_SETUP_GRANT_OUT_BELL,
	FGV_SETUP_SCHED_OUT_BELL,
	FGV_SETUP_CGROUP, /* "0" written to it puts the process into its VM's control group */
	FGV_SETUP_IMAGES, /* to the VM's keeper; without a peer if it has none */
	FGV_SETUP_FDS,
	/* With a part only: the guest's end of its connection, and the seat of a soft device. */
	FGV_SETUP_PEER = FGV_SETUP_FDS,
	FGV_SETUP_SEAT,
	FGV_SETUP_PART_FDS = FGV_SETUP_SEAT + 4,
	FGV_SETUP_GRANT_FDS = FGV_SETUP_CGROUP - FGV_SETUP_GRANT
};

struct fgv_setup {
	char vm[FGV_NAME_MAX];
	char program[FGV_NAME_MAX]; /* as the guest calls itself */
	uint32_t session;	    /* its number in the daemon's log lines */
	uint32_t account;	    /* its entry in struct fgv_accounts */
	uint64_t window_off;	    /* of the window in its descriptor; 0: that is all of it */
	uint64_t window_len;
	uint64_t lanes_off;
	uint64_t arena_off;
	uint64_t arena_len;
	uint64_t staging_len;
	uint64_t slice_ns;	/* without a limit: work unfinished on the GPU at most */
	uint64_t idle_ns;	/* a grant is given back after this time without work */
	uint64_t context_bytes; /* what it is charged for being there */
	uint64_t need_bytes;	/* what it is charged at least: its program's need */
	uint64_t data_bytes;	/* private memory that it may have; 0: no limit */
	uint64_t file_bytes;	/* of one file; 0: no limit */
	uint64_t threads;	/* of the VM; 0: no limit */
	uint32_t uid;		/* the VM's; 0: it has none of its own */
	uint32_t lanes;
	uint32_t is_substitute; /* for the welcome */
	uint32_t batching;	/* launches may go to the driver together */
	uint32_t engines;	/* each is granted by itself */
	uint32_t parts;		/* that follow this; in one of them 0 */
	uint32_t fills_gaps;	/* gaps are to be learned (the policy fills them) */
	uint32_t slicing;	/* enum fgv_slicing */
	uint64_t slice_blocks;	/* of each part of a kernel; 0: as many as are a part of a slice */
	uint64_t units;		/* a set: those that it begins with; 0: the GPU is not divided */
	uint32_t sms;		/* multiprocessors that its program is told of; 0: all */
	uint32_t movable;	/* its memory may leave the GPU, and come back */
	uint32_t sharing;	/* its memory may be shared with the VM's other programs */
	uint32_t gpu;		/* of the VM's, in their order, the one that this is for */
};

/*
 * One further GPU of a session. Its descriptors are those of a setup, of which the control group
 * and the keeper are the first one's alone, and stand for nothing here; FGV_SETUP_PEER; and of a
 * soft device those of its seat.
 */
struct fgv_setup_part {
	struct fgv_prepare prepare;
	struct fgv_setup setup;
};

/* What is known of a program's kernels; see backend/vgpu/kernels.h. */
#define FGV_KERNELS 1024

struct fgv_kernel {
	uint64_t id; /* by the content of its module, its name and its shape; 0: there is none */
	uint32_t ns; /* that it takes, the mean of so many times; none: nobody knows */
	uint32_t times;
	uint32_t gap_ns; /* likewise, until the next work came, where that was long */
	uint32_t longs;
	uint32_t long_part; /* of so many gaps, those that were long, in parts of FGV_KERNEL_ALL */
	uint32_t gaps;
	uint32_t seen;
	uint32_t reserved;
};

#define FGV_KERNEL_ALL (1u << 20)

struct fgv_kernel_book {
	struct fgv_kernel kernels[FGV_KERNELS];
};

/*
 * A VM's keeper is a process of this VM's user, in its control group, which keeps what the VM's
 * programs have in common: images of modules, and memory that they share. It gets this with the
 * descriptor that FGV_SETUP_CGROUP is for others; then, one with each message of one byte, those
 * that FGV_SETUP_ACCOUNT is for others, of each of the VM's GPUs; and then what sessions begin and
 * end. The daemon reads nothing from it.
 */
struct fgv_keeper_setup {
	char vm[FGV_NAME_MAX];
	uint64_t bytes;	     /* of images, at most */
	uint64_t data_bytes; /* as in struct fgv_setup */
	uint64_t threads;
	uint32_t uid;
	uint32_t gpus;
	uint32_t sharing; /* 1: it keeps memory, too */
	uint32_t reserved;
};

/* With its socket: a session that has something to say. Without: it has ended. */
struct fgv_keeper_session {
	uint32_t number;
	uint32_t account; /* its entry in struct fgv_accounts */
};

/* What a vGPU process says to its keeper, and is told. */
enum fgv_images_op {
	FGV_IMAGES_KNOWN = 1, /* is there one of this length and sample? */
	FGV_IMAGES_GET,	      /* the one with this digest: its file comes with the reply */
	FGV_IMAGES_PUT,	      /* keep this file; there is no reply */
};

/*
 * A file is a memfd that can't change any more: the image, and one byte of zero behind it. What its
 * digest is the keeper finds out by itself.
 */
struct fgv_images_request {
	uint32_t op;
	uint32_t reserved;
	uint64_t len;	    /* of the image */
	uint64_t sample;    /* KNOWN */
	uint8_t digest[32]; /* GET */
};

struct fgv_images_reply {
	uint32_t found;
	uint32_t reserved;
};

/* What a session that is frozen may be told to do, by the socket that comes with it (store.h). */
enum fgv_order_what {
	FGV_ORDER_SAVE = 1, /* the host's memory that it has gone to is to go into a file */
	FGV_ORDER_LOAD,	    /* and to come back from there */
};

#define FGV_TOKEN_BYTES 16

struct fgv_order {
	uint32_t what;
	uint32_t reserved;
	uint8_t token[FGV_TOKEN_BYTES]; /* names the file; it is loaded from the last one alone */
};

/* Words on that socket. */
enum fgv_store_word {
	FGV_STORE_READY = 'r',
	FGV_STORE_KEPT = 'k',	   /* all has got there */
	FGV_STORE_NOT_NOW = 'n',   /* it is not frozen, or in a file already, or not yet */
	FGV_STORE_NO_MEMORY = 'm', /* of the host's */
	FGV_STORE_OTHER = 'o',	   /* it has gone into another file since */
};

/*
 * Memory of a GPU that programs of a VM share (docs/design/0010-ipc.md), as the keeper has it: a
 * descriptor of the driver's, and the sessions that have it. A session that knows its key may have
 * it, too.
 */
#define FGV_SHARED_MAX	     4096 /* of a VM at a time */
#define FGV_SHARED_BYTES_MAX (1ull << 48)

struct fgv_key {
	uint64_t words[2]; /* random */
};

/*
 * In the place of a GPU: a page of words in memory of the host, by which programs tell each other
 * of events. It is charged to nobody. Once the session that made it has ended, every byte of it is
 * FGV_WORDS_OVER: nobody waits for what does not come any more.
 */
#define FGV_SHARED_HOST UINT32_MAX
#define FGV_WORDS_OVER	0x7f

/* Their numbers are none of enum fgv_images_op, nor are the sizes the same. */
enum fgv_sharing_op {
	FGV_SHARING_PUT = 16, /* memory of so many bytes, with its descriptor: its key */
	FGV_SHARING_GET,      /* the one with this key: its descriptor comes with the reply */
	FGV_SHARING_DROP,     /* the session has it no more; there is no reply */
};

struct fgv_sharing_request {
	uint32_t op;
	uint32_t gpu; /* among those of the VM, or FGV_SHARED_HOST */
	uint64_t bytes;
	struct fgv_key key;
};

struct fgv_sharing_reply {
	uint32_t error; /* 0, or an errno: ENOENT, EXDEV (it is another GPU's), ENOSPC, EPERM */
	uint32_t reserved;
	uint64_t bytes;
	struct fgv_key key;
};

/* How far a session is that was to be frozen. */
enum fgv_frozen {
	FGV_FROZEN_NOT,	   /* it runs */
	FGV_FROZEN_GOING,  /* its work ends, or its memory is leaving */
	FGV_FROZEN,	   /* its memory has left, but for what stays */
	FGV_FROZEN_COMING, /* it comes back */
	FGV_FROZEN_SAVED,  /* its memory is in a file, and none of it in the host's memory */
	FGV_FROZEN_FAILED, /* it could not be frozen, and runs */
};

/* What a session waits for that others have of a device that is over-committed. */
enum fgv_asks {
	FGV_ASKS_NOTHING,
	FGV_ASKS_TURN, /* its memory is out, and it has something to do */
	FGV_ASKS_ROOM, /* what it does needs more memory than is free */
};

/* What can't leave the device. */
enum fgv_stays {
	FGV_STAYS_MODULES, /* their code and variables */
	FGV_STAYS_ARRAYS,
	FGV_STAYS_MAPPED, /* memory that the program maps at its addresses by itself */
	FGV_STAYS,
};

/*
 * One session's use of its VM, a page. Written by its vGPU process, with plain atomic
 * stores, which is alone in mapping it to write; read by the daemon and by the VM's other
 * sessions. The daemon clears the entry when the process has ended, however that
 * happened, so nothing of it can stay behind.
 */
struct fgv_account {
	uint64_t memory_bytes; /* of the device, as charged */
	uint64_t requests;
	uint64_t round_trips; /* requests that the guest waited for */
	uint64_t launches;
	uint64_t batched;	     /* of them, those that went to the driver together */
	uint64_t repeated;	     /* of these, those of sequences that had come before */
	uint64_t changed;	     /* of these, those whose arguments were others */
	uint64_t graphs;	     /* times that a graph was launched; its kernels are launches */
	uint64_t doorbells_rung;     /* for sleeping threads of the guest */
	uint64_t doorbells_received; /* times that the guest woke the dispatcher */
	uint64_t parks;		     /* times that the dispatcher slept */
	uint64_t sliced;	     /* of the launches, those that ran in parts */
	uint64_t parts;		     /* of all of these */
	uint64_t left_whole;	     /* of the launches, those that should have, and could not */
	uint64_t bytes_in;	     /* copied from the host, but by graphs */
	uint64_t bytes_out;	     /* the same to it */
	uint64_t errors;	     /* calls whose reply is an error */
	uint64_t no_memory;	     /* of these, those that say that there is too little memory */
	uint64_t away_bytes;	     /* of memory_bytes, those that are not on the device */
	uint64_t frozen;	     /* enum fgv_frozen */
	uint64_t stays_bytes[FGV_STAYS]; /* of memory_bytes, those that can't leave the device */
	uint64_t asks;			 /* enum fgv_asks */
	uint64_t moved_in;		 /* bytes of its memory that came back to the device */
	uint64_t moved_out;		 /* ... and that left it */
	uint64_t tries;			 /* times that there was no room for what it asks for */
	uint8_t reserved[FGV_PAGE_BYTES - (24 + FGV_STAYS) * sizeof(uint64_t)];
};
_Static_assert(sizeof(struct fgv_account) == FGV_PAGE_BYTES, "one writer a page");

/*
 * The same of memory that sessions of a VM share, which is written by its keeper. It is charged
 * here, once, and not to the sessions that have it.
 */
struct fgv_shared_account {
	uint64_t memory_bytes;
	uint64_t has_bytes[FGV_SESSIONS_MAX]; /* of it, those that each session has */
	uint8_t reserved[FGV_PAGE_BYTES - (1 + FGV_SESSIONS_MAX) * sizeof(uint64_t)];
};
_Static_assert(sizeof(struct fgv_shared_account) == FGV_PAGE_BYTES, "one writer a page");

/*
 * The accounts of one VM, in a memfd of the daemon's. A VM's use of memory is the sum over its
 * sessions, and what these share: a session adds to its own entry, takes the sum, and takes its own
 * addition back if that is over the quota. No lock, so nothing to hold when killed; the price is
 * that two allocations racing for the last bytes may both fail.
 */
struct fgv_accounts {
	struct fgv_account sessions[FGV_SESSIONS_MAX];
	struct fgv_shared_account shared;
};

/* What a VM may have, in a memfd that is sealed: nobody but the daemon can write it. */
struct fgv_allowance {
	uint64_t memory_bytes; /* its quota */
	/*
	 * A bit for each session whose program has gone, but whose process has not. What its
	 * account says is in use will be free in a moment.
	 */
	uint64_t ending;
	/*
	 * A bit for each session that there is, and so may use anything of its account. It is set
	 * before the session can do so, and cleared after its account.
	 */
	uint64_t taken;
	/* A bit for each session that is to be frozen; behind a change of it a bell is rung. */
	uint64_t frozen;
	/* The same for those whose memory is to be out until it is their turn to have it in. */
	uint64_t out;
	/* A bit for each session that nobody makes room for: what it has no room for fails. */
	uint64_t alone;
	uint64_t paged; /* 1: the device is over-committed, so memory may be waited for */
};

#endif
