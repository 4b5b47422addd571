/*
 * fairgvctl freeze --to and thaw --from: moves the memory of a frozen session between its process,
 * with which the daemon has it share a stream (backend/vgpu/store.h), and a file (memory_file.h).
 * The file and its key are this program's alone. What is at the other end of the stream may be its
 * guest's: no word from there is believed further than the daemon says.
 */
#define _GNU_SOURCE
#include "tools/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "backend/shared.h"
#include "common/log.h"
#include "common/util.h"
#include "tools/memory_file.h"

/* A process that is frozen has nothing else to do than to answer. */
#define PATIENCE_S 60

#define TOKEN_DIGITS (2 * FGV_TOKEN_BYTES)

/* One move. */
struct move {
	const char *socket, *path;
	struct fgv_memory_file_key key;
	struct fgv_memory_file *file;
	struct fgv_memory_file_of of;
	json_int_t session;
	int fd;		    /* of the file */
	int stream;	    /* -1: none */
	bool may_be_needed; /* the file: whether the session has let go is not known */
	char why[FGV_CTL_WHY_LEN];
};

/* What was put into move->why is the file's. */
static int fail_file(const struct move *move, int ret)
{
	fgv_error("%s: %s", move->path, move->why);
	return ret;
}

static int read_key(struct move *move, const char *path)
{
	int ret =
		path ? fgv_memory_file_read_key(&move->key, path, move->why, sizeof(move->why)) : 0;

	if (ret)
		fgv_error("%s: %s", path, move->why);
	return ret;
}

static void end(struct move *move)
{
	fgv_memory_file_close(move->file);
	if (move->stream >= 0)
		close(move->stream);
	if (move->fd >= 0)
		close(move->fd);
	explicit_bzero(move, sizeof(*move));
	free(move);
}

static struct move *begin(const char *socket, const char *path, const char *key_path)
{
	struct move *move = calloc(1, sizeof(*move));

	if (!move) {
		fgv_error("no memory");
		return NULL;
	}
	move->socket = socket;
	move->path = path;
	move->fd = move->stream = -1;
	if (!read_key(move, key_path))
		return move;
	end(move);
	return NULL;
}

/* --- The daemon ------------------------------------------------------------------ */

/* The number of the one session that VM @name has; 0: it has none or more, which has been said. */
static json_int_t only_session(const char *socket, const char *name)
{
	json_t *report = fgv_ctl_ask(socket, json_pack("{s:s}", "request", "list"));
	const json_t *sessions = NULL;
	json_int_t number = 0;
	json_t *vm;
	size_t i;

	json_array_foreach(json_object_get(report, "vms"), i, vm)
	{
		const char *found = json_string_value(json_object_get(vm, "name"));

		if (found && !strcmp(found, name))
			sessions = json_object_get(vm, "sessions");
	}
	if (report && !sessions)
		fgv_error("there is no VM called \"%s\"", name);
	else if (report && json_array_size(sessions) != 1)
		fgv_error("VM %s has %zu sessions: name one, by its number", name,
			  json_array_size(sessions));
	else if (report)
		number = json_integer_value(json_object_get(json_array_get(sessions, 0), "number"));
	json_decref(report);
	return number;
}

/* Which session is meant. Takes @asked over. */
static int find_session(struct move *move, json_t *asked)
{
	const char *vm = json_string_value(json_object_get(asked, "vm"));

	move->session = vm ? only_session(move->socket, vm)
			   : json_integer_value(json_object_get(asked, "session"));
	json_decref(asked);
	return move->session > 0 ? 0 : -ENOENT;
}

static json_t *request(const struct move *move, const char *what)
{
	return json_pack("{s:s, s:I}", "request", what, "session", move->session);
}

static int fail_session(const struct move *move, const char *why)
{
	fgv_error("session %" JSON_INTEGER_FORMAT ": %s", move->session, why);
	return -EIO;
}

static int freeze(const struct move *move)
{
	bool failed = false;
	json_t *reply = fgv_ctl_await_frozen(move->socket, request(move, "freeze"), true, &failed);
	const json_t *session = json_array_get(json_object_get(reply, "sessions"), 0);
	const char *state = json_string_value(json_object_get(session, "state"));
	int ret = reply ? 0 : -EIO;

	if (failed)
		ret = fail_session(move, "it could not be frozen: the host's log says why");
	else if (state && !strcmp(state, "saved"))
		ret = fail_session(move, "it is in a file already");
	json_decref(reply);
	return ret;
}

static bool parse_token(const char *text, uint8_t token[FGV_TOKEN_BYTES])
{
	bool is_right = text && strlen(text) == TOKEN_DIGITS;

	for (unsigned i = 0; i < FGV_TOKEN_BYTES && is_right; i++)
		is_right = sscanf(text + 2 * i, "%2" SCNx8, &token[i]) == 1;
	return is_right;
}

/* Has the daemon give the session one end of a stream, of which the other one is ours. */
static json_t *ask_with_stream(struct move *move, json_t *asked)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	json_t *reply;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		fgv_error("no stream: %s", strerror(errno));
		json_decref(asked);
		return NULL;
	}
	move->stream = pair[0];
	setsockopt(move->stream, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(move->stream, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	reply = fgv_ctl_try_with(move->socket, asked, pair[1], move->why, sizeof(move->why));
	close(pair[1]);
	if (!reply)
		fgv_error("%s", move->why);
	return reply;
}

/* --- The session ----------------------------------------------------------------- */

static const char *explain(uint8_t word)
{
	switch (word) {
	case FGV_STORE_NOT_NOW:
		return "it can't now: it is on its way, or another fairgvctl moves it";
	case FGV_STORE_NO_MEMORY:
		return "the host's memory is short (key process_memory)";
	case FGV_STORE_OTHER:
		return "its memory is in another file, of a later time";
	default:
		return "its process says what it should not";
	}
}

/* -EAGAIN: it says nothing for now. */
static int take(const struct move *move, void *bytes, size_t count)
{
	ssize_t got = recv(move->stream, bytes, count, MSG_WAITALL);
	bool is_late = got < 0 && errno == EAGAIN;

	if (got == (ssize_t)count)
		return 0;
	fail_session(move, is_late ? "its process does not go on"
				   : "it has ended, or does not want to stay frozen");
	return is_late ? -EAGAIN : -EIO;
}

static int give(const struct move *move, const void *bytes, size_t count)
{
	ssize_t sent;

	for (size_t done = 0; done < count; done += (size_t)sent) {
		sent = send(move->stream, (const uint8_t *)bytes + done, count - done,
			    MSG_NOSIGNAL);
		if (sent < 0)
			return fail_session(move, errno == EAGAIN
							  ? "its process does not go on"
							  : "it has ended, or takes no more");
	}
	return 0;
}

static int expect(const struct move *move, enum fgv_store_word wanted)
{
	uint8_t word;
	int ret = take(move, &word, sizeof(word));

	return ret || word == wanted ? ret : fail_session(move, explain(word));
}

/*
 * Both ends say that all has got there. A session that hangs up without a word has not let go; one
 * that says nothing for now may have.
 */
static int agree(struct move *move)
{
	const uint8_t word = FGV_STORE_KEPT;
	int ret = give(move, &word, sizeof(word));

	if (ret)
		return ret;
	ret = expect(move, FGV_STORE_KEPT);
	move->may_be_needed = ret == -EAGAIN;
	return ret;
}

/* --- Into a file ----------------------------------------------------------------- */

/* A file that is there already is somebody's. */
static int create(struct move *move)
{
	move->fd = open(move->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (move->fd >= 0)
		return 0;
	fgv_error("%s: can't be made: %s", move->path, strerror(errno));
	return -EIO;
}

static int order_saving(struct move *move, uint64_t *most)
{
	json_t *reply = ask_with_stream(move, request(move, "save"));
	const char *vm = NULL, *token = NULL;
	json_int_t bytes = -1;
	int ret = 0;

	if (!reply)
		return -EIO;
	if (json_unpack(reply, "{s:s, s:s, s:I}", "vm", &vm, "token", &token, "bytes", &bytes) ||
	    bytes < 0 || !parse_token(token, move->of.token))
		ret = fgv_ctl_bad_reply();
	if (!ret)
		snprintf(move->of.vm, sizeof(move->of.vm), "%s", vm);
	json_decref(reply);
	*most = (uint64_t)bytes;
	return ret;
}

static int begin_file(struct move *move, uint64_t most)
{
	int ret = expect(move, FGV_STORE_READY);

	if (!ret)
		ret = take(move, &move->of.bytes, sizeof(move->of.bytes));
	if (!ret && move->of.bytes > most)
		ret = fail_session(move, "its process says that it has more than it was charged");
	if (ret)
		return ret;
	move->of.session = (uint32_t)move->session;
	move->of.saved_s = (uint64_t)time(NULL);
	ret = fgv_memory_file_create(&move->file, move->fd, &move->of, &move->key, move->why,
				     sizeof(move->why));
	return ret ? fail_file(move, ret) : 0;
}

static int write_all(struct move *move)
{
	static uint8_t bytes[FGV_MEMORY_FILE_CHUNK];
	uint64_t left = move->of.bytes;
	int ret = 0;

	while (!ret && left) {
		size_t count = fgv_min_u64(left, sizeof(bytes));

		ret = take(move, bytes, count);
		if (ret)
			return ret;
		ret = fgv_memory_file_write(move->file, bytes, count, move->why, sizeof(move->why));
		left -= count;
	}
	if (!ret)
		ret = fgv_memory_file_finish(move->file, move->why, sizeof(move->why));
	return ret ? fail_file(move, ret) : 0;
}

/* The name of the file, too, is to be there after the host has failed. */
static int keep_name(const struct move *move)
{
	char *copy = strdup(move->path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int ret = fd >= 0 && !fsync(fd) ? 0 : -EIO;

	if (ret)
		fgv_error("%s: its folder can't be written: %s", move->path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(copy);
	return ret;
}

static int save(struct move *move)
{
	uint64_t most = 0;
	int ret = order_saving(move, &most);

	if (!ret)
		ret = begin_file(move, most);
	if (!ret)
		ret = write_all(move);
	if (!ret)
		ret = keep_name(move);
	return ret ? ret : agree(move);
}

static int print_saved(const struct move *move)
{
	char memory[FGV_CTL_TEXT_LEN], file[FGV_CTL_TEXT_LEN];
	off_t len = lseek(move->fd, 0, SEEK_CUR);

	fgv_ctl_show_bytes(memory, sizeof(memory), move->of.bytes);
	fgv_ctl_show_bytes(file, sizeof(file), len > 0 ? (uint64_t)len : 0);
	printf("%s: session %" JSON_INTEGER_FORMAT " saved, %s of its memory in %s (%s%s)\n",
	       move->of.vm, move->session, memory, move->path, file,
	       move->key.len ? ", encrypted" : "");
	return fgv_ctl_flush();
}

/* The file is made before the session is stopped, and does not stay where that fails. */
static int freeze_into(struct move *move)
{
	int ret = create(move);

	if (ret)
		return ret;
	ret = freeze(move);
	if (!ret) {
		ret = save(move);
		if (ret)
			fgv_warning("session %" JSON_INTEGER_FORMAT " stays frozen%s",
				    move->session,
				    move->may_be_needed
					    ? ", and may need the file: list says saved then"
					    : "");
	}
	if (ret && !move->may_be_needed)
		unlink(move->path);
	return ret ? ret : print_saved(move);
}

/* --- And back -------------------------------------------------------------------- */

static int open_file(struct move *move)
{
	int ret;

	move->fd = open(move->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (move->fd < 0) {
		fgv_error("%s: can't be opened: %s", move->path, strerror(errno));
		return -EIO;
	}
	ret = fgv_memory_file_open(&move->file, move->fd, &move->of, &move->key, move->why,
				   sizeof(move->why));
	return ret ? fail_file(move, ret) : 0;
}

static int check_session(const struct move *move)
{
	if (move->of.session == move->session)
		return 0;
	fgv_error("%s: it has the memory of session %" PRIu32 " of VM %s", move->path,
		  move->of.session, move->of.vm);
	return -EINVAL;
}

static int order_loading(struct move *move)
{
	char token[TOKEN_DIGITS + 1];
	json_t *asked = request(move, "load"), *reply;

	for (unsigned i = 0; i < FGV_TOKEN_BYTES; i++)
		snprintf(token + 2 * i, 3, "%02x", move->of.token[i]);
	json_object_set_new(asked, "token", json_string(token));
	reply = ask_with_stream(move, asked);
	json_decref(reply);
	return reply ? 0 : -EIO;
}

static int read_all(struct move *move)
{
	const uint8_t *bytes;
	size_t count;
	int ret;

	while (!(ret = fgv_memory_file_read(move->file, &bytes, &count, move->why,
					    sizeof(move->why))) &&
	       count) {
		ret = give(move, bytes, count);
		if (ret)
			return ret;
	}
	return ret ? fail_file(move, ret) : 0;
}

/* The session takes nothing before the last word, so nothing of a file that is damaged. */
static int load(struct move *move)
{
	int ret = order_loading(move);

	if (!ret)
		ret = expect(move, FGV_STORE_READY);
	if (!ret)
		ret = give(move, &move->of.bytes, sizeof(move->of.bytes));
	if (!ret)
		ret = read_all(move);
	return ret ? ret : agree(move);
}

static int thaw_from(struct move *move)
{
	int ret = open_file(move);

	if (!ret)
		ret = check_session(move);
	if (!ret)
		ret = load(move);
	return ret ? ret : fgv_ctl_freeze(move->socket, request(move, "thaw"), false);
}

/* --- Both ------------------------------------------------------------------------ */

static int perform(const char *socket, json_t *asked, const char *path, const char *key_path,
		   int (*do_move)(struct move *move))
{
	struct move *move = begin(socket, path, key_path);
	int ret;

	if (!move) {
		json_decref(asked);
		return -EIO;
	}
	ret = find_session(move, asked);
	if (!ret)
		ret = do_move(move);
	end(move);
	return ret;
}

int fgv_ctl_save(const char *socket, json_t *asked, const char *path, const char *key_path)
{
	return perform(socket, asked, path, key_path, freeze_into);
}

int fgv_ctl_load(const char *socket, json_t *asked, const char *path, const char *key_path)
{
	return perform(socket, asked, path, key_path, thaw_from);
}
