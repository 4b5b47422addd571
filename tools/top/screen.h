/*
 * The screen of fairgvctl top, on ncurses: GPUs, the table of VMs and sessions, the history of the
 * VM that is selected, and a line for messages. Any size will do; what does not fit is left out
 * from the bottom. Without colours the screen says the same.
 *
 * Threads: one.
 */
#ifndef FGV_TOOLS_TOP_SCREEN_H
#define FGV_TOOLS_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/top/model.h"

struct fgv_top_screen {
	size_t selected; /* a row of the model */
	size_t first;	 /* that is shown */
	bool paused, help;
	uint64_t interval_ns;
	char message[512]; /* in the last line; empty: the keys */
	struct _win_st *pad;
};

/* Not a key: it took too long. */
#define FGV_TOP_NOTHING (-1)

/* 0; -ENOTTY where there is no terminal that is known, -ENOMEM. Nothing is said. */
int fgv_top_screen_init(struct fgv_top_screen *screen);
void fgv_top_screen_fini(struct fgv_top_screen *screen);

/* Draws all of it, and keeps @screen's places within the model's rows. */
void fgv_top_screen_draw(struct fgv_top_screen *screen, const struct fgv_top_model *model);

/*
 * The next key, or FGV_TOP_NOTHING at @until_ns (fgv_now_ns()). The arrows up and down are 'k' and
 * 'j', backspace is '\b'. A terminal that has another size now is some other number.
 */
int fgv_top_screen_key(struct fgv_top_screen *screen, uint64_t until_ns);

#endif
