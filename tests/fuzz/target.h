/*
 * A target of the fuzzers: what libFuzzer, or replay.c, calls with each input. It returns 0, and
 * must survive any input.
 */
#ifndef FGV_TESTS_FUZZ_TARGET_H
#define FGV_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif
