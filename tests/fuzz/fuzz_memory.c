/*
 * A file of frozen memory: it is refused with a reason, or read, as long as it says, in chunks that
 * are no longer than one can be.
 *
 * The first byte: FLAG_KEY, the reader has a key; FLAG_SEAL, the seal and the tags are made anew,
 * as no input would find them. These are sums only, so that this is for files without a key.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/target.h"
#include "tools/memory_file.h"

#define FLAG_KEY  1u
#define FLAG_SEAL 2u

#define SEALED	160 /* bytes of the head before its seal */
#define HEAD	(SEALED + SHA256_DIGEST_SIZE)
#define NUMBERS 8 /* of a chunk, before its tag */
#define CHUNK	24

static void must(bool ok)
{
	if (!ok)
		abort();
}

static uint32_t number_at(const uint8_t *bytes)
{
	uint32_t number;

	memcpy(&number, bytes, sizeof(number));
	return le32toh(number);
}

/* Chunk @number at @at; where the next one is. */
static size_t seal_chunk(uint8_t *file, size_t len, size_t at, uint64_t number)
{
	size_t stored = number_at(file + at + 4);
	uint64_t said = htole64(number);
	struct sha256_ctx sum;

	if (stored > len - at - CHUNK)
		return len;
	sha256_init(&sum);
	sha256_update(&sum, SHA256_DIGEST_SIZE, file + SEALED);
	sha256_update(&sum, sizeof(said), (const uint8_t *)&said);
	sha256_update(&sum, NUMBERS, file + at);
	sha256_update(&sum, stored, file + at + CHUNK);
	sha256_digest(&sum, CHUNK - NUMBERS, file + at + NUMBERS);
	return at + CHUNK + stored;
}

static void seal(uint8_t *file, size_t len)
{
	struct sha256_ctx sum;

	if (len < HEAD)
		return;
	sha256_init(&sum);
	sha256_update(&sum, SEALED, file);
	sha256_digest(&sum, SHA256_DIGEST_SIZE, file + SEALED);
	for (size_t at = HEAD, number = 0; at < len && len - at >= CHUNK; number++)
		at = seal_chunk(file, len, at, number);
}

static void read_all(struct fgv_memory_file *file, const struct fgv_memory_file_of *of)
{
	const uint8_t *bytes;
	char why[256] = "";
	uint64_t all = 0;
	size_t count;
	int ret;

	must(memchr(of->vm, '\0', sizeof(of->vm)));
	while (!(ret = fgv_memory_file_read(file, &bytes, &count, why, sizeof(why))) && count) {
		must(count <= FGV_MEMORY_FILE_CHUNK && count <= of->bytes - all);
		all += count;
	}
	must(ret ? *why : all == of->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct fgv_memory_file_key key = {.bytes = "0123456789abcdef", .len = 16};
	static const struct fgv_memory_file_key none;
	struct fgv_memory_file *file;
	struct fgv_memory_file_of of;
	char why[256] = "";
	uint8_t *copy;
	int fd;

	if (!len)
		return 0;
	fd = memfd_create("memory", MFD_CLOEXEC);
	copy = malloc(len);
	must(fd >= 0 && copy);
	memcpy(copy, data + 1, len - 1);
	if (*data & FLAG_SEAL)
		seal(copy, len - 1);
	must(pwrite(fd, copy, len - 1, 0) == (ssize_t)len - 1);
	if (!fgv_memory_file_open(&file, fd, &of, *data & FLAG_KEY ? &key : &none, why,
				  sizeof(why))) {
		read_all(file, &of);
		fgv_memory_file_close(file);
	} else {
		must(*why);
	}
	free(copy);
	close(fd);
	return 0;
}
