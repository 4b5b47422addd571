/*
 * What the runtime keeps per host thread: its last error, and launch configurations between push
 * and pop.
 *
 * Threads: each sees its own.
 */
#ifndef FGV_LIBCUDART_THREAD_H
#define FGV_LIBCUDART_THREAD_H

#include <driver_types.h>
#include <stdint.h>
#include <vector_types.h>

struct fgv_launch_config {
	dim3 grid;
	dim3 block;
	size_t shared_bytes;
	cudaStream_t stream;
};

struct fgv_cudart_thread {
	cudaError_t last_error;
	struct fgv_launch_config *configs; /* given back at the thread's end: launch.c */
	uint32_t config_count;
	uint32_t config_room;
};

extern __thread struct fgv_cudart_thread fgv_cudart_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
