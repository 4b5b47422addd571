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
	struct fgv_client client;
	uint32_t connected; /* atomic: the client is filled in */
	char said[400];	    /* the last failure that was logged */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void fgv_session_fork_begin(void)
{
	pthread_mutex_lock(&state.mutex);
}

void fgv_session_fork_end(bool is_child)
{
	if (is_child && state.connected) {
		__atomic_store_n(&state.client.ended, CUDA_ERROR_NOT_INITIALIZED, __ATOMIC_RELAXED);
		close(state.client.connection);
		close(state.client.doorbell);
		close(state.client.window_fd);
	}
	pthread_mutex_unlock(&state.mutex);
}

void fgv_session_stop(void)
{
	fgv_session_end(&state.client, CUDA_ERROR_DEINITIALIZED);
}

/* A program that tries again and again is told once, unless the reason changes. */
static void say_why(CUresult code, const char *why)
{
	if (!strncmp(state.said, why, sizeof(state.said)))
		return;
	strcpy(state.said, why);
	fgv_error("no GPU for this program: %s (CUDA error %d)", why, (int)code);
}

static CUresult connect_locked(void)
{
	char why[sizeof(state.said)];
	CUresult res;

	fgv_spin_init();
	res = fgv_connect(&state.client, why, sizeof(why));
	if (res) {
		say_why(res, why);
		return res;
	}
	state.client.ticket = 1;
	state.client.done_ticket = 1;
	/* Pairs with the acquire in fgv_session_existing(): the client is complete. */
	__atomic_store_n(&state.connected, 1, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

struct fgv_client *fgv_session_existing(void)
{
	return __atomic_load_n(&state.connected, __ATOMIC_ACQUIRE) ? &state.client : NULL;
}

CUresult fgv_session_open(struct fgv_client **client)
{
	CUresult res = fgv_session_status(&state.client);
	int cancel;

	if (!res && !fgv_session_existing()) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		pthread_mutex_lock(&state.mutex);
		if (!state.connected)
			res = connect_locked();
		pthread_mutex_unlock(&state.mutex);
		pthread_setcancelstate(cancel, NULL);
	}
	if (!res)
		*client = &state.client;
	return res;
}

bool fgv_session_end(struct fgv_client *client, CUresult code)
{
	uint32_t going_on = 0;

	return __atomic_compare_exchange_n(&client->ended, &going_on, code, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

void fgv_session_lose(struct fgv_client *client, const char *why)
{
	char said[FGV_END_TEXT_MAX];

	if (!fgv_session_end(client, CUDA_ERROR_LAUNCH_FAILED))
		return;
	__atomic_store_n(&client->lost, 1, __ATOMIC_RELAXED);
	if (client->transport->why(client, said))
		why = said;
	fgv_error("the session is lost: %s; this program must be restarted", why);
}

bool fgv_session_reset_dead(void)
{
	struct fgv_client *client = &state.client;
	uint32_t ended = fgv_session_status(client);

	if (!ended || ended == CUDA_ERROR_NOT_INITIALIZED || ended == CUDA_ERROR_DEINITIALIZED ||
	    __atomic_load_n(&client->lost, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&client->ended, CUDA_ERROR_DEVICE_UNAVAILABLE, __ATOMIC_RELAXED);
	return true;
}
