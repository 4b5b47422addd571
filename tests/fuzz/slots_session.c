/* The same stages as in the process's main(), but for the sandbox and what talks to the daemon. */
#define _GNU_SOURCE
#include "tests/fuzz/slots_session.h"

#include <cuda.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/gpu/soft_internal.h"
#include "backend/vgpu/dispatcher.h"
#include "common/log.h"
#include "common/util.h"
#include "shmring/park.h"
#include "tests/fuzz/watchdog.h"

#define ACCOUNT	   2
#define SLICE_NS   (6 * FGV_NS_PER_MS)
#define IDLE_NS	   (100 * FGV_NS_PER_US)
#define KERNELS_NS (20 * FGV_NS_PER_MS) /* that all of a session may take */
#define SETTLE_NS  (50 * FGV_NS_PER_MS)
#define HEAP_ALIGN 64

/* Larger than a stack should have; and one session at a time. */
static struct fgv_session session_storage[SLOTS_PARTS];

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* --- What the daemon has made -------------------------------------------------------- */

static int make_grant(struct slots_session *slots, unsigned i, int *fds)
{
	int fd = memfd_create("grant", MFD_CLOEXEC);
	struct fgv_grant *grant;

	must(fd >= 0 && ftruncate(fd, sizeof(*grant)) == 0);
	grant = mmap(NULL, sizeof(*grant), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(grant != MAP_FAILED);
	grant->limit_ns = FGV_GRANT_NO_LIMIT;
	grant->word = FGV_GRANT_BUSY;
	slots->grants[i] = grant;
	fds[0] = fd;
	fds[1] = fgv_doorbell_create();
	fds[2] = fgv_doorbell_create();
	must(fds[1] >= 0 && fds[2] >= 0);
	return fd;
}

/* As the daemon does for a session that is alone: what was taken comes back at once. */
static void give_grants(struct slots_session *slots)
{
	for (unsigned i = 0; i < FGV_ENGINES; i++) {
		struct fgv_grant *grant = slots->grants[i];
		uint64_t word = fgv_grant_load(grant);

		if (fgv_grant_state(word) != FGV_GRANT_NONE ||
		    !__atomic_load_n(&grant->wants, __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&grant->limit_ns, FGV_GRANT_NO_LIMIT, __ATOMIC_SEQ_CST);
		__atomic_store_n(&grant->units, i == 0 ? slots->units : 0, __ATOMIC_RELAXED);
		fgv_grant_move(grant, word, FGV_GRANT_BUSY);
	}
}

void slots_take_grants(struct slots_session *slots)
{
	for (unsigned i = 0; i < FGV_ENGINES; i++)
		__atomic_store_n(&slots->grants[i]->limit_ns, 0, __ATOMIC_SEQ_CST);
}

void slots_set_units(struct slots_session *slots, unsigned set)
{
	if (!slots->units)
		return;
	slots->units = set % ((1u << FGV_SOFT_UNITS) - 1) + 1;
	__atomic_store_n(&slots->grants[0]->limit_ns, 0, __ATOMIC_SEQ_CST);
}

void slots_want(struct slots_session *slots, unsigned wants)
{
	struct fgv_allowance *allowance = &slots->allowance;
	uint64_t mine = UINT64_C(1) << ACCOUNT;

	__atomic_store_n(&allowance->frozen, wants & SLOTS_FROZEN ? mine : 0, __ATOMIC_RELEASE);
	__atomic_store_n(&allowance->out, wants & SLOTS_OUT ? mine : 0, __ATOMIC_RELEASE);
	__atomic_store_n(&allowance->alone, wants & SLOTS_ALONE ? mine : 0, __ATOMIC_RELEASE);
	__atomic_store_n(&allowance->paged, !!(wants & SLOTS_PAGED), __ATOMIC_RELEASE);
}

static void open_window(struct slots_session *slots)
{
	struct fgv_session *session = slots->session;
	struct fgv_window *window = &session->window;
	int fd;

	must(fgv_window_layout(window, SLOTS_WINDOW_LEN, SLOTS_LANES) == 0);
	fd = fgv_window_create(window);
	must(fd >= 0 && fgv_window_map(window, fd) == 0);
	close(fd);
	session->setup.lanes = SLOTS_LANES;
}

static void open_gpu(struct slots_session *slots)
{
	struct fgv_session *session = slots->session;
	char why[160];
	struct fgv_gpu_config config = {.ordinal = (int)slots->number,
					.soft_memory_bytes = SLOTS_MEMORY,
					.soft_is_divided = slots->units != 0,
					.why = why,
					.why_len = sizeof(why)};

	must(fgv_gpu_soft.open(&config, &session->gpu) == CUDA_SUCCESS);
	if (slots->units)
		must(session->gpu->ops->set_units(session->gpu, slots->units) == CUDA_SUCCESS);
	fuzz_watch(slots->number, gpu_of(session->gpu), KERNELS_NS);
}

static void open_staging(struct fgv_session *session)
{
	const struct fgv_window *window = &session->window;
	uint8_t *arena = window->base + window->arena_off;

	must(session->gpu->ops->host_register(session->gpu, arena, window->staging_len) ==
	     CUDA_SUCCESS);
}

/* Descriptors 1 and 2 are taken once; each session begins with what is empty. */
static void open_console(struct fgv_session *session)
{
	static struct fgv_console console;

	if (!console.files[0].text)
		must(fgv_console_init(&console) == 0);
	for (int i = 0; i < 2; i++)
		console.files[i].taken = console.files[i].end = 0;
	lseek(STDOUT_FILENO, 0, SEEK_SET);
	lseek(STDERR_FILENO, 0, SEEK_SET);
	session->console = &console;
}

static void attach_lanes(struct slots_session *slots)
{
	const struct fgv_window *window = &slots->session->window;

	for (unsigned i = 0; i < SLOTS_LANES; i++) {
		struct slots_lane *lane = &slots->lanes[i];

		fgv_ring_attach(&lane->requests, fgv_window_requests(window, i), FGV_REQUEST_SLOTS,
				FGV_RING_START);
		fgv_ring_attach(&lane->replies, fgv_window_replies(window, i), FGV_REPLY_SLOTS,
				FGV_RING_START);
		must(fgv_lanes_attach(slots->session->lanes, i, fgv_doorbell_create()) == 0);
	}
}

static void begin_part(struct slots_session *slots, unsigned how)
{
	struct fgv_session *session = slots->session;

	slots->units = how & SLOTS_UNITS ? 1 : 0;
	for (unsigned i = 0; i < FGV_SETUP_FDS; i++)
		session->fds[i] = -1;
	session->setup = (struct fgv_setup){.vm = "vm1",
					    .program = "fuzzer",
					    .account = ACCOUNT,
					    .slice_ns = SLICE_NS,
					    .idle_ns = IDLE_NS,
					    .batching = 1,
					    .engines = !!(how & SLOTS_ENGINES),
					    .movable = !!(how & SLOTS_MOVABLE),
					    .units = slots->units};
	slots->allowance = (struct fgv_allowance){.memory_bytes = SLOTS_QUOTA, .taken = UINT64_MAX};
	session->allowance = &slots->allowance;
	session->accounts = &slots->accounts;
	session->account = &slots->accounts.sessions[ACCOUNT];
	slots->grant_fds[0] = make_grant(slots, 0, &session->fds[FGV_SETUP_GRANT]);
	slots->grant_fds[1] = make_grant(slots, 1, &session->fds[FGV_SETUP_GRANT_IN]);
	slots->grant_fds[2] = make_grant(slots, 2, &session->fds[FGV_SETUP_GRANT_OUT]);
	open_window(slots);
	open_gpu(slots);
	open_staging(session);
	must(fgv_engines_init(session) == 0);
	must(fgv_session_init(session) == 0);
	fgv_images_init(&session->images, -1);
	attach_lanes(slots);
}

void slots_begin(struct slots_session *parts, unsigned count, unsigned how)
{
	struct fgv_session *first = &session_storage[0];

	memset(session_storage, 0, sizeof(session_storage));
	open_console(first);
	for (unsigned i = 0; i < count; i++) {
		struct fgv_session *session = &session_storage[i];

		parts[i].session = session;
		parts[i].number = i;
		if (i > 0) {
			session->first = first;
			session->console = first->console;
			parts[0].parts.sessions[i - 1] = session;
		}
		begin_part(&parts[i], how);
	}
	parts[0].parts.opened = count - 1;
	first->parts = count > 1 ? &parts[0].parts : NULL;
}

/* --- The end ------------------------------------------------------------------------- */

/* What a process that ends leaves to the kernel stops here before it is taken apart. */
static void stop_gpu(struct fgv_session *session)
{
	struct fgv_gpu *gpu = session->gpu;
	struct fgv_gpu_fence *fence;
	CUresult status;

	while (gpu->ops->fence_all(gpu, &fence) == CUDA_SUCCESS) {
		status = gpu->ops->fence_query(gpu, fence);
		gpu->ops->fence_put(gpu, fence);
		if (status != CUDA_ERROR_NOT_READY)
			return;
		sched_yield();
	}
}

static void close_fds(const struct fgv_session *session)
{
	for (unsigned i = 0; i < FGV_SETUP_FDS; i++) {
		if (session->fds[i] >= 0)
			close(session->fds[i]);
	}
}

/* Of all parts, which may reach each other's memory, before the first is taken apart. */
static void halt_all(struct slots_session *parts, unsigned count, bool waits)
{
	for (unsigned i = 0; i < count; i++) {
		struct fgv_gpu *gpu = parts[i].session->gpu;

		gpu->ops->halt(gpu, waits);
	}
}

static void end_part(struct slots_session *slots)
{
	struct fgv_session *session = slots->session;

	slots->word = session->stall.looks.word;
	fgv_session_fini(session);
	fgv_engines_fini(session);
	fuzz_watch(slots->number, NULL, 0);
}

static void close_part(struct slots_session *slots)
{
	struct fgv_session *session = slots->session;

	session->gpu->ops->close(session->gpu);
	if (slots->word)
		munmap(slots->word, FGV_PAGE_BYTES);
	fgv_window_unmap(&session->window);
	close_fds(session);
	for (unsigned i = 0; i < FGV_ENGINES; i++)
		munmap(slots->grants[i], sizeof(*slots->grants[i]));
	must(session->account->memory_bytes == 0);
}

void slots_end(struct slots_session *parts, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		stop_gpu(parts[i].session);
	for (unsigned i = count; i-- > 0;)
		end_part(&parts[i]);
	halt_all(parts, count, false);
	halt_all(parts, count, true);
	for (unsigned i = count; i-- > 0;)
		close_part(&parts[i]);
}

/* --- The guest ----------------------------------------------------------------------- */

void slots_publish(struct slots_session *slots, unsigned number, const struct fgv_slot *slot)
{
	struct slots_lane *lane = &slots->lanes[number];
	struct fgv_slot *room = fgv_ring_reserve(&lane->requests);

	if (!room)
		return;
	memcpy((uint8_t *)room + sizeof(room->mark), (const uint8_t *)slot + sizeof(slot->mark),
	       sizeof(*slot) - sizeof(slot->mark));
	fgv_ring_publish(&lane->requests);
}

/* Long messages follow each other through the heap: old ones have been copied long ago. */
static uint64_t heap_alloc(struct slots_session *slots, unsigned number, uint32_t len)
{
	const struct fgv_window *window = &slots->session->window;
	struct slots_lane *lane = &slots->lanes[number];
	uint64_t lane_off = (uint64_t)(fgv_window_lane(window, number) - window->base);

	if (len > FGV_LANE_HEAP_LEN - lane->heap_at)
		lane->heap_at = 0;
	lane->heap_at += (uint32_t)fgv_align_up(len, HEAP_ALIGN);
	return lane_off + FGV_LANE_HEAP + lane->heap_at - fgv_align_up(len, HEAP_ALIGN);
}

void slots_post(struct slots_session *slots, unsigned number, uint16_t op, const void *message,
		uint32_t len)
{
	struct fgv_slot slot = {.op = op,
				.len = len,
				.call = slots->lanes[number].calls++,
				.ticket = ++slots->ticket};

	if (len <= FGV_SLOT_INLINE) {
		memcpy(slot.data, message, len);
	} else {
		slot.heap_off = heap_alloc(slots, number, len);
		memcpy(slots->session->window.base + slot.heap_off, message, len);
	}
	slots_publish(slots, number, &slot);
}

static void drain(struct slots_session *slots)
{
	const struct fgv_slot *slot;

	for (unsigned i = 0; i < SLOTS_LANES; i++) {
		while ((slot = fgv_ring_peek(&slots->lanes[i].replies))) {
			slots->on_reply(slots->of, slot);
			fgv_ring_release(&slots->lanes[i].replies);
		}
	}
}

/* How much was done. */
static int turn(struct slots_session *slots)
{
	int done = slots->has_ended ? 0 : fgv_dispatcher_turn(slots->session);

	slots->has_ended |= done < 0;
	drain(slots);
	give_grants(slots);
	return done;
}

void slots_turn(struct slots_session *parts, unsigned count)
{
	bool is_done;

	do {
		is_done = true;
		for (unsigned i = 0; i < count; i++)
			is_done &= turn(&parts[i]) <= 0;
	} while (!is_done);
}

static bool is_moving(const struct fgv_session *session)
{
	return session->freezer.state != FGV_FREEZER_RUNNING &&
	       session->freezer.state != FGV_FREEZER_FROZEN;
}

static bool is_at_work(struct slots_session *slots)
{
	fgv_batch_send(slots->session);
	return !slots->has_ended &&
	       (fgv_engines_have_work(slots->session) || is_moving(slots->session));
}

void slots_settle(struct slots_session *parts, unsigned count)
{
	uint64_t end_ns = fgv_now_ns() + SETTLE_NS;
	bool are_at_work;

	do {
		slots_turn(parts, count);
		are_at_work = false;
		for (unsigned i = 0; i < count; i++)
			are_at_work |= is_at_work(&parts[i]);
		sched_yield();
	} while (are_at_work && fgv_now_ns() < end_ns);
	slots_turn(parts, count);
}

uint8_t *slots_arena(const struct slots_session *slots, uint64_t off)
{
	const struct fgv_window *window = &slots->session->window;

	return window->base + window->arena_off + off;
}

uint64_t slots_arena_off(const struct slots_session *slots)
{
	return slots->session->window.arena_off;
}

uint64_t slots_arena_len(const struct slots_session *slots)
{
	return slots->session->window.arena_len;
}
