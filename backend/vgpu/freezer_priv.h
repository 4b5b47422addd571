/*
 * What the files of the freezer share: freezer.c, and freezer_file.c, which is for files.
 */
#ifndef FGV_VGPU_FREEZER_PRIV_H
#define FGV_VGPU_FREEZER_PRIV_H

#include "backend/vgpu/session.h"

static inline bool fgv_freezer_is_mine(const struct fgv_session *session, const uint64_t *bits)
{
	return __atomic_load_n(bits, __ATOMIC_SEQ_CST) >> session->setup.account & 1;
}

/* By the administrator, or since others have their turn. */
static inline bool fgv_freezer_is_wanted(const struct fgv_session *session)
{
	const struct fgv_allowance *allowance = session->allowance;

	return fgv_freezer_is_mine(session, &allowance->frozen) ||
	       fgv_freezer_is_mine(session, &allowance->out);
}

static inline void fgv_freezer_say(struct fgv_session *session, enum fgv_frozen frozen)
{
	__atomic_store_n(&session->account->frozen, frozen, __ATOMIC_RELEASE);
}

/* One thing has changed. */
static inline int fgv_freezer_go_to(struct fgv_session *session, enum fgv_freezer_state state)
{
	session->freezer.state = state;
	return 1;
}

/* Behind all that is on the GPU; drop_fence() where that is not wanted any more. */
bool fgv_freezer_has_passed(struct fgv_session *session);

/* --- freezer_sweep.c ------------------------------------------------------------- */

/* Begins with the first piece. CUDA_ERROR_OUT_OF_MEMORY, of the host, leaves all as it was. */
CUresult fgv_freezer_begin_sweep(struct fgv_session *session, enum fgv_haul_way way);
/* As fgv_haul_turn(), while the session has the engine. */
CUresult fgv_freezer_sweep(struct fgv_session *session, unsigned *moved);
/* On the way out: what the host has leaves the GPU, as far as that has come. How much has changed. */
int fgv_freezer_release(struct fgv_session *session);

/* --- freezer_file.c -------------------------------------------------------------- */

/* Turns of the states of freezer_file.c; and whatever is under way there ends. */
int fgv_freezer_save(struct fgv_session *session);
int fgv_freezer_load(struct fgv_session *session);
void fgv_freezer_stop_file(struct fgv_session *session);

#endif
