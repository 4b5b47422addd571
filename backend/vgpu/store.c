/*
 * The host's memory of a frozen session; see store.h.
 */
#define _GNU_SOURCE
#include "backend/vgpu/store.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/util.h"

/* At once, so that the dispatcher looks at the rest of the world between. */
#define PART_BYTES (1u << 20)

bool fgv_store_make(struct fgv_store *store, size_t len)
{
	void *bytes;

	if (!len)
		return true;
	bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return false;
	madvise(bytes, len, MADV_HUGEPAGE);
	madvise(bytes, len, MADV_DONTDUMP);
	store->bytes = bytes;
	store->len = len;
	return true;
}

void fgv_store_drop(struct fgv_store *store)
{
	if (store->bytes)
		munmap(store->bytes, store->len);
	store->bytes = NULL;
	store->len = 0;
}

void fgv_store_begin(struct fgv_store *store, int fd)
{
	store->fd = fd;
	store->head = store->len;
	store->done = 0;
}

void fgv_store_stop(struct fgv_store *store)
{
	close(store->fd);
	store->fd = -1;
}

/* What is next on the way: of the head, or of the bytes. 0: all was. */
static size_t next(struct fgv_store *store, void **at)
{
	size_t head = sizeof(store->head), left;

	if (store->done < head) {
		*at = (uint8_t *)&store->head + store->done;
		return head - store->done;
	}
	left = head + store->len - store->done;
	*at = left ? store->bytes + (store->done - head) : NULL;
	return fgv_min_u64(left, PART_BYTES);
}

static enum fgv_store_step end(struct fgv_store *store, enum fgv_store_step step)
{
	fgv_store_stop(store);
	return step;
}

/* Nothing has been moved: for now, or for good. */
static enum fgv_store_step judge(struct fgv_store *store, ssize_t moved)
{
	if (moved < 0 && (errno == EAGAIN || errno == EINTR))
		return FGV_STORE_WAITS;
	return end(store, FGV_STORE_FAILED);
}

/* The other end says that it has done its part. */
static enum fgv_store_step hear(struct fgv_store *store)
{
	uint8_t word;
	ssize_t got = recv(store->fd, &word, sizeof(word), MSG_DONTWAIT);

	if (got <= 0)
		return judge(store, got);
	return word == FGV_STORE_KEPT ? FGV_STORE_DONE : end(store, FGV_STORE_FAILED);
}

void fgv_store_agree(struct fgv_store *store)
{
	const uint8_t word = FGV_STORE_KEPT;

	/* A fairgvctl that has gone need not be told. */
	send(store->fd, &word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL);
	fgv_store_stop(store);
}

enum fgv_store_step fgv_store_save(struct fgv_store *store)
{
	void *at;
	size_t len = next(store, &at);
	ssize_t sent;

	if (!len)
		return hear(store);
	sent = send(store->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent <= 0)
		return judge(store, sent);
	store->done += (size_t)sent;
	return FGV_STORE_GOES_ON;
}

enum fgv_store_step fgv_store_load(struct fgv_store *store)
{
	void *at;
	size_t len = next(store, &at);
	ssize_t got;

	if (!len)
		return hear(store);
	got = recv(store->fd, at, len, MSG_DONTWAIT);
	if (got <= 0)
		return judge(store, got);
	store->done += (size_t)got;
	/* The head has come, and it is of something else. */
	if (store->done >= sizeof(store->head) && store->head != store->len)
		return end(store, FGV_STORE_FAILED);
	return FGV_STORE_GOES_ON;
}

void fgv_store_poll(const struct fgv_store *store, bool saves, struct pollfd *poll)
{
	bool sends = saves && store->done < sizeof(store->head) + store->len;

	*poll = (struct pollfd){.fd = store->fd, .events = sends ? POLLOUT : POLLIN};
}
