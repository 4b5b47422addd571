/* Images of modules for a guest: bare PTX, and containers of it. Their kernels take (u64, u64,
 * u64). */
#ifndef FGV_TESTS_FUZZ_SLOTS_IMAGES_H
#define FGV_TESTS_FUZZ_SLOTS_IMAGES_H

#include <stdint.h>
#include "tests/fuzz/slots_input.h"

#define SLOTS_IMAGES 6

/* Writes them to @arena, of @len bytes, and says where they are; how many bytes that took. */
uint64_t slots_write_images(uint8_t *arena, uint64_t len, struct slots_image images[SLOTS_IMAGES]);

#endif
