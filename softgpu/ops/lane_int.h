/* One lane's integer arithmetic; see int.def. Part of alu.c. */
#ifndef FGV_SOFTGPU_OPS_LANE_INT_H
#define FGV_SOFTGPU_OPS_LANE_INT_H

#include "softgpu/ops/lanes.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

INLINE u16 mul_u16(u16 a, u16 b)
{
	return (u16)((u32)a * b);
}

INLINE u32 mul_u32(u32 a, u32 b)
{
	return a * b;
}

INLINE u64 mul_u64(u64 a, u64 b)
{
	return a * b;
}

INLINE u16 mulhi_u16(u16 a, u16 b)
{
	return (u16)((u32)a * b >> 16);
}

INLINE s16 mulhi_s16(s16 a, s16 b)
{
	return (s16)((s32)a * b >> 16);
}

INLINE u32 mulhi_u32(u32 a, u32 b)
{
	return (u32)((u64)a * b >> 32);
}

INLINE s32 mulhi_s32(s32 a, s32 b)
{
	return (s32)((s64)a * b >> 32);
}

INLINE u64 mulhi_u64(u64 a, u64 b)
{
	return (u64)((u128)a * b >> 64);
}

INLINE s64 mulhi_s64(s64 a, s64 b)
{
	return (s64)((s128)a * b >> 64);
}

#define EXTREMES(T, attributes)                                              \
	static attributes T smaller_##T(T a, T b)                     \
	{                                                                    \
		return a < b ? a : b;                                        \
	}                                                                    \
	static attributes T larger_##T(T a, T b)                      \
	{                                                                    \
		return a > b ? a : b;                                        \
	}
EXTREMES(u32, inline)
EXTREMES(u64, inline)
EXTREMES(s32, inline)
EXTREMES(s64, inline)
/* gcc 12 fails on masked vectors of 16-bit extremes with AVX-512: no vectors for these. */
EXTREMES(u16, __attribute__((noinline)))
EXTREMES(s16, __attribute__((noinline)))

/* Division by zero gives all ones, the remainder the dividend, as devices have it. */
#define UNSIGNED_DIVISION(T)                                                 \
	INLINE T div_##T(T a, T b)                                           \
	{                                                                    \
		return b ? (T)(a / b) : (T)~(T)0;                            \
	}                                                                    \
	INLINE T rem_##T(T a, T b)                                           \
	{                                                                    \
		return b ? (T)(a % b) : a;                                   \
	}
UNSIGNED_DIVISION(u16)
UNSIGNED_DIVISION(u32)
UNSIGNED_DIVISION(u64)

/* The smallest number divided by -1 is itself: no trap. */
#define SIGNED_DIVISION(T, U)                                                \
	INLINE T div_##T(T a, T b)                                           \
	{                                                                    \
		if (b == -1)                                                 \
			return (T)(0 - (U)a);                                \
		return b ? (T)(a / b) : (T)-1;                               \
	}                                                                    \
	INLINE T rem_##T(T a, T b)                                           \
	{                                                                    \
		if (b == -1)                                                 \
			return 0;                                            \
		return b ? (T)(a % b) : a;                                   \
	}
SIGNED_DIVISION(s16, u16)
SIGNED_DIVISION(s32, u32)
SIGNED_DIVISION(s64, u64)

INLINE s32 sat_s32(s64 a)
{
	return a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : (s32)a;
}

INLINE s32 low24(s32 a)
{
	return (s32)((u32)a << 8) >> 8;
}

INLINE u32 clz32(u32 a)
{
	return a ? (u32)__builtin_clz(a) : 32;
}

INLINE u32 clz64(u64 a)
{
	return a ? (u32)__builtin_clzll(a) : 64;
}

INLINE u32 brev32(u32 a)
{
	a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
	a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
	a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(a);
}

/* Bit fields may start and end beyond the value's width: zeros are there. */
INLINE u64 field_mask(u32 length)
{
	return length > 63 ? ~0ull : (1ull << length) - 1;
}

INLINE u64 bfe_u(u64 a, u32 start, u32 length)
{
	return start > 63 ? 0 : a >> start & field_mask(length);
}

/* Beyond the value is its sign. @top: index of the sign bit. */
INLINE u64 bfe_s(s64 a, u32 start, u32 length, u32 top)
{
	u32 last = start + length - 1 > top ? top : start + length - 1;
	u64 sign = length && (a >> last & 1) ? ~0ull : 0;
	u64 field;

	if (!length)
		return 0;
	if (start > top)
		return sign;
	field = bfe_u((u64)a, start, last - start + 1);
	return field | (sign & ~field_mask(last - start + 1));
}

INLINE u64 bfi(u64 a, u64 b, u32 start, u32 length, u32 width)
{
	u64 mask;

	if (start >= width)
		return b;
	mask = field_mask(length) << start;
	return (b & ~mask) | (a << start & mask);
}

INLINE u32 bmsk(u32 start, u32 length)
{
	return start > 31 ? 0 : (u32)(field_mask(length) << start);
}

INLINE s32 szext(s32 a, u32 bits)
{
	return bits ? (s32)((u32)a << (32 - bits)) >> (32 - bits) : 0;
}

INLINE u32 lop3(u32 a, u32 b, u32 c, u32 table)
{
	u32 r = 0;

	for (int k = 0; k < 8; k++) {
		u32 term = (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);

		r |= term & (0 - (table >> k & 1));
	}
	return r;
}

INLINE u32 prmt(u32 a, u32 b, u32 selector)
{
	u64 bytes = (u64)b << 32 | a;
	u32 r = 0;

	for (int k = 0; k < 4; k++) {
		u32 s = selector >> (4 * k) & 15;
		u32 byte = (u32)(bytes >> (8 * (s & 7))) & 255;

		if (s & 8)
			byte = byte & 128 ? 255 : 0;
		r |= byte << (8 * k);
	}
	return r;
}

/* The selectors that stand for the special modes. */
INLINE u32 prmt_b4e(u32 c)
{
	static const u16 selectors[4] = {0x5670, 0x6701, 0x7012, 0x0123};

	return selectors[c];
}

INLINE u32 prmt_ecl(u32 c)
{
	static const u16 selectors[4] = {0x3210, 0x3211, 0x3222, 0x3333};

	return selectors[c];
}

INLINE u32 prmt_ecr(u32 c)
{
	static const u16 selectors[4] = {0x0000, 0x1110, 0x2210, 0x3210};

	return selectors[c];
}

INLINE u32 sub_product(u32 a, u32 b, bool signed_a, bool signed_b)
{
	s32 x = signed_a ? (s32)(s8)a : (s32)(u8)a;
	s32 y = signed_b ? (s32)(s8)b : (s32)(u8)b;

	return (u32)(x * y);
}

INLINE u32 dp4a(u32 a, u32 b, u32 c, bool signed_a, bool signed_b)
{
	for (int k = 0; k < 32; k += 8)
		c += sub_product(a >> k, b >> k, signed_a, signed_b);
	return c;
}

enum { lo_half = 0, hi_half = 16 };

INLINE u32 dp2a(u32 a, u32 b, u32 c, bool signed_a, bool signed_b, int half)
{
	for (int k = 0; k < 2; k++) {
		u32 x = signed_a ? (u32)(s32)(s16)(a >> (16 * k)) : (u32)(u16)(a >> (16 * k));
		u32 y = b >> (half + 8 * k);

		c += x * (signed_b ? (u32)(s32)(s8)y : (u32)(u8)y);
	}
	return c;
}

/* The place of the bit that is the |n|-th set one from @base upwards, or for n < 0 downwards. */
INLINE u32 fns(u32 mask, u32 base, s32 n)
{
	s64 step = n < 0 ? -1 : 1;
	s64 left = n < 0 ? -(s64)n : n;

	if (!n)
		return base < 32 && mask >> base & 1 ? base : ~0u;
	for (s64 at = base; at >= 0 && at < 32; at += step) {
		if (mask >> at & 1 && !--left)
			return (u32)at;
	}
	return ~0u;
}

#endif
