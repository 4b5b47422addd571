/*
 * How the CUDA tests say what was wrong, in C and in CUDA.
 */
#ifndef FGV_TESTS_CUDA_EXPECT_H
#define FGV_TESTS_CUDA_EXPECT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program; other threads may be in CUDA, so no destructor runs. */
__attribute__((noreturn, format(printf, 3, 4))) static inline void
test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%s:%d: ", file, line);
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
	_Exit(1);
}

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			FAIL("not so: %s", #condition);                                            \
	} while (0)

/* Both are compared and shown as long long. */
#define EXPECT_EQ(wanted, value)                                                                   \
	do {                                                                                       \
		long long test_wanted = (long long)(wanted), test_value = (long long)(value);      \
                                                                                                   \
		if (test_wanted != test_value)                                                     \
			FAIL("%s is %lld, not %lld", #value, test_value, test_wanted);             \
	} while (0)

#endif
