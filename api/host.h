/*
 * The host's side of an operation: from the bytes of a request to the call of its
 * handler. The decoding is generated (gpu_host.c); this is what it takes from the vGPU
 * process, and what it promises to it.
 *
 * Decoding ends in one of three ways:
 *
 *   a violation   What no honest guest sends: an unknown operation, a wrong length, a
 *                 reserved field that is not zero, memory outside the window. The
 *                 session ends. Looked for first, so that it never hides.
 *   a bad handle  The program's own mistake: CUDA_ERROR_INVALID_HANDLE.
 *   the handler   fgv_do_<op>() of gpu_host.h ran; its CUresult is the status.
 *
 * Handlers get checked arguments. Handles have become objects; stream 0, the legacy
 * default stream, has become NULL, and so has array 0, which means linear memory. A source or a
 * sink has become a pointer into the window: the guest can change what lies there at any moment, so
 * whatever a handler decides on it must copy first. bytes point into the message, without any
 * alignment. Pointers are valid until the handler returns, those into the window as long as the
 * session lives.
 *
 * Threads: the session's dispatching thread only.
 */
#ifndef FGV_API_HOST_H
#define FGV_API_HOST_H

#include <cuda.h>
#include <stdint.h>

struct fgv_session;
struct fgv_object;

/* Kinds of objects that a handle may name. */
enum fgv_kind {
	FGV_KIND_MODULE,
	FGV_KIND_FUNCTION,
	FGV_KIND_STREAM,
	FGV_KIND_EVENT,
	FGV_KIND_ARRAY,	  /* also one with mipmap levels */
	FGV_KIND_TEXTURE, /* an object by which kernels reach a texture or a surface */
	FGV_KIND_GRAPH,	  /* ready to be launched */
	FGV_KIND_MEMORY,  /* device memory without an address */
};
#define FGV_KINDS (FGV_KIND_MEMORY + 1)

/*
 * A request in progress. The caller of fgv_dispatch fills in all but violation; the
 * handler of an operation that is work says how much work of which kind it is.
 */
struct fgv_request {
	uint16_t op;
	uint16_t vcpu;
	uint32_t lane;
	uint32_t call;
	uint32_t subject; /* a function's handle, or a graph's number; 0: the operation itself */
	uint64_t amount;  /* threads or bytes; 0: next to nothing */
	/* Set by a handler whose operation is not always work: this time it is. */
	uint32_t is_work;
	/* Of a launch that is run again, because not all of it could go to the GPU at once. */
	uint32_t is_again;
	uint64_t blocks_done;
	/* Of a part of a launch: its threads, in 256ths of what the GPU has room for. */
	uint32_t portion;
	const char *violation; /* a constant text for the log, where fgv_dispatch fails */
};

/* Returned by a handler that will reply later; never a CUresult of CUDA's. */
#define FGV_PENDING ((CUresult)-1)

/*
 * Returned by a handler that has set is_work and may not put work on the GPU now. It has done
 * nothing, and is run again later. So is a launch of which blocks_done have gone there.
 */
#define FGV_CLOSED ((CUresult)-2)

/* The vGPU provides: the memory at [off, off + len) of the window, NULL if outside the arena. */
void *fgv_session_resolve(struct fgv_session *session, uint64_t off, uint64_t len);

/* The vGPU provides: the object of @kind that @handle names, NULL if there is none. */
struct fgv_object *fgv_session_lookup(struct fgv_session *session, enum fgv_kind kind,
				      uint32_t handle);

/*
 * Decodes @message, the caller's private copy of @len bytes (never NULL), and runs the
 * handler of request->op. Returns
 *
 *   0         *status is the handler's, FGV_PENDING and FGV_CLOSED included, or
 *             CUDA_ERROR_INVALID_HANDLE without the handler having run. @reply, which
 *             has room for FGV_SLOT_FIRST bytes, holds *reply_len bytes: more than 0
 *             only with CUDA_SUCCESS. NULL will do for a post, which has no reply.
 *   -EBADMSG  unknown operation, wrong length or a reserved field that is not zero
 *   -EFAULT   a source or sink that is not inside the window
 *
 * A negative return means that the session must end; request->violation says why, and
 * nothing else was written. Replying later with results takes fgv_encode_<op>().
 */
int fgv_dispatch(struct fgv_session *session, struct fgv_request *request, const void *message,
		 uint32_t len, void *reply, uint32_t *reply_len, CUresult *status);

#endif
