/*
 * Between the generated part of the round-trip test (<stem>_roundtrip.c), which knows each
 * operation's arguments, and the test proper (test_api_roundtrip.c), which knows what must
 * happen to them.
 *
 * Threads: one.
 */
#ifndef FGV_TEST_API_ROUNDTRIP_H
#define FGV_TEST_API_ROUNDTRIP_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api/guest.h"
#include "api/host.h"

enum trip_check {
	TRIP_RESERVED,
	TRIP_SPAN, /* off is that of its offset; its length follows */
	TRIP_HANDLE,
	TRIP_OPTIONAL, /* a handle that may be 0 */
};

/* Something in a request that the host must check. */
struct trip_field {
	enum trip_check what;
	uint32_t off;
	enum fgv_kind kind;
};

/* One operation. What it does not need is NULL or 0. */
struct trip {
	uint16_t op;
	/* Chooses arguments and results. */
	void (*draw)(void);
	/* Sends the arguments, and @len bytes at @data, and waits for the reply of a call. */
	CUresult (*send)(struct fgv_lane *lane, const void *data, uint32_t len);
	/* The begin half of a post. */
	void *(*begin)(struct fgv_lane *lane, uint32_t len);
	/* Compares the results that arrived with those that the handler gave. */
	void (*compare)(void);
	void *got;
	uint32_t got_len;
	uint32_t field_count;
	const struct trip_field *fields;
	uint32_t reply_gap_count;
	const uint32_t *reply_gaps; /* offsets of the reply's reserved fields */
};

/* Generated. */
extern const struct trip trips[];
extern const uint32_t trip_count;

/* Values to send. Handles are of the fake session's objects, spans inside its window. */
void trip_random(void *to, size_t len);
uint32_t trip_handle(enum fgv_kind kind);
uint32_t trip_optional(enum fgv_kind kind);
void trip_span(uint64_t *off, uint64_t *len);

/* What a handler does: begins, compares each argument, gives its status. */
void trip_enter(struct fgv_session *session, const struct fgv_request *request, uint16_t op);
void trip_is_object(const struct fgv_object *object, enum fgv_kind kind, uint32_t handle);
void trip_is_span(const void *at, uint64_t len, uint64_t sent_off, uint64_t sent_len);
void trip_is_data(const void *data, uint32_t len);
CUresult trip_answer(void);

#endif
