/*
 * Attributes of streams, and what else a stream says of itself. A created stream has its
 * attributes with it; the legacy one's are the process's, a thread's own stream's the thread's.
 *
 * Lock: the mutex guards all attributes of streams.
 */
#include <pthread.h>
#include <stdlib.h>

#include "frontend/cuda/context/object.h"
#include "frontend/libcudart/attribute.h"
#include "frontend/libcudart/cudart.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fgv_attributes legacy = FGV_ATTRIBUTES_DEFAULT;
static __thread struct fgv_attributes own = FGV_ATTRIBUTES_DEFAULT;

static cudaError_t find(cudaStream_t stream, struct fgv_attributes **attributes)
{
	struct fgv_object_info info;

	if (!stream || stream == cudaStreamLegacy)
		*attributes = &legacy;
	else if (stream == cudaStreamPerThread)
		*attributes = &own;
	else if (fgv_object_find(FGV_OBJECT_STREAM, stream, &info))
		*attributes = info.data;
	else
		return cudaErrorInvalidResourceHandle;
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaStreamAttrID attr,
					      cudaStreamAttrValue *value_out)
{
	struct fgv_attributes *attributes;
	cudaError_t error = find(hStream, &attributes);

	if (error)
		return fgv_error_set(error);
	pthread_mutex_lock(&mutex);
	error = fgv_attribute_get(attributes, FGV_ATTRIBUTE_STREAM, attr, value_out);
	pthread_mutex_unlock(&mutex);
	return fgv_error_set(error);
}

FGV_EXPORT cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaStreamAttrID attr,
					      const cudaStreamAttrValue *value)
{
	struct fgv_attributes *attributes;
	cudaError_t error = find(hStream, &attributes);

	if (error)
		return fgv_error_set(error);
	pthread_mutex_lock(&mutex);
	error = fgv_attribute_set(attributes, FGV_ATTRIBUTE_STREAM, attr, value);
	pthread_mutex_unlock(&mutex);
	return fgv_error_set(error);
}

static cudaError_t copy(cudaStream_t dst, cudaStream_t src)
{
	struct fgv_attributes *to, *from;
	cudaError_t error = find(dst, &to);

	if (!error)
		error = find(src, &from);
	if (error)
		return error;
	pthread_mutex_lock(&mutex);
	*to = *from;
	pthread_mutex_unlock(&mutex);
	return cudaSuccess;
}

FGV_EXPORT cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
	return fgv_error_set(copy(dst, src));
}

/* The host's handle, which no other stream of the session has. */
static cudaError_t get_id(cudaStream_t stream, unsigned long long *id)
{
	struct fgv_lane *lane;
	uint32_t handle;
	bool blocking;
	cudaError_t error;

	if (!id)
		return cudaErrorInvalidValue;
	error = fgv_enter(&lane);
	if (error)
		return error;
	error = fgv_stream_find(lane, stream, &handle, &blocking);
	fgv_lane_leave(lane);
	if (!error)
		*id = handle;
	return error;
}

FGV_EXPORT cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId)
{
	return fgv_error_set(get_id(hStream, streamId));
}

FGV_EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
	struct fgv_attributes *attributes;
	cudaError_t error = device ? find(hStream, &attributes) : cudaErrorInvalidValue;

	if (!error)
		*device = fgv_context_get_device();
	return fgv_error_set(error);
}
