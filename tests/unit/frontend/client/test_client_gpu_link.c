/* The handlers of the tests' host for linking, where what comes out is what went in, and values. */
#include <string.h>

#include "tests/unit/frontend/client/test_client_host.h"

CUresult fgv_do_link(struct fgv_session *session, struct fgv_request *request,
		     const struct fgv_link_in *in, struct fgv_link_out *out)
{
	(void)session;
	out->len = in->inputs_len;
	if (in->inputs_len <= in->linked_len)
		memcpy(in->linked, in->inputs, in->inputs_len);
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_value_write(struct fgv_session *session, struct fgv_request *request,
			    const struct fgv_value_write_in *in)
{
	(void)session, (void)in;
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_value_wait(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_value_wait_in *in)
{
	(void)session, (void)in;
	return (CUresult)HOST_GET(status[request->op]);
}
