/*
 * Plays libnvidia-ml.so.1 for tests of the daemon. It does not start unless FAKE_NVML names a
 * file, whose lines are what is asked for, anew each time: "c" for a process with a context of its
 * own, "m" for a client of MPS, then its id and its bytes. Without the file it fails.
 * Of the device itself it tells a few figures; the power is as many watts as it was asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT	 __attribute__((visibility("default")))
#define NO_START 9
#define UNKNOWN	 999
#define TOO_MANY 7

struct process {
	unsigned pid;
	unsigned long long bytes;
	unsigned instances[2];
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *place, void **device);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
						   struct process *processes);
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count,
						      struct process *processes);

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
EXPORT int nvmlDeviceGetPerformanceState(void *device, unsigned *state);
EXPORT int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees);
EXPORT int nvmlDeviceGetClockInfo(void *device, unsigned clock, unsigned *mhz);
EXPORT int nvmlDeviceGetFanSpeed(void *device, unsigned *percent);
EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *least,
							unsigned *most);

EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *is_up);
EXPORT int nvmlDeviceGetNvLinkCapability(void *device, unsigned link, unsigned what,
					 unsigned *value);
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *type);

int nvmlInit_v2(void)
{
	return getenv("FAKE_NVML") ? 0 : NO_START;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *place, void **device)
{
	static int any;

	*device = &any;
	return strcmp(place, "0000:1b:00.0") ? UNKNOWN : 0;
}

static int list(char kind, unsigned *count, struct process *processes)
{
	FILE *file = fopen(getenv("FAKE_NVML"), "r");
	unsigned room = *count;
	struct process process = {0};
	char its;

	*count = 0;
	if (!file)
		return UNKNOWN;
	while (fscanf(file, " %c %u %llu", &its, &process.pid, &process.bytes) == 3) {
		if (its != kind)
			continue;
		if (*count < room)
			processes[*count] = process;
		(*count)++;
	}
	fclose(file);
	return *count > room ? TOO_MANY : 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
					    struct process *processes)
{
	(void)device;
	return list('c', count, processes);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count,
					       struct process *processes)
{
	(void)device;
	return list('m', count, processes);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
	static unsigned asked;

	(void)device;
	*mw = ++asked * 1000;
	return 0;
}

int nvmlDeviceGetPerformanceState(void *device, unsigned *state)
{
	(void)device;
	*state = 32; /* it does not know */
	return 0;
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees)
{
	(void)device;
	*degrees = 41;
	return sensor ? UNKNOWN : 0;
}

int nvmlDeviceGetClockInfo(void *device, unsigned clock, unsigned *mhz)
{
	(void)device;
	*mhz = 1000 + clock;
	return 0;
}

/* A GPU without a fan. */
int nvmlDeviceGetFanSpeed(void *device, unsigned *percent)
{
	(void)device;
	*percent = 77;
	return UNKNOWN;
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *least, unsigned *most)
{
	(void)device;
	*least = 200000;
	*most = 700000;
	return 0;
}

/* Of eight links one is down, one is for no peers, one leads to a GPU, and of one it is not told. */
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *is_up)
{
	(void)device;
	*is_up = link != 3;
	return link < 8 ? 0 : UNKNOWN;
}

int nvmlDeviceGetNvLinkCapability(void *device, unsigned link, unsigned what, unsigned *value)
{
	(void)device;
	*value = what == 0 && link != 4;
	return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *type)
{
	(void)device;
	*type = link == 5 ? 0 : 2;
	return link == 6 ? UNKNOWN : 0;
}
