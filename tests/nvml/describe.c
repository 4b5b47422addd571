/*
 * Asks NVML all that it has an answer for, as tools do: by dlopen(), without CUDA. Says what it
 * has been told as lines of key=value, for tests/local/nvml.py and for people; what no VM
 * can change is checked here. Of a VM with several GPUs each is asked, and a line device=NUMBER is
 * in front of what it has said. --cuda: also that libcudart says the same, in a forked child, where
 * CUDA must work although NVML is initialized in its parent.
 *
 * Exit status: 0, 1 where something is wrong.
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "frontend/libnvml/abi.h"

#define PROCESSES 100

static void *library;

static const struct {
	const char *name;
	int is_stub;
} names[] = {
#define NAME(x)	     {#x, 0},
#define STUB_NAME(x) {#x, 1},
#include "frontend/libnvml/names.h"
#undef NAME
#undef STUB_NAME
};

static void *find(const char *name)
{
	void *function = dlsym(library, name);

	if (function)
		return function;
	fprintf(stderr, "describe: %s is not exported\n", name);
	exit(1);
}

static void check(int line, const char *what, int got, int want)
{
	if (got == want)
		return;
	fprintf(stderr, "describe: line %d: %s: %d instead of %d\n", line, what, got, want);
	exit(1);
}

#define CALL(function, ...)	    (((int (*)())find(#function))(__VA_ARGS__))
#define EXPECT(want, function, ...) check(__LINE__, #function, CALL(function, __VA_ARGS__), want)
#define OK(function, ...)	    EXPECT(FGV_NVML_SUCCESS, function, __VA_ARGS__)
#define EQUAL(got, want)	    check(__LINE__, #got, (got) == (want), 1)

/* Everything is there, and stubs say @want. */
static void check_names(int want)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int (*function)() = (int (*)())find(names[i].name);

		if (names[i].is_stub)
			check(__LINE__, names[i].name, function(), want);
	}
}

static void check_nothing_else(void)
{
	EQUAL(dlsym(library, "fgv_log"), NULL);
	EQUAL(dlsym(library, "fgv_nvml_look"), NULL);
}

static unsigned check_counting(void)
{
	unsigned count = 0;

	EXPECT(FGV_NVML_UNINITIALIZED, nvmlShutdown);
	EXPECT(FGV_NVML_UNINITIALIZED, nvmlDeviceGetCount_v2, &count);
	check_names(FGV_NVML_UNINITIALIZED);
	OK(nvmlInit_v2);
	OK(nvmlInitWithFlags, 1);
	OK(nvmlShutdown);
	OK(nvmlDeviceGetCount_v2, &count);
	EQUAL(count >= 1, 1);
	check_names(FGV_NVML_NOT_SUPPORTED);
	return count;
}

/* The handle, which every way to find it leads to. */
static void *check_handles(unsigned number, unsigned count, char uuid[96])
{
	void *device = NULL, *same = NULL;
	struct fgv_nvml_pci pci;
	struct fgv_nvml_pci_v2 old;
	struct fgv_nvml_pci_ext ext = {.version = FGV_NVML_VERSION(ext, 1)};
	struct fgv_nvml_uuid id = {.version = FGV_NVML_VERSION(id, 1), .type = FGV_NVML_UUID_TEXT};
	unsigned index = 7;

	EXPECT(FGV_NVML_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2, count, &device);
	EXPECT(FGV_NVML_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2, 0, NULL);
	OK(nvmlDeviceGetHandleByIndex_v2, number, &device);
	OK(nvmlDeviceGetIndex, device, &index);
	EQUAL(index, number);
	EXPECT(FGV_NVML_INVALID_ARGUMENT, nvmlDeviceGetIndex, &index, &index);
	EXPECT(FGV_NVML_INVALID_ARGUMENT, nvmlDeviceGetIndex, NULL, &index);
	OK(nvmlDeviceGetUUID, device, uuid, 96);
	EQUAL(strlen(uuid), 40);
	OK(nvmlDeviceGetHandleByUUID, uuid, &same);
	EQUAL(same, device);
	memcpy(id.value, uuid, 41);
	OK(nvmlDeviceGetHandleByUUIDV, &id, &same);
	EXPECT(FGV_NVML_NOT_FOUND, nvmlDeviceGetHandleByUUID,
	       "GPU-00000000-0000-0000-0000-000000000000", &same);
	OK(nvmlDeviceGetPciInfo_v3, device, &pci);
	OK(nvmlDeviceGetHandleByPciBusId_v2, pci.bus_id, &same);
	OK(nvmlDeviceGetHandleByPciBusId_v2, pci.bus_id_short, &same);
	EQUAL(same, device);
	EXPECT(FGV_NVML_NOT_FOUND, nvmlDeviceGetHandleByPciBusId_v2, "ffff:ff:1f.0", &same);
	EXPECT(FGV_NVML_INVALID_ARGUMENT, nvmlDeviceGetHandleByPciBusId_v2, "here", &same);
	OK(nvmlDeviceGetPciInfo, device, &old);
	EQUAL(strcmp(old.bus_id, pci.bus_id_short), 0);
	OK(nvmlDeviceGetPciInfoExt, device, &ext);
	EQUAL(strcmp(ext.bus_id, pci.bus_id), 0);
	printf("pci=%s\n", pci.bus_id_short);
	return device;
}

static void check_device(void *device)
{
	char text[96];
	int major = 0, minor = 0, version = 0;
	unsigned value = 7, other = 7;
	unsigned long long types = 7;

	EXPECT(FGV_NVML_INSUFFICIENT_SIZE, nvmlDeviceGetName, device, text, 3);
	OK(nvmlDeviceGetName, device, text, 96);
	printf("name=%s\n", text);
	OK(nvmlSystemGetDriverVersion, text, 80);
	printf("driver=%s\n", text);
	OK(nvmlSystemGetNVMLVersion, text, 80);
	OK(nvmlSystemGetCudaDriverVersion_v2, &version);
	OK(nvmlDeviceGetCudaComputeCapability, device, &major, &minor);
	printf("cuda=%d\ncapability=%d.%d\n", version, major, minor);
	OK(nvmlDeviceGetMigMode, device, &value, &other);
	EQUAL(value + other, 0);
	OK(nvmlDeviceGetComputeMode, device, &value);
	OK(nvmlDeviceGetVirtualizationMode, device, &value);
	OK(nvmlDeviceGetP2PStatus, device, device, 0, &value);
	EQUAL(value, 5);
	OK(nvmlDeviceGetSupportedEventTypes, device, &types);
	EQUAL(types, 0);
}

static void check_versions(void *device)
{
	struct fgv_nvml_memory_v2 memory = {.version = 0x01000028};
	struct fgv_nvml_fabric_v3 fabric = {.version = FGV_NVML_VERSION(fabric, 3), .health = 5};
	struct fgv_nvml_confidential_v1 settings = {.version = FGV_NVML_VERSION(settings, 1)};

	EXPECT(FGV_NVML_ARGUMENT_VERSION, nvmlDeviceGetMemoryInfo_v2, device, &memory);
	OK(nvmlDeviceGetGpuFabricInfoV, device, &fabric);
	EQUAL(fabric.health, 0);
	fabric.version = 0;
	EXPECT(FGV_NVML_ARGUMENT_VERSION, nvmlDeviceGetGpuFabricInfoV, device, &fabric);
	OK(nvmlSystemGetConfComputeSettings, &settings);
}

static void check_events(void *device)
{
	struct fgv_nvml_field fields[2] = {{.id = 186}, {.id = 91}};
	char event[32];
	const void *const *table = NULL;
	void *set = NULL;

	OK(nvmlEventSetCreate, &set);
	EXPECT(FGV_NVML_NOT_SUPPORTED, nvmlDeviceRegisterEvents, device, 8ull, set);
	EXPECT(FGV_NVML_TIMEOUT, nvmlEventSetWait_v2, set, event, 1);
	OK(nvmlEventSetFree, set);
	OK(nvmlDeviceGetFieldValues, device, 2, fields);
	EQUAL(fields[1].status, FGV_NVML_NOT_SUPPORTED);
	OK(nvmlInternalGetExportTable, &table, "0123456789abcdef");
	for (int i = 0; i < 512; i++)
		EQUAL(table[i], NULL);
}

static void show_memory(void *device)
{
	struct fgv_nvml_memory plain;
	struct fgv_nvml_memory_v2 memory = {.version = FGV_NVML_VERSION(memory, 2)};

	OK(nvmlDeviceGetMemoryInfo, device, &plain);
	EQUAL(plain.free + plain.used, plain.total);
	OK(nvmlDeviceGetMemoryInfo_v2, device, &memory);
	EQUAL(memory.total, plain.total);
	EQUAL(memory.free + memory.used, memory.total);
	printf("total=%llu\nused=%llu\n", (unsigned long long)memory.total,
	       (unsigned long long)memory.used);
}

/* Processes come and go between two calls. */
static void show_processes(void *device)
{
	struct fgv_nvml_process processes[PROCESSES];
	struct fgv_nvml_sample samples[PROCESSES];
	struct fgv_nvml_utilization utilization;
	unsigned count = 0;
	char name[64];
	int ret = CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL);

	EQUAL(ret, count ? FGV_NVML_INSUFFICIENT_SIZE : FGV_NVML_SUCCESS);
	count = PROCESSES;
	OK(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, processes);
	for (unsigned i = 0; i < count; i++) {
		ret = CALL(nvmlSystemGetProcessName, processes[i].pid, name, sizeof(name));
		if (ret == FGV_NVML_NOT_FOUND)
			continue; /* it has ended by now */
		EQUAL(ret, FGV_NVML_SUCCESS);
		printf("process=%u %llu %s\n", processes[i].pid,
		       (unsigned long long)processes[i].memory_bytes, name);
	}
	count = PROCESSES;
	ret = CALL(nvmlDeviceGetProcessUtilization, device, samples, &count, 0ull);
	EQUAL(ret, count ? FGV_NVML_SUCCESS : FGV_NVML_NOT_FOUND);
	for (unsigned i = 0; i < count; i++)
		printf("sample=%u %u\n", samples[i].pid, samples[i].sm);
	OK(nvmlDeviceGetUtilizationRates, device, &utilization);
	printf("busy=%u\n", utilization.gpu);
	count = PROCESSES;
	OK(nvmlDeviceGetGraphicsRunningProcesses_v3, device, &count, processes);
	EQUAL(count, 0);
}

#define CUDA(function, ...)                                                                        \
	check(__LINE__, #function, ((__typeof__(&function))dlsym(cudart, #function))(__VA_ARGS__), \
	      cudaSuccess)

/* What CUDA says of the device is what NVML has said. */
static void compare(unsigned number, void *device, const char *uuid)
{
	void *cudart = dlopen("libcudart.so.13", RTLD_NOW);
	struct fgv_nvml_memory memory;
	struct cudaDeviceProp prop;
	char name[96], hex[41] = "";
	size_t free_bytes, total_bytes;
	void *pointer;
	int version;

	if (!cudart) {
		fprintf(stderr, "describe: %s\n", dlerror());
		exit(1);
	}
	CUDA(cudaSetDevice, (int)number);
	CUDA(cudaGetDeviceProperties, &prop, (int)number);
	OK(nvmlDeviceGetName, device, name, sizeof(name));
	EQUAL(strcmp(prop.name, name), 0);
	for (int i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", (unsigned char)prop.uuid.bytes[i]);
	for (const char *at = uuid + 4, *digit = hex; *at; at++) {
		if (*at != '-')
			EQUAL(*at, *digit++);
	}
	CUDA(cudaMemGetInfo, &free_bytes, &total_bytes);
	OK(nvmlDeviceGetMemoryInfo, device, &memory);
	EQUAL(memory.total, total_bytes);
	EQUAL(memory.total, prop.totalGlobalMem);
	CUDA(cudaMalloc, &pointer, 1 << 20);
	OK(nvmlDeviceGetMemoryInfo, device, &memory);
	EQUAL(memory.used >= 1 << 20, 1);
	CUDA(cudaDriverGetVersion, &version);
	OK(nvmlSystemGetCudaDriverVersion_v2, &version);
}

static void compare_in_child(unsigned number, void *device, const char *uuid)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		compare(number, device, uuid);
		exit(0);
	}
	EQUAL(waitpid(pid, &status, 0), pid);
	EQUAL(status, 0);
}

/* The GPUs whose memory this one reads and writes. */
static void show_peers(void *device, unsigned count)
{
	unsigned reads, writes, by_link;
	void *other;

	printf("peers=");
	for (unsigned i = 0; i < count; i++) {
		OK(nvmlDeviceGetHandleByIndex_v2, i, &other);
		OK(nvmlDeviceGetP2PStatus, device, other, 0, &reads);
		OK(nvmlDeviceGetP2PStatus, device, other, 1, &writes);
		OK(nvmlDeviceGetP2PStatus, device, other, 2, &by_link);
		EQUAL(reads, writes);
		EQUAL(by_link == 5 || by_link == reads, 1);
		if (!reads)
			printf("%u", i);
	}
	printf("\n");
}

static void describe(unsigned number, unsigned count, bool compares)
{
	char uuid[96];
	void *device;

	if (count > 1)
		printf("device=%u\n", number);
	device = check_handles(number, count, uuid);
	printf("uuid=%s\n", uuid);
	check_device(device);
	show_peers(device, count);
	check_versions(device);
	check_events(device);
	if (compares)
		compare_in_child(number, device, uuid);
	show_memory(device);
	show_processes(device);
}

int main(int argc, char **argv)
{
	unsigned count;

	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "describe: %s\n", dlerror());
		return 1;
	}
	check_nothing_else();
	count = check_counting();
	for (unsigned i = 0; i < count; i++)
		describe(i, count, argc > 1 && !strcmp(argv[1], "--cuda"));
	OK(nvmlShutdown);
	EXPECT(FGV_NVML_UNINITIALIZED, nvmlShutdown);
	return 0;
}
