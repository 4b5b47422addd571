/*
 * The stubs of what FairGV does not have (stubgen.py makes their list). This header
 * does without CUDA's, whose prototypes the stubs have no use for: a function that
 * looks at none of its arguments may be called with any.
 */
#ifndef FGV_LIBCUDART_UNSUPPORTED_H
#define FGV_LIBCUDART_UNSUPPORTED_H

#include "frontend/cuda/context/errlog.h"

/* Counts the call, notes cudaErrorNotSupported as the thread's last error, returns it. */
int fgv_unsupported_call(struct fgv_unsupported *unsupported);

#define DEFINE_STUB(function, statement)                                                           \
	__attribute__((visibility("default"))) int function(void);                                 \
	int function(void)                                                                         \
	{                                                                                          \
		static struct fgv_unsupported unsupported = {.name = #function};                   \
                                                                                                   \
		statement;                                                                         \
	}

#define STUB(function) DEFINE_STUB(function, return fgv_unsupported_call(&unsupported))

/* One of CUDA 12 alone; NAME_12() gives it its name. */
#define STUB_12(function)                                                                          \
	__attribute__((visibility("hidden"))) int fgv_12_##function(void);                         \
	int fgv_12_##function(void)                                                                \
	{                                                                                          \
		static struct fgv_unsupported unsupported = {.name = #function};                   \
                                                                                                   \
		return fgv_unsupported_call(&unsupported);                                         \
	}

/*
 * The name of a function in CUDA 12's version node: a jump, since the assembler gives a
 * version to what it has defined itself only.
 */
#define NAME_12(function, target)                                                                  \
	__asm__(".text\n"                                                                          \
		".globl fgv_name_12_" #function "\n"                                               \
		".type fgv_name_12_" #function ", @function\n"                                     \
		"fgv_name_12_" #function ":\n"                                                     \
		"	jmp " #target "@PLT\n"                                                     \
		".size fgv_name_12_" #function ", . - fgv_name_12_" #function "\n"                 \
		".symver fgv_name_12_" #function ", " #function "@libcudart.so.12\n");

/* Only counted: what was registered in vain shows when it is used. */
#define QUIET_STUB(function)                                                                       \
	DEFINE_STUB(function, fgv_errlog_unsupported_quietly(&unsupported); return 0)

#endif
