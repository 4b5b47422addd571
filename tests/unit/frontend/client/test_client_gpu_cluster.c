/* The handlers of the tests' host for clusters: a device that has room for 16 blocks in them. */
#include <string.h>

#include "tests/unit/frontend/client/test_client_host.h"

#define UNUSED (void)session, (void)request

#define ROOM	 16
#define PORTABLE 8

static CUresult status_of(const struct fgv_request *request)
{
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_launch_clusters(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_launch_clusters_in *in)
{
	UNUSED;
	memcpy(host.cluster, in->cluster, sizeof(host.cluster));
	host.cluster_cooperative = in->cooperative;
	host.cluster_any_size = in->any_size;
	host.cluster_policy = in->policy;
	__atomic_fetch_add(&host.launch_count, 1, __ATOMIC_RELEASE);
	return status_of(request);
}

CUresult fgv_do_clusters_active(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_clusters_active_in *in,
				struct fgv_clusters_active_out *out)
{
	uint32_t blocks = in->cluster[0] * in->cluster[1] * in->cluster[2];

	UNUSED;
	if (!blocks || (blocks > PORTABLE && !in->any_size))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	out->count = (int32_t)(ROOM / blocks);
	return status_of(request);
}

CUresult fgv_do_clusters_largest(struct fgv_session *session, struct fgv_request *request,
				 const struct fgv_clusters_largest_in *in,
				 struct fgv_clusters_largest_out *out)
{
	UNUSED;
	out->size = in->any_size ? ROOM : PORTABLE;
	return status_of(request);
}
