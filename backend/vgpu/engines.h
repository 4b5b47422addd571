/*
 * Which engine's grant a request needs, and when (docs/design/0021-engines.md). Computing, copying
 * in and copying out are granted separately, so each has a gate, and a session may have one grant
 * without the others.
 *
 * While nobody else wants an engine its requests go to the GPU as they come, and overlap as the
 * driver lets them. While somebody does, a request is put on the GPU only when its stream has
 * reached it: what comes before it by other engines is done. So no engine is kept for work that
 * could not run yet.
 *
 * Copies between host memory and the device belong to the engines that copy; all else, copies
 * within graphs included, belongs to computing. Small copies do, too, as many as an allowance has:
 * a program that reads a word after each kernel waits for one grant.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_ENGINES_H
#define FGV_VGPU_ENGINES_H

#include "api/host.h"
#include "backend/vgpu/gate.h"
#include "backend/vgpu/handles.h"

struct pollfd;
struct fgv_session;

struct fgv_engines {
	bool are_granted;	 /* each by itself; else session->gate is the gate of all work */
	enum fgv_engine current; /* of the work that was admitted last */
	struct fgv_gate copying[FGV_ENGINES - 1];
	struct fgv_place legacy;   /* the legacy stream's last work */
	struct fgv_place blocking; /* that of all streams which wait for it, or it for them */
	enum fgv_engine legacy_engine;
	uint32_t small;	   /* copies that may yet go with computing */
	uint64_t small_ns; /* the allowance was filled then */
	bool online;	   /* the guest was told that the GPU is its own, or about to be */
};

/* Maps the grants. 0 or a negative errno. And puts what the gates have of the GPU. */
int fgv_engines_init(struct fgv_session *session);
void fgv_engines_fini(struct fgv_session *session);

struct fgv_gate *fgv_engines_gate(const struct fgv_session *session, enum fgv_engine engine);

/* What @message names at @off; NULL for the legacy stream, and for what there is not. */
struct fgv_object *fgv_engines_object_at(struct fgv_session *session, enum fgv_kind kind,
					 const uint8_t *message, size_t off);
/* The stream of a message that is as long as its fixed part; NULL: the legacy one. */
struct fgv_object *fgv_engines_stream_of(struct fgv_session *session, uint16_t op,
					 const uint8_t *message);

/* Whether all before @place is done that engines other than @engine do. */
bool fgv_engines_have_done(const struct fgv_session *session, const struct fgv_place *place,
			   enum fgv_engine engine);

/* For the gate of the engine that @request, which is work, needs: as fgv_gate_admits(). */
bool fgv_engines_admit(struct fgv_session *session, const struct fgv_request *request,
		       const uint8_t *message, uint32_t len);

/* @request, which was admitted, has put work on the GPU: as fgv_gate_let(). */
void fgv_engines_let(struct fgv_session *session, const struct fgv_request *request);

/* A turn of the loop begins; and ends: as fgv_gate_turn(). */
void fgv_engines_begin_turn(struct fgv_session *session);
int fgv_engines_turn(struct fgv_session *session);

/* Whether there is work of any engine that is not known to be done. */
bool fgv_engines_have_work(const struct fgv_session *session);

/* A reply has woken a thread of the guest, which may go on with any engine. */
void fgv_engines_note_waking(struct fgv_session *session);

/* As fgv_gate_may_sleep() and fgv_gate_has_news(), of all gates. */
bool fgv_engines_may_sleep(struct fgv_session *session, uint64_t waited_ns, bool is_told,
			   uint64_t *limit_ns);
bool fgv_engines_have_news(const struct fgv_session *session);

/* Announces to the schedulers that this process sleeps, and withdraws that. */
void fgv_engines_announce_sleep(struct fgv_session *session);
void fgv_engines_withdraw_sleep(struct fgv_session *session);
/* Fills in the FGV_ENGINES descriptors by which they wake it. */
void fgv_engines_bells(const struct fgv_session *session, struct pollfd *fds);

#endif
