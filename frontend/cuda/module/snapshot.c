/*
 * Reading the description of a module's kernels.
 */
#include "frontend/cuda/module/snapshot.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct fgv_snapshot {
	uint64_t bytes;
	uint64_t records[]; /* each at a multiple of 8 bytes */
};

static const struct fgv_kernel_record *record_at(const struct fgv_snapshot *snapshot, uint64_t at)
{
	return (const void *)((const uint8_t *)snapshot->records + at);
}

static bool is_sound(const struct fgv_kernel_record *record, uint64_t left)
{
	const char *name = fgv_snapshot_name(record);

	return record->len % 8 == 0 && record->len <= left && record->info_len % 8 == 0 &&
	       record->name_len > 0 &&
	       (uint64_t)sizeof(*record) + record->info_len + record->name_len <= record->len &&
	       strnlen(name, record->name_len) == record->name_len - 1;
}

/* So many records, and nothing else. */
static bool makes_sense(const struct fgv_snapshot *snapshot, uint32_t count)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (snapshot->bytes - at < sizeof(struct fgv_kernel_record) ||
		    !is_sound(record_at(snapshot, at), snapshot->bytes - at))
			return false;
		at += record_at(snapshot, at)->len;
	}
	return at == snapshot->bytes;
}

struct fgv_snapshot *fgv_snapshot_copy(const void *written, uint64_t bytes, uint32_t count)
{
	struct fgv_snapshot *snapshot = malloc(sizeof(*snapshot) + bytes);

	if (!snapshot)
		return NULL;
	snapshot->bytes = bytes;
	memcpy(snapshot->records, written, bytes);
	if (makes_sense(snapshot, count))
		return snapshot;
	free(snapshot);
	return NULL;
}

const struct fgv_kernel_record *fgv_snapshot_next(const struct fgv_snapshot *snapshot,
						  const struct fgv_kernel_record *record)
{
	uint64_t at = 0;

	if (record)
		at = (uint64_t)((const uint8_t *)record - (const uint8_t *)snapshot->records) +
		     record->len;
	return at < snapshot->bytes ? record_at(snapshot, at) : NULL;
}

const struct fgv_kernel_record *fgv_snapshot_find(const struct fgv_snapshot *snapshot,
						  const char *name)
{
	const struct fgv_kernel_record *record = NULL;

	while ((record = fgv_snapshot_next(snapshot, record))) {
		if (!strcmp(fgv_snapshot_name(record), name))
			break;
	}
	return record;
}
