/*
 * NVML by dlopen(), with the few of its types that are needed: its header is no part of the
 * toolkit's usual packages. The names and layouts are those that drivers since R510 have.
 */
#include "backend/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVML_SUCCESS	       0
#define NVML_INSUFFICIENT_SIZE 7
#define NVML_NOT_AVAILABLE     UINT64_MAX

typedef void *nvml_device; /* an opaque name, as NVML has it */

struct nvml_process {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_v2_t");

typedef int nvml_list(nvml_device device, unsigned *count, struct nvml_process *processes);

struct fgv_nvml {
	void *library;
	int (*shutdown)(void);
	int (*device_by_place)(const char *place, nvml_device *device);
	nvml_list *processes;
	nvml_list *mps_clients;
};

/* A conversion that POSIX allows, not ISO C. */
static bool find(void *library, const char *name, void *field)
{
	void *address = dlsym(library, name);

	memcpy(field, &address, sizeof(address));
	return address != NULL;
}

static bool find_all(struct fgv_nvml *nvml, int (**init)(void))
{
	void *library = nvml->library;

	return find(library, "nvmlInit_v2", init) &&
	       find(library, "nvmlShutdown", &nvml->shutdown) &&
	       find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->device_by_place) &&
	       find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes) &&
	       find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", &nvml->mps_clients);
}

static int start(struct fgv_nvml *nvml, char *why, size_t why_len)
{
	int (*init)(void) = NULL;
	int status;

	if (!find_all(nvml, &init)) {
		snprintf(why, why_len, "libnvidia-ml.so.1 is too old");
		return -ENOSYS;
	}
	status = init();
	if (status == NVML_SUCCESS)
		return 0;
	snprintf(why, why_len, "NVML does not start: error %d", status);
	return -EIO;
}

int fgv_nvml_open(struct fgv_nvml **out, char *why, size_t why_len)
{
	struct fgv_nvml *nvml = calloc(1, sizeof(*nvml));
	int ret;

	if (!nvml) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		snprintf(why, why_len, "%s", dlerror());
		free(nvml);
		return -ENOENT;
	}
	ret = start(nvml, why, why_len);
	if (ret) {
		dlclose(nvml->library);
		free(nvml);
		return ret;
	}
	*out = nvml;
	return 0;
}

void fgv_nvml_close(struct fgv_nvml *nvml)
{
	if (!nvml)
		return;
	nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

/* A process may be on both lists, of which each knows all of its memory. */
static size_t add(struct fgv_nvml_use *uses, size_t count, size_t max,
		  const struct nvml_process *process)
{
	for (size_t i = 0; i < count; i++) {
		if (uses[i].pid != (pid_t)process->pid)
			continue;
		if (process->used_bytes > uses[i].bytes)
			uses[i].bytes = process->used_bytes;
		return count;
	}
	if (count == max)
		return count;
	uses[count] = (struct fgv_nvml_use){(pid_t)process->pid, process->used_bytes};
	return count + 1;
}

/* Adds to @count that there are; how many there are now, or a negative errno. */
static int take(nvml_list *list, nvml_device device, struct fgv_nvml_use *uses, size_t count,
		size_t max)
{
	struct nvml_process *processes = calloc(max, sizeof(*processes));
	unsigned listed = (unsigned)max;
	int status;

	if (!processes)
		return -ENOMEM;
	status = list(device, &listed, processes);
	/* Of too many none is told. */
	if (status != NVML_SUCCESS) {
		free(processes);
		return status == NVML_INSUFFICIENT_SIZE ? -E2BIG : -EIO;
	}
	for (unsigned i = 0; i < listed && i < max; i++) {
		if (processes[i].used_bytes != NVML_NOT_AVAILABLE)
			count = add(uses, count, max, &processes[i]);
	}
	free(processes);
	return (int)count;
}

int fgv_nvml_uses(struct fgv_nvml *nvml, const char *place, struct fgv_nvml_use *uses, size_t max)
{
	nvml_device device;
	int count;

	if (nvml->device_by_place(place, &device) != NVML_SUCCESS)
		return -ENODEV;
	count = take(nvml->processes, device, uses, 0, max);
	if (count >= 0)
		count = take(nvml->mps_clients, device, uses, (size_t)count, max);
	return count;
}
