/*
 * Handlers of matrix instructions; imm is the instruction (matrix.h), and all 32 lanes run.
 * Products and sums of short types are those of f64, where products are exact, rounded
 * once at the end.
 */
#include "softgpu/matrix.h"
#include "softgpu/ops/lane_float.h"

#define WORD_ROW (4 * LANES) /* bytes of a register of all lanes */

/* The element at @at of register @reg, counted from lane to lane, in the matrix. */
INLINE unsigned position(const struct fragment *f, unsigned reg, unsigned at)
{
	unsigned each = f->bytes < 4 ? 4 / f->bytes : 1;
	unsigned lane = at / each;
	unsigned group = lane / 4;
	unsigned along = lane % 4 * each + at % each;
	unsigned n = reg * each + at % each;

	switch (f->order) {
	case ORDER_A:
		return (group + reg % 2 * 8) * f->columns + along + reg / 2 * 4 * each;
	case ORDER_B:
		return (along + reg * 4 * each) * f->columns + group;
	case ORDER_C:
		return (group + n / 2 * 8) * f->columns + lane % 4 * 2 + n % 2;
	default:
		return reg * LANES * each + at;
	}
}

/* A row of bits without sign, sign-extended or not, as values. */
#define GEN_TAKE(name, T, V, value)                                          \
	static void take_##name(const struct warp *w, const struct fragment *f, V *to) \
	{                                                                    \
		int count = LANES * (sizeof(T) < 4 ? 4 / (int)sizeof(T) : 1); \
		for (unsigned k = 0; k < f->regs_filled; k++) {              \
			const T *row = ROW(T, f->regs[k]);                   \
			V *part = to + k * (unsigned)count;                  \
			if (f->order == ORDER_ROWS)                          \
				for (int i = 0; i < count; i++)              \
					part[i] = (V)(value(row[i]));        \
			else                                                 \
				for (int i = 0; i < count; i++)              \
					to[position(f, k, (unsigned)i)] = (V)(value(row[i])); \
		}                                                            \
	}

#define GEN_GIVE(name, T, V, value)                                          \
	static void give_##name(const struct warp *w, const struct fragment *f, const V *from) \
	{                                                                    \
		int count = LANES * (sizeof(T) < 4 ? 4 / (int)sizeof(T) : 1); \
		for (unsigned k = 0; k < f->regs_count; k++) {               \
			T *row = ROW(T, f->regs[k]);                         \
			for (int i = 0; i < count; i++)                      \
				row[i] = value(from[position(f, k, (unsigned)i)]); \
		}                                                            \
	}

/* Bits that tf32 has not are not looked at. */
INLINE f32 from_tf32(u32 bits)
{
	return from_bits_f32(bits & ~0x1fffu);
}

INLINE f16 rounded_f16(f64 a)
{
	return to_f16(odd_f32(a));
}

INLINE f32 rounded_f32(f64 a)
{
	return canon((f32)a);
}

GEN_TAKE(f16, u16, f64, from_f16)
GEN_TAKE(bf16, u16, f64, from_bf16)
GEN_TAKE(tf32, u32, f64, from_tf32)
GEN_TAKE(f32, f32, f64, )
GEN_TAKE(f64, f64, f64, )
GEN_TAKE(s8, s8, s32, )
GEN_TAKE(u8, u8, s32, )
GEN_TAKE(s32, s32, s32, )
GEN_GIVE(f16, u16, f64, rounded_f16)
GEN_GIVE(f32, f32, f64, rounded_f32)
GEN_GIVE(f64, f64, f64, )
GEN_GIVE(s32, s32, s32, )

static void take_float(const struct warp *w, const struct fragment *f, f64 *to)
{
	switch (f->type) {
	case ELEMENT_F16:
		return take_f16(w, f, to);
	case ELEMENT_BF16:
		return take_bf16(w, f, to);
	case ELEMENT_TF32:
		return take_tf32(w, f, to);
	case ELEMENT_F32:
		return take_f32(w, f, to);
	default:
		return take_f64(w, f, to);
	}
}

/* Products of types shorter than f64 are exact: these need no fma() where there is no instruction. */
#ifdef __FMA__
#define EXACT_STEP(x, y, sum) __builtin_fma(x, y, sum)
#else
#define EXACT_STEP(x, y, sum) ((x) * (y) + (sum))
#endif
#define FUSED_STEP(x, y, sum)	__builtin_fma(x, y, sum)
#define INTEGER_STEP(x, y, sum) ((x) * (y) + (sum))

/* sum += a * b */
#define GEN_MULTIPLY(name, V, step)                                          \
	static void multiply_##name(const struct matrix_site *site, const V *a, const V *b, V *sum) \
	{                                                                    \
		unsigned n = site->b.columns;                                \
		for (unsigned row = 0; row < site->a.rows; row++, sum += n) { \
			for (unsigned k = 0; k < site->a.columns; k++) {     \
				const V *with = b + k * n;                   \
				V x = *a++;                                  \
				for (unsigned i = 0; i < n; i++)             \
					sum[i] = step(x, with[i], sum[i]);   \
			}                                                    \
		}                                                            \
	}
GEN_MULTIPLY(exact, f64, EXACT_STEP)
GEN_MULTIPLY(fused, f64, FUSED_STEP)
GEN_MULTIPLY(integer, s32, INTEGER_STEP)

static void multiply_floats(const struct warp *w, const struct matrix_site *site)
{
	_Alignas(64) f64 a[FRAGMENT_MAX], b[FRAGMENT_MAX], sum[FRAGMENT_MAX];

	take_float(w, &site->a, a);
	take_float(w, &site->b, b);
	take_float(w, &site->c, sum);
	if (site->a.type == ELEMENT_F64)
		multiply_fused(site, a, b, sum);
	else
		multiply_exact(site, a, b, sum);
	if (site->d.type == ELEMENT_F16)
		give_f16(w, &site->d, sum);
	else if (site->d.type == ELEMENT_F32)
		give_f32(w, &site->d, sum);
	else
		give_f64(w, &site->d, sum);
}

static s32 add_saturated(s32 a, s32 b)
{
	s32 sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT32_MIN : INT32_MAX;
	return sum;
}

static void take_integer(const struct warp *w, const struct fragment *f, s32 *to)
{
	if (f->type == ELEMENT_S8)
		take_s8(w, f, to);
	else
		take_u8(w, f, to);
}

/* The products' sum is far from the type's limits; only what is added to it may exceed them. */
static void multiply_integers(const struct warp *w, const struct matrix_site *site)
{
	_Alignas(64) s32 a[FRAGMENT_MAX], b[FRAGMENT_MAX], c[FRAGMENT_MAX];
	_Alignas(64) s32 sum[FRAGMENT_MAX] = {0};

	take_integer(w, &site->a, a);
	take_integer(w, &site->b, b);
	take_s32(w, &site->c, c);
	multiply_integer(site, a, b, sum);
	for (unsigned i = 0; i < site->d.rows * site->d.columns; i++)
		sum[i] = site->satfinite ? add_saturated(c[i], sum[i])
					 : (s32)((u32)c[i] + (u32)sum[i]);
	give_s32(w, &site->d, sum);
}

INLINE bool is_whole(const struct warp *w)
{
	return w->active == ALL_LANES;
}

HANDLER(matrix_multiply)
{
	const struct matrix_site *site = (const void *)(uintptr_t)in->imm;

	if (!is_whole(w))
		return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
	if (site->d.type == ELEMENT_S32)
		multiply_integers(w, site);
	else
		multiply_floats(w, site);
	return in + 1;
}

/* The generic address that lane @lane gives. */
static u64 address_of(const struct warp *w, const struct matrix_site *site, unsigned lane)
{
	u64 address = (u64)site->imm;

	if (site->kind == ADDRESS_REG64)
		address += ROW(u64, site->reg)[lane];
	else if (site->kind == ADDRESS_REG32)
		address = (u32)(ROW(u32, site->reg)[lane] + (u32)address);
	if (!site->is_shared)
		return address;
	/* What is beyond the window is no address at all. */
	return address < WINDOW_SIZE ? SHARED_WINDOW + address : ~0ull;
}

/*
 * Copies a fragment's elements, which lie by rows in @buffer, from or to memory: run by
 * run of consecutive ones. CUDA_SUCCESS, or the fault.
 */
static CUresult copy_runs(struct warp *w, const struct matrix_site *site, u8 *buffer, bool is_load)
{
	const struct fragment *f = &site->d;
	unsigned runs = site->by_columns ? f->columns : f->rows;
	unsigned length = site->by_columns ? f->rows : f->columns;
	u64 stride = site->stride == OPERAND_NONE ? site->default_stride : ROW(u32, site->stride)[0];
	u64 address = address_of(w, site, 0);

	if (address & (f->bytes - 1) && address != ~0ull)
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	for (unsigned run = 0; run < runs; run++, address += stride * f->bytes) {
		u8 *p = fgv_softgpu_lane_pointer(w, address, length * f->bytes, 0);

		if (!p)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		for (unsigned i = 0; i < length; i++) {
			unsigned n = site->by_columns ? i * f->columns + run : run * length + i;
			u8 *element = buffer + n * f->bytes;

			memcpy(is_load ? element : p + i * f->bytes,
			       is_load ? p + i * f->bytes : element, f->bytes);
		}
	}
	return CUDA_SUCCESS;
}

static unsigned reg_bytes(const struct fragment *f)
{
	return f->bytes == 8 ? 2 * WORD_ROW : WORD_ROW;
}

HANDLER(matrix_load)
{
	const struct matrix_site *site = (const void *)(uintptr_t)in->imm;
	const struct fragment *f = &site->d;
	_Alignas(64) u8 buffer[FRAGMENT_REGS * WORD_ROW];
	CUresult code = CUDA_ERROR_ILLEGAL_INSTRUCTION;

	if (is_whole(w))
		code = copy_runs(w, site, buffer, true);
	if (code != CUDA_SUCCESS)
		return fgv_softgpu_fault(w, in, code);
	for (unsigned k = 0; k < f->regs_count; k++)
		memcpy(operand(w, f->regs[k]), buffer + k % f->regs_filled * reg_bytes(f),
		       reg_bytes(f));
	return in + 1;
}

HANDLER(matrix_store)
{
	const struct matrix_site *site = (const void *)(uintptr_t)in->imm;
	const struct fragment *f = &site->d;
	_Alignas(64) u8 buffer[FRAGMENT_REGS * WORD_ROW];
	CUresult code = CUDA_ERROR_ILLEGAL_INSTRUCTION;

	for (unsigned k = 0; k < f->regs_filled; k++)
		memcpy(buffer + k * reg_bytes(f), operand(w, f->regs[k]), reg_bytes(f));
	if (is_whole(w))
		code = copy_runs(w, site, buffer, false);
	return code == CUDA_SUCCESS ? in + 1 : fgv_softgpu_fault(w, in, code);
}

/* Element (row, column) of 8 by 8 lies in the lane row * 4 + column / 2, two in a register. */
INLINE unsigned half_place(unsigned row, unsigned column, bool is_turned)
{
	return is_turned ? column * 8 + row : row * 8 + column;
}

/* Lane 8 * k + i has the address of row i of matrix k. */
HANDLER(matrix_rows)
{
	const struct matrix_site *site = (const void *)(uintptr_t)in->imm;
	_Alignas(64) u16 got[4][2 * LANES];

	if (!is_whole(w))
		return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
	for (unsigned lane = 0; lane < 8 * site->count; lane++) {
		u64 address = address_of(w, site, lane);
		const u16 *p = fgv_softgpu_lane_pointer(w, address, 16, lane);

		if (address & 15 && address != ~0ull)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_MISALIGNED_ADDRESS);
		if (!p)
			return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_ADDRESS);
		for (unsigned i = 0; i < 8; i++)
			got[lane / 8][half_place(lane % 8, i, site->is_turned)] = p[i];
	}
	for (unsigned k = 0; k < site->count; k++)
		memcpy(operand(w, site->d.regs[k]), got[k], WORD_ROW);
	return in + 1;
}

HANDLER(matrix_turn)
{
	const struct matrix_site *site = (const void *)(uintptr_t)in->imm;
	const u16 *from = ROW(u16, site->a.regs[0]);
	_Alignas(64) u16 turned[2 * LANES];

	if (!is_whole(w))
		return fgv_softgpu_fault(w, in, CUDA_ERROR_ILLEGAL_INSTRUCTION);
	for (unsigned i = 0; i < 2 * LANES; i++)
		turned[half_place(i / 8, i % 8, true)] = from[i];
	memcpy(operand(w, site->d.regs[0]), turned, WORD_ROW);
	return in + 1;
}

void FILL(matrix)(handler *table)
{
	table[OP_matrix_multiply] = op_matrix_multiply;
	table[OP_matrix_load] = op_matrix_load;
	table[OP_matrix_store] = op_matrix_store;
	table[OP_matrix_rows] = op_matrix_rows;
	table[OP_matrix_turn] = op_matrix_turn;
}
