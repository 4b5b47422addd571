/*
 * Digests; see digest.h. The hashing is nettle's, which uses the processor's instructions for it
 * and is linked into our libraries, so that no other version of it in a program is met.
 */
#include "common/digest.h"

#include <nettle/sha2.h>
#include <string.h>

#include "common/util.h"

_Static_assert(FGV_DIGEST_BYTES == SHA256_DIGEST_SIZE, "SHA-256");

static struct fgv_digest finish(struct sha256_ctx *context)
{
	struct fgv_digest digest;

	sha256_digest(context, sizeof(digest.bytes), digest.bytes);
	return digest;
}

/* Calls @take with [@at, @at + @len) of @pieces, part by part. */
static void walk(const struct iovec *pieces, size_t count, uint64_t at, uint64_t len,
		 void (*take)(void *arg, const void *from, size_t len), void *arg)
{
	for (size_t i = 0; i < count && len > 0; i++) {
		uint64_t here =
			fgv_min_u64(pieces[i].iov_len - fgv_min_u64(pieces[i].iov_len, at), len);

		if (here > 0)
			take(arg, (const uint8_t *)pieces[i].iov_base + at, here);
		at -= fgv_min_u64(pieces[i].iov_len, at);
		len -= here;
	}
}

static void take_hashed(void *arg, const void *from, size_t len)
{
	sha256_update(arg, len, from);
}

struct fgv_digest fgv_digest_leaf(const struct iovec *pieces, size_t count, uint64_t len,
				  size_t index)
{
	uint64_t at = (uint64_t)index * FGV_DIGEST_LEAF;
	struct sha256_ctx context;

	sha256_init(&context);
	walk(pieces, count, at, fgv_min_u64(len - at, FGV_DIGEST_LEAF), take_hashed, &context);
	return finish(&context);
}

struct fgv_digest fgv_digest_bytes(const void *leaf, size_t len)
{
	const struct iovec piece = {(void *)leaf, len};

	return fgv_digest_leaf(&piece, 1, len, 0);
}

struct fgv_digest fgv_digest_root(const struct fgv_digest *leaves, uint64_t len)
{
	struct sha256_ctx context;

	sha256_init(&context);
	sha256_update(&context, sizeof(len), (const uint8_t *)&len);
	sha256_update(&context, fgv_digest_leaves(len) * sizeof(*leaves), leaves->bytes);
	return finish(&context);
}

uint64_t fgv_digest_sample_of(const uint8_t probes[FGV_DIGEST_PROBES * FGV_DIGEST_PROBE_BYTES],
			      uint64_t len)
{
	struct fgv_digest digest =
		fgv_digest_bytes(probes, FGV_DIGEST_PROBES * FGV_DIGEST_PROBE_BYTES);
	uint64_t sample;

	memcpy(&sample, digest.bytes, sizeof(sample));
	return sample ^ len;
}

static void take_copied(void *arg, const void *from, size_t len)
{
	uint8_t **to = arg;

	memcpy(*to, from, len);
	*to += len;
}

uint64_t fgv_digest_sample(const struct iovec *pieces, size_t count, uint64_t len)
{
	uint8_t probes[FGV_DIGEST_PROBES * FGV_DIGEST_PROBE_BYTES], *to = probes;

	for (unsigned i = 0; i < FGV_DIGEST_PROBES; i++)
		walk(pieces, count, fgv_digest_probe_at(len, i), FGV_DIGEST_PROBE_BYTES,
		     take_copied, &to);
	return fgv_digest_sample_of(probes, len);
}
