/*
 * Credit scheduling as in Xen (the paper's reference 26), the common part of the paper's
 * rivals credit-poll, credit-hs and strict-co; see credit.c. Their tables are in
 * policy_credit_poll.c, policy_credit_hs.c and policy_strict_co.c.
 */
#ifndef FGV_SCHEDULER_CREDIT_H
#define FGV_SCHEDULER_CREDIT_H

#include "scheduler/policy.h"

void fgv_credit_init(struct fgv_policy_gpu *gpu, uint64_t now_ns);
int fgv_credit_attach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);
void fgv_credit_detach(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu);
void fgv_credit_wake(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);
void fgv_credit_sleep(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);
struct fgv_policy_vgpu *fgv_credit_pick(struct fgv_policy_gpu *gpu, uint64_t now_ns);
struct fgv_policy_vgpu *fgv_credit_next(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *holder,
					uint64_t used_ns, uint64_t now_ns);
void fgv_credit_put(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu, uint64_t now_ns);
uint64_t fgv_credit_tick(struct fgv_policy_gpu *gpu, uint64_t now_ns);

/* Algorithm 2: has @vgpu at least the credit of every other? Then it is picked next. */
bool fgv_credit_coschedule(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu);

#endif
