/*
 * fairgvctl top: asks the daemon again and again, shows what has changed, and does what the keys
 * say. Setting a weight and ending a session are requests to the daemon like those of "set" and
 * "end", and refused by it where the socket is for observers.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/log.h"
#include "common/util.h"
#include "tools/ctl.h"
#include "tools/top/model.h"
#include "tools/top/screen.h"

#define INTERVAL_MIN_NS (100 * FGV_NS_PER_MS)
#define INTERVAL_MAX_NS (60 * FGV_NS_PER_SEC)
#define ESCAPE		27

struct top {
	const char *socket;
	struct fgv_top_model model;
	struct fgv_top_screen screen;
	uint64_t next_ns; /* when the daemon is asked again */
	bool over;
};

static void draw(struct top *top)
{
	fgv_top_screen_draw(&top->screen, &top->model);
}

/* --- The daemon -------------------------------------------------------------- */

/* 0, or -EIO and @why. */
static int sample(struct top *top, char *why, size_t why_len)
{
	json_t *report =
		fgv_ctl_try(top->socket, json_pack("{s:s}", "request", "stat"), why, why_len);

	if (!report)
		return -EIO;
	if (!fgv_top_model_take(&top->model, report))
		return 0;
	snprintf(why, why_len, "the daemon's reply is not understood; is it of another version?");
	return -EIO;
}

/* What was is shown for as long as the daemon does not answer. */
static void sample_again(struct top *top)
{
	char why[FGV_CTL_WHY_LEN];

	top->next_ns = fgv_now_ns() + top->screen.interval_ns;
	if (top->screen.paused)
		return;
	if (sample(top, why, sizeof(why)))
		snprintf(top->screen.message, sizeof(top->screen.message), "%s", why);
}

/* Has @request done, and @done or what is wrong said in the last line. */
static void change(struct top *top, json_t *request, const char *done)
{
	char why[FGV_CTL_WHY_LEN];
	json_t *reply = fgv_ctl_try(top->socket, request, why, sizeof(why));

	snprintf(top->screen.message, sizeof(top->screen.message), "%s", reply ? done : why);
	json_decref(reply);
	top->next_ns = fgv_now_ns();
}

/* --- Asking the user --------------------------------------------------------- */

/* A key, while the screen stays as it is but for its size. */
static int await_key(struct top *top)
{
	int key;

	do {
		draw(top);
		key = fgv_top_screen_key(&top->screen, fgv_now_ns() + FGV_NS_PER_SEC);
	} while (key == FGV_TOP_NOTHING);
	return key;
}

/* A line of text after @question, in the last line of the screen. False: the user has thought
 * better of it. */
static bool ask_text(struct top *top, const char *question, char *text, size_t len)
{
	size_t at = 0;
	int key;

	do {
		text[at] = '\0';
		snprintf(top->screen.message, sizeof(top->screen.message), "%s: %s_", question,
			 text);
		key = await_key(top);
		if (key == '\b' && at)
			at--;
		else if (key >= ' ' && key <= '~' && at + 1 < len)
			text[at++] = (char)key;
	} while (key != '\n' && key != ESCAPE);
	top->screen.message[0] = '\0';
	return key == '\n';
}

/* --- Keys -------------------------------------------------------------------- */

static const struct fgv_top_row *selected_row(const struct top *top)
{
	size_t row = top->screen.selected;

	return row < top->model.row_count ? top->model.rows[row] : NULL;
}

static void choose_filter(struct top *top)
{
	char text[FGV_TOP_NAME_LEN];

	if (!ask_text(top, "show names with", text, sizeof(text)))
		return;
	memcpy(top->model.filter, text, sizeof(text));
	top->screen.selected = 0;
	fgv_top_model_arrange(&top->model);
}

static void set_weight(struct top *top)
{
	const struct fgv_top_row *row = selected_row(top);
	char name[FGV_TOP_NAME_LEN], text[16], question[128], done[128];
	char *end;
	long weight;

	if (!row)
		return;
	snprintf(name, sizeof(name), "%s", row->vm);
	snprintf(question, sizeof(question), "weight of %s", name);
	if (!ask_text(top, question, text, sizeof(text)) || !*text)
		return;
	weight = strtol(text, &end, 10);
	if (*end) {
		snprintf(top->screen.message, sizeof(top->screen.message),
			 "%s: a weight is a whole number", text);
		return;
	}
	snprintf(done, sizeof(done), "%s: weight %ld", name, weight);
	change(top,
	       json_pack("{s:s, s:s, s:I}", "request", "set", "vm", name, "weight",
			 (json_int_t)weight),
	       done);
}

static void end_session(struct top *top)
{
	const struct fgv_top_row *row = selected_row(top);
	char done[64];
	uint64_t number;

	if (!row || !row->is_session) {
		snprintf(top->screen.message, sizeof(top->screen.message),
			 "select a session to end it");
		return;
	}
	number = row->number;
	snprintf(top->screen.message, sizeof(top->screen.message),
		 "end session %ju, program %s of %s? (y, or another key)", (uintmax_t)number,
		 row->name, row->vm);
	if (await_key(top) != 'y') {
		top->screen.message[0] = '\0';
		return;
	}
	snprintf(done, sizeof(done), "session %ju is ended", (uintmax_t)number);
	change(top, json_pack("{s:s, s:I}", "request", "end", "session", (json_int_t)number), done);
}

static void change_interval(struct top *top, bool longer)
{
	uint64_t ns = longer ? top->screen.interval_ns * 2 : top->screen.interval_ns / 2;

	if (ns < INTERVAL_MIN_NS || ns > INTERVAL_MAX_NS)
		return;
	top->screen.interval_ns = ns;
	top->next_ns = fgv_now_ns() + ns;
}

static void choose_rows(struct top *top, int key)
{
	struct fgv_top_model *model = &top->model;

	if (key == 's')
		model->sort = (model->sort + 1) % FGV_TOP_SORTS;
	else if (key == 'r')
		model->reversed = !model->reversed;
	else
		model->no_sessions = !model->no_sessions;
	fgv_top_model_arrange(model);
}

static void obey(struct top *top, int key)
{
	switch (key) {
	case 'q':
		top->over = true;
		break;
	case 'k':
		top->screen.selected -= top->screen.selected > 0;
		break;
	case 'j':
		top->screen.selected++; /* drawing keeps it within the rows */
		break;
	case 's':
	case 'r':
	case 'v':
		choose_rows(top, key);
		break;
	case '/':
		choose_filter(top);
		break;
	case 'w':
		set_weight(top);
		break;
	case 'e':
		end_session(top);
		break;
	case '+':
	case '-':
		change_interval(top, key == '+');
		break;
	case ' ':
		top->screen.paused = !top->screen.paused;
		break;
	case 'h':
	case '?':
		top->screen.help = !top->screen.help;
		break;
	}
}

/* --- All of it --------------------------------------------------------------- */

static void run(struct top *top)
{
	while (!top->over) {
		int key;

		draw(top);
		key = fgv_top_screen_key(&top->screen, top->next_ns);
		if (key != FGV_TOP_NOTHING) {
			top->screen.message[0] = '\0';
			obey(top, key);
		}
		if (fgv_now_ns() >= top->next_ns)
			sample_again(top);
	}
}

int fgv_ctl_top(const char *socket, uint64_t interval_ns)
{
	struct top top = {.socket = socket};
	char why[FGV_CTL_WHY_LEN];
	int ret = sample(&top, why, sizeof(why));

	if (ret) {
		fgv_error("%s", why);
		return ret;
	}
	ret = fgv_top_screen_init(&top.screen);
	if (ret) {
		fgv_error(
			"top needs a terminal whose kind TERM names; stat prints the same figures");
	} else {
		top.screen.interval_ns = interval_ns;
		top.next_ns = fgv_now_ns() + fgv_min_u64(interval_ns, FGV_NS_PER_SEC / 4);
		run(&top);
		fgv_top_screen_fini(&top.screen);
	}
	fgv_top_model_fini(&top.model);
	return ret;
}
