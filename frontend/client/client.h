/*
 * What this process has of its session on one GPU: the window, the connection, and the counters
 * that all lanes share. session.h makes and ends it.
 *
 * Threads: any.
 */
#ifndef FGV_CLIENT_CLIENT_H
#define FGV_CLIENT_CLIENT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "shmring/arena.h"
#include "shmring/window.h"

struct fgv_transport;

/* Written while connecting, before any other thread sees it; but for the last six. */
struct fgv_client {
	struct fgv_window window;
	struct fgv_arena *arena; /* behind the staging part */
	const struct fgv_transport *transport;
	uint32_t device; /* the ordinal of its GPU */
	int connection;	 /* its end is the session's; what else it is for is the transport's */
	int doorbell;	 /* wakes the dispatcher */
	int window_fd;	 /* to map parts of the window once more (cuda/memory/hostmem.c) */
	char vm[FGV_NAME_MAX];
	uint32_t ended; /* atomic: a CUresult; 0 while it goes on */
	uint32_t lost;	/* atomic: by the loss of its connection */
	/* The number of the next request, session-wide; every post writes here. */
	uint64_t ticket __attribute__((aligned(FGV_CACHE_LINE)));
	uint64_t synced_ticket; /* atomic: nothing asked before this one is under way; 0: unknown */
	uint64_t done_ticket; /* atomic: no work asked for before this one is under way; see sync.h
			       */
	uint32_t is_split;    /* atomic: some stream is not waited for by the legacy one */
};

/* CUDA_SUCCESS, or why the session has ended. */
static inline CUresult fgv_session_status(const struct fgv_client *client)
{
	return (CUresult)__atomic_load_n(&client->ended, __ATOMIC_RELAXED);
}

#endif
