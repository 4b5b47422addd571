/*
 * Comparing configurations; see plan.h.
 */
#include "backend/config/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is refused goes to @refused, clause by clause. */
struct comparison {
	struct fgv_plan *plan;
	const struct fgv_config *before, *after;
	bool ends;
	FILE *refused;
};

static struct fgv_plan_change *add(struct fgv_plan *plan, enum fgv_plan_kind kind, const char *vm)
{
	struct fgv_plan_change *changes =
		reallocarray(plan->changes, plan->count + 1, sizeof(*changes));
	struct fgv_plan_change *change;

	if (!changes)
		return NULL;
	plan->changes = changes;
	change = &changes[plan->count++];
	*change = (struct fgv_plan_change){.kind = kind};
	snprintf(change->vm, sizeof(change->vm), "%s", vm);
	return change;
}

static int add_value(struct fgv_plan *plan, const char *vm, const struct fgv_config_key *key,
		     const void *before, const void *after)
{
	struct fgv_plan_change *change = add(plan, FGV_PLAN_CHANGED, vm);

	if (!change)
		return -ENOMEM;
	change->key = key;
	change->before = fgv_config_show(key, before);
	change->after = fgv_config_show(key, after);
	return change->before && change->after ? 0 : -ENOMEM;
}

/* --- What is refused ---------------------------------------------------------- */

static void begin_clause(const struct comparison *comparison)
{
	if (ftell(comparison->refused) > 0)
		fputs("; ", comparison->refused);
}

/* The keys of one group that differ and are of this kind, after @head, which is said once. */
static void refuse_keys(const struct comparison *comparison, const char *vm, const void *before,
			const void *after, enum fgv_config_when when, const char *tail)
{
	size_t count, found = 0;
	const struct fgv_config_key *keys = fgv_config_keys(&count);

	for (size_t i = 0; i < count; i++) {
		if (keys[i].of_vm != (vm != NULL) || keys[i].when != when ||
		    keys[i].type == FGV_CONFIG_NAME || fgv_config_is_same(&keys[i], before, after))
			continue;
		if (!found++)
			begin_clause(comparison);
		if (found == 1 && vm)
			fprintf(comparison->refused, "vm %s: ", vm);
		fprintf(comparison->refused, "%s%s", found > 1 ? ", " : "", keys[i].name);
	}
	if (found)
		fprintf(comparison->refused, " %s", tail);
}

static void refuse_removal(const struct comparison *comparison, const char *vm,
			   const struct fgv_plan_vm *running)
{
	begin_clause(comparison);
	fprintf(comparison->refused, "vm %s is not in it any more, but has ", vm);
	if (running->programs)
		fprintf(comparison->refused, "%u program%s", running->programs,
			running->programs > 1 ? "s" : "");
	if (running->has_qemu)
		fprintf(comparison->refused, "%sa QEMU", running->programs ? " and " : "");
	fputs(" (\"fairgvctl reload --end\" ends them)", comparison->refused);
}

static void refuse_all(const struct comparison *comparison, const struct fgv_plan_vm *running)
{
	const struct fgv_config *before = comparison->before, *after = comparison->after;

	refuse_keys(comparison, NULL, before, after, FGV_CONFIG_RESTART,
		    "can only be changed by starting the daemon again");
	for (size_t i = 0; i < before->vm_count; i++) {
		const struct fgv_config_vm *vm = &before->vms[i];
		const struct fgv_config_vm *next = fgv_config_find_vm(after, vm->name);

		if (next)
			refuse_keys(comparison, vm->name, vm, next, FGV_CONFIG_RESTART,
				    "can only be changed by starting the daemon again");
		if (next && running[i].has_qemu)
			refuse_keys(comparison, vm->name, vm, next, FGV_CONFIG_NO_QEMU,
				    "can only be changed when its QEMU has ended");
		if (!next && !comparison->ends && (running[i].programs || running[i].has_qemu))
			refuse_removal(comparison, vm->name, &running[i]);
	}
}

/* Cut, where it is too long, at a place that shows it. */
static int refuse(const char *refused, char *why, size_t why_len)
{
	int len = snprintf(why, why_len, "%s", refused);

	if (len >= (int)why_len && why_len > 4)
		strcpy(why + why_len - 4, "...");
	return -EINVAL;
}

static int check(struct comparison *comparison, const struct fgv_plan_vm *running, char *why,
		 size_t why_len)
{
	char *refused = NULL;
	size_t len;
	int ret = 0;

	comparison->refused = open_memstream(&refused, &len);
	if (!comparison->refused)
		return -ENOMEM;
	refuse_all(comparison, running);
	if (fclose(comparison->refused))
		ret = -ENOMEM;
	else if (*refused)
		ret = refuse(refused, why, why_len);
	free(refused);
	return ret;
}

/* --- What changes ------------------------------------------------------------- */

/* @vm: NULL at the top. */
static int list_keys(struct fgv_plan *plan, const char *vm, const void *before, const void *after)
{
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);
	int ret = 0;

	for (size_t i = 0; i < count && !ret; i++) {
		if (keys[i].of_vm != (vm != NULL) || fgv_config_is_same(&keys[i], before, after))
			continue;
		ret = add_value(plan, vm ? vm : "", &keys[i], before, after);
	}
	return ret;
}

static int list_all(const struct comparison *comparison)
{
	const struct fgv_config *before = comparison->before, *after = comparison->after;
	struct fgv_plan *plan = comparison->plan;
	int ret = list_keys(plan, NULL, before, after);

	for (size_t i = 0; i < before->vm_count && !ret; i++) {
		const char *name = before->vms[i].name;

		if (!fgv_config_find_vm(after, name))
			ret = add(plan, FGV_PLAN_REMOVED, name) ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < before->vm_count && !ret; i++) {
		const struct fgv_config_vm *vm = &before->vms[i];
		const struct fgv_config_vm *next = fgv_config_find_vm(after, vm->name);

		if (next)
			ret = list_keys(plan, vm->name, vm, next);
	}
	for (size_t i = 0; i < after->vm_count && !ret; i++) {
		const char *name = after->vms[i].name;

		if (!fgv_config_find_vm(before, name))
			ret = add(plan, FGV_PLAN_ADDED, name) ? 0 : -ENOMEM;
	}
	return ret;
}

int fgv_plan_make(struct fgv_plan *plan, const struct fgv_config *before,
		  const struct fgv_config *after, const struct fgv_plan_vm *running, bool ends,
		  char *why, size_t why_len)
{
	struct comparison comparison = {plan, before, after, ends, NULL};
	int ret;

	*plan = (struct fgv_plan){0};
	ret = check(&comparison, running, why, why_len);
	if (!ret)
		ret = list_all(&comparison);
	if (ret == -ENOMEM)
		snprintf(why, why_len, "out of memory");
	if (ret)
		fgv_plan_fini(plan);
	return ret;
}

void fgv_plan_fini(struct fgv_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		free(plan->changes[i].before);
		free(plan->changes[i].after);
	}
	free(plan->changes);
	*plan = (struct fgv_plan){0};
}

void fgv_plan_show(const struct fgv_plan_change *change, char *text, size_t len)
{
	static const char *const events[] = {"added", "removed"};

	if (change->kind == FGV_PLAN_CHANGED)
		snprintf(text, len, "%s%s%s%s %s -> %s", *change->vm ? "vm " : "", change->vm,
			 *change->vm ? ": " : "", change->key->name, change->before, change->after);
	else
		snprintf(text, len, "vm %s: %s", change->vm, events[change->kind]);
}
