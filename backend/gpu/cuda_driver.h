/*
 * NVIDIA's driver library, opened when it is needed, so that one binary starts on
 * machines with and without it. Types come from the toolkit's header; the symbols
 * are those that the header names, with their version suffixes.
 *
 * Threads: loaded by one thread; the table is read-only after that.
 */
#ifndef FGV_BACKEND_GPU_CUDA_DRIVER_H
#define FGV_BACKEND_GPU_CUDA_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#define FGV_CUDA_SYMBOLS(X)                                                                        \
	X(init, cuInit)                                                                            \
	X(error_name, cuGetErrorName)                                                              \
	X(driver_version, cuDriverGetVersion)                                                      \
	X(device_count, cuDeviceGetCount)                                                          \
	X(device_get, cuDeviceGet)                                                                 \
	X(device_name, cuDeviceGetName)                                                            \
	X(device_uuid, cuDeviceGetUuid)                                                            \
	X(device_memory, cuDeviceTotalMem)                                                         \
	X(device_attribute, cuDeviceGetAttribute)                                                  \
	X(device_pci_bus_id, cuDeviceGetPCIBusId)                                                  \
	X(context_flags, cuDevicePrimaryCtxSetFlags)                                               \
	X(context_retain, cuDevicePrimaryCtxRetain)                                                \
	X(context_release, cuDevicePrimaryCtxRelease)                                              \
	X(context_set, cuCtxSetCurrent)                                                            \
	X(peer_attribute, cuDeviceGetP2PAttribute)                                                 \
	X(peer_enable, cuCtxEnablePeerAccess)                                                      \
	X(peer_disable, cuCtxDisablePeerAccess)                                                    \
	X(mem_alloc, cuMemAlloc)                                                                   \
	X(mem_free, cuMemFree)                                                                     \
	X(mem_info, cuMemGetInfo)                                                                  \
	X(memory_granularity, cuMemGetAllocationGranularity)                                       \
	X(address_reserve, cuMemAddressReserve)                                                    \
	X(address_free, cuMemAddressFree)                                                          \
	X(memory_create, cuMemCreate)                                                              \
	X(memory_release, cuMemRelease)                                                            \
	X(memory_export, cuMemExportToShareableHandle)                                             \
	X(memory_import, cuMemImportFromShareableHandle)                                           \
	X(memory_map, cuMemMap)                                                                    \
	X(memory_unmap, cuMemUnmap)                                                                \
	X(memory_access, cuMemSetAccess)                                                           \
	X(host_register, cuMemHostRegister)                                                        \
	X(host_unregister, cuMemHostUnregister)                                                    \
	X(copy_in, cuMemcpyHtoDAsync)                                                              \
	X(copy_out, cuMemcpyDtoHAsync)                                                             \
	X(copy_device, cuMemcpyDtoDAsync)                                                          \
	X(fill_8, cuMemsetD8Async)                                                                 \
	X(fill_16, cuMemsetD16Async)                                                               \
	X(fill_32, cuMemsetD32Async)                                                               \
	X(fill_rows, cuMemsetD2D8Async)                                                            \
	X(value_write_32, cuStreamWriteValue32)                                                    \
	X(value_write_64, cuStreamWriteValue64)                                                    \
	X(copy_box, cuMemcpy3DAsync)                                                               \
	X(array_create, cuArray3DCreate)                                                           \
	X(array_destroy, cuArrayDestroy)                                                           \
	X(array_requirements, cuArrayGetMemoryRequirements)                                        \
	X(mipmapped_create, cuMipmappedArrayCreate)                                                \
	X(mipmapped_destroy, cuMipmappedArrayDestroy)                                              \
	X(mipmapped_requirements, cuMipmappedArrayGetMemoryRequirements)                           \
	X(mipmapped_level, cuMipmappedArrayGetLevel)                                               \
	X(texture_create, cuTexObjectCreate)                                                       \
	X(texture_destroy, cuTexObjectDestroy)                                                     \
	X(texture_linear_width, cuDeviceGetTexture1DLinearMaxWidth)                                \
	X(surface_create, cuSurfObjectCreate)                                                      \
	X(surface_destroy, cuSurfObjectDestroy)                                                    \
	X(tensor_tiled, cuTensorMapEncodeTiled)                                                    \
	X(tensor_im2col, cuTensorMapEncodeIm2col)                                                  \
	X(tensor_replace, cuTensorMapReplaceAddress)                                               \
	X(module_load, cuModuleLoadDataEx)                                                         \
	X(module_unload, cuModuleUnload)                                                           \
	X(module_global, cuModuleGetGlobal)                                                        \
	X(module_function, cuModuleGetFunction)                                                    \
	X(module_function_count, cuModuleGetFunctionCount)                                         \
	X(module_functions, cuModuleEnumerateFunctions)                                            \
	X(link_create, cuLinkCreate)                                                               \
	X(link_add, cuLinkAddData)                                                                 \
	X(link_complete, cuLinkComplete)                                                           \
	X(link_destroy, cuLinkDestroy)                                                             \
	X(function_name, cuFuncGetName)                                                            \
	X(function_param, cuFuncGetParamInfo)                                                      \
	X(function_attribute, cuFuncGetAttribute)                                                  \
	X(function_set_attribute, cuFuncSetAttribute)                                              \
	X(launch, cuLaunchKernel)                                                                  \
	X(launch_cooperative, cuLaunchCooperativeKernel)                                           \
	X(launch_extended, cuLaunchKernelEx)                                                       \
	X(clusters_active, cuOccupancyMaxActiveClusters)                                           \
	X(clusters_largest, cuOccupancyMaxPotentialClusterSize)                                    \
	X(stream_create, cuStreamCreateWithPriority)                                               \
	X(stream_destroy, cuStreamDestroy)                                                         \
	X(stream_query, cuStreamQuery)                                                             \
	X(stream_wait_event, cuStreamWaitEvent)                                                    \
	X(event_create, cuEventCreate)                                                             \
	X(event_destroy, cuEventDestroy)                                                           \
	X(event_record, cuEventRecord)                                                             \
	X(event_query, cuEventQuery)                                                               \
	X(event_sync, cuEventSynchronize)                                                          \
	X(stream_sync, cuStreamSynchronize)                                                        \
	X(graph_create, cuGraphCreate)                                                             \
	X(graph_add_node, cuGraphAddNode)                                                          \
	X(graph_destroy_node, cuGraphDestroyNode)                                                  \
	X(graph_condition, cuGraphConditionalHandleCreate)                                         \
	X(graph_set_attribute, cuGraphKernelNodeSetAttribute)                                      \
	X(graph_instantiate, cuGraphInstantiateWithFlags)                                          \
	X(graph_set_node, cuGraphExecNodeSetParams)                                                \
	X(graph_set_enabled, cuGraphNodeSetEnabled)                                                \
	X(graph_launch, cuGraphLaunch)                                                             \
	X(graph_exec_destroy, cuGraphExecDestroy)                                                  \
	X(graph_destroy, cuGraphDestroy)                                                           \
	X(context_sync, cuCtxSynchronize)                                                          \
	X(limit_get, cuCtxGetLimit)                                                                \
	X(limit_set, cuCtxSetLimit)

struct fgv_cuda_driver {
#define FGV_CUDA_FIELD(field, symbol) __typeof__(symbol) *field;
	FGV_CUDA_SYMBOLS(FGV_CUDA_FIELD)
#undef FGV_CUDA_FIELD
	/* By its first version, which the header hides and drivers before 12.8 have alone. */
	CUresult (*event_elapsed)(float *ms, CUevent start, CUevent end);
	/* NULL with drivers before 13.0. */
	__typeof__(cuDeviceGetHostAtomicCapabilities) *host_atomics;
	/* NULL with drivers before 12.4, all of them. */
	__typeof__(cuDeviceGetDevResource) *device_resource;
	__typeof__(cuDevSmResourceSplitByCount) *split_sms;
	__typeof__(cuDevResourceGenerateDesc) *describe_resource;
	__typeof__(cuGreenCtxCreate) *green_create;
	__typeof__(cuGreenCtxDestroy) *green_destroy;
	__typeof__(cuCtxFromGreenCtx) *green_context;
	/* NULL with drivers before 12.8. */
	__typeof__(cuTensorMapEncodeIm2colWide) *tensor_im2col_wide;
};

/*
 * Opens libcuda.so.1, once for the process, and starts it. NULL, and the reason in
 * @why, where there is none or it finds no device.
 */
const struct fgv_cuda_driver *fgv_cuda_driver_get(char *why, size_t why_len);

/*
 * cuInit(). Waits, for ten seconds at most, for an MPS server that recovers from a client's fault.
 * False, and the reason in @why, where the driver does not start.
 */
bool fgv_cuda_driver_start(const struct fgv_cuda_driver *driver, char *why, size_t why_len);

#endif
