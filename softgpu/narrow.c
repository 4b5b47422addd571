/* See narrow.h. One value at a time, by whole numbers: rare, and the same in every mode. */
#include "softgpu/narrow.h"

#include <string.h>

/* A value is fraction * 2^(exponent - bias - fraction_bits), with a hidden bit where exponent > 0.
 */
static const struct format {
	int fraction_bits;
	int bias;
	uint32_t largest;  /* finite */
	uint32_t infinity; /* 0: the format has none */
	uint32_t nan;
	uint32_t sign;
	unsigned shift; /* tf32 leaves the low bits of its register clear */
} formats[] = {
	[NARROW_F16] = {10, 15, 0x7bff, 0x7c00, 0x7fff, 0x8000, 0},
	[NARROW_BF16] = {7, 127, 0x7f7f, 0x7f80, 0x7fff, 0x8000, 0},
	[NARROW_TF32] = {10, 127, 0x3fbff, 0x3fc00, 0x3ffff, 0x40000, 13},
	[NARROW_E4M3] = {3, 7, 0x7e, 0, 0x7f, 0x80, 0},
	[NARROW_E5M2] = {2, 15, 0x7b, 0x7c, 0x7f, 0x80, 0},
};

enum { EXPONENT_MIN = -1074 };

/* Does a value that was cut to @kept go one up? @dropped of @half * 2 were cut off. */
static bool rounds_up(unsigned round, bool negative, uint64_t kept, uint64_t dropped, uint64_t half)
{
	switch (round) {
	case NARROW_ZERO:
		return false;
	case NARROW_DOWN:
		return negative && dropped;
	case NARROW_UP:
		return !negative && dropped;
	case NARROW_AWAY:
		return dropped >= half;
	default:
		return dropped > half || (dropped == half && kept & 1);
	}
}

/* What stands for a magnitude beyond the largest. */
static uint32_t overflow(const struct format *f, unsigned control, bool negative)
{
	unsigned round = NARROW_ROUND(control);
	bool inward = round == NARROW_ZERO || (round == NARROW_DOWN && !negative) ||
		      (round == NARROW_UP && negative);

	if (control & NARROW_SATFINITE || inward)
		return f->largest;
	return f->infinity ? f->infinity : f->nan;
}

/* @mantissa * 2^@exponent, 53 bits of it, without its sign. */
static uint32_t magnitude(const struct format *f, unsigned control, bool negative,
			  uint64_t mantissa, int exponent)
{
	int top = 63 - __builtin_clzll(mantissa);
	int biased = exponent + top + f->bias;
	/* The lowest bit that the format keeps has this place in the mantissa. */
	int cut = biased > 0 ? top - f->fraction_bits : 1 - f->bias - f->fraction_bits - exponent;
	uint64_t kept;

	if (cut > 62)
		return rounds_up(NARROW_ROUND(control), negative, 0, 1, 2);
	if (cut <= 0) {
		kept = mantissa << -cut;
	} else {
		uint64_t half = 1ull << (cut - 1);

		kept = mantissa >> cut;
		kept += rounds_up(NARROW_ROUND(control), negative, kept, mantissa & (2 * half - 1),
				  half);
	}
	/* The hidden bit adds one to the exponent, and so does one that rounding carries there. */
	if (biased > 1)
		kept += (uint64_t)(biased - 1) << f->fraction_bits;
	return kept > f->largest ? overflow(f, control, negative) : (uint32_t)kept;
}

uint32_t fgv_softgpu_narrow(double value, unsigned control)
{
	const struct format *f = &formats[NARROW_FORMAT(control)];
	uint64_t bits;
	uint64_t mantissa;
	unsigned exponent;
	bool negative;
	uint32_t result;

	memcpy(&bits, &value, sizeof(bits));
	negative = bits >> 63;
	exponent = bits >> 52 & 0x7ff;
	mantissa = bits & ((1ull << 52) - 1);
	if (exponent == 0x7ff && mantissa)
		return f->nan << f->shift | (f->shift ? (1u << f->shift) - 1 : 0);
	if (control & NARROW_RELU && negative)
		return 0;
	if (exponent == 0x7ff)
		result = control & NARROW_SATFINITE || !f->infinity ? overflow(f, control, negative)
								    : f->infinity;
	else if (!exponent && !mantissa)
		result = 0;
	else
		result =
			magnitude(f, control, negative, exponent ? mantissa | 1ull << 52 : mantissa,
				  exponent ? (int)exponent - 1 + EXPONENT_MIN : EXPONENT_MIN);
	return (result | (negative ? f->sign : 0)) << f->shift;
}

uint16_t fgv_softgpu_from_e4m3(uint8_t value)
{
	unsigned sign = (value & 0x80u) << 8;
	unsigned exponent = value >> 3 & 15;
	unsigned fraction = value & 7;

	if ((value & 0x7f) == 0x7f)
		return 0x7fff;
	if (exponent)
		return (uint16_t)(sign | (exponent + 8) << 10 | fraction << 7);
	if (!fraction)
		return (uint16_t)sign;
	/* Subnormal here, normal there: fraction * 2^-9. */
	while (!(fraction & 8)) {
		fraction <<= 1;
		exponent--;
	}
	return (uint16_t)(sign | (exponent + 9) << 10 | (fraction & 7) << 7);
}

uint16_t fgv_softgpu_from_e5m2(uint8_t value)
{
	return (value & 0x7f) > 0x7c ? 0x7fff : (uint16_t)(value << 8);
}
