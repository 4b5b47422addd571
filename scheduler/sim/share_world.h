/*
 * The parts of a run (share.h): seats, which are a VM's session at one scheduler, their streams
 * (share_stream.c), and what is on the GPU (share_turn.c).
 */
#ifndef FGV_SCHEDULER_SIM_SHARE_WORLD_H
#define FGV_SCHEDULER_SIM_SHARE_WORLD_H

#include "scheduler/sim/engine.h"
#include "scheduler/sim/share.h"

struct share_world;

enum stream_state {
	STREAM_QUEUED, /* its next operation waits for the gate or for room on the engine */
	STREAM_RUNS,   /* it is on the GPU, which may stand still */
	STREAM_GAP,    /* the program does something else */
};

struct stream {
	const struct share_stream *spec;
	struct seat *seat;
	enum stream_state state;
	double op_ns, left_ns;
	uint32_t launched; /* in this burst */
	struct engine_timer gap;
};

struct seat {
	struct domain *domain;
	struct share_vm_result *vm;
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;
	struct stream *streams;
	uint32_t stream_count;
	uint32_t first;	  /* stream that is asked first, in turns */
	uint32_t running; /* streams with an operation on the GPU */
	double width[SHARE_ENGINES];

	bool held;	   /* its operations stand still until it is let go */
	bool ending;	   /* starts nothing more in this turn */
	bool started;	   /* has started something in it */
	double rate;	   /* of its operations: 1 alone on the GPU */
	double pays;	   /* GPU time per time */
	uint64_t since_ns; /* the operations' left_ns are as of then */
	double used_ns;	   /* of the GPU, and not paid for yet */
	uint64_t paid_at_ns; /* the holder has paid for the time up to then */
	uint64_t end_ns;
	struct engine_timer done; /* the next operation ends */
};

/* What one scheduler grants: the whole GPU or an engine of it. */
struct domain {
	struct share_world *world;
	struct fgv_sched *sched;
	struct engine_timer decide;
	struct engine_timer slice;   /* the holder's ends, or is about to (see lead_ns) */
	struct engine_timer idle;    /* of the holder */
	struct engine_timer let_go;  /* the call for the holder or the early one is over */
	struct engine_timer hold;    /* the call for the leaving one is over */
	struct engine_timer changed; /* the GPU has changed its context */
	struct seat *holder;
	struct seat *leaving; /* has lost the grant, and is not held yet */
	struct seat *early;   /* is next, and has been let go or is about to be */
	struct seat *context; /* computed last */
	bool changing;	      /* contexts; nobody computes */
	bool computes;	      /* its engines include the one that computes */
};

struct share_world {
	struct share_params params;
	struct engine engine;
	struct domain domains[SHARE_ENGINES];
	uint32_t domain_count;
	struct seat *seats;
	uint32_t seat_count;
	struct stream *streams;
	uint64_t hand_overs, holds, events, starved;
};

/* --- share_stream.c -------------------------------------------------------- */

/* Starts what may start on the GPU. */
void seat_start_operations(struct seat *seat);

/* Brings the operations up to now. */
void seat_catch_up(struct seat *seat);

/* And on from here at @rate; the seat pays for @pays of the time. */
void seat_set_rate(struct seat *seat, double rate, double pays);

/* Has something that waits for the gate. */
bool seat_wants(const struct seat *seat);

/* The longest that an operation on the GPU still takes by itself. */
double seat_left_ns(const struct seat *seat);
void seat_done(void *seat);
void stream_gap_over(void *stream);
void stream_next(struct stream *stream);

/* --- share_turn.c ---------------------------------------------------------- */

/* Something of @seat has ended or begun. */
void seat_changed(struct seat *seat);
void domain_decide(void *domain);
void domain_decide_soon(struct domain *domain);
void domain_slice(void *domain);
void domain_idle(void *domain);
void domain_let_go(void *domain);
void domain_hold(void *domain);
void domain_context_changed(void *domain);

static inline uint64_t share_now(const struct share_world *world)
{
	return world->engine.now_ns;
}

static inline void share_set(struct share_world *world, struct engine_timer *timer,
			     uint64_t after_ns)
{
	engine_set(&world->engine, timer, world->engine.now_ns + after_ns);
}

static inline void share_cancel(struct share_world *world, struct engine_timer *timer)
{
	engine_cancel(&world->engine, timer);
}

#endif
