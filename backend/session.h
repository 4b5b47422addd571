/*
 * The sessions: one fairgv-vgpu process for each guest program. Starts them, hands
 * them what they need, and clears away behind them however they end.
 *
 * A session's window is made here and never mapped or read by the daemon: what a
 * guest writes can hurt its own vGPU process only.
 *
 * Threads: the daemon's only one.
 */
#ifndef FGV_BACKEND_SESSION_H
#define FGV_BACKEND_SESSION_H

#include <cuda.h>
#include <limits.h>
#include <sys/queue.h>
#include "backend/vm.h"
#include "shmring/window.h"

struct fgv_session;

struct fgv_sessions {
	const struct fgv_config *config;
	struct fgv_window layout;
	char vgpu_path[PATH_MAX];
	LIST_HEAD(, fgv_session) list;
	uint32_t count;
	uint32_t last_number;
};

/* A guest program whose hello is right and that may use its VM. */
struct fgv_client {
	int fd; /* its connection; stays the caller's */
	uid_t uid;
	pid_t pid;
	char program[FGV_NAME_MAX];
};

/* Finds the vGPU program; a negative errno and @why where there is none. */
int fgv_sessions_init(struct fgv_sessions *sessions, const struct fgv_config *config, char *why,
		      size_t why_len);

/*
 * Starts a session of @vm for @client. Any status but CUDA_SUCCESS refuses it, with
 * the reason in @text, and leaves nothing behind; else the new process has a copy of
 * the connection and says welcome.
 */
CUresult fgv_sessions_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
			    const struct fgv_client *client, char *text, size_t text_len);

/* Clears away behind the processes that have ended. Call on SIGCHLD. */
void fgv_sessions_reap(struct fgv_sessions *sessions);

/*
 * Tells all sessions to end, once. They end as when their guest does, in order, so that
 * what a kernel printed gets out. fgv_sessions_signal() is for those that don't. Then reap.
 */
void fgv_sessions_end(struct fgv_sessions *sessions);
void fgv_sessions_signal(struct fgv_sessions *sessions, int signal);

#endif
