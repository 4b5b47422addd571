/*
 * Values; see values.h.
 */
#include "backend/vgpu/values.h"

#include <string.h>
#include <sys/mman.h>
#include "backend/vgpu/session.h"
#include "common/util.h"

/* Between two looks while there is work. */
#define GAP_MIN_NS (20 * FGV_NS_PER_US)
#define GAP_MAX_NS FGV_NS_PER_MS

static bool compare(const struct fgv_host_func *wanted, uint64_t value)
{
	uint64_t all = wanted->width == 4 ? UINT32_MAX : UINT64_MAX;

	switch (wanted->how) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		if (wanted->width == 4)
			return (int32_t)(uint32_t)(value - wanted->value) >= 0;
		return (int64_t)(value - wanted->value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return value == (wanted->value & all);
	case CU_STREAM_WAIT_VALUE_AND:
		return (value & wanted->value) != 0;
	default:
		return (~(value | wanted->value) & all) != 0;
	}
}

static bool compare_at(const struct fgv_host_func *wanted, const void *at)
{
	if (wanted->width == 4)
		return compare(wanted, __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE));
	return compare(wanted, __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE));
}

/* It is not waited for any longer. */
static bool give_up(struct fgv_session *session, CUresult status)
{
	fgv_session_defer(session, status);
	return true;
}

/*
 * Pairs with whatever the guest or its kernels release. Memory that has gone gives no value. Where
 * another GPU of the session has failed, it may be the one that would have written it.
 */
static bool is_in_host_memory(struct fgv_session *session, const struct fgv_host_func *value)
{
	CUresult fault = fgv_session_fault(session);
	const void *at = fgv_mapped_find(&session->mapped, value->address, value->width);

	if (!at)
		return give_up(session, CUDA_ERROR_INVALID_VALUE);
	if (compare_at(value, at))
		return true;
	return fault != CUDA_SUCCESS && give_up(session, fault);
}

/* --- In the GPU's memory ------------------------------------------------------- */

static CUresult prepare(struct fgv_session *session)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	struct fgv_looks *looks = &session->stall.looks;
	void *page;
	CUresult status;

	if (looks->stream)
		return CUDA_SUCCESS;
	page = mmap(NULL, FGV_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (page == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = ops->host_register(session->gpu, page, FGV_PAGE_BYTES);
	if (status == CUDA_SUCCESS)
		status =
			ops->stream_create(session->gpu, CU_STREAM_NON_BLOCKING, 0, &looks->stream);
	if (status == CUDA_SUCCESS)
		looks->word = page;
	else
		munmap(page, FGV_PAGE_BYTES);
	return status;
}

/* How much work there ever was, looks left out. */
static uint64_t count_others(const struct fgv_session *session)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < FGV_ENGINES; i++)
		count += fgv_engines_gate(session, i)->submitted;
	return count - session->stall.looks.count;
}

/* Whether there is something to see that the last look has not seen. */
static bool is_due(const struct fgv_session *session, const struct fgv_host_func *value)
{
	if (value->is_settled && value->seen == count_others(session))
		return false;
	return fgv_now_ns() >= session->stall.looks.next_ns;
}

/*
 * A small copy, which goes with computing. It is done before what is there already, so it may go
 * while the gate is open. What else waits for the gate goes on doing so.
 */
static bool gate_admits(struct fgv_gate *gate)
{
	if (gate->room_ns && !gate->is_held)
		return true;
	gate->blocked = true;
	return false;
}

static CUresult copy(struct fgv_session *session, struct fgv_host_func *value)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	struct fgv_looks *looks = &session->stall.looks;
	CUresult status = ops->copy_out(session->gpu, looks->word, value->address, value->width,
					looks->stream);

	return status == CUDA_SUCCESS ? ops->fence(session->gpu, looks->stream, &looks->fence)
				      : status;
}

/* CUDA_SUCCESS also where the gate is closed. */
static CUresult begin_look(struct fgv_session *session, struct fgv_host_func *value)
{
	const struct fgv_request request = {.op = FGV_OP_VALUE_WAIT, .is_work = 1};
	struct fgv_looks *looks = &session->stall.looks;
	struct fgv_gate *gate = &session->gate;
	uint64_t others = count_others(session);
	bool is_settled = !fgv_engines_have_work(session);
	CUresult status;

	if (!gate_admits(gate))
		return CUDA_SUCCESS;
	fgv_gate_begin_calls(gate);
	status = prepare(session);
	if (status == CUDA_SUCCESS)
		status = copy(session, value);
	if (status != CUDA_SUCCESS)
		return status;
	/* As if the legacy stream waited for it. */
	memset(session->message, 0, sizeof(struct fgv_value_wait_request));
	fgv_gate_let(session, &request);
	looks->count++;
	if (others != looks->others)
		looks->gap_ns = GAP_MIN_NS;
	looks->others = others;
	looks->of = value;
	value->seen = others;
	value->is_settled = is_settled;
	session->waits.on_gpu++;
	return CUDA_SUCCESS;
}

/* The next look is at another value, if there is one. */
static void put_off(struct fgv_session *session, struct fgv_host_func *value)
{
	struct fgv_stall *stall = &session->stall;
	struct fgv_looks *looks = &stall->looks;

	looks->next_ns = fgv_now_ns() + looks->gap_ns;
	looks->gap_ns = fgv_min_u64(2 * looks->gap_ns, GAP_MAX_NS);
	STAILQ_REMOVE(&stall->funcs, value, fgv_host_func, link);
	STAILQ_INSERT_TAIL(&stall->funcs, value, link);
}

static bool end_look(struct fgv_session *session, struct fgv_host_func *value)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	struct fgv_looks *looks = &session->stall.looks;
	CUresult status = ops->fence_query(session->gpu, looks->fence);

	if (status == CUDA_ERROR_NOT_READY)
		return false;
	ops->fence_put(session->gpu, looks->fence);
	looks->fence = NULL;
	looks->of = NULL;
	session->waits.on_gpu--;
	if (status != CUDA_SUCCESS)
		return give_up(session, status);
	if (compare_at(value, looks->word))
		return true;
	put_off(session, value);
	return false;
}

static bool is_in_gpu_memory(struct fgv_session *session, struct fgv_host_func *value)
{
	struct fgv_looks *looks = &session->stall.looks;
	CUresult status;

	if (looks->of == value)
		return end_look(session, value);
	if (looks->of || !is_due(session, value))
		return false;
	status = begin_look(session, value);
	return status == CUDA_SUCCESS ? false : give_up(session, status);
}

bool fgv_value_has_come(struct fgv_session *session, struct fgv_host_func *value)
{
	return value->is_on_gpu ? is_in_gpu_memory(session, value)
				: is_in_host_memory(session, value);
}

void fgv_values_fini(struct fgv_session *session)
{
	const struct fgv_gpu_ops *ops = session->gpu->ops;
	struct fgv_looks *looks = &session->stall.looks;

	if (looks->fence) {
		ops->fence_put(session->gpu, looks->fence);
		session->waits.on_gpu--;
	}
	/* The page stays: a copy may be on its way, and the process ends. */
	if (looks->stream)
		ops->stream_destroy(session->gpu, looks->stream);
	*looks = (struct fgv_looks){.of = NULL};
}
