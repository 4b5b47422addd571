/*
 * Attributes of streams. A created stream has its
 * attributes with it; the legacy one's are the process's, a thread's own stream's the thread's.
 *
 * Lock: the mutex guards all attributes of streams.
 */
#include <pthread.h>
#include <stdlib.h>

#include "frontend/cuda/context/object.h"
#include "frontend/cuda/stream/attributes.h"
#include "frontend/cuda/stream/stream.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fgv_attributes legacy = FGV_ATTRIBUTES_DEFAULT;
static __thread struct fgv_attributes own = FGV_ATTRIBUTES_DEFAULT;

static CUresult find(CUstream stream, struct fgv_attributes **attributes)
{
	struct fgv_object_info info;

	if (fgv_stream_is_legacy(stream))
		*attributes = &legacy;
	else if (stream == CU_STREAM_PER_THREAD)
		*attributes = &own;
	else if (fgv_object_find(FGV_OBJECT_STREAM, stream, &info))
		*attributes = info.data;
	else
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

CUresult fgv_stream_get_attribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value)
{
	struct fgv_attributes *attributes;
	CUresult res = find(stream, &attributes);

	if (res)
		return res;
	pthread_mutex_lock(&mutex);
	res = fgv_attribute_get(attributes, FGV_ATTRIBUTE_STREAM, id, value);
	pthread_mutex_unlock(&mutex);
	return res;
}

CUresult fgv_stream_set_attribute(CUstream stream, CUstreamAttrID id,
				  const CUstreamAttrValue *value)
{
	struct fgv_attributes *attributes;
	CUresult res = find(stream, &attributes);

	if (res)
		return res;
	pthread_mutex_lock(&mutex);
	res = fgv_attribute_set(attributes, FGV_ATTRIBUTE_STREAM, id, value);
	pthread_mutex_unlock(&mutex);
	return res;
}

CUresult fgv_stream_copy_attributes(CUstream to_stream, CUstream from_stream)
{
	struct fgv_attributes *to, *from;
	CUresult res = find(to_stream, &to);

	if (!res)
		res = find(from_stream, &from);
	if (res)
		return res;
	pthread_mutex_lock(&mutex);
	*to = *from;
	pthread_mutex_unlock(&mutex);
	return CUDA_SUCCESS;
}
