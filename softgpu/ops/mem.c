/*
 * Loads and stores by pointers: device memory, generic addresses, kernel parameters. Lanes
 * whose addresses lie in one extent need no further check. What is left (several extents,
 * windows of the generic space) takes the slow way through fgv_softgpu_lane_read() and
 * _write().
 */
#include "softgpu/ops/block.h"
#include "softgpu/ops/lane_mem.h"

#define U_16 u16
#define U_32 u32
#define U_64 u64

/* Where a row of all lanes begins, one access being of @bytes; NULL: no row, or none here. */
INLINE void *global_row(struct warp *w, const struct insn *in, unsigned bytes)
{
	unsigned shift = (unsigned)__builtin_ctz(bytes);
	const u64 *a;
	u64 first;

	if (w->active != ALL_LANES || in->aux != ADDRESS_REG64)
		return NULL;
	a = ROW(u64, in->o[4]);
	first = a[0] + (u64)in->imm;
	if (difference_u64(a, LANES, shift).row || first & (bytes - 1) ||
	    !fgv_softgpu_view_has(w->view, first, first + (u64)LANES * bytes))
		return NULL;
	return (void *)(uintptr_t)first;
}

/* The same for lanes some of which run: what lies in between must be readable, too. */
INLINE const void *partial_row(struct warp *w, const u64 *a, unsigned bytes)
{
	unsigned lane = (unsigned)__builtin_ctz(w->active);
	unsigned shift = (unsigned)__builtin_ctz(bytes);
	u64 first = a[lane] - ((u64)lane << shift);
	u64 end = first + (u64)LANES * bytes;
	u64 different = 0;

	if (w->active == ALL_LANES || first < w->view->lo || end > w->view->hi || first > end ||
	    first & (bytes - 1))
		return NULL;
	for (u64 i = 0; i < LANES; i++)
		different |= w->lanes[i] ? a[i] ^ (first + (i << shift)) : 0;
	return different ? NULL : (const void *)(uintptr_t)first;
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

/* @bytes: of one lane's access. Addresses in the window of shared memory become pointers. */
INLINE enum pattern class_global(struct warp *w, u64 *a, unsigned bytes)
{
	u32 flags = extent_flags(w, a, bytes);
	u64 shared = w->block->shared_bytes;
	struct extremes e;

	if (flags & FLAG_MISALIGNED)
		return PATTERN_FAULT;
	if (!(flags & FLAG_OUTSIDE))
		return flags & FLAG_NOT_SAME ? PATTERN_GATHER : PATTERN_SAME;
	e = find_extremes(a);
	if (e.min >= SHARED_WINDOW && e.max - SHARED_WINDOW < shared &&
	    shared - (e.max - SHARED_WINDOW) >= bytes)
		LANE_LOOP a[i] += (u64)(uintptr_t)w->block->shared - SHARED_WINDOW;
	else if (!fgv_softgpu_view_has(w->view, e.min, e.max + bytes))
		return PATTERN_SLOW;
	return e.min == e.max ? PATTERN_SAME : PATTERN_GATHER;
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

#define SLOW_LOAD(D, M, space)                                               \
	for (u32 lanes = w->active; lanes; lanes &= lanes - 1) {             \
		unsigned lane = (unsigned)__builtin_ctz(lanes);              \
		M value;                                                     \
		if (slow_##space && a[lane] >= WINDOW_SIZE)                  \
			return bad_access(w, in, PATTERN_SLOW);              \
		if (!fgv_softgpu_lane_read(w, slow_##space + a[lane], sizeof(M), lane, &value)) \
			return bad_access(w, in, PATTERN_SLOW);              \
		d[lane] = (D)value;                                          \
	}

/* The running lanes' vectors, of @bytes each, one behind the other; @slow: see above. */
static bool read_vectors(struct warp *w, const u64 *a, enum pattern pattern, u64 slow,
			 unsigned bytes, void *to)
{
	for (u32 lanes = w->active; lanes; lanes &= lanes - 1) {
		unsigned lane = (unsigned)__builtin_ctz(lanes);
		void *one = (char *)to + lane * bytes;

		if (pattern != PATTERN_SLOW)
			copy_whole(one, (const void *)(uintptr_t)a[lane], bytes);
		else if ((slow && a[lane] >= WINDOW_SIZE) ||
			 !fgv_softgpu_lane_read(w, slow + a[lane], bytes, lane, one))
			return false;
	}
	return true;
}

static bool write_vectors(struct warp *w, const u64 *a, enum pattern pattern, unsigned bytes,
			  const void *from)
{
	for (u32 lanes = w->active; lanes; lanes &= lanes - 1) {
		unsigned lane = (unsigned)__builtin_ctz(lanes);
		const void *one = (const char *)from + lane * bytes;

		if (pattern != PATTERN_SLOW)
			copy_whole((void *)(uintptr_t)a[lane], one, bytes);
		else if (!fgv_softgpu_lane_write(w, a[lane], bytes, lane, one))
			return false;
	}
	return true;
}

#define POINTER(M, i) ((M *)(uintptr_t)a[i])
#define READ_AT(i)    POINTER(const MEMORY, i)

#define LOAD_VECTORS(D, M, space)                                            \
	do {                                                                 \
		_Alignas(64) M all[LANES * VECTOR_MAX];                      \
		unsigned vec = in->vec;                                      \
		if (!read_vectors(w, a, pattern, slow_##space, (unsigned)sizeof(M) * vec, all)) \
			return bad_access(w, in, PATTERN_SLOW);              \
		for (unsigned k = 0; k < vec; k++) {                         \
			D *d = ROW(D, in->o[k]);                             \
			WRITE_LANES(D, all[(unsigned)i * vec + k]);          \
		}                                                            \
	} while (0)

#define LOAD_OTHER(D, M, space)                                              \
	{                                                                    \
		typedef M MEMORY;                                            \
		_Alignas(64) u64 a[LANES];                                   \
		_Alignas(64) D got[LANES];                                   \
		unsigned shift = (unsigned)__builtin_ctz(sizeof(M));         \
		struct difference low, high;                                 \
		enum pattern pattern;                                        \
		const M *row = NULL;                                         \
		addresses(w, in, a);                                         \
		pattern = class_##space(w, a, (unsigned)sizeof(M) * in->vec); \
		if (pattern == PATTERN_FAULT)                                \
			return bad_access(w, in, pattern);                   \
		if (in->vec > 1) {                                           \
			LOAD_VECTORS(D, M, space);                           \
			return in + 1;                                       \
		}                                                            \
		D *d = ROW(D, in->o[0]);                                     \
		low = difference_u64(a, HALF, shift);                        \
		high = difference_u64(a + HALF, HALF, shift);                \
		if (pattern == PATTERN_GATHER)                               \
			row = partial_row(w, a, (unsigned)sizeof(M));        \
		if (row) {                                                   \
			WRITE_LANES(D, row[i]);                              \
		} else if (pattern == PATTERN_SAME) {                        \
			M value = *READ_AT(0);                               \
			WRITE_LANES(D, value);                               \
		} else if (pattern == PATTERN_SLOW) {                        \
			SLOW_LOAD(D, M, space)                               \
		} else {                                                     \
			LOAD_HALF(D, M, READ_AT, 0, low);                    \
			LOAD_HALF(D, M, READ_AT, HALF, high);                \
			WRITE_LANES(D, got[i]);                              \
		}                                                            \
		return in + 1;                                               \
	}

#define LD_global(M, W)                                                      \
	OTHER(ld_global_##M##_##W)                                           \
	LOAD_OTHER(U_##W, M, global)                                         \
	HANDLER(ld_global_##M##_##W)                                         \
	{                                                                    \
		const M *p = global_row(w, in, (unsigned)sizeof(M) * in->vec); \
		if (!p)                                                      \
			return other_ld_global_##M##_##W(w, in);             \
		if (in->vec > 1) {                                           \
			_Alignas(64) M all[LANES * VECTOR_MAX];              \
			copy_row(all, p, LANES * (unsigned)sizeof(M) * in->vec); \
			LOAD_ROW(U_##W, M, all);                             \
			return in + 1;                                       \
		}                                                            \
		LOAD_ROW(U_##W, M, p);                                       \
		return in + 1;                                               \
	}

/* Nearly always at an address that the program says. */
#define LD_param(M, W)                                                       \
	OTHER(ld_param_##M##_##W)                                            \
	LOAD_OTHER(U_##W, M, param)                                          \
	HANDLER(ld_param_##M##_##W)                                          \
	{                                                                    \
		u64 offset = (u64)in->imm;                                   \
		unsigned bytes = (unsigned)sizeof(M) * in->vec;              \
		if (in->aux != ADDRESS_IMM || offset & (bytes - 1) ||        \
		    offset >= w->param_bytes || w->param_bytes - offset < bytes) \
			return other_ld_param_##M##_##W(w, in);              \
		for (unsigned k = 0; k < in->vec; k++) {                     \
			U_##W *d = ROW(U_##W, in->o[k]);                     \
			M value = ((const M *)(w->param + offset))[k];       \
			WRITE_LANES(U_##W, value);                           \
		}                                                            \
		return in + 1;                                               \
	}

#define STORE_VECTORS(S, M)                                                  \
	do {                                                                 \
		_Alignas(64) M all[LANES * VECTOR_MAX];                      \
		STORE_ROW(S, M, all);                                        \
		if (!write_vectors(w, a, pattern, (unsigned)sizeof(M) * in->vec, all)) \
			return bad_access(w, in, PATTERN_SLOW);              \
	} while (0)

#define STORE_OTHER(S, M)                                                    \
	{                                                                    \
		_Alignas(64) u64 a[LANES];                                   \
		unsigned shift = (unsigned)__builtin_ctz(sizeof(M));         \
		struct difference low, high;                                 \
		enum pattern pattern;                                        \
		addresses(w, in, a);                                         \
		pattern = class_global(w, a, (unsigned)sizeof(M) * in->vec); \
		if (pattern == PATTERN_FAULT)                                \
			return bad_access(w, in, pattern);                   \
		if (in->vec > 1) {                                           \
			STORE_VECTORS(S, M);                                 \
			return in + 1;                                       \
		}                                                            \
		const S *s = ROW(S, in->o[0]);                               \
		low = difference_u64(a, HALF, shift);                        \
		high = difference_u64(a + HALF, HALF, shift);                \
		if (pattern != PATTERN_SLOW && w->active == ALL_LANES) {     \
			STORE_HALF(M, POINTER, 0, low);                      \
			STORE_HALF(M, POINTER, HALF, high);                  \
			return in + 1;                                       \
		}                                                            \
		for (u32 lanes = w->active; lanes; lanes &= lanes - 1) {     \
			unsigned lane = (unsigned)__builtin_ctz(lanes);      \
			M value = (M)s[lane];                                \
			if (pattern != PATTERN_SLOW)                         \
				*POINTER(M, lane) = value;                   \
			else if (!fgv_softgpu_lane_write(w, a[lane], sizeof(M), lane, &value)) \
				return bad_access(w, in, PATTERN_SLOW);      \
		}                                                            \
		return in + 1;                                               \
	}

#define ST_global(M, W)                                                      \
	OTHER(st_global_##M##_##W)                                           \
	STORE_OTHER(U_##W, M)                                                \
	HANDLER(st_global_##M##_##W)                                         \
	{                                                                    \
		M *p;                                                        \
		if (__builtin_expect(w->quiet, 0))                           \
			return fgv_softgpu_store_later(w, in);               \
		p = global_row(w, in, (unsigned)sizeof(M) * in->vec);        \
		if (!p)                                                      \
			return other_st_global_##M##_##W(w, in);             \
		if (in->vec > 1) {                                           \
			_Alignas(64) M all[LANES * VECTOR_MAX];              \
			STORE_ROW(U_##W, M, all);                            \
			copy_row(p, all, LANES * (unsigned)sizeof(M) * in->vec); \
			return in + 1;                                       \
		}                                                            \
		STORE_ROW(U_##W, M, p);                                      \
		return in + 1;                                               \
	}

/* shared.c */
#define LD_shared(M, W)
#define ST_shared(M, W)
#define LD_local(M, W)
#define ST_local(M, W)

#define LD(space, M, W) LD_##space(M, W)
#define ST(space, M, W) ST_##space(M, W)
#include "softgpu/ops/ops.def"

#define SET(key) table[OP_##key] = op_##key;
#define SET_LD_global(M, W) SET(ld_global_##M##_##W)
#define SET_LD_param(M, W)  SET(ld_param_##M##_##W)
#define SET_ST_global(M, W) SET(st_global_##M##_##W)
#define SET_LD_shared(M, W)
#define SET_ST_shared(M, W)
#define SET_LD_local(M, W)
#define SET_ST_local(M, W)

void FILL(mem)(handler *table)
{
#define LD(space, M, W) SET_LD_##space(M, W)
#define ST(space, M, W) SET_ST_##space(M, W)
#include "softgpu/ops/ops.def"
}
