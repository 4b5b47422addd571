/*
 * The sessions: one fairgv-vgpu process (warm.h) for each guest program. Hands it what it
 * needs, and clears away behind it however it ends.
 *
 * A session's window is made here, or by whatever starts it, and never read by the daemon: what
 * a guest writes can hurt its own vGPU process only.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_SESSION_H
#define FGV_BACKEND_SESSION_H

#include <cuda.h>
#include <sys/queue.h>
#include "backend/loop.h"
#include "backend/vm.h"
#include "shmring/window.h"

struct fgv_figures;
struct fgv_place;
struct fgv_journal;
struct fgv_mps;
struct fgv_session;
struct fgv_warm;

struct fgv_sessions {
	const struct fgv_config *config;
	const struct fgv_mps *mps;
	struct fgv_figures *figures; /* of the GPUs, for views */
	struct fgv_warm *warm;
	int loop;
	struct fgv_window layout;
	struct fgv_journal *journal; /* of their processes; NULL: none */
	struct fgv_place *place;     /* the books of the GPUs */
	LIST_HEAD(, fgv_session) list;
	uint32_t count;
	uint32_t last_number; /* of the session that was started last */
	uint64_t page_ns; /* when memory of GPUs is looked at next; 0: it never was */
	struct fgv_rate_users starts;
	uint32_t lacks;	    /* FGV_LACKS_* that are in the log */
	uint32_t hold_told; /* bits of the devices of which the log says how kernels are held */
};

/* A window that is there already, and what wakes its dispatcher. They stay the caller's. */
struct fgv_client_window {
	int fd;
	uint64_t off; /* in what fd is, which is more than this window */
	int doorbell_fd;
};

/* A guest program whose hello is right and that may use its VM. */
struct fgv_client {
	int fd; /* its connection; stays the caller's */
	uid_t uid;
	pid_t pid;
	bool is_user;	    /* its uid is one user's, who may start so many and no more */
	uint32_t guest_pid; /* as the guest says, who alone gets to see it */
	uint32_t priority;  /* that it wants; 0: the VM's */
	char program[FGV_NAME_MAX];
	struct fgv_msg_need need;		/* what it says that it needs; not trusted */
	const struct fgv_client_window *window; /* NULL: the session gets one of its own */
};

/* A negative errno, and @why says what is wrong. */
int fgv_sessions_init(struct fgv_sessions *sessions, const struct fgv_config *config,
		      struct fgv_warm *warm, int loop, char *why, size_t why_len);

/*
 * Whether @vm has as many sessions as it may have only because one of them is still ending. It
 * is worth while to try again when processes have been reaped, for FGV_ENDING_WAIT_MS.
 */
bool fgv_sessions_must_wait(struct fgv_sessions *sessions, struct fgv_vm *vm);

/* How many programs @vm has: sessions that are ending are none. */
unsigned fgv_sessions_programs(struct fgv_sessions *sessions, const struct fgv_vm *vm);

/*
 * Whether a program of @vm that needs @need can't be placed for now, but could be when others have
 * ended or given memory back. How long it may wait for that is a key of the VM's.
 */
bool fgv_sessions_lack_place(const struct fgv_sessions *sessions, const struct fgv_vm *vm,
			     const struct fgv_msg_need *need);

/*
 * Starts a session of @vm for @client. Any status but CUDA_SUCCESS refuses it, with
 * the reason in @text, and leaves nothing behind; else the process has a copy of the
 * connection and says welcome.
 */
CUresult fgv_sessions_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
			    const struct fgv_client *client, char *text, size_t text_len);

/* Clears away behind the processes that have ended; other children are left alone. On SIGCHLD. */
void fgv_sessions_reap(struct fgv_sessions *sessions);

/*
 * When fgv_sessions_tick() is next due (fgv_now_ns()); 0: not at all. It kills the processes
 * that are too slow to end.
 */
uint64_t fgv_sessions_deadline_ns(const struct fgv_sessions *sessions);
void fgv_sessions_tick(struct fgv_sessions *sessions);

/*
 * Ends one session, or all, once. Its program is told @why, if it is still there. They end in
 * order, so that what a kernel printed gets out. fgv_sessions_signal() is for those that don't.
 * Then reap.
 */
void fgv_session_end(struct fgv_session *session, const char *why);
void fgv_sessions_end(struct fgv_sessions *sessions, const char *why);
void fgv_sessions_end_vm(struct fgv_sessions *sessions, const struct fgv_vm *vm, const char *why);
void fgv_sessions_signal(struct fgv_sessions *sessions, int signal);

/* Ends session @number at once, and logs why; nothing where it has ended, or was told before. */
void fgv_sessions_kill(struct fgv_sessions *sessions, uint32_t number, const char *why);

/*
 * Has the memory of @session leave the GPU (docs/design/0028-movable.md), and come back; how far that
 * is. 0, also where it has been told so before; -ENOTSUP where it can't move, -ENOMEM where the host's
 * memory for that is used up, and @why.
 */
int fgv_session_freeze(struct fgv_session *session, char *why, size_t len);
void fgv_session_thaw(struct fgv_session *session);
/* Whether it can come back at once: -EBUSY where its memory is in a file, and @why. */
int fgv_session_check_thaw(const struct fgv_session *session, char *why, size_t len);
/* Whether it was told to have it leave. */
bool fgv_session_is_to_freeze(const struct fgv_session *session);
enum fgv_frozen fgv_session_frozen(const struct fgv_session *session);

/*
 * Has the process of a frozen session send what it has in the host's memory to @fd, one end of a
 * stream, or take it back from there (backend/vgpu/store.h). @fd stays the caller's, as does the
 * file at the other end, which @token names: for saving it is made here. 0; or a negative errno, and
 * @why.
 */
int fgv_session_save(struct fgv_session *session, int fd, uint8_t token[FGV_TOKEN_BYTES], char *why,
		     size_t len);
int fgv_session_load(struct fgv_session *session, int fd, const uint8_t token[FGV_TOKEN_BYTES],
		     char *why, size_t len);
/* Nothing that it sends there is longer. */
uint64_t fgv_session_file_bytes(const struct fgv_session *session);

/*
 * Has sessions take turns at the memory of GPUs that are over-committed
 * (docs/design/0028-movable.md); when that is next due (fgv_now_ns()), 0: not at all.
 */
void fgv_sessions_page_tick(struct fgv_sessions *sessions);
uint64_t fgv_sessions_page_deadline_ns(const struct fgv_sessions *sessions);
/* Whether memory of @session was told to be out until it is its turn. */
bool fgv_session_is_out(const struct fgv_session *session);

/* Kills those that may have shared memory whose keeper has died. After fgv_vms_reap(). */
void fgv_sessions_end_lost(struct fgv_sessions *sessions);

/* Forgets the sessions whose processes do not die. */
void fgv_sessions_fini(struct fgv_sessions *sessions);

/* The processes of @vm's sessions may have as many threads as its configuration gives them now. */
void fgv_sessions_limit_threads(struct fgv_sessions *sessions, const struct fgv_vm *vm);

/* Looks for the vCPUs that are to be favoured (cosched.h). When its bell has rung. */
void fgv_sessions_find_vcpus(struct fgv_sessions *sessions);

/* Session @number, or NULL. */
struct fgv_session *fgv_sessions_find(const struct fgv_sessions *sessions, uint32_t number);

/* Whether session @number has a process that has not been reaped. */
bool fgv_sessions_has(const struct fgv_sessions *sessions, uint32_t number);

/* What there is to see of a session. */
struct fgv_session_view {
	uint32_t number;
	const char *program; /* the session's own */
	pid_t pid;	     /* the guest program's */
	uint32_t guest_pid;  /* as it says itself */
	pid_t vgpu_pid;
	uid_t uid;
	struct fgv_account account;
	struct fgv_gpusched_stats stats;
};

void fgv_session_look(const struct fgv_session *session, struct fgv_session_view *view);
/* The share of its GPU number @i, counted from 0; NULL: it has fewer. */
const struct fgv_share *fgv_session_share(const struct fgv_session *session, unsigned i);
/* What it is charged for of @share's memory. */
uint64_t fgv_session_memory_on(const struct fgv_session *session, const struct fgv_share *share);
/* For how long it has used @share's GPU in the last second; FGV_RECENT_NS is all of it. */
uint64_t fgv_session_recent_on(const struct fgv_session *session, const struct fgv_share *share);
/* What of that memory is on the GPU, as its process says. */
uint64_t fgv_session_resident_on(const struct fgv_session *session, const struct fgv_share *share);
/* What it has there of memory that the VM's sessions share, which it is not charged for. */
uint64_t fgv_session_shared_on(const struct fgv_session *session, const struct fgv_share *share);
struct fgv_vm *fgv_session_vm(const struct fgv_session *session);

/* All sessions, the newest first: the one after @session, NULL for the first; NULL: no more. */
const struct fgv_session *fgv_sessions_next(const struct fgv_sessions *sessions,
					    const struct fgv_session *session);

#endif
