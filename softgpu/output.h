/*
 * What kernels print: records, each what one call of printf or one assertion said, in the
 * order in which they came, for standard output and standard error.
 *
 * As with CUDA, a buffer of the size that cudaLimitPrintfFifoSize sets belongs to a
 * kernel: what is over it takes the place of the kernel's oldest records. What nobody
 * has fetched is kept for later, up to FGV_OUTPUT_KEPT_BYTES, and then loses the oldest.
 *
 * Threads: any.
 */
#ifndef FGV_SOFTGPU_OUTPUT_H
#define FGV_SOFTGPU_OUTPUT_H

#include <bsd/sys/queue.h>
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define FGV_OUTPUT_RECORD_MAX 8192 /* bytes that one call prints at most */
#define FGV_OUTPUT_KEPT_BYTES (16u << 20)
#define FGV_OUTPUT_FIFO_BYTES (1u << 20) /* unless a limit is set */

struct output_record;

struct output {
	pthread_mutex_t lock;
	size_t fifo_bytes;
	bool used;   /* something was printed */
	int waiting; /* atomic: there are records */
	struct output_stream {
		STAILQ_HEAD(output_list, output_record) records;
		struct output_record *before; /* the last that is no running kernel's */
		size_t bytes;		      /* of all records */
		size_t new_bytes;	      /* of them behind @before */
	} streams[2];
};

void fgv_softgpu_output_init(struct output *output);
void fgv_softgpu_output_fini(struct output *output);
/* CUDA_ERROR_INVALID_VALUE: something has been printed, or it is too much. */
CUresult fgv_softgpu_output_resize(struct output *output, size_t fifo_bytes);
/* A kernel begins. */
void fgv_softgpu_output_turn(struct output *output);
/* Adds a record to standard output (0) or standard error (1). False: no memory for it. */
bool fgv_softgpu_output_add(struct output *output, unsigned stream, const char *text, size_t len);
/* Moves up to @room bytes from the oldest records to @text; how many. */
size_t fgv_softgpu_output_take(struct output *output, unsigned stream, char *text, size_t room);

static inline bool fgv_softgpu_output_waits(const struct output *output)
{
	/* Pairs with the release in fgv_softgpu_output_add(). */
	return __atomic_load_n(&output->waiting, __ATOMIC_ACQUIRE);
}

#endif
