/*
 * Files of frozen memory; see memory_file.h.
 */
#define _GNU_SOURCE
#include "tools/memory_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/chacha-poly1305.h>
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include "common/util.h"

#define MAGIC	   "FairGVM"
#define VERSION	   1
#define SEAL_BYTES SHA256_DIGEST_SIZE
#define TAG_BYTES  CHACHA_POLY1305_DIGEST_SIZE
#define LEVEL	   1 /* faster than most disks */

enum cipher { CIPHER_NONE, CIPHER_CHACHA20_POLY1305, CIPHERS };

/* As it is on the disk. */
struct head {
	char magic[8];
	uint32_t version;
	uint32_t head_bytes;
	uint32_t cipher;
	uint32_t chunk_bytes;
	uint64_t bytes;
	uint64_t saved_s;
	uint32_t session;
	uint32_t reserved;
	uint8_t token[FGV_TOKEN_BYTES];
	uint8_t salt[32];
	char vm[FGV_NAME_MAX];
	uint8_t seal[SEAL_BYTES]; /* of all before it */
};
_Static_assert(sizeof(struct head) == 160 + SEAL_BYTES && FGV_TOKEN_BYTES == 16, "on the disk");

struct chunk {
	uint32_t plain, stored;
	uint8_t tag[TAG_BYTES];
};
_Static_assert(sizeof(struct chunk) == 24, "on the disk");

struct keys {
	uint8_t cipher[CHACHA_POLY1305_KEY_SIZE];
	uint8_t seal[32];
};

struct fgv_memory_file {
	int fd;
	bool is_encrypted, has_ended;
	struct keys keys;
	uint8_t seal[SEAL_BYTES];
	uint64_t number;     /* of the next chunk */
	uint64_t left;	     /* bytes that are still to come */
	ZSTD_CCtx *compress; /* of one that is written */
	ZSTD_DCtx *expand;   /* of one that is read */
	uint8_t plain[FGV_MEMORY_FILE_CHUNK];
	uint8_t stored[FGV_MEMORY_FILE_CHUNK];
};

__attribute__((format(printf, 4, 5))) static int fail(int error, char *why, size_t len,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, len, format, args);
	va_end(args);
	return error;
}

static int fail_errno(char *why, size_t len, const char *what)
{
	int error = errno;

	return fail(-error, why, len, "%s: %s", what, strerror(error));
}

/* --- Keys ------------------------------------------------------------------------ */

static int check_key_file(int fd, char *why, size_t len)
{
	struct stat file;

	if (fstat(fd, &file))
		return fail_errno(why, len, "can't be looked at");
	if (!S_ISREG(file.st_mode))
		return fail(-EINVAL, why, len, "not a regular file");
	if (file.st_mode & (S_IRWXG | S_IRWXO))
		return fail(-EPERM, why, len, "others than its owner may use it: chmod 600");
	return 0;
}

/* One byte more than a key may have shows that there are more. */
static int read_key(struct fgv_memory_file_key *key, int fd, char *why, size_t len)
{
	uint8_t more;
	ssize_t got = 0;

	key->len = 0;
	while (key->len < sizeof(key->bytes) &&
	       (got = read(fd, key->bytes + key->len, sizeof(key->bytes) - key->len)) > 0)
		key->len += (size_t)got;
	if (got > 0)
		got = read(fd, &more, 1);
	if (got < 0)
		return fail_errno(why, len, "can't be read");
	if (got > 0 || key->len < FGV_MEMORY_FILE_KEY_MIN)
		return fail(-EINVAL, why, len, "a key has %d to %d bytes", FGV_MEMORY_FILE_KEY_MIN,
			    FGV_MEMORY_FILE_KEY_MAX);
	return 0;
}

int fgv_memory_file_read_key(struct fgv_memory_file_key *key, const char *path, char *why,
			     size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int ret;

	if (fd < 0)
		return fail_errno(why, len, "can't be opened");
	ret = check_key_file(fd, why, len);
	if (!ret)
		ret = read_key(key, fd, why, len);
	close(fd);
	if (ret)
		explicit_bzero(key, sizeof(*key));
	return ret;
}

static void derive(struct keys *keys, const struct fgv_memory_file_key *key,
		   const struct head *head)
{
	static const uint8_t info[] = "FairGV memory of a session, version 1";
	uint8_t made[SHA256_DIGEST_SIZE];
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, sizeof(head->salt), head->salt);
	hkdf_extract(&hmac, (nettle_hash_update_func *)hmac_sha256_update,
		     (nettle_hash_digest_func *)hmac_sha256_digest, sizeof(made), key->len,
		     key->bytes, made);
	hmac_sha256_set_key(&hmac, sizeof(made), made);
	hkdf_expand(&hmac, (nettle_hash_update_func *)hmac_sha256_update,
		    (nettle_hash_digest_func *)hmac_sha256_digest, sizeof(made), sizeof(info), info,
		    sizeof(*keys), (uint8_t *)keys);
	explicit_bzero(made, sizeof(made));
	explicit_bzero(&hmac, sizeof(hmac));
}

/* --- Seals and tags -------------------------------------------------------------- */

static void make_seal(const struct fgv_memory_file *file, const struct head *head,
		      uint8_t seal[SEAL_BYTES])
{
	const uint8_t *bytes = (const uint8_t *)head;
	size_t len = offsetof(struct head, seal);
	struct hmac_sha256_ctx hmac;
	struct sha256_ctx sum;

	if (file->is_encrypted) {
		hmac_sha256_set_key(&hmac, sizeof(file->keys.seal), file->keys.seal);
		hmac_sha256_update(&hmac, len, bytes);
		hmac_sha256_digest(&hmac, SEAL_BYTES, seal);
		explicit_bzero(&hmac, sizeof(hmac));
		return;
	}
	sha256_init(&sum);
	sha256_update(&sum, len, bytes);
	sha256_digest(&sum, SEAL_BYTES, seal);
}

static void begin_cipher(const struct fgv_memory_file *file, const struct chunk *chunk,
			 struct chacha_poly1305_ctx *cipher)
{
	uint8_t nonce[CHACHA_POLY1305_NONCE_SIZE] = {0};
	uint64_t number = htole64(file->number);

	memcpy(nonce, &number, sizeof(number));
	chacha_poly1305_set_key(cipher, file->keys.cipher);
	chacha_poly1305_set_nonce(cipher, nonce);
	chacha_poly1305_update(cipher, sizeof(file->seal), file->seal);
	chacha_poly1305_update(cipher, offsetof(struct chunk, tag), (const uint8_t *)chunk);
}

static void sum_up(const struct fgv_memory_file *file, const struct chunk *chunk,
		   const uint8_t *stored, size_t len, uint8_t tag[TAG_BYTES])
{
	uint64_t number = htole64(file->number);
	struct sha256_ctx sum;

	sha256_init(&sum);
	sha256_update(&sum, sizeof(file->seal), file->seal);
	sha256_update(&sum, sizeof(number), (const uint8_t *)&number);
	sha256_update(&sum, offsetof(struct chunk, tag), (const uint8_t *)chunk);
	sha256_update(&sum, len, stored);
	sha256_digest(&sum, TAG_BYTES, tag);
}

/* Encrypts what is stored, where there is a key. */
static void protect(struct fgv_memory_file *file, struct chunk *chunk, size_t len)
{
	struct chacha_poly1305_ctx cipher;

	if (!file->is_encrypted) {
		sum_up(file, chunk, file->stored, len, chunk->tag);
		return;
	}
	begin_cipher(file, chunk, &cipher);
	chacha_poly1305_encrypt(&cipher, len, file->stored, file->stored);
	chacha_poly1305_digest(&cipher, TAG_BYTES, chunk->tag);
	explicit_bzero(&cipher, sizeof(cipher));
}

/* Whether the chunk is the one that was written here; what is stored is in the clear then. */
static bool is_genuine(struct fgv_memory_file *file, const struct chunk *chunk, size_t len)
{
	struct chacha_poly1305_ctx cipher;
	uint8_t tag[TAG_BYTES];

	if (file->is_encrypted) {
		begin_cipher(file, chunk, &cipher);
		chacha_poly1305_decrypt(&cipher, len, file->stored, file->stored);
		chacha_poly1305_digest(&cipher, TAG_BYTES, tag);
		explicit_bzero(&cipher, sizeof(cipher));
	} else {
		sum_up(file, chunk, file->stored, len, tag);
	}
	return memeql_sec(tag, chunk->tag, TAG_BYTES);
}

/* --- Bytes of the file ----------------------------------------------------------- */

static int put(const struct fgv_memory_file *file, const void *bytes, size_t count, char *why,
	       size_t len)
{
	size_t done = 0;
	ssize_t put;

	for (; done < count; done += (size_t)put) {
		put = write(file->fd, (const uint8_t *)bytes + done, count - done);
		if (put < 0 && errno == EINTR)
			put = 0;
		else if (put <= 0)
			return fail_errno(why, len, "can't be written");
	}
	return 0;
}

/* *@got: how many there were. */
static int get(const struct fgv_memory_file *file, void *bytes, size_t count, size_t *got,
	       char *why, size_t len)
{
	ssize_t part;

	for (*got = 0; *got < count; *got += (size_t)part) {
		part = read(file->fd, (uint8_t *)bytes + *got, count - *got);
		if (part < 0 && errno == EINTR)
			part = 0;
		else if (part < 0)
			return fail_errno(why, len, "can't be read");
		else if (part == 0)
			break;
	}
	return 0;
}

static int get_all(const struct fgv_memory_file *file, void *bytes, size_t count, char *why,
		   size_t len)
{
	size_t got;
	int ret = get(file, bytes, count, &got, why, len);

	if (!ret && got != count)
		ret = fail(-EBADMSG, why, len, "incomplete: it ends too early");
	return ret;
}

/* --- Writing --------------------------------------------------------------------- */

static struct fgv_memory_file *make(int fd)
{
	struct fgv_memory_file *file = calloc(1, sizeof(*file));

	if (file)
		file->fd = fd;
	return file;
}

static int write_head(struct fgv_memory_file *file, const struct fgv_memory_file_of *of,
		      const struct fgv_memory_file_key *key, char *why, size_t len)
{
	struct head head = {
		.magic = MAGIC,
		.version = htole32(VERSION),
		.head_bytes = htole32(sizeof(head)),
		.cipher = htole32(key->len ? CIPHER_CHACHA20_POLY1305 : CIPHER_NONE),
		.chunk_bytes = htole32(FGV_MEMORY_FILE_CHUNK),
		.bytes = htole64(of->bytes),
		.saved_s = htole64(of->saved_s),
		.session = htole32(of->session),
	};

	memcpy(head.token, of->token, sizeof(head.token));
	memcpy(head.vm, of->vm, strnlen(of->vm, sizeof(head.vm) - 1));
	if (getrandom(head.salt, sizeof(head.salt), 0) != (ssize_t)sizeof(head.salt))
		return fail_errno(why, len, "no random numbers");
	if (file->is_encrypted)
		derive(&file->keys, key, &head);
	make_seal(file, &head, head.seal);
	memcpy(file->seal, head.seal, sizeof(file->seal));
	return put(file, &head, sizeof(head), why, len);
}

int fgv_memory_file_create(struct fgv_memory_file **file, int fd,
			   const struct fgv_memory_file_of *of,
			   const struct fgv_memory_file_key *key, char *why, size_t len)
{
	struct fgv_memory_file *made = make(fd);
	int ret = 0;

	if (made)
		made->compress = ZSTD_createCCtx();
	if (!made || !made->compress)
		ret = fail(-ENOMEM, why, len, "no memory");
	if (!ret) {
		made->left = of->bytes;
		made->is_encrypted = key->len > 0;
		ret = write_head(made, of, key, why, len);
	}
	if (ret)
		fgv_memory_file_close(made);
	else
		*file = made;
	return ret;
}

/* Fills @file->stored: with the bytes themselves, where zstd makes no less of them. */
static size_t store(struct fgv_memory_file *file, const void *bytes, size_t count)
{
	size_t len = ZSTD_compressCCtx(file->compress, file->stored, count, bytes, count, LEVEL);

	if (!ZSTD_isError(len) && len < count)
		return len;
	memcpy(file->stored, bytes, count);
	return count;
}

static int write_chunk(struct fgv_memory_file *file, size_t plain, size_t stored, char *why,
		       size_t len)
{
	struct chunk chunk = {htole32((uint32_t)plain), htole32((uint32_t)stored), {0}};
	int ret;

	protect(file, &chunk, stored);
	file->number++;
	ret = put(file, &chunk, sizeof(chunk), why, len);
	return ret ? ret : put(file, file->stored, stored, why, len);
}

int fgv_memory_file_write(struct fgv_memory_file *file, const void *bytes, size_t count, char *why,
			  size_t len)
{
	if (!count)
		return 0;
	if (count > FGV_MEMORY_FILE_CHUNK || count > file->left)
		return fail(-EINVAL, why, len, "more than was to be written");
	file->left -= count;
	return write_chunk(file, count, store(file, bytes, count), why, len);
}

int fgv_memory_file_finish(struct fgv_memory_file *file, char *why, size_t len)
{
	int ret;

	if (file->left)
		return fail(-EINVAL, why, len, "less than was to be written");
	ret = write_chunk(file, 0, 0, why, len);
	if (!ret && fsync(file->fd))
		ret = fail_errno(why, len, "can't be written");
	return ret;
}

/* --- Reading --------------------------------------------------------------------- */

static int check_form(const struct head *head, const struct fgv_memory_file_key *key, char *why,
		      size_t len)
{
	uint32_t version = le32toh(head->version), cipher = le32toh(head->cipher);

	if (memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0)
		return fail(-EBADMSG, why, len, "not a file of fairgvctl freeze --to");
	if (version != VERSION)
		return fail(-EBADMSG, why, len, "its form is version %" PRIu32 ", not %d", version,
			    VERSION);
	if (cipher >= CIPHERS || le32toh(head->head_bytes) != sizeof(*head) ||
	    le32toh(head->chunk_bytes) != FGV_MEMORY_FILE_CHUNK || head->reserved)
		return fail(-EBADMSG, why, len, "damaged: the head");
	if (cipher != CIPHER_NONE && !key->len)
		return fail(-EBADMSG, why, len, "encrypted: --key-file is missing");
	if (cipher == CIPHER_NONE && key->len)
		return fail(-EBADMSG, why, len,
			    "not encrypted, so it was not written with this key");
	return 0;
}

static int read_head(struct fgv_memory_file *file, struct fgv_memory_file_of *of,
		     const struct fgv_memory_file_key *key, char *why, size_t len)
{
	struct head head;
	uint8_t seal[SEAL_BYTES];
	size_t got;
	int ret = get(file, &head, sizeof(head), &got, why, len);

	if (!ret && got != sizeof(head))
		ret = fail(-EBADMSG, why, len, "not a file of fairgvctl freeze --to");
	if (!ret)
		ret = check_form(&head, key, why, len);
	if (ret)
		return ret;
	file->is_encrypted = key->len > 0;
	if (file->is_encrypted)
		derive(&file->keys, key, &head);
	make_seal(file, &head, seal);
	if (!memeql_sec(seal, head.seal, sizeof(seal)))
		return fail(-EBADMSG, why, len, "damaged: the head%s",
			    file->is_encrypted ? ", or the key is another one" : "");
	memcpy(file->seal, seal, sizeof(seal));
	*of = (struct fgv_memory_file_of){
		.bytes = le64toh(head.bytes),
		.saved_s = le64toh(head.saved_s),
		.session = le32toh(head.session),
	};
	memcpy(of->token, head.token, sizeof(of->token));
	memcpy(of->vm, head.vm, sizeof(of->vm) - 1);
	return 0;
}

int fgv_memory_file_open(struct fgv_memory_file **file, int fd, struct fgv_memory_file_of *of,
			 const struct fgv_memory_file_key *key, char *why, size_t len)
{
	struct fgv_memory_file *made = make(fd);
	int ret = 0;

	if (made)
		made->expand = ZSTD_createDCtx();
	if (!made || !made->expand)
		ret = fail(-ENOMEM, why, len, "no memory");
	if (!ret)
		ret = read_head(made, of, key, why, len);
	if (ret) {
		fgv_memory_file_close(made);
		return ret;
	}
	made->left = of->bytes;
	*file = made;
	return 0;
}

static int damaged(const struct fgv_memory_file *file, char *why, size_t len)
{
	return fail(-EBADMSG, why, len, "damaged: chunk %" PRIu64, file->number);
}

/* What is stored becomes the @plain bytes that it was made of. */
static bool expand(struct fgv_memory_file *file, size_t plain, size_t stored)
{
	if (plain == stored) {
		memcpy(file->plain, file->stored, plain);
		return true;
	}
	return ZSTD_decompressDCtx(file->expand, file->plain, plain, file->stored, stored) == plain;
}

static int check_end(struct fgv_memory_file *file, char *why, size_t len)
{
	uint8_t more;
	size_t got;
	int ret;

	if (file->left)
		return fail(-EBADMSG, why, len, "damaged: bytes are missing");
	ret = get(file, &more, 1, &got, why, len);
	if (!ret && got)
		return fail(-EBADMSG, why, len, "damaged: there is something behind its end");
	file->has_ended = !ret;
	return ret;
}

int fgv_memory_file_read(struct fgv_memory_file *file, const uint8_t **bytes, size_t *count,
			 char *why, size_t len)
{
	struct chunk chunk;
	size_t plain, stored;
	int ret;

	*count = 0;
	if (file->has_ended)
		return 0;
	ret = get_all(file, &chunk, sizeof(chunk), why, len);
	if (ret)
		return ret;
	plain = le32toh(chunk.plain);
	stored = le32toh(chunk.stored);
	if (plain > FGV_MEMORY_FILE_CHUNK || plain > file->left || stored > plain ||
	    (plain && !stored))
		return damaged(file, why, len);
	ret = get_all(file, file->stored, stored, why, len);
	if (ret)
		return ret;
	if (!is_genuine(file, &chunk, stored) || !expand(file, plain, stored))
		return damaged(file, why, len);
	file->number++;
	if (!plain)
		return check_end(file, why, len);
	file->left -= plain;
	*bytes = file->plain;
	*count = plain;
	return 0;
}

void fgv_memory_file_close(struct fgv_memory_file *file)
{
	if (!file)
		return;
	ZSTD_freeCCtx(file->compress);
	ZSTD_freeDCtx(file->expand);
	explicit_bzero(&file->keys, sizeof(file->keys));
	free(file);
}
