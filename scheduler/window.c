/* A sliding window of use; see window.h. */
#include "scheduler/window.h"

#include <string.h>

#include "common/util.h"

#define RING (FGV_WINDOW_PARTS + 1)

void fgv_window_init(struct fgv_window *window, uint64_t length_ns)
{
	*window = (struct fgv_window){
		.part_ns = (length_ns + FGV_WINDOW_PARTS - 1) / FGV_WINDOW_PARTS,
	};
}

static uint32_t *part(struct fgv_window *window, uint64_t number)
{
	return &window->used_ns[number % RING];
}

/* Time has reached @number: the parts whose places are needed have left the window. */
static void advance(struct fgv_window *window, uint64_t number)
{
	if (number >= window->newest + RING) {
		memset(window->used_ns, 0, sizeof(window->used_ns));
		window->sum_ns = 0;
		window->newest = number;
	}
	while (window->newest < number) {
		uint32_t *left = part(window, ++window->newest);

		window->sum_ns -= *left;
		*left = 0;
	}
}

void fgv_window_add(struct fgv_window *window, uint64_t used_ns, uint64_t now_ns)
{
	uint64_t number = now_ns / window->part_ns;
	uint64_t room_ns = now_ns % window->part_ns;
	uint64_t oldest = number > FGV_WINDOW_PARTS ? number - FGV_WINDOW_PARTS : 0;

	advance(window, number);
	for (;; number--) {
		uint64_t here_ns = fgv_min_u64(used_ns, room_ns);
		uint32_t *at = part(window, number);

		here_ns = fgv_min_u64(here_ns, UINT32_MAX - *at);
		*at += (uint32_t)here_ns;
		window->sum_ns += here_ns;
		used_ns -= fgv_min_u64(used_ns, room_ns);
		if (used_ns == 0 || number == oldest)
			break;
		room_ns = window->part_ns;
	}
}

uint64_t fgv_window_used(struct fgv_window *window, uint64_t now_ns)
{
	advance(window, now_ns / window->part_ns);
	return window->sum_ns;
}

uint64_t fgv_window_below(struct fgv_window *window, uint64_t cap_ns, uint64_t now_ns)
{
	uint64_t left_ns = fgv_window_used(window, now_ns);
	uint64_t next = window->newest;

	if (left_ns < cap_ns)
		return now_ns;
	while (left_ns >= cap_ns)
		left_ns -= *part(window, ++next);
	return next * window->part_ns;
}
