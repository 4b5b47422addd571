/* Fetching and writing what kernels have printed; see text.h. */
#include "frontend/client/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "frontend/client/lane.h"

#define PART_BYTES (64u * 1024)
#define PARTS_MAX  128 /* per call: a kernel that prints without end does not hold it for ever */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
uint32_t fgv_text_busy;

static bool waits(const struct fgv_client *client)
{
	return __atomic_load_n(&fgv_window_head(&client->window)->text, __ATOMIC_RELAXED);
}

/* Fetches a part by way of the window at @off. False: the host has no more to say. */
static bool print_part(struct fgv_lane *lane, uint64_t off)
{
	const char *text = (const char *)lane->client->window.base + off;
	uint32_t stdout_bytes, stderr_bytes;

	if (fgv_call_text_read(lane, off, PART_BYTES, &stdout_bytes, &stderr_bytes) ||
	    stdout_bytes > PART_BYTES || stderr_bytes > PART_BYTES - stdout_bytes)
		return false;
	fwrite(text, 1, stdout_bytes, stdout);
	fwrite(text + stdout_bytes, 1, stderr_bytes, stderr);
	return true;
}

static void print_all(struct fgv_lane *lane)
{
	struct fgv_arena *arena = lane->client->arena;
	uint64_t off;

	/* Without room for it the text stays with the host, for the next call. */
	if (fgv_arena_alloc(arena, PART_BYTES, &off))
		return;
	for (int i = 0; i < PARTS_MAX && waits(lane->client); i++) {
		if (!print_part(lane, off))
			break;
	}
	fflush(stdout);
	fgv_arena_free(arena, off);
}

void fgv_text_print(struct fgv_lane *lane)
{
	int saved_errno = errno;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	/* Before the host takes the flag down, so that no call that sees it down overtakes us. */
	__atomic_store_n(&fgv_text_busy, 1, __ATOMIC_RELEASE);
	print_all(lane);
	__atomic_store_n(&fgv_text_busy, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	errno = saved_errno;
}
