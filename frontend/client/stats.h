/*
 * FAIRGV_STATS: how often the program asked its vGPU for what, how often it waited for
 * the answer, and which calls of the runtime it made that FairGV does not have.
 *
 *	FAIRGV_STATS=1		a table on stderr at the end of the process
 *	FAIRGV_STATS=/FILE	lines of key=value appended to FILE:
 *				requests=N, round_trips=N, then op.NAME=REQUESTS,ROUND_TRIPS
 *				and unsupported=NAME:CALLS, one of each for every NAME;
 *				graphs.WAY=N, how many graphs were instantiated for the
 *				host, or why not
 *
 * Threads: any.
 */
#ifndef FGV_CLIENT_STATS_H
#define FGV_CLIENT_STATS_H

#include <stdint.h>

/* A runtime call that FairGV does not have; where the program has called it. */
struct fgv_unsupported {
	const char *name;
	uint64_t calls;		      /* atomic */
	struct fgv_unsupported *next; /* of those with calls */
};

/* Counts a call, and warns of the first. @unsupported lives as long as the process. */
void fgv_stats_unsupported(struct fgv_unsupported *unsupported);
/* The same without the warning, for what may never be used. */
void fgv_stats_unsupported_quietly(struct fgv_unsupported *unsupported);

/* Where graphs are launched from: the host has them, or not all of them, because of: */
enum fgv_stats_graph {
	FGV_STATS_GRAPH_HOST,
	FGV_STATS_GRAPH_FUNCTION, /* a function of the program's */
	FGV_STATS_GRAPH_PAGEABLE, /* a copy from or to the program's pageable memory */
	FGV_STATS_GRAPH_MOVES,	 /* its copies and fills move too much for one launch */
	FGV_STATS_GRAPH_OTHER,	 /* another request that is no node of the host's */
	FGV_STATS_GRAPH_REFUSED, /* the host did not want it */
	FGV_STATS_GRAPH_CUT,	 /* counted besides: the host has what is not in the way */
	FGV_STATS_GRAPH_WAYS
};
void fgv_stats_graph(enum fgv_stats_graph way);

/* Prints what FAIRGV_STATS asks for. At the end of the process. */
void fgv_stats_print(void);

/* In the child of a fork: what was counted is the parent's. Not while threads count. */
void fgv_stats_forget(void);

#endif
