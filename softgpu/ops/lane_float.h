/*
 * One lane's floating-point arithmetic; see float.def. Part of float.c. Written
 * without branches where a loop over lanes should become vector code.
 */
#ifndef FGV_SOFTGPU_OPS_LANE_FLOAT_H
#define FGV_SOFTGPU_OPS_LANE_FLOAT_H

#include "softgpu/narrow.h"
#include "softgpu/ops/lanes.h"

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

/* Whatever NaN the processor makes, devices answer one. */
INLINE f32 canon(f32 a)
{
	return a != a ? from_bits_f32(CANONICAL_NAN) : a;
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
	u32 sign = (bits_f32(a) ^ bits_f32(b)) & 0x80000000;

	return r != r ? from_bits_f32(CANONICAL_NAN) : from_bits_f32((bits_f32(r) & 0x7fffffff) | sign);
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

/*
 * Clamped to the range of the integer; the argument is integral. NaN is 0, and only the
 * top bit where either side has 64 bits.
 */
#define TO_INTEGER(T, F, low, limit, min, max, nan)                          \
	INLINE T to_##T##_##F(F a)                                           \
	{                                                                    \
		if (!(a < (limit)))                                          \
			return a >= (limit) ? (max) : (T)(nan);              \
		return a >= (low) ? (T)a : (min);                            \
	}
TO_INTEGER(s32, f32, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX, 0)
TO_INTEGER(s32, f64, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX, INT32_MIN)
TO_INTEGER(u32, f32, 0.0f, 0x1p32f, 0, UINT32_MAX, 0)
TO_INTEGER(u32, f64, 0.0, 0x1p32, 0, UINT32_MAX, 1u << 31)
TO_INTEGER(s64, f32, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX, INT64_MIN)
TO_INTEGER(s64, f64, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX, INT64_MIN)
TO_INTEGER(u64, f32, 0.0f, 0x1p64f, 0, UINT64_MAX, 1ull << 63)
TO_INTEGER(u64, f64, 0.0, 0x1p64, 0, UINT64_MAX, 1ull << 63)

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

/* Selections, not branches: they become vector code, which the compiler's own type does not. */
INLINE f32 from_f16(f16 a)
{
	u32 magnitude = (u32)a & 0x7fff;
	u32 normal = (magnitude << 13) + (112u << 23);
	u32 special = magnitude << 13 | 0x7f800000;
	/* Subnormal: its bits as a fraction at the smallest normal number, which is then taken off. */
	f32 small = from_bits_f32(magnitude << 13 | 113u << 23) - 0x1p-14f;
	u32 bits = magnitude >= 0x7c00 ? special : magnitude >= 0x400 ? normal : bits_f32(small);

	return from_bits_f32(bits | (u32)(a & 0x8000) << 16);
}

/* To nearest, ties to even; one NaN. Adding 0.5 rounds to multiples of 2^-24, the subnormals. */
INLINE f16 to_f16(f32 a)
{
	u32 bits = bits_f32(a);
	u32 magnitude = bits & 0x7fffffff;
	u32 normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
	u32 small = bits_f32(from_bits_f32(magnitude) + 0.5f) - bits_f32(0.5f);
	u32 r = magnitude < 0x38800000 ? small : magnitude >= 0x47800000 ? 0x7c00 : normal;

	return (f16)(magnitude > 0x7f800000 ? 0x7fff : r | (bits >> 16 & 0x8000));
}

/* As f32 with its last bit set where others were lost: safe to round again. */
INLINE f32 odd_f32(f64 a)
{
	f32 nearest = (f32)a;
	u32 bits = bits_f32(nearest);
	u32 away = __builtin_fabs((f64)nearest) > __builtin_fabs(a);
	u32 odd = (bits - away) | 1;

	return (f64)nearest == a || nearest - nearest != 0 ? nearest : from_bits_f32(odd);
}

/* Subnormal becomes zero of the same sign. */
INLINE f16 zh(f16 a)
{
	return (f16)(a & 0x7c00 ? a : a & 0x8000);
}

INLINE f32 flushed_f16(f16 a)
{
	return from_f16(zh(a));
}

INLINE f64 zd(f64 a)
{
	u64 bits = bits_f64(a);

	return from_bits_f64(bits & 0x7ffull << 52 ? bits : bits & 1ull << 63);
}

/* The upper word of a subnormal-free result; the lower is zero, as the approximations have it. */
INLINE f64 upper_f64(f64 a)
{
	return a != a ? from_bits_f64(0x7fffffff00000000) : from_bits_f64(bits_f64(zd(a)) & ~0xffffffffull);
}

/* An integer as f64, its last bit set where others were lost: safe to round again. */
INLINE f64 odd_f64_u64(u64 a)
{
	u64 lost = a & 0x7ff;

	return a >> 53 ? (f64)((a & ~0x7ffull) | (lost ? 0x800 : 0)) : (f64)a;
}

INLINE f64 odd_f64_s64(s64 a)
{
	return a < 0 ? -odd_f64_u64(0 - (u64)a) : odd_f64_u64((u64)a);
}

/* a + b towards the neighbour whose last bit is set where it is not exact: safe to round again. */
INLINE f64 odd_sum(f64 a, f64 b)
{
	f64 sum = a + b;
	f64 part = sum - a;
	f64 error = (a - (sum - part)) + (b - part);
	u64 bits = bits_f64(sum);

	if (error == 0 || error != error || bits & 1)
		return sum;
	return from_bits_f64((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/* One half's operation on both halves of a register. */
#define BOTH2(f, a, b) ((u32)f((u16)(a), (u16)(b)) | (u32)f((u16)((a) >> 16), (u16)((b) >> 16)) << 16)

INLINE f16 add_f16(f16 a, f16 b)
{
	return to_f16(from_f16(a) + from_f16(b));
}

INLINE bf16 add_bf16(bf16 a, bf16 b)
{
	return to_bf16(from_bf16(a) + from_bf16(b));
}

/*
 * Approximations, computed in f64 so that few results are not the nearest; without branches or
 * calls, so that they become vector code. The integer nearest to x is in the low bits of
 * x + NEAREST.
 */
#define NEAREST 0x1.8p52

/* 2^a: the powers of ln 2 over the factorials, for what is left of a. */
INLINE f32 exp2_f32(f32 a)
{
	f32 below = a > 130.0f ? 130.0f : a;
	f64 x = below < -160.0f ? -160.0f : below;
	f64 whole = x + NEAREST;
	f64 r = x - (whole - NEAREST);
	f64 p = 0x1.62c0223a5c824p-20;

	p = p * r + 0x1.ffcbfc588b0c7p-17;
	p = p * r + 0x1.430912f86c787p-13;
	p = p * r + 0x1.5d87fe78a6731p-10;
	p = p * r + 0x1.3b2ab6fba4e77p-7;
	p = p * r + 0x1.c6b08d704a0c0p-5;
	p = p * r + 0x1.ebfbdff82c58fp-3;
	p = p * r + 0x1.62e42fefa39efp-1;
	p = p * r + 1.0;
	return a != a ? a : (f32)from_bits_f64(bits_f64(p) + (bits_f64(whole) << 52));
}

/*
 * The logarithm of 2^e * m, m between the roots of 1/2 and 2: e, and the series of the area
 * tangent of (m - 1) / (m + 1).
 */
INLINE f32 log2_f32(f32 a)
{
	u64 bits = bits_f64((f64)a);
	u64 biased = (bits - 0x3fe6a09e667f3bcd + (1ull << 63)) >> 52;
	f64 e = from_bits_f64(0x4330000000000000 | biased) - (0x1p52 + 2048);
	f64 m = from_bits_f64(bits - ((biased << 52) - (1ull << 63)));
	f64 s = (m - 1.0) / (m + 1.0);
	f64 s2 = s * s;
	f64 p = 0x1.c68f568d31760p-3;

	p = p * s2 + 0x1.0c9a84994022dp-2;
	p = p * s2 + 0x1.484b13d7c02a9p-2;
	p = p * s2 + 0x1.a61762a7aded9p-2;
	p = p * s2 + 0x1.2776c50ef9bfep-1;
	p = p * s2 + 0x1.ec709dc3a03fdp-1;
	p = p * s2 + 0x1.71547652b82fep+1;
	p = (a < INFINITY) ? e + s * p : INFINITY;
	return a > 0 ? (f32)p : a == 0 ? -INFINITY : NAN;
}

#endif
