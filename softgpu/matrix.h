/*
 * A matrix instruction (wmma, mma, ldmatrix, movmatrix), between its lowering and its handler.
 *
 * A fragment is a matrix that lies in registers of all lanes. How wmma spreads one is not
 * specified: here its elements lie in the order of rows, from lane to lane, then from
 * register to register. Fragments of mma lie as the PTX ISA says.
 */
#ifndef FGV_SOFTGPU_MATRIX_H
#define FGV_SOFTGPU_MATRIX_H

#include "softgpu/machine.h"

#define FRAGMENT_REGS 8
#define FRAGMENT_MAX  512 /* elements */

enum element_type {
	ELEMENT_F16,
	ELEMENT_BF16,
	ELEMENT_TF32,
	ELEMENT_F32,
	ELEMENT_F64,
	ELEMENT_S8,
	ELEMENT_U8,
	ELEMENT_S32
};

enum fragment_order {
	ORDER_ROWS, /* wmma's */
	ORDER_A,    /* mma's, by operand */
	ORDER_B,
	ORDER_C
};

struct fragment {
	enum element_type type;
	enum fragment_order order;
	unsigned bytes; /* of an element */
	unsigned rows;
	unsigned columns;
	unsigned regs_count;
	unsigned regs_filled; /* those behind them repeat the first */
	uint32_t regs[FRAGMENT_REGS]; /* places, as in struct insn */
};

struct matrix_site {
	struct fragment d; /* loaded or stored, too */
	struct fragment a, b, c;
	bool satfinite;
	/* Loads and stores. */
	bool by_columns;
	bool is_shared;
	enum address_kind kind;
	uint32_t reg;
	int64_t imm;
	uint32_t stride;	 /* elements; OPERAND_NONE: */
	uint32_t default_stride; /* these many */
	/* ldmatrix and movmatrix: of 8 by 8 elements of 16 bits, how many, and whether turned. */
	unsigned count;
	bool is_turned;
};

#endif
