/*
 * The book of kernels; see kernels.h.
 */
#include "backend/vgpu/kernels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "backend/vgpu/session.h"
#include "common/digest.h"
#include "common/util.h"

/* A kernel may be in so many places of the book. */
#define WAYS 4

/* A mean is of about so many, so that it follows a program that changes. */
#define MEAN_OF 16

/* A gap that was seen less often may have been a pause. */
#define GAPS_MIN 3

/* A gap that has lasted for so long is a long one, most likely. */
#define SURE_NS (FGV_KERNELS_GAP_NS / 2)

/* One that has just begun, where so many of four were long. */
#define LIKELY_OF_4 3

_Static_assert(FGV_KERNELS % WAYS == 0, "rows");
_Static_assert(sizeof(struct fgv_kernel_shape) ==
		       offsetof(struct fgv_launch_request, shared_bytes) + sizeof(uint32_t),
	       "the beginning of a launch");

int fgv_kernels_init(struct fgv_kernels *kernels, bool learns)
{
	*kernels = (struct fgv_kernels){0};
	if (!learns)
		return 0;
	kernels->book = calloc(1, sizeof(*kernels->book));
	return kernels->book ? 0 : -ENOMEM;
}

void fgv_kernels_fini(struct fgv_kernels *kernels)
{
	free(kernels->book);
	kernels->book = NULL;
}

/* --- Names ------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t not_zero(uint64_t hash)
{
	return hash ? hash : 1;
}

uint64_t fgv_kernels_image(const void *image, uint64_t len)
{
	const struct iovec piece = {(void *)image, len};
	struct fgv_digest digest;
	uint64_t hash;

	/* Images that differ elsewhere only share their guesses. */
	if (len >= FGV_DIGEST_PROBES * FGV_DIGEST_PROBE_BYTES)
		return not_zero(fgv_digest_sample(&piece, 1, len));
	digest = fgv_digest_bytes(image, len);
	memcpy(&hash, digest.bytes, sizeof(hash));
	return not_zero(hash);
}

uint64_t fgv_kernels_name(uint64_t image, const char *name)
{
	uint64_t hash = image;

	for (; *name; name++)
		hash = mix(hash, (unsigned char)*name);
	return not_zero(hash);
}

/* 0: there is no such function any more. */
static uint64_t kernel_of(struct fgv_session *session, const struct fgv_kernel_shape *shape)
{
	const struct fgv_object *function =
		fgv_handles_find(&session->handles, FGV_KIND_FUNCTION, shape->function);
	uint64_t hash;

	if (!function)
		return 0;
	hash = mix(function->function.content, shape->shared_bytes);
	for (unsigned i = 0; i < FGV_ARRAY_LEN(shape->grid); i++)
		hash = mix(hash, (uint64_t)shape->grid[i] << 32 | shape->block[i]);
	return not_zero(hash);
}

static uint64_t last_of(struct fgv_session *session)
{
	const struct fgv_kernels *kernels = &session->kernels;

	if (kernels->last.function)
		return kernel_of(session, &kernels->last);
	return not_zero(mix(kernels->other, kernels->magnitude));
}

/* --- The book ---------------------------------------------------------------- */

static struct fgv_kernel *row_of(struct fgv_kernel_book *book, uint64_t id)
{
	return &book->kernels[id % (FGV_KERNELS / WAYS) * WAYS];
}

static struct fgv_kernel *find(struct fgv_kernel_book *book, uint64_t id)
{
	struct fgv_kernel *row = row_of(book, id);

	for (unsigned i = 0; i < WAYS && id; i++) {
		if (row[i].id == id)
			return &row[i];
	}
	return NULL;
}

/* With a place for it; the others of its row have to be seen again to keep theirs. */
static struct fgv_kernel *make(struct fgv_kernel_book *book, uint64_t id)
{
	struct fgv_kernel *row = row_of(book, id), *least = row, *known = find(book, id);

	if (known || !id)
		return known;
	for (unsigned i = 0; i < WAYS; i++) {
		if (row[i].seen < least->seen)
			least = &row[i];
		row[i].seen -= row[i].seen / 8;
	}
	*least = (struct fgv_kernel){.id = id};
	return least;
}

/* The mean of @count and one more, of @ns. */
static void take_in(uint32_t *mean, uint32_t *count, uint64_t ns)
{
	int64_t more = (int64_t)fgv_min_u64(ns, UINT32_MAX) - *mean;

	if (*count < MEAN_OF)
		++*count;
	*mean = (uint32_t)(*mean + more / *count);
}

/* --- Learning ---------------------------------------------------------------- */

void fgv_kernels_note(struct fgv_kernels *kernels, const struct fgv_request *request,
		      const uint8_t *message)
{
	if (request->op == FGV_OP_LAUNCH) {
		memcpy(&kernels->last, message, sizeof(kernels->last));
		return;
	}
	kernels->last.function = 0;
	kernels->other = request->op;
	kernels->magnitude = request->amount ? 64 - (uint32_t)__builtin_clzll(request->amount) : 0;
}

void fgv_kernels_drained(struct fgv_session *session, uint64_t alone_ns, uint64_t now_ns)
{
	struct fgv_kernels *kernels = &session->kernels;
	struct fgv_kernel *kernel = make(kernels->book, last_of(session));

	kernels->before = kernel;
	kernels->idle_ns = now_ns;
	if (!kernel)
		return;
	if (alone_ns)
		take_in(&kernel->ns, &kernel->times, alone_ns);
	kernel->seen += kernel->seen < UINT32_MAX;
}

void fgv_kernels_resume(struct fgv_kernels *kernels, uint64_t now_ns)
{
	struct fgv_kernel *before = kernels->before;
	uint64_t gap_ns = now_ns - kernels->idle_ns;
	bool is_long = gap_ns >= FGV_KERNELS_GAP_NS;

	if (before && kernels->idle_ns) {
		take_in(&before->long_part, &before->gaps, is_long ? FGV_KERNEL_ALL : 0);
		if (is_long)
			take_in(&before->gap_ns, &before->longs, gap_ns);
	}
	kernels->idle_ns = 0;
}

/* --- Guessing ---------------------------------------------------------------- */

uint32_t fgv_kernels_gap_ns(const struct fgv_kernels *kernels, uint64_t now_ns)
{
	const struct fgv_kernel *before = kernels->before;
	uint64_t passed_ns;

	if (!before || !kernels->idle_ns || before->gaps < GAPS_MIN)
		return 0;
	passed_ns = now_ns - kernels->idle_ns;
	if (passed_ns < SURE_NS && before->long_part < FGV_KERNEL_ALL / 4 * LIKELY_OF_4)
		return 0;
	return before->gap_ns - (uint32_t)fgv_min_u64(before->gap_ns, passed_ns);
}

uint32_t fgv_kernels_next_ns(struct fgv_session *session, const struct fgv_request *request,
			     const uint8_t *message, uint32_t len)
{
	const struct fgv_kernel *known = NULL;
	struct fgv_kernel_shape shape;

	if (request->op == FGV_OP_LAUNCH && len >= sizeof(struct fgv_launch_request)) {
		memcpy(&shape, message, sizeof(shape));
		known = find(session->kernels.book, kernel_of(session, &shape));
	}
	if (known && known->times)
		return known->ns;
	return fgv_forecast_ns(session, request, message, len);
}
