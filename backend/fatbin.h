/*
 * Reader of fat binaries, the containers in which nvcc ships the code of a program for
 * several GPUs. What it reads comes from a guest: everything is bounds-checked, sizes
 * are limited, and a malformed image is an error and nothing more.
 *
 * An image is one or more containers that follow each other without a gap. A container
 * is a header of 16 bytes and entries, each a header of its own and a payload: PTX
 * text, machine code or intermediate code, raw or compressed (an LZ4 block or a
 * Zstandard frame).
 *
 * Threads: no state; the memory belongs to the caller, and must not change meanwhile.
 * A guest's image is copied out of the window first.
 */
#ifndef FGV_BACKEND_FATBIN_H
#define FGV_BACKEND_FATBIN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FGV_FATBIN_PTX	 1
#define FGV_FATBIN_CUBIN 2

#define FGV_FATBIN_CONTAINERS_MAX 8192
#define FGV_FATBIN_TEXT_MAX	  (256u * 1024 * 1024) /* of all PTX that an image unpacks to */
/* What one entry may unpack to: so much, and so many bytes for each that is stored. */
#define FGV_FATBIN_UNPACK_BASE	 (1024u * 1024)
#define FGV_FATBIN_UNPACK_FACTOR 256

enum fgv_fatbin_packing { FGV_FATBIN_RAW, FGV_FATBIN_LZ4, FGV_FATBIN_ZSTD };

struct fgv_fatbin_entry {
	unsigned kind;	    /* FGV_FATBIN_PTX, ...; others exist and are passed over */
	unsigned sm;	    /* 90 for sm_90 or compute_90 */
	bool arch_specific; /* compute_90a: runs on that architecture alone */
	enum fgv_fatbin_packing packing;
	const uint8_t *data;
	size_t len;	     /* as stored, without padding where it is packed */
	size_t unpacked_len; /* claimed; the same as len where it is raw */
};

/* What an image begins as. PTX and machine code may come without a container. */
enum fgv_fatbin_form {
	FGV_FATBIN_CONTAINER,
	FGV_FATBIN_BARE_PTX,
	FGV_FATBIN_BARE_CUBIN,
	FGV_FATBIN_NOTHING, /* of these */
};
enum fgv_fatbin_form fgv_fatbin_form(const void *image, size_t len);

/*
 * The extent of the container at the start of @image: 0 and its length, header
 * included, or -EINVAL.
 */
int fgv_fatbin_extent(const void *image, size_t len, size_t *container_len);

/*
 * The entry at offset *@at of a container, which fgv_fatbin_extent() measured; *@at
 * starts as 0 and is moved on. 1: an entry, 0: no more, -EINVAL: malformed.
 */
int fgv_fatbin_entry(const void *container, size_t container_len, size_t *at,
		     struct fgv_fatbin_entry *entry);

/*
 * Walks all of @image. 0 and the number of containers, or -EINVAL where anything in it
 * reaches outside or is not a container.
 */
int fgv_fatbin_check(const void *image, size_t len, unsigned *containers);

/*
 * Unpacks one entry to new memory, with a NUL behind its unpacked_len bytes, for free(); *left is
 * what the image may still unpack to. 0, -EINVAL, -ENOMEM, or -E2BIG: more than that, or than an entry may.
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
