/*
 * The log of errors as text. The driver's own, of what goes on in the GPU's process, is not the
 * program's to read.
 */
#include "frontend/cuda/context/errlog.h"

#include <stdio.h>
#include <string.h>

/* Comes first where older messages are missing. */
static const char cut[] = "Older messages are not shown here.\n";

/* Messages @first up to @end, behind a line that says so if there were older ones. */
struct extract {
	uint32_t first, end;
	bool is_cut;
};

/* What there is from @iterator on; from the oldest without one. */
static struct extract start(const CUlogIterator *iterator)
{
	struct extract extract = {.first = fgv_errlog_first(), .end = fgv_errlog_end()};
	uint32_t kept = extract.end - extract.first;

	if (!iterator)
		return extract;
	if (extract.end - *iterator <= kept)
		extract.first = *iterator;
	else
		extract.is_cut = true;
	return extract;
}

CUresult fgv_errlog_dump_to_file(CUlogIterator *iterator, const char *path)
{
	char line[FGV_ERRLOG_LINE];
	struct extract extract;
	FILE *file = path ? fopen(path, "we") : NULL;
	bool failed;

	if (!file)
		return CUDA_ERROR_INVALID_VALUE;
	extract = start(iterator);
	if (extract.is_cut)
		fputs(cut, file);
	for (uint32_t i = extract.first; i != extract.end; i++) {
		if (fgv_errlog_line(i, line))
			fputs(line, file);
	}
	failed = ferror(file);
	if (fclose(file) || failed)
		return CUDA_ERROR_INVALID_VALUE;
	if (iterator)
		*iterator = extract.end;
	return CUDA_SUCCESS;
}

/* The first message from which on all others fit into @room bytes, with a NUL. */
static uint32_t find_first(const struct extract *extract, size_t room)
{
	char line[FGV_ERRLOG_LINE];
	uint32_t at = extract->end;

	while (at != extract->first) {
		size_t len = fgv_errlog_line(at - 1, line);

		if (len >= room)
			break;
		room -= len;
		at--;
	}
	return at;
}

/* Leaves out the oldest messages, so that the rest fits into @room bytes. */
static void shorten(struct extract *extract, size_t room)
{
	uint32_t first = find_first(extract, room);

	if (first != extract->first)
		extract->is_cut = true;
	if (extract->is_cut)
		first = room < sizeof(cut) ? extract->end : find_first(extract, room - strlen(cut));
	extract->first = first;
}

CUresult fgv_errlog_dump_to_memory(CUlogIterator *iterator, char *buffer, size_t *size)
{
	struct extract extract = start(iterator);
	bool is_empty = extract.first == extract.end;
	size_t len = 0;

	if (!buffer || !size)
		return CUDA_ERROR_INVALID_VALUE;
	shorten(&extract, *size);
	if (extract.is_cut && extract.first != extract.end)
		len = strlen(strcpy(buffer, cut));
	for (uint32_t i = extract.first; i != extract.end; i++) {
		char line[FGV_ERRLOG_LINE];
		size_t more = fgv_errlog_line(i, line);

		memcpy(buffer + len, line, more);
		len += more;
	}
	if (*size)
		buffer[len] = '\0';
	*size = len;
	if (!is_empty && !len)
		return CUDA_ERROR_INVALID_VALUE;
	if (iterator)
		*iterator = extract.end;
	return CUDA_SUCCESS;
}
