/* The handlers of the tests' host for virtual memory: it takes note, and does what is asked of it.
 */
#include "tests/unit/frontend/client/test_client_host.h"

#define UNUSED (void)session, (void)in

static CUresult status_of(const struct fgv_request *request)
{
	return (CUresult)HOST_GET(status[request->op]);
}

CUresult fgv_do_memory_granularity(struct fgv_session *session, struct fgv_request *request,
				   const struct fgv_memory_granularity_in *in,
				   struct fgv_memory_granularity_out *out)
{
	UNUSED;
	out->bytes = host.granule;
	return status_of(request);
}

CUresult fgv_do_address_reserve(struct fgv_session *session, struct fgv_request *request,
				const struct fgv_address_reserve_in *in,
				struct fgv_address_reserve_out *out)
{
	(void)session;
	out->address = HOST_VMEM_BASE + host.vmem_reserved;
	host.vmem_reserved += in->size;
	return status_of(request);
}

CUresult fgv_do_address_free(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_address_free_in *in)
{
	UNUSED;
	return status_of(request);
}

CUresult fgv_do_memory_create(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_create_in *in,
			      struct fgv_memory_create_out *out)
{
	UNUSED;
	host.objects[host.object_count].kind = FGV_KIND_MEMORY + 1;
	out->memory = host.object_count++;
	return status_of(request);
}

CUresult fgv_do_memory_release(struct fgv_session *session, struct fgv_request *request,
			       const struct fgv_memory_release_in *in)
{
	(void)session;
	in->memory->kind = 0;
	return status_of(request);
}

CUresult fgv_do_memory_map(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_memory_map_in *in)
{
	UNUSED;
	return status_of(request);
}

CUresult fgv_do_memory_unmap(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_memory_unmap_in *in)
{
	UNUSED;
	return status_of(request);
}

CUresult fgv_do_memory_access(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_access_in *in)
{
	UNUSED;
	return status_of(request);
}

CUresult fgv_do_memory_share(struct fgv_session *session, struct fgv_request *request,
			     const struct fgv_memory_share_in *in, struct fgv_memory_share_out *out)
{
	(void)session;
	out->key[0] = in->address;
	out->size = host.granule;
	return status_of(request);
}

CUresult fgv_do_memory_export(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_export_in *in,
			      struct fgv_memory_export_out *out)
{
	UNUSED;
	out->key[0] = 1;
	return status_of(request);
}

CUresult fgv_do_memory_import(struct fgv_session *session, struct fgv_request *request,
			      const struct fgv_memory_import_in *in,
			      struct fgv_memory_import_out *out)
{
	UNUSED;
	host.objects[host.object_count].kind = FGV_KIND_MEMORY + 1;
	out->memory = host.object_count++;
	out->size = host.granule;
	return status_of(request);
}

CUresult fgv_do_words_make(struct fgv_session *session, struct fgv_request *request,
			   struct fgv_words_make_out *out)
{
	(void)session;
	out->key[0] = 2;
	out->address = (uintptr_t)host.words;
	return status_of(request);
}

CUresult fgv_do_words_open(struct fgv_session *session, struct fgv_request *request,
			   const struct fgv_words_open_in *in, struct fgv_words_open_out *out)
{
	UNUSED;
	out->address = (uintptr_t)host.words;
	return status_of(request);
}

CUresult fgv_do_word_add(struct fgv_session *session, struct fgv_request *request,
			 const struct fgv_word_add_in *in, struct fgv_word_add_out *out)
{
	(void)session;
	out->value = *(uint64_t *)(uintptr_t)in->address += in->number;
	return status_of(request);
}
