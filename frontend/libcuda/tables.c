/*
 * cuGetExportTable(): which tables there are, and counting what is asked for in vain, with the
 * library that did, so that what a new version of one needs shows.
 */
#define _GNU_SOURCE
#include "frontend/libcuda/tables.h"

#include <dlfcn.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define REFUSE(table, index)                                                                       \
	static CUresult refuse_##table##_##index(void)                                             \
	{                                                                                          \
		return FGV_UNSUPPORTED("cuGetExportTable " #table ", entry " #index);              \
	}

static CUresult ignore(void)
{
	return CUDA_SUCCESS;
}

#include "frontend/libcuda/slots.inc"

static const struct {
	uint8_t uuid[sizeof(CUuuid)];
	const void *table; /* NULL: it is known that there is none */
} tables[] = {
#define TABLE(address, ...) {{__VA_ARGS__}, address},
	TABLES
#undef TABLE
};

/* One line of the statistics: a table, and the program that asked for it. */
struct unknown {
	struct fgv_unsupported counted;
	struct unknown *next;
	char name[];
};

static struct {
	pthread_mutex_t mutex;
	struct unknown *first;
} unknown = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void describe(char *text, size_t room, const CUuuid *id, const void *caller)
{
	const unsigned char *bytes = (const unsigned char *)id->bytes;
	const char *library = "an unknown library";
	size_t len = 0;
	Dl_info info;

	if (dladdr(caller, &info) && info.dli_fname) {
		library = strrchr(info.dli_fname, '/');
		library = library ? library + 1 : info.dli_fname;
	}
	for (size_t i = 0; i < sizeof(id->bytes); i++)
		len += (size_t)snprintf(text + len, room - len, "%s%02x", i % 4 || !i ? "" : "-",
					bytes[i]);
	snprintf(text + len, room - len, " of cuGetExportTable, asked for by %s", library);
}

static struct unknown *find_locked(const char *text)
{
	size_t len = strlen(text) + 1;
	struct unknown *each = unknown.first;

	while (each && strcmp(each->name, text) != 0)
		each = each->next;
	if (each)
		return each;
	each = calloc(1, sizeof(*each) + len);
	if (!each)
		return NULL;
	memcpy(each->name, text, len);
	each->counted.name = each->name;
	each->next = unknown.first;
	unknown.first = each;
	return each;
}

static void count(const CUuuid *id, const void *caller)
{
	struct unknown *found;
	char text[256];

	describe(text, sizeof(text), id, caller);
	pthread_mutex_lock(&unknown.mutex);
	found = find_locked(text);
	pthread_mutex_unlock(&unknown.mutex);
	if (found)
		fgv_errlog_unsupported(&found->counted);
}

FGV_EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	for (size_t i = 0; i < FGV_ARRAY_LEN(tables); i++) {
		if (memcmp(tables[i].uuid, pExportTableId->bytes, sizeof(tables[i].uuid)) != 0)
			continue;
		*ppExportTable = tables[i].table;
		return tables[i].table ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
	}
	count(pExportTableId, __builtin_return_address(0));
	return CUDA_ERROR_NOT_FOUND;
}
