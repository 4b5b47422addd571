/*
 * PTX as a tree: read it, change it, write it again.
 *
 * The tree keeps what the text says and knows little of what it means: an
 * instruction is an opcode, its modifiers and its operands, in the order
 * written. .loc, .file, .section and .pragma are dropped (they change nothing
 * that is computed). fgv_ptx_print() writes a tree as text that reads back as the same
 * tree, so a tool may parse, edit and print.
 *
 * Memory: everything hangs in the module's arena and goes with it; nodes that a tool adds
 * come from fgv_ptx_alloc(), and strings from fgv_ptx_intern(), which gives equal
 * strings of one module the same address. Lists are linked by ->next.
 *
 * Input is hostile: nesting, name lengths and counts are bounded, and a text that is
 * not PTX gives an error with its line. Threads: a module is used by one
 * thread at a time; different modules are independent.
 */
#ifndef FGV_PTX_PTX_H
#define FGV_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FGV_PTX_TEXT_MAX    (256u << 20) /* bytes of one text */
/* What the tree of a text may take: so much, and so many bytes for each of the text's. */
#define FGV_PTX_TREE_BASE   (2u << 20)
#define FGV_PTX_TREE_FACTOR 32u
#define FGV_PTX_TREE_MAX    (512u << 20)
#define FGV_PTX_NAME_MAX    4096	 /* bytes of a name */
#define FGV_PTX_NESTING_MAX 64		 /* blocks in blocks, lists in lists */
#define FGV_PTX_DIMS_MAX    8		 /* dimensions of an array */
#define FGV_PTX_MODS_MAX    24		 /* modifiers of one instruction */
#define FGV_PTX_REGS_MAX    (1u << 20)	 /* N of %r<N> */
#define FGV_PTX_SIZE_MAX    (1ull << 40) /* bytes of one variable */

enum ptx_type {
	PTX_NOTYPE,
	PTX_B8,
	PTX_B16,
	PTX_B32,
	PTX_B64,
	PTX_B128,
	PTX_U8,
	PTX_U16,
	PTX_U32,
	PTX_U64,
	PTX_S8,
	PTX_S16,
	PTX_S32,
	PTX_S64,
	PTX_F16,
	PTX_F16X2,
	PTX_BF16,
	PTX_BF16X2,
	PTX_TF32,
	PTX_U16X2,
	PTX_S16X2,
	PTX_E4M3X2,
	PTX_E5M2X2,
	PTX_F32,
	PTX_F64,
	PTX_PRED,
	PTX_TEXREF,
	PTX_SAMPLERREF,
	PTX_SURFREF,
	PTX_TYPES
};

enum ptx_space {
	PTX_NOSPACE,
	PTX_REG,
	PTX_CONST,
	PTX_GLOBAL,
	PTX_LOCAL,
	PTX_PARAM,
	PTX_SHARED,
	PTX_TEX,
	PTX_SPACES
};

/* Linkage, a set of bits. None: private to its text. */
enum { PTX_EXTERN = 1, PTX_VISIBLE = 2, PTX_WEAK = 4, PTX_COMMON = 8 };

/* An initialiser: a value or a list of initialisers. */
enum ptx_init_kind { PTX_INIT_LIST, PTX_INIT_INT, PTX_INIT_F32, PTX_INIT_F64, PTX_INIT_SYMBOL };

struct ptx_init {
	enum ptx_init_kind kind;
	/* The integer, the bits of the float, or what is added to the symbol. */
	uint64_t value;
	const char *symbol;
	uint64_t mask; /* 0xFF00(symbol): these bits of the address; 0: all */
	bool generic;  /* generic(symbol): the generic address, not the one in its space */
	struct ptx_init *list;
	struct ptx_init *next;
};

/* A register, a parameter or a variable. */
struct ptx_var {
	const char *name; /* of %r<N>: the %r */
	enum ptx_space space;
	enum ptx_type type;
	unsigned linkage;
	uint32_t align;	    /* bytes; 0: as the type has it */
	uint32_t vector;    /* 2, 4 or 8 elements of type; 1: no vector */
	uint32_t reg_count; /* N of %r<N>; 0: one register, called name */
	uint32_t dims_count;
	uint64_t dims[FGV_PTX_DIMS_MAX]; /* the first may be 0: size not said */
	bool managed;
	/* .ptr of a kernel's parameter, with the space and alignment pointed to */
	bool ptr;
	enum ptx_space ptr_space;
	uint32_t ptr_align;
	struct ptx_init *init;
	unsigned line;
	struct ptx_var *next;
};

enum ptx_operand_kind {
	PTX_OP_NAME,	/* register, special register, variable, label; !name; name+8 */
	PTX_OP_INT,	/* value */
	PTX_OP_F32,	/* value: the bits */
	PTX_OP_F64,	/* value: the bits */
	PTX_OP_ADDRESS, /* [name+value], [value], [name, {..}]: list is what follows */
	PTX_OP_VECTOR,	/* {list} */
	PTX_OP_PAREN,	/* (list), of a call */
	PTX_OP_SINK	/* _ */
};

struct ptx_operand {
	enum ptx_operand_kind kind;
	bool negated;	    /* !name */
	const char *name;   /* NAME; ADDRESS: base, NULL where there is none */
	const char *member; /* "x" of name.x, or NULL */
	uint64_t value;	    /* the number, or what is added to the name */
	struct ptx_operand *list;
	struct ptx_operand *pipe; /* b of a|b */
	struct ptx_operand *next;
};

struct ptx_insn {
	const char *guard; /* predicate of @p, or NULL */
	bool guard_negated;
	const char *opcode; /* "ld" */
	unsigned mods_count;
	const char **mods; /* "global", "v4", "f32" */
	unsigned operands_count;
	struct ptx_operand *operands;
};

/* "name: .branchtargets a, b;", .calltargets, and .callprototype. */
struct ptx_prototype {
	const char *name;
	struct ptx_var *returns;
	struct ptx_var *params;
	bool noreturn;
};

struct ptx_targets {
	const char *name;
	bool calls; /* .calltargets */
	struct ptx_operand *list;
};

enum ptx_stmt_kind {
	PTX_STMT_INSN,
	PTX_STMT_LABEL,
	PTX_STMT_VAR,
	PTX_STMT_BLOCK,
	PTX_STMT_TARGETS,
	PTX_STMT_PROTOTYPE
};

struct ptx_stmt {
	enum ptx_stmt_kind kind;
	unsigned line;
	union {
		struct ptx_insn insn;
		const char *label;
		struct ptx_var *var;
		struct ptx_stmt *block; /* a scope of its own */
		struct ptx_targets targets;
		struct ptx_prototype prototype;
	};
	struct ptx_stmt *next;
};

/* .maxntid 256, 1, 1 and the like: the name without its dot. */
struct ptx_directive {
	const char *name;
	unsigned values_count;
	uint64_t values[3];
	struct ptx_directive *next;
};

struct ptx_function {
	const char *name;
	bool entry;
	unsigned linkage;
	struct ptx_var *returns;
	struct ptx_var *params;
	struct ptx_directive *directives;
	bool defined; /* has a body, which may be empty */
	struct ptx_stmt *body;
	unsigned line;
};

struct ptx_alias {
	const char *name;
	const char *target;
};

enum ptx_item_kind { PTX_ITEM_VAR, PTX_ITEM_FUNCTION, PTX_ITEM_ALIAS };

struct ptx_item {
	enum ptx_item_kind kind;
	union {
		struct ptx_var *var;
		struct ptx_function *function;
		struct ptx_alias alias;
	};
	struct ptx_item *next;
};

struct ptx_arena;

struct ptx_module {
	struct ptx_arena *arena;
	unsigned version_major;
	unsigned version_minor;
	const char *target; /* "sm_75, debug": as written */
	unsigned address_size;
	struct ptx_item *items; /* in the order of the text */
};

struct ptx_error {
	unsigned line; /* from 1 */
	char reason[160];
};

/*
 * Parses @length bytes of @text (a NUL ends it earlier; PTX comes as a C string).
 * -EINVAL: not PTX, @error says why. -ENOMEM: there is none, or the tree takes more than it may
 * (FGV_PTX_TREE_MAX), and @error says where. -EFBIG (longer than
 * FGV_PTX_TEXT_MAX). On success the caller destroys *@module.
 */
int fgv_ptx_parse(const char *text, size_t length, struct ptx_module **module,
		  struct ptx_error *error);
void fgv_ptx_destroy(struct ptx_module *module);

/* Writes the tree as text: malloc'd, NUL-terminated, the caller's. -ENOMEM. */
int fgv_ptx_print(const struct ptx_module *module, char **text, size_t *length);

/* Zeroed memory that lives as long as the module; NULL where there is none. */
void *fgv_ptx_alloc(struct ptx_module *module, size_t size);
const char *fgv_ptx_intern(struct ptx_module *module, const char *text, size_t length);

/*
 * A managed variable that lies at @memory of this process, and of every other that runs
 * the module: what names it there is given that address.
 */
struct ptx_placement {
	const char *name;
	void *memory;
	uint64_t bytes;
	bool is_loaded; /* any variable, of which another module is: its value stays as it is */
};

/*
 * Takes the variables of @placements that @module has out of it, and writes the
 * initial values of those managed ones that it defines. -EINVAL or -ENOENT, and @error, where that can't be
 * done; -ENOMEM. After a failure the module is good for nothing.
 */
int fgv_ptx_place(struct ptx_module *module, const struct ptx_placement *placements, size_t count,
		  struct ptx_error *error);

/* What a launch of a part is told: where the part begins, and the blocks of the whole grid. */
struct ptx_part {
	uint32_t first[3];
	uint32_t grid[3];
};

/*
 * Leaves in @module the kernel @name alone, with what that reaches, and gives it one parameter
 * more, a struct ptx_part: it takes itself for the block of the whole grid that lies as far behind
 * the part's first as it does behind its launch's. Variables in .const are read as those in
 * .global: both are for fgv_ptx_place() to put where another module has them.
 *
 * -ENOENT: no such kernel. -EOPNOTSUPP, and @error: a launch of parts would not be the same, or
 * that can't be told. -ENOMEM. After a failure the module is good for nothing.
 */
int fgv_ptx_slice(struct ptx_module *module, const char *name, struct ptx_error *error);

/* The address that a symbol stands for in @init, with what is added to it; or -errno. */
typedef int fgv_ptx_symbol_value(const struct ptx_init *init, uint64_t *address, void *arg);

/*
 * Writes the initial value of @var, which has one, to @bytes; what it does not mention stays.
 * -ENOSPC: more values than @len bytes hold, -EINVAL: a type without values, or what
 * @symbol_value returned.
 */
int fgv_ptx_var_fill(const struct ptx_var *var, void *bytes, uint64_t len,
		     fgv_ptx_symbol_value *symbol_value, void *arg);

/* What @init takes of the address that its symbol stands for: the bits of its mask. */
uint64_t fgv_ptx_init_masked(const struct ptx_init *init, uint64_t address);

/* The bits of a float of 4 or 8 bytes as one of 8 or 4; other sizes leave them as they are. */
uint64_t fgv_ptx_resize_float(uint64_t bits, unsigned from_bytes, unsigned to_bytes);

/* Bytes of one element; 0 for PTX_NOTYPE, PTX_PRED and the opaque types. */
unsigned fgv_ptx_type_size(enum ptx_type type);
/* "f32", without the dot. */
const char *fgv_ptx_type_name(enum ptx_type type);
/* PTX_NOTYPE where @name is no type. */
enum ptx_type fgv_ptx_type_find(const char *name);
const char *fgv_ptx_space_name(enum ptx_space space);
/* PTX_NOSPACE where @name is no space; "shared::cta" is shared. */
enum ptx_space fgv_ptx_space_find(const char *name);
/* Bytes of a variable, 0 where its first dimension is not said. */
uint64_t fgv_ptx_var_size(const struct ptx_var *var);
/* The alignment written, or the one that its type asks for. */
uint32_t fgv_ptx_var_align(const struct ptx_var *var);

#endif
