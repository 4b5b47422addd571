/* Parts of a grid; see slices_cut.h. */
#include "backend/vgpu/slices_cut.h"

#include "common/util.h"

/*
 * How many of the @left that are left of a dimension go into this part, where @most may: all parts
 * are of about the same size, rather than the last one the smallest.
 */
static uint32_t share(uint32_t left, uint64_t most)
{
	uint64_t parts = (left + most - 1) / most;

	return (uint32_t)((left + parts - 1) / parts);
}

uint64_t fgv_slices_cut(const uint32_t grid[3], uint64_t done, uint64_t blocks, uint32_t first[3],
			uint32_t size[3])
{
	uint64_t row = grid[0], layer = row * grid[1];

	blocks = fgv_max_u64(blocks, 1);
	first[0] = (uint32_t)(done % row);
	first[1] = (uint32_t)(done % layer / row);
	first[2] = (uint32_t)(done / layer);
	size[0] = grid[0];
	size[1] = grid[1];
	size[2] = 1;
	if (first[0] || blocks < row) {
		size[0] = share(grid[0] - first[0], blocks);
		size[1] = 1;
	} else if (first[1] || blocks < layer) {
		size[1] = share(grid[1] - first[1], blocks / row);
	} else {
		size[2] = share(grid[2] - first[2], blocks / layer);
	}
	return fgv_extent(size);
}
