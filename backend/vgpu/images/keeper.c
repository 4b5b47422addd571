/*
 * The keeper; see keeper.h. Each session has a list of files whose digests are to be made; they
 * get a leaf each in turn.
 */
#define _GNU_SOURCE
#include "backend/vgpu/images/keeper.h"

#include <bsd/unistd.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>
#include "api/wire.h"
#include "backend/fds.h"
#include "backend/shared.h"
#include "backend/vgpu/images/file.h"
#include "backend/vgpu/images/kept.h"
#include "backend/vgpu/images/shared.h"
#include "backend/vgpu/sandbox/sandbox.h"
#include "common/log.h"
#include "common/util.h"

/* Those that have ended are seen a moment later. */
#define SESSIONS_MAX (2 * FGV_SESSIONS_MAX)
/* Files of one session whose digests are to be made. */
#define FILES_MAX 32
/* An image that nobody has used for so long goes. */
#define UNUSED_NS (3600 * FGV_NS_PER_SEC)
#define LOOK_MS	  60000
/* Requests of one session that are answered in one turn. */
#define REQUESTS_MAX 16

struct file {
	STAILQ_ENTRY(file) link;
	uint64_t len;
	int fd;
	size_t done; /* of the leaves */
	struct fgv_digest leaves[];
};

STAILQ_HEAD(file_list, file);

struct session {
	int fd; /* -1: it has ended, but its files have not */
	struct fgv_keeper_session who;
	struct file_list files;
	unsigned file_count;
};

struct keeper {
	int control;
	struct fgv_kept kept;
	struct fgv_shared *shared;
	struct session sessions[SESSIONS_MAX];
	unsigned count;
	unsigned file_count; /* of all */
	uint64_t file_bytes;
	uint8_t leaf[FGV_DIGEST_LEAF];
};

/* --- Files ----------------------------------------------------------------- */

static void drop_file(struct keeper *keeper, struct session *session)
{
	struct file *file = STAILQ_FIRST(&session->files);

	STAILQ_REMOVE_HEAD(&session->files, link);
	session->file_count--;
	keeper->file_count--;
	keeper->file_bytes -= file->len;
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

static bool may_take(const struct keeper *keeper, const struct session *session, uint64_t len)
{
	return len >= FGV_IMAGE_KEPT_MIN && len <= FGV_IMAGE_MAX && len <= keeper->kept.bytes_max &&
	       keeper->file_bytes <= keeper->kept.bytes_max - len &&
	       session->file_count < FILES_MAX;
}

/* Takes over @fd. */
static void take_file(struct keeper *keeper, struct session *session, uint64_t len, int fd)
{
	struct file *file = NULL;

	if (may_take(keeper, session, len) && fgv_image_file_check(fd, len) == 0)
		file = malloc(sizeof(*file) + fgv_digest_leaves(len) * sizeof(file->leaves[0]));
	if (!file) {
		close(fd);
		return;
	}
	file->len = len;
	file->fd = fd;
	file->done = 0;
	STAILQ_INSERT_TAIL(&session->files, file, link);
	session->file_count++;
	keeper->file_count++;
	keeper->file_bytes += len;
}

/* By reading, not by mapping: holes stay holes. */
static bool read_at(const struct file *file, uint64_t at, void *to, size_t len)
{
	return pread(file->fd, to, len, (off_t)at) == (ssize_t)len;
}

static bool hash_leaf(struct keeper *keeper, struct file *file)
{
	uint64_t at = (uint64_t)file->done * FGV_DIGEST_LEAF;
	size_t len = (size_t)fgv_min_u64(file->len - at, FGV_DIGEST_LEAF);

	if (!read_at(file, at, keeper->leaf, len))
		return false;
	file->leaves[file->done++] = fgv_digest_bytes(keeper->leaf, len);
	return true;
}

static bool keep(struct keeper *keeper, struct file *file)
{
	struct fgv_digest digest = fgv_digest_root(file->leaves, file->len);
	uint8_t probes[FGV_DIGEST_PROBES * FGV_DIGEST_PROBE_BYTES], zero;
	int fd = file->fd;

	for (unsigned i = 0; i < FGV_DIGEST_PROBES; i++) {
		if (!read_at(file, fgv_digest_probe_at(file->len, i),
			     probes + i * FGV_DIGEST_PROBE_BYTES, FGV_DIGEST_PROBE_BYTES))
			return false;
	}
	if (!read_at(file, file->len, &zero, 1) || zero)
		return false;
	file->fd = -1;
	fgv_kept_add(&keeper->kept, &digest, file->len, fgv_digest_sample_of(probes, file->len), fd,
		     fgv_now_ns());
	return true;
}

/* Does one leaf of the file that the session sent first. */
static void advance(struct keeper *keeper, struct session *session)
{
	struct file *file = STAILQ_FIRST(&session->files);

	if (!file)
		return;
	if (!hash_leaf(keeper, file)) {
		drop_file(keeper, session);
	} else if (file->done == fgv_digest_leaves(file->len)) {
		keep(keeper, file);
		drop_file(keeper, session);
	}
}

/* --- Sessions -------------------------------------------------------------- */

/* Memory that it has it keeps: when that ends the daemon says. */
static void hang_up(struct session *session)
{
	close(session->fd);
	session->fd = -1;
}

static void answer(struct session *session, bool found, int fd)
{
	struct fgv_images_reply reply = {.found = found};
	int ret = fgv_fds_send(session->fd, &reply, sizeof(reply), &fd, fd >= 0);

	/* Another session may have sent descriptors that nobody has received yet. */
	if (ret == -ETOOMANYREFS) {
		reply.found = 0;
		ret = fgv_fds_send(session->fd, &reply, sizeof(reply), NULL, 0);
	}
	/* Whoever does not read its answers gets no more. */
	if (ret < 0)
		hang_up(session);
}

static void find(struct keeper *keeper, struct session *session,
		 const struct fgv_images_request *request)
{
	struct fgv_digest digest;
	int fd;

	memcpy(&digest, request->digest, sizeof(digest));
	fd = fgv_kept_find(&keeper->kept, &digest, request->len, fgv_now_ns());
	answer(session, fd >= 0, fd);
}

/* Takes over @fd. False: it is not a request. */
static bool serve_image(struct keeper *keeper, struct session *session,
			const struct fgv_images_request *request, int fd)
{
	if (request->op == FGV_IMAGES_PUT && fd >= 0) {
		take_file(keeper, session, request->len, fd);
		return true;
	}
	if (fd >= 0)
		close(fd);
	else if (request->op == FGV_IMAGES_KNOWN)
		answer(session, fgv_kept_has_like(&keeper->kept, request->len, request->sample),
		       -1);
	else if (request->op == FGV_IMAGES_GET)
		find(keeper, session, request);
	else
		return false;
	return fd < 0;
}

/* --- Memory ---------------------------------------------------------------- */

/* 0: it went out, with @fd if that is none of -1; else the session has no such answer. */
static int answer_memory(struct session *session, const struct fgv_sharing_reply *reply, int fd)
{
	struct fgv_sharing_reply refusal = {.error = ENOSPC};
	int ret = fgv_fds_send(session->fd, reply, sizeof(*reply), &fd, fd >= 0);
	int told = ret;

	if (ret == -ETOOMANYREFS)
		told = fgv_fds_send(session->fd, &refusal, sizeof(refusal), NULL, 0);
	if (told < 0)
		hang_up(session);
	return ret;
}

static void put_memory(struct keeper *keeper, struct session *session,
		       const struct fgv_sharing_request *request, int fd)
{
	struct fgv_sharing_reply reply = {.bytes = request->bytes};
	int ret = fgv_shared_put(keeper->shared, session->who.account, request->gpu, request->bytes,
				 fd, &reply.key);

	reply.error = ret < 0 ? (uint32_t)-ret : 0;
	answer_memory(session, &reply, -1);
}

static void get_memory(struct keeper *keeper, struct session *session,
		       const struct fgv_sharing_request *request)
{
	struct fgv_sharing_reply reply = {.key = request->key};
	int fd = fgv_shared_find(keeper->shared, request->gpu, &request->key, &reply.bytes);

	reply.error = fd < 0 ? (uint32_t)-fd : 0;
	if (answer_memory(session, &reply, fd) == 0 && fd >= 0)
		fgv_shared_use(keeper->shared, session->who.account, &request->key);
}

/* As serve_image(). */
static bool serve_memory(struct keeper *keeper, struct session *session,
			 const struct fgv_sharing_request *request, int fd)
{
	if (request->op == FGV_SHARING_PUT && fd >= 0) {
		put_memory(keeper, session, request, fd);
		return true;
	}
	if (fd >= 0)
		close(fd);
	else if (request->op == FGV_SHARING_GET)
		get_memory(keeper, session, request);
	else if (request->op == FGV_SHARING_DROP)
		fgv_shared_drop(keeper->shared, session->who.account, &request->key);
	else
		return false;
	return fd < 0;
}

/* --- Requests -------------------------------------------------------------- */

/* Whether there may be more. */
static bool serve_one(struct keeper *keeper, struct session *session)
{
	union {
		struct fgv_images_request image;
		struct fgv_sharing_request memory;
	} request;
	bool is_right = false;
	int fd;
	ssize_t len = fgv_fds_receive(session->fd, &request, sizeof(request), &fd);

	if (len == -EAGAIN)
		return false;
	if (len == sizeof(request.image))
		is_right = serve_image(keeper, session, &request.image, fd);
	else if (len == sizeof(request.memory))
		is_right = serve_memory(keeper, session, &request.memory, fd);
	else if (fd >= 0)
		close(fd);
	if (!is_right && session->fd >= 0)
		hang_up(session);
	return session->fd >= 0;
}

static void serve_session(struct keeper *keeper, struct session *session)
{
	unsigned left = REQUESTS_MAX;

	while (left-- > 0 && serve_one(keeper, session))
		continue;
}

static void add_session(struct keeper *keeper, const struct fgv_keeper_session *who, int fd)
{
	struct session *session = &keeper->sessions[keeper->count];

	if (keeper->count == SESSIONS_MAX || who->account >= FGV_SESSIONS_MAX) {
		close(fd);
		return;
	}
	keeper->count++;
	session->fd = fd;
	session->who = *who;
	session->file_count = 0;
	STAILQ_INIT(&session->files);
}

/* The last one takes its place. */
static void remove_session(struct keeper *keeper, unsigned index)
{
	struct session *session = &keeper->sessions[index];
	struct session *last = &keeper->sessions[--keeper->count];

	if (session == last)
		return;
	session->fd = last->fd;
	session->who = last->who;
	session->file_count = last->file_count;
	STAILQ_INIT(&session->files);
	STAILQ_CONCAT(&session->files, &last->files);
}

static void remove_ended(struct keeper *keeper)
{
	for (unsigned i = keeper->count; i-- > 0;) {
		if (keeper->sessions[i].fd < 0 && STAILQ_EMPTY(&keeper->sessions[i].files))
			remove_session(keeper, i);
	}
}

/* The daemon says so: whoever has its socket yet, this is the end. */
static void end_session(struct keeper *keeper, const struct fgv_keeper_session *who)
{
	for (unsigned i = 0; i < keeper->count; i++) {
		struct session *session = &keeper->sessions[i];

		if (session->who.number == who->number && session->fd >= 0)
			hang_up(session);
	}
	if (who->account < FGV_SESSIONS_MAX)
		fgv_shared_end(keeper->shared, who->account);
}

/* --- The loop -------------------------------------------------------------- */

/* False where the daemon has gone. */
static bool take_session(struct keeper *keeper)
{
	struct fgv_keeper_session who;
	int fd;
	ssize_t len = fgv_fds_receive(keeper->control, &who, sizeof(who), &fd);

	if (len == sizeof(who) && fd >= 0)
		add_session(keeper, &who, fd);
	else if (len == sizeof(who))
		end_session(keeper, &who);
	return len > 0 || len == -EAGAIN;
}

static void await_input(struct keeper *keeper, struct pollfd *fds)
{
	int timeout_ms = keeper->kept.count ? LOOK_MS : -1;

	fds[0] = (struct pollfd){.fd = keeper->control, .events = POLLIN};
	for (unsigned i = 0; i < keeper->count; i++)
		fds[i + 1] = (struct pollfd){.fd = keeper->sessions[i].fd, .events = POLLIN};
	if (poll(fds, keeper->count + 1, keeper->file_count ? 0 : timeout_ms) < 0)
		memset(fds, 0, (keeper->count + 1) * sizeof(*fds));
}

static bool turn(struct keeper *keeper)
{
	struct pollfd fds[SESSIONS_MAX + 1];
	unsigned count = keeper->count;

	await_input(keeper, fds);
	for (unsigned i = 0; i < count; i++) {
		if (fds[i + 1].revents && keeper->sessions[i].fd >= 0)
			serve_session(keeper, &keeper->sessions[i]);
		advance(keeper, &keeper->sessions[i]);
	}
	remove_ended(keeper);
	if (fgv_now_ns() > UNUSED_NS)
		fgv_kept_expire(&keeper->kept, fgv_now_ns() - UNUSED_NS);
	return !fds[0].revents || take_session(keeper);
}

void fgv_keeper_serve(int control, uint64_t bytes_max, struct fgv_shared *shared)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));

	if (!keeper)
		return;
	keeper->control = control;
	keeper->shared = shared;
	fgv_kept_init(&keeper->kept, bytes_max);
	while (turn(keeper))
		continue;
	for (unsigned i = 0; i < keeper->count; i++) {
		while (!STAILQ_EMPTY(&keeper->sessions[i].files))
			drop_file(keeper, &keeper->sessions[i]);
		if (keeper->sessions[i].fd >= 0)
			hang_up(&keeper->sessions[i]);
	}
	fgv_shared_fini(shared);
	fgv_kept_fini(&keeper->kept);
	free(keeper);
}

/* --- The process ----------------------------------------------------------- */

/* Waits for a message, and the descriptor with it. */
static int await(void *message, size_t size, int *fd)
{
	struct pollfd wait = {.fd = FGV_CONTROL_FD, .events = POLLIN};
	ssize_t len;

	while (poll(&wait, 1, -1) < 0 && errno == EINTR)
		continue;
	len = fgv_fds_receive(FGV_CONTROL_FD, message, size, fd);
	if (len == (ssize_t)size && *fd >= 0)
		return 0;
	return len == 0 ? -ECONNRESET : -EBADMSG;
}

/* Of all the accounts of one GPU it can write this one alone, and keeps no descriptor of them. */
static int await_account(struct fgv_shared *shared)
{
	struct fgv_shared_account *account;
	uint8_t byte;
	int fd, err = await(&byte, sizeof(byte), &fd);

	if (err < 0)
		return err;
	account = mmap(NULL, sizeof(*account), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       offsetof(struct fgv_accounts, shared));
	close(fd);
	if (account == MAP_FAILED)
		return -errno;
	fgv_shared_add_gpu(shared, account);
	return 0;
}

static int await_setup(struct fgv_keeper_setup *setup, int *cgroup, struct fgv_shared *shared)
{
	int err = await(setup, sizeof(*setup), cgroup);

	setup->vm[FGV_NAME_MAX - 1] = '\0';
	fgv_shared_init(shared);
	for (uint32_t i = 0; i < setup->gpus && err == 0; i++)
		err = await_account(shared);
	/* Without, it answers that nothing is shared. */
	if (err == 0 && !setup->sharing)
		shared->gpus = 0;
	return err;
}

/* Where there is none, the limits of each process are all, as they are for sessions. */
static void join_cgroup(int fd)
{
	if (write(fd, "0", 1) < 0)
		fgv_debug("can't join the control group: %s", strerror(errno));
	close(fd);
}

static int confine(struct fgv_sandbox *sandbox, const struct fgv_keeper_setup *setup)
{
	const struct fgv_sandbox_terms terms = {
		.uid = setup->uid,
		.limits = {.data_bytes = setup->data_bytes, .threads = setup->threads},
	};

	return fgv_sandbox_close(sandbox, &terms);
}

int fgv_keeper_run(const struct fgv_prepare *prepare)
{
	struct fgv_keeper_setup setup = {0};
	struct fgv_sandbox sandbox;
	struct fgv_shared shared;
	int cgroup, err = fgv_sandbox_enter(&sandbox, prepare);

	if (err == 0)
		err = await_setup(&setup, &cgroup, &shared);
	if (err == -ECONNRESET)
		return EXIT_SUCCESS;
	if (err == 0) {
		setproctitle("%s, keeper", setup.vm);
		join_cgroup(cgroup);
		err = confine(&sandbox, &setup);
	}
	if (err < 0) {
		fgv_error("nothing can be kept: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	fgv_keeper_serve(FGV_CONTROL_FD, setup.bytes, &shared);
	return EXIT_SUCCESS;
}
