/*
 * One lane's access to an address of any kind: device memory, registered host memory, and the
 * windows of shared memory, local memory and kernel parameters.
 */
#include "softgpu/ops/lane_mem.h"

static bool in_window(uint64_t address, uint64_t window, uint64_t limit, unsigned size)
{
	return address >= window && address - window < limit && limit - (address - window) >= size;
}

void *fgv_softgpu_lane_pointer(struct warp *w, uint64_t address, unsigned size, unsigned lane)
{
	struct block *b = w->block;

	if (address < ADDRESS_LIMIT)
		return fgv_softgpu_view_has(w->view, address, address + size)
			       ? (void *)(uintptr_t)address
			       : NULL;
	if (in_window(address, SHARED_WINDOW, b->shared_bytes, size))
		return b->shared + (address - SHARED_WINDOW);
	if (in_window(address, LOCAL_WINDOW, b->local_bytes, size) && size <= 4) {
		uint64_t offset = address - LOCAL_WINDOW;

		return w->local_memory + (offset >> 2) * (4 * LANES) + lane * 4 + (offset & 3);
	}
	return NULL;
}

/* Local memory in pieces that stay within a word. */
static bool local_copy(struct warp *w, uint64_t address, unsigned size, unsigned lane, void *value,
		       bool write)
{
	unsigned step = size < 4 ? size : 4;

	for (unsigned k = 0; k < size; k += step) {
		void *p = fgv_softgpu_lane_pointer(w, address + k, step, lane);

		if (!p)
			return false;
		if (write)
			memcpy(p, (char *)value + k, step);
		else
			memcpy((char *)value + k, p, step);
	}
	return true;
}

bool fgv_softgpu_lane_read(struct warp *w, uint64_t address, unsigned size, unsigned lane,
			   void *value)
{
	const void *p;

	if (in_window(address, LOCAL_WINDOW, w->block->local_bytes, size))
		return local_copy(w, address, size, lane, value, false);
	if (in_window(address, PARAM_WINDOW, w->param_bytes, size))
		p = w->param + (address - PARAM_WINDOW);
	else
		p = fgv_softgpu_lane_pointer(w, address, size, lane);
	if (!p)
		return false;
	copy_whole(value, p, size);
	return true;
}

bool fgv_softgpu_lane_write(struct warp *w, uint64_t address, unsigned size, unsigned lane,
			    const void *value)
{
	void *p;

	if (in_window(address, LOCAL_WINDOW, w->block->local_bytes, size))
		return local_copy(w, address, size, lane, (void *)(uintptr_t)value, true);
	p = fgv_softgpu_lane_pointer(w, address, size, lane);
	if (!p)
		return false;
	copy_whole(p, value, size);
	return true;
}
