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

#include "api/wire.h"
#include "common/util.h"

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

/* FairGV's own, which describes a VM to its programs, by asking this daemon. */
static bool is_ours(void)
{
	void *core = dlopen("libfairgv.so.0", RTLD_LAZY | RTLD_NOLOAD);

	if (core)
		dlclose(core);
	return core != NULL;
}

static int load(struct fgv_nvml *nvml, char *why, size_t why_len)
{
	int ret;

	nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		snprintf(why, why_len, "%s", dlerror());
		return -ENOENT;
	}
	if (is_ours()) {
		snprintf(why, why_len,
			 "libnvidia-ml.so.1 is FairGV's own; take its folder out of "
			 "LD_LIBRARY_PATH");
		ret = -ENOENT;
	} else {
		ret = start(nvml, why, why_len);
	}
	if (ret)
		dlclose(nvml->library);
	return ret;
}

int fgv_nvml_open(struct fgv_nvml **out, char *why, size_t why_len)
{
	struct fgv_nvml *nvml = calloc(1, sizeof(*nvml));
	int ret;

	if (!nvml) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	ret = load(nvml, why, why_len);
	if (ret)
		free(nvml);
	else
		*out = nvml;
	return ret;
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

/* --- Figures ----------------------------------------------------------------- */

typedef int nvml_one(nvml_device device, unsigned *value);
typedef int nvml_of(nvml_device device, unsigned of, unsigned *value);
typedef int nvml_two(nvml_device device, unsigned *least, unsigned *most);

#define NVML_STATE_UNKNOWN 32

/* Functions that tell one number. */
static const struct {
	enum fgv_figure figure;
	const char *name;
} ones[] = {
	{FGV_FIGURE_POWER, "nvmlDeviceGetPowerUsage"},
	{FGV_FIGURE_POWER_LIMIT, "nvmlDeviceGetEnforcedPowerLimit"},
	{FGV_FIGURE_POWER_DEFAULT, "nvmlDeviceGetPowerManagementDefaultLimit"},
	{FGV_FIGURE_FAN, "nvmlDeviceGetFanSpeed"},
	{FGV_FIGURE_STATE, "nvmlDeviceGetPerformanceState"},
	{FGV_FIGURE_LINK_GENERATION, "nvmlDeviceGetCurrPcieLinkGeneration"},
	{FGV_FIGURE_LINK_WIDTH, "nvmlDeviceGetCurrPcieLinkWidth"},
	{FGV_FIGURE_LINK_MAX_GENERATION, "nvmlDeviceGetMaxPcieLinkGeneration"},
	{FGV_FIGURE_LINK_MAX_WIDTH, "nvmlDeviceGetMaxPcieLinkWidth"},
};

/* Functions that tell as many as there are kinds, from 0 on; their figures follow each other. */
static const struct {
	enum fgv_figure first;
	const char *name;
	unsigned kinds;
} manys[] = {
	{FGV_FIGURE_TEMPERATURE, "nvmlDeviceGetTemperature", 1},
	{FGV_FIGURE_CLOCK_GRAPHICS, "nvmlDeviceGetClockInfo", 4},
	{FGV_FIGURE_MAX_GRAPHICS, "nvmlDeviceGetMaxClockInfo", 4},
};

static void measure_limits(struct fgv_nvml *nvml, nvml_device device, uint32_t *figures)
{
	unsigned least, most;
	nvml_two *get;

	if (!find(nvml->library, "nvmlDeviceGetPowerManagementLimitConstraints", &get) ||
	    get(device, &least, &most) != NVML_SUCCESS)
		return;
	figures[FGV_FIGURE_POWER_LEAST] = least;
	figures[FGV_FIGURE_POWER_MOST] = most;
}

void fgv_nvml_measure(struct fgv_nvml *nvml, const char *place, uint32_t *figures)
{
	nvml_device device;
	unsigned value;
	nvml_one *one;
	nvml_of *of;

	if (nvml->device_by_place(place, &device) != NVML_SUCCESS)
		return;
	for (size_t i = 0; i < FGV_ARRAY_LEN(ones); i++) {
		if (find(nvml->library, ones[i].name, &one) &&
		    one(device, &value) == NVML_SUCCESS)
			figures[ones[i].figure] = value;
	}
	if (figures[FGV_FIGURE_STATE] == NVML_STATE_UNKNOWN)
		figures[FGV_FIGURE_STATE] = FGV_FIGURE_UNKNOWN;
	for (size_t i = 0; i < FGV_ARRAY_LEN(manys); i++) {
		if (!find(nvml->library, manys[i].name, &of))
			continue;
		for (unsigned kind = 0; kind < manys[i].kinds; kind++) {
			if (of(device, kind, &value) == NVML_SUCCESS)
				figures[manys[i].first + kind] = value;
		}
	}
	measure_limits(nvml, device, figures);
}

/* --- Links ------------------------------------------------------------------- */

#define NVLINKS_MAX	36
#define NVLINK_FOR_P2P	0
#define NVLINK_TO_A_GPU 0

/* One whose other end is not told, as in a virtual machine, leads to a switch. */
static bool is_by_switch(nvml_device device, unsigned link, nvml_of *state,
			 int (*can)(nvml_device, unsigned, unsigned, unsigned *), nvml_of *other)
{
	unsigned value = 0;

	if (state(device, link, &value) != NVML_SUCCESS || !value)
		return false;
	if (can(device, link, NVLINK_FOR_P2P, &value) != NVML_SUCCESS || !value)
		return false;
	return other(device, link, &value) != NVML_SUCCESS || value != NVLINK_TO_A_GPU;
}

uint32_t fgv_nvml_nvlinks(struct fgv_nvml *nvml, const char *place)
{
	int (*can)(nvml_device, unsigned, unsigned, unsigned *);
	nvml_of *state, *other;
	nvml_device device;
	uint32_t count = 0;

	if (nvml->device_by_place(place, &device) != NVML_SUCCESS ||
	    !find(nvml->library, "nvmlDeviceGetNvLinkState", &state) ||
	    !find(nvml->library, "nvmlDeviceGetNvLinkCapability", &can) ||
	    !find(nvml->library, "nvmlDeviceGetNvLinkRemoteDeviceType", &other))
		return 0;
	for (unsigned link = 0; link < NVLINKS_MAX; link++)
		count += is_by_switch(device, link, state, can, other);
	return count;
}
