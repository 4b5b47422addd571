/*
 * What is known: each lane's newest request that is seen to be done, the request before which all
 * work is done, and, for each lane, the stream for which it has waited last: programs copy a result
 * out, which waits, and then synchronize the stream. The host answers in the order of tickets, so a
 * thread that has waited knows of all that was asked for before. Not its own ticket says so, but
 * the next one at the time: text that kernels printed is fetched by requests of its own before the
 * thread gets its answer.
 */
#include "frontend/client/sync.h"

#include "frontend/client/recorder.h"

static bool may_be_refused(const struct fgv_lane *lane)
{
	return lane->recorder || __atomic_load_n(&fgv_record_judge, __ATOMIC_RELAXED);
}

/* A late store may hide a greater ticket: then the host is asked once more. */
static void note_all(struct fgv_client *client, uint64_t then)
{
	__atomic_store_n(&client->done_ticket, then, __ATOMIC_RELEASE);
}

/* Whoever else draws a ticket meanwhile may have begun something after the host looked. */
CUresult fgv_sync_device(struct fgv_lane *lane)
{
	struct fgv_client *client = lane->client;
	bool refused = may_be_refused(lane);
	uint64_t ticket = fgv_sync_now(lane);
	CUresult res;

	if (!refused && __atomic_load_n(&client->synced_ticket, __ATOMIC_ACQUIRE) == ticket)
		return fgv_session_status(client);
	res = fgv_call_device_sync(lane);
	if (res || refused)
		return res;
	note_all(client, ticket);
	if (__atomic_load_n(&client->ticket, __ATOMIC_RELAXED) == ticket + 1)
		__atomic_store_n(&client->synced_ticket, ticket + 1, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

/*
 * Where only the request that has waited came since @then, nothing has been put into the stream
 * after it, by whichever thread, until there is a further request.
 */
static void note_stream(struct fgv_lane *lane, uint32_t stream, uint64_t then)
{
	if (fgv_sync_now(lane) != then + 1)
		return;
	lane->idle_stream = stream;
	lane->idle_ticket = then + 1;
}

static bool is_known_idle(const struct fgv_lane *lane, uint32_t stream)
{
	return lane->idle_ticket == fgv_sync_now(lane) && lane->idle_stream == stream;
}

void fgv_sync_note(struct fgv_lane *lane, uint32_t stream, uint64_t then)
{
	if (!may_be_refused(lane))
		note_stream(lane, stream, then);
	if (!stream && !may_be_refused(lane) &&
	    !__atomic_load_n(&lane->client->is_split, __ATOMIC_ACQUIRE))
		note_all(lane->client, then);
}

CUresult fgv_sync_stream(struct fgv_lane *lane, uint32_t stream)
{
	uint64_t then = fgv_sync_now(lane);
	CUresult res;

	if (!may_be_refused(lane) && is_known_idle(lane, stream))
		return fgv_session_status(lane->client);
	res = fgv_call_stream_sync(lane, stream);
	if (!res)
		fgv_sync_note(lane, stream, then);
	return res;
}

static void find_newest(const struct fgv_lane *lane, void *arg)
{
	uint64_t *newest = arg, ticket = __atomic_load_n(&lane->seen_ticket, __ATOMIC_RELAXED);

	if (ticket > *newest)
		*newest = ticket;
}

/* Whether there is work whose end the program can see and that is not known to be done. */
static bool is_any_under_way(const struct fgv_client *client)
{
	uint64_t newest = 0;

	fgv_lane_visit_of(client, find_newest, &newest);
	return newest >= __atomic_load_n(&client->done_ticket, __ATOMIC_ACQUIRE);
}

CUresult fgv_sync_device_seen(struct fgv_lane *lane)
{
	if (may_be_refused(lane) || !is_any_under_way(lane->client))
		return CUDA_SUCCESS;
	return fgv_sync_device(lane);
}

CUresult fgv_sync_stream_seen(struct fgv_lane *lane, uint32_t stream)
{
	if (may_be_refused(lane) || !is_any_under_way(lane->client))
		return CUDA_SUCCESS;
	return fgv_sync_stream(lane, stream);
}

void fgv_sync_split(struct fgv_client *client)
{
	__atomic_store_n(&client->is_split, 1, __ATOMIC_RELEASE);
}
