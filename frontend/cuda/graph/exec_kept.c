/*
 * Keeping graphs of the host's, the one that was kept last first.
 */
#include "frontend/cuda/graph/exec_kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/gpu_guest.h"
#include "frontend/client/lane.h"

/* Texts that the host has built of late are known by so many numbers. */
#define KNOWN 64u

/* Numbers of what came of late; 0: nothing. */
struct known {
	uint64_t numbers[KNOWN];
	uint32_t next;
};

struct kept {
	TAILQ_ENTRY(kept) link;
	uint32_t graph; /* the host's handle */
	struct fgv_exec_source source;
};

/* What there is of one device. */
struct shelf {
	TAILQ_HEAD(kept_list, kept) list; /* all zero: it is empty, too, until it is opened */
	uint32_t count, nodes;
	uint32_t age;
	struct known texts, shapes;
};

static struct {
	pthread_mutex_t mutex;
	struct shelf shelves[FGV_DEVICES_MAX];
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct shelf *open_locked(uint32_t device)
{
	struct shelf *shelf = &all.shelves[device];

	if (!shelf->list.tqh_last)
		TAILQ_INIT(&shelf->list);
	return shelf;
}

/* --- Texts --------------------------------------------------------------------- */

static bool is_for_keeping(const struct fgv_exec_kept_text *text, struct fgv_exec_numbers *numbers)
{
	return text->nodes <= FGV_EXEC_KEPT_NODES_MAX &&
	       fgv_exec_alike_number(text->bytes, text->len, numbers);
}

/* Whether it was known before. */
static bool learn(struct known *known, uint64_t number)
{
	for (uint32_t i = 0; i < KNOWN; i++) {
		if (known->numbers[i] == number)
			return true;
	}
	known->numbers[known->next++ % KNOWN] = number;
	return false;
}

/* --- The list ------------------------------------------------------------------ */

static void remove_locked(struct shelf *shelf, struct kept *kept)
{
	TAILQ_REMOVE(&shelf->list, kept, link);
	shelf->count--;
	shelf->nodes -= kept->source.nodes;
}

static void destroy_locked(struct fgv_lane *lane, struct shelf *shelf, struct kept *kept)
{
	remove_locked(shelf, kept);
	fgv_post_graph_destroy(lane, kept->graph);
	free(kept->source.text);
	free(kept);
}

static bool fits(const struct fgv_exec_source *source, const uint32_t *stream)
{
	return !stream || !source->was_launched || source->stream == *stream;
}

static struct kept *find_same_locked(struct shelf *shelf, const struct fgv_exec_kept_text *text,
				     uint64_t number, const uint32_t *stream)
{
	struct kept *each;

	TAILQ_FOREACH(each, &shelf->list, link) {
		if (each->source.numbers.whole == number && each->source.len == text->len &&
		    fits(&each->source, stream) &&
		    !memcmp(each->source.text, text->bytes, text->len))
			return each;
	}
	return NULL;
}

/* The one that was kept longest: it is the least likely to come again as it is. */
static struct kept *find_alike_locked(struct shelf *shelf, const struct fgv_exec_kept_text *text,
				      uint64_t number, const uint32_t *stream)
{
	struct kept *each;

	TAILQ_FOREACH_REVERSE(each, &shelf->list, kept_list, link)
	{
		if (each->source.numbers.shape == number && each->source.len == text->len &&
		    fits(&each->source, stream) &&
		    fgv_exec_alike_are(each->source.text, text->bytes, text->len))
			return each;
	}
	return NULL;
}

static bool has_room(const struct shelf *shelf, uint32_t nodes)
{
	return shelf->count < FGV_EXEC_KEPT_MAX && shelf->nodes + nodes <= FGV_EXEC_KEPT_NODES_MAX;
}

/*
 * A text that comes again gets a graph of its own while there is room, so that those that take
 * turns need not be changed each time. Where a graph is wanted for a stream it has just been looked
 * for in vain.
 */
static enum fgv_exec_kept find_locked(struct shelf *shelf, const struct fgv_exec_kept_text *text,
				      bool is_known, const struct fgv_exec_numbers *numbers,
				      const uint32_t *stream, struct kept **kept)
{
	*kept = find_same_locked(shelf, text, numbers->whole, stream);
	if (*kept)
		return FGV_EXEC_KEPT_SAME;
	if (is_known && !stream && has_room(shelf, text->nodes))
		return FGV_EXEC_KEPT_NONE;
	*kept = find_alike_locked(shelf, text, numbers->shape, stream);
	return *kept ? FGV_EXEC_KEPT_ALIKE : FGV_EXEC_KEPT_NONE;
}

/* Its text is kept with what is built of it. */
static void keep_text(const struct fgv_exec_kept_text *text, struct fgv_exec_source *source)
{
	source->text = malloc(text->len + 1);
	if (!source->text)
		return;
	memcpy(source->text, text->bytes, text->len);
	source->len = text->len;
	source->nodes = text->nodes;
}

enum fgv_exec_kept fgv_exec_kept_take(uint32_t device, const struct fgv_exec_kept_text *text,
				      const uint32_t *stream, uint32_t *graph,
				      struct fgv_exec_source *source)
{
	struct fgv_exec_numbers numbers;
	struct kept *kept = NULL;
	bool is_known, is_alike_known;
	enum fgv_exec_kept found;
	struct shelf *shelf;

	*source = (struct fgv_exec_source){0};
	if (!is_for_keeping(text, &numbers))
		return FGV_EXEC_KEPT_NONE;
	pthread_mutex_lock(&all.mutex);
	shelf = open_locked(device);
	is_known = learn(&shelf->texts, numbers.whole);
	is_alike_known = learn(&shelf->shapes, numbers.shape);
	found = find_locked(shelf, text, is_known, &numbers, stream, &kept);
	if (kept)
		remove_locked(shelf, kept);
	source->age = shelf->age;
	pthread_mutex_unlock(&all.mutex);
	if (kept) {
		*source = kept->source;
		*graph = kept->graph;
		free(kept);
	} else if (is_alike_known) {
		keep_text(text, source);
	}
	source->numbers = numbers;
	return found;
}

void fgv_exec_kept_become(const struct fgv_exec_kept_text *text, struct fgv_exec_source *source)
{
	memcpy(source->text, text->bytes, text->len);
}

/* Those that were kept longest make room. */
static void keep_locked(struct fgv_lane *lane, struct shelf *shelf, struct kept *kept)
{
	TAILQ_INSERT_HEAD(&shelf->list, kept, link);
	shelf->count++;
	shelf->nodes += kept->source.nodes;
	while (shelf->count > FGV_EXEC_KEPT_MAX || shelf->nodes > FGV_EXEC_KEPT_NODES_MAX)
		destroy_locked(lane, shelf, TAILQ_LAST(&shelf->list, kept_list));
}

void fgv_exec_kept_put(struct fgv_lane *lane, uint32_t graph, struct fgv_exec_source *source)
{
	struct kept *kept = source->text ? malloc(sizeof(*kept)) : NULL;
	bool is_kept = false;
	struct shelf *shelf;

	if (kept) {
		*kept = (struct kept){.graph = graph, .source = *source};
		pthread_mutex_lock(&all.mutex);
		shelf = open_locked(lane->client->device);
		is_kept = source->age == shelf->age;
		if (is_kept)
			keep_locked(lane, shelf, kept);
		pthread_mutex_unlock(&all.mutex);
	}
	if (is_kept) {
		*source = (struct fgv_exec_source){0};
		return;
	}
	free(kept);
	fgv_exec_kept_forget(source);
	fgv_post_graph_destroy(lane, graph);
}

void fgv_exec_kept_forget(struct fgv_exec_source *source)
{
	free(source->text);
	*source = (struct fgv_exec_source){0};
}

bool fgv_exec_kept_drop(struct fgv_lane *lane)
{
	struct shelf *shelf;
	struct kept *kept;
	bool were_any = false;

	pthread_mutex_lock(&all.mutex);
	shelf = open_locked(lane->client->device);
	shelf->age++;
	while ((kept = TAILQ_FIRST(&shelf->list))) {
		destroy_locked(lane, shelf, kept);
		were_any = true;
	}
	pthread_mutex_unlock(&all.mutex);
	return were_any;
}
