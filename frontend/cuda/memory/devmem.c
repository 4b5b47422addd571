/*
 * Asking for device memory.
 */
#include "frontend/cuda/memory/devmem.h"

#include <errno.h>

#include "frontend/client/lane.h"
#include "frontend/cuda/graph/exec_kept.h"

/* Each further one has to miss the program's memory at another place. */
#define ATTEMPTS 16

/*
 * The device knows nothing of this process, so where its choice does not fit it is asked for
 * another, and only then told to take back what did not.
 */
static CUresult allocate_apart(struct fgv_lane *lane, uint64_t bytes, uint64_t *address)
{
	uint64_t misfits[ATTEMPTS];
	unsigned count = 0;
	CUresult res;

	do {
		res = fgv_call_mem_alloc(lane, bytes, address);
		if (res || fgv_addrmap_claim(*address, bytes) != -EEXIST)
			break;
		misfits[count++] = *address;
		res = CUDA_ERROR_OUT_OF_MEMORY;
	} while (count < ATTEMPTS);
	while (count)
		fgv_post_mem_free(lane, misfits[--count]);
	return res;
}

CUresult fgv_devmem_alloc(struct fgv_lane *lane, uint64_t bytes, enum fgv_range_kind kind,
			  uint64_t *address)
{
	CUresult res = allocate_apart(lane, bytes, address);

	if (res == CUDA_ERROR_OUT_OF_MEMORY && fgv_exec_kept_drop(lane))
		res = allocate_apart(lane, bytes, address);
	if (res)
		return res;
	if (!fgv_addrmap_add_on(lane->client->device, *address, bytes, kind))
		return CUDA_SUCCESS;
	fgv_post_mem_free(lane, *address);
	return CUDA_ERROR_OUT_OF_MEMORY;
}
