/* Drawing; see screen.h. */
#include "tools/top/screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/util.h"
#include "tools/ctl.h"

#define COLUMNS	       80 /* of the screen that everything fits into */
#define NAME_WIDTH     16
#define FIXED_WIDTH    54 /* of the table's columns but name and bar, and what is between them */
#define BAR_MIN	       8
#define BAR_MAX	       60
#define LAUNCHES_WIDTH 24 /* where there is room for them */
#define HISTORY_ROWS   5  /* with their title */
#define HISTORY_FROM   18 /* lines of the screen */
#define GPU_PART       4  /* of the lines, at most one in so many is a GPU's */

enum colour { GOOD = 1, OVER, HEAD };

/* What is drawn goes to a pad, which is wider than any terminal, so that long lines are cut. */
#define PAD_WIDTH 1024

int fgv_top_screen_init(struct fgv_top_screen *screen)
{
	*screen = (struct fgv_top_screen){0};
	setlocale(LC_ALL, "");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !newterm(NULL, stdout, stdin))
		return -ENOTTY;
	screen->pad = newpad(LINES, PAD_WIDTH);
	if (!screen->pad) {
		endwin();
		return -ENOMEM;
	}
	set_escdelay(50);
	cbreak();
	noecho();
	keypad(screen->pad, TRUE);
	curs_set(0);
	if (has_colors() && start_color() == OK) {
		use_default_colors();
		init_pair(GOOD, COLOR_GREEN, -1);
		init_pair(OVER, COLOR_YELLOW, -1);
		init_pair(HEAD, COLOR_CYAN, -1);
	}
	return 0;
}

void fgv_top_screen_fini(struct fgv_top_screen *screen)
{
	delwin(screen->pad);
	endwin();
}

/* --- Parts ------------------------------------------------------------------- */

/* Of what is in use, '#', up to @width; '|' marks what is owed, if that is not 0. */
static void draw_bar(WINDOW *w, unsigned used, unsigned owed, int width)
{
	int filled = (int)((uint64_t)used * (uint64_t)width / FGV_TOP_WHOLE);
	int mark = owed ? (int)((uint64_t)owed * (uint64_t)width / FGV_TOP_WHOLE) : -1;
	attr_t attributes = COLOR_PAIR(owed && used > owed ? OVER : GOOD);

	waddch(w, '[');
	wattron(w, attributes);
	for (int i = 0; i < width; i++)
		waddch(w, i == mark - 1 ? '|' : i < filled ? '#' : ' ');
	wattroff(w, attributes);
	waddch(w, ']');
}

static void show_share(char *text, size_t len, unsigned share, bool known)
{
	if (known)
		snprintf(text, len, "%u.%u%%", share / 10, share % 10);
	else
		snprintf(text, len, "-");
}

static void draw_title(WINDOW *w, const struct fgv_top_screen *screen,
		       const struct fgv_top_model *model)
{
	static const char *const sorts[FGV_TOP_SORTS] = {"name", "used", "wait", "memory"};
	char clock[16];
	time_t now = time(NULL);
	struct tm local;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
	wattron(w, A_BOLD);
	mvwprintw(w, 0, 0, "fairgv  %s  every %g s%s  by %s%s", clock,
		  (double)screen->interval_ns / FGV_NS_PER_SEC, screen->paused ? " (paused)" : "",
		  sorts[model->sort], model->reversed ? ", reversed" : "");
	if (*model->filter)
		wprintw(w, "  only \"%s\"", model->filter);
	wattroff(w, A_BOLD);
}

static void draw_gpu(WINDOW *w, int y, const struct fgv_top_gpu *gpu, bool known)
{
	char share[16], used[FGV_CTL_TEXT_LEN], memory[FGV_CTL_TEXT_LEN];
	int width = COLS > 100 ? 30 : 14;

	show_share(share, sizeof(share), gpu->used, known);
	fgv_ctl_show_bytes(used, sizeof(used), gpu->memory_used);
	fgv_ctl_show_bytes(memory, sizeof(memory), gpu->memory);
	mvwprintw(w, y, 0, "GPU %-2ju %6s ", (uintmax_t)gpu->device, share);
	draw_bar(w, gpu->used, 0, width);
	wprintw(w, "  memory %s / %s  %s  %s", used, memory, gpu->policy, gpu->name);
}

/* The number of lines that they take. */
static int draw_gpus(WINDOW *w, int y, const struct fgv_top_model *model)
{
	size_t room = (size_t)(LINES > 2 * GPU_PART ? LINES / GPU_PART : 1);
	size_t count = model->gpu_count < room ? model->gpu_count : room;

	for (size_t i = 0; i < count; i++)
		draw_gpu(w, y + (int)i, &model->gpus[i], model->has_rates);
	if (count < model->gpu_count)
		wprintw(w, "  (+%zu)", model->gpu_count - count);
	return (int)count;
}

/* --- The table --------------------------------------------------------------- */

/* A fourth of what a screen has beyond 80 columns, up to 40. */
static int name_width(void)
{
	int more = (COLS - COLUMNS) / 4;

	return NAME_WIDTH + (more < 0 ? 0 : more > 24 ? 24 : more);
}

static int bar_width(void)
{
	int width = COLS - name_width() - FIXED_WIDTH;

	return width < BAR_MIN ? BAR_MIN : width > BAR_MAX ? BAR_MAX : width;
}

static void draw_head(WINDOW *w, int y)
{
	wattron(w, A_REVERSE | COLOR_PAIR(HEAD));
	mvwprintw(w, y, 0, "%-*s %6s %6s %6s %-*s %9s %9s %9s", name_width(), "VM, program",
		  "weight", "owed", "used", bar_width() + 2, "", "wait p99", "memory", "quota");
	for (int x = getcurx(w); x && x < COLS; x++)
		waddch(w, ' ');
	wattroff(w, A_REVERSE | COLOR_PAIR(HEAD));
}

static void draw_name(WINDOW *w, const struct fgv_top_row *row)
{
	char text[FGV_TOP_NAME_LEN + 32];

	if (row->is_session)
		snprintf(text, sizeof(text), " %ju %s", (uintmax_t)row->number, row->name);
	else
		snprintf(text, sizeof(text), "%s", row->name);
	wprintw(w, "%-*.*s", name_width(), name_width(), text);
}

/* A session has a state where its VM has what it is owed. */
static void draw_owed(WINDOW *w, const struct fgv_top_row *row)
{
	char owed[16];

	show_share(owed, sizeof(owed), row->owed, true);
	if (row->is_session)
		wprintw(w, " %13s", row->state);
	else
		wprintw(w, " %6ju %6s", (uintmax_t)row->weight, owed);
}

static void draw_row(WINDOW *w, int y, const struct fgv_top_row *row, bool known, bool selected)
{
	char used[16], wait[FGV_CTL_TEXT_LEN], memory[FGV_CTL_TEXT_LEN], quota[FGV_CTL_TEXT_LEN];

	show_share(used, sizeof(used), row->used, known);
	fgv_ctl_show_time(wait, sizeof(wait), row->wait_ns);
	fgv_ctl_show_bytes(memory, sizeof(memory), row->memory);
	snprintf(quota, sizeof(quota), "-");
	if (row->limit != FGV_TOP_NO_LIMIT)
		fgv_ctl_show_bytes(quota, sizeof(quota), row->limit);
	wmove(w, y, 0);
	wattron(w, selected ? A_REVERSE : A_NORMAL);
	draw_name(w, row);
	wattroff(w, A_REVERSE);
	draw_owed(w, row);
	wprintw(w, " %6s ", used);
	draw_bar(w, row->used, row->owed, bar_width());
	wprintw(w, " %9s %9s %9s", known && row->wait_ns ? wait : "-", memory,
		row->is_session ? "" : quota);
	if (COLS >= name_width() + FIXED_WIDTH + BAR_MAX + LAUNCHES_WIDTH && row->is_session &&
	    known)
		wprintw(w, "  %.0f launches/s", row->launches);
}

/* The selected row is one of the @lines that are shown. */
static void keep_in_view(struct fgv_top_screen *screen, size_t count, size_t lines)
{
	if (screen->selected >= count)
		screen->selected = count ? count - 1 : 0;
	if (screen->selected < screen->first)
		screen->first = screen->selected;
	if (lines && screen->selected >= screen->first + lines)
		screen->first = screen->selected + 1 - lines;
}

static void draw_rows(WINDOW *w, int y, int lines, struct fgv_top_screen *screen,
		      const struct fgv_top_model *model)
{
	keep_in_view(screen, model->row_count, lines > 0 ? (size_t)lines : 0);
	for (int i = 0; i < lines; i++) {
		size_t row = screen->first + (size_t)i;

		if (row < model->row_count)
			draw_row(w, y + i, model->rows[row], model->has_rates,
				 row == screen->selected);
	}
}

/* --- History ----------------------------------------------------------------- */

/* A column for each sample, the newest at the right; '-' is what the VM is owed. */
static void draw_column(WINDOW *w, int y, int x, int height, unsigned used, unsigned owed)
{
	unsigned steps = (unsigned)height * 2; /* ':' is half of '#' */
	unsigned filled = (used * steps + FGV_TOP_WHOLE / 2) / FGV_TOP_WHOLE;
	unsigned mark = owed * (unsigned)height / FGV_TOP_WHOLE;

	for (int i = 0; i < height; i++) {
		unsigned level = (unsigned)(height - 1 - i);
		int c = filled >= 2 * level + 2 ? '#' : filled == 2 * level + 1 ? ':' : ' ';

		if (c == ' ' && level == mark)
			c = '-';
		mvwaddch(w, y + i, x, (chtype)c | (attr_t)COLOR_PAIR(used > owed ? OVER : GOOD));
	}
}

static void draw_history(WINDOW *w, int y, const struct fgv_top_vm *vm)
{
	int height = HISTORY_ROWS - 1;
	size_t shown = fgv_min_u64(vm->history_len, (uint64_t)COLS);

	wattron(w, A_BOLD);
	mvwprintw(w, y, 0, "%s: what it used of GPU %ju, to now", vm->row.name,
		  (uintmax_t)vm->row.device);
	wattroff(w, A_BOLD);
	for (size_t i = 0; i < shown; i++)
		draw_column(w, y + 1, COLS - (int)shown + (int)i, height,
			    vm->history[vm->history_len - shown + i], vm->row.owed);
}

/* --- All of it --------------------------------------------------------------- */

static void draw_message(WINDOW *w, const struct fgv_top_screen *screen)
{
	static const char keys[] = "q quit  s sort  r reverse  / filter  v sessions  w weight  "
				   "e end  h help";

	wattron(w, *screen->message ? A_BOLD : A_NORMAL);
	mvwprintw(w, LINES - 1, 0, "%.*s", COLS > 1 ? COLS - 1 : 0,
		  *screen->message ? screen->message : keys);
	wattroff(w, A_BOLD);
}

static void draw_help(WINDOW *w)
{
	static const char *const lines[] = {
		"up, down, k, j     select a VM or a session",
		"s                  sort by the next of: name, used, wait, memory",
		"r                  turn the order round",
		"/                  show what has this in its name; nothing: all",
		"v                  show sessions, or VMs alone",
		"w                  set the weight of the VM",
		"e                  end the session",
		"+, -               measure over longer, or shorter, intervals",
		"space              stop, and go on",
		"q                  quit",
		"",
		"owed: the VM's share of its GPU while all VMs are busy, | in the bar and",
		"- in the history. used: what it had of the GPU's time in the interval.",
		"wait p99: 99 of 100 waits for the GPU took no longer.",
	};

	for (int i = 0; i < (int)FGV_ARRAY_LEN(lines) && i + 2 < LINES; i++)
		mvwprintw(w, i + 1, 2, "%.*s", COLS > 3 ? COLS - 3 : 0, lines[i]);
}

static void draw_figures(WINDOW *w, struct fgv_top_screen *screen,
			 const struct fgv_top_model *model)
{
	int y = 1 + draw_gpus(w, 1, model);
	int below = LINES >= HISTORY_FROM ? HISTORY_ROWS + 1 : 1;

	draw_head(w, y);
	draw_rows(w, y + 1, LINES - below - y - 1, screen, model);
	if (below > 1 && screen->selected < model->row_count)
		draw_history(w, LINES - below,
			     fgv_top_model_vm(model, model->rows[screen->selected]));
}

void fgv_top_screen_draw(struct fgv_top_screen *screen, const struct fgv_top_model *model)
{
	WINDOW *w = screen->pad;

	wresize(w, LINES, PAD_WIDTH);
	werase(w);
	draw_title(w, screen, model);
	if (screen->help)
		draw_help(w);
	else
		draw_figures(w, screen, model);
	draw_message(w, screen);
	pnoutrefresh(w, 0, 0, 0, 0, LINES - 1, COLS - 1);
	doupdate();
}

int fgv_top_screen_key(struct fgv_top_screen *screen, uint64_t until_ns)
{
	uint64_t now_ns = fgv_now_ns();
	int key;

	wtimeout(screen->pad,
		 until_ns > now_ns ? (int)((until_ns - now_ns) / FGV_NS_PER_MS) + 1 : 0);
	key = wgetch(screen->pad);
	switch (key) {
	case ERR:
		return FGV_TOP_NOTHING;
	case KEY_UP:
		return 'k';
	case KEY_DOWN:
		return 'j';
	case KEY_ENTER:
	case '\r':
		return '\n';
	case KEY_BACKSPACE:
	case 127:
		return '\b';
	default:
		return key;
	}
}
