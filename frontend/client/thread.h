/*
 * What CUDA keeps per host thread: the last error, the current device, launch
 * configurations between push and pop; and what this library does: the lane.
 *
 * Threads: each sees its own. What is given back at a thread's end is listed in
 * thread.c; the initial thread's is left to the end of the process.
 */
#ifndef FGV_CLIENT_THREAD_H
#define FGV_CLIENT_THREAD_H

#include <driver_types.h>
#include <stdint.h>
#include <vector_types.h>

struct fgv_lane;
struct fgv_recorder;

struct fgv_launch_config {
	dim3 grid;
	dim3 block;
	size_t shared_bytes;
	cudaStream_t stream;
};

struct fgv_thread {
	struct fgv_lane *lane; /* NULL until needed */
	uint32_t id;	       /* the kernel's; 0 until needed */
	cudaError_t last_error;
	int device;
	uint32_t default_stream; /* the host's handle of this thread's own; 0: none yet */
	uint32_t watched;	 /* fgv_thread_watch() was called */
	uint32_t forbidden;	 /* CUDA must not be called: the thread can get no lane */
	uint32_t in_errlog;	 /* it is in a callback of the log (errlog.h) */
	/* Takes what this thread puts into any stream (libcudart/capture.h); NULL: nothing does. */
	struct fgv_recorder *recorder;
	int capture_mode; /* an enum cudaStreamCaptureMode; 0 is the default */
	struct fgv_launch_config *configs;
	uint32_t config_count;
	uint32_t config_room;
	/* The allocation found last (addrmap.c), good while no other has been removed. */
	uint64_t range_start;
	uint64_t range_len;
	uint64_t range_generation;
	uint32_t range_kind; /* enum fgv_range_kind */
};

/* In the initial TLS block, which makes an access one instruction. */
extern __thread struct fgv_thread fgv_thread_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * Has what this thread holds given back at its end. Call before giving it anything.
 * CUDA's code for no memory where that is not possible, else 0.
 */
int fgv_thread_watch(void);

/* A thread of this library, which stays and which the program's signals do not reach; or an errno.
 */
int fgv_thread_start(void *(*serve)(void *unused));

#endif
