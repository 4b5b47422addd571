/*
 * Loads and stores of shared memory, by offsets of 32 bits from one base, which is half the
 * work of pointers; and of local memory, which lies in words of four bytes, lane by lane, so
 * that all lanes at one offset (the usual case) are a row.
 */
#include "softgpu/ops/block.h"
#include "softgpu/ops/lane_mem.h"

#define U_16 u16
#define U_32 u32
#define U_64 u64

/*
 * Where all lanes' accesses of @bytes begin that are a row (PATTERN_ROW) or one
 * (PATTERN_SAME) and may be touched; anything else is PATTERN_GATHER.
 */
INLINE enum pattern shared_place(const struct warp *w, const struct insn *in, unsigned bytes,
				 u32 *offset)
{
	struct difference d = {1, 0};
	u32 first = (u32)in->imm;
	u32 size = w->block->shared_bytes;
	unsigned span;

	if (in->aux == ADDRESS_REG32) {
		const u32 *a = ROW(u32, in->o[4]);

		if (w->active != ALL_LANES)
			return PATTERN_GATHER;
		d = difference_u32(a, LANES, (unsigned)__builtin_ctz(bytes));
		first += a[0];
	} else if (in->aux != ADDRESS_IMM) {
		return PATTERN_GATHER;
	}
	span = d.row ? bytes : bytes * LANES;
	if ((d.row && d.same) || first & (bytes - 1) || first > size || size - first < span)
		return PATTERN_GATHER;
	*offset = first;
	return d.row ? PATTERN_SAME : PATTERN_ROW;
}

/* Lanes that do not run get the offset of one that does. */
INLINE bool shared_offsets(const struct warp *w, const struct insn *in, u32 *a)
{
	u32 imm = (u32)in->imm;

	if (in->aux == ADDRESS_REG32) {
		const u32 *p = ROW(u32, in->o[4]);

		LANE_LOOP a[i] = p[i] + imm;
	} else if (in->aux == ADDRESS_REG64) {
		const u64 *p = ROW(u64, in->o[4]);
		u64 high = 0;

		LANE_LOOP
		{
			u64 address = p[i] + (u64)in->imm;

			a[i] = (u32)address;
			high |= w->lanes[i] ? address >> 32 : 0;
		}
		if (high)
			return false;
	} else {
		LANE_LOOP a[i] = imm;
	}
	fill_idle_u32(w, a);
	return true;
}

/* @bytes: of one lane's access. */
INLINE enum pattern class_shared(struct warp *w, const struct insn *in, u32 *a, unsigned bytes)
{
	u32 size = w->block->shared_bytes;
	u32 limit = size - bytes;
	u32 flags = 0;

	if (!shared_offsets(w, in, a) || size < bytes)
		return PATTERN_SLOW;
	for (int i = 0; i < LANES; i++) {
		flags |= a[i] & (bytes - 1) ? FLAG_MISALIGNED : 0;
		flags |= a[i] > limit ? FLAG_OUTSIDE : 0;
	}
	if (flags & FLAG_MISALIGNED)
		return PATTERN_FAULT;
	return flags & FLAG_OUTSIDE ? PATTERN_SLOW : PATTERN_GATHER;
}

#define SHARED_AT(M, offset) ((M *)(w->block->shared + (offset)) + k)
#define SHARED_LANE(M, i)    SHARED_AT(M, a[i])
#define READ_AT(i)	     SHARED_LANE(const MEMORY, i)

/* Elements of a vector never make a row: they would be misaligned. */
#define LD_shared(M, W)                                                      \
	OTHER(ld_shared_##M##_##W)                                           \
	{                                                                    \
		typedef M MEMORY;                                            \
		_Alignas(64) u32 a[LANES];                                   \
		_Alignas(64) U_##W got[LANES];                               \
		unsigned shift = (unsigned)__builtin_ctz(sizeof(M));         \
		enum pattern pattern =                                       \
			class_shared(w, in, a, (unsigned)sizeof(M) * in->vec); \
		struct difference low, high;                                 \
		if (pattern != PATTERN_GATHER)                               \
			return bad_access(w, in, pattern);                   \
		low = difference_u32(a, HALF, shift);                        \
		high = difference_u32(a + HALF, HALF, shift);                \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			U_##W *d = ROW(U_##W, in->o[k]);                     \
			LOAD_HALF(U_##W, M, READ_AT, 0, low);                \
			LOAD_HALF(U_##W, M, READ_AT, HALF, high);            \
			WRITE_LANES(U_##W, got[i]);                          \
		}                                                            \
		return in + 1;                                               \
	}                                                                    \
	HANDLER(ld_shared_##M##_##W)                                         \
	{                                                                    \
		u32 offset;                                                  \
		enum pattern pattern =                                       \
			shared_place(w, in, (unsigned)sizeof(M) * in->vec, &offset); \
		if (pattern == PATTERN_GATHER)                               \
			return other_ld_shared_##M##_##W(w, in);             \
		if (pattern == PATTERN_ROW) {                                \
			const M *p = (const M *)(w->block->shared + offset); \
			LOAD_ROW(U_##W, M, p);                               \
			return in + 1;                                       \
		}                                                            \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			U_##W *d = ROW(U_##W, in->o[k]);                     \
			M value = *SHARED_AT(const M, offset);               \
			WRITE_LANES(U_##W, value);                           \
		}                                                            \
		return in + 1;                                               \
	}

#define ST_shared(M, W)                                                      \
	OTHER(st_shared_##M##_##W)                                           \
	{                                                                    \
		_Alignas(64) u32 a[LANES];                                   \
		unsigned shift = (unsigned)__builtin_ctz(sizeof(M));         \
		enum pattern pattern =                                       \
			class_shared(w, in, a, (unsigned)sizeof(M) * in->vec); \
		struct difference low, high;                                 \
		if (pattern != PATTERN_GATHER)                               \
			return bad_access(w, in, pattern);                   \
		low = difference_u32(a, HALF, shift);                        \
		high = difference_u32(a + HALF, HALF, shift);                \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			const U_##W *s = ROW(U_##W, in->o[k]);               \
			if (w->active == ALL_LANES) {                        \
				STORE_HALF(M, SHARED_LANE, 0, low);          \
				STORE_HALF(M, SHARED_LANE, HALF, high);      \
				continue;                                    \
			}                                                    \
			for (u32 lanes = w->active; lanes; lanes &= lanes - 1) { \
				unsigned lane = (unsigned)__builtin_ctz(lanes); \
				*SHARED_AT(M, a[lane]) = (M)s[lane];         \
			}                                                    \
		}                                                            \
		return in + 1;                                               \
	}                                                                    \
	HANDLER(st_shared_##M##_##W)                                         \
	{                                                                    \
		u32 offset;                                                  \
		M *p;                                                        \
		if (__builtin_expect(w->quiet, 0))                           \
			return fgv_softgpu_store_later(w, in);               \
		if (shared_place(w, in, (unsigned)sizeof(M) * in->vec, &offset) != PATTERN_ROW) \
			return other_st_shared_##M##_##W(w, in);             \
		p = (M *)(w->block->shared + offset);                        \
		STORE_ROW(U_##W, M, p);                                      \
		return in + 1;                                               \
	}

INLINE u8 *local_word(const struct warp *w, u64 offset, int lane)
{
	return w->local_memory + (offset >> 2) * (4 * LANES) + (unsigned)lane * 4 + (offset & 3);
}

#define LOCAL_ACCESS(M)                                                      \
	INLINE M local_get_##M(const u8 *p)                                  \
	{                                                                    \
		return *(const M *)p;                                        \
	}                                                                    \
	INLINE void local_put_##M(u8 *p, M value)                            \
	{                                                                    \
		*(M *)p = value;                                             \
	}
LOCAL_ACCESS(u8)
LOCAL_ACCESS(s8)
LOCAL_ACCESS(u16)
LOCAL_ACCESS(s16)
LOCAL_ACCESS(u32)
LOCAL_ACCESS(s32)

INLINE u64 local_get_u64(const u8 *p)
{
	return (u64)local_get_u32(p + 4 * LANES) << 32 | local_get_u32(p);
}

INLINE void local_put_u64(u8 *p, u64 value)
{
	local_put_u32(p, (u32)value);
	local_put_u32(p + 4 * LANES, (u32)(value >> 32));
}

/* At an offset that the program says, which is nearly always, only a[0] is set. */
INLINE enum pattern class_local(struct warp *w, const struct insn *in, u64 *a, unsigned bytes)
{
	u64 size = w->block->local_bytes;
	struct extremes e;

	if (in->aux == ADDRESS_FRAME || in->aux == ADDRESS_IMM) {
		a[0] = (u64)in->imm + (in->aux == ADDRESS_FRAME ? w->local : 0);
		e = (struct extremes){a[0], a[0], a[0]};
	} else {
		addresses(w, in, a);
		e = find_extremes(a);
	}
	if (e.bits & (bytes - 1))
		return PATTERN_FAULT;
	if (e.max >= size || size - e.max < bytes)
		return PATTERN_SLOW;
	return e.min == e.max ? PATTERN_SAME : PATTERN_GATHER;
}

#define LOCAL_WORD(M, lane) local_word(w, a[lane] + k * sizeof(M), lane)

#define LD_local(M, W)                                                       \
	HANDLER(ld_local_##M##_##W)                                          \
	{                                                                    \
		_Alignas(64) u64 a[LANES];                                   \
		enum pattern pattern =                                       \
			class_local(w, in, a, (unsigned)sizeof(M) * in->vec); \
		if (pattern == PATTERN_FAULT || pattern == PATTERN_SLOW)     \
			return bad_access(w, in, pattern);                   \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			U_##W *d = ROW(U_##W, in->o[k]);                     \
			const u8 *p = local_word(w, a[0] + k * sizeof(M), 0); \
			if (pattern == PATTERN_SAME)                         \
				WRITE_LANES(U_##W, local_get_##M(p + 4 * i)); \
			else                                                 \
				WRITE_LANES(U_##W, local_get_##M(LOCAL_WORD(M, i)));     \
		}                                                            \
		return in + 1;                                               \
	}

#define ST_local(M, W)                                                       \
	HANDLER(st_local_##M##_##W)                                          \
	{                                                                    \
		_Alignas(64) u64 a[LANES];                                   \
		const s32 *m = w->lanes;                                     \
		enum pattern pattern =                                       \
			class_local(w, in, a, (unsigned)sizeof(M) * in->vec); \
		if (pattern == PATTERN_FAULT || pattern == PATTERN_SLOW)     \
			return bad_access(w, in, pattern);                   \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			const U_##W *s = ROW(U_##W, in->o[k]);               \
			u8 *p = local_word(w, a[0] + k * sizeof(M), 0);      \
			if (pattern == PATTERN_SAME && w->full) {            \
				LANE_LOOP local_put_##M(p + 4 * i, (M)s[i]); \
			} else if (pattern == PATTERN_SAME) {                \
				LANE_LOOP                                    \
				{                                            \
					M old = local_get_##M(p + 4 * i);    \
					local_put_##M(p + 4 * i, m[i] ? (M)s[i] : old); \
				}                                            \
			} else {                                             \
				for (u32 left = w->active; left; left &= left - 1) { \
					int lane = __builtin_ctz(left);      \
					local_put_##M(LOCAL_WORD(M, lane), (M)s[lane]); \
				}                                            \
			}                                                    \
		}                                                            \
		return in + 1;                                               \
	}

/* mem.c */
#define LD_global(M, W)
#define ST_global(M, W)
#define LD_param(M, W)

#define LD(space, M, W) LD_##space(M, W)
#define ST(space, M, W) ST_##space(M, W)
#include "softgpu/ops/ops.def"

#define SET(key)	    table[OP_##key] = op_##key;
#define SET_LD_shared(M, W) SET(ld_shared_##M##_##W)
#define SET_ST_shared(M, W) SET(st_shared_##M##_##W)
#define SET_LD_local(M, W)  SET(ld_local_##M##_##W)
#define SET_ST_local(M, W)  SET(st_local_##M##_##W)
#define SET_LD_global(M, W)
#define SET_ST_global(M, W)
#define SET_LD_param(M, W)

void FILL(shared)(handler *table)
{
#define LD(space, M, W) SET_LD_##space(M, W)
#define ST(space, M, W) SET_ST_##space(M, W)
#include "softgpu/ops/ops.def"
}
