/*
 * The log of errors (client/errlog.h), as the program reads it. The driver's own, of what goes on
 * in the GPU's process, is not the program's to read.
 */
#include <stdio.h>
#include <string.h>

#include "frontend/cuda/context/errlog.h"
#include "frontend/libcudart/cudart.h"

/* Comes first where older messages are missing. */
static const char cut[] = "Older messages are not shown here.\n";

/* Messages @first up to @end, behind a line that says so if there were older ones. */
struct extract {
	uint32_t first, end;
	bool is_cut;
};

/* What there is from @iterator on; from the oldest without one. */
static struct extract start(const cudaLogIterator *iterator)
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

FGV_EXPORT cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callbackFunc, void *userData,
						cudaLogsCallbackHandle *callback_out)
{
	struct fgv_errlog_listener *listener;

	if (!callbackFunc)
		return fgv_error_set(cudaErrorInvalidValue);
	listener = fgv_errlog_listen((CUlogsCallback)callbackFunc, userData);
	if (!listener)
		return fgv_error_set(cudaErrorMemoryAllocation);
	if (callback_out)
		*callback_out = (cudaLogsCallbackHandle)listener;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback)
{
	if (fgv_errlog_unlisten((struct fgv_errlog_listener *)callback))
		return fgv_error_set(cudaErrorInvalidValue);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLogsCurrent(cudaLogIterator *iterator_out, unsigned int flags)
{
	(void)flags; /* CUDA accepts any, too */
	if (!iterator_out)
		return fgv_error_set(cudaErrorInvalidValue);
	*iterator_out = fgv_errlog_end();
	return cudaSuccess;
}

static cudaError_t dump_to_file(cudaLogIterator *iterator, const char *path)
{
	char line[FGV_ERRLOG_LINE];
	struct extract extract;
	FILE *file = fopen(path, "we");
	bool failed;

	if (!file)
		return cudaErrorInvalidValue;
	extract = start(iterator);
	if (extract.is_cut)
		fputs(cut, file);
	for (uint32_t i = extract.first; i != extract.end; i++) {
		if (fgv_errlog_line(i, line))
			fputs(line, file);
	}
	failed = ferror(file);
	if (fclose(file) || failed)
		return cudaErrorInvalidValue;
	if (iterator)
		*iterator = extract.end;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLogsDumpToFile(cudaLogIterator *iterator, const char *pathToFile,
					  unsigned int flags)
{
	if (!pathToFile || flags)
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(dump_to_file(iterator, pathToFile));
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

static cudaError_t dump_to_memory(cudaLogIterator *iterator, char *buffer, size_t *size)
{
	struct extract extract = start(iterator);
	bool is_empty = extract.first == extract.end;
	size_t len = 0;

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
		return cudaErrorInvalidValue;
	if (iterator)
		*iterator = extract.end;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size,
					    unsigned int flags)
{
	if (!buffer || !size || flags)
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(dump_to_memory(iterator, buffer, size));
}
