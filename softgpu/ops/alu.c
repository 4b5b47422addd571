/* Handlers of the integer operations (int.def), compiled once per instruction set. */
#include "softgpu/ops/lane_int.h"

#define OPS_ONLY_INT
#define OP1 GEN_OP1
#define OP2 GEN_OP2
#define OP3 GEN_OP3
#define OP4 GEN_OP4
#define CMP GEN_CMP
#include "softgpu/ops/ops.def"

#define SELECT(T)                                                            \
	HANDLER(selp_##T)                                                    \
	{                                                                    \
		const T *a = ROW(T, in->o[1]);                               \
		const T *b = ROW(T, in->o[2]);                               \
		T *d = ROW(T, in->o[0]);                                     \
		_Alignas(64) s32 p[LANES];                                   \
		spread_mask(p, predicate(w, in->o[3]));                      \
		if (w->full) {                                               \
			LANE_LOOP d[i] = p[i] ? a[i] : b[i];                 \
		} else {                                                     \
			const s32 *m = w->lanes;                             \
			LANE_LOOP                                            \
			{                                                    \
				T r = p[i] ? a[i] : b[i];                    \
				d[i] = m[i] ? r : d[i];                      \
			}                                                    \
		}                                                            \
		return in + 1;                                               \
	}
SELECT(u16)
SELECT(u32)
SELECT(u64)

HANDLER(and_pred)
{
	set_predicate(w, in->o[0], predicate(w, in->o[1]) & predicate(w, in->o[2]));
	return in + 1;
}

HANDLER(or_pred)
{
	set_predicate(w, in->o[0], predicate(w, in->o[1]) | predicate(w, in->o[2]));
	return in + 1;
}

HANDLER(xor_pred)
{
	set_predicate(w, in->o[0], predicate(w, in->o[1]) ^ predicate(w, in->o[2]));
	return in + 1;
}

HANDLER(not_pred)
{
	set_predicate(w, in->o[0], ~predicate(w, in->o[1]));
	return in + 1;
}

HANDLER(mov_pred)
{
	set_predicate(w, in->o[0], predicate(w, in->o[1]));
	return in + 1;
}

HANDLER(selp_pred)
{
	u32 p = predicate(w, in->o[3]);

	set_predicate(w, in->o[0],
		      (predicate(w, in->o[1]) & p) | (predicate(w, in->o[2]) & ~p));
	return in + 1;
}

/*
 * x + y + carry or x - y - borrow in each lane; the flag of a lane is its bit of
 * w->cc.
 */
#define CARRY(key, T, SOURCES, X, Y, SUBTRACT, USE, SET)                     \
	HANDLER(key)                                                         \
	{                                                                    \
		const T *pa = ROW(T, in->o[1]);                              \
		const T *pb = ROW(T, in->o[2]);                              \
		const T *pc = ROW(T, in->o[SOURCES]);                        \
		T *d = ROW(T, in->o[0]);                                     \
		u32 out = 0;                                                 \
		for (int i = 0; i < LANES; i++) {                            \
			T a = pa[i], b = pb[i], c = pc[i], r;                \
			T flag = USE ? w->cc >> i & 1 : 0;                   \
			bool over;                                           \
			(void)c;                                             \
			if (SUBTRACT) {                                      \
				over = __builtin_sub_overflow((T)(X), (T)(Y), &r); \
				over |= __builtin_sub_overflow(r, flag, &r); \
			} else {                                             \
				over = __builtin_add_overflow((T)(X), (T)(Y), &r); \
				over |= __builtin_add_overflow(r, flag, &r); \
			}                                                    \
			out |= (u32)over << i;                               \
			d[i] = w->active >> i & 1 ? r : d[i];                \
		}                                                            \
		if (SET)                                                     \
			w->cc = (w->cc & ~w->active) | (out & w->active);    \
		return in + 1;                                               \
	}
#include "softgpu/ops/carry.def"
#undef CARRY

void FILL(alu)(handler *table)
{
#define OP1(key, ...) table[OP_##key] = op_##key;
#define OP2(key, ...) table[OP_##key] = op_##key;
#define OP3(key, ...) table[OP_##key] = op_##key;
#define OP4(key, ...) table[OP_##key] = op_##key;
#define CMP(key, ...) table[OP_##key] = op_##key;
#define OPC2(key, ...) table[OP_##key] = op_##key;
#define OPC3(key, ...) table[OP_##key] = op_##key;
#define OPX(key)      table[OP_##key] = op_##key;
#include "softgpu/ops/ops.def"
}
