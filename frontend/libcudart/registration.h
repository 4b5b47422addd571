/*
 * What nvcc's start-up code has registered: kernels and variables of the program's fat binaries,
 * by the addresses that stand for them in the program.
 *
 * Threads: any; finding takes no lock.
 */
#ifndef FGV_LIBCUDART_REGISTRATION_H
#define FGV_LIBCUDART_REGISTRATION_H

struct fgv_kernel;
struct fgv_variable;

/* NULL: none. */
struct fgv_kernel *fgv_registration_kernel(const void *host);
/* The same, or the kernel that @func itself is (cudaKernel_t, cudaFunction_t). */
struct fgv_kernel *fgv_registration_find(const void *func);
struct fgv_variable *fgv_registration_variable(const void *host);

#endif
