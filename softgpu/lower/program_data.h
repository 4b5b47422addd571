/* Variables of a program in device memory; see program_data.c. */
#ifndef FGV_SOFTGPU_LOWER_PROGRAM_DATA_H
#define FGV_SOFTGPU_LOWER_PROGRAM_DATA_H

#include "softgpu/lower/lower.h"

/* Takes device memory for all variables and gives them their addresses. */
CUresult fgv_program_place_data(struct program *program);
/* Writes the initial values of one module's variables; failures go to the log. */
void fgv_program_init_data(struct lower *l, struct scope *scope, const struct ptx_module *module);

#endif
