/*
 * A vGPU process whose memory may move, as the daemon and its guest see it. For one test program
 * each.
 */
#ifndef FGV_TESTS_VGPU_FROZEN_H
#define FGV_TESTS_VGPU_FROZEN_H

#include <check.h>
#include <cuda.h>
#include <sched.h>
#include "shmring/park.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

#define MIB	(1ull << 20)
#define ACCOUNT 2

static struct vgpu vgpu;

static void start(void)
{
	vgpu_spawn(&vgpu);
	vgpu.movable = true;
	vgpu_begin(&vgpu);
}

static void leave(void)
{
	vgpu_leave(&vgpu);
}

static const struct fgv_account *account(void)
{
	return &vgpu.accounts->sessions[ACCOUNT];
}

static uint64_t word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void want(bool frozen)
{
	__atomic_store_n(&vgpu.allowance->frozen, frozen ? UINT64_C(1) << ACCOUNT : 0,
			 __ATOMIC_RELEASE);
	fgv_doorbell_ring(vgpu.grant_bell_fd);
}

static void await(enum fgv_frozen state)
{
	while (word(&account()->frozen) != state) {
		ck_assert(!vgpu_has_ended(&vgpu));
		sched_yield();
	}
}

static void freeze(void)
{
	want(true);
	await(FGV_FROZEN);
}

static void thaw(void)
{
	want(false);
	await(FGV_FROZEN_NOT);
}

static void expect_words(uint64_t address, uint32_t count, uint32_t value)
{
	const uint32_t *out = vgpu_arena(&vgpu, MIB);

	ck_assert_uint_eq(vgpu_copy_out(&vgpu, address, count * sizeof(*out), MIB), CUDA_SUCCESS);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_uint_eq(out[i], value);
}

#endif
