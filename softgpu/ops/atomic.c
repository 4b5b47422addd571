/*
 * Atomic operations, lane by lane. All are compare-and-swap loops on the
 * processor's atomics; they order memory fully, whatever the instruction asks for.
 *
 * o[0]: old value, or none; o[1], o[2]: operands; o[4]: address. imm and aux as for loads;
 * vec: which window the address is in.
 */
#include "softgpu/ops/lane_float.h"

enum { ATOMIC_GENERIC, ATOMIC_SHARED };

static u64 lane_address(const struct warp *w, const struct insn *in, unsigned lane)
{
	u64 address = (u64)in->imm;

	if (in->aux == ADDRESS_REG64)
		address += ROW(u64, in->o[4])[lane];
	else if (in->aux == ADDRESS_REG32)
		address = (u32)(address + ROW(u32, in->o[4])[lane]);
	return address;
}

/* The word to work on; NULL after a fault. Local memory is nobody else's: not allowed. */
static void *lane_word(struct warp *w, const struct insn *in, unsigned lane, unsigned size)
{
	u64 address = lane_address(w, in, lane);
	void *p = NULL;

	if (address & (size - 1)) {
		fgv_softgpu_fault(w, in, CUDA_ERROR_MISALIGNED_ADDRESS);
		return NULL;
	}
	if (in->vec == ATOMIC_SHARED)
		address = address < WINDOW_SIZE ? address + SHARED_WINDOW : ~0ull;
	if (address < LOCAL_WINDOW)
		p = fgv_softgpu_lane_pointer(w, address, size, lane);
	if (!p)
		fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
	return p;
}

/* U is the word that is swapped, expression its new value from the old, o. */
#define ATOMIC(key, T, U, A, expression)                                     \
	HANDLER(atom_##key)                                                  \
	{                                                                    \
		const A *pa = ROW(A, in->o[1]);                              \
		const A *pb = ROW(A, in->o[2] == OPERAND_NONE ? in->o[1] : in->o[2]); \
		for (u32 lanes = w->active; lanes; lanes &= lanes - 1) {     \
			unsigned lane = (unsigned)__builtin_ctz(lanes);      \
			T *p = lane_word(w, in, lane, sizeof(T));            \
			A a = pa[lane], b = pb[lane];                        \
			T o, n;                                              \
			(void)a, (void)b;                                    \
			if (!p)                                              \
				return NULL;                                 \
			o = __atomic_load_n(p, __ATOMIC_RELAXED);            \
			do {                                                 \
				n = (T)(expression);                         \
			} while (!__atomic_compare_exchange_n(p, &o, n, true, __ATOMIC_SEQ_CST, \
							      __ATOMIC_RELAXED)); \
			if (in->o[0] != OPERAND_NONE)                        \
				ROW(U, in->o[0])[lane] = (U)o;               \
		}                                                            \
		return in + 1;                                               \
	}

#define ATOM(key, T, expression) ATOMIC(key, T, T, T, expression)
#include "softgpu/ops/ops.def"

ATOMIC(add_f32, u32, u32, u32, bits_f32(canon(from_bits_f32(o) + from_bits_f32(a))))
ATOMIC(add_f64, u64, u64, u64, bits_f64(from_bits_f64(o) + from_bits_f64(a)))
ATOMIC(add_f16, u16, u16, u16, add_f16(o, a))
ATOMIC(add_bf16, u16, u16, u16, add_bf16(o, a))
ATOMIC(add_f16x2, u32, u32, u32, BOTH2(add_f16, o, a))
ATOMIC(add_bf16x2, u32, u32, u32, BOTH2(add_bf16, o, a))

void fgv_softgpu_fill_atomic(handler *table)
{
#define ATOM(key, ...) table[OP_atom_##key] = op_atom_##key;
#include "softgpu/ops/ops.def"
#define H(key) table[OP_atom_##key] = op_atom_##key;
	H(add_f32) H(add_f64) H(add_f16) H(add_bf16) H(add_f16x2) H(add_bf16x2)
}
