/*
 * What gate.c (measuring, letting work through) and gate_grant.c (the grant) share. Others see
 * gate.h.
 */
#ifndef FGV_VGPU_GATE_PRIV_H
#define FGV_VGPU_GATE_PRIV_H

#include "backend/vgpu/gate.h"

static inline uint64_t fgv_gate_used_until(const struct fgv_gate *gate, uint64_t now_ns)
{
	return gate->used_ns + (gate->since_ns ? now_ns - gate->since_ns : 0);
}

static inline bool fgv_gate_is_limited(const struct fgv_gate *gate)
{
	return __atomic_load_n(&gate->grant->limit_ns, __ATOMIC_SEQ_CST) != FGV_GRANT_NO_LIMIT;
}

/* A mark covers this part of what may be unfinished. Each costs the GPU some 2 us between kernels. */
#define FGV_GATE_MARK_SHARE 4

/* Requests that may be queued behind others that do not end: fewer than the driver takes at
 * once. */
#define FGV_GATE_QUEUED_MAX 256

/* Use does not count any more, and the daemon is told how much there was. */
void fgv_gate_stop_clock(struct fgv_gate *gate, uint64_t now_ns);

/* Looks which marks have passed: whether any. */
int fgv_gate_look(struct fgv_session *session, struct fgv_gate *gate);

/* Whether there is work that its engine is at, or may be: copies wait for their streams. */
bool fgv_gate_is_running(const struct fgv_session *session, struct fgv_gate *gate);

#endif
