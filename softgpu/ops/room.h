/*
 * The memory that a kernel's blocks run in: registers, local and shared memory, and what is
 * known of their warps. It is this process's own, and bounded: a launch whose block does not fit is
 * refused, and of others as many blocks run at once as fit.
 */
#ifndef FGV_SOFTGPU_OPS_ROOM_H
#define FGV_SOFTGPU_OPS_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code;

/* Memory that one worker runs blocks in; grows, and is given back as a whole. */
struct area {
	uint8_t *base;
	size_t bytes;
};

enum room_part { ROOM_FRAMES, ROOM_LOCAL, ROOM_SHARED, ROOM_WARPS, ROOM_PARTS };

struct room {
	struct area parts[ROOM_PARTS];
};

/* What one block of a launch needs: bytes of each part. */
struct room_need {
	uint64_t parts[ROOM_PARTS];
	uint32_t frame_bytes;	 /* of a warp */
	uint32_t shared_bytes;	 /* with those that are libraries' own, */
	uint32_t reserved_bytes; /* and these with what aligns them */
};

/* What a device may take for blocks at once, with so many workers. */
uint64_t fgv_room_max(unsigned workers);
/* False: no block of it fits into @max bytes. */
bool fgv_room_need(const struct code *code, uint32_t threads, uint32_t dynamic_bytes, uint64_t max,
		   struct room_need *need);
/* Bytes that the parts take. */
uint64_t fgv_room_bytes(const struct room_need *need);
/* What @room would grow by to have them. */
uint64_t fgv_room_growth(const struct room *room, const struct room_need *need);
/* Adds to *@used, which is atomic, what it grows by. False: there is no memory. */
bool fgv_room_ensure(struct room *room, const struct room_need *need, uint64_t *used);
void fgv_room_release(struct room *room, uint64_t *used);

#endif
