/*
 * Runs kernels on a soft GPU of its own for a test: the device, a module at a time, and kernels
 * whose threads have eight bytes of input and of output each. All checks are Check's assertions.
 */
#ifndef FGV_TEST_SOFTGPU_KERNEL_H
#define FGV_TEST_SOFTGPU_KERNEL_H

#include <check.h>
#include <stdint.h>

#include "softgpu/softgpu.h"

#ifdef __SANITIZE_THREAD__
#define BASE 0x7e9000000000ull /* one of the few places that ThreadSanitizer allows */
#else
#define BASE 0x200000000000ull
#endif

#define HEAD ".version 9.0\n.target sm_75\n.address_size 64\n"

/* Of the test that runs. */
extern struct softgpu *gpu;
extern struct softgpu_module *module;

void kernel_setup(void);
void kernel_teardown(void);
/* Waits for all that was submitted. */
CUresult kernel_drain(void);
/* Loads a module, which must be right, and finds its kernel k. */
struct softgpu_function *kernel_load(const char *text);
uint64_t kernel_alloc(size_t bytes);
/* Launches and waits. */
CUresult kernel_launch(struct softgpu_function *f, uint32_t blocks, uint32_t threads,
		       uint32_t shared, void **args);
/* Runs a kernel as KERNEL() makes them; the output of thread i in out[i]. */
CUresult kernel_run(const char *text, uint32_t blocks, uint32_t threads, const uint64_t *in,
		    uint64_t *out);
/* Runs a suite; main()'s result. */
int kernel_run_suite(Suite *suite);

/*
 * A kernel of @threads threads with %rd1: address of this thread's eight bytes of output,
 * %rd2: of its eight bytes of input, %r1: its index. The body computes.
 */
#define KERNEL(body) KERNEL_START body KERNEL_END
#define KERNEL_END   "\nret;\n}\n"
#define KERNEL_START                                                                     \
	HEAD ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                   \
	     ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .f32 %f<10>;\n"  \
	     ".reg .f64 %fd<9>; .reg .b64 %rd<20>;\n"                                    \
	     "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];\n"                      \
	     "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"       \
	     "mad.lo.s32 %r1, %r2, %r3, %r1; mul.wide.u32 %rd3, %r1, 8;\n"               \
	     "add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n"

#endif
