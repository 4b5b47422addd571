/*
 * Memory of a frozen session in a file (fairgvctl freeze --to): a head, then its bytes in order, in
 * chunks that are compressed (zstd), and with a key encrypted.
 *
 *	head	struct fgv_memory_file_head as it is on disk, with a seal
 *	chunk	plain length, stored length (32 bits each), tag (16 bytes), the bytes
 *	end	a chunk of no bytes, and nothing behind it
 *
 * Numbers are little-endian. With a key (any bytes that nobody can guess) each file has keys of its
 * own by HKDF-SHA256 with a salt of its own; the seal is an HMAC-SHA256 of the head, a tag that of
 * ChaCha20-Poly1305, whose nonce is the chunk's number. Without a key they are SHA-256 sums, which
 * find damage, but not those who mean it. A tag is also of the seal and of the chunk's number, so
 * that none stands for one elsewhere.
 *
 * A reader believes nothing: what it hands out has been checked, and is no longer than a chunk can
 *be.
 *
 * Threads: one at a time for each file.
 */
#ifndef FGV_TOOLS_MEMORY_FILE_H
#define FGV_TOOLS_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "api/wire.h"
#include "backend/shared.h"

#define FGV_MEMORY_FILE_CHUNK	(4u << 20) /* bytes of memory, at most */
#define FGV_MEMORY_FILE_KEY_MIN 16
#define FGV_MEMORY_FILE_KEY_MAX 4096

/* What it is of. */
struct fgv_memory_file_of {
	uint64_t bytes;	  /* all of it */
	uint64_t saved_s; /* when, in seconds since 1970 */
	uint32_t session;
	uint8_t token[FGV_TOKEN_BYTES]; /* of the time that it was frozen */
	char vm[FGV_NAME_MAX];
};

struct fgv_memory_file_key {
	uint8_t bytes[FGV_MEMORY_FILE_KEY_MAX];
	size_t len; /* 0: none */
};

struct fgv_memory_file;

/*
 * The content of the file at @path, which nobody but its owner may be able to read. As everything
 * here: 0 or a negative errno, and @why says what is wrong.
 */
int fgv_memory_file_read_key(struct fgv_memory_file_key *key, const char *path, char *why,
			     size_t len);

/* Writes the head to @fd, which stays the caller's. */
int fgv_memory_file_create(struct fgv_memory_file **file, int fd,
			   const struct fgv_memory_file_of *of,
			   const struct fgv_memory_file_key *key, char *why, size_t len);
/* The next @count bytes, a chunk at most. */
int fgv_memory_file_write(struct fgv_memory_file *file, const void *bytes, size_t count, char *why,
			  size_t len);
/* All have been written: now it is whole, and on the disk. */
int fgv_memory_file_finish(struct fgv_memory_file *file, char *why, size_t len);

/* Reads the head. -EBADMSG: it is no such file, it is damaged, or the key is another one. */
int fgv_memory_file_open(struct fgv_memory_file **file, int fd, struct fgv_memory_file_of *of,
			 const struct fgv_memory_file_key *key, char *why, size_t len);
/*
 * The next bytes, until the next call; *@count: 0 at the end, and not before all that the head has
 * promised was there. -EBADMSG: the file is damaged.
 */
int fgv_memory_file_read(struct fgv_memory_file *file, const uint8_t **bytes, size_t *count,
			 char *why, size_t len);

/* Its keys are wiped. NULL is allowed. */
void fgv_memory_file_close(struct fgv_memory_file *file);

#endif
