/*
 * softgpu/: what it takes of the host: memory of modules while they are loaded and afterwards, host
 * memory that kernels use, device memory, and threads.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/device/internal.h"
#include "softgpu/lower/lower.h"
#include "tests/unit/softgpu/softgpu_kernel.h"

static CUresult load_all(const char *const *texts, size_t count, char *log, size_t log_len)
{
	log[0] = '\0';
	return softgpu_module_load(gpu, texts, count, log, log_len, &module);
}

/* @head, @part so many times, @tail. */
static char *repeat(const char *head, const char *part, unsigned times, const char *tail)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(file);
	fputs(head, file);
	for (unsigned i = 0; i < times; i++)
		fputs(part, file);
	fputs(tail, file);
	fclose(file);
	return text;
}

/* Short texts whose trees, tables or instructions take many times as much. */
static const struct {
	const char *head, *part;
	unsigned times;
	const char *tail;
} swelling[] = {
	{HEAD ".entry k()\n{\n.reg .b32 a", ",a", 1 << 20, ";\nret;\n}\n"},
	{HEAD ".entry k()\n{\n", "{ .reg .b32 %r<1000000>; }\n", 1000, "ret;\n}\n"},
};

START_TEST(too_much_for_its_length)
{
	char *text =
		repeat(swelling[_i].head, swelling[_i].part, swelling[_i].times, swelling[_i].tail);
	const char *texts[] = {text};
	char log[256];

	ck_assert_int_eq(load_all(texts, 1, log, sizeof(log)), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_msg(strstr(log, "too much in a text of this length"), "%s", log);
	free(text);
	/* And nothing is lost by it. */
	kernel_load(HEAD ".visible .entry k() { ret; }\n");
}
END_TEST

/* A table of branch targets, and as many branches that use it as it is long. */
START_TEST(tables_in_the_square)
{
	char *table = repeat("t: .branchtargets $a", ", $a", 20000, ";\n}\n");
	char *text = repeat(HEAD ".visible .entry k()\n{ .reg .b32 %r1;\n", "brx.idx %r1, t;\n",
			    20000, "$a: ret;\n");
	const char *texts[1];
	char log[256];

	text = realloc(text, strlen(text) + strlen(table) + 1);
	ck_assert_ptr_nonnull(text);
	texts[0] = strcat(text, table);
	ck_assert_int_eq(load_all(texts, 1, log, sizeof(log)), CUDA_ERROR_OUT_OF_MEMORY);
	module = NULL;
	free(table);
	free(text);
}
END_TEST

/* What all programs of a session keep is bounded, too, and given back with each. */
START_TEST(kept_by_all_programs)
{
	const char *text = HEAD ".visible .entry k() { ret; }\n";
	struct fgv_budget kept = {.max = 1 << 20};
	struct memory memory = {.bytes = 1 << 20};
	struct program *programs[64];
	CUresult result = CUDA_SUCCESS;
	unsigned count = 0;
	char log[256];

	while (count < 64 && result == CUDA_SUCCESS) {
		result = fgv_program_create(&memory, &kept, &text, 1, log, sizeof(log),
					    &programs[count]);
		count += result == CUDA_SUCCESS;
	}
	ck_assert_int_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_gt(count, 4);
	ck_assert_uint_le(kept.used, kept.max);
	while (count-- > 0)
		fgv_program_destroy(programs[count]);
	ck_assert_uint_eq(kept.used, 0);
	ck_assert_int_eq(fgv_program_create(&memory, &kept, &text, 1, log, sizeof(log), programs),
			 CUDA_SUCCESS);
	fgv_program_destroy(programs[0]);
}
END_TEST

/*
 * One block faults while the other writes to host memory, for long before it looks up: the
 * memory may go when it has been taken back.
 */
START_TEST(host_memory_after_a_fault)
{
	const size_t bytes = 1 << 16;
	/* Block 1 says that it has begun; block 0 waits for that, and faults. */
	char *text = repeat(
		HEAD ".visible .entry k(.param .u64 out)\n{\n"
		     ".reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
		     "ld.param.u64 %rd1, [out]; add.u64 %rd2, %rd1, 4096; mov.u32 %r1, %ctaid.x;\n"
		     "setp.eq.u32 %p1, %r1, 0; @%p1 bra $first;\n"
		     "mov.u32 %r2, 1; st.volatile.global.u32 [%rd1], %r2;\n$loop:\n",
		"st.global.u32 [%rd2], %r1;\n", 4000,
		"bra $loop;\n"
		"$first: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0;\n"
		"@%p2 bra $first; trap; ret;\n}\n");
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *args[] = {&memory};

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(softgpu_host_register(gpu, memory, bytes), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_launch(kernel_load(text), 2, 32, 0, args),
			 CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_uint_eq(*(uint32_t *)memory, 1);
	softgpu_host_unregister(gpu, memory);
	munmap(memory, bytes);
	/* Who still writes there would do so by now. */
	usleep(10000);
	free(text);
}
END_TEST

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The soft GPU's own records are part of it. Nothing, where a sanitizer's shadow memory is too. */
static uint64_t grown_since(uint64_t before)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)before;
	return 0;
#else
	return resident_bytes() - before;
#endif
}

/* One assertion for all: Check keeps a record of each that it passes. */
static bool all_are(uint64_t address, uint64_t bytes, int value)
{
	const uint8_t *data = (const uint8_t *)(uintptr_t)address;

	for (uint64_t i = 0; i < bytes; i++)
		if (data[i] != value)
			return false;
	return true;
}

/* An allocation takes what it is charged: a granule, not a page. All of them are written to. */
START_TEST(small_allocations)
{
	enum { COUNT = 40000 };
	static uint64_t addresses[COUNT];
	uint64_t before = resident_bytes();

	for (int i = 0; i < COUNT; i++) {
		ck_assert_int_eq(softgpu_mem_alloc(gpu, 1, &addresses[i]), CUDA_SUCCESS);
		ck_assert_uint_eq(addresses[i] % SOFTGPU_GRANULE, 0);
		ck_assert_uint_eq(*(uint8_t *)(uintptr_t)addresses[i], 0);
		*(uint8_t *)(uintptr_t)addresses[i] = 0xee;
	}
	ck_assert_uint_lt(grown_since(before), 2ull * COUNT * SOFTGPU_GRANULE);
	for (int i = 0; i < COUNT; i += 2)
		ck_assert_int_eq(softgpu_mem_free(gpu, addresses[i]), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
	for (int i = 1; i < COUNT; i += 2)
		ck_assert_uint_eq(*(uint8_t *)(uintptr_t)addresses[i], 0xee);
	/* Handed out again, beside those that stayed, they are zero. */
	for (int i = 0; i < COUNT; i += 2) {
		ck_assert_int_eq(softgpu_mem_alloc(gpu, 512, &addresses[i]), CUDA_SUCCESS);
		ck_assert(all_are(addresses[i], 512, 0));
	}
	for (int i = 0; i < COUNT; i++)
		ck_assert_int_eq(softgpu_mem_free(gpu, addresses[i]), CUDA_SUCCESS);
	ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
}
END_TEST

/* Many sizes that share pages: what is inside is right, and what was freed is out of bounds. */
START_TEST(allocations_share_pages)
{
	enum { COUNT = 400 };
	uint64_t addresses[COUNT], bytes[COUNT];

	srandom(3);
	for (int i = 0; i < COUNT; i++) {
		bytes[i] = 1 + (uint64_t)random() % 20000;
		ck_assert_int_eq(softgpu_mem_alloc(gpu, bytes[i], &addresses[i]), CUDA_SUCCESS);
		memset((void *)(uintptr_t)addresses[i], i & 0xff, bytes[i]);
	}
	for (int round = 0; round < 2000; round++) {
		int i = (int)(random() % COUNT);

		ck_assert(all_are(addresses[i], bytes[i], i & 0xff));
		ck_assert_int_eq(softgpu_mem_free(gpu, addresses[i]), CUDA_SUCCESS);
		ck_assert_int_eq(kernel_drain(), CUDA_SUCCESS);
		bytes[i] = 1 + (uint64_t)random() % 20000;
		ck_assert_int_eq(softgpu_mem_alloc(gpu, bytes[i], &addresses[i]), CUDA_SUCCESS);
		ck_assert(all_are(addresses[i], bytes[i], 0));
		memset((void *)(uintptr_t)addresses[i], i & 0xff, bytes[i]);
	}
}
END_TEST

static uint64_t blocked_signals(const char *task)
{
	char path[300], line[256];
	uint64_t mask = ~0ull;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "SigBlk: %" SCNx64, &mask);
	fclose(file);
	return mask;
}

static bool is_blocked(uint64_t mask, int signal)
{
	return mask >> (signal - 1) & 1;
}

static bool is_named(const char *task, const char *name)
{
	char path[300], line[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return !strcmp(line, name);
}

/* The C library starts a thread with all signals blocked. */
static uint64_t settled_signals(const char *task)
{
	for (int tries = 0; tries < 10000 && is_blocked(blocked_signals(task), SIGSEGV); tries++)
		usleep(1000);
	return blocked_signals(task);
}

/* The soft GPU's threads take no signals but those that their own faults raise, which sanitizers
 * must see. Threads of a sanitizer have other names.
 */
static unsigned look_at_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	unsigned count = 0;

	ck_assert_ptr_nonnull(tasks);
	while ((task = readdir(tasks))) {
		uint64_t mask;

		if (task->d_name[0] == '.' || !is_named(task->d_name, SOFTGPU_THREAD_NAME))
			continue;
		mask = settled_signals(task->d_name);
		ck_assert(!is_blocked(mask, SIGSEGV) && !is_blocked(mask, SIGBUS));
		ck_assert(is_blocked(mask, SIGTERM) && is_blocked(mask, SIGINT));
		ck_assert(is_blocked(mask, SIGUSR1));
		count++;
	}
	closedir(tasks);
	return count;
}

/* Two that compute, and one for each engine that copies; each gives itself its name. */
START_TEST(signals_of_threads)
{
	unsigned tries = 0;

	while (look_at_threads() < 4 && tries++ < 10000)
		usleep(1000);
	ck_assert_uint_eq(look_at_threads(), 4);
}
END_TEST

/* --- Chunks that other processes have -------------------------------------------- */

#define CHUNK SOFTGPU_CHUNK_GRANULE

/* As another process would: by the file alone, and also when its maker has given it up. */
START_TEST(a_chunk_is_had_by_its_file)
{
	struct softgpu_chunk *chunk, *same;
	uint32_t value = 77, found = 0;
	int fd;

	ck_assert_int_eq(softgpu_chunk_create_file(gpu, CHUNK, &chunk), CUDA_SUCCESS);
	fd = fcntl(softgpu_chunk_file(chunk), F_DUPFD_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_lt(ftruncate(fd, 0), 0);
	ck_assert_int_lt(ftruncate(fd, 2 * CHUNK), 0);
	ck_assert_int_eq(softgpu_chunk_import(gpu, fd, CHUNK, &same), CUDA_SUCCESS);
	close(fd);
	ck_assert_int_eq(pwrite(softgpu_chunk_file(chunk), &value, sizeof(value), 8),
			 sizeof(value));
	softgpu_chunk_destroy(gpu, chunk);
	ck_assert_int_eq(pread(softgpu_chunk_file(same), &found, sizeof(found), 8), sizeof(found));
	ck_assert_uint_eq(found, value);
	softgpu_chunk_destroy(gpu, same);
}
END_TEST

/* Pages that could be taken from under a mapping would end whoever touches them. */
START_TEST(no_file_that_can_shrink)
{
	static const int seals[] = {
		0,
		F_SEAL_SHRINK,
		F_SEAL_GROW | F_SEAL_SEAL,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	};
	int fd = memfd_create("another's", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool is_right = _i == 3;
	struct softgpu_chunk *chunk;

	ck_assert_int_eq(ftruncate(fd, CHUNK), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals[_i]), 0);
	ck_assert_int_eq(softgpu_chunk_import(gpu, fd, CHUNK, &chunk),
			 is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	if (is_right)
		softgpu_chunk_destroy(gpu, chunk);
	/* Nor one that is smaller than it is said to be, or larger, or none. */
	ck_assert_int_eq(softgpu_chunk_import(gpu, fd, 2 * CHUNK, &chunk),
			 CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(softgpu_chunk_import(gpu, fd, CHUNK / 2, &chunk),
			 CUDA_ERROR_INVALID_VALUE);
	close(fd);
	ck_assert_int_eq(softgpu_chunk_import(gpu, fd, CHUNK, &chunk), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("softgpu_memory");
	TCase *t = tcase_create("memory");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
	tcase_add_loop_test(t, too_much_for_its_length, 0,
			    (int)(sizeof(swelling) / sizeof(*swelling)));
	tcase_add_test(t, tables_in_the_square);
	tcase_add_test(t, kept_by_all_programs);
	tcase_add_test(t, host_memory_after_a_fault);
	tcase_add_test(t, small_allocations);
	tcase_add_test(t, allocations_share_pages);
	tcase_add_test(t, signals_of_threads);
	tcase_add_test(t, a_chunk_is_had_by_its_file);
	tcase_add_loop_test(t, no_file_that_can_shrink, 0, 4);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return kernel_run_suite(suite());
}
