/*
 * The machine that runs PTX: what the lowering produces and the handlers execute.
 *
 * A warp is 32 lanes that run one instruction together under a mask. A register is
 * 32 values in a row, one per lane, so that a handler is a loop over lanes that the compiler
 * turns into vector instructions. A predicate is one 32-bit mask.
 *
 * Divergence: a warp is a tree of splits. A leaf runs; where a branch divides its
 * lanes, it becomes a join that waits at the branch's immediate post-dominator, and the
 * two sides become its children. A child that reaches the join's place is gone;
 * with the last one the join runs on with all lanes that have not exited. Leaves
 * of one warp are disjoint in lanes, so they share registers, stack and local memory.
 * Operations of a warp that name lanes wait for them wherever they are (gather.c).
 *
 * All warps of a block run on one thread, in turns: a warp runs until it waits
 * for a barrier, ends, or has used up its turn (a count of backward branches).
 *
 * Everything here belongs to one worker thread while a block runs, except struct program
 * and its parts (read-only after loading) and device memory.
 */
#ifndef FGV_SOFTGPU_MACHINE_H
#define FGV_SOFTGPU_MACHINE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/memory.h"

#define LANES	     32
#define ALL_LANES    0xffffffffu
#define SPLITS_MAX   192 /* see splits.c */
#define BARRIERS     16	 /* per block, as PTX has it */
#define VECTOR_MAX   4	 /* elements of one memory access */
#define WARPS_MAX    32	 /* 1024 threads */
#define CALLS_MAX    256 /* nested calls of one split */
#define CALL_RECORDS 4096 /* calls of all splits of a warp */
#define TURN_BRANCHES 4096 /* backward branches until another warp gets its turn */
#define TURN_INSNS    16   /* each so many instructions that one goes back count as one more */

/* Windows of the generic address space, above all that a process can map. */
#define SHARED_WINDOW 0x0002000000000000ull
#define LOCAL_WINDOW  0x0004000000000000ull
#define PARAM_WINDOW  0x0006000000000000ull
#define FUNCTION_WINDOW 0x0008000000000000ull
#define FUNCTION_STRIDE 16
#define WINDOW_SIZE   0x0000000100000000ull

struct insn;
struct softgpu_function;
struct warp;
struct block;
struct softgpu_system;
struct textures;

/* Runs one instruction; the next one, or NULL where the warp stops. */
typedef const struct insn *(*handler)(struct warp *w, const struct insn *in);

/*
 * An operand is a byte offset into the frame or, with OPERAND_CONST, into the
 * function's constants. OPERAND_NOT negates a predicate.
 */
#define OPERAND_CONST 1u
#define OPERAND_NOT   2u
#define OPERAND_NONE  0xfffffffcu

/* How a memory instruction's address is made; in->aux. */
enum address_kind {
	ADDRESS_REG64,	/* register + imm */
	ADDRESS_REG32,	/* register, 32 bits, + imm */
	ADDRESS_IMM,	/* imm */
	ADDRESS_FRAME	/* local memory: the frame's base + imm */
};

struct insn {
	handler run;
	int64_t imm;
	const struct insn *target; /* of a branch */
	const struct insn *join;   /* where its sides meet; NULL: they never do */
	uint32_t o[6];		   /* operands, see the handlers */
	uint16_t op;
	uint8_t vec; /* elements of a memory access */
	uint8_t aux;
	uint32_t line;
};

/* Where a parameter or a returned value lies in local memory. */
struct param_place {
	uint32_t offset;
	uint32_t bytes;
};

/* A function ready to run. */
/* Bytes of shared memory that cooperative groups have to themselves, as from sm_80 on. */
#define RESERVED_SHARED 1024u

struct code {
	const char *name;
	uint64_t token; /* its address, as PTX programs see it */
	bool entry;
	bool defined;
	struct insn *insns;
	uint32_t insns_count;
	uint8_t *consts; /* each constant operand's value in all lanes */
	uint32_t frame_bytes; /* registers */
	/* Local memory per thread: parameters (not a kernel's), returned values, variables. */
	uint32_t local_bytes;
	uint32_t params_count;
	struct param_place *params; /* a kernel's: in its parameter block */
	uint32_t param_bytes;
	struct param_place returned;
	struct call_edge *calls; /* what it calls */
	const struct code *noted_by; /* the function whose calls were noted last */
	struct softgpu_function *function; /* what names it outside, if it was asked for */
	/* A function that it or what it calls calls, and nobody defines; a trap stands for it. */
	const char *missing;
	unsigned missing_line;
	/* Kernels only. */
	bool reserves;	       /* something in its module uses what is libraries' own */
	int target;	       /* 75 for sm_75 */
	uint32_t shared_bytes; /* static */
	uint32_t dynamic_base; /* where dynamic shared memory begins */
	uint32_t max_threads;  /* of a block, as the program says; 0: it does not */
	uint32_t required_block[3];
	/* With everything that it may call. */
	uint32_t frame_total;
	uint32_t local_total;
	bool deep;     /* it may call without a bound */
	uint8_t visit; /* while the totals are computed */
};

struct call_edge {
	struct code *callee;
	struct call_edge *next;
};

/* brx.idx: where each index leads. */
struct branch_table {
	uint32_t count;
	const struct insn **targets;
};

/* A call: what is called, and where the caller has arguments and wants the result. */
struct call_site {
	const struct code *callee; /* NULL: the program's function of this address */
	struct code *const *functions;
	uint32_t functions_count;
	uint32_t args_count;
	struct param_place *args;
	struct param_place returned;
};

/* One function that runs: where its frame is, and where it returns to. */
struct call_record {
	struct call_record *caller;
	const struct code *code;
	uint32_t frame; /* in w->frames, behind the caller's */
	uint32_t local; /* in local memory */
	const struct call_site *site;
	const struct insn *resume;
	const struct insn *join; /* the split's, in the caller */
};

enum split_state {
	SPLIT_FREE,
	SPLIT_READY,
	SPLIT_JOIN,	/* waits for its children */
	SPLIT_BARRIER,	/* waits for the block's barrier */
	SPLIT_GATHER	/* waits for lanes of its warp; see gather.c */
};

struct split {
	const struct insn *pc;
	const struct insn *join;  /* where it meets its siblings; NULL: nowhere */
	struct call_record *call; /* the frame it runs in */
	uint32_t mask;
	uint8_t state;
	uint8_t parent; /* index; the root is its own */
	uint8_t children;
	uint32_t awaited; /* a barrier's number, or lanes */
};

struct warp {
	/* What handlers touch most. */
	uint8_t *base[2];  /* frame, constants */
	uint32_t active;   /* lanes that run now */
	uint32_t alive;	   /* lanes that exist and have not exited */
	uint32_t cc;	   /* carry flags */
	uint32_t together; /* lanes of several splits that do an operation at once; 0: one split's */
	uint32_t local;	   /* local memory: base of the frame */
	bool full;	   /* active == alive: lanes outside may be overwritten */
	bool quiet;	   /* no store yet since its start or a barrier; see block.c */
	uint8_t split;	   /* the split that runs */
	uint16_t index;	   /* of the warp in its block */
	int32_t turn;	   /* backward branches left */
	uint8_t *local_memory;
	const uint8_t *param; /* the kernel's parameters */
	uint32_t param_bytes;
	struct block *block;
	struct memory_view *view;
	_Alignas(64) int32_t lanes[LANES]; /* -1 in lanes that run, 0 in others */
	_Alignas(64) uint32_t tid[3][LANES];
	_Alignas(64) uint64_t given[LANES]; /* by lanes of several splits, as a row or a predicate */
	uint8_t *frames; /* registers of all frames */
	uint32_t splits_used; /* those behind were never in use */
	struct split splits[SPLITS_MAX];
	struct call_record *free_calls;
	uint32_t calls_used; /* those behind were never in use */
	struct call_record calls[CALL_RECORDS];
};

struct barrier {
	uint32_t count;	   /* threads that have come */
	uint32_t expected; /* threads that must; 0: all that are alive */
	uint32_t waiters;  /* splits that sleep here */
	uint32_t reduce_count; /* what bar.red gathers, */
	bool reduce_and;
	bool reduce_or;
	bool result_and; /* and what it found in the round before */
	bool result_or;
	uint32_t result_count;
};

struct block {
	/* Set once per launch, by whatever runs the block. */
	uint32_t nctaid[3];
	uint32_t ntid[3];
	uint32_t threads;
	uint32_t warps_count;
	uint32_t local_bytes;	/* per thread */
	uint32_t frame_bytes;	/* per warp */
	uint32_t shared_bytes;	/* static and dynamic, and at their end: */
	uint32_t reserved_bytes; /* what is libraries' own, with what aligns it */
	uint32_t dynamic_bytes; /* of them dynamic */
	uint32_t param_bytes;
	unsigned worker; /* shown as %smid */
	unsigned workers;
	uint64_t grid_id;
	uint64_t workspace; /* of a cooperative grid */
	const uint8_t *param;
	uint8_t *shared;
	uint8_t *local;
	uint8_t *frames;
	struct warp *warps;
	const int *stop; /* not 0: give up */
	struct softgpu_system *system; /* the device's */
	const struct textures *textures; /* the same */
	bool tids_ready; /* the warps know their threads' indices */
	/* Set per block. */
	uint32_t ctaid[3];
	/* The block's own. */
	uint32_t alive; /* threads */
	uint32_t yields; /* turns that its warps had to end for others */
	struct barrier barriers[BARRIERS];
	struct memory_view view;
	CUresult fault;
	const struct insn *fault_insn; /* NULL: no instruction's */
	const struct code *fault_code;
};

enum op {
	OP_NONE,
#define OP1(key, ...) OP_##key,
#define OP2(key, ...) OP_##key,
#define OP3(key, ...) OP_##key,
#define OP4(key, ...) OP_##key,
#define CMP(key, ...) OP_##key,
#define HALF1(key, ...) OP_##key,
#define HALF2(key, ...) OP_##key,
#define HALF3(key, ...) OP_##key,
#define OPC2(key, ...) OP_##key,
#define OPC3(key, ...) OP_##key,
#define OPX(key)      OP_##key,
#define LD(space, mem, width) OP_ld_##space##_##mem##_##width,
#define ST(space, mem, width) OP_st_##space##_##mem##_##width,
#define ATOM(key, ...)	 OP_atom_##key,
#include "softgpu/ops/ops.def"
	OPS
};

/* The types of an operation's operands. */
enum operand_type {
	TY_none,
	TY_u8, TY_u16, TY_u32, TY_u64, TY_s8, TY_s16, TY_s32, TY_s64,
	TY_f16, TY_bf16, TY_f32, TY_f64, TY_pred
};

struct op_info {
	const char *key;
	uint8_t types[5]; /* destination, then sources; of what is written by hand TY_none */
	bool computes;	  /* d = f(a, ...) and no more, so that a program may name it */
};

extern const struct op_info fgv_softgpu_ops[OPS];
/* OP_NONE where there is none of this name. */
enum op fgv_softgpu_op_find(const char *key);
/* The handlers for the processor at hand: OPS of them. */
const handler *fgv_softgpu_handlers(void);

/* Handler tables, one per instruction set that they were compiled for. */
#define FGV_ISA_TABLES(isa)                                     \
	void fgv_softgpu_fill_alu_##isa(handler *table);         \
	void fgv_softgpu_fill_float_##isa(handler *table);       \
	void fgv_softgpu_fill_half_##isa(handler *table);        \
	void fgv_softgpu_fill_mem_##isa(handler *table);         \
	void fgv_softgpu_fill_matrix_##isa(handler *table);      \
	void fgv_softgpu_fill_shared_##isa(handler *table);      \
	void fgv_softgpu_fill_warp_##isa(handler *table);
FGV_ISA_TABLES(base)
FGV_ISA_TABLES(v3)
FGV_ISA_TABLES(v4)
void fgv_softgpu_fill_control(handler *table);
void fgv_softgpu_fill_atomic(handler *table);
void fgv_softgpu_fill_system(handler *table);
void fgv_softgpu_fill_tex(handler *table);
void fgv_softgpu_fill_video(handler *table);
void fgv_softgpu_fill_async(handler *table);

/* block.c: what handlers ask of the block. */
/* Records a fault; NULL, for the handler to return. */
const struct insn *fgv_softgpu_fault(struct warp *w, const struct insn *in, CUresult code);
/* Makes the lanes of @mask the ones that run. */
void fgv_softgpu_set_active(struct warp *w, uint32_t mask);
/* The executing split stops at @next for barrier @id. */
const struct insn *fgv_softgpu_barrier_wait(struct warp *w, const struct insn *next, unsigned id,
					    uint32_t expected);
void fgv_softgpu_barrier_arrive(struct warp *w, unsigned id, uint32_t expected);
/* Barriers may be complete now that lanes have exited. */
void fgv_softgpu_barriers_check(struct block *block);
/*
 * An operation of the warp names lanes that are not here: the executing split waits for them. The next
 * instruction of whatever runs then, or NULL.
 */
const struct insn *fgv_softgpu_gather(struct warp *w, const struct insn *in);
/* Picks another split of the warp to run: its place, or NULL. */
const struct insn *fgv_softgpu_switch_split(struct warp *w);
/*
 * A block runs in turns, between which others may: CUDA_ERROR_NOT_READY while it is not at its
 * end, then the fault, or CUDA_SUCCESS.
 */
void fgv_softgpu_block_start(struct block *block, const struct code *code);
CUresult fgv_softgpu_block_turn(struct block *block, const struct code *code);

/*
 * One lane's access, for what is rare: @address is generic. A pointer to @size
 * bytes, or NULL where it is out of bounds. Local memory lies in words of four bytes,
 * lane by lane: its second word is LANES words behind the first.
 */
void *fgv_softgpu_lane_pointer(struct warp *w, uint64_t address, unsigned size, unsigned lane);
bool fgv_softgpu_lane_read(struct warp *w, uint64_t address, unsigned size, unsigned lane,
			   void *value);
bool fgv_softgpu_lane_write(struct warp *w, uint64_t address, unsigned size, unsigned lane,
			    const void *value);

#endif
