/*
 * The program of guest_calls.h: what it has, and its calls, by theme. One thread.
 */
#ifndef FUZZ_GUEST_PROGRAM_H
#define FUZZ_GUEST_PROGRAM_H

#include <cuda.h>
#include "tests/fuzz/guest_host.h"
#include "tests/fuzz/slots_input.h"

#define KEPT_MAX    8
#define BUFFER	    (1u << 20)
#define PARAMS_MOST 4096
#define MAPPED	    (1u << 21)

enum kind {
	MEMORY,
	PINNED,
	ORDERED, /* memory, by stream */
	STREAM,
	EVENT,
	MODULE,
	LIBRARY,
	ARRAY,
	TEXTURE,
	SURFACE,
	GRAPH,
	EXEC,
	HANDLE, /* of memory without an address */
	ADDRESS,
	LINK,
	POOL,
	KINDS
};

struct guest_program {
	struct slots_input *input;
	uint64_t kept[KINDS][KEPT_MAX];
	unsigned counts[KINDS];
	CUcontext contexts[GUEST_DEVICES];
	CUfunction function; /* 0: none */
	CUstream captured;   /* 0: none */
	uint8_t buffer[BUFFER];
	void *args[PARAMS_MOST];
};

extern struct guest_program program;

#define FROM(value)	((uint64_t)(uintptr_t)(value))
#define TO(type, value) ((type)(uintptr_t)(value))

/* What there is of a kind is @value from now on; the last one makes room if need be. */
void guest_keep(enum kind kind, uint64_t value);

/* One of that kind; 0: there is none. */
uint64_t guest_pick(enum kind kind);

/* One that there is, or the default stream. */
CUstream guest_pick_stream(void);

static inline uint8_t guest_draw(void)
{
	return slots_draw(program.input);
}

/* 0 to 300 KiB. */
static inline size_t guest_draw_len(void)
{
	uint8_t how = guest_draw();

	return how % 4 == 3 ? (size_t)how * 1200 : (size_t)how;
}

/* guest_memory.c */
void guest_allocate(void);
void guest_copy(void);
void guest_copy_box(void);
void guest_ask_pointer(void);
void guest_ask_pool(void);
void guest_map_memory(void);
void guest_make_array(void);
void guest_make_texture(void);
void guest_make_tensor_map(void);

/* guest_modules.c */
void guest_load_module(void);
void guest_load_library(void);
void guest_ask_function(void);
void guest_launch(void);
void guest_link_images(void);

#endif
