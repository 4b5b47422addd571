/* Handlers of the floating-point operations (float.def), compiled once per instruction set. */
#include "softgpu/ops/lane_float.h"

#define OPS_ONLY_FLOAT
#define OP1 GEN_OP1
#define OP2 GEN_OP2
#define OP3 GEN_OP3
#define OP4 GEN_OP4
#define CMP GEN_CMP
#include "softgpu/ops/ops.def"

void FILL(float)(handler *table)
{
#define OP1(key, ...) table[OP_##key] = op_##key;
#define OP2(key, ...) table[OP_##key] = op_##key;
#define OP3(key, ...) table[OP_##key] = op_##key;
#define OP4(key, ...) table[OP_##key] = op_##key;
#define CMP(key, ...) table[OP_##key] = op_##key;
#include "softgpu/ops/ops.def"
}
