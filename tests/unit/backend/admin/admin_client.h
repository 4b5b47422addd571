/*
 * Plays the administrator's tool in tests of the daemon (daemon_harness.h): requests, and
 * what to expect of replies. All checks are Check's assertions.
 */
#ifndef FGV_TEST_ADMIN_CLIENT_H
#define FGV_TEST_ADMIN_CLIENT_H

#include <jansson.h>
#include <stddef.h>
#include <sys/un.h>
#include "tests/unit/backend/daemon_harness.h"

struct sockaddr_un admin_address(const struct daemon *daemon);
int admin_connect(const struct daemon *daemon);
void admin_send(int fd, const char *bytes, size_t len);
/* Closes @fd. The reply must be one object on one line, and nothing may follow it. */
json_t *admin_receive(int fd);

/* The reply to a request on a connection of its own; the newline is added. */
json_t *admin_ask(const struct daemon *daemon, const char *request);
json_t *admin_ask_bytes(const struct daemon *daemon, const char *bytes, size_t len);

/* The reply must be a refusal, with @text in it. Takes @reply over. */
void admin_expect_refusal(json_t *reply, const char *text);

/* Values of a report, which must be there and of the type that is asked for. */
json_int_t report_number(const json_t *object, const char *key);
void report_expect(const json_t *object, const char *key, const char *text);
/* Element @i of the list called @key. */
const json_t *report_at(const json_t *object, const char *key, size_t i);
size_t report_length(const json_t *object, const char *key);

#endif
