/*
 * Kernels in parts (docs/design/0025-slicing.md): one that is predicted to take longer than a
 * slice goes to the GPU as several launches over parts of its grid, each of them about half a slice
 * long, and the turn may end between them. It is for GPUs and sessions that can't be held.
 *
 * A kernel that nobody has measured is begun with as many blocks as the GPU has room for at once.
 * Fewer make no sense: they would take as long. And no grid that fits onto the GPU at once is ever
 * taken apart, so blocks that wait for each other, as those of a grid that fits can, still do.
 *
 * Parts are launches of a module of their own, that is made and loaded when the first of them is
 * due (slices_make.c), and charged. Kernels for which there can be none are left whole; the account
 * counts that, and the log has the reason.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_SLICES_H
#define FGV_VGPU_SLICES_H

#include <stdbool.h>
#include <stdint.h>
#include "api/gpu_host.h"
#include "backend/vgpu/handles.h"

struct fgv_image;
struct fgv_session;

enum fgv_sliced_state {
	FGV_SLICED_UNTRIED,
	FGV_SLICED_READY,
	FGV_SLICED_NEVER, /* it is left whole */
};

/* Of a function, where kernels may run in parts. */
struct fgv_sliced {
	enum fgv_sliced_state state;
	struct fgv_gpu_module *module;
	struct fgv_gpu_function *gpu;
	struct fgv_charge charge;
	uint32_t threads_max; /* of a block */
	uint32_t registers;   /* of a thread, as it was compiled */
	uint32_t shared;      /* of a block, but for what the launch adds */
	double threads;	      /* for which the place has the time; 0: it never filled the GPU */
	uint16_t place;	      /* in the forecast, of its last launch that did */
	double ended_threads; /* of the largest one that is known to have ended */
	double trial_threads; /* of one that is larger */
	uint64_t trial;	      /* the number of its request; 0: there is none */
	uint32_t trial_stream; /* its handle */
	char name[];
};

/* Of a session. */
struct fgv_slices {
	uint32_t mode;	 /* enum fgv_slicing */
	uint64_t blocks; /* of each part, whatever they take; 0: by the forecast */
	uint32_t grid_max[3];
	uint32_t registers; /* of a multiprocessor */
	uint32_t shared;    /* of a multiprocessor, in bytes, */
	uint32_t reserved;  /* and what each block takes of that by itself */
	unsigned told; /* lines in the log */
};

/* As the setup says. The GPU is open. */
void fgv_slices_init(struct fgv_session *session);

/* Whether kernels of this session run in parts, as far as it is known now. */
bool fgv_slices_are_on(const struct fgv_session *session);

/*
 * @module, if any, was loaded from @image, which becomes its own if its kernels may run in parts,
 * and is empty then.
 */
void fgv_slices_take_image(struct fgv_session *session, struct fgv_object *module,
			   struct fgv_image *image);
void fgv_slices_put_image(struct fgv_object *module);

/* @function is kernel @name of its module; and it goes. */
CUresult fgv_slices_open(struct fgv_session *session, struct fgv_object *function,
			 const char *name);
void fgv_slices_close(struct fgv_session *session, struct fgv_object *function);

/*
 * Launches a kernel that may run in parts, whose arguments have been checked and are pointed at by
 * session->params; as the handler of @request, which knows how much of it is done.
 */
CUresult fgv_slices_launch(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_launch_in *in);

/* One that has to be launched whole, @why; it may be one that is longer than a slice. */
void fgv_slices_pass(struct fgv_session *session, struct fgv_object *function,
		     const uint32_t grid[3], const uint32_t block[3], const char *why);

/* --- For the files of this theme ------------------------------------------------ */

/*
 * The function that does parts, in READY. FGV_CLOSED: it can't be loaded in what is left of the
 * turn. Otherwise it is left whole, from now on.
 */
CUresult fgv_slices_make(struct fgv_session *session, struct fgv_object *function);

/* A launch was left whole, because of @why. */
void fgv_slices_note_whole(struct fgv_session *session, const struct fgv_sliced *sliced,
			   const char *why);

#endif
