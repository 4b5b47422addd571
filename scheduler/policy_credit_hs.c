/*
 * The policy `credit-hs`: the paper's rival Credit-hs (section 5.3): Credit as in Xen with hybrid
 * spinning, that is, a guest that has waited for a while yields its processor to the next one.
 */
#include "scheduler/credit.h"

const struct fgv_policy fgv_policy_credit_hs = {
	.name = "credit-hs",
	.time_shared = true,
	.gpu_wait = FGV_POLICY_WAIT_POLL,
	.guest_wait = FGV_POLICY_WAIT_YIELD,
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
