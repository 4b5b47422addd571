/*
 * Parts of a grid: boxes of whole rows and layers as far as that goes, one after the other in the
 * order x, y, z, so that how many blocks are done says where the next part begins.
 *
 * Threads: no state.
 */
#ifndef FGV_VGPU_SLICES_CUT_H
#define FGV_VGPU_SLICES_CUT_H

#include <stdint.h>

/*
 * The part of @grid behind its first @done blocks, of which there are some more: it begins at
 * @first, and has @size[0] * @size[1] * @size[2] blocks, which are returned: @blocks or less, but
 * one at least.
 */
uint64_t fgv_slices_cut(const uint32_t grid[3], uint64_t done, uint64_t blocks, uint32_t first[3],
			uint32_t size[3]);

#endif
