/*
 * Held requests: a list, and what must be known of it without looking through it.
 */
#include "backend/vgpu/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fgv_held_init(struct fgv_held *held)
{
	memset(held, 0, sizeof(*held));
	STAILQ_INIT(&held->list);
}

void fgv_held_fini(struct fgv_held *held)
{
	while (fgv_held_first(held))
		free(fgv_held_take(held));
}

const struct fgv_op_info *fgv_held_info(uint16_t op)
{
	static const struct fgv_op_info unknown = {.stream_off = FGV_OP_NO_STREAM};

	return op <= FGV_OP_MAX && fgv_op_infos[op].name ? &fgv_op_infos[op] : &unknown;
}

uint32_t fgv_held_handle_at(const uint8_t *message, uint32_t len, size_t off)
{
	uint32_t handle = 0;

	if (off <= len && len - off >= sizeof(handle))
		memcpy(&handle, message + off, sizeof(handle));
	return handle;
}

/* The legacy stream, 0, is done when all are. */
static bool has_work_in(const struct fgv_held *held, uint32_t stream)
{
	const struct fgv_held_request *request;

	STAILQ_FOREACH(request, &held->list, link)
	{
		const struct fgv_op_info *info = fgv_held_info(request->request.op);

		if (!info->work)
			continue;
		if (!stream || info->stream_off == FGV_OP_NO_STREAM ||
		    fgv_held_handle_at(request->message, request->len, info->stream_off) == stream)
			return true;
	}
	return false;
}

static bool records(const struct fgv_held *held, const struct fgv_held_request *request,
		    uint32_t event)
{
	switch (request->request.op) {
	case FGV_OP_EVENT_RECORD:
		return fgv_held_handle_at(request->message, request->len,
					  offsetof(struct fgv_event_record_request, event)) ==
		       event;
	case FGV_OP_GRAPH_LAUNCH:
		return held->launch_records &&
		       held->launch_records(held->session, request->message, request->len, event);
	default:
		return false;
	}
}

static bool has_record_of(const struct fgv_held *held, uint32_t event)
{
	const struct fgv_held_request *request;

	STAILQ_FOREACH(request, &held->list, link)
	{
		if (records(held, request, event))
			return true;
	}
	return false;
}

enum fgv_held_way fgv_held_judge(const struct fgv_held *held, const struct fgv_request *request,
				 const uint8_t *message, uint32_t len)
{
	const struct fgv_op_info *info = fgv_held_info(request->op);

	/* Nobody waits for it, and what comes from other lanes may be about what it makes. */
	if (info->apart && !info->call)
		return FGV_HELD_RUN;
	/* A lane's calls are answered in their order. */
	if (held->in_lane[request->lane])
		return FGV_HELD_HOLD;
	switch (request->op) {
	case FGV_OP_STREAM_QUERY:
		return has_work_in(held, fgv_held_handle_at(
						 message, len,
						 offsetof(struct fgv_stream_query_request, stream)))
			       ? FGV_HELD_NOT_READY
			       : FGV_HELD_RUN;
	case FGV_OP_EVENT_QUERY:
		return has_record_of(held, fgv_held_handle_at(
						   message, len,
						   offsetof(struct fgv_event_query_request, event)))
			       ? FGV_HELD_NOT_READY
			       : FGV_HELD_RUN;
	case FGV_OP_MEM_ALLOC:
	case FGV_OP_MEM_INFO:
		/* What the program has freed is free for it. */
		return held->frees ? FGV_HELD_HOLD : FGV_HELD_RUN;
	default:
		return info->apart ? FGV_HELD_RUN : FGV_HELD_HOLD;
	}
}

static void count(struct fgv_held *held, const struct fgv_held_request *entry)
{
	held->count++;
	held->bytes += entry->len;
	held->frees += entry->request.op == FGV_OP_MEM_FREE;
	held->in_lane[entry->request.lane] += fgv_held_info(entry->request.op)->call;
}

void fgv_held_put_back(struct fgv_held *held, struct fgv_held_request *entry)
{
	STAILQ_INSERT_HEAD(&held->list, entry, link);
	count(held, entry);
}

int fgv_held_add(struct fgv_held *held, const struct fgv_request *request, const uint8_t *message,
		 uint32_t len)
{
	struct fgv_held_request *entry = malloc(sizeof(*entry) + len + 1);

	if (!entry)
		return -ENOMEM;
	entry->request = *request;
	entry->len = len;
	memcpy(entry->message, message, len);
	entry->message[len] = '\0';
	STAILQ_INSERT_TAIL(&held->list, entry, link);
	count(held, entry);
	return 0;
}

struct fgv_held_request *fgv_held_take(struct fgv_held *held)
{
	struct fgv_held_request *entry = STAILQ_FIRST(&held->list);

	STAILQ_REMOVE_HEAD(&held->list, link);
	held->count--;
	held->bytes -= entry->len;
	held->frees -= entry->request.op == FGV_OP_MEM_FREE;
	held->in_lane[entry->request.lane] -= fgv_held_info(entry->request.op)->call;
	return entry;
}
