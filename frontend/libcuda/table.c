/*
 * cuGetProcAddress(): finding a function by its name, the version of CUDA that the caller was
 * built for, and the default stream that it means.
 */
#include <string.h>

#include "common/util.h"
#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/missing.h"

enum thread { LEGACY, PER_THREAD };

struct entry {
	const char *name;
	int version; /* since which it is the one */
	enum thread thread;
	void *symbol; /* NULL: FairGV does not have it */
};

/* What is refused has no other declaration in some versions of the toolkit's headers. */
#define ENTRY(name, version, thread, symbol)
#define MISSING(name, version, thread)
#define REFUSED(name, version, thread, symbol) STUB_DECLARATION(symbol)
#include "frontend/libcuda/table.inc"
#undef ENTRY
#undef MISSING
#undef REFUSED

#define ENTRY(name, version, thread, symbol)   {name, version, thread, (void *)(symbol)},
#define MISSING(name, version, thread)	       {name, version, thread, NULL},
#define REFUSED(name, version, thread, symbol) {name, version, thread, (void *)STUB_NAME(symbol)},

/* By name; then the legacy ones by version, then those for threads. */
static const struct entry entries[] = {
#include "frontend/libcuda/table.inc"
};

CUresult fgv_driver_missing(struct fgv_unsupported *unsupported)
{
	fgv_errlog_unsupported(unsupported);
	return fgv_ctx_status() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_NOT_SUPPORTED;
}

/* The first entry that is not before @name. */
static size_t find_first(const char *name)
{
	size_t low = 0, high = FGV_ARRAY_LEN(entries);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(entries[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The newest form of those from @first on that @version knows; *known: there is a newer one. */
static const struct entry *find_newest(size_t first, int version, enum thread thread, bool *known)
{
	const struct entry *newest = NULL;
	const char *name = entries[first].name;

	for (size_t i = first; i < FGV_ARRAY_LEN(entries); i++) {
		const struct entry *each = &entries[i];

		if (strcmp(each->name, name) != 0)
			break;
		*known = true;
		if (each->thread == thread && each->version <= version &&
		    (!newest || each->version > newest->version))
			newest = each;
	}
	return newest;
}

/* Whether one of those from @first on takes the thread's default stream for stream 0. */
static bool has_thread_form(size_t first)
{
	const char *name = entries[first].name;
	size_t i = first;

	while (i < FGV_ARRAY_LEN(entries) && !strcmp(entries[i].name, name)) {
		if (entries[i++].thread == PER_THREAD)
			return true;
	}
	return false;
}

void *fgv_driver_symbol(const char *name, int version, bool per_thread,
			CUdriverProcAddressQueryResult *status)
{
	const struct entry *found = NULL;
	size_t first = find_first(name);
	bool known = false;

	if (first < FGV_ARRAY_LEN(entries) && !strcmp(entries[first].name, name)) {
		/* Never the legacy form in place of one that is too new for @version. */
		enum thread thread = per_thread && has_thread_form(first) ? PER_THREAD : LEGACY;

		found = find_newest(first, version, thread, &known);
	}
	if (found && found->symbol)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (known && !found)
		*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	else
		*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return found ? found->symbol : NULL;
}

static CUresult get(const char *symbol, void **pfn, int version, cuuint64_t flags,
		    CUdriverProcAddressQueryResult *status)
{
	if (!symbol || !pfn || version > FGV_DRIVER_VERSION ||
	    (flags != CU_GET_PROC_ADDRESS_DEFAULT && flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
	     flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = fgv_driver_symbol(symbol, version,
				 flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, status);
	return CUDA_SUCCESS;
}

FGV_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
					cuuint64_t flags,
					CUdriverProcAddressQueryResult *symbolStatus)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CUresult res = get(symbol, pfn, cudaVersion, flags, &status);

	if (symbolStatus && !res)
		*symbolStatus = status;
	return res;
}

/* That of CUDA 11, which has no status, leaves the caller's pointer alone instead. */
FGV_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
				     cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	void *found;
	CUresult res = get(symbol, pfn ? &found : NULL, cudaVersion, flags, &status);

	if (res)
		return res;
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	*pfn = found;
	return CUDA_SUCCESS;
}
