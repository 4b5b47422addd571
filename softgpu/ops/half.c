/*
 * Handlers of half-precision arithmetic (the HALF list of float.def), compiled once per
 * instruction set: rows are widened to f32, computed there, and narrowed again. A row of pairs is one
 * of twice as many halves.
 *
 * Sums and products of two halves survive being rounded to f32 first. Those of three do not: a
 * result that is not exact is made odd (lane_float.h), or a tie is looked at again.
 */
#include "softgpu/ops/lane_float.h"

#define HALVES_MAX (2 * LANES)

#define HALF_LOOP(count) _Pragma("GCC ivdep") for (int i = 0; i < (count); i++)

/* Subnormals of f16 become zero of the same sign. */
INLINE f32 flush_f16(f32 a)
{
	u32 bits = bits_f32(a);

	return from_bits_f32(abs_f32(a) < 0x1p-14f ? bits & 0x80000000 : bits);
}

INLINE void widen_f16(f32 *x, const u16 *h, int count, bool flush)
{
#ifdef __F16C__
	for (int i = 0; i < count; i += 8) {
		__m128i eight = _mm_load_si128((const __m128i *)(h + i));

		_mm256_store_ps((float *)(x + i), _mm256_cvtph_ps(eight));
	}
#else
	HALF_LOOP(count) x[i] = from_f16(h[i]);
#endif
	if (flush)
		HALF_LOOP(count) x[i] = flush_f16(x[i]);
}

INLINE void narrow_f16(u16 *h, f32 *x, int count, bool flush)
{
#ifdef __F16C__
	HALF_LOOP(count) x[i] = canon(x[i]);
	for (int i = 0; i < count; i += 8) {
		__m256 eight = _mm256_load_ps((const float *)(x + i));

		_mm_store_si128((__m128i *)(h + i),
				_mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
	}
#else
	HALF_LOOP(count) h[i] = to_f16(x[i]);
#endif
	if (flush)
		HALF_LOOP(count) h[i] = zh(h[i]);
}

INLINE void widen_bf16(f32 *x, const u16 *h, int count, bool flush)
{
	(void)flush;
	HALF_LOOP(count) x[i] = from_bf16(h[i]);
}

INLINE void narrow_bf16(u16 *h, f32 *x, int count, bool flush)
{
	(void)flush;
	HALF_LOOP(count) h[i] = to_bf16(x[i]);
}

/* Halves, or pairs of them, in the lanes that run. */
INLINE void put_halves(const struct warp *w, u16 *d, const u16 *h, int count)
{
	const s32 *m = w->lanes;

	if (count == LANES)
		LANE_LOOP d[i] = m[i] ? h[i] : d[i];
	else
		LANE_LOOP ((u32 *)d)[i] = m[i] ? ((const u32 *)h)[i] : ((u32 *)d)[i];
}

/* a + b towards the neighbour whose last bit is set where it is not exact. */
INLINE f32 odd_sum_f32(f32 a, f32 b)
{
	f32 sum = a + b;
	f32 part = sum - a;
	f32 error = (a - (sum - part)) + (b - part);
	u32 bits = bits_f32(sum);
	u32 odd = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;

	return from_bits_f32((error == 0) | (error != error) | (bits & 1) ? bits : odd);
}

/* The product has 22 bits and is exact. */
INLINE void fma_rows_f16(f32 *r, const f32 *a, const f32 *b, const f32 *c, int count)
{
	HALF_LOOP(count) r[i] = odd_sum_f32(a[i] * b[i], c[i]);
}

/* Rounded to f32, a result is wrong when rounded again only if it lies halfway. */
INLINE void fma_rows_bf16(f32 *r, const f32 *a, const f32 *b, const f32 *c, int count)
{
#ifdef __FMA__
	u32 halfway = 0;

	HALF_LOOP(count)
	{
		r[i] = __builtin_fmaf(a[i], b[i], c[i]);
		halfway |= (bits_f32(r[i]) & 0xffff) == 0x8000;
	}
	if (!halfway)
		return;
#endif
	HALF_LOOP(count) r[i] = odd_f32(odd_sum((f64)a[i] * (f64)b[i], (f64)c[i]));
}

#define HALF_HANDLER(key, T, R, flush, sources, COMPUTE)                     \
	HANDLER(key)                                                         \
	{                                                                    \
		enum { count = LANES * sizeof(R) / sizeof(u16) };            \
		_Alignas(64) f32 x[3][HALVES_MAX];                           \
		_Alignas(64) f32 r[HALVES_MAX];                              \
		_Alignas(64) u16 h[HALVES_MAX];                              \
		u16 *d = ROW(u16, in->o[0]);                                 \
		for (int k = 0; k < (sources); k++)                          \
			widen_##T(x[k], ROW(u16, in->o[1 + k]), count, flush); \
		COMPUTE                                                      \
		narrow_##T(w->full ? d : h, r, count, flush);                \
		if (!w->full)                                                \
			put_halves(w, d, h, count);                          \
		return in + 1;                                               \
	}
#define HALF1(key, T, R, flush, expression)                                  \
	HALF_HANDLER(key, T, R, flush, 1,                                    \
		     HALF_LOOP(count) { f32 a = x[0][i]; r[i] = (expression); })
#define HALF2(key, T, R, flush, expression)                                  \
	HALF_HANDLER(key, T, R, flush, 2,                                    \
		     HALF_LOOP(count) { f32 a = x[0][i]; f32 b = x[1][i]; r[i] = (expression); })
#define HALF3(key, T, R, flush)                                              \
	HALF_HANDLER(key, T, R, flush, 3, fma_rows_##T(r, x[0], x[1], x[2], count);)
#define OPS_ONLY_HALF
#include "softgpu/ops/ops.def"

void FILL(half)(handler *table)
{
#define HALF1(key, ...) table[OP_##key] = op_##key;
#define HALF2(key, ...) table[OP_##key] = op_##key;
#define HALF3(key, ...) table[OP_##key] = op_##key;
#define OPS_ONLY_HALF
#include "softgpu/ops/ops.def"
}
