/* What modules_other.cu offers to modules.cu. */
#ifndef FGV_TESTS_CUDA_MODULES_H
#define FGV_TESTS_CUDA_MODULES_H

#include "test.h"

/* Launches a kernel that appends this file's digit, 2, to a number on the device. */
void other_launch(int *place);

/* The value of this file's device variable. */
int other_variable(void);

#endif
