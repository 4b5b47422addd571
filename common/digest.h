/*
 * The name of an image by its content: SHA-256 over the hashes of its leaves, so that several
 * threads can work on one image, and a process can do it piece by piece.
 *
 * Threads: no state; the memory is the caller's, and must not change meanwhile.
 */
#ifndef FGV_COMMON_DIGEST_H
#define FGV_COMMON_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define FGV_DIGEST_BYTES 32
#define FGV_DIGEST_LEAF	 (1u << 20)

struct fgv_digest {
	uint8_t bytes[FGV_DIGEST_BYTES];
};

static inline size_t fgv_digest_leaves(uint64_t len)
{
	return (size_t)((len + FGV_DIGEST_LEAF - 1) / FGV_DIGEST_LEAF);
}

/*
 * Of leaf number @index of an image of @len bytes, which lies in @count pieces, one behind the
 * other.
 */
struct fgv_digest fgv_digest_leaf(const struct iovec *pieces, size_t count, uint64_t len,
				  size_t index);
/* The same of a leaf that lies in one place; its length is the caller's to get right. */
struct fgv_digest fgv_digest_bytes(const void *leaf, size_t len);

/* Of the whole image, from those of its leaves in their order. */
struct fgv_digest fgv_digest_root(const struct fgv_digest *leaves, uint64_t len);

/*
 * A number that tells apart most images of the same length, from a few places of them. It proves
 * nothing: it says whether a digest is worth the time.
 */
uint64_t fgv_digest_sample(const struct iovec *pieces, size_t count, uint64_t len);

/* The places that a sample is made of, for a reader without the image in its memory. */
#define FGV_DIGEST_PROBES      16
#define FGV_DIGEST_PROBE_BYTES 256
static inline uint64_t fgv_digest_probe_at(uint64_t len, unsigned index)
{
	return (len - FGV_DIGEST_PROBE_BYTES) / (FGV_DIGEST_PROBES - 1) * index;
}
/* From the contents of these places, one behind the other. */
uint64_t fgv_digest_sample_of(const uint8_t probes[FGV_DIGEST_PROBES * FGV_DIGEST_PROBE_BYTES],
			      uint64_t len);

#endif
