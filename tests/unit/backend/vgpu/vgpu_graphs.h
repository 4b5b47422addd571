/*
 * A vGPU process with host memory that its GPU sees, and texts of graphs for it (api/wire.h): what
 * the tests of graphs share.
 */
#ifndef FGV_TESTS_VGPU_GRAPHS_H
#define FGV_TESTS_VGPU_GRAPHS_H

#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define DATA_OFF (1 << 20)
#define DATA_LEN (64u << 10)

extern struct graphs {
	struct vgpu vgpu;
	volatile uint32_t *data; /* what the GPU has at VGPU_SHARED_ADDRESS */
	uint32_t home;		 /* of what is built; 0: none */
	/* A text that is being written. */
	struct {
		uint8_t bytes[FGV_DATA_MAX];
		uint32_t len, nodes;
	} text;
} graphs;

struct graphs_launch {
	struct fgv_launch_request head;
	uint64_t args[3];
};

void graphs_setup(void);
void graphs_teardown(void);
/* What the session is charged. */
uint64_t graphs_used_bytes(void);
/* Bytes, and what pads them. */
void graphs_append(const void *from, uint32_t len);
/* A node that waits for those @before, of any number; -1: for none. */
void graphs_put_as(struct fgv_graph_node head, const void *message, int first, int second);
void graphs_put(uint16_t op, const void *message, uint32_t len, int first, int second);
void graphs_put_nothing(int first, int second);
struct fgv_fill_request graphs_fill_of(uint32_t at, uint32_t value);
/* Sets word @at of the data. */
void graphs_put_word(uint32_t at, uint32_t value, int first, int second);
/* Copies word @from to @to, both of the data. */
void graphs_put_copy(uint32_t to, uint32_t from, int first);
/* Adds @more and 5 to the first @count words. */
struct graphs_launch graphs_launch_of(uint32_t function, uint32_t count, uint32_t more);
void graphs_put_launch(uint32_t function, uint32_t count, uint32_t more, int first);
/* The graph of the text as it is, and why there is none. */
uint32_t graphs_build_of(uint32_t nodes, uint64_t offset, uint32_t len, uint32_t *graph);
/* As it must be, of a right text, which is used up. */
uint32_t graphs_must_build(void);
void graphs_post_launch(uint32_t graph, uint32_t stream);
void graphs_must_run(uint32_t graph);
/* With the text, which is used up. */
void graphs_post_update(uint32_t graph);
void graphs_post_destroy(uint32_t graph);

#endif
