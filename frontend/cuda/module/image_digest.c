/*
 * Each thread that helps takes the next leaf that nobody has.
 */
#include "frontend/cuda/module/image_digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "frontend/client/crew.h"

#define HELPERS_MAX 16
/* Of fewer leaves one thread makes the digest before a helper would be awake. */
#define LEAVES_MIN 4

struct work {
	const struct fgv_image_pieces *image;
	struct fgv_digest *leaves;
	size_t count;
	size_t next; /* atomic */
};

struct share {
	struct fgv_crew_job job; /* the first member */
	struct work *work;
};

static void hash_leaves(struct work *work)
{
	const struct fgv_image_pieces *image = work->image;
	size_t i;

	while ((i = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) < work->count)
		work->leaves[i] = fgv_digest_leaf(image->list, image->count, image->len, i);
}

static void run_share(struct fgv_crew_job *job)
{
	hash_leaves(((struct share *)job)->work);
}

static void hash_with_helpers(struct work *work, unsigned helpers)
{
	struct share shares[HELPERS_MAX];

	for (unsigned i = 0; i < helpers; i++) {
		shares[i] = (struct share){.job.run = run_share, .work = work};
		fgv_crew_add(&shares[i].job);
	}
	hash_leaves(work);
	for (unsigned i = 0; i < helpers; i++) {
		while (!fgv_crew_is_done(&shares[i].job) && fgv_crew_help())
			continue;
		fgv_crew_wait(&shares[i].job);
	}
}

int fgv_image_digest(const struct fgv_image_pieces *image,
		     uint64_t digest[FGV_DIGEST_BYTES / sizeof(uint64_t)])
{
	struct work work = {.image = image, .count = fgv_digest_leaves(image->len)};
	struct fgv_digest root;
	unsigned helpers = 0;

	work.leaves = calloc(work.count, sizeof(*work.leaves));
	if (!work.leaves)
		return -ENOMEM;
	if (work.count >= LEAVES_MIN)
		helpers = (unsigned)fgv_min_u64(fgv_crew_need(), HELPERS_MAX);
	hash_with_helpers(&work, helpers);
	root = fgv_digest_root(work.leaves, image->len);
	memcpy(digest, root.bytes, sizeof(root.bytes));
	free(work.leaves);
	return 0;
}
