/*
 * Leaving out of a fat binary what its GPU can't run. A driver picks the machine code of the GPU's
 * own family, up to its own number in that, and compiles PTX where there is none: entries of both
 * stay, in their order, and so does all that is neither.
 */
#include <string.h>

#include "common/fatbin.h"
#include "frontend/cuda/module/image.h"

/* Where the header of a container has the length of its entries, 8 bytes. */
#define LEN_OFF 8

static bool may_use(const struct fgv_fatbin_entry *entry, unsigned sm)
{
	return entry->kind != FGV_FATBIN_CUBIN || (entry->sm / 10 == sm / 10 && entry->sm <= sm);
}

static uint64_t put(uint8_t *to, uint64_t at, const void *from, uint64_t len)
{
	if (to)
		memcpy(to + at, from, len);
	return at + len;
}

/* With its header. 0: there is nothing in it for the GPU, or it is malformed. */
static uint64_t trim_container(const uint8_t *container, size_t len, unsigned sm, uint8_t *to)
{
	struct fgv_fatbin_entry entry;
	size_t at = 0, before = FGV_FATBIN_HEAD;
	uint64_t done = put(to, 0, container, FGV_FATBIN_HEAD), entries;
	int err;

	while ((err = fgv_fatbin_entry(container, len, &at, &entry)) > 0) {
		if (may_use(&entry, sm))
			done = put(to, done, container + before, at - before);
		before = at;
	}
	entries = done - FGV_FATBIN_HEAD;
	if (err < 0 || !entries)
		return 0;
	if (to)
		memcpy(to + LEN_OFF, &entries, sizeof(entries));
	return done;
}

uint64_t fgv_image_trim(const struct fgv_image_part *part, unsigned sm, uint8_t *to)
{
	const uint8_t *from = part->data;
	uint64_t left = part->len, done = 0, kept;
	size_t len;

	while (left && !fgv_fatbin_extent(from, left, &len)) {
		kept = trim_container(from, len, sm, to ? to + done : NULL);
		done = kept ? done + kept : put(to, done, from, len);
		from += len;
		left -= len;
	}
	return put(to, done, from, left);
}
