/*
 * What this library keeps per host thread. Whatever else a part of it or a face keeps for a thread
 * is in that part's own storage, and told of here if it must be given back at the thread's end.
 *
 * Threads: each sees its own. The initial thread's is left to the end of the process.
 */
#ifndef FGV_CLIENT_THREAD_H
#define FGV_CLIENT_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct fgv_lane;

/* Something that a thread has, in its storage; zeroed but for @end at first. */
struct fgv_thread_part {
	void (*end)(void); /* gives it back, in the thread */
	struct fgv_thread_part *next;
	bool is_added;
};

struct fgv_thread {
	struct fgv_lane *lane; /* of the GPU that it works on; NULL until needed */
	uint32_t device;       /* that GPU's ordinal */
	uint32_t id;	       /* the kernel's; 0 until needed */
	uint32_t forbidden;    /* CUDA must not be called: the thread can get no lane */
	struct fgv_thread_part *parts;
	bool is_watched;
	bool is_ready; /* it works in a context (cuda/context/context.h) */
};

/* In the initial TLS block, which makes an access one instruction. */
extern __thread struct fgv_thread fgv_thread_self __attribute__((tls_model("initial-exec")));

/*
 * Has @part given back at the thread's end, after those that were added later. Call before there
 * is anything to give back, as often as you like: once it has been given back, it must be added
 * again. -ENOMEM.
 */
int fgv_thread_add(struct fgv_thread_part *part);

/* A thread of this library, which stays and which the program's signals do not reach; or an errno.
 */
int fgv_thread_start(void *(*serve)(void *arg), void *arg);

#endif
