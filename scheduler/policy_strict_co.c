/*
 * The policy `strict-co`: the paper's rival Strict coscheduling, after Pegasus (algorithms 1
 * and 2). Credit as in Xen; and when a processor is about to run a vCPU, its vGPU takes the
 * GPU at once, if it has at least the credit of every other.
 */
#include "scheduler/credit.h"

static bool strict_preempts(struct fgv_policy_gpu *gpu, struct fgv_policy_vgpu *vgpu,
			    bool vcpu_runs, uint64_t now_ns)
{
	(void)now_ns;
	return vcpu_runs && fgv_credit_coschedule(gpu, vgpu);
}

const struct fgv_policy fgv_policy_strict_co = {
	.name = "strict-co",
	.time_shared = true,
	.gpu_wait = FGV_POLICY_WAIT_POLL,
	.guest_wait = FGV_POLICY_WAIT_POLL,
	.cosched = FGV_POLICY_COSCHED_CPU,
	.init = fgv_credit_init,
	.attach = fgv_credit_attach,
	.detach = fgv_credit_detach,
	.wake = fgv_credit_wake,
	.sleep = fgv_credit_sleep,
	.pick = fgv_credit_pick,
	.next = fgv_credit_next,
	.put = fgv_credit_put,
	.preempts = strict_preempts,
	.tick = fgv_credit_tick,
};
