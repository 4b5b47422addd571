/*
 * The gate through which the work of a session gets to an engine of the GPU: it opens with that
 * engine's grant (backend/sched/grant.h) and closes before the slice is used up. It measures what the
 * session uses. engines.h says which gate a request has to pass; where engines are not granted by
 * themselves there is one, for all work.
 *
 * Work that is let through is marked from time to time by a fence. A mark that passes tells
 * how long the work before it took, so use is measured without ever letting the GPU run
 * dry, and what the next requests will take can be guessed (forecast.h). Let through is what,
 * by that guess, still fits: into the slice, or, for a session that is alone on the GPU, into
 * a slice's worth of unfinished work, which is what a newcomer has to wait for. Work that
 * would be done before what is there already, in another stream or by another engine, fits
 * at any time while the gate is open. So does other work once what is there takes longer than
 * expected: kernels of different streams may be waiting for each other.
 *
 * A session that can be held (backend/sched/hold.h) may find its grant taken, with its work in the
 * middle. While it is held kernels are let through as when it is alone: they wait on the GPU, and
 * its next turn begins with work at hand.
 *
 * Use is the time from the first work until all is done. While others wait, it is all the time from
 * the grant until it is given back: the GPU was kept for this session. The daemon charges no less.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_GATE_H
#define FGV_VGPU_GATE_H

#include "api/host.h"
#include "backend/gpu/gpu_ops.h"
#include "backend/sched/grant.h"
#include "backend/shared.h"
#include "backend/vgpu/engine.h"
#include "backend/vgpu/forecast.h"

#define FGV_GATE_MARKS 64 /* at most, at once; a power of two */
#define FGV_MARK_KINDS 4  /* kinds of requests that a mark tells apart */

struct fgv_kernels;
struct fgv_session;

/* Work that one fence covers. */
struct fgv_mark {
	struct fgv_gpu_fence *fence;
	uint64_t last;	       /* number of its last request */
	uint64_t until_ns;     /* where it ends on the forecast's line */
	uint64_t predicted_ns; /* by how much its requests put off the end of all work */
	uint16_t places[FGV_MARK_KINDS];
	uint8_t kinds;	/* more than there is room for: nothing is learned of them */
	bool has_first; /* a request of a kind that was never measured */
	uint16_t first_place;
	struct fgv_place after; /* of a copy: what comes before it */
	bool is_behind;		/* ... was not all done, so its time says little */
};

struct fgv_gate {
	enum fgv_engine engine;
	struct fgv_grant *grant; /* NULL: the engine is not granted by itself */
	int bell_fd;	   /* wakes this process */
	int sched_bell_fd; /* wakes the daemon's scheduler */
	uint64_t slice_ns; /* of work unfinished at most */
	uint64_t idle_ns;
	uint64_t word;	    /* of the grant, as last seen */
	uint64_t units;	    /* multiprocessors that kernels run on; 0: all */
	uint64_t limit_ns;  /* the same, while the grant is held */
	uint64_t ahead_ns;  /* predicted time to the end of the work that is not known to be done */
	uint64_t room_ns;   /* what of it there may be; 0: closed */
	uint64_t submitted; /* requests let through, in all */
	uint64_t finished;  /* of them, those known to be done */
	uint64_t since_ns;  /* use counts from here; 0: it does not */
	uint64_t passed_ns; /* when the mark before the oldest passed, or its work began */
	uint64_t patience_ns; /* since then, until more goes behind late work */
	uint64_t retry_ns; /* when more may go beside late work; UINT64_MAX: that won't help; as
			      blocked */
	uint64_t used_ns;   /* but for what since_ns counts */
	uint64_t linger_ns; /* it goes on asking until then, work or not; 0: it does not */
	uint64_t free_ns;   /* without work since; 0: not so, or not looked yet */
	bool woke;	    /* the last reply woke a thread that slept */
	bool over;	    /* the turn ends before its time, once its work is done */
	uint64_t off_ns;    /* without the grant since */
	bool taken;	/* the daemon took the grant, and the work that there is has not ended */
	bool is_held;	/* as last seen: kernels may be queued without the grant */
	bool is_filling; /* the grant is for a gap, and for work that fits into it */
	bool tried;	 /* what waits was tried under this grant */
	bool learns;	 /* gaps, and tells what it expects of the next request */
	bool in_call;	    /* as the grant says */
	bool told_call;	    /* the daemon was rung for it */
	uint32_t next_ns;   /* what the request that waits will take; 0: unknown */
	uint64_t next_for;  /* of which number it will be */
	uint64_t most_ns;   /* of work unfinished, under this grant */
	uint64_t mark_ns;   /* a mark covers so much work */
	struct fgv_kernels *kernels;
	bool begun;	/* fgv_gate_begin() has started the clock for the next work */
	bool blocked;	/* the next request waits for the gate; set anew in each turn */
	bool awaited;	/* the next request, of another engine, comes after its work; the same */
	uint32_t turns;
	struct fgv_mark open; /* work that has no fence yet */
	struct fgv_object *open_stream; /* of a copy in it, referenced; NULL: the legacy one */
	struct fgv_mark marks[FGV_GATE_MARKS];
	uint32_t oldest, mark_count;
	struct fgv_forecast forecast;
};

/* Maps the grant, the first of three descriptors from number @fd on. 0 or a negative errno. */
int fgv_gate_init(struct fgv_session *session, struct fgv_gate *gate, enum fgv_engine engine,
		  enum fgv_setup_fd fd);
/* Puts the fences; the GPU is still there. */
void fgv_gate_fini(struct fgv_session *session, struct fgv_gate *gate);

/*
 * For fgv_gate_admits(): the session is held, and @request may be queued; or it fills a gap, and
 * @request fits into what is left of that.
 */
bool fgv_gate_may_pass(struct fgv_session *session, struct fgv_gate *gate,
		       const struct fgv_request *request, const uint8_t *message, uint32_t len);

/* For fgv_gate_admits(): @request waits. */
void fgv_gate_foresee(struct fgv_session *session, struct fgv_gate *gate,
		      const struct fgv_request *request, const uint8_t *message, uint32_t len);

/*
 * For fgv_gate_admits(): there is as much ahead as there may be. Whether @request is done before
 * that, or that is overdue.
 */
bool fgv_gate_admits_beside(struct fgv_session *session, const struct fgv_request *request,
			    const uint8_t *message, uint32_t len);

/*
 * Whether @request, which is work and has @len bytes of arguments that nobody has checked yet, may
 * go to the GPU now; it is counted by fgv_gate_let().
 */
static inline bool fgv_gate_admits(struct fgv_session *session, struct fgv_gate *gate,
				   const struct fgv_request *request, const uint8_t *message,
				   uint32_t len)
{
	gate->blocked = gate->ahead_ns >= gate->room_ns &&
			!(gate->room_ns && fgv_gate_admits_beside(session, request, message, len));
	if ((gate->is_held | gate->is_filling) && !gate->blocked)
		gate->blocked = !fgv_gate_may_pass(session, gate, request, message, len);
	if (gate->blocked && gate->learns)
		fgv_gate_foresee(session, gate, request, message, len);
	return !gate->blocked;
}

/* Whether there is work that is not known to be done. */
static inline bool fgv_gate_has_work(const struct fgv_gate *gate)
{
	return gate->finished != gate->submitted;
}

/* Whether the session has the GPU, or may take it at once, and nobody else wants it. */
static inline bool fgv_gate_is_alone(const struct fgv_gate *gate)
{
	return fgv_grant_state(fgv_grant_load(gate->grant)) != FGV_GRANT_NONE &&
	       __atomic_load_n(&gate->grant->limit_ns, __ATOMIC_RELAXED) == FGV_GRANT_NO_LIMIT;
}

/* What is left of the turn, however much more there may be on the GPU at once. */
uint64_t fgv_gate_left_ns(const struct fgv_gate *gate);

/* What waits does not fit into the rest of the turn: it is given back once its work is done. */
static inline void fgv_gate_end_turn(struct fgv_gate *gate)
{
	gate->over = true;
	gate->room_ns = 0;
}

/*
 * The session has taken @ns for something that is not work. If it did so under the grant, it pays
 * for it as for all the time until it gives the grant back: then there is so much less room for
 * work, and the session was not idle. False: it was not under the grant.
 */
bool fgv_gate_pay(struct fgv_gate *gate, uint64_t ns);

/*
 * Use counts from now on, for work that is done by the time that fgv_gate_let() is told of it. The
 * gate is open.
 */
void fgv_gate_begin(struct fgv_gate *gate);

/*
 * @request has put work on the GPU; its subject and amount say of which kind, and its arguments
 * are still in session->message. Its stream; NULL: the legacy one, or none.
 */
struct fgv_object *fgv_gate_let(struct fgv_session *session, const struct fgv_request *request);

/*
 * The same for a gate of an engine that copies: whether @ns more fit; and a copy of @kind, taken to
 * last @ns, that comes after @after in @stream, has been put on the GPU.
 */
bool fgv_gate_admits_copy(struct fgv_gate *gate, uint64_t ns);
void fgv_gate_let_copy(struct fgv_session *session, struct fgv_gate *gate,
		       struct fgv_object *stream, const struct fgv_place *after, uint16_t kind,
		       uint64_t ns);

/* All requests up to number @last are done, as a wait for them has shown. */
void fgv_gate_finished(struct fgv_session *session, struct fgv_gate *gate, uint64_t last);

/*
 * The driver is about to be called, which may have to wait for the GPU there; a session that is
 * held gets it only if the daemon knows. It ends with the turn after which nothing is left on the
 * GPU, as asking whether that is done may be such a call, too.
 */
void fgv_gate_begin_calls(struct fgv_gate *gate);
void fgv_gate_end_calls(struct fgv_session *session);

/*
 * Once in each turn of the loop: looks at the marks and at the grant, asks for it and gives
 * it back. How much has changed; 0: nothing.
 */
int fgv_gate_turn(struct fgv_session *session, struct fgv_gate *gate);

/*
 * The dispatcher has nothing to do and is about to announce that it sleeps. False: it must not
 * sleep, something is about to happen. Otherwise *@limit_ns is how long at most,
 * UINT64_MAX for no limit; before the call, how long where no better is known. @waited_ns: how
 * long there was nothing; @is_told: the GPU wakes the dispatcher when work completes.
 */
bool fgv_gate_may_sleep(struct fgv_session *session, struct fgv_gate *gate, uint64_t waited_ns,
			bool is_told, uint64_t *limit_ns);

/* After the announcement: whether the grant has changed since fgv_gate_turn() looked. */
bool fgv_gate_has_news(const struct fgv_gate *gate);

#endif
