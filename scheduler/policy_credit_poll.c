/*
 * The policy `credit-poll`: the paper's rival Credit-poll (section 5.3): Credit as in Xen, and a
 * guest that polls its response ring, on the processor, whether its vGPU is online or not.
 */
#include "scheduler/credit.h"

const struct fgv_policy fgv_policy_credit_poll = {
	.name = "credit-poll",
	.time_shared = true,
	.gpu_wait = FGV_POLICY_WAIT_POLL,
	.guest_wait = FGV_POLICY_WAIT_POLL,
	.cosched = FGV_POLICY_COSCHED_NONE,
	.init = fgv_credit_init,
	.attach = fgv_credit_attach,
	.detach = fgv_credit_detach,
	.wake = fgv_credit_wake,
	.sleep = fgv_credit_sleep,
	.pick = fgv_credit_pick,
	.next = fgv_credit_next,
	.put = fgv_credit_put,
	.tick = fgv_credit_tick,
};
