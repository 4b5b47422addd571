/* Copies from the device to pinned host memory; see copyin.cu. */
#define COPIES_OUT 1
#include "copyin.cu"
