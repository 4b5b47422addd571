/*
 * Loads and stores. The lanes' addresses are classed first: consecutive ones are one
 * vector access, equal ones a single access, others that lie in one extent go lane by
 * lane without further checks. What is left (several extents, windows of the generic space) takes the slow
 * way through fgv_softgpu_lane_read() and _write().
 *
 * o[0..3]: data, one per element; o[4]: address register; see enum address_kind.
 */
#include "softgpu/lanes.h"

enum { FLAG_NO_ROW = 1, FLAG_MISALIGNED = 2, FLAG_OUTSIDE = 4, FLAG_NOT_SAME = 8 };

enum pattern { PATTERN_ROW, PATTERN_SAME, PATTERN_GATHER, PATTERN_SLOW, PATTERN_FAULT };

/* Lanes that do not run get the address of one that does. */
INLINE void fill_idle(const struct warp *w, u64 *a)
{
	u64 first;

	if (__builtin_expect(w->active == ALL_LANES, 1))
		return;
	first = a[__builtin_ctz(w->active)];
	LANE_LOOP a[i] = w->lanes[i] ? a[i] : first;
}

INLINE void addresses(const struct warp *w, const struct insn *in, u64 *a)
{
	u64 imm = (u64)in->imm;

	if (in->aux == ADDRESS_REG64) {
		const u64 *p = ROW(u64, in->o[4]);

		LANE_LOOP a[i] = p[i] + imm;
		fill_idle(w, a);
	} else if (in->aux == ADDRESS_REG32) {
		const u32 *p = ROW(u32, in->o[4]);

		LANE_LOOP a[i] = (u32)(p[i] + (u32)imm);
		fill_idle(w, a);
	} else {
		if (in->aux == ADDRESS_FRAME)
			imm += w->local;
		LANE_LOOP a[i] = imm;
	}
}

struct extremes {
	u64 min;
	u64 max;
	u64 bits;
};

INLINE struct extremes find_extremes(const u64 *a)
{
	struct extremes e = {a[0], a[0], 0};

	for (int i = 0; i < LANES; i++) {
		e.min = a[i] < e.min ? a[i] : e.min;
		e.max = a[i] > e.max ? a[i] : e.max;
		e.bits |= a[i];
	}
	return e;
}

/* Are the addresses a[0], a[0] + bytes, a[0] + 2 * bytes, ...? */
INLINE bool is_row(const u64 *a, unsigned bytes)
{
	u64 different = 0;

	for (int i = 0; i < LANES; i++)
		different |= a[i] ^ (a[0] + (u64)(unsigned)i * bytes);
	return !different;
}

/* Do all lanes' accesses lie in the extent that was used last, are they aligned, are they one? */
INLINE u32 extent_flags(const struct warp *w, const u64 *a, unsigned bytes)
{
	u64 lo = w->view->lo;
	u64 room = w->view->hi - lo;
	u64 limit = room - bytes;
	u64 flags = 0;

	for (int i = 0; i < LANES; i++) {
		flags |= a[i] - lo > limit ? FLAG_OUTSIDE : 0;
		flags |= a[i] & (bytes - 1) ? FLAG_MISALIGNED : 0;
		flags |= a[i] != a[0] ? FLAG_NOT_SAME : 0;
	}
	return (u32)flags | (room < bytes ? FLAG_OUTSIDE : 0);
}

/* @bytes: of one lane's access. */
INLINE enum pattern class_global(struct warp *w, const u64 *a, unsigned bytes)
{
	struct extremes e;
	u32 flags;

	if (is_row(a, bytes)) {
		if (a[0] & (bytes - 1))
			return PATTERN_FAULT;
		return fgv_softgpu_view_has(w->view, a[0], a[0] + LANES * bytes) ? PATTERN_ROW
										 : PATTERN_SLOW;
	}
	flags = extent_flags(w, a, bytes);
	if (flags & FLAG_MISALIGNED)
		return PATTERN_FAULT;
	if (!(flags & FLAG_OUTSIDE))
		return flags & FLAG_NOT_SAME ? PATTERN_GATHER : PATTERN_SAME;
	e = find_extremes(a);
	return fgv_softgpu_view_has(w->view, e.min, e.max + bytes) ? PATTERN_GATHER : PATTERN_SLOW;
}

INLINE enum pattern class_param(struct warp *w, u64 *a, unsigned bytes)
{
	u64 base = (u64)(uintptr_t)w->param;
	struct extremes e = find_extremes(a);

	if (e.bits & (bytes - 1))
		return PATTERN_FAULT;
	if (e.max >= w->param_bytes || w->param_bytes - e.max < bytes)
		return PATTERN_SLOW;
	LANE_LOOP a[i] += base;
	return e.min == e.max ? PATTERN_SAME : PATTERN_GATHER;
}

/* What lies in slow addresses of each space: windows make them generic. */
#define slow_global 0
#define slow_param  PARAM_WINDOW
#define slow_local  LOCAL_WINDOW

static const struct insn *bad_access(struct warp *w, const struct insn *in, enum pattern pattern)
{
	return fgv_softgpu_fault(w, in,
				 pattern == PATTERN_FAULT ? CUDA_ERROR_MISALIGNED_ADDRESS
							  : CUDA_ERROR_ILLEGAL_ADDRESS);
}

#define WRITE_LANES(D, value)                                                \
	do {                                                                 \
		if (__builtin_expect(w->full, 1)) {                          \
			LANE_LOOP d[i] = (D)(value);                         \
		} else {                                                     \
			const s32 *m = w->lanes;                             \
			LANE_LOOP                                            \
			{                                                    \
				D r = (D)(value);                            \
				d[i] = m[i] ? r : d[i];                      \
			}                                                    \
		}                                                            \
	} while (0)

#define SLOW_LOAD(D, M, space)                                               \
	for (u32 lanes = w->active; lanes; lanes &= lanes - 1) {             \
		unsigned lane = (unsigned)__builtin_ctz(lanes);              \
		M value;                                                     \
		if (slow_##space && a[lane] >= WINDOW_SIZE)                  \
			return bad_access(w, in, PATTERN_SLOW);              \
		if (!fgv_softgpu_lane_read(w, slow_##space + a[lane] + k * sizeof(M), \
					   sizeof(M), lane, &value))         \
			return bad_access(w, in, PATTERN_SLOW);              \
		d[lane] = (D)value;                                          \
	}

#define LOAD_POINTERS(D, M, space)                                           \
	_Alignas(64) u64 a[LANES];                                           \
	enum pattern pattern;                                                \
	unsigned vec = in->vec;                                              \
	addresses(w, in, a);                                                 \
	pattern = class_##space(w, a, (unsigned)sizeof(M) * vec);            \
	if (pattern == PATTERN_FAULT)                                        \
		return bad_access(w, in, pattern);                           \
	for (unsigned k = 0; k < vec; k++) {                                 \
		D *d = ROW(D, in->o[k]);                                     \
		const M *p = (const M *)(uintptr_t)a[0] + k;                 \
		if (pattern == PATTERN_ROW && vec == 1) {                    \
			WRITE_LANES(D, p[i]);                                \
		} else if (pattern == PATTERN_SAME) {                        \
			M value = *p;                                        \
			WRITE_LANES(D, value);                               \
		} else if (pattern == PATTERN_SLOW) {                        \
			SLOW_LOAD(D, M, space)                               \
		} else {                                                     \
			WRITE_LANES(D, ((const M *)(uintptr_t)a[i])[k]);     \
		}                                                            \
	}                                                                    \
	return in + 1;

#define U_16 u16
#define U_32 u32
#define U_64 u64

#define LD_global(M, W) HANDLER(ld_global_##M##_##W) { LOAD_POINTERS(U_##W, M, global) }
#define LD_param(M, W)	HANDLER(ld_param_##M##_##W) { LOAD_POINTERS(U_##W, M, param) }

#define STORE_POINTERS(S, M, space)                                          \
	_Alignas(64) u64 a[LANES];                                           \
	enum pattern pattern;                                                \
	unsigned vec = in->vec;                                              \
	addresses(w, in, a);                                                 \
	pattern = class_##space(w, a, (unsigned)sizeof(M) * vec);            \
	if (pattern == PATTERN_FAULT)                                        \
		return bad_access(w, in, pattern);                           \
	for (unsigned k = 0; k < vec; k++) {                                 \
		const S *s = ROW(S, in->o[k]);                               \
		if (pattern == PATTERN_ROW && vec == 1) {                    \
			M *p = (M *)(uintptr_t)a[0];                         \
			LANE_LOOP p[i] = (M)s[i];                            \
			continue;                                            \
		}                                                            \
		for (u32 lanes = w->active; lanes; lanes &= lanes - 1) {     \
			unsigned lane = (unsigned)__builtin_ctz(lanes);      \
			M value = (M)s[lane];                                \
			if (pattern != PATTERN_SLOW)                         \
				((M *)(uintptr_t)a[lane])[k] = value;        \
			else if ((slow_##space && a[lane] >= WINDOW_SIZE) || \
				 !fgv_softgpu_lane_write(w, slow_##space + a[lane] + k * sizeof(M), \
							 sizeof(M), lane, &value)) \
				return bad_access(w, in, PATTERN_SLOW);      \
		}                                                            \
	}                                                                    \
	return in + 1;

#define ST_global(M, W) HANDLER(st_global_##M##_##W) { STORE_POINTERS(U_##W, M, global) }

/*
 * Shared memory: offsets of 32 bits from one base, which is half the work of pointers and lets
 * the processor gather.
 */
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
	if (__builtin_expect(w->active != ALL_LANES, 0)) {
		u32 first = a[__builtin_ctz(w->active)];

		LANE_LOOP a[i] = w->lanes[i] ? a[i] : first;
	}
	return true;
}

/*
 * @bytes: of one lane's access. One sum over the lanes tells all: vector code is slow
 * at bringing lanes together.
 */
INLINE enum pattern class_shared(struct warp *w, const struct insn *in, u32 *a, unsigned bytes)
{
	u32 size = w->block->shared_bytes;
	u32 limit = size - bytes;
	u32 flags = 0;

	if (!shared_offsets(w, in, a) || size < bytes)
		return PATTERN_SLOW;
	for (int i = 0; i < LANES; i++) {
		flags |= a[i] != a[0] + (u32)i * bytes ? FLAG_NO_ROW : 0;
		flags |= a[i] & (bytes - 1) ? FLAG_MISALIGNED : 0;
		flags |= a[i] > limit ? FLAG_OUTSIDE : 0;
		flags |= a[i] != a[0] ? FLAG_NOT_SAME : 0;
	}
	if (flags & FLAG_MISALIGNED)
		return PATTERN_FAULT;
	if (flags & FLAG_OUTSIDE)
		return PATTERN_SLOW;
	if (!(flags & FLAG_NO_ROW))
		return PATTERN_ROW;
	return flags & FLAG_NOT_SAME ? PATTERN_GATHER : PATTERN_SAME;
}

/* Words at offsets from a base. */
INLINE void gather_words(u32 *d, const u8 *base, const u32 *a)
{
#if defined(__AVX512F__)
	_mm512_store_si512(d, _mm512_i32gather_epi32(_mm512_load_si512(a), base, 1));
	_mm512_store_si512(d + 16, _mm512_i32gather_epi32(_mm512_load_si512(a + 16), base, 1));
#elif defined(__AVX2__)
	for (int i = 0; i < LANES; i += 8)
		_mm256_store_si256((__m256i *)(d + i),
				   _mm256_i32gather_epi32((const int *)base,
							  _mm256_load_si256((const __m256i *)(a + i)),
							  1));
#else
	LANE_LOOP d[i] = *(const u32 *)(base + a[i]);
#endif
}

HANDLER(ld_shared_u32_32)
{
	_Alignas(64) u32 a[LANES];
	_Alignas(64) u32 words[LANES];
	unsigned vec = in->vec;
	enum pattern pattern = class_shared(w, in, a, 4 * vec);

	if (pattern == PATTERN_FAULT || pattern == PATTERN_SLOW)
		return bad_access(w, in, pattern);
	for (unsigned k = 0; k < vec; k++) {
		u32 *d = ROW(u32, in->o[k]);
		const u8 *base = w->block->shared + 4 * k;
		const u32 *p = (const u32 *)(base + a[0]);

		if (pattern == PATTERN_ROW && vec == 1) {
			WRITE_LANES(u32, p[i]);
		} else if (pattern == PATTERN_SAME) {
			WRITE_LANES(u32, *p);
		} else {
			gather_words(words, base, a);
			WRITE_LANES(u32, words[i]);
		}
	}
	return in + 1;
}

#define LD_shared_other(M, W)                                                      \
	HANDLER(ld_shared_##M##_##W)                                         \
	{                                                                    \
		_Alignas(64) u32 a[LANES];                                   \
		unsigned vec = in->vec;                                      \
		enum pattern pattern = class_shared(w, in, a, (unsigned)sizeof(M) * vec); \
		if (pattern == PATTERN_FAULT || pattern == PATTERN_SLOW)     \
			return bad_access(w, in, pattern);                   \
		for (unsigned k = 0; k < vec; k++) {                         \
			U_##W *d = ROW(U_##W, in->o[k]);                     \
			const M *base = (const M *)w->block->shared + k;     \
			const M *p = base + a[0] / sizeof(M);                \
			if (pattern == PATTERN_ROW && vec == 1)              \
				WRITE_LANES(U_##W, p[i]);                    \
			else if (pattern == PATTERN_SAME)                    \
				WRITE_LANES(U_##W, *p);                      \
			else                                                 \
				WRITE_LANES(U_##W, base[a[i] / sizeof(M)]);  \
		}                                                            \
		return in + 1;                                               \
	}

#define ST_shared(M, W)                                                      \
	HANDLER(st_shared_##M##_##W)                                         \
	{                                                                    \
		_Alignas(64) u32 a[LANES];                                   \
		unsigned vec = in->vec;                                      \
		enum pattern pattern = class_shared(w, in, a, (unsigned)sizeof(M) * vec); \
		if (pattern == PATTERN_FAULT || pattern == PATTERN_SLOW)     \
			return bad_access(w, in, pattern);                   \
		for (unsigned k = 0; k < vec; k++) {                         \
			const U_##W *s = ROW(U_##W, in->o[k]);               \
			M *base = (M *)w->block->shared + k;                 \
			if (pattern == PATTERN_ROW && vec == 1) {            \
				M *p = base + a[0] / sizeof(M);              \
				LANE_LOOP p[i] = (M)s[i];                    \
				continue;                                    \
			}                                                    \
			for (u32 lanes = w->active; lanes; lanes &= lanes - 1) { \
				unsigned lane = (unsigned)__builtin_ctz(lanes); \
				base[a[lane] / sizeof(M)] = (M)s[lane];      \
			}                                                    \
		}                                                            \
		return in + 1;                                               \
	}

#define LD_shared_u8(W)	 LD_shared_other(u8, W)
#define LD_shared_s8(W)	 LD_shared_other(s8, W)
#define LD_shared_u16(W) LD_shared_other(u16, W)
#define LD_shared_s16(W) LD_shared_other(s16, W)
#define LD_shared_s32(W) LD_shared_other(s32, W)
#define LD_shared_u64(W) LD_shared_other(u64, W)
#define LD_shared_u32(W) LD_shared_word_##W
#define LD_shared_word_32 /* above */
#define LD_shared_word_64 LD_shared_other(u32, 64)
#define LD_shared(M, W)	  LD_shared_##M(W)

/*
 * Local memory lies in words of four bytes, lane by lane, so that all lanes at one offset
 * (the usual case) are a row.
 */
INLINE u8 *local_word(const struct warp *w, u64 offset, int lane)
{
	return w->local_memory + (offset >> 2) * (4 * LANES) + (unsigned)lane * 4 + (offset & 3);
}

#define LOCAL_ACCESS(M)                                                      \
	INLINE M local_get_##M(const struct warp *w, u64 offset, int lane)   \
	{                                                                    \
		return *(M *)local_word(w, offset, lane);                    \
	}                                                                    \
	INLINE void local_put_##M(const struct warp *w, u64 offset, int lane, M value) \
	{                                                                    \
		*(M *)local_word(w, offset, lane) = value;                   \
	}
LOCAL_ACCESS(u8)
LOCAL_ACCESS(s8)
LOCAL_ACCESS(u16)
LOCAL_ACCESS(s16)
LOCAL_ACCESS(u32)
LOCAL_ACCESS(s32)

INLINE u64 local_get_u64(const struct warp *w, u64 offset, int lane)
{
	return (u64)local_get_u32(w, offset + 4, lane) << 32 | local_get_u32(w, offset, lane);
}

INLINE void local_put_u64(const struct warp *w, u64 offset, int lane, u64 value)
{
	local_put_u32(w, offset, lane, (u32)value);
	local_put_u32(w, offset + 4, lane, (u32)(value >> 32));
}

INLINE enum pattern class_local(struct warp *w, const u64 *a, unsigned bytes)
{
	struct extremes e = find_extremes(a);
	u64 size = w->block->local_bytes;

	if (e.bits & (bytes - 1))
		return PATTERN_FAULT;
	if (e.max >= size || size - e.max < bytes)
		return PATTERN_SLOW;
	return e.min == e.max ? PATTERN_SAME : PATTERN_GATHER;
}

#define LD_local(M, W)                                                       \
	HANDLER(ld_local_##M##_##W)                                          \
	{                                                                    \
		_Alignas(64) u64 a[LANES];                                   \
		enum pattern pattern;                                        \
		addresses(w, in, a);                                         \
		pattern = class_local(w, a, (unsigned)sizeof(M) * in->vec);  \
		if (pattern == PATTERN_FAULT || pattern == PATTERN_SLOW)     \
			return bad_access(w, in, pattern);                   \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			U_##W *d = ROW(U_##W, in->o[k]);                     \
			u64 offset = a[0] + k * sizeof(M);                   \
			if (pattern == PATTERN_SAME)                         \
				WRITE_LANES(U_##W, local_get_##M(w, offset, i)); \
			else                                                 \
				WRITE_LANES(U_##W, local_get_##M(w, a[i] + k * sizeof(M), i)); \
		}                                                            \
		return in + 1;                                               \
	}

#define ST_local(M, W)                                                       \
	HANDLER(st_local_##M##_##W)                                          \
	{                                                                    \
		_Alignas(64) u64 a[LANES];                                   \
		enum pattern pattern;                                        \
		addresses(w, in, a);                                         \
		pattern = class_local(w, a, (unsigned)sizeof(M) * in->vec);  \
		if (pattern == PATTERN_FAULT || pattern == PATTERN_SLOW)     \
			return bad_access(w, in, pattern);                   \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			const U_##W *s = ROW(U_##W, in->o[k]);               \
			if (pattern == PATTERN_SAME && w->active == ALL_LANES) { \
				u64 offset = a[0] + k * sizeof(M);           \
				LANE_LOOP local_put_##M(w, offset, i, (M)s[i]); \
				continue;                                    \
			}                                                    \
			for (u32 lanes = w->active; lanes; lanes &= lanes - 1) { \
				int lane = __builtin_ctz(lanes);             \
				local_put_##M(w, a[lane] + k * sizeof(M), lane, (M)s[lane]); \
			}                                                    \
		}                                                            \
		return in + 1;                                               \
	}

#define LD(space, M, W) LD_##space(M, W)
#define ST(space, M, W) ST_##space(M, W)
#include "softgpu/ops.def"

void FILL(mem)(handler *table)
{
#define LD(space, M, W) table[OP_ld_##space##_##M##_##W] = op_ld_##space##_##M##_##W;
#define ST(space, M, W) table[OP_st_##space##_##M##_##W] = op_st_##space##_##M##_##W;
#include "softgpu/ops.def"
}
