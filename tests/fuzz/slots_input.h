/*
 * From the bytes of a fuzzer's input to the messages of a guest. What is drawn where there are no
 * bytes left is 0, and 0 is what a program would say: the handle of the last object of that kind,
 * an address of its memory, a small number. Other bytes choose what is nearly right, or anything.
 */
#ifndef FGV_TESTS_FUZZ_SLOTS_INPUT_H
#define FGV_TESTS_FUZZ_SLOTS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "api/host.h"
#include "api/wire.h"

#define SLOTS_KNOWN_MAX 16

/* Names of objects of one kind, or addresses: what the host has told so far. */
struct slots_known {
	uint64_t values[SLOTS_KNOWN_MAX];
	unsigned count; /* that there ever were */
};

struct slots_input {
	const uint8_t *at, *end;
	struct slots_known objects[FGV_KINDS];
	struct slots_known addresses;
	uint64_t arena_off, arena_len;
	/* Images that lie in the arena, and what may be written behind them. */
	const struct slots_image *images;
	unsigned image_count;
	uint64_t scratch_off;
	bool is_tame;
	unsigned depth;
};

struct slots_image {
	uint64_t off, len; /* in the arena */
};

uint8_t slots_draw(struct slots_input *input);
void slots_draw_bytes(struct slots_input *input, void *to, size_t len);

/* A message of @op, of at most FGV_MESSAGE_MAX bytes; how long it is. */
uint32_t slots_draw_message(struct slots_input *input, uint16_t op, uint8_t *message);

/* Learns from the reply of a call, its @len bytes. */
void slots_learn(struct slots_input *input, uint16_t op, const uint8_t *reply, size_t len);

#endif
