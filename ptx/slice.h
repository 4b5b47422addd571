/* What slice.c (which kernels can be sliced) and slice_rewrite.c share. Private to ptx/. */
#ifndef FGV_PTX_SLICE_H
#define FGV_PTX_SLICE_H

#include "ptx/ptx.h"

struct ptx_slice_item {
	const char *name; /* the module's string */
	struct ptx_item *item;
	bool is_reached;
	struct ptx_slice_item *next; /* of those that were reached, and not looked at */
};

struct ptx_slicing {
	struct ptx_module *module;
	struct ptx_error *error;
	struct ptx_slice_item *items; /* by name's address */
	size_t count;
	struct ptx_slice_item *waiting;
	const char *base; /* of all names that are added */
	unsigned line;
	int status;

	/* Of the rewriting. */
	bool tells_all;	    /* functions that are called get the part, too */
	bool has_narrow;    /* the function at hand wants halves of its registers */
	bool has_registers; /* ... or its registers at all */
	unsigned calls;	    /* of the function at hand */
};

void fgv_ptx_slice_fail(struct ptx_slicing *s, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void *fgv_ptx_slice_get(struct ptx_slicing *s, size_t size);
struct ptx_slice_item *fgv_ptx_slice_find(const struct ptx_slicing *s, const char *name);

/* Registers that say which block this is; and how many there are. */
bool fgv_ptx_slice_is_block(const char *name);
bool fgv_ptx_slice_is_grid(const char *name);

/* The function of a call. */
struct ptx_operand *fgv_ptx_slice_target(const struct ptx_insn *insn);

/* Of all that is left in the module. */
void fgv_ptx_slice_rewrite(struct ptx_slicing *s);

#endif
