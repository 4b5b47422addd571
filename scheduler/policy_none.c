/*
 * The policy `none`: each session that asks holds a grant, for as long as it likes, and the
 * driver's own scheduling decides. Usage is still counted.
 */
#include "scheduler/policy.h"

const struct fgv_policy fgv_policy_none = {
	.name = "none",
	.gpu_wait = FGV_POLICY_WAIT_BLOCK,
	.guest_wait = FGV_POLICY_WAIT_BLOCK,
};
