/*
 * What handlers and the dispatcher share: the life of objects, deferred failures, replies.
 */
#include "backend/vgpu/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"
#include "shmring/park.h"

static uint64_t reclaim(void *of)
{
	struct fgv_session *session = of;
	struct fgv_gpu *gpu = session->gpu;

	gpu->ops->reclaim(gpu);
	fgv_pieces_collect(&session->pieces, true);
	return gpu->late_bytes + session->pieces.late_bytes;
}

static void let_go(const struct fgv_key *key, void *session)
{
	fgv_sharing_drop(&((struct fgv_session *)session)->sharing, key);
}

static CUresult use_whole_pieces(struct fgv_session *session)
{
	struct fgv_session *first = session->first ? session->first : session;

	fgv_sharing_init(&session->sharing, &first->images, session->gpu, session->setup.gpu);
	return fgv_pieces_use_whole(&session->pieces, session->account, let_go, session);
}

/*
 * Where memory may move, or be shared, it is charged in whole pieces, of which the smallest are
 * granules.
 */
static int init_pieces(struct fgv_session *session)
{
	CUresult status;

	fgv_pieces_init(&session->pieces, session->gpu);
	if (!session->setup.movable && !session->setup.sharing)
		return 0;
	if (session->setup.movable)
		status = fgv_pieces_use(&session->pieces, session->account);
	else
		status = use_whole_pieces(session);
	if (status != CUDA_SUCCESS)
		return -ENOTSUP;
	session->costs.granule = fgv_max_u64(session->costs.granule, session->pieces.granule);
	return 0;
}

int fgv_session_init_quota(struct fgv_session *session)
{
	int err;

	session->gpu->ops->costs(session->gpu, &session->costs);
	err = init_pieces(session);
	if (err < 0)
		return err;
	fgv_quota_init(&session->quota, session->allowance, session->accounts, session->account,
		       session->setup.account, session->costs.granule);
	fgv_quota_set_reclaim(&session->quota, reclaim, session);
	fgv_quota_set_give_up(&session->quota, fgv_batch_cache_give_up, session);
	if (fgv_quota_set_least(&session->quota, session->setup.need_bytes) < 0)
		return -ENOMEM;
	return fgv_quota_charge(&session->quota, &session->context, session->setup.context_bytes);
}

static void put_memory(struct fgv_object *memory, void *session)
{
	fgv_session_put(session, memory);
}

/* Memory that may move is nobody's but its own GPU's (docs/design/0028-movable.md). */
static void init_vmem(struct fgv_session *session)
{
	struct fgv_session *first = session->first ? session->first : session;

	if (first == session)
		fgv_addresses_init(&session->addresses);
	fgv_vmem_init(&session->vmem, session->gpu, &first->addresses, put_memory, session);
	session->vmem.is_alone = session->setup.movable;
}

int fgv_session_init(struct fgv_session *session)
{
	int err = fgv_session_init_quota(session);

	if (err < 0)
		return err == -ENOMEM ? -EDQUOT : err;
	fgv_handles_init(&session->handles);
	fgv_held_init(&session->held);
	session->held.launch_records = fgv_graph_launch_records;
	session->held.session = session;
	fgv_stall_init(&session->stall);
	fgv_room_init(&session->room);
	fgv_mapped_init(&session->mapped);
	fgv_batch_init(&session->batch, session->setup.batching);
	fgv_errands_init(session);
	fgv_slices_init(session);
	init_vmem(session);
	if (fgv_waits_init(&session->waits, session->window.lanes) < 0)
		return -ENOMEM;
	session->lanes = fgv_lanes_create(&session->window);
	if (!session->lanes) {
		free(session->waits.list);
		return -ENOMEM;
	}
	return 0;
}

CUresult fgv_session_add(struct fgv_session *session, enum fgv_kind kind, uint64_t bytes,
			 struct fgv_object **object)
{
	struct fgv_object *made = fgv_handles_add(&session->handles, kind);

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (fgv_quota_charge(&session->quota, &made->charge, bytes) < 0) {
		fgv_session_abandon(session, made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*object = made;
	return CUDA_SUCCESS;
}

/* What it was charged, and itself. */
static void release(struct fgv_session *session, struct fgv_object *object)
{
	fgv_quota_release(&session->quota, &object->charge);
	if (object->is_own)
		fgv_own_remove(session, object->kind);
	free(object);
}

void fgv_session_abandon(struct fgv_session *session, struct fgv_object *object)
{
	fgv_handles_remove(&session->handles, object);
	release(session, object);
}

static bool goes_with_another(const struct fgv_object *object)
{
	return object->kind == FGV_KIND_ARRAY && object->array.is_part;
}

/* Functions go with their modules, levels with their arrays. */
static void remove_all(struct fgv_session *session)
{
	static const enum fgv_kind kinds[] = {FGV_KIND_GRAPH,  FGV_KIND_MODULE,	 FGV_KIND_EVENT,
					      FGV_KIND_STREAM, FGV_KIND_TEXTURE, FGV_KIND_ARRAY,
					      FGV_KIND_MEMORY};
	struct fgv_object *object;

	for (unsigned i = 0; i < FGV_ARRAY_LEN(kinds); i++) {
		uint32_t at = 0;

		while ((object = fgv_handles_next(&session->handles, kinds[i], &at))) {
			if (!goes_with_another(object))
				fgv_session_remove(session, object);
		}
	}
}

void fgv_session_fini(struct fgv_session *session)
{
	fgv_held_fini(&session->held);
	fgv_room_fini(&session->room);
	fgv_stall_fini(session);
	fgv_waits_fini(session);
	fgv_loans_fini(session);
	fgv_batch_fini(session);
	fgv_vmem_fini(&session->vmem);
	if (!session->first)
		fgv_addresses_fini(&session->addresses, session->gpu);
	fgv_freezer_fini(session);
	fgv_pieces_fini(&session->pieces);
	remove_all(session);
	fgv_graphs_fini(&session->graphs);
	fgv_mapped_fini(&session->mapped, session->gpu);
	fgv_sharing_fini(&session->sharing);
	fgv_handles_fini(&session->handles);
	fgv_quota_fini(&session->quota);
	fgv_lanes_destroy(session->lanes);
}

/*
 * In the arena alone, where an honest guest keeps its data: nobody needs the GPU to write
 * over the rings while the dispatcher does.
 */
void *fgv_session_resolve(struct fgv_session *session, uint64_t off, uint64_t len)
{
	const struct fgv_window *window = &session->window;

	if (off < window->arena_off || off - window->arena_off > window->arena_len ||
	    len > window->arena_len - (off - window->arena_off))
		return NULL;
	return fgv_window_resolve(window, off, len);
}

struct fgv_object *fgv_session_lookup(struct fgv_session *session, enum fgv_kind kind,
				      uint32_t handle)
{
	return fgv_handles_find(&session->handles, kind, handle);
}

static CUresult destroy_array(struct fgv_session *session, const struct fgv_object *object)
{
	struct fgv_gpu *gpu = session->gpu;

	if (object->array.is_part)
		return CUDA_SUCCESS;
	return gpu->ops->array_destroy(gpu, object->array.gpu, object->array.levels_count,
				       object->charge.bytes);
}

static CUresult destroy_memory(struct fgv_session *session, const struct fgv_object *object)
{
	CUresult status = session->gpu->ops->memory_release(session->gpu, object->memory.gpu);

	if (object->memory.is_shared)
		fgv_sharing_drop(&session->sharing, &object->memory.key);
	return status;
}

/* Destroys what an object without references stood for. */
static CUresult destroy(struct fgv_session *session, struct fgv_object *object)
{
	struct fgv_gpu *gpu = session->gpu;

	switch (object->kind) {
	case FGV_KIND_MODULE:
		session->image_bytes -= object->module.image_bytes;
		fgv_slices_put_image(object);
		fgv_batch_forget_functions(session);
		return gpu->ops->module_unload(gpu, object->module.gpu, object->charge.bytes);
	case FGV_KIND_FUNCTION:
		session->param_sizes_bytes -=
			object->function.param_count * sizeof(*object->function.param_sizes);
		free(object->function.param_sizes);
		fgv_slices_close(session, object);
		return CUDA_SUCCESS;
	case FGV_KIND_STREAM:
		fgv_batch_forget_stream(session, object->stream);
		return gpu->ops->stream_destroy(gpu, object->stream);
	case FGV_KIND_EVENT:
		return gpu->ops->event_destroy(gpu, object->event);
	case FGV_KIND_ARRAY:
		return destroy_array(session, object);
	case FGV_KIND_TEXTURE:
		return gpu->ops->texture_destroy(gpu, object->texture.number,
						 object->texture.is_surface);
	case FGV_KIND_GRAPH:
		return fgv_graph_destroy(session, object->graph);
	case FGV_KIND_MEMORY:
		return destroy_memory(session, object);
	}
	return CUDA_ERROR_UNKNOWN;
}

CUresult fgv_session_put(struct fgv_session *session, struct fgv_object *object)
{
	CUresult status;

	if (!fgv_object_put(object))
		return CUDA_SUCCESS;
	status = destroy(session, object);
	release(session, object);
	return status;
}

void fgv_session_remove_functions(struct fgv_session *session, struct fgv_object *module)
{
	while (module->module.functions) {
		struct fgv_object *function = module->module.functions;

		module->module.functions = function->function.next;
		fgv_session_remove(session, function);
	}
}

static void remove_levels(struct fgv_session *session, struct fgv_object *array)
{
	while (array->array.levels) {
		struct fgv_object *part = array->array.levels;

		array->array.levels = part->array.levels;
		part->array.levels = NULL;
		fgv_session_remove(session, part);
	}
}

CUresult fgv_session_remove(struct fgv_session *session, struct fgv_object *object)
{
	fgv_handles_remove(&session->handles, object);
	if (object->kind == FGV_KIND_MODULE)
		fgv_session_remove_functions(session, object);
	else if (object->kind == FGV_KIND_ARRAY)
		remove_levels(session, object);
	return fgv_session_put(session, object);
}

void fgv_session_defer(struct fgv_session *session, CUresult status)
{
	if (session->deferred == CUDA_SUCCESS)
		session->deferred = status;
}

CUresult fgv_session_take_deferred(struct fgv_session *session)
{
	CUresult status = session->deferred;

	session->deferred = CUDA_SUCCESS;
	return status;
}

/* What the guest's library asks by itself: its program would not hear of a failure. */
static bool is_the_librarys(uint16_t op)
{
	return op == FGV_OP_HOST_FUNC_NEXT || op == FGV_OP_TEXT_READ;
}

static void count_error(struct fgv_session *session, CUresult status)
{
	if (status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_READY)
		return;
	fgv_account_add(&session->account->errors, 1);
	if (status == CUDA_ERROR_OUT_OF_MEMORY)
		fgv_account_add(&session->account->no_memory, 1);
}

int fgv_session_reply(struct fgv_session *session, uint32_t lane, struct fgv_reply *reply)
{
	uint32_t *parked = &fgv_window_lane_head(&session->window, lane)->guest_parked;

	if (reply->status == CUDA_SUCCESS && !is_the_librarys(reply->op))
		reply->status = fgv_session_take_deferred(session);
	if (reply->status != CUDA_SUCCESS)
		reply->len = 0;
	count_error(session, reply->status);
	/* A fault's text goes before the fault, behind which nothing is fetched. */
	if (reply->status != CUDA_SUCCESS && reply->status != CUDA_ERROR_NOT_READY)
		fgv_console_look(session);
	if (fgv_park_is_announced(parked))
		fgv_engines_note_waking(session);
	if (fgv_lanes_reply(session->lanes, lane, reply) < 0) {
		snprintf(session->reason, sizeof(session->reason),
			 "lane %u leaves no room for replies", lane);
		return -EPROTO;
	}
	return 0;
}

CUresult fgv_session_await_fence(struct fgv_session *session, const struct fgv_request *request,
				 struct fgv_gpu_fence *fence, uint64_t covers)
{
	fgv_waits_add(&session->waits, &(struct fgv_wait){
					       .lane = request->lane,
					       .call = request->call,
					       .op = request->op,
					       .fence = fence,
					       .covers = covers,
				       });
	return FGV_PENDING;
}

CUresult fgv_session_await_event(struct fgv_session *session, const struct fgv_request *request,
				 struct fgv_object *event)
{
	fgv_object_get(event);
	fgv_waits_add(&session->waits, &(struct fgv_wait){
					       .lane = request->lane,
					       .call = request->call,
					       .op = request->op,
					       .event = event,
				       });
	return FGV_PENDING;
}

CUresult fgv_session_await_unmapping(struct fgv_session *session, const struct fgv_request *request,
				     struct fgv_gpu_fence *fence, struct fgv_mapped_range *range)
{
	fgv_waits_add(&session->waits, &(struct fgv_wait){
					       .lane = request->lane,
					       .call = request->call,
					       .op = request->op,
					       .fence = fence,
					       .covers = session->gate.submitted,
					       .range = range,
				       });
	return FGV_PENDING;
}

CUresult fgv_session_await_leaving(struct fgv_session *session, const struct fgv_request *request,
				   struct fgv_gpu_fence *fence, uint64_t address, uint64_t bytes)
{
	fgv_waits_add(&session->waits, &(struct fgv_wait){
					       .lane = request->lane,
					       .call = request->call,
					       .op = request->op,
					       .fence = fence,
					       .covers = session->gate.submitted,
					       .leaving = address,
					       .leaving_bytes = bytes,
				       });
	return FGV_PENDING;
}
