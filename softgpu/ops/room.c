/* See room.h. Pages are the system's until a kernel touches them. */
#include "softgpu/ops/room.h"

#include <sys/mman.h>

#include "common/util.h"
#include "softgpu/lower/lower.h"

/* Vector loads may look a little behind the end of what they use. */
#define SLACK_BYTES 4096
#define CHUNK_BYTES 65536

#define ROOM_LEAST_BYTES (1ull << 30)
#define ROOM_EACH_BYTES	 (128ull << 20) /* for a worker, where there are many */

/* What recursion gets where it can't have DEEP_FRAMES. */
#define DEEP_LEAST_BYTES (1u << 20)
#define WARP_FRAMES_MAX	 (1ull << 30)

uint64_t fgv_room_max(unsigned workers)
{
	return fgv_max_u64(ROOM_LEAST_BYTES, workers * ROOM_EACH_BYTES);
}

static uint64_t part_bytes(uint64_t bytes)
{
	return fgv_align_up(bytes + SLACK_BYTES, CHUNK_BYTES);
}

/* Of a warp: what a kernel calls may be called by each lane on a way of its own, if there is room.
 */
static uint64_t warp_frames(const struct code *code, uint64_t max)
{
	uint64_t called = code->frame_total - code->frame_bytes;
	uint64_t wanted = code->deep ? called : called * LANES;
	uint64_t least = code->deep ? called - DEEP_FRAMES + DEEP_LEAST_BYTES : called;

	max = fgv_min_u64(max, WARP_FRAMES_MAX);
	max = max > code->frame_bytes ? max - code->frame_bytes : 0;
	wanted = fgv_max_u64(fgv_min_u64(wanted, max & ~(uint64_t)63), least);
	return fgv_align_up(code->frame_bytes + wanted, 64);
}

static uint32_t shared_bytes(const struct code *code, uint32_t dynamic_bytes)
{
	return dynamic_bytes ? code->dynamic_base + dynamic_bytes : code->shared_bytes;
}

bool fgv_room_need(const struct code *code, uint32_t threads, uint32_t dynamic_bytes, uint64_t max,
		   struct room_need *need)
{
	uint64_t warps = (threads + LANES - 1) / LANES;
	uint64_t others, frames;

	*need = (struct room_need){.shared_bytes = shared_bytes(code, dynamic_bytes)};
	if (code->reserves) {
		need->reserved_bytes = RESERVED_SHARED + (-need->shared_bytes & 15);
		need->shared_bytes += need->reserved_bytes;
	}
	need->parts[ROOM_LOCAL] = part_bytes((uint64_t)code->local_total * LANES * warps);
	need->parts[ROOM_SHARED] = part_bytes(need->shared_bytes);
	need->parts[ROOM_WARPS] = part_bytes(sizeof(struct warp) * warps);
	others = fgv_room_bytes(need) + SLACK_BYTES + CHUNK_BYTES;
	if (others >= max)
		return false;
	frames = warp_frames(code, (max - others) / warps);
	if (frames > (max - others) / warps)
		return false;
	need->frame_bytes = (uint32_t)frames;
	need->parts[ROOM_FRAMES] = part_bytes(frames * warps);
	return true;
}

uint64_t fgv_room_bytes(const struct room_need *need)
{
	uint64_t bytes = 0;

	for (int i = 0; i < ROOM_PARTS; i++)
		bytes += need->parts[i];
	return bytes;
}

uint64_t fgv_room_growth(const struct room *room, const struct room_need *need)
{
	uint64_t bytes = 0;

	for (int i = 0; i < ROOM_PARTS; i++) {
		if (need->parts[i] > room->parts[i].bytes)
			bytes += need->parts[i] - room->parts[i].bytes;
	}
	return bytes;
}

static void release_area(struct area *area, uint64_t *used)
{
	if (area->base)
		munmap(area->base, area->bytes);
	__atomic_sub_fetch(used, area->bytes, __ATOMIC_RELAXED);
	*area = (struct area){NULL, 0};
}

static bool ensure_area(struct area *area, size_t bytes, uint64_t *used)
{
	void *p;

	if (bytes <= area->bytes)
		return true;
	release_area(area, used);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return false;
	*area = (struct area){p, bytes};
	__atomic_add_fetch(used, bytes, __ATOMIC_RELAXED);
	return true;
}

bool fgv_room_ensure(struct room *room, const struct room_need *need, uint64_t *used)
{
	for (int i = 0; i < ROOM_PARTS; i++) {
		if (!ensure_area(&room->parts[i], need->parts[i], used))
			return false;
	}
	return true;
}

void fgv_room_release(struct room *room, uint64_t *used)
{
	for (int i = 0; i < ROOM_PARTS; i++)
		release_area(&room->parts[i], used);
}
