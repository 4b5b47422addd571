/* What the two files of the test separate share, on the device and on the host. */
#ifndef FGV_TESTS_CUDA_SEPARATE_H
#define FGV_TESTS_CUDA_SEPARATE_H

#include "test.h"

/* In separate.cu. */
extern __device__ int from_main;

/* In separate_device.cu. */
extern __device__ int device_variable;
extern __constant__ int device_constants[3];
extern __managed__ int shared_variable;
__device__ int device_function(int value);
void launch_device(int *place);

#endif
