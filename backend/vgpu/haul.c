/*
 * Moving through slots; see haul.h. A slot goes round:
 *
 *	out:	FREE -dispatcher-> ON_GPU -dispatcher-> THREADS -thread-> FREE
 *	in:	FREE -dispatcher-> THREADS -thread-> FILLED -dispatcher-> ON_GPU -dispatcher-> FREE
 *
 * Whoever moves it on from a state is alone in having it there. What the other one wrote before is
 * seen by the acquire that pairs with its release. Without a thread the dispatcher does its part.
 */
#define _GNU_SOURCE
#include "backend/vgpu/haul.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/env.h"
#include "common/util.h"

#define STACK_BYTES (256 * 1024)

enum slot_state { FREE, ON_GPU, THREADS, FILLED };

struct slot {
	uint32_t state; /* atomic */
	bool has_thread;
	uint8_t *pinned;
	struct fgv_haul_part part;
	uint64_t number;	     /* of the part */
	struct fgv_gpu_fence *fence; /* while it is ON_GPU */
	sem_t wake;
	pthread_t thread;
	struct fgv_haul *haul;
};

struct fgv_haul {
	struct fgv_gpu *gpu;
	enum fgv_haul_way way;
	uint32_t is_over; /* atomic: threads are to end */
	bool is_pinned;
	unsigned count;
	uint64_t begun; /* parts */
	uint8_t *memory;
	struct slot slots[FGV_HAUL_SLOTS];
};

static enum slot_state state_of(const struct slot *slot)
{
	return (enum slot_state)__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct slot *slot, enum slot_state state)
{
	__atomic_store_n(&slot->state, state, __ATOMIC_RELEASE);
}

/* --- The threads' part ----------------------------------------------------------- */

static void move(struct slot *slot)
{
	if (slot->haul->way == FGV_HAUL_OUT) {
		memcpy(slot->part.bytes, slot->pinned, slot->part.len);
		set_state(slot, FREE);
	} else {
		memcpy(slot->pinned, slot->part.bytes, slot->part.len);
		set_state(slot, FILLED);
	}
}

static void *serve(void *arg)
{
	struct slot *slot = arg;

	for (;;) {
		while (sem_wait(&slot->wake))
			continue;
		if (__atomic_load_n(&slot->haul->is_over, __ATOMIC_ACQUIRE))
			return NULL;
		move(slot);
	}
}

static void hand_over(struct slot *slot)
{
	set_state(slot, THREADS);
	if (slot->has_thread)
		sem_post(&slot->wake);
	else
		move(slot);
}

static void start_thread(struct slot *slot)
{
	pthread_attr_t attributes;

	sem_init(&slot->wake, 0, 0);
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	slot->has_thread = !pthread_create(&slot->thread, &attributes, serve, slot);
	pthread_attr_destroy(&attributes);
}

static void end_thread(struct slot *slot)
{
	if (slot->has_thread) {
		sem_post(&slot->wake);
		pthread_join(slot->thread, NULL);
	}
	sem_destroy(&slot->wake);
}

/* --- Making it ------------------------------------------------------------------- */

/* A quarter of the processors is left to others, the dispatcher among them. */
static unsigned slots_wanted(void)
{
	unsigned processors = fgv_env_processors();
	unsigned wanted = processors > 2 ? processors * 3 / 4 : 2;

	return wanted < FGV_HAUL_SLOTS ? wanted : FGV_HAUL_SLOTS;
}

CUresult fgv_haul_init(struct fgv_haul **haul, struct fgv_gpu *gpu, enum fgv_haul_way way)
{
	struct fgv_haul *made = calloc(1, sizeof(*made));

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->gpu = gpu;
	made->way = way;
	made->count = slots_wanted();
	made->memory = mmap(NULL, made->count * FGV_HAUL_SLOT_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made->memory == MAP_FAILED) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	madvise(made->memory, made->count * FGV_HAUL_SLOT_BYTES, MADV_HUGEPAGE);
	/* What can't be pinned is copied all the same, more slowly. */
	made->is_pinned = gpu->ops->host_register(gpu, made->memory,
						  made->count * FGV_HAUL_SLOT_BYTES) ==
			  CUDA_SUCCESS;
	for (unsigned i = 0; i < made->count; i++) {
		made->slots[i].haul = made;
		made->slots[i].pinned = made->memory + i * FGV_HAUL_SLOT_BYTES;
		start_thread(&made->slots[i]);
	}
	*haul = made;
	return CUDA_SUCCESS;
}

/* What the GPU copies must stay until it has; a GPU that has failed copies nothing. */
static void await_gpu(struct fgv_gpu *gpu, struct slot *slot)
{
	if (!slot->fence)
		return;
	while (gpu->ops->fence_query(gpu, slot->fence) == CUDA_ERROR_NOT_READY)
		sched_yield();
	gpu->ops->fence_put(gpu, slot->fence);
}

void fgv_haul_fini(struct fgv_haul *haul)
{
	if (!haul)
		return;
	__atomic_store_n(&haul->is_over, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < haul->count; i++) {
		end_thread(&haul->slots[i]);
		await_gpu(haul->gpu, &haul->slots[i]);
	}
	if (haul->is_pinned)
		haul->gpu->ops->host_unregister(haul->gpu, haul->memory);
	munmap(haul->memory, haul->count * FGV_HAUL_SLOT_BYTES);
	free(haul);
}

/* --- The dispatcher's part ------------------------------------------------------- */

static CUresult queue(struct fgv_haul *haul, const struct slot *slot)
{
	struct fgv_gpu *gpu = haul->gpu;

	if (haul->way == FGV_HAUL_OUT)
		return gpu->ops->copy_out(gpu, slot->pinned, slot->part.address, slot->part.len,
					  NULL);
	return gpu->ops->copy_in_bulk(gpu, slot->part.address, slot->pinned, slot->part.len, NULL);
}

/*
 * A copy that has got no fence may be under way, and nothing tells when it ends: fences are taken
 * until there is memory for one, which the copies that end meanwhile give back.
 */
static CUresult copy(struct fgv_haul *haul, struct slot *slot)
{
	struct fgv_gpu *gpu = haul->gpu;
	CUresult status = queue(haul, slot);

	if (status != CUDA_SUCCESS)
		return status;
	while ((status = gpu->ops->fence(gpu, NULL, &slot->fence)) == CUDA_ERROR_OUT_OF_MEMORY)
		sched_yield();
	if (status == CUDA_SUCCESS)
		set_state(slot, ON_GPU);
	return status;
}

static CUresult begin(struct fgv_haul *haul, struct slot *slot, fgv_haul_next *next, void *arg)
{
	CUresult status = next ? next(arg, &slot->part) : CUDA_ERROR_NOT_FOUND;

	if (status != CUDA_SUCCESS)
		return status;
	slot->number = haul->begun;
	if (haul->way == FGV_HAUL_OUT)
		status = copy(haul, slot);
	else
		hand_over(slot);
	haul->begun += status == CUDA_SUCCESS;
	return status;
}

static CUresult finish(struct fgv_haul *haul, struct slot *slot)
{
	struct fgv_gpu *gpu = haul->gpu;
	CUresult status = gpu->ops->fence_query(gpu, slot->fence);

	if (status == CUDA_ERROR_NOT_READY)
		return status;
	gpu->ops->fence_put(gpu, slot->fence);
	slot->fence = NULL;
	if (status != CUDA_SUCCESS || haul->way == FGV_HAUL_IN)
		set_state(slot, FREE);
	else
		hand_over(slot);
	return status;
}

/* CUDA_ERROR_NOT_READY: somebody else has to do something first. */
static CUresult step(struct fgv_haul *haul, struct slot *slot, enum slot_state state,
		     fgv_haul_next *next, void *arg)
{
	switch (state) {
	case FREE:
		return begin(haul, slot, next, arg);
	case ON_GPU:
		return finish(haul, slot);
	case FILLED:
		return copy(haul, slot);
	case THREADS:
		break;
	}
	return CUDA_ERROR_NOT_READY;
}

CUresult fgv_haul_turn(struct fgv_haul *haul, fgv_haul_next *next, void *arg, unsigned *moved)
{
	CUresult begun = CUDA_SUCCESS;
	unsigned busy = 0;

	*moved = 0;
	for (unsigned i = 0; i < haul->count; i++) {
		struct slot *slot = &haul->slots[i];
		/* Read once: a thread may free the slot at any time. */
		enum slot_state state = state_of(slot);
		CUresult status;

		if (state == FREE && begun != CUDA_SUCCESS)
			continue;
		status = step(haul, slot, state, next, arg);
		if (state == FREE && status != CUDA_SUCCESS) {
			begun = status;
			continue;
		}
		busy++;
		if (status == CUDA_SUCCESS)
			++*moved;
		else if (status != CUDA_ERROR_NOT_READY)
			return status;
	}
	return begun == CUDA_ERROR_NOT_FOUND && busy ? CUDA_SUCCESS : begun;
}

uint64_t fgv_haul_arrived(const struct fgv_haul *haul)
{
	uint64_t arrived = haul->begun;

	for (unsigned i = 0; i < haul->count; i++) {
		if (state_of(&haul->slots[i]) != FREE)
			arrived = fgv_min_u64(arrived, haul->slots[i].number);
	}
	return arrived;
}

bool fgv_haul_settle(struct fgv_haul *haul)
{
	unsigned moved;

	return fgv_haul_turn(haul, NULL, NULL, &moved) != CUDA_SUCCESS;
}
