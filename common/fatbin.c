/*
 * Walking through fat binaries. The layout was read off what nvcc writes; the offsets in
 * struct container_head and struct entry_head are all that is known of it. Headers are
 * copied out before use, since nothing says that they are aligned.
 */
#include "common/fatbin.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define CONTAINER_MAGIC	  0xba55ed50u
#define CONTAINER_VERSION 1
#define ENTRY_HEAD_MAX	  4096

#define FLAG_LZ4	   0x2000ull
#define FLAG_ZSTD	   0x8000ull
#define FLAG_ARCH_SPECIFIC 0x100000ull

struct container_head {
	uint32_t magic;
	uint16_t version;
	uint16_t head_len;
	uint64_t len; /* of the entries */
};
_Static_assert(sizeof(struct container_head) == FGV_FATBIN_HEAD, "format");

struct entry_head {
	uint16_t kind;
	uint16_t unknown0;
	uint32_t head_len;
	uint64_t payload_len; /* padded to 8 */
	uint32_t packed_len;  /* 0 where the payload is raw */
	uint32_t options_off;
	uint16_t minor;
	uint16_t major;
	uint32_t sm;
	uint64_t unknown1;
	uint64_t flags;
	uint64_t unknown2;
	uint64_t unpacked_len;
};
_Static_assert(offsetof(struct entry_head, packed_len) == 16, "format");
_Static_assert(offsetof(struct entry_head, sm) == 28, "format");
_Static_assert(offsetof(struct entry_head, flags) == 40, "format");
_Static_assert(offsetof(struct entry_head, unpacked_len) == 56, "format");
_Static_assert(sizeof(struct entry_head) == 64, "format");

/* A directive or a comment, perhaps behind white space. */
static bool begins_as_ptx(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r')))
		at++;
	return at < len && (text[at] == '.' || text[at] == '/');
}

enum fgv_fatbin_form fgv_fatbin_form(const void *image, size_t len)
{
	const uint32_t magic = CONTAINER_MAGIC;

	if (len >= sizeof(magic) && memcmp(image, &magic, sizeof(magic)) == 0)
		return FGV_FATBIN_CONTAINER;
	if (len > SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0)
		return FGV_FATBIN_BARE_CUBIN;
	return begins_as_ptx(image, len) ? FGV_FATBIN_BARE_PTX : FGV_FATBIN_NOTHING;
}

int fgv_fatbin_extent(const void *image, size_t len, size_t *container_len)
{
	struct container_head head;

	if (len < sizeof(head))
		return -EINVAL;
	memcpy(&head, image, sizeof(head));
	if (head.magic != CONTAINER_MAGIC || head.version != CONTAINER_VERSION ||
	    head.head_len != sizeof(head) || head.len > len - sizeof(head))
		return -EINVAL;
	*container_len = sizeof(head) + head.len;
	return 0;
}

/* How the payload is packed, and that its sizes fit together. */
static int read_packing(const struct entry_head *head, struct fgv_fatbin_entry *entry)
{
	if (head->packed_len == 0) {
		entry->packing = FGV_FATBIN_RAW;
		entry->len = head->payload_len;
		entry->unpacked_len = head->payload_len;
		return 0;
	}
	if (head->flags & FLAG_ZSTD)
		entry->packing = FGV_FATBIN_ZSTD;
	else if (head->flags & FLAG_LZ4)
		entry->packing = FGV_FATBIN_LZ4;
	else
		return -EINVAL;
	if (head->packed_len > head->payload_len || head->unpacked_len > SIZE_MAX / 2)
		return -EINVAL;
	entry->len = head->packed_len;
	entry->unpacked_len = head->unpacked_len;
	return 0;
}

int fgv_fatbin_entry(const void *container, size_t container_len, size_t *at,
		     struct fgv_fatbin_entry *entry)
{
	const uint8_t *bytes = container;
	struct entry_head head;
	size_t left;

	if (*at == 0)
		*at = sizeof(struct container_head);
	if (*at > container_len)
		return -EINVAL;
	left = container_len - *at;
	if (left == 0)
		return 0;
	if (left < sizeof(head))
		return -EINVAL;
	memcpy(&head, bytes + *at, sizeof(head));
	if (head.head_len < sizeof(head) || head.head_len > ENTRY_HEAD_MAX ||
	    head.head_len > left || head.payload_len > left - head.head_len)
		return -EINVAL;
	entry->kind = head.kind;
	entry->sm = head.sm;
	entry->arch_specific = head.flags & FLAG_ARCH_SPECIFIC;
	entry->data = bytes + *at + head.head_len;
	if (read_packing(&head, entry) < 0)
		return -EINVAL;
	*at += head.head_len + head.payload_len;
	return 1;
}

size_t fgv_fatbin_wrap(void *to, unsigned kind, unsigned sm, const void *data, size_t len)
{
	const struct entry_head entry = {
		.kind = (uint16_t)kind,
		.head_len = sizeof(entry),
		.payload_len = len,
		.sm = sm,
	};
	const struct container_head head = {
		.magic = CONTAINER_MAGIC,
		.version = CONTAINER_VERSION,
		.head_len = sizeof(head),
		.len = sizeof(entry) + len,
	};
	uint8_t *at = to;

	if (to) {
		memcpy(at, &head, sizeof(head));
		memcpy(at + sizeof(head), &entry, sizeof(entry));
		memcpy(at + sizeof(head) + sizeof(entry), data, len);
	}
	return sizeof(head) + sizeof(entry) + len;
}

void fgv_fatbin_unwrap(const void **image, size_t *len)
{
	struct fgv_fatbin_entry entry;
	size_t container_len, at = 0;

	if (fgv_fatbin_form(*image, *len) != FGV_FATBIN_CONTAINER ||
	    fgv_fatbin_extent(*image, *len, &container_len) < 0 || container_len != *len ||
	    fgv_fatbin_entry(*image, container_len, &at, &entry) <= 0 || at != *len ||
	    entry.kind != FGV_FATBIN_LINKED || entry.packing != FGV_FATBIN_RAW)
		return;
	*image = entry.data;
	*len = entry.len;
}
