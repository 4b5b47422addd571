/*
 * Finding and unpacking what a GPU may be given of a fat binary.
 */
#define _GNU_SOURCE
#include "backend/gpu/fatbin.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "common/util.h"

static int check_entries(const void *container, size_t container_len)
{
	struct fgv_fatbin_entry entry;
	size_t at = 0;
	int err;

	do {
		err = fgv_fatbin_entry(container, container_len, &at, &entry);
	} while (err > 0);
	return err;
}

int fgv_fatbin_check(const void *image, size_t len, unsigned *containers)
{
	const uint8_t *at = image;
	unsigned count = 0;

	do {
		size_t container_len;

		if (count++ == FGV_FATBIN_CONTAINERS_MAX ||
		    fgv_fatbin_extent(at, len, &container_len) < 0 ||
		    check_entries(at, container_len) < 0)
			return -EINVAL;
		at += container_len;
		len -= container_len;
	} while (len > 0);
	*containers = count;
	return 0;
}

/* Whether @a is the better PTX to take of the two. */
static bool is_better(const struct fgv_fatbin_entry *a, const struct fgv_fatbin_entry *b)
{
	if (a->arch_specific != b->arch_specific)
		return b->arch_specific;
	return a->sm > b->sm;
}

/* Whether @entry is PTX that a GPU of @sm can be given. */
static bool is_ptx_for(const struct fgv_fatbin_entry *entry, unsigned sm)
{
	if (entry->kind != FGV_FATBIN_PTX || sm == FGV_FATBIN_ANY_SM)
		return entry->kind == FGV_FATBIN_PTX;
	return entry->arch_specific ? entry->sm == sm : entry->sm <= sm;
}

/* 1 and the PTX to take of a container, 0: it has none, -EINVAL. */
static int choose_ptx(const void *container, size_t container_len, unsigned sm,
		      struct fgv_fatbin_entry *best)
{
	struct fgv_fatbin_entry entry;
	size_t at = 0;
	int err;

	*best = (struct fgv_fatbin_entry){.data = NULL};
	while ((err = fgv_fatbin_entry(container, container_len, &at, &entry)) > 0) {
		if (is_ptx_for(&entry, sm) && (!best->data || is_better(&entry, best)))
			*best = entry;
	}
	return err < 0 ? err : best->data != NULL;
}

/* Fills @text with exactly entry->unpacked_len bytes. */
static int unpack_into(const struct fgv_fatbin_entry *entry, char *text)
{
	size_t got;

	switch (entry->packing) {
	case FGV_FATBIN_RAW:
		memcpy(text, entry->data, entry->len);
		return 0;
	case FGV_FATBIN_LZ4:
		/* Both lengths are below 2^31: the one is 32 bits of a bounded image. */
		if (entry->len > LZ4_MAX_INPUT_SIZE)
			return -EINVAL;
		got = (size_t)LZ4_decompress_safe((const char *)entry->data, text, (int)entry->len,
						  (int)entry->unpacked_len);
		return got == entry->unpacked_len ? 0 : -EINVAL;
	case FGV_FATBIN_ZSTD:
		got = ZSTD_decompress(text, entry->unpacked_len, entry->data, entry->len);
		return !ZSTD_isError(got) && got == entry->unpacked_len ? 0 : -EINVAL;
	}
	return -EINVAL;
}

int fgv_fatbin_unpack(const struct fgv_fatbin_entry *entry, size_t *left, char **text)
{
	char *new_text;
	int err;

	if (entry->unpacked_len > *left ||
	    (entry->packing != FGV_FATBIN_RAW &&
	     entry->unpacked_len >
		     FGV_FATBIN_UNPACK_BASE + entry->len * (size_t)FGV_FATBIN_UNPACK_FACTOR))
		return -E2BIG;
	new_text = malloc(entry->unpacked_len + 1);
	if (!new_text)
		return -ENOMEM;
	err = unpack_into(entry, new_text);
	if (err < 0) {
		free(new_text);
		return err;
	}
	new_text[entry->unpacked_len] = '\0';
	*left -= entry->unpacked_len;
	*text = new_text;
	return 0;
}

static bool has_word(const void *text, size_t len, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	}
	return false;
}

/* Whether a GPU of @sm may be given @entry: PTX, or the machine code of its family. */
static bool is_for(const struct fgv_fatbin_entry *entry, unsigned sm)
{
	if (entry->kind != FGV_FATBIN_CUBIN || sm == FGV_FATBIN_ANY_SM)
		return entry->kind != FGV_FATBIN_PTX || is_ptx_for(entry, sm);
	return entry->sm / 10 == sm / 10 && entry->sm <= sm;
}

static bool entry_mentions(const struct fgv_fatbin_entry *entry, size_t *left,
			   const char *const *words, size_t count)
{
	char *text = NULL;
	bool found;

	if (entry->packing == FGV_FATBIN_RAW)
		return has_word(entry->data, entry->len, words, count);
	if (fgv_fatbin_unpack(entry, left, &text) < 0)
		return true;
	found = has_word(text, entry->unpacked_len, words, count);
	free(text);
	return found;
}

bool fgv_fatbin_mentions(const void *image, size_t len, unsigned sm, const char *const *words,
			 size_t count)
{
	size_t left = FGV_FATBIN_TEXT_MAX;
	const uint8_t *at = image;
	struct fgv_fatbin_entry entry;
	size_t container_len;

	if (fgv_fatbin_form(image, len) != FGV_FATBIN_CONTAINER)
		return has_word(image, len, words, count);
	for (; len > 0 && fgv_fatbin_extent(at, len, &container_len) == 0; len -= container_len) {
		size_t in = 0;

		while (fgv_fatbin_entry(at, container_len, &in, &entry) > 0) {
			if (is_for(&entry, sm) && entry_mentions(&entry, &left, words, count))
				return true;
		}
		at += container_len;
	}
	return false;
}

static int take_container(const void *container, size_t container_len, unsigned sm, size_t *left,
			  struct fgv_fatbin_texts *texts)
{
	struct fgv_fatbin_entry entry;
	int err = choose_ptx(container, container_len, sm, &entry);

	if (err <= 0)
		return err;
	err = fgv_fatbin_unpack(&entry, left, &texts->texts[texts->count]);
	if (err == 0)
		texts->count++;
	return err;
}

/* Text without a container, or machine code, which is no text. */
static int take_bare(const void *image, size_t len, struct fgv_fatbin_texts *texts)
{
	*texts = (struct fgv_fatbin_texts){malloc(sizeof(*texts->texts)), 0};
	if (!texts->texts)
		return -ENOMEM;
	if (fgv_fatbin_form(image, len) == FGV_FATBIN_BARE_CUBIN)
		return 0;
	texts->texts[0] = strndup(image, len);
	if (!texts->texts[0]) {
		fgv_fatbin_texts_free(texts);
		return -ENOMEM;
	}
	texts->count = 1;
	return 0;
}

int fgv_fatbin_ptx(const void *image, size_t len, unsigned sm, struct fgv_fatbin_texts *texts)
{
	enum fgv_fatbin_form form = fgv_fatbin_form(image, len);
	struct fgv_fatbin_texts found = {NULL, 0};
	size_t left = FGV_FATBIN_TEXT_MAX;
	const uint8_t *at = image;
	unsigned containers;
	int err;

	if (form == FGV_FATBIN_BARE_PTX || form == FGV_FATBIN_BARE_CUBIN)
		return take_bare(image, len, texts);
	err = fgv_fatbin_check(image, len, &containers);
	if (err < 0)
		return err;
	found.texts = calloc(containers, sizeof(*found.texts));
	if (!found.texts)
		return -ENOMEM;
	for (unsigned i = 0; i < containers; i++) {
		size_t container_len;

		err = fgv_fatbin_extent(at, len, &container_len);
		if (err == 0)
			err = take_container(at, container_len, sm, &left, &found);
		if (err < 0) {
			fgv_fatbin_texts_free(&found);
			return err;
		}
		at += container_len;
		len -= container_len;
	}
	*texts = found;
	return 0;
}

void fgv_fatbin_texts_free(struct fgv_fatbin_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->texts[i]);
	free(texts->texts);
	texts->texts = NULL;
	texts->count = 0;
}
