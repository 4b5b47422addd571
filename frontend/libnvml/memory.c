/*
 * Memory, processes and use of the GPU: all of them the VM's own.
 */
#include "frontend/libnvml/nvml.h"

#include "common/util.h"

/* --- Memory ------------------------------------------------------------------ */

static uint64_t used(const struct fgv_msg_view *view)
{
	return fgv_min_u64(view->used_bytes, view->memory_bytes);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMemoryInfo(const struct fgv_nvml_device *device,
						 struct fgv_nvml_memory *memory)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (ret)
		return ret;
	if (!memory)
		return FGV_NVML_INVALID_ARGUMENT;
	*memory = (struct fgv_nvml_memory){
		.total = view.memory_bytes,
		.free = view.memory_bytes - used(&view),
		.used = used(&view),
	};
	return FGV_NVML_SUCCESS;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMemoryInfo_v2(const struct fgv_nvml_device *device,
						    struct fgv_nvml_memory_v2 *memory)
{
	struct fgv_nvml_memory plain;
	enum fgv_nvml ret;

	if (!memory)
		return FGV_NVML_INVALID_ARGUMENT;
	if (memory->version != FGV_NVML_VERSION(*memory, 2))
		return FGV_NVML_ARGUMENT_VERSION;
	ret = nvmlDeviceGetMemoryInfo(device, &plain);
	if (ret)
		return ret;
	*memory = (struct fgv_nvml_memory_v2){
		.version = memory->version,
		.total = plain.total,
		.free = plain.free,
		.used = plain.used,
	};
	return FGV_NVML_SUCCESS;
}

/* --- Processes --------------------------------------------------------------- */

/* A look, and whether the caller has room for all processes; *count is how many there are. */
static enum fgv_nvml look_at_processes(const struct fgv_nvml_device *device,
				       struct fgv_msg_view *view, unsigned *count, const void *room)
{
	enum fgv_nvml ret = fgv_nvml_look_at(device, view);
	unsigned fit;

	if (ret)
		return ret;
	if (!count || (*count && !room))
		return FGV_NVML_INVALID_ARGUMENT;
	fit = *count;
	*count = view->processes;
	return fit < view->processes ? FGV_NVML_INSUFFICIENT_SIZE : FGV_NVML_SUCCESS;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetComputeRunningProcesses(const struct fgv_nvml_device *device,
							      unsigned *count,
							      struct fgv_nvml_process_v1 *processes)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = look_at_processes(device, &view, count, processes);

	for (uint32_t i = 0; !ret && i < view.processes; i++)
		processes[i] = (struct fgv_nvml_process_v1){
			.pid = view.process[i].pid,
			.memory_bytes = view.process[i].memory_bytes,
		};
	return ret;
}

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetComputeRunningProcesses_v3(const struct fgv_nvml_device *device, unsigned *count,
					struct fgv_nvml_process *processes)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = look_at_processes(device, &view, count, processes);

	for (uint32_t i = 0; !ret && i < view.processes; i++)
		processes[i] = (struct fgv_nvml_process){
			.pid = view.process[i].pid,
			.memory_bytes = view.process[i].memory_bytes,
			.gpu_instance = FGV_NVML_NO_INSTANCE,
			.compute_instance = FGV_NVML_NO_INSTANCE,
		};
	return ret;
}

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetComputeRunningProcesses_v2(const struct fgv_nvml_device *device, unsigned *count,
					struct fgv_nvml_process *processes)
	FGV_ALIAS(nvmlDeviceGetComputeRunningProcesses_v3);

/* A vGPU has no screens, and what the host's MPS server serves are compute processes here. */
static enum fgv_nvml no_processes(const struct fgv_nvml_device *device, unsigned *count)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (!ret && !count)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*count = 0;
	return ret;
}

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetGraphicsRunningProcesses_v3(const struct fgv_nvml_device *device, unsigned *count,
					 void *processes)
{
	(void)processes;
	return no_processes(device, count);
}

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetGraphicsRunningProcesses_v2(const struct fgv_nvml_device *device, unsigned *count,
					 void *processes)
	FGV_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v3);

FGV_EXPORT enum fgv_nvml nvmlDeviceGetGraphicsRunningProcesses(const struct fgv_nvml_device *device,
							       unsigned *count, void *processes)
	FGV_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v3);

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetMPSComputeRunningProcesses_v3(const struct fgv_nvml_device *device, unsigned *count,
					   void *processes)
	FGV_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v3);

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetMPSComputeRunningProcesses_v2(const struct fgv_nvml_device *device, unsigned *count,
					   void *processes)
	FGV_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v3);

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetMPSComputeRunningProcesses(const struct fgv_nvml_device *device, unsigned *count,
					void *processes)
	FGV_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v3);

FGV_EXPORT enum fgv_nvml nvmlDeviceGetRunningProcessDetailList(const struct fgv_nvml_device *device,
							       struct fgv_nvml_process_list *list)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret;

	if (!list)
		return FGV_NVML_INVALID_ARGUMENT;
	if (list->version != FGV_NVML_VERSION(*list, 1))
		return FGV_NVML_ARGUMENT_VERSION;
	if (list->mode != FGV_NVML_MODE_COMPUTE)
		return no_processes(device, &list->count);
	ret = look_at_processes(device, &view, &list->count, list->processes);
	for (uint32_t i = 0; !ret && i < view.processes; i++)
		list->processes[i] = (struct fgv_nvml_process_detail){
			.pid = view.process[i].pid,
			.memory_bytes = view.process[i].memory_bytes,
			.gpu_instance = FGV_NVML_NO_INSTANCE,
			.compute_instance = FGV_NVML_NO_INSTANCE,
		};
	return ret;
}

/* --- Use --------------------------------------------------------------------- */

/* How much of the time memory was at work is not measured. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetUtilizationRates(const struct fgv_nvml_device *device,
						       struct fgv_nvml_utilization *utilization)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (!ret && !utilization)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		*utilization = (struct fgv_nvml_utilization){.gpu = fgv_nvml_percent(view.busy_ns)};
	return ret;
}

/* One sample for each process, of the last second: none where the caller has seen a later one. */
static enum fgv_nvml look_at_samples(const struct fgv_nvml_device *device,
				     struct fgv_msg_view *view, unsigned *count, const void *room,
				     uint64_t since_us)
{
	enum fgv_nvml ret = look_at_processes(device, view, count, room);

	if (!ret && (!view->processes || since_us >= view->time_us)) {
		*count = 0;
		ret = FGV_NVML_NOT_FOUND;
	}
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetProcessUtilization(const struct fgv_nvml_device *device,
							 struct fgv_nvml_sample *samples,
							 unsigned *count,
							 unsigned long long since_us)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = look_at_samples(device, &view, count, samples, since_us);

	for (uint32_t i = 0; !ret && i < view.processes; i++)
		samples[i] = (struct fgv_nvml_sample){
			.pid = view.process[i].pid,
			.time_us = view.time_us,
			.sm = fgv_nvml_percent(view.process[i].busy_ns),
		};
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetProcessesUtilizationInfo(const struct fgv_nvml_device *device,
							       struct fgv_nvml_samples *info)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret;

	if (!info)
		return FGV_NVML_INVALID_ARGUMENT;
	if (info->version != FGV_NVML_VERSION(*info, 1))
		return FGV_NVML_ARGUMENT_VERSION;
	ret = look_at_samples(device, &view, &info->count, info->samples, info->since_us);
	for (uint32_t i = 0; !ret && i < view.processes; i++)
		info->samples[i] = (struct fgv_nvml_sample_v1){
			.pid = view.process[i].pid,
			.time_us = view.time_us,
			.sm = fgv_nvml_percent(view.process[i].busy_ns),
		};
	return ret;
}
