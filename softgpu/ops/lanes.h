/*
 * What handlers are made of: lane types, access to operands, loops over lanes, and
 * the arithmetic of one lane. Included by the ops_*.c files, which are compiled
 * once per instruction set.
 */
#ifndef FGV_SOFTGPU_OPS_LANES_H
#define FGV_SOFTGPU_OPS_LANES_H

#include "softgpu/machine.h"

#include <string.h>

/* The same bytes are read as different types, as PTX registers are. */
#define LANE_TYPE __attribute__((may_alias))
typedef uint8_t LANE_TYPE u8;
typedef uint16_t LANE_TYPE u16;
typedef uint32_t LANE_TYPE u32;
typedef uint64_t LANE_TYPE u64;
typedef int8_t LANE_TYPE s8;
typedef int16_t LANE_TYPE s16;
typedef int32_t LANE_TYPE s32;
typedef int64_t LANE_TYPE s64;
typedef float LANE_TYPE f32;
typedef double LANE_TYPE f64;
typedef uint16_t LANE_TYPE f16; /* bits: arithmetic is done in f32 and f64 */
typedef uint16_t LANE_TYPE bf16;

#define INLINE static inline __attribute__((always_inline, unused))

/*
 * Lanes are independent of each other, even where an instruction's destination is one of its
 * sources: what a lane reads it reads before it writes.
 */
#define LANE_LOOP _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)

INLINE void *operand(const struct warp *w, uint32_t o)
{
	return __builtin_assume_aligned(w->base[o & OPERAND_CONST] + (o & ~3u), 4);
}

#define ROW(T, o) ((T *)__builtin_assume_aligned(operand(w, o), 64))

/* A predicate operand as the mask of lanes where it is true. */
INLINE u32 predicate(const struct warp *w, uint32_t o)
{
	u32 mask = *(u32 *)operand(w, o);

	return o & OPERAND_NOT ? ~mask : mask;
}

/* Writes a predicate in the lanes that run. */
INLINE void set_predicate(struct warp *w, uint32_t o, u32 mask)
{
	u32 *p = operand(w, o);

	*p = (*p & ~w->active) | (mask & w->active);
}

/* The lanes in which @t is not zero. */
#ifdef __AVX512BW__
#include <immintrin.h>
INLINE u32 lane_mask(const s32 *t)
{
	u32 lo = _mm512_movepi32_mask(_mm512_load_si512(t));
	u32 hi = _mm512_movepi32_mask(_mm512_load_si512(t + 16));

	return hi << 16 | lo;
}
#else
#include <immintrin.h>
INLINE u32 lane_mask16(const s32 *t)
{
	const __m128i *v = (const __m128i *)t;

	return (u32)_mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(v[0], v[1]),
						      _mm_packs_epi32(v[2], v[3])));
}

INLINE u32 lane_mask(const s32 *t)
{
	return lane_mask16(t + 16) << 16 | lane_mask16(t);
}
#endif

/* The other way: -1 in the lanes of @mask. */
INLINE void spread_mask(s32 *t, u32 mask)
{
	LANE_LOOP t[i] = -(s32)(mask >> i & 1);
}

/*
 * A handler that computes EXPRESSION in each lane; LOADS declares the sources. Lanes that
 * do not run compute too, and are not written unless nobody will ever read them.
 */
#define HANDLER(key) static const struct insn *op_##key(struct warp *w, const struct insn *in)

#define LANE_HANDLER(key, TD, ROWS, LOADS, EXPRESSION)                       \
	HANDLER(key)                                                         \
	{                                                                    \
		TD *d = ROW(TD, in->o[0]);                                   \
		ROWS                                                         \
		if (__builtin_expect(w->full, 1)) {                          \
			LANE_LOOP                                            \
			{                                                    \
				LOADS d[i] = (TD)(EXPRESSION);               \
			}                                                    \
		} else {                                                     \
			const s32 *m = w->lanes;                             \
			LANE_LOOP                                            \
			{                                                    \
				LOADS TD r = (TD)(EXPRESSION);               \
				d[i] = m[i] ? r : d[i];                      \
			}                                                    \
		}                                                            \
		return in + 1;                                               \
	}

#define GEN_OP1(key, TD, TA, expression)                                     \
	LANE_HANDLER(key, TD, const TA *pa = ROW(TA, in->o[1]);, TA a = pa[i];, expression)
#define GEN_OP2(key, TD, TA, TB, expression)                                 \
	LANE_HANDLER(key, TD, const TA *pa = ROW(TA, in->o[1]);              \
		     const TB *pb = ROW(TB, in->o[2]);                       \
		     , TA a = pa[i]; TB b = pb[i];, expression)
#define GEN_OP3(key, TD, TA, TB, TC, expression)                             \
	LANE_HANDLER(key, TD, const TA *pa = ROW(TA, in->o[1]);              \
		     const TB *pb = ROW(TB, in->o[2]);                       \
		     const TC *pc = ROW(TC, in->o[3]);                       \
		     , TA a = pa[i]; TB b = pb[i]; TC c = pc[i];, expression)
#define GEN_OP4(key, TD, TA, TB, TC, TE, expression)                         \
	LANE_HANDLER(key, TD, const TA *pa = ROW(TA, in->o[1]);              \
		     const TB *pb = ROW(TB, in->o[2]);                       \
		     const TC *pc = ROW(TC, in->o[3]);                       \
		     const TE *pe = ROW(TE, in->o[4]);                       \
		     , TA a = pa[i]; TB b = pb[i]; TC c = pc[i]; TE e = pe[i];, expression)

/* setp: how the comparison is combined with a third predicate; in->aux. */
enum { COMBINE_NONE, COMBINE_AND, COMBINE_OR, COMBINE_XOR };

/* o[0] and o[3]: destinations, o[3] the complement, may be none; o[4]: third predicate. */
INLINE const struct insn *finish_compare(struct warp *w, const struct insn *in, u32 mask)
{
	u32 other = ~mask;

	if (in->aux != COMBINE_NONE) {
		u32 c = predicate(w, in->o[4]);

		mask = in->aux == COMBINE_AND ? mask & c : in->aux == COMBINE_OR ? mask | c : mask ^ c;
		other = in->aux == COMBINE_AND	? other & c
			: in->aux == COMBINE_OR ? other | c
						: other ^ c;
	}
	set_predicate(w, in->o[0], mask);
	if (in->o[3] != OPERAND_NONE)
		set_predicate(w, in->o[3], other);
	return in + 1;
}

#define GEN_CMP(key, T, condition)                                           \
	HANDLER(key)                                                         \
	{                                                                    \
		const T *pa = ROW(T, in->o[1]);                              \
		const T *pb = ROW(T, in->o[2]);                              \
		_Alignas(64) s32 t[LANES];                                   \
		LANE_LOOP                                                    \
		{                                                            \
			T a = pa[i];                                         \
			T b = pb[i];                                         \
			(void)b;                                             \
			t[i] = -(s32)(condition);                            \
		}                                                            \
		return finish_compare(w, in, lane_mask(t));                  \
	}

#define PASTE2(a, b, c)	  a##b##_##c
#define PASTE(a, b, c)	  PASTE2(a, b, c)
#define FILL(part)	  PASTE(fgv_softgpu_fill_, part, FGV_ISA)

#endif
