/*
 * The table of operations: names and operand types for the lowering, handlers for the
 * processor at hand. Both are made once, by whoever asks first.
 */
#include "softgpu/machine.h"

#include <pthread.h>
#include <string.h>

#define BUCKETS 4096 /* more than twice OPS */

const struct op_info fgv_softgpu_ops[OPS] = {
#define OP1(k, d, a, ...)	   [OP_##k] = {#k, {TY_##d, TY_##a}, true},
#define OP2(k, d, a, b, ...)	   [OP_##k] = {#k, {TY_##d, TY_##a, TY_##b}, true},
#define OP3(k, d, a, b, c, ...)	   [OP_##k] = {#k, {TY_##d, TY_##a, TY_##b, TY_##c}, true},
#define OP4(k, d, a, b, c, e, ...) [OP_##k] = {#k, {TY_##d, TY_##a, TY_##b, TY_##c, TY_##e}, true},
#define CMP(k, t, ...)		   [OP_##k] = {#k, {TY_pred, TY_##t, TY_##t}, true},
#define HALF1(k, T, R, ...)	   [OP_##k] = {#k, {TY_##R, TY_##R}, true},
#define HALF2(k, T, R, ...)	   [OP_##k] = {#k, {TY_##R, TY_##R, TY_##R}, true},
#define HALF3(k, T, R, ...)	   [OP_##k] = {#k, {TY_##R, TY_##R, TY_##R, TY_##R}, true},
#define OPC2(k, t)		   [OP_##k] = {#k, {TY_##t, TY_##t, TY_##t}, true},
#define OPC3(k, t)		   [OP_##k] = {#k, {TY_##t, TY_##t, TY_##t, TY_##t}, true},
#define OPX(k)			   [OP_##k] = {#k, {TY_none}, false},
#define LD(space, mem, width)                                                                      \
	[OP_ld_##space##_##mem##_##width] = {"ld_" #space "_" #mem "_" #width, {TY_none}, false},
#define ST(space, mem, width)                                                                      \
	[OP_st_##space##_##mem##_##width] = {"st_" #space "_" #mem "_" #width, {TY_none}, false},
#define ATOM(k, t, ...) [OP_atom_##k] = {"atom_" #k, {TY_##t, TY_##t, TY_##t}, false},
#include "softgpu/ops/ops.def"
};

static struct {
	pthread_once_t once;
	uint16_t buckets[BUCKETS];
	handler handlers[OPS];
} tables = {.once = PTHREAD_ONCE_INIT};

_Static_assert(OPS * 2 < BUCKETS, "the table of names is too full");

static unsigned hash(const char *key)
{
	unsigned h = 5381;

	for (; *key; key++)
		h = h * 33 + (unsigned char)*key;
	return h % BUCKETS;
}

/* A sanitized build, or one for coverage, has the handlers once (Makefile.inc). */
#ifdef FGV_ISA_VARIANTS
static bool fill_for_newer(handler *table)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512cd")) {
		fgv_softgpu_fill_alu_v4(table);
		fgv_softgpu_fill_float_v4(table);
		fgv_softgpu_fill_half_v4(table);
		fgv_softgpu_fill_mem_v4(table);
		fgv_softgpu_fill_matrix_v4(table);
		fgv_softgpu_fill_shared_v4(table);
		fgv_softgpu_fill_warp_v4(table);
		return true;
	}
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
	    __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe")) {
		fgv_softgpu_fill_alu_v3(table);
		fgv_softgpu_fill_float_v3(table);
		fgv_softgpu_fill_half_v3(table);
		fgv_softgpu_fill_mem_v3(table);
		fgv_softgpu_fill_matrix_v3(table);
		fgv_softgpu_fill_shared_v3(table);
		fgv_softgpu_fill_warp_v3(table);
		return true;
	}
	return false;
}
#else
static bool fill_for_newer(handler *table)
{
	(void)table;
	return false;
}
#endif

static void fill_handlers(handler *table)
{
	fgv_softgpu_fill_control(table);
	fgv_softgpu_fill_atomic(table);
	fgv_softgpu_fill_system(table);
	fgv_softgpu_fill_tex(table);
	fgv_softgpu_fill_video(table);
	fgv_softgpu_fill_async(table);
	if (fill_for_newer(table))
		return;
	fgv_softgpu_fill_alu_base(table);
	fgv_softgpu_fill_float_base(table);
	fgv_softgpu_fill_half_base(table);
	fgv_softgpu_fill_mem_base(table);
	fgv_softgpu_fill_matrix_base(table);
	fgv_softgpu_fill_shared_base(table);
	fgv_softgpu_fill_warp_base(table);
}

static void init_tables(void)
{
	for (unsigned op = OP_NONE + 1; op < OPS; op++) {
		unsigned h = hash(fgv_softgpu_ops[op].key);

		while (tables.buckets[h])
			h = (h + 1) % BUCKETS;
		tables.buckets[h] = (uint16_t)op;
	}
	fill_handlers(tables.handlers);
}

enum op fgv_softgpu_op_find(const char *key)
{
	unsigned h = hash(key);

	pthread_once(&tables.once, init_tables);
	for (; tables.buckets[h]; h = (h + 1) % BUCKETS) {
		if (!strcmp(fgv_softgpu_ops[tables.buckets[h]].key, key))
			return (enum op)tables.buckets[h];
	}
	return OP_NONE;
}

const handler *fgv_softgpu_handlers(void)
{
	pthread_once(&tables.once, init_tables);
	return tables.handlers;
}
