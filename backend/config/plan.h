/*
 * From one configuration to another while programs run: the list of what changes, or of all that
 * can't, by name. A pure comparison, which changes nothing.
 *
 * Threads: none.
 */
#ifndef FGV_BACKEND_CONFIG_PLAN_H
#define FGV_BACKEND_CONFIG_PLAN_H

#include "backend/config/config.h"

enum fgv_plan_kind { FGV_PLAN_ADDED, FGV_PLAN_REMOVED, FGV_PLAN_CHANGED };

struct fgv_plan_change {
	enum fgv_plan_kind kind;
	char vm[FGV_NAME_MAX];		  /* "": it is a key at the top */
	const struct fgv_config_key *key; /* CHANGED */
	char *before, *after;		  /* its values, as fgv_config_show() has them */
};

struct fgv_plan {
	struct fgv_plan_change *changes; /* keys at the top, then VMs: removed, changed, added */
	size_t count;
};

/* A VM of the configuration before, as it runs. */
struct fgv_plan_vm {
	unsigned programs;
	bool has_qemu; /* one that is connected */
};

/*
 * What it takes from @before to @after, for fgv_plan_fini(). @running: a VM each of @before, in its
 * order. VMs that are gone in @after and have programs or a QEMU are refused unless @ends: these
 * are to be ended. -EINVAL, and all that is refused in @why; -ENOMEM; and then there is no plan.
 */
int fgv_plan_make(struct fgv_plan *plan, const struct fgv_config *before,
		  const struct fgv_config *after, const struct fgv_plan_vm *running, bool ends,
		  char *why, size_t why_len);
void fgv_plan_fini(struct fgv_plan *plan);

/* A change as a line of text: "vm a: weight 1 -> 3". */
void fgv_plan_show(const struct fgv_plan_change *change, char *text, size_t len);

#endif
