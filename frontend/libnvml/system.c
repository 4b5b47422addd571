/*
 * What is asked of no device: versions, names of codes and processes, and what a machine may
 * have beside GPUs.
 */
#include "frontend/libnvml/nvml.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

FGV_EXPORT const char *nvmlErrorString(enum fgv_nvml code)
{
	static const struct {
		enum fgv_nvml code;
		const char *text;
	} texts[] = {
		{FGV_NVML_SUCCESS, "Success"},
		{FGV_NVML_UNINITIALIZED, "Uninitialized"},
		{FGV_NVML_INVALID_ARGUMENT, "Invalid Argument"},
		{FGV_NVML_NOT_SUPPORTED, "Not Supported"},
		{FGV_NVML_NO_PERMISSION, "Insufficient Permissions"},
		{FGV_NVML_NOT_FOUND, "Not Found"},
		{FGV_NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
		{FGV_NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
		{FGV_NVML_TIMEOUT, "Timeout"},
		{FGV_NVML_GPU_IS_LOST, "GPU is lost"},
		{FGV_NVML_OPERATING_SYSTEM, "Operating system call failed"},
		{FGV_NVML_VERSION_MISMATCH, "Driver/library version mismatch"},
		{FGV_NVML_IN_USE, "In use by another client"},
		{FGV_NVML_MEMORY, "Insufficient memory"},
		{FGV_NVML_NO_DATA, "No data"},
		{FGV_NVML_ARGUMENT_VERSION, "Argument version mismatch"},
	};

	for (size_t i = 0; i < FGV_ARRAY_LEN(texts); i++) {
		if (texts[i].code == code)
			return texts[i].text;
	}
	return "Unknown Error";
}

FGV_EXPORT enum fgv_nvml nvmlSystemGetDriverVersion(char *version, unsigned len)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look(&view);

	if (ret)
		return ret;
	return *view.driver ? fgv_nvml_write(version, len, view.driver) : FGV_NVML_NOT_SUPPORTED;
}

/* As NVIDIA's: CUDA's major version, and the driver's. */
FGV_EXPORT enum fgv_nvml nvmlSystemGetNVMLVersion(char *version, unsigned len)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look(&view);
	char text[sizeof(view.driver) + 16];

	if (ret)
		return ret;
	snprintf(text, sizeof(text), "%u.%s", view.device.driver_version / 1000, view.driver);
	return fgv_nvml_write(version, len, text);
}

FGV_EXPORT enum fgv_nvml nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = version ? fgv_nvml_look(&view) : FGV_NVML_INVALID_ARGUMENT;

	if (!ret)
		*version = (int)view.device.driver_version;
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlSystemGetCudaDriverVersion(int *version)
	FGV_ALIAS(nvmlSystemGetCudaDriverVersion_v2);

/* Processes are this machine's; one whose files can't be read is known by its session's name. */
static bool read_process_name(unsigned pid, char *name, size_t len)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, name, len - 1);
	close(fd);
	if (got <= 0)
		return false;
	name[got] = '\0'; /* the first word ends earlier */
	return true;
}

static enum fgv_nvml find_process_name(unsigned pid, char *name, size_t len)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look(&view);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < view.processes; i++) {
		if (view.process[i].pid == pid) {
			snprintf(name, len, "%s", view.process[i].program);
			return FGV_NVML_SUCCESS;
		}
	}
	return FGV_NVML_NOT_FOUND;
}

/* Cut where there is no room for all of it, as NVIDIA's is. */
FGV_EXPORT enum fgv_nvml nvmlSystemGetProcessName(unsigned pid, char *name, unsigned len)
{
	char found[4096];
	enum fgv_nvml ret = fgv_nvml_ready();

	if (!ret && (!name || !len))
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret && !read_process_name(pid, found, sizeof(found)))
		ret = find_process_name(pid, found, sizeof(found));
	if (!ret)
		snprintf(name, len, "%s", found);
	return ret;
}

/* A vGPU is not confidential. */
FGV_EXPORT enum fgv_nvml nvmlSystemGetConfComputeState(struct fgv_nvml_confidential *confidential)
{
	enum fgv_nvml ret = fgv_nvml_ready();

	if (!ret && !confidential)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*confidential = (struct fgv_nvml_confidential){0};
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlSystemGetConfComputeSettings(struct fgv_nvml_confidential_v1 *settings)
{
	enum fgv_nvml ret = fgv_nvml_ready();

	if (ret)
		return ret;
	if (!settings)
		return FGV_NVML_INVALID_ARGUMENT;
	if (settings->version != FGV_NVML_VERSION(*settings, 1))
		return FGV_NVML_ARGUMENT_VERSION;
	settings->state = (struct fgv_nvml_confidential){0};
	settings->several_gpus = 0;
	return FGV_NVML_SUCCESS;
}

/* S-class chassis. */
FGV_EXPORT enum fgv_nvml nvmlUnitGetCount(unsigned *count)
{
	enum fgv_nvml ret = fgv_nvml_ready();

	if (!ret && !count)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*count = 0;
	return ret;
}

/*
 * nvidia-smi asks for tables of functions that are described nowhere, and does without those that
 * are null: whatever the table, it is empty.
 */
FGV_EXPORT enum fgv_nvml nvmlInternalGetExportTable(const void **table, const void *name)
{
	static const void *const empty[512];

	if (!table || !name)
		return FGV_NVML_INVALID_ARGUMENT;
	*table = (const void *)empty;
	return FGV_NVML_SUCCESS;
}
