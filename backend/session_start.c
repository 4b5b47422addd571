/*
 * How a session begins: its program may have one, it gets a place with the schedulers, and a
 * process that is told all that it needs; see session.h.
 */
#define _GNU_SOURCE
#include "backend/session_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/guard/refusals.h"
#include "backend/journal.h"
#include "backend/mps/mps.h"
#include "backend/sched/cosched.h"
#include "backend/warm.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"

/* Bytes of a file that a vGPU process writes, beside soft device memory. */
#define FILE_MAX (1ull << 30)

/* Private memory of the process that is device memory of soft GPUs. */
static uint64_t soft_bytes_of(const struct fgv_sessions *sessions,
			      const struct fgv_session *session)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < session->part_count; i++) {
		if (session->parts[i].share->device->soft)
			bytes += sessions->config->soft_memory_bytes;
	}
	return bytes;
}

/* The same that may be a copy of what its program has on GPUs, while it is frozen. */
static uint64_t frozen_bytes_of(const struct fgv_sessions *sessions,
				const struct fgv_session *session)
{
	uint64_t bytes = 0, all = sessions->config->frozen_memory_bytes;

	if (!session->is_movable)
		return 0;
	for (unsigned i = 0; i < session->part_count; i++)
		bytes += fgv_min_u64(session->vm->config->memory_bytes,
				     session->parts[i].share->device->info.memory_bytes);
	return fgv_min_u64(bytes, all);
}

/* @part: of the session, the first one or another. */
static void fill_setup(const struct fgv_sessions *sessions, const struct fgv_session *session,
		       const struct fgv_part *part, const struct fgv_client_window *window,
		       struct fgv_setup *setup)
{
	const struct fgv_window *layout = &sessions->layout;
	bool pays = sessions->config->context_memory;
	const struct fgv_config_vm *vm = session->vm->config;
	uint64_t soft_bytes = soft_bytes_of(sessions, session);
	uint64_t units = fgv_gpusched_units(part->share->vgpu, NULL);

	*setup = (struct fgv_setup){
		.session = session->number,
		.account = session->account,
		.window_off = window->off,
		.window_len = layout->len,
		.lanes_off = layout->lanes_off,
		.arena_off = layout->arena_off,
		.arena_len = layout->arena_len,
		.staging_len = layout->staging_len,
		.slice_ns = sessions->config->slice_ns,
		.idle_ns = sessions->config->idle_ns,
		.need_bytes = part->need_bytes,
		.context_bytes = pays ? fgv_device_context_bytes(part->share->device) : 0,
		.data_bytes = vm->process_memory_bytes + soft_bytes +
			      frozen_bytes_of(sessions, session),
		.file_bytes = FILE_MAX + soft_bytes,
		.threads = fgv_vm_threads(vm),
		.uid = vm->uid,
		.lanes = layout->lanes,
		.is_substitute = part->share->device->is_substitute,
		.batching = sessions->config->batching,
		.engines = part->copying[0] != NULL,
		.parts = part == session->parts ? session->part_count - 1 : 0,
		.fills_gaps = sessions->config->policy->fills_gaps,
		.slicing = vm->slicing == FGV_SLICING_AS_ALL ? sessions->config->slicing
							     : vm->slicing,
		.slice_blocks = sessions->config->slice_blocks,
		.units = units,
		.sms = (uint32_t)__builtin_popcountll(units) * part->share->device->units.each,
		.movable = session->is_movable,
		.sharing = vm->sharing,
		.gpu = (uint32_t)(part->share - session->vm->shares),
	};
	snprintf(setup->vm, sizeof(setup->vm), "%s", vm->name);
	snprintf(setup->program, sizeof(setup->program), "%s", session->program);
}

/* The descriptors of part @number that are not its window's. */
static void fill_fds(const struct fgv_session *session, unsigned number,
		     const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS],
		     const struct fgv_client_window *window, int *fds)
{
	const struct fgv_share *share = session->parts[number].share;

	fds[FGV_SETUP_WINDOW] = window->fd;
	fds[FGV_SETUP_DOORBELL] = window->doorbell_fd;
	fds[FGV_SETUP_ALLOWANCE] = share->allowance_fd;
	fds[FGV_SETUP_ACCOUNTS] = share->accounts_read_fd;
	fds[FGV_SETUP_ACCOUNT] = share->accounts_fd;
	memcpy(&fds[FGV_SETUP_GRANT], grants[number], FGV_SETUP_GRANT_FDS * sizeof(int));
}

/* A further part, on its way to the session's process. @stand_in: for what it does not have. */
static int send_part(const struct fgv_sessions *sessions, struct fgv_session *session,
		     unsigned number, const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS],
		     const struct fgv_client_window *window, const int pair[2], int stand_in)
{
	const struct fgv_part *part = &session->parts[number];
	int fds[FGV_SETUP_PART_FDS] = {
		[FGV_SETUP_CONNECTION] = pair[0],
		[FGV_SETUP_CGROUP] = stand_in,
		[FGV_SETUP_IMAGES] = stand_in,
		[FGV_SETUP_PEER] = pair[1],
	};
	struct fgv_setup_part message;

	fill_fds(session, number, grants, window, fds);
	fill_setup(sessions, session, part, window, &message.setup);
	return fgv_warm_add_part(sessions->warm, part->share->number, &message, fds, session->pid,
				 session->control_fd);
}

/* With a window, a doorbell and a connection of its own, none of which is kept. */
static int hand_over_part(const struct fgv_sessions *sessions, struct fgv_session *session,
			  unsigned number,
			  const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS])
{
	struct fgv_client_window window = {.fd = fgv_window_create(&sessions->layout)};
	int pair[2], ret;

	if (window.fd < 0)
		return window.fd;
	window.doorbell_fd = fgv_doorbell_create();
	ret = window.doorbell_fd;
	if (ret >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		ret = -errno;
		close(window.doorbell_fd);
	} else if (ret >= 0) {
		ret = send_part(sessions, session, number, grants, &window, pair, window.fd);
		close(pair[0]);
		close(pair[1]);
		close(window.doorbell_fd);
	}
	close(window.fd);
	return ret;
}

static int hand_over_with(const struct fgv_sessions *sessions, struct fgv_session *session,
			  const struct fgv_client *client, const struct fgv_client_window *window,
			  const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS], int images_fd)
{
	int fds[FGV_SETUP_FDS] = {
		[FGV_SETUP_CONNECTION] = client->fd,
		[FGV_SETUP_CGROUP] = session->vm->cgroup_fd,
		[FGV_SETUP_IMAGES] = images_fd,
	};
	struct fgv_warm_given given;
	struct fgv_setup setup;
	int ret;

	fill_fds(session, 0, grants, window, fds);
	fill_setup(sessions, session, &session->parts[0], window, &setup);
	ret = fgv_warm_assign(sessions->warm, session->parts[0].share->number, &setup, fds, &given);
	if (ret)
		return ret;
	session->pid = given.pid;
	session->control_fd = given.control_fd;
	session->relay = given.relay;
	return 0;
}

/* With a line to the keeper of its VM's images. */
static int hand_over(const struct fgv_sessions *sessions, struct fgv_session *session,
		     const struct fgv_client *client, const struct fgv_client_window *window,
		     const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS])
{
	struct fgv_vm *vm = session->vm;
	const struct fgv_keeper_session who = {
		.number = session->number,
		.account = session->account,
	};
	int fd = fgv_keeper_connect(&session->images, &vm->keeper, &who, sessions->warm->vgpu_path,
				    vm->cgroup_fd, sessions->warm->relays);
	int ret;

	if (fd < 0)
		return fd;
	ret = hand_over_with(sessions, session, client, window, grants, fd);
	close(fd);
	if (ret)
		fgv_keeper_hang_up(&session->images);
	return ret;
}

/* With a window and a doorbell of its own, neither of which is kept. */
static int hand_over_new(const struct fgv_sessions *sessions, struct fgv_session *session,
			 const struct fgv_client *client,
			 const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS])
{
	struct fgv_client_window window = {.fd = fgv_window_create(&sessions->layout)};
	int ret;

	if (window.fd < 0)
		return window.fd;
	window.doorbell_fd = fgv_doorbell_create();
	ret = window.doorbell_fd;
	if (ret >= 0) {
		ret = hand_over(sessions, session, client, &window, grants);
		close(window.doorbell_fd);
	}
	close(window.fd);
	return ret;
}

/* Finds the session a process. On failure there is none to get rid of. */
static int find_process(const struct fgv_sessions *sessions, struct fgv_session *session,
			const struct fgv_client *client,
			const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS])
{
	if (!client->window)
		return hand_over_new(sessions, session, client, grants);
	return hand_over(sessions, session, client, client->window, grants);
}

/*
 * There is a process by now, which waits for its parts: one that does not get them all ends, and
 * tells its program so.
 */
static void hand_over_parts(const struct fgv_sessions *sessions, struct fgv_session *session,
			    const int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS])
{
	int ret = 0;

	for (unsigned i = 1; i < session->part_count && !ret; i++)
		ret = hand_over_part(sessions, session, i, grants);
	if (!ret)
		return;
	snprintf(session->killed_for, sizeof(session->killed_for), "its other GPUs: %s",
		 strerror(-ret));
	session->is_killed = true;
	kill(session->pid, SIGKILL);
}

static int start(const struct fgv_sessions *sessions, struct fgv_session *session,
		 const struct fgv_client *client)
{
	const struct fgv_cosched_owner owner = {
		.pid = client->pid,
		.uid = client->uid,
		.vcpus = client->window ? &session->vm->vcpus : NULL,
	};
	int grants[FGV_GPU_DEVICES_MAX][FGV_SETUP_GRANT_FDS];
	int ret = fgv_session_attach_parts(session, grants);

	if (ret)
		return ret;
	fgv_gpusched_session_guest(session->parts[0].sched, &owner);
	fgv_session_page(session);
	ret = fgv_session_prioritize_parts(session, client->priority);
	if (!ret)
		ret = find_process(sessions, session, client, grants);
	if (ret) {
		fgv_session_detach_parts(session, NULL);
		return ret;
	}
	/* While the descriptors of its grants are open. */
	hand_over_parts(sessions, session, grants);
	fgv_session_start_parts(session);
	return 0;
}

static void undo_start(struct fgv_session *session)
{
	struct fgv_account last;

	fgv_session_unplace(session);
	fgv_vm_put_account(session->vm, session->account, &last);
	fgv_session_drop_connection(session);
	free(session);
}

static CUresult refuse_start(struct fgv_session *session, int error, char *text, size_t text_len)
{
	fgv_error_of(FGV_LOG_VM(session->vm->config->name), "can't start a session: %s",
		     strerror(-error));
	snprintf(text, text_len, "the session can't be started: %s", strerror(-error));
	undo_start(session);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

/* The transport logs what it refuses. */
static CUresult refuse_place(struct fgv_session *session, const struct fgv_msg_need *need,
			     int error, char *text, size_t text_len)
{
	fgv_session_place_error(session, need, error, text, text_len);
	undo_start(session);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool take_start(const struct fgv_rate *rate, struct fgv_rate_bucket *bucket, const char *who,
		       char *text, size_t text_len)
{
	uint64_t now_ns = fgv_now_ns();

	if (fgv_rate_take(rate, bucket, now_ns))
		return true;
	snprintf(text, text_len,
		 "%s starts sessions too often: %llu a second at most (key starts); the next one "
		 "in %u ms",
		 who, (unsigned long long)rate->per_second, fgv_rate_wait_ms(rate, bucket, now_ns));
	return false;
}

/* The user is asked first, who may not use up what is the VM's. */
static bool may_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
		      const struct fgv_client *client, char *text, size_t text_len)
{
	const struct fgv_rate rate = {
		.per_second = sessions->config->starts,
		.burst = sessions->config->starts_burst,
	};
	char who[FGV_NAME_MAX + 16];

	snprintf(who, sizeof(who), "user %u", (unsigned)client->uid);
	if (client->is_user &&
	    !take_start(&rate, fgv_rate_user(&sessions->starts, client->uid, fgv_now_ns()), who,
			text, text_len))
		return false;
	snprintf(who, sizeof(who), "VM %s", vm->config->name);
	return take_start(&rate, &vm->starts, who, text, text_len);
}

static void name_session(struct fgv_session *session)
{
	snprintf(session->vm_name, sizeof(session->vm_name), "%s", session->vm->config->name);
	snprintf(session->label, sizeof(session->label), "session %u: vm %s, program \"%s\"",
		 session->number, session->vm_name, session->program);
	snprintf(session->process_label, sizeof(session->process_label),
		 "vm %s, program %s, session %u", session->vm_name, session->program,
		 session->number);
	session->subject = (struct fgv_log_subject){
		.label = session->label,
		.vm = session->vm_name,
		.program = session->program,
		.session = session->number,
	};
}

/* The loop reads what its process writes, and has not run since the process got its setup. */
static void hear_process(struct fgv_session *session)
{
	struct fgv_log_subject subject = session->subject;

	subject.label = session->process_label;
	fgv_relay_about(session->relay, &session->vm->lines, &subject);
}

static void log_start(struct fgv_session *session, const struct fgv_client *client)
{
	char place[32] = "";

	if (session->part_count == 1)
		session->subject.gpu = session->parts[0].share->device->name;
	if (fgv_config_places(session->vm->config))
		snprintf(place, sizeof(place), ", placed on GPU %u",
			 session->parts[0].share->number);
	fgv_info_of(&session->subject, "begins (process %d of user %u)%s, served by process %d",
		    (int)client->pid, (unsigned)client->uid, place, (int)session->pid);
}

static CUresult start_session(struct fgv_sessions *sessions, struct fgv_vm *vm,
			      const struct fgv_client *client, char *text, size_t text_len)
{
	struct fgv_session *session;
	int account, ret;

	if (!may_start(sessions, vm, client, text, text_len))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	/* NVIDIA's driver goes on without MPS where it meets none. */
	if (!sessions->mps->ready) {
		snprintf(text, text_len, "NVIDIA's MPS is not ready; try again later");
		return CUDA_ERROR_MPS_SERVER_NOT_READY;
	}
	/* Whatever it needs of theirs it waits for. */
	fgv_sessions_look_at_connections(sessions, vm);
	account = fgv_vm_take_account(vm);
	if (account < 0) {
		snprintf(text, text_len, "VM %s has %llu sessions, as many as it may have",
			 vm->config->name, (unsigned long long)vm->config->sessions);
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
	session = calloc(1, sizeof(*session));
	if (!session) {
		struct fgv_account last;

		fgv_vm_put_account(vm, (unsigned)account, &last);
		snprintf(text, text_len, "the daemon is out of memory");
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	session->sessions = sessions;
	fgv_refusals_init(&session->refusals);
	fgv_holding_init(&session->holding);
	session->vm = vm;
	session->account = (unsigned)account;
	session->number = ++sessions->last_number;
	session->uid = client->uid;
	session->client_pid = client->pid;
	session->guest_pid = client->guest_pid;
	session->started_ns = fgv_now_ns();
	session->is_movable = vm->config->movable;
	snprintf(session->program, sizeof(session->program), "%s", client->program);
	name_session(session);
	session->connection.fd = -1;
	ret = fgv_session_place(session, &client->need);
	if (ret)
		return refuse_place(session, &client->need, ret, text, text_len);
	ret = fgv_session_watch_connection(session, client->fd);
	if (!ret)
		ret = start(sessions, session, client);
	if (ret)
		return refuse_start(session, ret, text, text_len);
	LIST_INSERT_HEAD(&sessions->list, session, link);
	sessions->count++;
	if (sessions->journal)
		fgv_journal_add(sessions->journal, session->pid);
	fgv_session_watch_control(session);
	log_start(session, client);
	hear_process(session);
	return CUDA_SUCCESS;
}

CUresult fgv_sessions_start(struct fgv_sessions *sessions, struct fgv_vm *vm,
			    const struct fgv_client *client, char *text, size_t text_len)
{
	CUresult status = start_session(sessions, vm, client, text, text_len);

	if (status == CUDA_SUCCESS)
		vm->started++;
	else
		vm->refused++;
	return status;
}
