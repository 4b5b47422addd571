/* The list of policies. */
#include "scheduler/policy.h"

#include <stddef.h>
#include <string.h>

const struct fgv_policy *const fgv_policies[] = {
	&fgv_policy_fair,      &fgv_policy_credit_poll, &fgv_policy_credit_hs,
	&fgv_policy_strict_co, &fgv_policy_none,	&fgv_policy_gemini,
	&fgv_policy_fikit,     &fgv_policy_smguard,	NULL,
};

const struct fgv_policy *fgv_policy_find(const char *name)
{
	for (size_t i = 0; fgv_policies[i] != NULL; i++)
		if (strcmp(fgv_policies[i]->name, name) == 0)
			return fgv_policies[i];
	return NULL;
}
