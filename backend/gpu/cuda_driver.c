/*
 * Opens the driver library and fills the table. It stays open until the process ends:
 * the library has threads and cannot be unloaded.
 */
#include "backend/gpu/cuda_driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "common/util.h"

/*
 * An MPS server that recovers from a client's fault takes no new clients until its old ones have
 * left, which is soon: the daemon ends those that it keeps ready.
 */
#define SERVER_LOOKS   500
#define SERVER_LOOK_NS (20 * FGV_NS_PER_MS)

/* Expands the header's macros, so that cuMemAlloc becomes "cuMemAlloc_v2". */
#define TEXT_OF(symbol) #symbol
#define NAME_OF(symbol) TEXT_OF(symbol)

static struct {
	bool is_ready;
	struct fgv_cuda_driver driver;
} loaded;

/* Stores the address of symbol @name at @field. A conversion that POSIX allows, not ISO C. */
static bool find(void *library, const char *name, void *field, char *why, size_t why_len)
{
	void *address = dlsym(library, name);

	if (!address) {
		snprintf(why, why_len, "the CUDA driver is too old: it has no %s", name);
		return false;
	}
	memcpy(field, &address, sizeof(address));
	return true;
}

/* One that only later drivers have. */
static void find_later(void *library, const char *name, void *field)
{
	void *address = dlsym(library, name);

	memcpy(field, &address, sizeof(address));
}

static bool find_all(void *library, struct fgv_cuda_driver *driver, char *why, size_t why_len)
{
#define FIND(field, symbol)                                                                        \
	if (!find(library, NAME_OF(symbol), &driver->field, why, why_len))                         \
		return false;
	FGV_CUDA_SYMBOLS(FIND)
#undef FIND
	find_later(library, NAME_OF(cuDeviceGetHostAtomicCapabilities), &driver->host_atomics);
	find_later(library, NAME_OF(cuTensorMapEncodeIm2colWide), &driver->tensor_im2col_wide);
	find_later(library, NAME_OF(cuDeviceGetDevResource), &driver->device_resource);
	find_later(library, NAME_OF(cuDevSmResourceSplitByCount), &driver->split_sms);
	find_later(library, NAME_OF(cuDevResourceGenerateDesc), &driver->describe_resource);
	find_later(library, NAME_OF(cuGreenCtxCreate), &driver->green_create);
	find_later(library, NAME_OF(cuGreenCtxDestroy), &driver->green_destroy);
	find_later(library, NAME_OF(cuCtxFromGreenCtx), &driver->green_context);
	return find(library, "cuEventElapsedTime", &driver->event_elapsed, why, why_len);
}

bool fgv_cuda_driver_start(const struct fgv_cuda_driver *driver, char *why, size_t why_len)
{
	const struct timespec pause = {.tv_nsec = SERVER_LOOK_NS};
	const char *name = "an unknown error";
	CUresult status = driver->init(0);

	for (unsigned i = 0; status == CUDA_ERROR_MPS_SERVER_NOT_READY && i < SERVER_LOOKS; i++) {
		nanosleep(&pause, NULL);
		status = driver->init(0);
	}
	if (status == CUDA_SUCCESS)
		return true;
	driver->error_name(status, &name);
	snprintf(why, why_len, "the CUDA driver does not start: %s", name);
	return false;
}

/* FairGV's own, which is a guest's: this process would be its own guest. */
static bool is_ours(void)
{
	return dlopen("libfairgv.so.0", RTLD_LAZY | RTLD_NOLOAD);
}

const struct fgv_cuda_driver *fgv_cuda_driver_get(char *why, size_t why_len)
{
	void *library;

	if (loaded.is_ready)
		return &loaded.driver;
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(why, why_len, "%s", dlerror());
		return NULL;
	}
	if (is_ours()) {
		snprintf(why, why_len,
			 "libcuda.so.1 is FairGV's own; take its folder out of LD_LIBRARY_PATH");
		return NULL;
	}
	loaded.is_ready = find_all(library, &loaded.driver, why, why_len) &&
			  fgv_cuda_driver_start(&loaded.driver, why, why_len);
	return loaded.is_ready ? &loaded.driver : NULL;
}
