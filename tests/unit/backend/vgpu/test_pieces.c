/*
 * Memory that may move, on a GPU that is played here and complains of whatever a driver would:
 * mappings outside reservations or over each other, what is mapped when it is released, and what is
 * still used when it is unmapped.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/shared.h"
#include "backend/vgpu/pieces.h"
#include "backend/vgpu/pieces_units.h"

#define GRANULE	 (2ull << 20)
#define PIECE	 FGV_PIECE_BYTES_MAX
#define FIRST	 0x700000000000ull
#define RANGES	 256
#define MIB	 (1ull << 20)
#define SCHEDULE 3000

struct range {
	uint64_t address, bytes;
	struct fgv_gpu_memory *memory; /* of a mapping */
	bool is_shown;
	uint64_t used_by; /* the last work */
};

struct fgv_gpu_memory {
	uint64_t bytes;
	unsigned mappings;
};

/* Passed up to a number; work is queued as a number, too. */
struct fgv_gpu_fence {
	uint64_t number;
};

static struct {
	struct fgv_gpu gpu;
	struct range reserved[RANGES], mapped[RANGES];
	unsigned reserved_count, mapped_count;
	uint64_t next, bytes, room;	/* of memory: taken, and all */
	uint64_t queued, done;		/* work */
	unsigned fences, fences_asked, fails_map;
} fake;

static struct fgv_account account;
static struct fgv_pieces pieces;

static bool overlap(const struct range *a, uint64_t address, uint64_t bytes)
{
	return a->address < address + bytes && address < a->address + a->bytes;
}

static CUresult granularity(struct fgv_gpu *gpu, CUmemAllocationGranularity_flags option,
			    size_t *bytes)
{
	(void)gpu, (void)option;
	*bytes = GRANULE;
	return CUDA_SUCCESS;
}

static CUresult reserve(struct fgv_gpu *gpu, uint64_t bytes, uint64_t alignment, uint64_t hint,
			uint64_t *address)
{
	(void)gpu, (void)alignment, (void)hint;
	ck_assert_uint_eq(bytes % GRANULE, 0);
	ck_assert_uint_lt(fake.reserved_count, RANGES);
	*address = fake.next;
	fake.next += bytes + GRANULE;
	fake.reserved[fake.reserved_count++] = (struct range){*address, bytes, NULL, false, 0};
	return CUDA_SUCCESS;
}

static CUresult address_free(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	(void)gpu;
	for (unsigned i = 0; i < fake.mapped_count; i++)
		ck_assert(!overlap(&fake.mapped[i], address, bytes));
	for (unsigned i = 0; i < fake.reserved_count; i++) {
		if (fake.reserved[i].address != address)
			continue;
		ck_assert_uint_eq(fake.reserved[i].bytes, bytes);
		fake.reserved[i] = fake.reserved[--fake.reserved_count];
		return CUDA_SUCCESS;
	}
	ck_abort_msg("not reserved");
}

static CUresult create(struct fgv_gpu *gpu, uint64_t bytes, struct fgv_gpu_memory **memory)
{
	(void)gpu;
	ck_assert_uint_eq(bytes % GRANULE, 0);
	if (bytes > fake.room - fake.bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*memory = calloc(1, sizeof(**memory));
	(*memory)->bytes = bytes;
	fake.bytes += bytes;
	return CUDA_SUCCESS;
}

static CUresult release(struct fgv_gpu *gpu, struct fgv_gpu_memory *memory)
{
	(void)gpu;
	ck_assert_uint_eq(memory->mappings, 0);
	fake.bytes -= memory->bytes;
	free(memory);
	return CUDA_SUCCESS;
}

static CUresult map(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes, uint64_t offset,
		    struct fgv_gpu_memory *memory)
{
	bool is_reserved = false;

	(void)gpu;
	if (fake.fails_map && --fake.fails_map == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ck_assert_uint_eq(offset, 0);
	ck_assert_uint_eq(bytes, memory->bytes);
	for (unsigned i = 0; i < fake.mapped_count; i++)
		ck_assert(!overlap(&fake.mapped[i], address, bytes));
	for (unsigned i = 0; i < fake.reserved_count; i++)
		is_reserved |= address >= fake.reserved[i].address &&
			       address + bytes <=
				       fake.reserved[i].address + fake.reserved[i].bytes;
	ck_assert(is_reserved);
	ck_assert_uint_lt(fake.mapped_count, RANGES);
	memory->mappings++;
	fake.mapped[fake.mapped_count++] = (struct range){address, bytes, memory, false, 0};
	return CUDA_SUCCESS;
}

static struct range *mapping_at(uint64_t address)
{
	for (unsigned i = 0; i < fake.mapped_count; i++) {
		if (address >= fake.mapped[i].address &&
		    address - fake.mapped[i].address < fake.mapped[i].bytes)
			return &fake.mapped[i];
	}
	return NULL;
}

static CUresult show(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes, CUmemAccess_flags flags)
{
	struct range *found = mapping_at(address);

	(void)gpu;
	ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	ck_assert(found && found->address == address && found->bytes == bytes);
	found->is_shown = true;
	return CUDA_SUCCESS;
}

/* Nothing that the GPU may be using goes. */
static CUresult unmap(struct fgv_gpu *gpu, uint64_t address, uint64_t bytes)
{
	struct range *found = mapping_at(address);

	(void)gpu;
	ck_assert(found && found->address == address && found->bytes == bytes);
	ck_assert(fake.done >= found->used_by);
	found->memory->mappings--;
	*found = fake.mapped[--fake.mapped_count];
	return CUDA_SUCCESS;
}

static CUresult fence_all(struct fgv_gpu *gpu, struct fgv_gpu_fence **fence)
{
	(void)gpu;
	*fence = malloc(sizeof(**fence));
	(*fence)->number = fake.queued;
	fake.fences++;
	fake.fences_asked++;
	return CUDA_SUCCESS;
}

static CUresult fence_query(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence)
{
	(void)gpu;
	return fake.done >= fence->number ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static void fence_put(struct fgv_gpu *gpu, struct fgv_gpu_fence *fence)
{
	(void)gpu;
	fake.fences--;
	free(fence);
}

static const struct fgv_gpu_ops ops = {
	.memory_granularity = granularity,
	.address_reserve = reserve,
	.address_free = address_free,
	.memory_create = create,
	.memory_release = release,
	.memory_map = map,
	.memory_access = show,
	.memory_unmap = unmap,
	.fence_all = fence_all,
	.fence_query = fence_query,
	.fence_put = fence_put,
};

static void setup(void)
{
	memset(&fake, 0, sizeof(fake));
	memset(&account, 0, sizeof(account));
	fake.gpu.ops = &ops;
	fake.next = FIRST;
	fake.room = 1ull << 40;
	fgv_pieces_init(&pieces, &fake.gpu);
	ck_assert_int_eq(fgv_pieces_use(&pieces, &account), CUDA_SUCCESS);
}

static void teardown(void)
{
	fake.done = fake.queued;
	fgv_pieces_fini(&pieces);
	ck_assert_uint_eq(fake.reserved_count, 0);
	ck_assert_uint_eq(fake.mapped_count, 0);
	ck_assert_uint_eq(fake.bytes, 0);
	ck_assert_uint_eq(fake.fences, 0);
	ck_assert_uint_eq(pieces.late_bytes, 0);
	ck_assert_uint_eq(account.away_bytes, 0);
}

static uint64_t must_alloc(uint64_t bytes)
{
	uint64_t address;

	ck_assert_int_eq(fgv_pieces_alloc(&pieces, bytes, &address), CUDA_SUCCESS);
	return address;
}

static void must_free(uint64_t address, uint64_t bytes)
{
	ck_assert_int_eq(fgv_pieces_free(&pieces, address, bytes, GRANULE), CUDA_SUCCESS);
}

static struct fgv_key gone; /* the last that was let go */
static unsigned gone_count;

static void let_go(const struct fgv_key *key, void *of)
{
	ck_assert_ptr_eq(of, &gone_count);
	gone = *key;
	gone_count++;
}

static void setup_whole(void)
{
	setup();
	gone_count = 0;
	ck_assert_int_eq(fgv_pieces_use_whole(&pieces, &account, let_go, &gone_count),
			 CUDA_SUCCESS);
}

static void teardown_whole(void)
{
	teardown();
	ck_assert_uint_eq(pieces.shared_bytes, 0);
}

/* Memory that may be shared is there at once, in one piece, and none of it is ever missing. */
START_TEST(whole_ones_are_there_at_once)
{
	uint64_t large = must_alloc(3 * PIECE), small = must_alloc(100);

	ck_assert_uint_eq(fake.bytes, 3 * PIECE + GRANULE);
	ck_assert_uint_eq(pieces.missing, 0);
	ck_assert_uint_eq(account.away_bytes, 0);
	ck_assert_ptr_eq(mapping_at(large), mapping_at(large + 3 * PIECE - 1));
	must_free(small, 100);
	must_free(large, 3 * PIECE);
}
END_TEST

START_TEST(whole_ones_find_no_room)
{
	uint64_t address, held;

	fake.room = 3 * GRANULE;
	ck_assert_int_eq(fgv_pieces_alloc(&pieces, 4 * GRANULE, &address),
			 CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(fake.reserved_count, 0);
	held = must_alloc(3 * GRANULE);
	ck_assert_int_eq(fgv_pieces_alloc(&pieces, 100, &address), CUDA_ERROR_OUT_OF_MEMORY);
	must_free(held, 3 * GRANULE);
	/* What has been freed goes for it. */
	fake.done = fake.queued;
	must_free(must_alloc(2 * GRANULE), 2 * GRANULE);
}
END_TEST

START_TEST(a_key_goes_with_its_block)
{
	const struct fgv_key key = {{7, 8}};
	uint64_t one = must_alloc(100), two = must_alloc(200), large = must_alloc(2 * GRANULE);
	struct fgv_block *block = fgv_pieces_find(&pieces, one);

	ck_assert_ptr_nonnull(block);
	ck_assert_ptr_eq(block, fgv_pieces_find(&pieces, two + 199));
	ck_assert_ptr_ne(block, fgv_pieces_find(&pieces, large));
	ck_assert_ptr_null(fgv_pieces_find(&pieces, FIRST / 2));
	fgv_pieces_share(&pieces, block, &key);
	ck_assert_uint_eq(pieces.shared_bytes, GRANULE);
	must_free(one, 100);
	must_free(large, 2 * GRANULE);
	fake.done = fake.queued;
	fgv_pieces_collect(&pieces, false);
	ck_assert_uint_eq(gone_count, 0);
	fake.queued++;
	must_free(two, 200);
	ck_assert(fgv_pieces_are_leaving(&pieces));
	ck_assert_uint_eq(gone_count, 0);
	ck_assert_uint_eq(pieces.shared_bytes, GRANULE);
	fake.done = fake.queued;
	fgv_pieces_collect(&pieces, false);
	ck_assert(!fgv_pieces_are_leaving(&pieces));
	ck_assert_uint_eq(gone_count, 1);
	ck_assert_mem_eq(&gone, &key, sizeof(key));
}
END_TEST

START_TEST(untouched_takes_nothing)
{
	uint64_t address = must_alloc(64ull << 30);

	ck_assert_uint_eq(fake.bytes, 0);
	ck_assert_uint_eq(account.away_bytes, 64ull << 30);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, address + (8ull << 30), 1ull << 30), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.bytes, 1ull << 30);
	ck_assert_uint_eq(account.away_bytes, 63ull << 30);
	ck_assert_ptr_nonnull(mapping_at(address + (8ull << 30)));
	ck_assert_ptr_nonnull(mapping_at(address + (9ull << 30) - 1));
	ck_assert_ptr_null(mapping_at(address + (9ull << 30)));
	ck_assert_ptr_null(mapping_at(address + (8ull << 30) - 1));
	must_free(address, 64ull << 30);
}
END_TEST

START_TEST(untouched_goes_without_a_fence)
{
	uint64_t address = must_alloc(3 * PIECE);

	fake.queued++;
	must_free(address, 3 * PIECE);
	ck_assert_uint_eq(fake.fences_asked, 0);
	ck_assert_uint_eq(fake.reserved_count, 0);
}
END_TEST

/* A range touches what it reaches into, from wherever it begins. */
START_TEST(touches_at_the_edges)
{
	uint64_t address = must_alloc(3 * PIECE), other = must_alloc(PIECE);

	ck_assert_int_eq(fgv_pieces_touch(&pieces, address + PIECE - 1, 2), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.bytes, 2 * PIECE);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, address + PIECE, PIECE), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, 0, FIRST), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, address + 3 * PIECE, GRANULE), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, UINT64_MAX - 1, UINT64_MAX), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.bytes, 2 * PIECE);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, other + 1, UINT64_MAX), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.bytes, 3 * PIECE);
	ck_assert_int_eq(fgv_pieces_touch_all(&pieces), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.bytes, 4 * PIECE);
	ck_assert_uint_eq(pieces.missing, 0);
}
END_TEST

START_TEST(small_ones_share_a_piece)
{
	uint64_t first = must_alloc(1), second = must_alloc(700), third = must_alloc(MIB);

	ck_assert_uint_eq(fake.reserved_count, 1);
	ck_assert_uint_eq(second, first + FGV_UNIT_BYTES);
	ck_assert_uint_eq(third, second + 2 * FGV_UNIT_BYTES);
	must_alloc(MIB);
	ck_assert_uint_eq(fake.reserved_count, 2);
	must_alloc(MIB + 1);
	ck_assert_uint_eq(fake.reserved_count, 3);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, first, 1), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.bytes, GRANULE);
}
END_TEST

/* Units of a block that stays are taken again once nothing queued can use them. */
START_TEST(freed_units_wait_for_the_gpu)
{
	uint64_t first = must_alloc(512), keeps = must_alloc(512);

	ck_assert_int_eq(fgv_pieces_touch_all(&pieces), CUDA_SUCCESS);
	fake.queued++;
	must_free(first, 512);
	ck_assert_uint_eq(must_alloc(512), keeps + 512);
	fake.done++;
	fgv_pieces_collect(&pieces, false);
	ck_assert_uint_eq(must_alloc(512), first);
}
END_TEST

/* What is freed behind a fence waits for the next one. */
START_TEST(blocks_leave_behind_the_work)
{
	uint64_t first = must_alloc(PIECE), second = must_alloc(PIECE);

	ck_assert_int_eq(fgv_pieces_touch_all(&pieces), CUDA_SUCCESS);
	fake.queued = 1;
	must_free(first, PIECE);
	ck_assert_uint_eq(pieces.late_bytes, GRANULE);
	fake.queued = 2;
	must_free(second, PIECE);
	ck_assert_uint_eq(fake.fences, 1);
	fgv_pieces_collect(&pieces, false);
	ck_assert_uint_eq(fake.bytes, 2 * PIECE);
	fake.done = fake.queued = 2;
	fgv_pieces_collect(&pieces, false);
	ck_assert_uint_eq(fake.bytes, 0);
	ck_assert_uint_eq(pieces.late_bytes, 0);
}
END_TEST

START_TEST(a_full_gpu_is_told)
{
	uint64_t address = must_alloc(4 * PIECE);

	fake.room = 3 * PIECE;
	ck_assert_int_eq(fgv_pieces_touch_all(&pieces), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(pieces.missing, 1);
	fake.room = 4 * PIECE;
	fake.fails_map = 1;
	ck_assert_int_eq(fgv_pieces_touch_all(&pieces), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(fake.bytes, 3 * PIECE);
	ck_assert_int_eq(fgv_pieces_touch_all(&pieces), CUDA_SUCCESS);
	must_free(address, 4 * PIECE);
}
END_TEST

START_TEST(goes_out_and_comes_in)
{
	uint64_t address = must_alloc(3 * PIECE), start, bytes;
	struct fgv_pieces_cursor at, first, end = {NULL, 0};

	must_alloc(100);
	for (first = fgv_pieces_first(&pieces); first.block->address != address;)
		fgv_pieces_next(&first);
	ck_assert_int_eq(fgv_pieces_touch(&pieces, address, 2 * PIECE), CUDA_SUCCESS);
	ck_assert_uint_eq(fgv_pieces_bytes(&pieces, FGV_PIECE_IN), 2 * PIECE);
	at = first;
	fgv_pieces_next(&at);
	fgv_pieces_at(&first, &start, &bytes)->is_kept = true;
	fgv_pieces_retire(&pieces, first, &at);
	fgv_pieces_unbind(&pieces, first, &at);
	ck_assert_uint_eq(fake.bytes, PIECE);
	ck_assert(fgv_pieces_at(&first, &start, &bytes)->is_kept);
	ck_assert_int_eq(fgv_pieces_at(&at, &start, &bytes)->state, FGV_PIECE_IN);
	ck_assert_int_eq(fgv_pieces_at(&first, &start, &bytes)->state, FGV_PIECE_OUT);
	fgv_pieces_retire(&pieces, at, &end);
	fgv_pieces_unbind(&pieces, at, &end);
	fgv_pieces_forget(&pieces);
	ck_assert(!fgv_pieces_at(&first, &start, &bytes)->is_kept);
	ck_assert_uint_eq(fake.bytes, 0);
	ck_assert_uint_eq(fgv_pieces_bytes(&pieces, FGV_PIECE_OUT), 2 * PIECE);
	ck_assert_uint_eq(fgv_pieces_bytes(&pieces, FGV_PIECE_EMPTY), PIECE + GRANULE);
	ck_assert_uint_eq(account.away_bytes, 3 * PIECE + GRANULE);
	/* Their bytes are elsewhere: nothing but who has them may bring them in. */
	ck_assert_int_eq(fgv_pieces_touch_all(&pieces), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.bytes, PIECE + GRANULE);
	for (at = fgv_pieces_first(&pieces); at.block; fgv_pieces_next(&at)) {
		if (fgv_pieces_at(&at, &start, &bytes)->state == FGV_PIECE_OUT)
			ck_assert_int_eq(fgv_pieces_bind(&pieces, &at), CUDA_SUCCESS);
	}
	ck_assert_uint_eq(pieces.missing, 0);
	ck_assert_uint_eq(account.away_bytes, 0);
	ck_assert_ptr_nonnull(mapping_at(address));
}
END_TEST

struct one {
	uint64_t address, bytes;
};

static uint64_t any_size(void)
{
	switch (rand() % 4) {
	case 0:
		return 1 + (uint64_t)rand() % 4096;
	case 1:
		return 1 + (uint64_t)rand() % MIB;
	case 2:
		return 1 + (uint64_t)rand() % (8 * MIB);
	default:
		return 1 + (uint64_t)rand() % (4 * PIECE);
	}
}

/* No two overlap, whatever has been freed before, and what is touched is there. */
static void check(const struct one *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct range its = {all[i].address, all[i].bytes, NULL, false, 0};

		for (unsigned j = 0; j < i; j++)
			ck_assert(!overlap(&its, all[j].address, all[j].bytes));
	}
}

/* Work uses what is touched. */
static void use(const struct one *one)
{
	fake.queued++;
	for (uint64_t at = one->address; at < one->address + one->bytes; at += GRANULE) {
		ck_assert_ptr_nonnull(mapping_at(at));
		ck_assert(mapping_at(at)->is_shown);
		mapping_at(at)->used_by = fake.queued;
	}
	ck_assert_ptr_nonnull(mapping_at(one->address + one->bytes - 1));
}

START_TEST(random_schedules)
{
	struct one all[32];
	unsigned count = 0;

	srand((unsigned)_i);
	for (unsigned i = 0; i < SCHEDULE; i++) {
		unsigned any = count ? (unsigned)rand() % count : 0;

		switch (rand() % 6) {
		case 0:
		case 1:
			if (count == 32)
				break;
			all[count].bytes = any_size();
			all[count].address = must_alloc(all[count].bytes);
			count++;
			check(all, count);
			break;
		case 2:
			if (!count)
				break;
			must_free(all[any].address, all[any].bytes);
			all[any] = all[--count];
			break;
		case 3:
			if (!count)
				break;
			fgv_pieces_touch(&pieces, all[any].address, all[any].bytes);
			use(&all[any]);
			break;
		case 4:
			fake.done = fake.queued;
			break;
		default:
			fgv_pieces_collect(&pieces, false);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pieces");
	TCase *one = tcase_create("one"), *many = tcase_create("schedules");
	TCase *whole = tcase_create("whole");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(one, setup, teardown);
	tcase_add_test(one, untouched_takes_nothing);
	tcase_add_test(one, untouched_goes_without_a_fence);
	tcase_add_test(one, touches_at_the_edges);
	tcase_add_test(one, small_ones_share_a_piece);
	tcase_add_test(one, freed_units_wait_for_the_gpu);
	tcase_add_test(one, blocks_leave_behind_the_work);
	tcase_add_test(one, a_full_gpu_is_told);
	tcase_add_test(one, goes_out_and_comes_in);
	tcase_set_timeout(one, 240);
	suite_add_tcase(suite, one);
	tcase_add_checked_fixture(whole, setup_whole, teardown_whole);
	tcase_add_test(whole, whole_ones_are_there_at_once);
	tcase_add_test(whole, whole_ones_find_no_room);
	tcase_add_test(whole, a_key_goes_with_its_block);
	suite_add_tcase(suite, whole);
	tcase_add_checked_fixture(many, setup, teardown);
	tcase_add_loop_test(many, random_schedules, 0, 8);
	tcase_set_timeout(many, 240);
	suite_add_tcase(suite, many);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
