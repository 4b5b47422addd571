/*
 * Start-time fair queuing; what it promises is in sfq.h. The active nodes are in a heap,
 * in order of (start tag, id): looking at the next one is O(1), and all else O(log n) at
 * worst. docs/design/0022-queue.md says why this is no tree.
 *
 * An entry has up to four children, which share a cache line; the entry at place p has those
 * at 4 p + 1 to 4 p + 4. Entries hold what is compared, so that nodes are not touched on the
 * way.
 */
#include "scheduler/sfq.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define CHILDREN 4
#define LINE	 64

/* The first places two and three steps below the first, and the last of these. */
#define LEVEL_2	    5
#define LEVEL_3	    21
#define LEVEL_3_END 84

/* A function that only fetches counts as one without effects, and calls of it are left out. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

_Static_assert(CHILDREN * sizeof(struct fgv_sfq_entry) == LINE, "siblings share a line");

/* --- Rooms ----------------------------------------------------------------- */

void fgv_sfq_room_init(struct fgv_sfq_room *room)
{
	*room = (struct fgv_sfq_room){
		.heap = &room->only_entry,
		.nodes = &room->only_node,
		.places = &room->only_place,
		.size = 1,
	};
}

void fgv_sfq_room_fini(struct fgv_sfq_room *room)
{
	free(room->memory);
	fgv_sfq_room_init(room);
}

int fgv_sfq_room_grow(struct fgv_sfq_room *room, uint32_t nodes)
{
	size_t size = fgv_align_up(fgv_max_u64(nodes, 2ull * room->size), CHILDREN);
	size_t len = (size + CHILDREN) * sizeof(*room->heap) + size * sizeof(*room->nodes) +
		     size * sizeof(*room->places);
	struct fgv_sfq_room old = *room;
	struct fgv_sfq_entry *entries;

	if (nodes <= room->size)
		return 0;
	entries = aligned_alloc(LINE, fgv_align_up(len, LINE));
	if (entries == NULL)
		return -ENOMEM;
	room->memory = entries;
	room->heap = entries + CHILDREN - 1; /* the first four children begin a line */
	room->nodes = (struct fgv_sfq_node **)(entries + size + CHILDREN);
	room->places = (uint32_t *)(room->nodes + size);
	room->size = (uint32_t)size;
	memcpy(room->heap, old.heap, old.size * sizeof(*room->heap));
	memcpy(room->nodes, old.nodes, old.size * sizeof(*room->nodes));
	memcpy(room->places, old.places, old.size * sizeof(*room->places));
	free(old.memory);
	return 0;
}

/* --- The heap -------------------------------------------------------------- */

/* Without a branch, which would be mispredicted every other time. */
static bool before(const struct fgv_sfq_entry *a, const struct fgv_sfq_entry *b)
{
	int64_t order = (int64_t)(a->start - b->start);

	return (order < 0) | ((order == 0) & (a->tie < b->tie));
}

static struct fgv_sfq_entry entry_of(const struct fgv_sfq_node *node)
{
	return (struct fgv_sfq_entry){node->id << 32 | node->number, node->start};
}

static uint32_t number_of(const struct fgv_sfq_entry *entry)
{
	return (uint32_t)entry->tie;
}

static void put(const struct fgv_sfq *q, uint32_t place, struct fgv_sfq_entry entry)
{
	q->room->heap[place] = entry;
	q->room->places[number_of(&entry)] = place;
}

/* The least of the children from @first on, of which there is at least one. */
static uint32_t least_child(const struct fgv_sfq *q, uint32_t first)
{
	const struct fgv_sfq_entry *heap = q->room->heap;
	uint32_t a = first, b = first + 2;

	if (first + CHILDREN > q->active) {
		for (uint32_t place = first + 1; place < q->active; place++)
			if (before(&heap[place], &heap[a]))
				a = place;
		return a;
	}
	a += before(&heap[a + 1], &heap[a]);
	b += before(&heap[b + 1], &heap[b]);
	return a + ((b - a) & -(uint32_t)before(&heap[b], &heap[a]));
}

/* All that may be looked at two steps below @first - 1. */
ALWAYS_INLINE void fetch_grandchildren(const struct fgv_sfq *q, uint32_t first)
{
	for (uint32_t i = 0; i < CHILDREN; i++)
		__builtin_prefetch(&q->room->heap[CHILDREN * (first + i) + 1]);
}

/* An entry that comes near the front: first its node's address, later its node. */
ALWAYS_INLINE void fetch_node(const struct fgv_sfq *q, uint32_t place)
{
	struct fgv_sfq_node **node = &q->room->nodes[number_of(&q->room->heap[place])];

	if (place > LEVEL_3_END || place < LEVEL_2)
		return;
	if (place >= LEVEL_3) {
		__builtin_prefetch(node);
		return;
	}
	for (size_t line = 0; line < FGV_SFQ_HOT_LINES; line++)
		__builtin_prefetch((const char *)*node + line * LINE);
}

/* Puts @entry where it belongs at @place or below; what is at @place has gone. */
static void sink(const struct fgv_sfq *q, uint32_t place, struct fgv_sfq_entry entry)
{
	const struct fgv_sfq_entry *heap = q->room->heap;
	uint32_t first, least;

	while ((first = CHILDREN * place + 1) < q->active) {
		if (q->active > FGV_SFQ_MANY)
			fetch_grandchildren(q, first);
		least = least_child(q, first);
		if (!before(&heap[least], &entry))
			break;
		put(q, place, heap[least]);
		if (q->active > FGV_SFQ_MANY)
			fetch_node(q, place);
		place = least;
	}
	put(q, place, entry);
}

/* The same at @place or above. */
static void rise(const struct fgv_sfq *q, uint32_t place, struct fgv_sfq_entry entry)
{
	const struct fgv_sfq_entry *heap = q->room->heap;

	while (place > 0 && before(&entry, &heap[(place - 1) / CHILDREN])) {
		put(q, place, heap[(place - 1) / CHILDREN]);
		place = (place - 1) / CHILDREN;
	}
	put(q, place, entry);
}

static void note_first(struct fgv_sfq *q)
{
	q->first = q->active > 0 ? q->room->nodes[number_of(&q->room->heap[0])] : NULL;
}

/* An only node changes its tag without the heap; so it is put there when it gets company. */
static void insert(struct fgv_sfq *q, struct fgv_sfq_node *node)
{
	if (q->active == 1)
		put(q, 0, entry_of(q->first));
	rise(q, q->active++, entry_of(node));
	note_first(q);
}

static void take_out(struct fgv_sfq *q, const struct fgv_sfq_node *node)
{
	uint32_t place = q->room->places[node->number];
	struct fgv_sfq_entry last = q->room->heap[--q->active];

	if (place == q->active)
		;
	else if (before(&last, &q->room->heap[place]))
		rise(q, place, last);
	else
		sink(q, place, last);
	note_first(q);
}

/* The tag of @node has grown. */
static void move_back(struct fgv_sfq *q, const struct fgv_sfq_node *node)
{
	if (q->active == 1)
		return;
	sink(q, q->room->places[node->number], entry_of(node));
	note_first(q);
}

/* --- Queues and nodes ------------------------------------------------------ */

void fgv_sfq_init(struct fgv_sfq *q, struct fgv_sfq_room *room, uint64_t first_tag)
{
	*q = (struct fgv_sfq){.room = room, .vtime = first_tag, .last_finish = first_tag};
}

void fgv_sfq_node_init(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t id, uint32_t weight)
{
	*node = (struct fgv_sfq_node){
		.start = q->vtime, .id = id, .weight = weight, .number = q->nodes++};
	q->room->nodes[node->number] = node;
}

/* Numbers have no gaps: the last node gets the one that becomes free. */
void fgv_sfq_node_fini(struct fgv_sfq *q, struct fgv_sfq_node *node)
{
	const struct fgv_sfq_room *room = q->room;
	struct fgv_sfq_node *last = room->nodes[--q->nodes];
	uint32_t place = room->places[last->number];

	last->number = node->number;
	room->nodes[last->number] = last;
	if (last->active)
		put(q, place, entry_of(last));
}

static void advance_vtime(struct fgv_sfq *q)
{
	if (q->first != NULL && fgv_sfq_before(q->vtime, q->first->start))
		q->vtime = q->first->start;
}

/* Nobody was active since idle_since_ns: old debts fade at the rate of the clock. */
static void pass_idle_time(struct fgv_sfq *q, uint64_t now_ns)
{
	uint64_t owed = q->last_finish - q->vtime;
	uint64_t idle_ns = now_ns > q->idle_since_ns ? now_ns - q->idle_since_ns : 0;

	if (fgv_sfq_before(q->vtime, q->last_finish))
		q->vtime += idle_ns < owed ? idle_ns : owed;
}

void fgv_sfq_activate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns)
{
	fgv_sfq_activate_owed(q, node, 0, now_ns);
}

void fgv_sfq_activate_owed(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t owed,
			   uint64_t now_ns)
{
	if (q->first == NULL)
		pass_idle_time(q, now_ns);
	if (fgv_sfq_before(node->start, q->vtime - owed)) {
		node->start = q->vtime - owed;
		node->rest = 0;
	}
	node->active = true;
	insert(q, node);
	advance_vtime(q);
}

uint64_t fgv_sfq_owed(const struct fgv_sfq *q, const struct fgv_sfq_node *node)
{
	return fgv_sfq_before(node->start, q->vtime) ? q->vtime - node->start : 0;
}

void fgv_sfq_deactivate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns)
{
	take_out(q, node);
	node->active = false;
	advance_vtime(q);
	if (q->first == NULL)
		q->idle_since_ns = now_ns;
}

void fgv_sfq_charge(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t used_ns)
{
	uint64_t amount = used_ns + node->rest;

	node->start += amount / node->weight;
	node->rest = amount % node->weight;
	if (node->active)
		move_back(q, node);
	if (fgv_sfq_before(q->last_finish, node->start))
		q->last_finish = node->start;
	advance_vtime(q);
}

void fgv_sfq_forfeit(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t start)
{
	if (!fgv_sfq_before(node->start, start))
		return;
	node->start = start;
	node->rest = 0;
	move_back(q, node);
	if (fgv_sfq_before(q->last_finish, start))
		q->last_finish = start;
	advance_vtime(q);
}

void fgv_sfq_set_weight(struct fgv_sfq_node *node, uint32_t weight)
{
	/* The rest stands for rest / weight of a nanosecond of virtual time. */
	node->rest = node->rest * weight / node->weight;
	node->weight = weight;
}

uint64_t fgv_sfq_finish(const struct fgv_sfq_node *node, uint64_t used_ns)
{
	return node->start + (used_ns + node->rest) / node->weight;
}

struct fgv_sfq_node *fgv_sfq_first(const struct fgv_sfq *q)
{
	return q->first;
}

/*
 * The least entry from @place down that comes after @bound, if it is before @best. What is
 * below an entry comes after it, so the search ends at the first on each way.
 */
static const struct fgv_sfq_entry *least_after(const struct fgv_sfq *q, uint32_t place,
					       const struct fgv_sfq_entry *bound,
					       const struct fgv_sfq_entry *best)
{
	const struct fgv_sfq_entry *entry = &q->room->heap[place];

	if (place >= q->active || (best != NULL && !before(entry, best)))
		return best;
	if (before(bound, entry))
		return entry;
	for (uint32_t child = 1; child <= CHILDREN; child++)
		best = least_after(q, CHILDREN * place + child, bound, best);
	return best;
}

struct fgv_sfq_node *fgv_sfq_next(const struct fgv_sfq *q, const struct fgv_sfq_node *node)
{
	struct fgv_sfq_entry bound = entry_of(node);
	const struct fgv_sfq_entry *next;

	if (q->active == 1)
		return NULL;
	next = least_after(q, 0, &bound, NULL);
	return next != NULL ? q->room->nodes[number_of(next)] : NULL;
}

bool fgv_sfq_precedes(const struct fgv_sfq_node *a, uint64_t a_start, const struct fgv_sfq_node *b,
		      uint64_t b_start)
{
	if (a_start != b_start)
		return fgv_sfq_before(a_start, b_start);
	return (uint32_t)a->id < (uint32_t)b->id;
}
