/*
 * Events that programs share. Of an event's words the first is the number of its last record, and
 * the others, in turn, get the numbers of records that have happened: two records in different
 * streams may happen in another order, and neither may undo what the other has told.
 *
 * Lock: ipc.mutex, over the pages; an event's own, over its records.
 */
#include "frontend/cuda/stream/ipc_event.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "api/gpu_guest.h"
#include "common/util.h"
#include "frontend/cuda/memory/ipc.h"

#define MAGIC 0x3145435056474661ull

#define WORDS	 8 /* of an event */
#define RECORDS	 (WORDS - 1)
#define BYTES	 (WORDS * sizeof(uint64_t))
#define PER_PAGE (FGV_PAGE_BYTES / BYTES)

/* Between two looks of a thread that waits. */
#define PAUSE_MIN_NS (2 * FGV_NS_PER_US)
#define PAUSE_MAX_NS FGV_NS_PER_MS

_Static_assert(PER_PAGE == 64, "a bit for each");

/* What is in a handle. */
struct content {
	uint64_t magic;
	uint64_t program; /* whose it is */
	uint64_t key[2];  /* of its page */
	uint32_t slot;	  /* there */
	uint32_t reserved[7];
};
_Static_assert(sizeof(struct content) == sizeof(CUipcEventHandle), "as CUDA has it");

/* They stay as long as the session. */
struct page {
	LIST_ENTRY(page) link;
	uint64_t key[2];
	uint64_t address; /* for the host */
	uint64_t taken;	  /* bits of events; of another program's, none */
	bool is_others;
};

struct fgv_ipc_event {
	struct page *page;
	uint32_t slot;
	pthread_mutex_t mutex;
	uint32_t stream; /* of the last record */
	uint64_t since;	 /* all from this number on were in that stream; 0: there was none */
};

static struct {
	pthread_mutex_t mutex;
	LIST_HEAD(, page) pages;
} ipc = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t address_of(const struct fgv_ipc_event *event, unsigned word)
{
	return event->page->address + event->slot * BYTES + word * sizeof(uint64_t);
}

/* Where number @number will be. */
static uint64_t record_of(const struct fgv_ipc_event *event, uint64_t number)
{
	return address_of(event, 1 + (unsigned)(number % RECORDS));
}

/* --- Pages --- */

static struct page *find_locked(const uint64_t key[2])
{
	struct page *page;

	LIST_FOREACH(page, &ipc.pages, link) {
		if (page->key[0] == key[0] && page->key[1] == key[1])
			return page;
	}
	return NULL;
}

/* An own page with room; NULL. */
static struct page *find_room_locked(void)
{
	struct page *page;

	LIST_FOREACH(page, &ipc.pages, link) {
		if (!page->is_others && page->taken != UINT64_MAX)
			return page;
	}
	return NULL;
}

static CUresult make_page(struct fgv_lane *lane, struct page *made)
{
	return fgv_call_words_make(lane, made->key, &made->address);
}

static CUresult open_page(struct fgv_lane *lane, struct page *made)
{
	made->is_others = true;
	return fgv_call_words_open(lane, made->key, &made->address);
}

/* One more, which @how gets from the host; @key: of another program's, or NULL. */
static CUresult add_page(struct fgv_lane *lane, const uint64_t *key,
			 CUresult (*how)(struct fgv_lane *, struct page *))
{
	struct page *made = calloc(1, sizeof(*made));
	CUresult res;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (key)
		memcpy(made->key, key, sizeof(made->key));
	res = how(lane, made);
	if (res) {
		free(made);
		return res;
	}
	pthread_mutex_lock(&ipc.mutex);
	LIST_INSERT_HEAD(&ipc.pages, made, link);
	pthread_mutex_unlock(&ipc.mutex);
	return CUDA_SUCCESS;
}

/* Takes a place in an own page, if there is one. */
static bool take_slot(struct fgv_ipc_event *event)
{
	struct page *page;

	pthread_mutex_lock(&ipc.mutex);
	page = find_room_locked();
	if (page) {
		event->page = page;
		event->slot = (uint32_t)__builtin_ctzll(~page->taken);
		page->taken |= UINT64_C(1) << event->slot;
	}
	pthread_mutex_unlock(&ipc.mutex);
	return page;
}

static bool take_page(struct fgv_ipc_event *event, const uint64_t key[2])
{
	pthread_mutex_lock(&ipc.mutex);
	event->page = find_locked(key);
	pthread_mutex_unlock(&ipc.mutex);
	return event->page;
}

/* --- Events --- */

static struct fgv_ipc_event *new_event(void)
{
	struct fgv_ipc_event *made = calloc(1, sizeof(*made));

	if (made)
		pthread_mutex_init(&made->mutex, NULL);
	return made;
}

void fgv_ipc_event_free(struct fgv_ipc_event *event)
{
	if (!event)
		return;
	pthread_mutex_lock(&ipc.mutex);
	if (event->page && !event->page->is_others)
		event->page->taken &= ~(UINT64_C(1) << event->slot);
	pthread_mutex_unlock(&ipc.mutex);
	pthread_mutex_destroy(&event->mutex);
	free(event);
}

CUresult fgv_ipc_event_make(struct fgv_lane *lane, struct fgv_ipc_event **event)
{
	struct fgv_ipc_event *made = new_event();
	CUresult res = made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	while (!res && !take_slot(made))
		res = add_page(lane, NULL, make_page);
	if (res) {
		fgv_ipc_event_free(made);
		return res;
	}
	*event = made;
	return CUDA_SUCCESS;
}

CUresult fgv_ipc_event_open(struct fgv_lane *lane, const CUipcEventHandle *handle,
			    struct fgv_ipc_event **event)
{
	struct fgv_ipc_event *made;
	struct content content;
	CUresult res = CUDA_SUCCESS;

	memcpy(&content, handle, sizeof(content));
	if (content.magic != MAGIC || content.slot >= PER_PAGE)
		return CUDA_ERROR_INVALID_HANDLE;
	if (content.program == fgv_ipc_program())
		return CUDA_ERROR_INVALID_CONTEXT;
	made = new_event();
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (!res && !take_page(made, content.key))
		res = add_page(lane, content.key, open_page);
	if (!res && !made->page->is_others)
		res = CUDA_ERROR_INVALID_HANDLE;
	if (res) {
		made->page = NULL;
		fgv_ipc_event_free(made);
		return res;
	}
	made->slot = content.slot;
	*event = made;
	return CUDA_SUCCESS;
}

bool fgv_ipc_event_is_others(const struct fgv_ipc_event *event)
{
	return event->page->is_others;
}

CUresult fgv_ipc_event_get(const struct fgv_ipc_event *event, CUipcEventHandle *handle)
{
	struct content content = {
		.magic = MAGIC,
		.program = fgv_ipc_program(),
		.slot = event->slot,
	};

	if (event->page->is_others)
		return CUDA_ERROR_INVALID_HANDLE;
	memcpy(content.key, event->page->key, sizeof(content.key));
	memcpy(handle, &content, sizeof(content));
	return CUDA_SUCCESS;
}

/* --- Numbers --- */

static CUresult read_word(struct fgv_lane *lane, uint64_t address, uint64_t *value)
{
	return fgv_call_word_add(lane, address, 0, value);
}

/* CUDA_ERROR_NOT_READY, as long as it has not come. */
static CUresult look(struct fgv_lane *lane, const struct fgv_ipc_event *event, uint64_t number)
{
	uint64_t there;
	CUresult res = read_word(lane, record_of(event, number), &there);

	if (res)
		return res;
	return (int64_t)(there - number) >= 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult await(struct fgv_lane *lane, const struct fgv_ipc_event *event, uint64_t number)
{
	struct timespec pause = {.tv_nsec = PAUSE_MIN_NS};
	CUresult res;

	while ((res = look(lane, event, number)) == CUDA_ERROR_NOT_READY) {
		nanosleep(&pause, NULL);
		pause.tv_nsec = (long)fgv_min_u64(2 * (uint64_t)pause.tv_nsec, PAUSE_MAX_NS);
	}
	return res;
}

/* The last that was recorded; 0: none was. */
static CUresult latest(struct fgv_lane *lane, const struct fgv_ipc_event *event, uint64_t *number)
{
	return read_word(lane, address_of(event, 0), number);
}

/*
 * A number goes where the one before it by RECORDS was, which must have come unless it is in the
 * same stream. Other programs know of the record when this returns.
 */
CUresult fgv_ipc_event_begin(struct fgv_lane *lane, struct fgv_ipc_event *event, uint32_t stream,
			     uint64_t *number)
{
	CUresult res;

	pthread_mutex_lock(&event->mutex);
	res = fgv_call_word_add(lane, address_of(event, 0), 1, number);
	if (!res && (!event->since || event->stream != stream)) {
		event->since = *number;
		event->stream = stream;
	}
	if (!res && *number > RECORDS && *number - RECORDS < event->since)
		res = await(lane, event, *number - RECORDS);
	pthread_mutex_unlock(&event->mutex);
	return res;
}

CUresult fgv_ipc_event_end(struct fgv_lane *lane, struct fgv_ipc_event *event, uint32_t stream,
			   uint64_t number)
{
	return fgv_post_value_write(lane, record_of(event, number), number, sizeof(number),
				    CU_STREAM_WRITE_VALUE_DEFAULT, stream);
}

CUresult fgv_ipc_event_wait(struct fgv_lane *lane, const struct fgv_ipc_event *event,
			    uint32_t stream)
{
	uint64_t number;
	CUresult res = latest(lane, event, &number);

	if (res || !number)
		return res;
	return fgv_post_value_wait(lane, record_of(event, number), number, sizeof(number),
				   CU_STREAM_WAIT_VALUE_GEQ, stream);
}

CUresult fgv_ipc_event_query(struct fgv_lane *lane, const struct fgv_ipc_event *event)
{
	uint64_t number;
	CUresult res = latest(lane, event, &number);

	return res || !number ? res : look(lane, event, number);
}

CUresult fgv_ipc_event_synchronize(struct fgv_lane *lane, const struct fgv_ipc_event *event)
{
	uint64_t number;
	CUresult res = latest(lane, event, &number);

	return res || !number ? res : await(lane, event, number);
}
