/*
 * What is in fat binaries (common/fatbin.h has their structure). It comes from a guest: everything
 * is bounds-checked, sizes are limited, and a malformed image is an error and nothing more.
 *
 * Threads: no state; the memory belongs to the caller, and must not change meanwhile.
 * A guest's image is copied out of the window first.
 */
#ifndef FGV_BACKEND_GPU_FATBIN_H
#define FGV_BACKEND_GPU_FATBIN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/fatbin.h"

#define FGV_FATBIN_CONTAINERS_MAX 8192
#define FGV_FATBIN_TEXT_MAX	  (256u * 1024 * 1024) /* of all PTX that an image unpacks to */
/* What one entry may unpack to: so much, and so many bytes for each that is stored. */
#define FGV_FATBIN_UNPACK_BASE	 (1024u * 1024)
#define FGV_FATBIN_UNPACK_FACTOR 256

/*
 * Walks all of @image. 0 and the number of containers, or -EINVAL where anything in it
 * reaches outside or is not a container.
 */
int fgv_fatbin_check(const void *image, size_t len, unsigned *containers);

/*
 * Unpacks one entry to new memory, with a NUL behind its unpacked_len bytes, for free(); *left is
 * what the image may still unpack to. 0, -EINVAL, -ENOMEM, or -E2BIG: more than that, or than an
 * entry may.
 */
int fgv_fatbin_unpack(const struct fgv_fatbin_entry *entry, size_t *left, char **bytes);

/*
 * Whether one of the @count @words is in the text or the machine code that @image has for a GPU of
 * @sm; it was checked, or is no container. Each entry is unpacked once, and FGV_FATBIN_TEXT_MAX
 * bytes in all: where one can't be unpacked, a word may be in it.
 */
bool fgv_fatbin_mentions(const void *image, size_t len, unsigned sm, const char *const *words,
			 size_t count);

struct fgv_fatbin_texts {
	char **texts; /* each NUL-terminated */
	size_t count;
};

#define FGV_FATBIN_ANY_SM UINT_MAX

/*
 * Unpacks the PTX of an image, which may be PTX by itself: of each container the one for the
 * highest SM up to @sm, one that runs on later GPUs too before one that does not. 0 (with no texts
 * at all where the image has only machine code), -EINVAL: malformed, -E2BIG: more text than
 * FGV_FATBIN_TEXT_MAX, or than an entry may unpack to, -ENOMEM. Give the texts back with
 * fgv_fatbin_texts_free().
 */
int fgv_fatbin_ptx(const void *image, size_t len, unsigned sm, struct fgv_fatbin_texts *texts);
void fgv_fatbin_texts_free(struct fgv_fatbin_texts *texts);

#endif
