/*
 * What fairgvctl top shows, made of two successive reports of the daemon: GPUs, VMs with their
 * sessions and history, and the rows of the table, sorted and filtered.
 *
 * Threads: one. Out of memory ends the program, as for tables (ctl.h).
 */
#ifndef FGV_TOOLS_TOP_MODEL_H
#define FGV_TOOLS_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FGV_TOP_NAME_LEN 80
#define FGV_TOP_HISTORY	 512 /* samples of each VM */
#define FGV_TOP_NO_LIMIT UINT64_MAX
#define FGV_TOP_WHOLE	 1000 /* shares are in thousandths */

enum fgv_top_sort {
	FGV_TOP_BY_NAME,
	FGV_TOP_BY_USED,
	FGV_TOP_BY_WAIT,
	FGV_TOP_BY_MEMORY,
	FGV_TOP_SORTS
};

struct fgv_top_gpu {
	uint64_t device;
	char name[FGV_TOP_NAME_LEN], policy[FGV_TOP_NAME_LEN];
	unsigned used; /* of its time */
	uint64_t memory_used, memory;
};

/* A VM or a session. */
struct fgv_top_row {
	bool is_session;
	char name[FGV_TOP_NAME_LEN]; /* of the VM, or of the program */
	char vm[FGV_TOP_NAME_LEN];
	uint64_t number; /* of the session */
	char state[FGV_TOP_NAME_LEN];
	uint64_t device, weight;
	unsigned owed, used;	/* of the GPU's time */
	uint64_t wait_ns;	/* 99 of 100 waits took no longer */
	uint64_t memory, limit; /* FGV_TOP_NO_LIMIT */
	double launches;	/* a second */
};

struct fgv_top_vm {
	struct fgv_top_row row;
	struct fgv_top_row *sessions;
	size_t session_count;
	unsigned history[FGV_TOP_HISTORY]; /* what it used, the newest last */
	size_t history_len;
};

struct fgv_top_model {
	/* What the user has chosen. */
	enum fgv_top_sort sort;
	bool reversed, no_sessions;
	char filter[FGV_TOP_NAME_LEN];

	json_t *report; /* the newest one; NULL: none yet */
	bool has_rates; /* there was one before it */
	struct fgv_top_gpu *gpus;
	size_t gpu_count;
	struct fgv_top_vm *vms;
	size_t vm_count;
	/* Rows that are to be seen, in their order; they are the VMs' and sessions' above. */
	const struct fgv_top_row **rows;
	size_t row_count;
};

/* All zero is a model without a report. */
void fgv_top_model_fini(struct fgv_top_model *model);

/* Goes on to @report, which is taken over. -EPROTO if it is not one; then nothing has changed. */
int fgv_top_model_take(struct fgv_top_model *model, json_t *report);

/* Sorts and filters anew, after a choice has changed. */
void fgv_top_model_arrange(struct fgv_top_model *model);

/* The VM that @row is, or is a session of. */
const struct fgv_top_vm *fgv_top_model_vm(const struct fgv_top_model *model,
					  const struct fgv_top_row *row);

#endif
