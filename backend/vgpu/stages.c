/*
 * What a session is made of; see stages.h.
 */
#include "backend/vgpu/stages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/vgpu/session.h"

/* Puts a stage's reason where the welcome takes it from. */
CUresult fgv_stage_failed(struct fgv_session *session, CUresult status, const char *what, int err)
{
	snprintf(session->reason, sizeof(session->reason), "%s: %s", what, strerror(-err));
	return status;
}

static void *map_shared(int fd, size_t len)
{
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return base == MAP_FAILED ? NULL : base;
}

CUresult fgv_stage_window_init(struct fgv_session *session)
{
	const struct fgv_setup *setup = &session->setup;
	int err;

	session->window = (struct fgv_window){
		.len = setup->window_len,
		.lanes_off = setup->lanes_off,
		.lanes = setup->lanes,
		.arena_off = setup->arena_off,
		.arena_len = setup->arena_len,
		.staging_len = setup->staging_len,
	};
	err = fgv_window_check(&session->window);
	if (err == 0)
		err = fgv_window_map_at(&session->window, session->fds[FGV_SETUP_WINDOW],
					setup->window_off);
	if (err < 0)
		return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the window", err);
	if (setup->window_off) {
		/* The others in there are none of its business. */
		close(session->fds[FGV_SETUP_WINDOW]);
		session->fds[FGV_SETUP_WINDOW] = -1;
	}
	return CUDA_SUCCESS;
}

void fgv_stage_window_fini(struct fgv_session *session)
{
	fgv_window_unmap(&session->window);
}

/* Maps @len bytes at @off of descriptor number @which, which is closed then; NULL and errno. */
static void *map_once(struct fgv_session *session, enum fgv_setup_fd which, size_t len, off_t off,
		      int protection)
{
	void *base = mmap(NULL, len, protection, MAP_SHARED, session->fds[which], off);

	close(session->fds[which]);
	session->fds[which] = -1;
	return base == MAP_FAILED ? NULL : base;
}

void fgv_stage_accounts_fini(struct fgv_session *session)
{
	if (session->account)
		munmap(session->account, sizeof(*session->account));
	if (session->accounts)
		munmap((void *)session->accounts, sizeof(*session->accounts));
	if (session->allowance)
		munmap((void *)session->allowance, sizeof(*session->allowance));
}

/* Of all this process can write its own account alone, and it keeps no descriptor of any. */
CUresult fgv_stage_accounts_init(struct fgv_session *session)
{
	size_t own = session->setup.account * sizeof(struct fgv_account);

	if (session->setup.account >= FGV_SESSIONS_MAX)
		return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the account",
					-EINVAL);
	session->allowance =
		map_once(session, FGV_SETUP_ALLOWANCE, sizeof(*session->allowance), 0, PROT_READ);
	session->accounts =
		map_once(session, FGV_SETUP_ACCOUNTS, sizeof(*session->accounts), 0, PROT_READ);
	session->account = map_once(session, FGV_SETUP_ACCOUNT, sizeof(*session->account),
				    (off_t)own, PROT_READ | PROT_WRITE);
	if (session->allowance && session->accounts && session->account)
		return CUDA_SUCCESS;
	fgv_stage_accounts_fini(session);
	return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the accounts", -errno);
}

CUresult fgv_stage_gate_init(struct fgv_session *session)
{
	int err = fgv_kernels_init(&session->kernels, session->setup.fills_gaps);

	if (!err)
		err = fgv_engines_init(session);
	if (!err)
		return CUDA_SUCCESS;
	fgv_kernels_fini(&session->kernels);
	return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the grant", err);
}

void fgv_stage_gate_fini(struct fgv_session *session)
{
	fgv_engines_fini(session);
	fgv_kernels_fini(&session->kernels);
}

/* Its own page to write, all to read; by the descriptor, which is closed, more would be possible.
 */
static int map_pages(struct fgv_session *session, int fd, uint32_t number)
{
	struct softgpu_purse *purse = &session->purse;
	void *own, *all = MAP_FAILED;

	own = mmap(NULL, sizeof(*purse->own), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)(offsetof(struct softgpu_ledger, pages) + number * sizeof(*purse->own)));
	if (own != MAP_FAILED)
		all = mmap(NULL, sizeof(*purse->ledger), PROT_READ, MAP_SHARED, fd, 0);
	purse->own = own == MAP_FAILED ? NULL : own;
	purse->ledger = all == MAP_FAILED ? NULL : all;
	return purse->ledger ? 0 : -1;
}

/* Unless the memory is this process's alone. */
static int map_ledger(struct fgv_session *session)
{
	int fd = session->seat_fds[FGV_SEAT_LEDGER], ret = 0;

	if (session->seat->number < SOFTGPU_LEDGER_PAGES)
		ret = map_pages(session, fd, session->seat->number);
	close(fd);
	session->seat_fds[FGV_SEAT_LEDGER] = -1;
	return ret;
}

CUresult fgv_stage_soft_device_init(struct fgv_session *session)
{
	if (!session->prepare.soft)
		return CUDA_SUCCESS;
	session->seat = map_shared(session->seat_fds[FGV_SEAT_PAGE], sizeof(*session->seat));
	if (!session->seat || map_ledger(session))
		return fgv_stage_failed(session, CUDA_ERROR_OPERATING_SYSTEM, "the soft device",
					-errno);
	return CUDA_SUCCESS;
}

void fgv_stage_soft_device_fini(struct fgv_session *session)
{
	if (session->seat)
		munmap(session->seat, sizeof(*session->seat));
	if (session->purse.own)
		munmap(session->purse.own, sizeof(*session->purse.own));
	if (session->purse.ledger)
		munmap((void *)session->purse.ledger, sizeof(*session->purse.ledger));
}

CUresult fgv_stage_gpu_init(struct fgv_session *session)
{
	const struct fgv_prepare *prepare = &session->prepare;
	const struct fgv_gpu_ops *ops = prepare->soft ? &fgv_gpu_soft : &fgv_gpu_cuda;
	char why[160] = "";
	struct fgv_gpu_config config = {
		.ordinal = (int)prepare->ordinal,
		.soft_memory_bytes = prepare->soft_memory_bytes,
		.soft_is_divided = prepare->is_divided,
		.soft_engine =
			{
				/* Of what is divided each has its own. */
				.seat = prepare->is_divided ? NULL : session->seat,
				.bell_fd = session->seat_fds[FGV_SEAT_BELL],
				.arbiter_fd = session->seat_fds[FGV_SEAT_ARBITER],
			},
		.soft_purse = session->purse,
		.why = why,
		.why_len = sizeof(why),
	};
	CUresult status = ops->open(&config, &session->gpu);

	if (status != CUDA_SUCCESS)
		snprintf(session->reason, sizeof(session->reason),
			 "%s device %u can't be opened: CUDA error %d%s%s", ops->name,
			 prepare->ordinal, (int)status, *why ? ": " : "", why);
	return status;
}

void fgv_stage_gpu_fini(struct fgv_session *session)
{
	session->gpu->ops->close(session->gpu);
}

CUresult fgv_stage_units_init(struct fgv_session *session)
{
	uint64_t units = session->setup.units;
	CUresult status;

	if (!units)
		return CUDA_SUCCESS;
	status = session->gpu->ops->set_units(session->gpu, units);
	if (status != CUDA_SUCCESS)
		snprintf(session->reason, sizeof(session->reason),
			 "VM %s's multiprocessors can't be had: CUDA error %d", session->setup.vm,
			 (int)status);
	return status;
}

CUresult fgv_stage_staging_init(struct fgv_session *session)
{
	const struct fgv_window *window = &session->window;
	CUresult status;

	if (window->staging_len == 0)
		return CUDA_SUCCESS;
	status = session->gpu->ops->host_register(session->gpu, window->base + window->arena_off,
						  window->staging_len);
	if (status != CUDA_SUCCESS)
		snprintf(session->reason, sizeof(session->reason),
			 "the window's staging part can't be registered: CUDA error %d",
			 (int)status);
	return status;
}

CUresult fgv_stage_session_init(struct fgv_session *session)
{
	int err = fgv_session_init(session);

	fgv_images_init(&session->images, session->fds[FGV_SETUP_IMAGES]);
	if (err == -EDQUOT) {
		snprintf(session->reason, sizeof(session->reason),
			 "VM %s has no GPU memory left for the context of another program, or for "
			 "what it needs",
			 session->setup.vm);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (err < 0)
		return fgv_stage_failed(session, CUDA_ERROR_OUT_OF_MEMORY, "the session", err);
	return CUDA_SUCCESS;
}
