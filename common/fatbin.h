/*
 * The structure of fat binaries, the containers in which nvcc ships the code of a program for
 * several GPUs. Everything is bounds-checked; a malformed image is an error and nothing more.
 *
 * An image is one or more containers that follow each other without a gap. A container
 * is a header of 16 bytes and entries, each a header of its own and a payload: PTX
 * text, machine code or intermediate code, raw or compressed (an LZ4 block or a
 * Zstandard frame).
 *
 * Threads: no state; the memory belongs to the caller, and must not change meanwhile.
 */
#ifndef FGV_COMMON_FATBIN_H
#define FGV_COMMON_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FGV_FATBIN_PTX	  1
#define FGV_FATBIN_CUBIN  2
#define FGV_FATBIN_LINKED 0x4746 /* ours: containers that are one program (fgv_fatbin_unwrap()) */

#define FGV_FATBIN_HEAD 16 /* bytes of a container, in front of its entries */

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
 * Writes a container with one entry, as it is, to @to, or nowhere where that is NULL; its length.
 */
size_t fgv_fatbin_wrap(void *to, unsigned kind, unsigned sm, const void *data, size_t len);

/* Makes an image that is one container of FGV_FATBIN_LINKED alone what is in it. */
void fgv_fatbin_unwrap(const void **image, size_t *len);

#endif
