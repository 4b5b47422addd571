/*
 * How lanes' loads and stores reach memory. Most are one of two kinds, which are looked for
 * first and need one check for all lanes: consecutive addresses of all 32 lanes (a row) are
 * vector accesses, one address for all a single access. Others go by halves of the warp
 * where those are rows (blocks of 16 threads side by side), or lane by lane.
 *
 * o[0..3]: data, one per element; o[4]: address register; see enum address_kind.
 */
#ifndef FGV_SOFTGPU_OPS_LANE_MEM_H
#define FGV_SOFTGPU_OPS_LANE_MEM_H

#include "softgpu/ops/lanes.h"

#include <immintrin.h>

#define HALF	     (LANES / 2)
#define VECTOR_BYTES 16 /* the most that a lane reads or writes at once */

enum { FLAG_MISALIGNED = 1, FLAG_OUTSIDE = 2, FLAG_NOT_SAME = 4 };

enum pattern { PATTERN_ROW, PATTERN_SAME, PATTERN_GATHER, PATTERN_SLOW, PATTERN_FAULT };

/* How addresses a[i] differ from a row's and from one; @shift: of one access's bytes. */
struct difference {
	u64 row;
	u64 same;
};

#define GEN_DIFFERENCE(T)                                                    \
	INLINE struct difference difference_##T(const T *a, int lanes, unsigned shift) \
	{                                                                    \
		T row = 0;                                                   \
		T same = 0;                                                  \
		for (T i = 0; i < (T)lanes; i++) {                           \
			row |= a[i] ^ (a[0] + (i << shift));                 \
			same |= a[i] ^ a[0];                                 \
		}                                                            \
		return (struct difference){row, same};                       \
	}
GEN_DIFFERENCE(u32)
GEN_DIFFERENCE(u64)

/* Lanes that do not run get the address of one that does. */
#define GEN_FILL_IDLE(T)                                                     \
	INLINE void fill_idle_##T(const struct warp *w, T *a)                \
	{                                                                    \
		T first;                                                     \
		if (__builtin_expect(w->active == ALL_LANES, 1))             \
			return;                                              \
		first = a[__builtin_ctz(w->active)];                         \
		LANE_LOOP a[i] = w->lanes[i] ? a[i] : first;                 \
	}
GEN_FILL_IDLE(u32)
GEN_FILL_IDLE(u64)

INLINE void addresses(const struct warp *w, const struct insn *in, u64 *a)
{
	u64 imm = (u64)in->imm;

	if (in->aux == ADDRESS_REG64) {
		const u64 *p = ROW(u64, in->o[4]);

		LANE_LOOP a[i] = p[i] + imm;
		fill_idle_u64(w, a);
	} else if (in->aux == ADDRESS_REG32) {
		const u32 *p = ROW(u32, in->o[4]);

		LANE_LOOP a[i] = (u32)(p[i] + (u32)imm);
		fill_idle_u64(w, a);
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

INLINE const struct insn *bad_access(struct warp *w, const struct insn *in, enum pattern pattern)
{
	return fgv_softgpu_fault(w, in,
				 pattern == PATTERN_FAULT ? CUDA_ERROR_MISALIGNED_ADDRESS
							  : CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* What is neither a row nor one address, apart, so that the usual way is short. */
#define OTHER(key)                                                           \
	static __attribute__((noinline)) const struct insn *other_##key(struct warp *w, \
									const struct insn *in)

/*
 * A lane's access of up to 16 bytes, aligned to its size, is one access of the processor's, vectors
 * among them: blocks on other workers read and write the same, and programs count on never
 * finding half of another's vector, as on devices. Processors promise as much for 16 bytes from AVX on.
 */
INLINE void copy_whole(void *to, const void *from, unsigned bytes)
{
	switch (bytes) {
	case 1:
		*(u8 *)to = *(const u8 *)from;
		break;
	case 2:
		*(u16 *)to = *(const u16 *)from;
		break;
	case 4:
		*(u32 *)to = *(const u32 *)from;
		break;
	case 8:
		*(u64 *)to = *(const u64 *)from;
		break;
	default:
		for (unsigned k = 0; k < bytes; k += VECTOR_BYTES)
			_mm_store_si128((__m128i *)((char *)to + k),
					_mm_load_si128((const __m128i *)((const char *)from + k)));
	}
}

/*
 * The same for vectors one behind the other, @bytes in all, in the steps in which they are read again: at
 * worst a processor divides a step where no vector is divided.
 */
INLINE void copy_row(void *to, const void *from, unsigned bytes)
{
#ifdef __AVX__
	for (unsigned k = 0; k < bytes; k += 32)
		_mm256_storeu_si256((__m256i *)((char *)to + k),
				    _mm256_loadu_si256((const __m256i *)((const char *)from + k)));
#else
	for (unsigned k = 0; k < bytes; k += 16)
		_mm_storeu_si128((__m128i *)((char *)to + k),
				 _mm_loadu_si128((const __m128i *)((const char *)from + k)));
#endif
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

/* All lanes' elements, which lie one behind the other from @p on. */
#define LOAD_ROW(D, M, p)                                                    \
	do {                                                                 \
		D *d = ROW(D, in->o[0]);                                     \
		D *e = in->vec > 1 ? ROW(D, in->o[1]) : d;                   \
		D *f = in->vec > 2 ? ROW(D, in->o[2]) : d;                   \
		D *g = in->vec > 2 ? ROW(D, in->o[3]) : d;                   \
		if (in->vec == 1) {                                          \
			LANE_LOOP d[i] = (D)(p)[i];                          \
		} else if (in->vec == 2) {                                   \
			LANE_LOOP                                            \
			{                                                    \
				d[i] = (D)(p)[2 * i];                        \
				e[i] = (D)(p)[2 * i + 1];                    \
			}                                                    \
		} else {                                                     \
			LANE_LOOP                                            \
			{                                                    \
				d[i] = (D)(p)[4 * i];                        \
				e[i] = (D)(p)[4 * i + 1];                    \
				f[i] = (D)(p)[4 * i + 2];                    \
				g[i] = (D)(p)[4 * i + 3];                    \
			}                                                    \
		}                                                            \
	} while (0)

#define STORE_ROW(S, M, p)                                                   \
	do {                                                                 \
		const S *s = ROW(S, in->o[0]);                               \
		const S *t = in->vec > 1 ? ROW(S, in->o[1]) : s;             \
		const S *u = in->vec > 2 ? ROW(S, in->o[2]) : s;             \
		const S *v = in->vec > 2 ? ROW(S, in->o[3]) : s;             \
		if (in->vec == 1) {                                          \
			LANE_LOOP (p)[i] = (M)s[i];                          \
		} else if (in->vec == 2) {                                   \
			LANE_LOOP                                            \
			{                                                    \
				(p)[2 * i] = (M)s[i];                        \
				(p)[2 * i + 1] = (M)t[i];                    \
			}                                                    \
		} else {                                                     \
			LANE_LOOP                                            \
			{                                                    \
				(p)[4 * i] = (M)s[i];                        \
				(p)[4 * i + 1] = (M)t[i];                    \
				(p)[4 * i + 2] = (M)u[i];                    \
				(p)[4 * i + 3] = (M)v[i];                    \
			}                                                    \
		}                                                            \
	} while (0)

/*
 * The half warp from lane @h on, single elements at AT(lane); @how: its difference. What
 * lanes that do not run get is not kept.
 */
#define LOAD_HALF(D, M, AT, h, how)                                          \
	do {                                                                 \
		const M *from = AT(h);                                       \
		if (!(how).row) {                                            \
			for (int i = 0; i < HALF; i++)                       \
				got[(h) + i] = (D)from[i];                   \
		} else if (!(how).same) {                                    \
			for (int i = 0; i < HALF; i++)                       \
				got[(h) + i] = (D)*from;                     \
		} else {                                                     \
			for (int i = (h); i < (h) + HALF; i++)               \
				got[i] = (D)*AT(i);                          \
		}                                                            \
	} while (0)

/* The same the other way round; AT says where a lane's value goes. */
#define STORE_HALF(M, AT, h, how)                                            \
	do {                                                                 \
		if (!(how).row) {                                            \
			M *to = AT(M, h);                                    \
			for (int i = 0; i < HALF; i++)                       \
				to[i] = (M)s[(h) + i];                       \
		} else {                                                     \
			for (int i = (h); i < (h) + HALF; i++)               \
				*AT(M, i) = (M)s[i];                         \
		}                                                            \
	} while (0)

#endif
