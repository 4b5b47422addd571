/*
 * A host for the frontend's tests, in a thread of the test: it listens on a socket of
 * its own, takes one session, and executes operations at once on memory that it calls
 * the device's. What it was asked, and what it shall answer, is in struct host.
 *
 * Threads: what is marked as a knob is set before the client asks, or is atomic.
 */
#ifndef TEST_CLIENT_HOST_H
#define TEST_CLIENT_HOST_H

#include <pthread.h>
#include <stdbool.h>

#include "api/gpu_host.h"
#include "shmring/lanes.h"
#include "shmring/window.h"

/* Where programs have nothing, and ThreadSanitizer lets them have something. */
#define HOST_VA_BASE   0x7e9000000000ull
#define HOST_MEMORY    (64ull << 20)
#define HOST_VMEM_BASE (HOST_VA_BASE + (1ull << 30))
#define HOST_OBJECTS   4096
#define HOST_LAUNCHES  65536
#define HOST_LIMITS    16
#define HOST_OWN       8192 /* objects with handles of the guest's own */

struct fgv_object {
	int kind;      /* enum fgv_kind + 1; 0: none */
	char name[64]; /* a function's */
	uint32_t recorded;
	uint32_t handle; /* the guest's own; 0: it is its place among the objects */
};

struct host_launch {
	char kernel[64];
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	uint32_t stream;
	uint32_t param_count;
	uint32_t args_len;
	uint8_t args[256];
};

struct host {
	/* Knobs. */
	uint32_t lanes;	  /* of the window */
	CUresult refuse;  /* the welcome's status */
	uint32_t version; /* the welcome's */
	bool no_descriptors;
	uint32_t status[FGV_OP_MAX + 1]; /* atomic: what a call or the next one says */
	uint32_t hold_sync;		 /* atomic: stream_sync is not answered meanwhile */
	uint32_t die;			 /* atomic: close the connection, and stop */
	uint32_t pause;			 /* atomic: look at no requests meanwhile */
	int32_t attributes[FGV_DEVICE_ATTRIBUTES];
	int32_t function_attributes[FGV_FUNCTION_ATTRIBUTES];
	bool describes;		/* the kernels of modules that it loads */
	uint32_t misdescribes;	/* bytes that a record is longer than it should be */
	uint8_t managed[16384]; /* variables that images have, if there are bytes of them */
	uint64_t managed_bytes;
	uint64_t granule;  /* of memory without an address */
	uint64_t kept_len; /* of an image that it knows; 0: none */
	uint64_t kept_digest[4];

	/* What happened; the counts of requests are atomic, for the rest see host_seen(). */
	uint64_t seen;
	uint64_t requests[FGV_OP_MAX + 1];
	uint64_t lanes_attached;
	uint64_t violations;
	uint64_t launch_count;
	uint64_t changed_nodes; /* of graphs */
	struct host_launch launches[HOST_LAUNCHES];
	uint8_t priorities[4]; /* of the first nodes of graphs, as they came last */
	uint32_t cluster[3];   /* of the last launch in clusters */
	uint32_t cluster_cooperative, cluster_any_size, cluster_policy;
	uint64_t image_len; /* of the module that was loaded last */
	uint8_t image[65536];
	uint64_t limits[HOST_LIMITS];
	uint64_t freed[64];
	uint64_t freed_count;
	char vm[FGV_NAME_MAX];

	/* Its own. */
	struct fgv_window window;
	struct fgv_lanes *looking;
	struct fgv_object objects[HOST_OBJECTS];
	uint32_t object_count;
	struct fgv_object own[FGV_OWN_KINDS][HOST_OWN];
	int64_t room[FGV_OWN_KINDS];	 /* reserved for those, and not used */
	int64_t reserved[FGV_OWN_KINDS]; /* in all */
	int64_t most_reserved;		 /* that they may be; a knob; 0: as many as is liked */
	uint64_t allocated;
	uint64_t vmem_reserved;
	uint64_t words[FGV_PAGE_BYTES / sizeof(uint64_t)];
	uint64_t misfits[20]; /* given before what is free, from the last on */
	uint64_t misfit_count;
	uint8_t *memory;
	/* Host memory that it was shown, which is this process's own. */
	struct {
		uint64_t address, len;
	} mapped[16];
	uint32_t mapped_count;
	CUresult deferred;
	struct {
		uint32_t lane, call;
	} held[FGV_LANES_MAX];
	uint32_t held_count;
	int listener, connection, doorbell, window_fd;
	char path[108];
	pthread_t thread;
};

extern struct host host;

/* Has the device and its kernels say what those of an H200 say; a knob. */
void host_be_h200(void);

/* Starts it, with FAIRGV_SOCKET pointing to it. Set knobs after host_init(). */
void host_init(void);
void host_start(void);
/* Without waiting for the client: its connection ends. */
void host_stop(void);

/* An atomic read or write of one of the fields above. */
#define HOST_GET(field)	   __atomic_load_n(&host.field, __ATOMIC_ACQUIRE)
#define HOST_SET(field, v) __atomic_store_n(&host.field, (v), __ATOMIC_RELEASE)

/*
 * Once a call has returned: what the host did before is there to be read, and what is
 * written now there for what it does next. (All that is so anyway, but ThreadSanitizer does
 * not see that both sides map the same memory.)
 */
static inline void host_seen(void)
{
	__atomic_fetch_add(&host.seen, 1, __ATOMIC_ACQ_REL);
}

/* What the client has lent for a copy in. */
static inline void host_give_back(uint32_t loan, uint32_t number)
{
	__atomic_store_n(&fgv_window_head(&host.window)->staging_done[loan], number,
			 __ATOMIC_RELEASE);
}

/* The handlers' part (test_client_gpu.c): replies that were held back. */
bool host_hold(uint32_t lane, uint32_t call);
/* What the client calls @object; 0: NULL. */
uint32_t host_handle_of(const struct fgv_object *object);

#endif
