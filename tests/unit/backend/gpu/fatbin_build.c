/* The offsets are those of common/fatbin.c, written out again on purpose. */
#include "tests/unit/backend/gpu/fatbin_build.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define ENTRY_HEAD 64

static void *append(struct fatbin *fatbin, size_t len)
{
	void *at;

	fatbin->bytes = realloc(fatbin->bytes, fatbin->len + len);
	if (!fatbin->bytes)
		abort();
	at = fatbin->bytes + fatbin->len;
	memset(at, 0, len);
	fatbin->len += len;
	return at;
}

static void put(uint8_t *at, size_t off, uint64_t value, size_t len)
{
	memcpy(at + off, &value, len);
}

void fatbin_init(struct fatbin *fatbin)
{
	memset(fatbin, 0, sizeof(*fatbin));
}

void fatbin_fini(struct fatbin *fatbin)
{
	free(fatbin->bytes);
	fatbin_init(fatbin);
}

void fatbin_begin(struct fatbin *fatbin)
{
	uint8_t *head;

	fatbin->container = fatbin->len;
	head = append(fatbin, 16);
	put(head, 0, 0xba55ed50, 4);
	put(head, 4, 1, 2);
	put(head, 6, 16, 2);
}

/* Packs entry->data to a new block; *len is its length. */
static void *pack(const struct fatbin_entry *entry, size_t *len)
{
	size_t room = entry->packing == FGV_FATBIN_LZ4 ? (size_t)LZ4_compressBound((int)entry->len)
						       : ZSTD_compressBound(entry->len);
	void *packed = malloc(room);

	if (!packed)
		abort();
	if (entry->packing == FGV_FATBIN_LZ4)
		*len = (size_t)LZ4_compress_default(entry->data, packed, (int)entry->len,
						    (int)room);
	else
		*len = ZSTD_compress(packed, room, entry->data, entry->len, 3);
	return packed;
}

void fatbin_add(struct fatbin *fatbin, const struct fatbin_entry *entry)
{
	void *packed = NULL;
	size_t len = entry->len, padded;
	uint64_t flags = 0x11;
	uint8_t *head;

	if (entry->packing != FGV_FATBIN_RAW)
		packed = pack(entry, &len);
	if (entry->packing == FGV_FATBIN_LZ4)
		flags |= 0x2000;
	if (entry->packing == FGV_FATBIN_ZSTD)
		flags |= 0x8000;
	if (entry->is_arch_specific)
		flags |= 0x100000;
	padded = (len + 7) & ~(size_t)7;
	head = append(fatbin, ENTRY_HEAD + padded);
	put(head, 0, entry->kind, 2);
	put(head, 2, 0x0101, 2);
	put(head, 4, ENTRY_HEAD, 4);
	put(head, 8, padded, 8);
	put(head, 16, packed ? len : 0, 4);
	put(head, 28, entry->sm, 4);
	put(head, 40, flags, 8);
	put(head, 56, packed ? entry->len : 0, 8);
	memcpy(head + ENTRY_HEAD, packed ? packed : entry->data, len);
	free(packed);
	put(fatbin->bytes + fatbin->container, 8, fatbin->len - fatbin->container - 16, 8);
}

void fatbin_add_ptx(struct fatbin *fatbin, const char *text)
{
	fatbin_add(fatbin, &(struct fatbin_entry){
				   .kind = FGV_FATBIN_PTX,
				   .sm = 70,
				   .data = text,
				   .len = strlen(text),
			   });
}
