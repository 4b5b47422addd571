/*
 * Relays; see relay.h. One timer ticks every second while a relay is paused or something is to be
 * said, and not otherwise.
 */
#define _GNU_SOURCE
#include "backend/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "common/util.h"

#define CHUNK 4096
/* As much as a pipe holds, whatever is written meanwhile. */
#define DRAIN_CHUNKS 16
/* What was left out is said no more often. */
#define SAY_TICKS 10
/* Of all processes together; a service of systemd has 10000 lines in 30 s. */
#define ALL_BURST 1000

enum state { HEARD, PAUSED, OVER };

struct fgv_relay {
	struct fgv_watch watch; /* first, so that its address is ours */
	LIST_ENTRY(fgv_relay) link;
	enum state state;
	struct fgv_relays *relays;
	struct fgv_relay_limit *limit;
	struct fgv_log_subject subject;
	pid_t pid;
	size_t len; /* of the line that has not ended yet */
	char line[FGV_LOG_LINE_MAX + 1];
};

/* --- What is left out ------------------------------------------------------ */

static void set_timer(const struct fgv_relays *relays, time_t seconds)
{
	const struct itimerspec every = {{.tv_sec = seconds}, {.tv_sec = seconds}};

	if (relays->loop >= 0)
		timerfd_settime(relays->timer.fd, 0, &every, NULL);
}

static void list(struct fgv_relays *relays, struct fgv_relay_limit *limit)
{
	if (limit->is_listed)
		return;
	if (LIST_EMPTY(&relays->due))
		set_timer(relays, 1);
	LIST_INSERT_HEAD(&relays->due, limit, link);
	limit->is_listed = true;
	limit->ticks = 0;
}

static void unlist(struct fgv_relay_limit *limit)
{
	if (limit->is_listed)
		LIST_REMOVE(limit, link);
	limit->is_listed = false;
}

static void lose(struct fgv_relay *relay, unsigned lines, size_t bytes)
{
	relay->limit->lost_lines += lines;
	relay->limit->lost_bytes += bytes;
	list(relay->relays, relay->limit);
}

static void say_lost(struct fgv_relay_limit *limit)
{
	if (!fgv_log_has_room())
		return;
	if (limit->lost_bytes)
		fgv_warning_of(FGV_LOG_VM(limit->vm),
			       "left out of what %s processes log: %llu lines, %llu bytes",
			       limit->vm ? "its" : "waiting", (unsigned long long)limit->lost_lines,
			       (unsigned long long)limit->lost_bytes);
	limit->lost_lines = limit->lost_bytes = 0;
	limit->ticks = 0;
}

void fgv_relay_limit_fini(struct fgv_relay_limit *limit)
{
	say_lost(limit);
	unlist(limit);
}

/* --- Lines ----------------------------------------------------------------- */

/* The text behind the priority, where there is one that fgv_log_be_relayed() writes. */
static const char *parse_priority(const char *line, enum fgv_log_level *level)
{
	static const struct {
		char digit;
		enum fgv_log_level level;
	} known[] = {
		{'3', FGV_LOG_ERROR},
		{'4', FGV_LOG_WARNING},
		{'6', FGV_LOG_INFO},
		{'7', FGV_LOG_DEBUG},
	};

	*level = FGV_LOG_WARNING;
	if (line[0] != '<' || !line[1] || line[2] != '>')
		return line;
	for (size_t i = 0; i < FGV_ARRAY_LEN(known); i++) {
		if (known[i].digit != line[1])
			continue;
		*level = known[i].level;
		return line + 3;
	}
	return line;
}

static bool may_log(struct fgv_relay *relay)
{
	static const struct fgv_rate own = {FGV_RELAY_LINES, FGV_RELAY_BURST};
	static const struct fgv_rate all = {FGV_RELAY_ALL_LINES, ALL_BURST};
	uint64_t now_ns = fgv_now_ns();

	return fgv_log_has_room() && fgv_rate_take(&own, &relay->limit->lines, now_ns) &&
	       fgv_rate_take(&all, &relay->relays->lines, now_ns);
}

static void end_line(struct fgv_relay *relay)
{
	enum fgv_log_level level;
	const char *text;

	relay->line[relay->len] = '\0';
	text = parse_priority(relay->line, &level);
	if (*text && may_log(relay))
		fgv_log_of(level, &relay->subject, "%s", text);
	else if (*text)
		lose(relay, 1, relay->len);
	relay->len = 0;
}

static void take(struct fgv_relay *relay, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool is_plain = bytes[i] >= ' ' && bytes[i] <= '~';

		if (bytes[i] == '\n')
			end_line(relay);
		else if (relay->len < sizeof(relay->line) - 1)
			relay->line[relay->len++] = is_plain ? bytes[i] : '?';
		else
			lose(relay, 0, 1);
	}
}

/* As read(). */
static ssize_t read_some(struct fgv_relay *relay)
{
	uint64_t second = fgv_now_ns() / FGV_NS_PER_SEC;
	struct fgv_relay_limit *limit = relay->limit;
	char bytes[CHUNK];
	ssize_t len = read(relay->watch.fd, bytes, sizeof(bytes));

	if (len <= 0)
		return len;
	limit->read = (size_t)len + (limit->second == second ? limit->read : 0);
	limit->second = second;
	take(relay, bytes, (size_t)len);
	return len;
}

/* --- Relays ---------------------------------------------------------------- */

static void leave_loop(struct fgv_relay *relay, enum state state)
{
	if (relay->state == HEARD && relay->relays->loop >= 0)
		fgv_loop_remove(relay->relays->loop, &relay->watch);
	if (relay->state == PAUSED)
		LIST_REMOVE(relay, link);
	relay->state = state;
}

static void pause_until_next(struct fgv_relay *relay)
{
	leave_loop(relay, PAUSED);
	LIST_INSERT_HEAD(&relay->limit->paused, relay, link);
	list(relay->relays, relay->limit);
}

/* Where that fails, the next tick tries again. */
static void resume(struct fgv_relay *relay)
{
	if (fgv_loop_add(relay->relays->loop, &relay->watch, EPOLLIN))
		return;
	LIST_REMOVE(relay, link);
	relay->state = HEARD;
}

static void relay_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_relay *relay = (struct fgv_relay *)watch;
	const struct fgv_relay_limit *limit = relay->limit;
	ssize_t len;

	(void)events;
	if (limit->read >= FGV_RELAY_BYTES && limit->second == fgv_now_ns() / FGV_NS_PER_SEC) {
		pause_until_next(relay);
		return;
	}
	len = read_some(relay);
	if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
		leave_loop(relay, OVER);
}

int fgv_relay_open(struct fgv_relays *relays, struct fgv_relay_limit *limit,
		   struct fgv_relay **relay, int *fd)
{
	struct fgv_relay *made = calloc(1, sizeof(*made));
	int fds[2], ret;

	if (!made)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
		ret = -errno;
		free(made);
		return ret;
	}
	made->watch = (struct fgv_watch){.fd = fds[0], .ready = relay_ready};
	made->relays = relays;
	made->limit = limit;
	made->subject.writer = "fairgv-vgpu";
	ret = fgv_loop_add(relays->loop, &made->watch, EPOLLIN);
	if (ret) {
		close(fds[0]);
		close(fds[1]);
		free(made);
		return ret;
	}
	*relay = made;
	*fd = fds[1];
	return 0;
}

void fgv_relay_started(struct fgv_relay *relay, pid_t pid)
{
	relay->subject.writer_pid = pid;
}

void fgv_relay_about(struct fgv_relay *relay, struct fgv_relay_limit *limit,
		     const struct fgv_log_subject *subject)
{
	pid_t pid = relay->subject.writer_pid;

	relay->subject = *subject;
	relay->subject.writer = "fairgv-vgpu";
	relay->subject.writer_pid = pid;
	if (relay->state == PAUSED && limit != relay->limit) {
		LIST_REMOVE(relay, link);
		LIST_INSERT_HEAD(&limit->paused, relay, link);
		list(relay->relays, limit);
	}
	relay->limit = limit;
}

void fgv_relay_drain(struct fgv_relay *relay)
{
	for (unsigned i = 0; i < DRAIN_CHUNKS && read_some(relay) > 0; i++)
		continue;
	end_line(relay);
}

void fgv_relay_close(struct fgv_relay *relay)
{
	if (!relay)
		return;
	fgv_relay_drain(relay);
	leave_loop(relay, OVER);
	close(relay->watch.fd);
	free(relay);
}

/* --- The timer ------------------------------------------------------------- */

static void tick(struct fgv_relay_limit *limit)
{
	struct fgv_relay *relay, *after;

	for (relay = LIST_FIRST(&limit->paused); relay; relay = after) {
		after = LIST_NEXT(relay, link);
		resume(relay);
	}
	limit->ticks++;
	if (limit->ticks >= SAY_TICKS)
		say_lost(limit);
	if (LIST_EMPTY(&limit->paused) && !limit->lost_bytes)
		unlist(limit);
}

static void timer_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_relays *relays = (struct fgv_relays *)watch;
	struct fgv_relay_limit *limit, *after;
	uint64_t count;

	(void)events;
	if (read(watch->fd, &count, sizeof(count)) != sizeof(count))
		return;
	for (limit = LIST_FIRST(&relays->due); limit; limit = after) {
		after = LIST_NEXT(limit, link);
		tick(limit);
	}
	if (LIST_EMPTY(&relays->due))
		set_timer(relays, 0);
}

int fgv_relays_init(struct fgv_relays *relays, int loop)
{
	int ret;

	*relays = (struct fgv_relays){.loop = loop, .timer.ready = timer_ready};
	LIST_INIT(&relays->due);
	relays->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (relays->timer.fd < 0)
		return -errno;
	ret = fgv_loop_add(loop, &relays->timer, EPOLLIN);
	if (ret)
		close(relays->timer.fd);
	return ret;
}

void fgv_relays_fini(struct fgv_relays *relays)
{
	fgv_loop_remove(relays->loop, &relays->timer);
	close(relays->timer.fd);
	relays->loop = -1;
}
