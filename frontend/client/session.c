/*
 * The one session of the process: making it, and the ways in which it ends.
 *
 * Locks: state.mutex is held while connecting, so that one thread connects and the
 * others wait for it. A fork waits for it too.
 */
#include "frontend/client/session.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "frontend/client/connect.h"
#include "frontend/client/transport.h"
#include "shmring/spin.h"

static struct {
	pthread_mutex_t mutex;
	struct fgv_client clients[FGV_DEVICES_MAX]; /* by the ordinals of their GPUs */
	uint32_t connected;			    /* atomic: so many clients are filled in */
	char said[400];				    /* the last failure that was logged */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void fgv_session_fork_begin(void)
{
	pthread_mutex_lock(&state.mutex);
}

void fgv_session_fork_end(bool is_child)
{
	for (uint32_t i = 0; is_child && i < state.connected; i++) {
		struct fgv_client *client = &state.clients[i];

		__atomic_store_n(&client->ended, CUDA_ERROR_NOT_INITIALIZED, __ATOMIC_RELAXED);
		close(client->connection);
		close(client->doorbell);
		close(client->window_fd);
	}
	pthread_mutex_unlock(&state.mutex);
}

void fgv_session_stop(void)
{
	for (unsigned i = 0; i < FGV_DEVICES_MAX; i++)
		fgv_session_end(&state.clients[i], CUDA_ERROR_DEINITIALIZED);
}

/* A program that tries again and again is told once, unless the reason changes. */
static void say_why(CUresult code, const char *why)
{
	if (!strncmp(state.said, why, sizeof(state.said)))
		return;
	strcpy(state.said, why);
	fgv_error("no GPU for this program: %s (CUDA error %d)", why, (int)code);
}

/* Where a further GPU does not come the session is none: the host ends it when it is left. */
static CUresult connect_all(char *why, size_t why_len, uint32_t *count)
{
	uint32_t parts = 0;
	CUresult res = fgv_connect(&state.clients[0], &parts, why, why_len);

	for (*count = 1; !res && *count <= parts; ++*count)
		res = fgv_connect_part(&state.clients[0], &state.clients[*count], why, why_len);
	for (uint32_t i = 0; i < *count && !res; i++) {
		state.clients[i].device = i;
		state.clients[i].ticket = 1;
		state.clients[i].done_ticket = 1;
	}
	return res;
}

static CUresult connect_locked(void)
{
	char why[sizeof(state.said)];
	uint32_t count;
	CUresult res;

	fgv_spin_init();
	res = connect_all(why, sizeof(why), &count);
	if (res) {
		say_why(res, why);
		return res;
	}
	/* Pairs with the acquire in fgv_session_count(): the clients are complete. */
	__atomic_store_n(&state.connected, count, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

uint32_t fgv_session_count(void)
{
	return __atomic_load_n(&state.connected, __ATOMIC_ACQUIRE);
}

struct fgv_client *fgv_session_existing(void)
{
	return fgv_session_count() ? &state.clients[0] : NULL;
}

CUresult fgv_session_open(uint32_t device, struct fgv_client **client)
{
	CUresult res = fgv_session_status(&state.clients[device]);
	int cancel;

	if (!res && !fgv_session_existing()) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		pthread_mutex_lock(&state.mutex);
		if (!state.connected)
			res = connect_locked();
		pthread_mutex_unlock(&state.mutex);
		pthread_setcancelstate(cancel, NULL);
	}
	if (!res && device >= fgv_session_count())
		res = CUDA_ERROR_INVALID_DEVICE;
	if (!res)
		*client = &state.clients[device];
	return res;
}

bool fgv_session_end(struct fgv_client *client, CUresult code)
{
	uint32_t going_on = 0;

	return __atomic_compare_exchange_n(&client->ended, &going_on, code, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* All of it is lost, whichever of its connections has ended: the host's reason comes on the first.
 */
void fgv_session_lose(struct fgv_client *client, const char *why)
{
	char said[FGV_END_TEXT_MAX];
	bool is_first = fgv_session_end(client, CUDA_ERROR_LAUNCH_FAILED);

	if (!is_first)
		return;
	for (uint32_t i = 0; i < fgv_session_count(); i++) {
		fgv_session_end(&state.clients[i], CUDA_ERROR_LAUNCH_FAILED);
		__atomic_store_n(&state.clients[i].lost, 1, __ATOMIC_RELAXED);
	}
	if (client->transport->why(&state.clients[0], said))
		why = said;
	fgv_error("the session is lost: %s; this program must be restarted", why);
}

bool fgv_session_reset_dead(void)
{
	struct fgv_client *client = &state.clients[0];
	uint32_t ended = fgv_session_status(client);

	if (!ended || ended == CUDA_ERROR_NOT_INITIALIZED || ended == CUDA_ERROR_DEINITIALIZED ||
	    __atomic_load_n(&client->lost, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&client->ended, CUDA_ERROR_DEVICE_UNAVAILABLE, __ATOMIC_RELAXED);
	return true;
}
