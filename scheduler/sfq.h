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
 * virtual time, whichever is later: sleeping earns nothing, and costs nothing either. A
 * client that overran its slice cannot shake the debt off by a short sleep; but while
 * nobody is active at all, virtual time runs on with the clock up to the last finish tag,
 * so that no debt outlives an idle time of its own length.
 *
 * No memory is allocated: nodes lie in their owner. One thread at a time per queue.
 */
#ifndef FGV_SCHEDULER_SFQ_H
#define FGV_SCHEDULER_SFQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bsd/sys/tree.h>

struct fgv_sfq_node {
	RB_ENTRY(fgv_sfq_node) link; /* in the tree while active */
	uint64_t start;		     /* start tag; of one not active, its last finish tag */
	uint64_t rest;		     /* service not yet in the tag, below the weight */
	uint64_t id;		     /* breaks ties: the lower one first */
	uint32_t weight;
	bool active;
};

RB_HEAD(fgv_sfq_tree, fgv_sfq_node);

struct fgv_sfq {
	struct fgv_sfq_tree tree;
	struct fgv_sfq_node *leftmost;
	uint64_t vtime;
	uint64_t last_finish; /* the latest finish tag there was */
	uint64_t idle_since_ns;
};

/* Is tag @a before tag @b? */
static inline bool fgv_sfq_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* @first_tag: where virtual time begins; any value, for tests of the wrap. */
void fgv_sfq_init(struct fgv_sfq *q, uint64_t first_tag);

/* @id must differ from that of every other node; @weight is at least 1. */
void fgv_sfq_node_init(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t id, uint32_t weight);

/* @node wants service. Not for one that is active. */
void fgv_sfq_activate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns);

/* @node is neither waiting nor in service any more; charge it first. */
void fgv_sfq_deactivate(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t now_ns);

/* @node got @used_ns of service, which may be far more than it was offered. */
void fgv_sfq_charge(struct fgv_sfq *q, struct fgv_sfq_node *node, uint64_t used_ns);

/* Takes effect with the next charge; what was charged stays as it was. */
void fgv_sfq_set_weight(struct fgv_sfq_node *node, uint32_t weight);

/* The start tag that @node would have after @used_ns more. */
uint64_t fgv_sfq_finish(const struct fgv_sfq_node *node, uint64_t used_ns);

/* The active nodes in order of service; NULL at the end. */
struct fgv_sfq_node *fgv_sfq_first(const struct fgv_sfq *q);
struct fgv_sfq_node *fgv_sfq_next(struct fgv_sfq_node *node);

/* Would @a, with the start tag @a_start, be served before @b with @b_start? */
bool fgv_sfq_precedes(const struct fgv_sfq_node *a, uint64_t a_start, const struct fgv_sfq_node *b,
		      uint64_t b_start);

#endif
