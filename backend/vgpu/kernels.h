/*
 * What is known of each kernel of a program: how long it takes, and how long the program then
 * leaves the GPU idle before it asks for it again (policies that fill gaps). A kernel is known by
 * the content of its module, its name, and the shape of its launch; other work by what it is.
 *
 * Learned from the fences that the gate has anyway: a kernel's time, where a fence covers nothing
 * else; a gap, from the time that nothing is left on the GPU until the next work has come, whether
 * or not that has to wait for the grant. Of each, means. Many programs launch the same kernel
 * several times and then pause, so gaps that are worth something are told from those that are not:
 * the book has how often they are, and how long only those are.
 *
 * All of it is advice: it says what to try, and is never charged. The book has room for a bounded
 * number of kernels; those that are seen least make room.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_KERNELS_H
#define FGV_VGPU_KERNELS_H

#include <stdbool.h>
#include "api/host.h"
#include "backend/shared.h"

struct fgv_object;
struct fgv_session;

/* A gap that is worth the way to another process and back. */
#define FGV_KERNELS_GAP_NS 200000u

/* The work that went to the GPU last, as far as is needed to know it again. */
struct fgv_kernel_shape {
	uint32_t function; /* its handle; 0: it is no kernel */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes;
};

struct fgv_kernels {
	struct fgv_kernel_book *book; /* NULL: nothing is learned */
	struct fgv_kernel_shape last;
	uint32_t other; /* where that is no kernel: which operation, and how much it was */
	uint32_t magnitude;
	uint64_t idle_ns;	   /* nothing is on the GPU since; 0: something is, or nobody knows */
	struct fgv_kernel *before; /* what was there before; NULL: nobody knows */
};

/* 0 or -ENOMEM. Without @learns nothing is. */
int fgv_kernels_init(struct fgv_kernels *kernels, bool learns);
void fgv_kernels_fini(struct fgv_kernels *kernels);

/* A number for an image, by its content; and for the kernel @name in it. Never 0. */
uint64_t fgv_kernels_image(const void *image, uint64_t len);
uint64_t fgv_kernels_name(uint64_t image, const char *name);

/* @request, whose arguments are @message, has gone to the GPU. */
void fgv_kernels_note(struct fgv_kernels *kernels, const struct fgv_request *request,
		      const uint8_t *message);

/* All is done; @alone_ns: what the last took by itself, 0 where that is not known. */
void fgv_kernels_drained(struct fgv_session *session, uint64_t alone_ns, uint64_t now_ns);

/* The next work has come. */
void fgv_kernels_resume(struct fgv_kernels *kernels, uint64_t now_ns);

/*
 * How much longer the GPU will not be wanted, at @now_ns; 0: unknown. A gap that has just begun has
 * to be likely to be a long one; one that has lasted for a while is.
 */
uint32_t fgv_kernels_gap_ns(const struct fgv_kernels *kernels, uint64_t now_ns);

/* What a request that has not been decoded will take; 0: unknown. */
uint32_t fgv_kernels_next_ns(struct fgv_session *session, const struct fgv_request *request,
			     const uint8_t *message, uint32_t len);

#endif
