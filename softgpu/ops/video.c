/* The handler of all video instructions, lane by lane: they are rare, and their forms many. */
#include "softgpu/ops/lanes.h"
#include "softgpu/video.h"

static s64 field(u64 value, unsigned place, unsigned bits, bool is_signed)
{
	u64 top = value >> place << (64 - bits);

	return is_signed ? (s64)top >> (64 - bits) : (s64)(top >> (64 - bits));
}

static bool holds(const struct video *v, s64 a, s64 b)
{
	switch (v->compare) {
	case VIDEO_EQ:
		return a == b;
	case VIDEO_NE:
		return a != b;
	case VIDEO_LT:
		return a < b;
	case VIDEO_LE:
		return a <= b;
	case VIDEO_GT:
		return a > b;
	default:
		return a >= b;
	}
}

static s64 shifted(const struct video *v, s64 a, s64 b)
{
	u32 by = (u32)b;

	by = v->wrap ? by & 31 : by > 32 ? 32 : by;
	if (v->op == VIDEO_SHR)
		return a >> by;
	/* 32 bits by 32 places: what does not fit is beyond any limit. */
	return v->sat && by == 32 && a > INT32_MAX ? INT64_MAX : (s64)((u64)a << by);
}

static s64 compute(const struct video *v, s64 a, s64 b)
{
	switch (v->op) {
	case VIDEO_ADD:
		return a + b;
	case VIDEO_SUB:
		return a - b;
	case VIDEO_ABSDIFF:
		return a > b ? a - b : b - a;
	case VIDEO_MIN:
		return a < b ? a : b;
	case VIDEO_MAX:
		return a > b ? a : b;
	case VIDEO_AVRG:
		return (a + b + (a + b >= 0)) >> 1;
	case VIDEO_SET:
		return holds(v, a, b);
	default:
		return shifted(v, a, b);
	}
}

static s64 limited(const struct video *v, s64 value, unsigned bits)
{
	s64 max = v->signed_d ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
	s64 min = v->signed_d ? -max - 1 : 0;

	if (!v->sat)
		return value;
	return value < min ? min : value > max ? max : value;
}

static u32 scalar(const struct video *v, u32 a, u32 b, u32 c)
{
	s64 value = compute(v, field(a, v->select_a[0], v->bits_a, v->signed_a),
			    field(b, v->select_b[0], v->bits_b, v->signed_b));
	u32 result = (u32)limited(v, value, v->bits_d);
	u32 mask = (u32)(((1ull << v->bits_d) - 1) << v->place_d);
	bool less = v->signed_d ? (s32)result < (s32)c : result < c;

	switch (v->second) {
	case VIDEO_MERGE:
		return (result << v->place_d & mask) | (c & ~mask);
	case VIDEO_PLUS:
		return result + c;
	case VIDEO_LESSER:
		return less ? result : c;
	case VIDEO_GREATER:
		return less ? c : result;
	default:
		return result;
	}
}

static u32 vector(const struct video *v, u32 a, u32 b, u32 c)
{
	u64 both = (u64)b << 32 | a;
	u32 result = c;

	for (unsigned i = 0; i < v->elements; i++) {
		u32 mask = ((1u << v->bits) - 1) << (i * v->bits);
		s64 value;

		if (!(v->mask >> i & 1))
			continue;
		value = compute(v, field(both, v->select_a[i] * v->bits, v->bits, v->signed_a),
				field(both, v->select_b[i] * v->bits, v->bits, v->signed_b));
		value = limited(v, value, v->bits);
		if (v->second == VIDEO_PLUS)
			result += (u32)value;
		else
			result = (result & ~mask) | ((u32)value << (i * v->bits) & mask);
	}
	return result;
}

/* o[0]: destination, o[1..3]: operands; imm: struct video. */
HANDLER(video)
{
	const struct video *v = (const void *)(uintptr_t)in->imm;
	const u32 *a = ROW(u32, in->o[1]);
	const u32 *b = ROW(u32, in->o[2]);
	const u32 *c = ROW(u32, in->o[3]);
	u32 *d = ROW(u32, in->o[0]);

	for (u32 left = w->active; left; left &= left - 1) {
		int i = __builtin_ctz(left);

		d[i] = v->elements == 1 ? scalar(v, a[i], b[i], c[i]) : vector(v, a[i], b[i], c[i]);
	}
	return in + 1;
}

void fgv_softgpu_fill_video(handler *table)
{
	table[OP_video] = op_video;
}
