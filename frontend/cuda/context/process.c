/*
 * The process: what a fork and the end of it mean to what this library has.
 *
 * Locks: around a fork all of them are held that the child must not find locked, first the
 * session's.
 */
#include <pthread.h>

#include "common/log.h"
#include "frontend/client/session.h"
#include "frontend/client/stats.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/memory/hostmem.h"

static void fork_prepare(void)
{
	fgv_session_fork_begin();
	fgv_hostmem_fork_begin();
	fgv_errlog_fork_begin();
}

static void fork_parent(void)
{
	fgv_errlog_fork_end();
	fgv_hostmem_fork_end(false);
	fgv_session_fork_end(false);
}

/* What was counted is the parent's, if there is a session to count for. */
static void fork_child(void)
{
	fgv_errlog_fork_end();
	fgv_hostmem_fork_end(true);
	if (fgv_session_existing())
		fgv_stats_forget();
	fgv_session_fork_end(true);
}

__attribute__((constructor)) static void start(void)
{
	fgv_log_init("fairgv");
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* After the program's own destructors. */
__attribute__((destructor)) static void stop(void)
{
	fgv_session_stop();
	fgv_stats_print();
}
