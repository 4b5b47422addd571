/*
 * Text that the program's kernels have printed, on its way to standard output and standard
 * error. The window says that there is some; it is fetched where a call has its answer, so
 * that it is out before the call returns.
 *
 * Threads: any. A mutex is held while text is written, so that the text of two calls stays in order.
 */
#ifndef FGV_CLIENT_TEXT_H
#define FGV_CLIENT_TEXT_H

#include <stdbool.h>

#include "frontend/client/client.h"

struct fgv_lane;

extern uint32_t fgv_text_busy; /* atomic: some thread writes */

/* Whether fgv_text_print() has anything to do. */
static inline bool fgv_text_waits(const struct fgv_client *client)
{
	const struct fgv_window_head *head = fgv_window_head(&client->window);

	return __atomic_load_n(&head->text, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&fgv_text_busy, __ATOMIC_RELAXED);
}

/* Fetches all text and writes it, on a lane between two requests. */
void fgv_text_print(struct fgv_lane *lane);

#endif
