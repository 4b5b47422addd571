/*
 * From PTX to the machine's instructions. A program is built from one or several PTX modules:
 * program.c gives every variable its address and every function its code, lower.c and
 * lower_*.c turn bodies into instructions, cfg.c finds where branches meet
 * again. Single-threaded; the first error is kept in the log and ends it.
 */
#ifndef FGV_SOFTGPU_LOWER_LOWER_H
#define FGV_SOFTGPU_LOWER_LOWER_H

#include "common/budget.h"
#include "ptx/ptx.h"
#include "softgpu/lower/pool.h"
#include "softgpu/machine.h"

#define FRAME_MAX	  (8u << 20)   /* bytes of registers of one function */
#define LOCAL_MAX	  (512u << 10) /* bytes of local memory per thread, as CUDA has it */
#define PARAMS_MAX	  32764u       /* bytes of a kernel's parameters */
#define STATIC_SHARED_MAX (64u << 10)
/* Where calls may nest without a bound: bytes of registers per warp and of local memory. */
#define DEEP_FRAMES (8u << 20) /* of all lanes */
#define DEEP_LOCAL  (16u << 10)

enum symbol_kind {
	SYMBOL_REG,	/* a register or a family of them */
	SYMBOL_ADDRESS, /* of global and const variables */
	SYMBOL_SHARED,	/* value: offset in shared memory */
	SYMBOL_DYNAMIC, /* extern shared: behind the static */
	SYMBOL_LOCAL,	/* value: offset in the frame's local memory */
	SYMBOL_PARAM,	/* value: offset in the kernel's parameters */
	SYMBOL_FUNCTION,
	SYMBOL_TABLE, /* branch targets */
	SYMBOL_PROTOTYPE,
	SYMBOL_EXTERN /* declared, defined nowhere */
};

struct symbol {
	enum symbol_kind kind;
	const char *name;
	enum ptx_type type;
	uint32_t reg_count; /* registers of a family, 0: no family */
	uint32_t *regs;	    /* their places; 0: none yet */
	uint64_t value;
	uint64_t bytes;
	uint32_t align;
	enum ptx_space space;
	unsigned linkage;
	const struct ptx_var *var;
	const struct ptx_targets *targets;
	const struct ptx_prototype *prototype;
	const struct ptx_function *function;
	struct code *code;
	const struct code *placed_for; /* SHARED, of the module: the kernel that value holds in */
	bool common;		       /* SHARED, of the module: value holds in all kernels */
	struct symbol *next; /* in the order of definition */
};

struct program {
	struct fgv_budget budget;
	struct pool pool;
	struct memory *memory;
	uint64_t data; /* global and const variables: one allocation, or 0 */
	uint64_t bytes; /* of it */
	uint64_t data_bytes;
	uint64_t const_address; /* where const variables are in it */
	uint64_t const_bytes;
	uint32_t shared_bytes;	/* of variables that belong to no kernel */
	bool shared_vars;	/* the module has some that belong to whoever names them */
	uint32_t dynamic_align; /* of extern shared arrays */
	struct map exports;	/* variables and kernels by name: struct symbol */
	struct map links;	/* what other modules may refer to */
	struct symbol *data_symbols;
	struct code **functions;
	uint32_t functions_count;
	bool indirect; /* there are calls by address */
	bool uses_reserved; /* libraries' part of shared memory */
	bool uses_heap;
};

struct scope {
	struct scope *outer;
	struct map symbols;
};

/* An instruction while its function grows: places are indices. */
struct draft {
	struct insn insn;
	uint32_t target; /* of a branch: a label */
	uint32_t join;	 /* found later: an instruction */
	const struct branch_table *table;
	uint32_t *table_labels;
};

#define NO_INDEX 0xffffffffu

#define KNOWN_REGS 512

struct known_reg {
	const char *name;
	uint32_t scopes; /* l->scopes when it was found */
	uint32_t index;
	struct symbol *symbol; /* NULL: no register */
};

struct lower {
	struct program *program;
	struct fgv_budget budget; /* of all that goes when the program is done */
	struct pool pool;      /* until the function is done */
	struct scope *globals; /* of the PTX module at hand */
	struct scope *scope;
	uint32_t scopes; /* raised with every change of what a name means */
	struct known_reg known_regs[KNOWN_REGS];
	const struct ptx_function *function;
	struct code *code;
	struct symbol *symbol;
	struct draft *drafts;
	uint32_t count;
	uint32_t capacity;
	struct map labels; /* name to index + 1 in places */
	uint32_t *places;  /* label to instruction */
	uint32_t labels_count;
	uint32_t labels_capacity;
	uint32_t end_label;
	uint32_t frame;
	uint32_t local;
	uint32_t shared; /* static shared memory, kernels only */
	uint8_t *consts;
	uint32_t consts_bytes;
	uint32_t consts_capacity;
	struct const_entry {
		uint64_t value;
		uint32_t size;
		uint32_t offset;
	} * const_table;
	uint32_t const_table_capacity;
	uint32_t const_table_count;
	struct draft scratch; /* what fgv_lower_emit() gives out after a failure */
	uint32_t line;
	bool failed;
	bool no_memory; /* and that is why */
	char *log;
	size_t log_len;
};

/* What an instruction's modifiers say. */
struct mods {
	enum ptx_type types[4];
	unsigned types_count;
	bool ftz;
	bool sat;
	bool satfinite;
	bool relu;
	bool approx;  /* .approx or .full */
	bool control; /* .uni, .aligned or .sync */
	char round;    /* 'n', 'z', 'm', 'p', of .rn and .rni and so on; 0: none */
	bool integral; /* .rni: to an integral value */
	unsigned vec;
	enum ptx_space space;
	char rest[64]; /* what is left, each with "_" before it */
};

/* lower.c */
void fgv_lower_fail(struct lower *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* There is none, or the module takes more than it may. */
void fgv_lower_no_memory(struct lower *l);
/* An array of the lowering's own with room for more, of its budget; NULL and failed, or it. */
void *fgv_lower_grow(struct lower *l, void *array, size_t bytes, size_t grown_bytes);
struct draft *fgv_lower_emit(struct lower *l, enum op op);
uint32_t fgv_lower_new_label(struct lower *l);
uint32_t fgv_lower_find_label(struct lower *l, const char *name);
void fgv_lower_place_label(struct lower *l, uint32_t label);
struct symbol *fgv_lower_find(const struct lower *l, const char *name);
/* Gives a shared variable of the module its place in all kernels, if it has none. */
void fgv_lower_place_common(struct lower *l, struct symbol *s);
/* Lowers the body of l->function into l->code. */
bool fgv_lower_function(struct lower *l);
/* Where parameters and results lie; before any body is lowered. */
bool fgv_lower_signature(struct lower *l, struct code *code, const struct ptx_function *f);
bool fgv_lower_declare(struct lower *l, struct scope *scope, const char *name, struct symbol *s);

/* operand.c */
uint32_t fgv_lower_temp(struct lower *l, unsigned size);
uint32_t fgv_lower_const(struct lower *l, uint64_t value, unsigned size);
/* The bytes of a register, 0 for a predicate; -1 where @op is no register. */
int fgv_lower_reg_size(struct lower *l, const struct ptx_operand *op);
uint32_t fgv_lower_reg(struct lower *l, const struct ptx_operand *op);
/* A source of @size bytes, 0: predicate; @is_float says what an F32 or F64 constant means. */
uint32_t fgv_lower_source(struct lower *l, const struct ptx_operand *op, unsigned size);
/* A destination; "_" gives a place that nobody reads. */
uint32_t fgv_lower_dest(struct lower *l, const struct ptx_operand *op, unsigned size);
uint32_t fgv_lower_predicate(struct lower *l, const struct ptx_operand *op);
const struct ptx_operand *fgv_lower_operand(const struct ptx_insn *insn, unsigned index);
/* A symbol's address in its own space, as a 4 or 8 byte operand. */
uint32_t fgv_lower_address_of(struct lower *l, const struct symbol *s, uint64_t offset,
			      unsigned size);
/* Fills imm, aux and o[4] of a memory instruction from [address]. */
struct memory_place {
	enum address_kind kind;
	uint32_t reg;
	int64_t imm;
	bool is_local; /* a .param of a call, or a function's parameter */
};
bool fgv_lower_place(struct lower *l, const struct ptx_operand *op, enum ptx_space space,
		     struct memory_place *place);
uint64_t fgv_lower_number(const struct ptx_operand *op, unsigned size);

/* mods.c */
void fgv_lower_mods(struct lower *l, const struct ptx_insn *insn, struct mods *m);
bool fgv_lower_has_mod(const struct ptx_insn *insn, const char *mod);
/* Fails where a modifier is neither a type nor one of @words: "sync up L2::*". */
bool fgv_lower_check_mods(struct lower *l, const struct ptx_insn *insn, const char *words);

/* insn.c */
bool fgv_lower_insn(struct lower *l, const struct ptx_insn *insn);
/* The type that has the bits of another and no sign. */
enum ptx_type fgv_lower_unsigned_type(enum ptx_type type);
/* A half of a register of four bytes, in one of two. */
uint32_t fgv_lower_half(struct lower *l, uint32_t whole, bool high);
/* The processor's rounding mode for the next instruction, where it is not the nearest. */
void fgv_lower_round(struct lower *l, char round);
void fgv_lower_alu(struct lower *l, const struct ptx_insn *insn);
/* d = op(a, ...) with places given. */
void fgv_lower_emit_op(struct lower *l, const char *key, uint32_t d, const uint32_t *sources,
		       unsigned count);

/* cvt.c, mem.c, flow.c, warp.c, compare.c */
typedef void (*lower_fn)(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_cvt(struct lower *l, const struct ptx_insn *insn);
/* short.c: conversions that involve types shorter than f32, in pairs or with more modes. */
/* True if it was one, lowered or failed. */
bool fgv_lower_cvt_short(struct lower *l, const struct ptx_insn *insn, const struct mods *m);
/* A value of type @from as f16, bf16, tf32 or a type of eight bits. */
void fgv_lower_narrow(struct lower *l, const struct mods *m, enum ptx_type to, enum ptx_type from,
		      uint32_t source, uint32_t d);
/* async.c */
void fgv_lower_mbarrier(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_cp(struct lower *l, const struct ptx_insn *insn);
/* video.c */
bool fgv_lower_is_video(const char *opcode);
void fgv_lower_video(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_mov(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_ld(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_st(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_atom(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_cvta(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_isspacep(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_mapa(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_zero(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_bra(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_brx(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_call(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_ret(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_exit(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_trap(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_bar(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_fence(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_nothing(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_vote(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_match(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_redux(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_shfl(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_activemask(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_tex(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_suld(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_sust(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_elect(struct lower *l, const struct ptx_insn *insn);
/* matrix.c */
void fgv_lower_wmma(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_mma(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_ldmatrix(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_movmatrix(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_setp(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_set(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_selp(struct lower *l, const struct ptx_insn *insn);
void fgv_lower_lop3(struct lower *l, const struct ptx_insn *insn);

/* check.c: whether all have the operands that their handlers use. */
bool fgv_lower_check(struct lower *l);

/* cfg.c: joins, and the drafts as code->insns. */
bool fgv_lower_finish(struct lower *l);

/*
 * program.c: all of it. What the program keeps is of @kept. On an error the log says why, and
 * nothing is left behind.
 */
CUresult fgv_program_create(struct memory *memory, struct fgv_budget *kept,
			    const char *const *texts, size_t count, char *log, size_t log_len,
			    struct program **program);
void fgv_program_destroy(struct program *program);

#endif
