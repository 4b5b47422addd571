/*
 * Kernels of several streams side by side: they share the multiprocessors, the room for blocks, the
 * end that a fault makes, and the process's turns at the engine.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/sched/arbiter.h"
#include "common/util.h"
#include "softgpu/device/internal.h"
#include "tests/unit/softgpu/softgpu_kernel.h"

#define STREAMS (2 * COMPUTE_QUEUES)

/* Tells others by the first word that it runs, and waits until the second one is not 0. */
#define MEET_KERNEL                                                                                \
	HEAD ".visible .entry k(.param .u64 mine, .param .u64 other)\n"                            \
	     "{ .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p1;\n"                              \
	     "ld.param.u64 %rd1, [mine]; ld.param.u64 %rd2, [other];\n"                            \
	     "mov.u32 %r1, 1; st.volatile.global.u32 [%rd1], %r1;\n"                               \
	     "$l: ld.volatile.global.u32 %r2, [%rd2]; setp.eq.u32 %p1, %r2, 0;\n"                  \
	     "@%p1 bra $l; ret; }\n"

/* Counts the first word up for ever; the second one makes it end. */
#define COUNT_KERNEL                                                                               \
	HEAD ".visible .entry k(.param .u64 count, .param .u64 stop)\n"                            \
	     "{ .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p1;\n"                              \
	     "ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [stop]; mov.u32 %r1, 0;\n"            \
	     "$l: add.u32 %r1, %r1, 1; st.volatile.global.u32 [%rd1], %r1;\n"                      \
	     "ld.volatile.global.u32 %r2, [%rd2]; setp.eq.u32 %p1, %r2, 0;\n"                      \
	     "@%p1 bra $l; ret; }\n"

static const uint32_t one[3] = {1, 1, 1};
static uint32_t *words; /* the kernels' and this test's */

static uint64_t address_of(unsigned word)
{
	return (uint64_t)(uintptr_t)(words + word);
}

static uint32_t value_of(unsigned word)
{
	return __atomic_load_n(&words[word], __ATOMIC_ACQUIRE);
}

static void set(unsigned word)
{
	__atomic_store_n(&words[word], 1, __ATOMIC_RELEASE);
}

static void share_words(void)
{
	words = aligned_alloc(4096, 4096);
	for (unsigned i = 0; i < 1024; i++)
		words[i] = 0;
	ck_assert_int_eq(softgpu_host_register(gpu, words, 4096), CUDA_SUCCESS);
}

static void setup(void)
{
	kernel_setup();
	share_words();
}

static void teardown(void)
{
	kernel_teardown();
	free(words);
}

static struct softgpu_stream *new_stream(void)
{
	struct softgpu_stream *stream = NULL;

	ck_assert_int_eq(softgpu_stream_create(gpu, false, &stream), CUDA_SUCCESS);
	return stream;
}

/* Of a kernel with two words. */
static void launch(struct softgpu_function *f, struct softgpu_stream *stream, unsigned first,
		   unsigned second)
{
	uint64_t at[2] = {address_of(first), address_of(second)};
	void *args[] = {&at[0], &at[1]};

	ck_assert_int_eq(softgpu_launch(gpu, f, one, one, 0, stream, args), CUDA_SUCCESS);
}

static void await_word(unsigned word)
{
	while (!value_of(word))
		usleep(100);
}

static CUresult await(struct softgpu_stream *stream)
{
	CUresult result;

	while ((result = softgpu_stream_query(gpu, stream)) == CUDA_ERROR_NOT_READY)
		usleep(100);
	return result;
}

/* Each ends only if the other one runs. */
START_TEST(two_meet)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[] = {new_stream(), new_stream()};

	launch(f, streams[0], 0, 1);
	launch(f, streams[1], 1, 0);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/* The legacy stream does not wait for one that is not blocking. */
START_TEST(the_default_stream_is_one_of_them)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *stream = new_stream();

	launch(f, NULL, 0, 1);
	launch(f, stream, 1, 0);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	softgpu_stream_destroy(gpu, stream);
}
END_TEST

/* As programs expect of cudaMemset(): what is launched later in any stream comes after it. */
START_TEST(a_fill_of_the_default_stream_comes_first)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *stream = new_stream();

	launch(f, NULL, 2, 3);
	await_word(2);
	ck_assert_int_eq(softgpu_fill(gpu, address_of(0), 4, 1, 4, 1, 1, NULL), CUDA_SUCCESS);
	launch(f, stream, 4, 0);
	usleep(20000);
	ck_assert_uint_eq(value_of(4), 0);
	set(3);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(value_of(4), 1);
	softgpu_stream_destroy(gpu, stream);
}
END_TEST

/* There are two multiprocessors; the third kernel waits for one of them. */
START_TEST(no_more_than_fit)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[3];

	for (unsigned i = 0; i < 3; i++) {
		streams[i] = new_stream();
		launch(f, streams[i], i, 10 + i);
	}
	for (unsigned began = 0; began < 2;)
		began = value_of(0) + value_of(1) + value_of(2);
	usleep(20000);
	ck_assert_uint_eq(value_of(0) + value_of(1) + value_of(2), 2);
	for (unsigned i = 0; i < 3; i++)
		set(10 + i);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(value_of(0) + value_of(1) + value_of(2), 3);
	for (unsigned i = 0; i < 3; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/* More streams than queues, each behind the one before it by an event. */
START_TEST(order_holds_across_streams)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[STREAMS];
	struct softgpu_event *events[STREAMS];

	for (unsigned i = 0; i < STREAMS; i++) {
		streams[i] = new_stream();
		ck_assert_int_eq(softgpu_event_create(gpu, &events[i]), CUDA_SUCCESS);
		if (i)
			softgpu_stream_wait_event(gpu, streams[i], events[i - 1]);
		launch(f, streams[i], i, STREAMS + i);
		ck_assert_int_eq(softgpu_event_record(gpu, events[i], streams[i]), CUDA_SUCCESS);
	}
	for (unsigned i = 0; i < STREAMS; i++) {
		await_word(i);
		if (i + 1 < STREAMS)
			ck_assert_uint_eq(value_of(i + 1), 0);
		set(STREAMS + i);
	}
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (unsigned i = 0; i < STREAMS; i++) {
		softgpu_event_destroy(gpu, events[i]);
		softgpu_stream_destroy(gpu, streams[i]);
	}
}
END_TEST

/* Memory goes when nothing runs that may use it, and what computes later comes after that. */
START_TEST(memory_goes_between_kernels)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[] = {new_stream(), new_stream()};
	uint64_t memory = kernel_alloc(4096);

	launch(f, streams[0], 0, 10);
	await_word(0);
	ck_assert_int_eq(softgpu_mem_free(gpu, memory), CUDA_SUCCESS);
	set(11);
	launch(f, streams[1], 1, 11);
	usleep(20000);
	ck_assert_uint_eq(value_of(1), 0);
	set(10);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert_uint_eq(value_of(1), 1);
	for (unsigned i = 0; i < 2; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/* An event that goes while it is not recorded yet holds nothing up. */
START_TEST(an_event_goes_alone)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[] = {new_stream(), new_stream()};
	struct softgpu_event *event;

	launch(f, streams[0], 0, 10);
	ck_assert_int_eq(softgpu_event_create(gpu, &event), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_event_record(gpu, event, streams[0]), CUDA_SUCCESS);
	softgpu_event_destroy(gpu, event);
	set(11);
	launch(f, streams[1], 1, 11);
	launch(f, NULL, 2, 11);
	ck_assert_int_eq(await(streams[1]), CUDA_SUCCESS);
	ck_assert_int_eq(await(NULL), CUDA_SUCCESS);
	set(10);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/* A fault is the device's: a kernel that would never end does. */
START_TEST(a_fault_ends_all)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[] = {new_stream(), new_stream()};
	uint64_t nowhere = 64, at = address_of(0);
	void *args[] = {&nowhere, &at};

	launch(f, streams[0], 0, 10);
	await_word(0);
	ck_assert_int_eq(softgpu_launch(gpu, f, one, one, 0, streams[1], args), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_ERROR_ILLEGAL_ADDRESS);
	fgv_queue_wait_all(gpu);
	for (unsigned i = 0; i < 2; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/* The blocks of a cooperative grid all run at once, and two such grids one after the other. */
START_TEST(grids_take_turns)
{
	struct softgpu_function *f = kernel_load(COUNT_KERNEL);
	struct softgpu_stream *streams[] = {new_stream(), new_stream()};
	uint32_t grid[3] = {8, 1, 1};

	for (unsigned i = 0; i < 2; i++) {
		uint64_t at[2] = {address_of(i), address_of(10)};
		void *args[] = {&at[0], &at[1]};

		ck_assert_int_eq(softgpu_launch_cooperative(gpu, f, grid, one, 0, streams[i], args),
				 CUDA_SUCCESS);
	}
	while (!value_of(0) && !value_of(1))
		usleep(100);
	usleep(20000);
	ck_assert(!value_of(0) || !value_of(1));
	set(10);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	ck_assert(value_of(0) && value_of(1));
	for (unsigned i = 0; i < 2; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/* Of as many kernels as there are queues: which of them get the multiprocessors is open. */
static unsigned count_begun(void)
{
	unsigned begun = 0;

	for (unsigned i = 0; i < COMPUTE_QUEUES; i++)
		begun += value_of(i) != 0;
	return begun;
}

/* The device is taken down while two kernels run and others wait for a multiprocessor. */
START_TEST(ends_in_the_middle)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[COMPUTE_QUEUES];

	for (unsigned i = 0; i < COMPUTE_QUEUES; i++) {
		streams[i] = new_stream();
		launch(f, streams[i], i, 100);
	}
	while (count_begun() < 2)
		usleep(100);
	for (unsigned i = 0; i < COMPUTE_QUEUES; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/* --- With an engine that processes share --------------------------------------- */

static struct fgv_arbiter *arbiter;

/* A process's seat, as the process sees it. */
struct place {
	struct fgv_arbiter_seat *seat;
	struct softgpu_engine engine;
};

static void take_place(struct place *place)
{
	int fds[FGV_SEAT_FDS];
	void *page;

	ck_assert_int_eq(fgv_arbiter_attach(arbiter, false, &place->seat, fds), 0);
	page = mmap(NULL, sizeof(struct softgpu_seat), PROT_READ | PROT_WRITE, MAP_SHARED,
		    fds[FGV_SEAT_PAGE], 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	place->engine = (struct softgpu_engine){page, fds[FGV_SEAT_BELL], fds[FGV_SEAT_ARBITER]};
}

static struct place mine, others;

static void setup_shared(void)
{
	struct softgpu_config config = {.va_base = BASE, .memory_bytes = 64 << 20, .workers = 2};

	ck_assert_int_eq(fgv_arbiter_create(&arbiter, "soft GPU 0", 0), 0);
	take_place(&mine);
	take_place(&others);
	config.engine = mine.engine;
	ck_assert_int_eq(softgpu_create(&config, &gpu), CUDA_SUCCESS);
	module = NULL;
	share_words();
}

static void teardown_shared(void)
{
	teardown();
	fgv_arbiter_detach(mine.seat);
	fgv_arbiter_detach(others.seat);
	fgv_arbiter_destroy(arbiter);
}

static const int never;

/* Takes the engine as another process would, which waits for it. */
static void be_another(void)
{
	ck_assert(fgv_engine_acquire(&others.engine, &never));
}

static void end_another(void)
{
	fgv_engine_release(&others.engine);
}

static void await_change(unsigned word)
{
	uint32_t before = value_of(word);

	while (value_of(word) == before)
		usleep(100);
}

/* Held, both kernels stand still while others compute, and go on after it; again and again. */
START_TEST(both_are_held)
{
	struct softgpu_function *f = kernel_load(COUNT_KERNEL);
	struct softgpu_stream *streams[] = {new_stream(), new_stream()};
	uint32_t before[2];

	for (unsigned i = 0; i < 2; i++)
		launch(f, streams[i], i, 10);
	for (unsigned round = 0; round < 20; round++) {
		await_change(0);
		await_change(1);
		fgv_arbiter_hold(mine.seat, true);
		be_another();
		before[0] = value_of(0);
		before[1] = value_of(1);
		usleep(2000);
		ck_assert_uint_eq(value_of(0), before[0]);
		ck_assert_uint_eq(value_of(1), before[1]);
		end_another();
		fgv_arbiter_hold(mine.seat, false);
	}
	set(10);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

/*
 * Kernels that overlap could keep the engine for ever: once somebody else wants it, those that run
 * end, and the next ones wait.
 */
START_TEST(overlapping_kernels_give_way)
{
	struct softgpu_function *f = kernel_load(MEET_KERNEL);
	struct softgpu_stream *streams[] = {new_stream(), new_stream()};

	launch(f, streams[0], 0, 10);
	await_word(0);
	__atomic_store_n(&others.engine.seat->state, SOFTGPU_SEAT_WANTS, __ATOMIC_SEQ_CST);
	ck_assert_int_eq(eventfd_write(others.engine.arbiter_fd, 1), 0);
	while (softgpu_seat_load(mine.engine.seat) != SOFTGPU_SEAT_ASKED)
		usleep(100);
	launch(f, streams[1], 1, 11);
	usleep(20000);
	ck_assert_uint_eq(value_of(1), 0);
	set(10);
	while (softgpu_seat_load(others.engine.seat) == SOFTGPU_SEAT_WANTS)
		usleep(100);
	ck_assert_int_eq(await(streams[0]), CUDA_SUCCESS);
	ck_assert_uint_eq(value_of(1), 0);
	end_another();
	set(11);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		softgpu_stream_destroy(gpu, streams[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("softgpu_beside");
	TCase *alone = tcase_create("alone");
	TCase *shared = tcase_create("shared");

	tcase_set_timeout(alone, 60);
	tcase_add_checked_fixture(alone, setup, teardown);
	tcase_add_test(alone, two_meet);
	tcase_add_test(alone, the_default_stream_is_one_of_them);
	tcase_add_test(alone, a_fill_of_the_default_stream_comes_first);
	tcase_add_test(alone, no_more_than_fit);
	tcase_add_test(alone, order_holds_across_streams);
	tcase_add_test(alone, memory_goes_between_kernels);
	tcase_add_test(alone, an_event_goes_alone);
	tcase_add_test(alone, a_fault_ends_all);
	tcase_add_test(alone, grids_take_turns);
	tcase_add_test(alone, ends_in_the_middle);
	suite_add_tcase(suite, alone);
	tcase_set_timeout(shared, 60);
	tcase_add_checked_fixture(shared, setup_shared, teardown_shared);
	tcase_add_test(shared, both_are_held);
	tcase_add_test(shared, overlapping_kernels_give_way);
	suite_add_tcase(suite, shared);
	return kernel_run_suite(suite);
}
