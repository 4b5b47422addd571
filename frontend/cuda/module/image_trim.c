/*
 * Leaving out of a fat binary what its GPU can't run. A driver picks the machine code of the GPU's
 * own family, up to its own number in that, and compiles PTX where there is none: entries of both
 * stay, in their order, and so does all that is neither.
 *
 * Nothing is copied: what is sent is a list of pieces of what the program has, and headers of
 * containers that are shorter now.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fatbin.h"
#include "frontend/cuda/module/image.h"

/* Where the header of a container has the length of its entries, 8 bytes. */
#define LEN_OFF 8

struct fgv_image_head {
	struct fgv_image_head *next;
	uint8_t bytes[FGV_FATBIN_HEAD];
};

static bool may_use(const struct fgv_fatbin_entry *entry, unsigned sm)
{
	return entry->kind != FGV_FATBIN_CUBIN || (entry->sm / 10 == sm / 10 && entry->sm <= sm);
}

/* What follows the last piece without a gap becomes part of it. */
static int put(struct fgv_image_pieces *pieces, const void *from, uint64_t len)
{
	struct iovec *last = pieces->count ? &pieces->list[pieces->count - 1] : NULL;
	struct iovec *grown;

	if (!len)
		return 0;
	pieces->len += len;
	if (last && (const uint8_t *)last->iov_base + last->iov_len == from) {
		last->iov_len += len;
		return 0;
	}
	grown = realloc(pieces->list, (pieces->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[pieces->count++] = (struct iovec){(void *)from, len};
	pieces->list = grown;
	return 0;
}

/* The header of @container for @entries bytes that follow. */
static int put_head(struct fgv_image_pieces *pieces, const uint8_t *container, uint64_t entries)
{
	struct fgv_image_head *head = malloc(sizeof(*head));

	if (!head)
		return -ENOMEM;
	head->next = pieces->heads;
	pieces->heads = head;
	memcpy(head->bytes, container, sizeof(head->bytes));
	memcpy(head->bytes + LEN_OFF, &entries, sizeof(entries));
	return put(pieces, head->bytes, sizeof(head->bytes));
}

/* How many bytes of entries there are for the GPU; 0 too where the container is malformed. */
static uint64_t count_usable(const uint8_t *container, size_t len, unsigned sm)
{
	struct fgv_fatbin_entry entry;
	size_t at = 0, before = FGV_FATBIN_HEAD;
	uint64_t usable = 0;
	int err;

	while ((err = fgv_fatbin_entry(container, len, &at, &entry)) > 0) {
		if (may_use(&entry, sm))
			usable += at - before;
		before = at;
	}
	return err < 0 ? 0 : usable;
}

static int trim_container(struct fgv_image_pieces *pieces, const uint8_t *container, size_t len,
			  unsigned sm)
{
	uint64_t usable = count_usable(container, len, sm);
	size_t at = 0, before = FGV_FATBIN_HEAD;
	struct fgv_fatbin_entry entry;
	int err;

	if (!usable || usable == len - FGV_FATBIN_HEAD)
		return put(pieces, container, len);
	err = put_head(pieces, container, usable);
	while (!err && fgv_fatbin_entry(container, len, &at, &entry) > 0) {
		if (may_use(&entry, sm))
			err = put(pieces, container + before, at - before);
		before = at;
	}
	return err;
}

int fgv_image_trim(const struct fgv_image_part *part, unsigned sm, struct fgv_image_pieces *pieces)
{
	const uint8_t *from = part->data;
	uint64_t left = part->len;
	int err = 0;
	size_t len;

	while (left && !err && !fgv_fatbin_extent(from, left, &len)) {
		err = trim_container(pieces, from, len, sm);
		from += len;
		left -= len;
	}
	return err ? err : put(pieces, from, left);
}

void fgv_image_pieces_copy(const struct fgv_image_pieces *pieces, uint8_t *to)
{
	for (size_t i = 0; i < pieces->count; i++) {
		memcpy(to, pieces->list[i].iov_base, pieces->list[i].iov_len);
		to += pieces->list[i].iov_len;
	}
}

void fgv_image_pieces_fini(struct fgv_image_pieces *pieces)
{
	struct fgv_image_head *head;

	while ((head = pieces->heads)) {
		pieces->heads = head->next;
		free(head);
	}
	free(pieces->list);
}
