/*
 * Chains; see batch_chain.h.
 */
#include "backend/vgpu/batch_chain.h"

#include "backend/vgpu/session.h"

static uint32_t size_of(unsigned size)
{
	return FGV_BATCH_SMALLEST << size;
}

static void fill(struct fgv_batch_row *row, const struct fgv_batch_launch *launches)
{
	for (uint32_t i = 0; i < row->count; i++) {
		const struct fgv_batch_kept *kept = &row->kept[i];

		if (!fgv_batch_same_shape(&kept->shape, &launches[i].shape) ||
		    memcmp(kept->args, launches[i].args, launches[i].args_len))
			fgv_batch_row_put(row, i, &launches[i]);
	}
}

/* False: the launches are still to be made. */
static bool run(struct fgv_session *session, struct fgv_batch_row **row,
		struct fgv_gpu_stream *stream, const struct fgv_batch_launch *launches,
		uint32_t count)
{
	CUresult status = CUDA_ERROR_UNKNOWN;

	if (*row)
		fill(*row, launches);
	else
		*row = fgv_batch_row_create(session, launches, count);
	if (*row)
		status = fgv_batch_row_launch(session, *row, stream);
	if (status == CUDA_SUCCESS) {
		fgv_account_add(&session->account->batched, count);
		return true;
	}
	if (*row)
		fgv_batch_row_destroy(session, *row);
	*row = NULL;
	fgv_batch_failed(session, status);
	return false;
}

uint32_t fgv_batch_chains_run(struct fgv_session *session, struct fgv_batch_chains *chains,
			      struct fgv_gpu_stream *stream,
			      const struct fgv_batch_launch *launches, uint32_t count)
{
	unsigned size = FGV_BATCH_SIZES;
	uint32_t done = 0;

	while (size-- > 0) {
		while (count - done >= size_of(size)) {
			uint8_t *turn = &chains->turn[size];
			struct fgv_batch_row **row = &chains->rows[size][*turn];

			*turn = (uint8_t)((*turn + 1) % FGV_BATCH_TURNS);
			if (!run(session, row, stream, &launches[done], size_of(size)))
				return done;
			done += size_of(size);
		}
	}
	return done;
}

void fgv_batch_chains_forget(struct fgv_session *session, struct fgv_batch_chains *chains)
{
	for (unsigned i = 0; i < FGV_BATCH_SIZES * FGV_BATCH_TURNS; i++) {
		struct fgv_batch_row **row =
			&chains->rows[i / FGV_BATCH_TURNS][i % FGV_BATCH_TURNS];

		if (*row)
			fgv_batch_row_destroy(session, *row);
		*row = NULL;
	}
}
