/*
 * Messages are kept as what they say, and made text when somebody reads them: most programs that
 * have errors never ask.
 */
#define _GNU_SOURCE
#include "frontend/cuda/context/errlog.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"

struct message {
	struct timespec time; /* of day */
	uint32_t thread;
	int code;
	const char *error; /* NULL: @name is what FairGV has not */
	const char *name;
};

struct fgv_errlog_listener {
	struct fgv_errlog_listener *next;
	CUlogsCallback callback;
	void *data;
};

static struct {
	pthread_mutex_t mutex;
	struct message messages[FGV_ERRLOG_MESSAGES]; /* by number, over and over */
	uint32_t end;
	uint32_t count;
	struct fgv_errlog_listener *listeners;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static size_t write_text(const struct message *message, char text[FGV_ERRLOG_LINE])
{
	if (message->error)
		return (size_t)snprintf(text, FGV_ERRLOG_LINE, "Returning %d (%s) from %.60s",
					message->code, message->error, message->name);
	return (size_t)snprintf(text, FGV_ERRLOG_LINE, "FairGV does not support %.100s",
				message->name);
}

static size_t write_line(const struct message *message, char line[FGV_ERRLOG_LINE])
{
	char text[FGV_ERRLOG_LINE];
	struct tm day;

	write_text(message, text);
	localtime_r(&message->time.tv_sec, &day);
	return (size_t)snprintf(
		line, FGV_ERRLOG_LINE, "[%02d:%02d:%02d.%03ld][%u][CUDA][E] %.150s\n", day.tm_hour,
		day.tm_min, day.tm_sec, message->time.tv_nsec / 1000000, message->thread, text);
}

static __thread bool is_telling; /* what a callback causes is not logged */

/* The @index-th listener; false: there are less. */
static bool find_listener(unsigned index, struct fgv_errlog_listener *found)
{
	const struct fgv_errlog_listener *each;

	pthread_mutex_lock(&state.mutex);
	each = state.listeners;
	while (each && index--)
		each = each->next;
	if (each)
		*found = *each;
	pthread_mutex_unlock(&state.mutex);
	return each;
}

static void tell(const struct message *message)
{
	struct fgv_errlog_listener listener;
	char text[FGV_ERRLOG_LINE];

	is_telling = true;
	for (unsigned i = 0; find_listener(i, &listener); i++) {
		size_t len = write_text(message, text);

		listener.callback(listener.data, CU_LOG_LEVEL_ERROR, text, len);
	}
	is_telling = false;
}

static void add(struct message *message)
{
	bool is_heard;

	if (is_telling)
		return;
	clock_gettime(CLOCK_REALTIME, &message->time);
	message->thread = (uint32_t)gettid();
	pthread_mutex_lock(&state.mutex);
	state.messages[state.end++ % FGV_ERRLOG_MESSAGES] = *message;
	if (state.count < FGV_ERRLOG_MESSAGES)
		state.count++;
	is_heard = state.listeners;
	pthread_mutex_unlock(&state.mutex);
	if (is_heard)
		tell(message);
}

void fgv_errlog_add(int code, const char *error, const char *call)
{
	struct message message = {.code = code, .error = error, .name = call};

	add(&message);
}

static void add_unsupported(const struct fgv_unsupported *unsupported)
{
	struct message message = {.name = unsupported->name};

	add(&message);
}

void fgv_errlog_unsupported(struct fgv_unsupported *unsupported)
{
	add_unsupported(unsupported);
	fgv_stats_unsupported(unsupported);
}

void fgv_errlog_unsupported_quietly(struct fgv_unsupported *unsupported)
{
	add_unsupported(unsupported);
	fgv_stats_unsupported_quietly(unsupported);
}

uint32_t fgv_errlog_first(void)
{
	uint32_t first;

	pthread_mutex_lock(&state.mutex);
	first = state.end - state.count;
	pthread_mutex_unlock(&state.mutex);
	return first;
}

uint32_t fgv_errlog_end(void)
{
	uint32_t end;

	pthread_mutex_lock(&state.mutex);
	end = state.end;
	pthread_mutex_unlock(&state.mutex);
	return end;
}

size_t fgv_errlog_line(uint32_t number, char line[FGV_ERRLOG_LINE])
{
	struct message message;
	bool is_kept;

	pthread_mutex_lock(&state.mutex);
	is_kept = number - (state.end - state.count) < state.count;
	message = state.messages[number % FGV_ERRLOG_MESSAGES];
	pthread_mutex_unlock(&state.mutex);
	return is_kept ? write_line(&message, line) : 0;
}

struct fgv_errlog_listener *fgv_errlog_listen(CUlogsCallback callback, void *data)
{
	struct fgv_errlog_listener *made = malloc(sizeof(*made)), **end = &state.listeners;

	if (!made)
		return NULL;
	*made = (struct fgv_errlog_listener){NULL, callback, data};
	pthread_mutex_lock(&state.mutex);
	while (*end)
		end = &(*end)->next;
	*end = made;
	pthread_mutex_unlock(&state.mutex);
	return made;
}

int fgv_errlog_unlisten(struct fgv_errlog_listener *listener)
{
	struct fgv_errlog_listener **link = &state.listeners;

	pthread_mutex_lock(&state.mutex);
	while (*link && *link != listener)
		link = &(*link)->next;
	listener = *link;
	if (listener)
		*link = listener->next;
	pthread_mutex_unlock(&state.mutex);
	free(listener);
	return listener ? 0 : -ENOENT;
}

void fgv_errlog_fork_begin(void)
{
	pthread_mutex_lock(&state.mutex);
}

void fgv_errlog_fork_end(void)
{
	pthread_mutex_unlock(&state.mutex);
}
