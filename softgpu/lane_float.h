/*
 * One lane's floating-point arithmetic; see ops_float.def. Part of ops_float.c. Written
 * without branches where a loop over lanes should become vector code.
 */
#ifndef FGV_SOFTGPU_LANE_FLOAT_H
#define FGV_SOFTGPU_LANE_FLOAT_H

#include "softgpu/lanes.h"

#include <math.h>

#define CANONICAL_NAN 0x7fffffffu /* what devices answer for any NaN */

INLINE u32 bits_f32(f32 a)
{
	union {
		float f;
		uint32_t u;
	} x = {.f = a};

	return x.u;
}

INLINE f32 from_bits_f32(u32 a)
{
	union {
		uint32_t u;
		float f;
	} x = {.u = a};

	return x.f;
}

INLINE u64 bits_f64(f64 a)
{
	union {
		double f;
		uint64_t u;
	} x = {.f = a};

	return x.u;
}

INLINE f64 from_bits_f64(u64 a)
{
	union {
		uint64_t u;
		double f;
	} x = {.u = a};

	return x.f;
}

/* Subnormal becomes zero of the same sign. */
INLINE f32 z(f32 a)
{
	u32 bits = bits_f32(a);

	return from_bits_f32(bits & 0x7f800000 ? bits : bits & 0x80000000);
}

INLINE f32 abs_f32(f32 a)
{
	return from_bits_f32(bits_f32(a) & 0x7fffffff);
}

INLINE f32 neg_f32(f32 a)
{
	return from_bits_f32(bits_f32(a) ^ 0x80000000);
}

INLINE f64 neg_f64(f64 a)
{
	return from_bits_f64(bits_f64(a) ^ 1ull << 63);
}

/* The magnitude of b with the sign of a. */
INLINE f32 copysign_f32(f32 a, f32 b)
{
	return from_bits_f32((bits_f32(a) & 0x80000000) | (bits_f32(b) & 0x7fffffff));
}

INLINE f64 copysign_f64(f64 a, f64 b)
{
	return from_bits_f64((bits_f64(a) & 1ull << 63) | (bits_f64(b) & ~(1ull << 63)));
}

/* One NaN: the other operand; two: the canonical NaN; -0 is less than +0. */
INLINE f32 min_f32(f32 a, f32 b)
{
	u32 equal = bits_f32(a) | bits_f32(b);
	u32 r = a < b ? bits_f32(a) : bits_f32(b);

	r = a == b ? equal : r;
	r = b != b ? bits_f32(a) : r;
	return from_bits_f32(a != a ? (b != b ? CANONICAL_NAN : bits_f32(b)) : r);
}

INLINE f32 max_f32(f32 a, f32 b)
{
	u32 equal = bits_f32(a) & bits_f32(b);
	u32 r = a > b ? bits_f32(a) : bits_f32(b);

	r = a == b ? equal : r;
	r = b != b ? bits_f32(a) : r;
	return from_bits_f32(a != a ? (b != b ? CANONICAL_NAN : bits_f32(b)) : r);
}

INLINE f64 min_f64(f64 a, f64 b)
{
	u64 equal = bits_f64(a) | bits_f64(b);
	u64 r = a < b ? bits_f64(a) : bits_f64(b);

	r = a == b ? equal : r;
	r = b != b ? bits_f64(a) : r;
	return from_bits_f64(a != a ? (b != b ? 0x7fffffffffffffff : bits_f64(b)) : r);
}

INLINE f64 max_f64(f64 a, f64 b)
{
	u64 equal = bits_f64(a) & bits_f64(b);
	u64 r = a > b ? bits_f64(a) : bits_f64(b);

	r = a == b ? equal : r;
	r = b != b ? bits_f64(a) : r;
	return from_bits_f64(a != a ? (b != b ? 0x7fffffffffffffff : bits_f64(b)) : r);
}

/* The canonical NaN if either is one. */
INLINE f32 nan2_f32(f32 a, f32 b, f32 r)
{
	return (a != a) | (b != b) ? from_bits_f32(CANONICAL_NAN) : r;
}

INLINE f32 xorsign_f32(f32 a, f32 b, f32 r)
{
	return from_bits_f32((bits_f32(r) & 0x7fffffff) |
			     ((bits_f32(a) ^ bits_f32(b)) & 0x80000000));
}

INLINE bool is_normal_f32(f32 a)
{
	u32 exponent = bits_f32(a) >> 23 & 255;

	return exponent != 0 && exponent != 255;
}

INLINE bool is_subnormal_f32(f32 a)
{
	return !(bits_f32(a) & 0x7f800000) && (bits_f32(a) & 0x7fffff);
}

INLINE bool is_normal_f64(f64 a)
{
	u64 exponent = bits_f64(a) >> 52 & 2047;

	return exponent != 0 && exponent != 2047;
}

INLINE bool is_subnormal_f64(f64 a)
{
	return !(bits_f64(a) >> 52 & 2047) && bits_f64(a) << 12;
}

/* Clamped to the range of the integer; NaN is 0. The argument is integral. */
#define TO_INTEGER(T, F, low, limit, min, max)                               \
	INLINE T to_##T##_##F(F a)                                           \
	{                                                                    \
		if (!(a < (limit)))                                          \
			return a >= (limit) ? (max) : 0;                     \
		return a >= (low) ? (T)a : (min);                            \
	}
TO_INTEGER(s32, f32, -2147483648.0f, 2147483648.0f, INT32_MIN, INT32_MAX)
TO_INTEGER(s32, f64, -2147483648.0, 2147483648.0, INT32_MIN, INT32_MAX)
TO_INTEGER(u32, f32, 0.0f, 4294967296.0f, 0, UINT32_MAX)
TO_INTEGER(u32, f64, 0.0, 4294967296.0, 0, UINT32_MAX)
TO_INTEGER(s64, f32, -9223372036854775808.0f, 9223372036854775808.0f, INT64_MIN, INT64_MAX)
TO_INTEGER(s64, f64, -9223372036854775808.0, 9223372036854775808.0, INT64_MIN, INT64_MAX)
TO_INTEGER(u64, f32, 0.0f, 18446744073709551616.0f, 0, UINT64_MAX)
TO_INTEGER(u64, f64, 0.0, 18446744073709551616.0, 0, UINT64_MAX)

#define round_rni_f32(a) __builtin_rintf(a)
#define round_rzi_f32(a) __builtin_truncf(a)
#define round_rmi_f32(a) __builtin_floorf(a)
#define round_rpi_f32(a) __builtin_ceilf(a)
#define round_rni_f64(a) __builtin_rint(a)
#define round_rzi_f64(a) __builtin_trunc(a)
#define round_rmi_f64(a) __builtin_floor(a)
#define round_rpi_f64(a) __builtin_ceil(a)

INLINE f32 from_bf16(bf16 a)
{
	return from_bits_f32((u32)a << 16);
}

/* To nearest, ties to even. */
INLINE bf16 to_bf16(f32 a)
{
	u32 bits = bits_f32(a);
	u32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

	return (bf16)(a != a ? 0x7fff : rounded);
}

/* Through f32 with the sticky bit kept, so that nothing is rounded twice. */
INLINE bf16 to_bf16_f64(f64 a)
{
	f32 nearest = (f32)a;
	u32 bits = bits_f32(nearest);

	if ((f64)nearest != a && a == a && nearest - nearest == 0) {
		if (__builtin_fabs((f64)nearest) > __builtin_fabs(a))
			bits--;
		bits |= 1;
	}
	return to_bf16(from_bits_f32(bits));
}

INLINE bf16 to_bf16_rz(f32 a)
{
	return (bf16)(a != a ? 0x7fff : bits_f32(a) >> 16);
}

INLINE u16 bits_f16(f16 a)
{
	union {
		_Float16 f;
		uint16_t u;
	} x = {.f = a};

	return x.u;
}

INLINE f16 from_bits_f16(u16 a)
{
	union {
		uint16_t u;
		_Float16 f;
	} x = {.u = a};

	return x.f;
}

INLINE f16 to_f16_rz(f32 a)
{
	f16 nearest = (f16)a;

	/* Infinity from a finite number, too, becomes the largest finite one. */
	if (__builtin_fabsf((f32)nearest) > __builtin_fabsf(a))
		return from_bits_f16((u16)(bits_f16(nearest) - 1));
	return nearest;
}

/* Nearest with ties away from zero, as .rna says; the low 13 bits are zero. */
INLINE u32 to_tf32(u32 bits)
{
	f32 a = from_bits_f32(bits);

	return a != a ? CANONICAL_NAN : a - a != 0 ? bits : (bits + 0x1000) & ~0x1fffu;
}

#endif
