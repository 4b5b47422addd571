/* The grant of a vGPU process, whose daemon the test is. */
#include <check.h>
#include <poll.h>
#include "common/util.h"
#include "shmring/park.h"
#include "tests/unit/backend/vgpu/vgpu_guest.h"

void vgpu_grant(struct vgpu *vgpu, uint64_t limit_ns)
{
	struct fgv_grant *grant = vgpu->grant;
	uint64_t word;

	if (limit_ns != FGV_GRANT_NO_LIMIT)
		limit_ns += __atomic_load_n(&grant->used_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->limit_ns, limit_ns, __ATOMIC_SEQ_CST);
	word = fgv_grant_load(grant);
	if (fgv_grant_state(word) == FGV_GRANT_NONE)
		ck_assert(fgv_grant_move(grant, word, FGV_GRANT_BUSY));
	else if (fgv_grant_state(word) == FGV_GRANT_IDLE && limit_ns != FGV_GRANT_NO_LIMIT)
		fgv_grant_move(grant, word, FGV_GRANT_NONE);
	if (fgv_park_is_announced(&grant->parked))
		fgv_doorbell_ring(vgpu->grant_bell_fd);
}

void vgpu_await_grant(struct vgpu *vgpu, enum fgv_grant_state state)
{
	int waited_ms = 0;

	while (fgv_grant_state(fgv_grant_load(vgpu->grant)) != state) {
		poll(NULL, 0, 1);
		ck_assert_msg(++waited_ms < VGPU_PATIENCE_MS, "the grant never gets to state %d",
			      (int)state);
	}
}

void vgpu_await_wants(struct vgpu *vgpu)
{
	int waited_ms = 0;

	while (!__atomic_load_n(&vgpu->grant->wants, __ATOMIC_ACQUIRE)) {
		ck_assert_int_ge(
			fgv_doorbell_wait(vgpu->sched_bell_fd, -1, VGPU_LOOK_MS * FGV_NS_PER_MS),
			0);
		fgv_doorbell_clear(vgpu->sched_bell_fd);
		waited_ms += VGPU_LOOK_MS;
		ck_assert_msg(waited_ms < VGPU_PATIENCE_MS, "the grant is not asked for");
	}
}

void vgpu_grant_until_reply(struct vgpu *vgpu, uint64_t slice_ns, uint32_t lane)
{
	int waited_ms = 0;

	while (!fgv_ring_peek(&vgpu->lanes[lane].replies)) {
		if (fgv_grant_state(fgv_grant_load(vgpu->grant)) == FGV_GRANT_NONE &&
		    __atomic_load_n(&vgpu->grant->wants, __ATOMIC_ACQUIRE))
			vgpu_grant(vgpu, slice_ns);
		poll(NULL, 0, 1);
		ck_assert_msg(++waited_ms < VGPU_PATIENCE_MS && !vgpu_has_ended(vgpu), "no reply");
	}
}

struct vgpu vgpu_copying(const struct vgpu *vgpu, unsigned i)
{
	const struct vgpu_copying *copying = &vgpu->copying[i];
	struct vgpu with = *vgpu;

	with.grant = copying->grant;
	with.grant_fd = copying->grant_fd;
	with.grant_bell_fd = copying->grant_bell_fd;
	with.sched_bell_fd = copying->sched_bell_fd;
	return with;
}

void vgpu_take_grant(struct vgpu *vgpu)
{
	int waited_ms = 0;

	vgpu_grant(vgpu, 0);
	vgpu_await_grant(vgpu, FGV_GRANT_NONE);
	while (__atomic_load_n(&vgpu->grant->wants, __ATOMIC_ACQUIRE)) {
		ck_assert_int_lt(waited_ms++, VGPU_PATIENCE_MS);
		poll(NULL, 0, 1);
	}
}
