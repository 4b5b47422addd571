/*
 * Text of PTX made of a fuzzer's bytes: a kernel of instructions that the soft GPU knows, in any
 * order, with any operands, and with branches among them.
 */
#ifndef FGV_TESTS_FUZZ_RUN_TEXT_H
#define FGV_TESTS_FUZZ_RUN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * The kernel is called "k" and takes two addresses, .u64. Each instruction takes RUN_TEXT_RECORD
 * bytes of @data, and no more than RUN_TEXT_MAX are made. For free(); NULL: out of memory.
 */
#define RUN_TEXT_RECORD 8
#define RUN_TEXT_MAX	64

char *run_text_make(const uint8_t *data, size_t len);

#endif
