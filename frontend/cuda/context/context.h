/*
 * Every function of the core that needs the GPU starts here: it enters the context, which gives it
 * this thread's lane, and leaves the lane when it is done.
 *
 *	res = fgv_context_enter_any(&lane);
 *	if (!res) {
 *		res = fgv_call_mem_alloc(lane, ...);
 *		fgv_lane_leave(lane);
 *	}
 *
 * The lane is one of the device that the thread works on. As lanes are, contexts are not entered
 * twice.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_CONTEXT_H
#define FGV_CUDA_CONTEXT_H

#include <cuda.h>

#include "frontend/client/lane.h"
#include "frontend/client/stats.h"

struct fgv_device_info;

/* For the function below alone: the device known, and a context for the thread to work in. */
CUresult fgv_context_join(void);

/*
 * A lane of the device that this thread works on, with that known. Fails with the code of why there
 * is no session, or why it has ended; then *lane is NULL.
 */
static inline CUresult fgv_context_enter_any(struct fgv_lane **lane)
{
	CUresult res;

	if (__builtin_expect(!fgv_thread_self.is_ready, 0)) {
		*lane = NULL;
		res = fgv_context_join();
		if (res)
			return res;
	}
	return fgv_lane_enter(lane);
}

/*
 * The same, with a lane of device @ordinal, which the thread need not work on: for objects and
 * memory of that device.
 */
CUresult fgv_context_enter_on(uint32_t ordinal, struct fgv_lane **lane);

/* Enters and leaves: what of a context that it can't do without a GPU, as its code. */
CUresult fgv_context_need(void);

/* The device's description, known without the GPU once any thread has entered. */
CUresult fgv_context_info(const struct fgv_device_info **info);

/* The description of device @ordinal. CUDA_ERROR_INVALID_DEVICE: the session has none such. */
CUresult fgv_context_find_device(int ordinal, const struct fgv_device_info **info);

/* This thread's current device; 0 until it sets another. */
int fgv_context_get_device(void);
/* CUDA_ERROR_INVALID_DEVICE, or CUDA_ERROR_NOT_INITIALIZED in a forked child. */
CUresult fgv_context_set_device(int ordinal);

/* Waits for all work; pools give back what they keep beyond their thresholds. */
CUresult fgv_context_synchronize(void);

/*
 * What the program has said of the context: flags (CUctx_flags) and how a multiprocessor's memory
 * is divided. To the GPUs that FairGV runs on these are hints, and waiting is hybrid anyway: they
 * are remembered. CUDA_ERROR_INVALID_VALUE for what they can't be.
 */
CUresult fgv_context_set_flags(unsigned flags);
unsigned fgv_context_get_flags(void);
CUresult fgv_context_set_cache_config(CUfunc_cache config);
CUresult fgv_context_get_cache_config(CUfunc_cache *config);
/* Whether there is such a config. */
bool fgv_context_is_cache_config(CUfunc_cache config);

#endif
