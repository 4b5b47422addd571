/*
 * Numbers behind events. A device has streams for it as they are needed, each with a word of one
 * page of pinned memory, where numbers only grow. A stream that is at rest is taken first, as one
 * that waits for an event delays the numbers behind it. Only where STREAMS of them wait does one
 * get a second number.
 *
 * Lock: remote.mutex, over what is posted to such a stream, inside of lanes.
 */
#include "frontend/cuda/stream/remote.h"

#include <pthread.h>

#include "api/gpu_guest.h"
#include "frontend/client/sync.h"
#include "frontend/cuda/context/context.h"
#include "frontend/cuda/memory/host.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/stream/own.h"

#define STREAMS 32 /* of a device */

_Static_assert(FGV_DEVICES_MAX *STREAMS * sizeof(uint64_t) <= FGV_PAGE_BYTES,
	       "their words are in one page");

struct source {
	uint32_t stream; /* the host's handle; 0: it is yet to be made */
	uint64_t sent;	 /* the last number that was posted */
};

static struct {
	pthread_mutex_t mutex;
	uint64_t *words; /* atomic; as the sources are; NULL: there was no need yet */
	struct source sources[FGV_DEVICES_MAX][STREAMS];
	unsigned turn; /* which is next where all are busy */
} remote = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t *word_of(uint32_t device, unsigned i)
{
	return &__atomic_load_n(&remote.words, __ATOMIC_ACQUIRE)[device * STREAMS + i];
}

/* No lane may be held for it. Of two threads that come here first, one gives its page back. */
static CUresult need_words(void)
{
	uint64_t *none = NULL;
	void *made;
	CUresult res;

	if (__atomic_load_n(&remote.words, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	res = fgv_host_alloc(&made, FGV_PAGE_BYTES, CU_MEMHOSTALLOC_PORTABLE);
	if (res)
		return res;
	fgv_hostmem_keep((uint64_t)(uintptr_t)made);
	if (!__atomic_compare_exchange_n(&remote.words, &none, made, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		fgv_host_free(made);
	return CUDA_SUCCESS;
}

static bool is_at_rest(uint32_t device, unsigned i)
{
	return __atomic_load_n(word_of(device, i), __ATOMIC_RELAXED) ==
	       remote.sources[device][i].sent;
}

/* A stream at rest; or one that is yet to be made; or whose turn it is. */
static unsigned choose_locked(uint32_t device)
{
	const struct source *sources = remote.sources[device];

	for (unsigned i = 0; i < STREAMS; i++) {
		if (!sources[i].stream || is_at_rest(device, i))
			return i;
	}
	return remote.turn++ % STREAMS;
}

static CUresult make_locked(struct fgv_lane *lane, struct source *source)
{
	uint32_t handle;
	CUresult res = fgv_own_take(lane, FGV_OWN_STREAM, &handle);

	if (res)
		return res;
	fgv_sync_split(lane->client);
	res = fgv_post_stream_make(lane, handle, CU_STREAM_NON_BLOCKING, 0);
	if (res)
		fgv_own_give(lane, FGV_OWN_STREAM, handle);
	else
		source->stream = handle;
	return res;
}

static CUresult signal_locked(struct fgv_lane *lane, uint32_t event, struct fgv_remote *signal)
{
	uint32_t device = lane->client->device;
	unsigned i = choose_locked(device);
	struct source *source = &remote.sources[device][i];
	CUresult res = source->stream ? CUDA_SUCCESS : make_locked(lane, source);

	if (!res)
		res = fgv_post_stream_wait_event(lane, source->stream, event);
	if (res)
		return res;
	signal->address = (uint64_t)(uintptr_t)word_of(device, i);
	signal->number = source->sent + 1;
	res = fgv_post_value_write(lane, signal->address, signal->number, sizeof(uint64_t),
				   CU_STREAM_WRITE_VALUE_DEFAULT, source->stream);
	if (!res)
		source->sent++;
	return res;
}

CUresult fgv_remote_signal(uint32_t device, uint32_t event, struct fgv_remote *signal)
{
	struct fgv_lane *lane;
	CUresult res = need_words();

	if (!res)
		res = fgv_context_enter_on(device, &lane);
	if (res)
		return res;
	pthread_mutex_lock(&remote.mutex);
	res = signal_locked(lane, event, signal);
	pthread_mutex_unlock(&remote.mutex);
	fgv_lane_leave(lane);
	return res;
}

CUresult fgv_remote_wait(struct fgv_lane *lane, uint32_t stream, const struct fgv_remote *signal)
{
	return fgv_post_value_wait(lane, signal->address, signal->number, sizeof(uint64_t),
				   CU_STREAM_WAIT_VALUE_GEQ, stream);
}

void fgv_remote_drain(struct fgv_lane *lane)
{
	struct source *sources = remote.sources[lane->client->device];

	pthread_mutex_lock(&remote.mutex);
	for (unsigned i = 0; i < STREAMS; i++) {
		if (!sources[i].stream)
			continue;
		fgv_post_stream_destroy(lane, sources[i].stream);
		fgv_own_give(lane, FGV_OWN_STREAM, sources[i].stream);
		sources[i].stream = 0;
	}
	pthread_mutex_unlock(&remote.mutex);
}
