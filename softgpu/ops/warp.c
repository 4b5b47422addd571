/*
 * Handlers that look at a whole warp (votes, shuffles, matches, reductions), special
 * registers, and addresses that depend on where a thread's frame is.
 */
#include "softgpu/ops/lanes.h"
#include "softgpu/sreg.h"

#include <time.h>

static u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

/* Registers that all lanes of a warp see alike. */
static u64 uniform_sreg(const struct warp *w, unsigned sreg)
{
	const struct block *b = w->block;

	switch (sreg) {
	case SREG_NTID_X ... SREG_NTID_Z:
		return b->ntid[sreg - SREG_NTID_X];
	case SREG_CTAID_X ... SREG_CTAID_Z:
		return b->ctaid[sreg - SREG_CTAID_X];
	case SREG_NCTAID_X ... SREG_NCTAID_Z:
		return b->nctaid[sreg - SREG_NCTAID_X];
	case SREG_WARPID:
		return w->index;
	case SREG_NWARPID:
		return WARPS_MAX;
	case SREG_SMID:
		return b->worker;
	case SREG_NSMID:
		return b->workers;
	case SREG_CLOCK:
		return (u32)__builtin_ia32_rdtsc();
	case SREG_CLOCK_HI:
		return __builtin_ia32_rdtsc() >> 32;
	case SREG_CLOCK64:
		return __builtin_ia32_rdtsc();
	case SREG_GLOBALTIMER:
		return clock_ns(CLOCK_REALTIME);
	case SREG_GLOBALTIMER_LO:
		return (u32)clock_ns(CLOCK_REALTIME);
	case SREG_GLOBALTIMER_HI:
		return clock_ns(CLOCK_REALTIME) >> 32;
	case SREG_GRIDID:
		return b->grid_id;
	case SREG_DYNAMIC_SMEM:
		return b->dynamic_bytes;
	case SREG_TOTAL_SMEM:
		return b->shared_bytes - b->reserved_bytes;
	case SREG_DYNAMIC_BASE:
		return b->shared_bytes - b->reserved_bytes - b->dynamic_bytes;
	case SREG_RESERVED_SMEM_1:
		return b->shared_bytes - RESERVED_SHARED;
	case SREG_WORKSPACE_HI:
		return b->workspace >> 32;
	case SREG_WORKSPACE_LO:
		return (u32)b->workspace;
	case SREG_ONE:
		return 1;
	default:
		return 0;
	}
}

static u32 lane_sreg(const struct warp *w, unsigned sreg, int lane)
{
	u32 bit = 1u << lane;

	switch (sreg) {
	case SREG_TID_X ... SREG_TID_Z:
		return w->tid[sreg - SREG_TID_X][lane];
	case SREG_LANEID:
		return (u32)lane;
	case SREG_LANEMASK_EQ:
		return bit;
	case SREG_LANEMASK_LE:
		return bit | (bit - 1);
	case SREG_LANEMASK_LT:
		return bit - 1;
	case SREG_LANEMASK_GE:
		return ~(bit - 1);
	default:
		return ~(bit | (bit - 1));
	}
}

static bool is_lane_sreg(unsigned sreg)
{
	return sreg <= SREG_TID_Z || sreg == SREG_LANEID ||
	       (sreg >= SREG_LANEMASK_EQ && sreg <= SREG_LANEMASK_GT);
}

#define WRITE_ROW(T, o, value)                                               \
	do {                                                                 \
		T *d_ = ROW(T, o);                                           \
		const s32 *m_ = w->lanes;                                    \
		LANE_LOOP d_[i] = m_[i] ? (T)(value) : d_[i];                \
	} while (0)

HANDLER(sreg)
{
	if (in->aux <= SREG_TID_Z) {
		const u32 *t = w->tid[in->aux];

		WRITE_ROW(u32, in->o[0], t[i]);
	} else if (is_lane_sreg(in->aux)) {
		WRITE_ROW(u32, in->o[0], lane_sreg(w, in->aux, i));
	} else {
		u32 value = (u32)uniform_sreg(w, in->aux);

		WRITE_ROW(u32, in->o[0], value);
	}
	return in + 1;
}

HANDLER(sreg64)
{
	u64 value = uniform_sreg(w, in->aux);

	if (is_lane_sreg(in->aux))
		WRITE_ROW(u64, in->o[0], lane_sreg(w, in->aux, i));
	else
		WRITE_ROW(u64, in->o[0], value);
	return in + 1;
}

HANDLER(local_address)
{
	u64 value = w->local + (u64)in->imm;

	WRITE_ROW(u64, in->o[0], value);
	return in + 1;
}

HANDLER(local_address32)
{
	u32 value = w->local + (u32)in->imm;

	WRITE_ROW(u32, in->o[0], value);
	return in + 1;
}

/* aux 0: global, 1: shared, 2: local, 3: param, 4: const. o[1]: 64-bit address. */
HANDLER(isspacep)
{
	static const u64 windows[] = {0, SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW};
	const u64 *a = ROW(u64, in->o[1]);
	u32 mask = 0;

	for (int i = 0; i < LANES; i++) {
		bool is = in->aux == 0	 ? a[i] < ADDRESS_LIMIT
			  : in->aux <= 3 ? a[i] - windows[in->aux] < WINDOW_SIZE
					 : a[i] - (u64)in->imm < (u64)in->o[2];

		mask |= (u32)is << i;
	}
	set_predicate(w, in->o[0], mask);
	return in + 1;
}

/*
 * An operation of the warp: o[1]: what each lane gives; o[5]: the lanes that it is about, or
 * none: those that run. Where others than those that run are named, they are waited for.
 */
INLINE bool all_here(const struct warp *w, const struct insn *in)
{
	const u32 *members;
	u32 named = 0;

	if (w->full || w->together || in->o[5] == OPERAND_NONE)
		return true;
	members = ROW(u32, in->o[5]);
	LANE_LOOP named |= members[i] & (u32)w->lanes[i];
	return !(named & w->alive & ~w->active);
}

#define WARP_OP(key)                                                         \
	INLINE void do_##key(struct warp *w, const struct insn *in);         \
	HANDLER(key)                                                         \
	{                                                                    \
		if (__builtin_expect(!all_here(w, in), 0))                   \
			return fgv_softgpu_gather(w, in);                    \
		do_##key(w, in);                                             \
		return in + 1;                                               \
	}                                                                    \
	INLINE void do_##key(struct warp *w, const struct insn *in)

#define GIVEN(T) (w->together ? (const T *)w->given : ROW(T, in->o[1]))

INLINE u32 given_predicate(const struct warp *w, const struct insn *in)
{
	return w->together ? (u32)w->given[0] : predicate(w, in->o[1]);
}

/* Those of @left that name the same members as its first lane; the members that are here. */
INLINE u32 group(const struct warp *w, const struct insn *in, u32 left, u32 *members)
{
	u32 here = w->together ? w->together : w->active;
	_Alignas(64) s32 same[LANES];
	const u32 *row;
	u32 named;

	*members = here;
	if (in->o[5] == OPERAND_NONE)
		return left;
	row = ROW(u32, in->o[5]);
	named = row[__builtin_ctz(left)];
	*members = named & here;
	if (in->o[5] & OPERAND_CONST)
		return left;
	LANE_LOOP same[i] = -(s32)(row[i] == named);
	return left & lane_mask(same);
}

/* Members of several groups may run one instruction: @g are the lanes of one, @m its members. */
#define EACH_GROUP(g, m)                                                     \
	for (u32 left_ = w->active, g = 0, m = 0;                            \
	     left_ && (g = group(w, in, left_, &m), true); left_ &= ~g)

INLINE void put(struct warp *w, u32 *d, u32 lanes, u32 value)
{
	if (lanes == w->active) {
		const s32 *run = w->lanes;

		LANE_LOOP d[i] = run[i] ? value : d[i];
		return;
	}
	for (; lanes; lanes &= lanes - 1)
		d[__builtin_ctz(lanes)] = value;
}

INLINE void put_predicate(struct warp *w, uint32_t o, u32 lanes, u32 mask)
{
	u32 *p = operand(w, o);

	*p = (*p & ~lanes) | (mask & lanes);
}

/* o[0]: destination. */
#define VOTE(mode, CONDITION)                                                \
	WARP_OP(vote_##mode)                                                 \
	{                                                                    \
		u32 all = given_predicate(w, in);                            \
		EACH_GROUP(g, m)                                             \
		{                                                            \
			u32 p = all & m;                                     \
			put_predicate(w, in->o[0], g, (CONDITION) ? ~0u : 0); \
		}                                                            \
	}
VOTE(all, p == m)
VOTE(any, p != 0)
VOTE(uni, p == m || !p)

WARP_OP(vote_ballot)
{
	u32 all = given_predicate(w, in);

	EACH_GROUP(g, m) put(w, ROW(u32, in->o[0]), g, all & m);
}

HANDLER(activemask)
{
	u32 value = w->active;

	WRITE_ROW(u32, in->o[0], value);
	return in + 1;
}

/* o[0]: lanes with the same value as this. */
#define MATCH_ANY(T)                                                         \
	WARP_OP(match_any_##T)                                               \
	{                                                                    \
		const T *a = GIVEN(T);                                       \
		_Alignas(64) u32 r[LANES] = {0};                             \
		EACH_GROUP(g, m)                                             \
		{                                                            \
			u32 same = 0;                                        \
			for (u32 rest = m; rest; rest &= ~same) {            \
				T value = a[__builtin_ctz(rest)];            \
				same = 0;                                    \
				for (int i = 0; i < LANES; i++)              \
					same |= (u32)(a[i] == value) << i;   \
				same &= m;                                   \
				for (u32 s = same & g; s; s &= s - 1)        \
					r[__builtin_ctz(s)] = same;          \
			}                                                    \
		}                                                            \
		WRITE_ROW(u32, in->o[0], r[i]);                              \
	}
MATCH_ANY(u32)
MATCH_ANY(u64)

/* o[3]: predicate, true if all are equal, or none. */
#define MATCH_ALL(T)                                                         \
	WARP_OP(match_all_##T)                                               \
	{                                                                    \
		const T *a = GIVEN(T);                                       \
		_Alignas(64) u32 r[LANES] = {0};                             \
		u32 equal = 0;                                               \
		EACH_GROUP(g, m)                                             \
		{                                                            \
			T value = m ? a[__builtin_ctz(m)] : 0;               \
			bool all = true;                                     \
			for (u32 left = m; left; left &= left - 1)           \
				all &= a[__builtin_ctz(left)] == value;      \
			put(w, r, g, all ? m : 0);                           \
			equal |= all ? g : 0;                                \
		}                                                            \
		WRITE_ROW(u32, in->o[0], r[i]);                              \
		if (in->o[3] != OPERAND_NONE)                                \
			set_predicate(w, in->o[3], equal);                   \
	}
MATCH_ALL(u32)
MATCH_ALL(u64)

/*
 * o[0]: destination, o[2]: lane or distance, o[3]: clamp and segment
 * mask, o[4]: predicate "in range" or none. A lane that has exited gives its old value.
 */
#define SHUFFLE(mode, FROM, VALID)                                           \
	WARP_OP(shfl_##mode)                                                 \
	{                                                                    \
		const u32 *a = GIVEN(u32);                                   \
		const u32 *pb = ROW(u32, in->o[2]);                          \
		const u32 *pc = ROW(u32, in->o[3]);                          \
		_Alignas(64) u32 copy[LANES];                                \
		_Alignas(64) u32 r[LANES];                                   \
		u32 ok = 0;                                                  \
		LANE_LOOP copy[i] = a[i];                                    \
		for (int i = 0; i < LANES; i++) {                            \
			s32 lane = i;                                        \
			s32 b = (s32)(pb[i] & 31);                           \
			s32 clamp = (s32)(pc[i] & 31);                       \
			s32 segment = (s32)(pc[i] >> 8 & 31);                \
			s32 max = (lane & segment) | (clamp & ~segment);     \
			s32 min = lane & segment;                            \
			s32 j = (FROM);                                      \
			bool valid = (VALID);                                \
			(void)min;                                           \
			r[i] = copy[(valid ? j : lane) & 31];                \
			ok |= (u32)valid << i;                               \
		}                                                            \
		WRITE_ROW(u32, in->o[0], r[i]);                              \
		if (in->o[4] != OPERAND_NONE)                                \
			set_predicate(w, in->o[4], ok);                      \
	}
SHUFFLE(up, lane - b, j >= max)
SHUFFLE(down, lane + b, j <= max)
SHUFFLE(bfly, lane ^ b, j <= max)
SHUFFLE(idx, min | (b & ~segment), j <= max)

#define REDUX(key, T, start, expression)                                     \
	WARP_OP(redux_##key)                                                 \
	{                                                                    \
		const T *pa = GIVEN(T);                                      \
		_Alignas(64) u32 results[LANES] = {0};                       \
		EACH_GROUP(g, m)                                             \
		{                                                            \
			T r = start;                                         \
			for (; m; m &= m - 1) {                              \
				T a = pa[__builtin_ctz(m)];                  \
				r = expression;                              \
			}                                                    \
			put(w, results, g, (u32)r);                          \
		}                                                            \
		WRITE_ROW(u32, in->o[0], results[i]);                        \
	}
REDUX(add, u32, 0, r + a)
REDUX(and, u32, ~0u, r &a)
REDUX(or, u32, 0, r | a)
REDUX(xor, u32, 0, r ^ a)
REDUX(min_u32, u32, ~0u, a < r ? a : r)
REDUX(max_u32, u32, 0, a > r ? a : r)
REDUX(min_s32, s32, INT32_MAX, a < r ? a : r)
REDUX(max_s32, s32, INT32_MIN, a > r ? a : r)

/* o[0]: the elected lane, or none; o[1]: predicate, true there. */
WARP_OP(elect)
{
	EACH_GROUP(g, m)
	{
		if (in->o[0] != OPERAND_NONE)
			put(w, ROW(u32, in->o[0]), g, m ? (u32)__builtin_ctz(m) : 0);
		put_predicate(w, in->o[1], g, m & -m);
	}
}

WARP_OP(warp_sync)
{
	(void)w;
	(void)in;
}

void FILL(warp)(handler *table)
{
#define H(key) table[OP_##key] = op_##key;
	H(sreg) H(sreg64) H(local_address) H(local_address32) H(isspacep)
	H(vote_all) H(vote_any) H(vote_uni) H(vote_ballot) H(activemask)
	H(match_any_u32) H(match_any_u64) H(match_all_u32) H(match_all_u64)
	H(shfl_up) H(shfl_down) H(shfl_bfly) H(shfl_idx)
	H(redux_add) H(redux_and) H(redux_or) H(redux_xor)
	H(redux_min_u32) H(redux_max_u32) H(redux_min_s32) H(redux_max_s32)
	H(elect) H(warp_sync)
}
