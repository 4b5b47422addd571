/*
 * Keeping graphs of the host's, the one that was kept last first.
 */
#include "frontend/cuda/graph/exec_kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/gpu_guest.h"
#include "api/wire.h"
#include "common/util.h"
#include "frontend/client/lane.h"

/* Texts that the host has built of late are known by so many numbers. */
#define KNOWN 64u

/* Of a hash: odd, with bits in all places. */
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

struct kept {
	TAILQ_ENTRY(kept) link;
	uint32_t graph; /* the host's handle */
	struct fgv_exec_source source;
};

static struct {
	pthread_mutex_t mutex;
	TAILQ_HEAD(kept_list, kept) list;
	uint32_t count, nodes;
	uint32_t age;
	uint64_t known[KNOWN];
	uint32_t next_known;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .list = TAILQ_HEAD_INITIALIZER(all.list)};

/* --- Texts --------------------------------------------------------------------- */

static bool is_for_keeping(uint32_t op)
{
	return op == FGV_OP_LAUNCH || op == FGV_OP_LAUNCH_COOPERATIVE ||
	       op == FGV_OP_LAUNCH_CLUSTERS || op == FGV_GRAPH_NO_OP;
}

static uint64_t number_of(const uint8_t *bytes, size_t len)
{
	const uint64_t *words = (const uint64_t *)bytes;
	uint64_t number = len;

	for (size_t i = 0; i < len / 8; i++)
		number = (number ^ words[i] ^ (number >> 29)) * FACTOR;
	return number ? number : 1;
}

/* 0: it is not for keeping. */
static uint64_t number_of_text(const struct fgv_exec_kept_text *text)
{
	struct fgv_graph_node head;

	if (text->nodes > FGV_EXEC_KEPT_NODES_MAX)
		return 0;
	for (size_t at = 0; at < text->len;) {
		memcpy(&head, text->bytes + at, sizeof(head));
		if (!is_for_keeping(head.op))
			return 0;
		at += sizeof(head) + fgv_align_up(head.before_count * sizeof(uint32_t), 8) +
		      fgv_align_up(head.message_len, 8);
	}
	return number_of(text->bytes, text->len);
}

/* Whether it was known before. */
static bool learn_locked(uint64_t number)
{
	for (uint32_t i = 0; i < KNOWN; i++) {
		if (all.known[i] == number)
			return true;
	}
	all.known[all.next_known++ % KNOWN] = number;
	return false;
}

/* --- The list ------------------------------------------------------------------ */

static void remove_locked(struct kept *kept)
{
	TAILQ_REMOVE(&all.list, kept, link);
	all.count--;
	all.nodes -= kept->source.nodes;
}

static void destroy_locked(struct fgv_lane *lane, struct kept *kept)
{
	remove_locked(kept);
	fgv_post_graph_destroy(lane, kept->graph);
	free(kept->source.text);
	free(kept);
}

static bool fits(const struct fgv_exec_source *source, const uint32_t *stream)
{
	return !stream || !source->was_launched || source->stream == *stream;
}

static struct kept *find_locked(const struct fgv_exec_kept_text *text, uint64_t number,
				const uint32_t *stream)
{
	struct kept *each;

	TAILQ_FOREACH(each, &all.list, link) {
		if (each->source.number == number && each->source.len == text->len &&
		    fits(&each->source, stream) &&
		    !memcmp(each->source.text, text->bytes, text->len))
			return each;
	}
	return NULL;
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

uint32_t fgv_exec_kept_take(const struct fgv_exec_kept_text *text, const uint32_t *stream,
			    struct fgv_exec_source *source)
{
	uint64_t number = number_of_text(text);
	struct kept *kept;
	bool is_known;
	uint32_t graph;

	*source = (struct fgv_exec_source){.number = number};
	if (!number)
		return 0;
	pthread_mutex_lock(&all.mutex);
	kept = find_locked(text, number, stream);
	if (kept)
		remove_locked(kept);
	is_known = kept || learn_locked(number);
	source->age = all.age;
	pthread_mutex_unlock(&all.mutex);
	if (!kept) {
		if (is_known)
			keep_text(text, source);
		return 0;
	}
	*source = kept->source;
	graph = kept->graph;
	free(kept);
	return graph;
}

/* Those that were kept longest make room. */
static void keep_locked(struct fgv_lane *lane, struct kept *kept)
{
	TAILQ_INSERT_HEAD(&all.list, kept, link);
	all.count++;
	all.nodes += kept->source.nodes;
	while (all.count > FGV_EXEC_KEPT_MAX || all.nodes > FGV_EXEC_KEPT_NODES_MAX)
		destroy_locked(lane, TAILQ_LAST(&all.list, kept_list));
}

void fgv_exec_kept_put(struct fgv_lane *lane, uint32_t graph, struct fgv_exec_source *source)
{
	struct kept *kept = source->text ? malloc(sizeof(*kept)) : NULL;
	bool is_kept = false;

	if (kept) {
		*kept = (struct kept){.graph = graph, .source = *source};
		pthread_mutex_lock(&all.mutex);
		is_kept = source->age == all.age;
		if (is_kept)
			keep_locked(lane, kept);
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
	struct kept *kept;
	bool were_any = false;

	if (lane->client->device)
		return false;
	pthread_mutex_lock(&all.mutex);
	all.age++;
	while ((kept = TAILQ_FIRST(&all.list))) {
		destroy_locked(lane, kept);
		were_any = true;
	}
	pthread_mutex_unlock(&all.mutex);
	return were_any;
}
