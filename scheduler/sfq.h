/*
 * Start-time fair queuing, the algorithm of the FairGV paper (section 3.2.1): each client
 * has a weight and a start tag, the one with the least start tag is served next, and the
 * service it got moves its tag by service / weight.
 *
 * Tags are GPU nanoseconds of a client of weight 1. What a division leaves over is kept and
 * goes into the next one, so a tag is always exactly the floor of all service ever charged
 * over the weight: no drift, however many slices. Tags wrap; they are compared by signed
 * difference, which is right as long as two tags are less than 2^63 ns (292 years) apart.
 *
 * Virtual time is the least start tag of the active clients (waiting or in service), and
 * never moves back. A client that becomes active starts at its own finish tag or at the
 * virtual time, whichever is later: sleeping earns nothing, and costs no more than what the
 * client was owed as it fell asleep, which its owner may keep for it (activate_owed). A
 * client that overran its slice cannot shake the debt off by a short sleep; but while
 * nobody is active at all, virtual time runs on with the clock up to the last finish tag,
 * so that no debt outlives an idle time of its own length.
 *
 * Memory: nodes lie in their owner, and the queue in a room (below) that holds as many
 * nodes as it has been grown for. Only growing allocates. One thread at a time per queue.
 */
#ifndef FGV_SCHEDULER_SFQ_H
#define FGV_SCHEDULER_SFQ_H

#include <stdbool.h>
#include <stdint.h>

#define FGV_SFQ_HOT_LINES 3
#define FGV_SFQ_MANY	  256

struct fgv_sfq_node {
	uint64_t start; /* start tag; of one not active, its last finish tag */
	uint64_t rest;	/* service not yet in the tag, below the weight */
	uint64_t id;	/* its low half breaks ties: the lower one first */
	uint32_t weight;
	uint32_t number; /* among the nodes of its queue, active or not */
	bool active;
};

/* An active node's place in the order of service. */
struct fgv_sfq_entry {
	uint64_t tie; /* low half of the id, then the node's number */
	uint64_t start;
};

/*
 * Where a queue keeps the order of its nodes: a heap of entries, and by the nodes' numbers
 * the nodes and their places in the heap. There is always room for one node. A room must not
 * move, and serves one queue.
 */
struct fgv_sfq_room {
	struct fgv_sfq_entry *heap;
	struct fgv_sfq_node **nodes;
	uint32_t *places;
	struct fgv_sfq_entry only_entry; /* what the pointers point to if size is 1 */
	struct fgv_sfq_node *only_node;
	uint32_t only_place;
	uint32_t size; /* nodes that fit */
	void *memory;
};

struct fgv_sfq {
	struct fgv_sfq_room *room;
	struct fgv_sfq_node *first; /* of the active ones; NULL if there is none */
	uint32_t nodes;		    /* of this queue */
	uint32_t active;	    /* of these */
	uint64_t vtime;
	uint64_t last_finish; /* the latest finish tag there was */
	uint64_t idle_since_ns;
};

/* Is tag @a before tag @b? */
static inline bool fgv_sfq_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

void fgv_sfq_room_init(struct fgv_sfq_room *room);

/* Frees the memory; the room is as after init. */
void fgv_sfq_room_fini(struct fgv_sfq_room *room);

/* Makes room for @nodes in all; a queue in it stays as it is. 0, or -ENOMEM: nothing happened. */
int fgv_sfq_room_grow(struct fgv_sfq_room *room, uint32_t nodes);

/*
 * An empty queue in @room, which outlives it. @first_tag: where virtual time begins; any
 * value, for tests of the wrap.
 */
void fgv_sfq_init(struct fgv_sfq *q, struct fgv_sfq_room *room, uint64_t first_tag);

/*
 * @id's low half must differ from that of every other node; @weight is at least 1. The room has
 * been grown for one node more than there are. The node must not move until it leaves.
 */
void fgv_sfq_node_init(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t id, uint32_t weight);

/* @node, which is not active, leaves the queue. */
void fgv_sfq_node_fini(struct fgv_sfq *q, struct fgv_sfq_node *node);

/* @node wants service. Not for one that is active. */
void fgv_sfq_activate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns);

/*
 * The same for one that was @owed so much as it became idle: it starts that much before the virtual
 * time, but not before its own finish tag.
 */
void fgv_sfq_activate_owed(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t owed,
			   uint64_t now_ns);

/* By how much virtual time is past the finish tag of @node, which is not active. */
uint64_t fgv_sfq_owed(const struct fgv_sfq *q, const struct fgv_sfq_node *node);

/* @node is neither waiting nor in service any more; charge it first. */
void fgv_sfq_deactivate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns);

/* @node got @used_ns of service, which may be far more than it was offered. */
void fgv_sfq_charge(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t used_ns);

/* @node, which is active, is owed nothing from before @start: its tag is that or later. */
void fgv_sfq_forfeit(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t start);

/* Takes effect with the next charge; what was charged stays as it was. */
void fgv_sfq_set_weight(struct fgv_sfq_node *node, uint32_t weight);

/* The start tag that @node would have after @used_ns more. */
uint64_t fgv_sfq_finish(const struct fgv_sfq_node *node, uint64_t used_ns);

/*
 * The active nodes in order of service; NULL at the end. The first costs nothing, the one
 * after @node as much as there are nodes up to it: for a look past those in service.
 */
struct fgv_sfq_node *fgv_sfq_first(const struct fgv_sfq *q);
struct fgv_sfq_node *fgv_sfq_next(const struct fgv_sfq *q, const struct fgv_sfq_node *node);

/* Would @a, with the start tag @a_start, be served before @b with @b_start? */
bool fgv_sfq_precedes(const struct fgv_sfq_node *a, uint64_t a_start, const struct fgv_sfq_node *b,
		      uint64_t b_start);

#endif
