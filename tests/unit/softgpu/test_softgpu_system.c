/*
 * What CUDA provides to kernels: the heap against a model, the output's bounds, and printf
 * with formats and addresses that nobody would write by intention.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/heap.h"
#include "softgpu/output.h"
#include "softgpu/softgpu.h"

#ifdef __SANITIZE_THREAD__
#define BASE 0x7e9000000000ull /* one of the few places that ThreadSanitizer allows */
#else
#define BASE 0x200000000000ull
#endif

#define HEAP_BYTES (256u << 10)
#define PIECES	   300

static struct memory memory;
static struct heap heap;

static void heap_setup(void)
{
	ck_assert_int_eq(fgv_softgpu_memory_init(&memory, BASE, 16 << 20), CUDA_SUCCESS);
	fgv_softgpu_heap_init(&heap);
	ck_assert_int_eq(fgv_softgpu_heap_resize(&heap, HEAP_BYTES), CUDA_SUCCESS);
	ck_assert_int_eq(fgv_softgpu_heap_need(&heap, &memory), CUDA_SUCCESS);
}

static void heap_teardown(void)
{
	fgv_softgpu_heap_fini(&heap);
	fgv_softgpu_memory_fini(&memory);
}

/* Each piece is filled with its number, so that two that overlap show. */
START_TEST(pieces_do_not_overlap)
{
	struct {
		unsigned char *at;
		size_t bytes;
	} pieces[PIECES] = {0};
	unsigned seed = 7, wrong = 0;

	for (int round = 0; round < 5000; round++) {
		int i = rand_r(&seed) % PIECES;

		if (pieces[i].at) {
			size_t k = 0;

			while (k < pieces[i].bytes && pieces[i].at[k] == (i & 0xff))
				k++;
			wrong += k != pieces[i].bytes;
			wrong += !fgv_softgpu_heap_free(&heap, (uintptr_t)pieces[i].at);
			pieces[i].at = NULL;
			continue;
		}
		pieces[i].bytes = 1 + (size_t)rand_r(&seed) % 2000;
		pieces[i].at = (void *)(uintptr_t)fgv_softgpu_heap_alloc(&heap, pieces[i].bytes);
		wrong += (uintptr_t)pieces[i].at % 16 != 0;
		if (pieces[i].at)
			memset(pieces[i].at, i & 0xff, pieces[i].bytes);
	}
	ck_assert_uint_eq(wrong, 0);
	for (int i = 0; i < PIECES; i++)
		ck_assert(fgv_softgpu_heap_free(&heap, (uintptr_t)pieces[i].at));
	/* All of it is one piece again. */
	ck_assert_uint_eq(fgv_softgpu_heap_alloc(&heap, HEAP_BYTES), heap.base);
	ck_assert_uint_eq(fgv_softgpu_heap_alloc(&heap, 1), 0);
}
END_TEST

START_TEST(wrong_frees)
{
	uint64_t a = fgv_softgpu_heap_alloc(&heap, 100);
	uint64_t b = fgv_softgpu_heap_alloc(&heap, 100);

	ck_assert(fgv_softgpu_heap_free(&heap, 0));
	ck_assert(!fgv_softgpu_heap_free(&heap, a + 1));
	ck_assert(!fgv_softgpu_heap_free(&heap, a + 16));
	ck_assert(!fgv_softgpu_heap_free(&heap, a + 96)); /* its last granule */
	ck_assert(!fgv_softgpu_heap_free(&heap, heap.base + HEAP_BYTES));
	ck_assert(!fgv_softgpu_heap_free(&heap, heap.base - 16));
	ck_assert(!fgv_softgpu_heap_free(&heap, UINT64_MAX & ~15ull));
	ck_assert(fgv_softgpu_heap_free(&heap, a));
	ck_assert(!fgv_softgpu_heap_free(&heap, a));
	ck_assert(fgv_softgpu_heap_free(&heap, b));
	ck_assert(!fgv_softgpu_heap_free(&heap, b));
	ck_assert_uint_eq(fgv_softgpu_heap_alloc(&heap, 0), 0);
	ck_assert_uint_eq(fgv_softgpu_heap_alloc(&heap, UINT64_MAX), 0);
	ck_assert_int_eq(fgv_softgpu_heap_resize(&heap, 2 * HEAP_BYTES), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static void add(struct output *output, char letter, size_t len)
{
	char text[FGV_OUTPUT_RECORD_MAX];

	memset(text, letter, len);
	ck_assert(fgv_softgpu_output_add(output, 0, text, len));
}

/* A kernel loses its own oldest records, and no other's. */
START_TEST(output_is_bounded)
{
	static char text[FGV_OUTPUT_KEPT_BYTES + 1];
	struct output output;
	size_t len;

	fgv_softgpu_output_init(&output);
	ck_assert_int_eq(fgv_softgpu_output_resize(&output, 10000), CUDA_SUCCESS);
	ck_assert(!fgv_softgpu_output_waits(&output));
	fgv_softgpu_output_turn(&output);
	add(&output, 'a', 4000);
	fgv_softgpu_output_turn(&output);
	add(&output, 'b', 4000);
	add(&output, 'c', 4000);
	add(&output, 'd', 4000);
	ck_assert_int_eq(fgv_softgpu_output_resize(&output, 20000), CUDA_ERROR_INVALID_VALUE);
	ck_assert(fgv_softgpu_output_waits(&output));
	/* In parts, one of them across two records. */
	ck_assert_uint_eq(fgv_softgpu_output_take(&output, 0, text, 3000), 3000);
	ck_assert_uint_eq(fgv_softgpu_output_take(&output, 0, text + 3000, 3000), 3000);
	len = 6000 + fgv_softgpu_output_take(&output, 0, text + 6000, sizeof(text) - 6000);
	ck_assert_uint_eq(len, 12000);
	ck_assert(text[0] == 'a' && text[3999] == 'a' && text[4000] == 'c' && text[11999] == 'd');
	ck_assert(!fgv_softgpu_output_waits(&output));
	ck_assert_uint_eq(fgv_softgpu_output_take(&output, 1, text, sizeof(text)), 0);
	for (unsigned i = 0; i < 2 * FGV_OUTPUT_KEPT_BYTES / 8000; i++) {
		fgv_softgpu_output_turn(&output);
		add(&output, (char)('0' + i % 10), 8000);
	}
	len = fgv_softgpu_output_take(&output, 0, text, sizeof(text));
	ck_assert(len <= FGV_OUTPUT_KEPT_BYTES && len > FGV_OUTPUT_KEPT_BYTES - 8000);
	fgv_softgpu_output_fini(&output);
}
END_TEST

static const char print_kernel[] =
	".version 9.0\n.target sm_75\n.address_size 64\n"
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
	".visible .entry k(.param .u64 f, .param .u64 a, .param .u64 to) {\n"
	".reg .b64 %rd<4>; .reg .b32 %r<2>;\n"
	"ld.param.u64 %rd1, [f]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [to];\n"
	"{ .param .b64 p0; st.param.b64 [p0+0], %rd1; .param .b64 p1; st.param.b64 [p1+0], %rd2;\n"
	".param .b32 r0; call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r1, [r0+0]; }\n"
	"st.global.u32 [%rd3], %r1; ret; }\n";

static struct softgpu *gpu;
static struct softgpu_module *module;
static struct softgpu_function *function;
static uint64_t page; /* format at 0, arguments at 1024, the result at 2048 */

static void gpu_setup(void)
{
	struct softgpu_config config = {.va_base = BASE, .memory_bytes = 64 << 20, .workers = 2};
	const char *text = print_kernel;
	char log[256] = "";

	ck_assert_int_eq(softgpu_create(&config, &gpu), CUDA_SUCCESS);
	ck_assert_msg(!softgpu_module_load(gpu, &text, 1, log, sizeof(log), &module), "%s", log);
	ck_assert_int_eq(softgpu_module_function(module, "k", &function), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_mem_alloc(gpu, 4096, &page), CUDA_SUCCESS);
}

static void gpu_teardown(void)
{
	softgpu_module_unload(gpu, module);
	softgpu_destroy(gpu);
}

static CUresult print(uint64_t format, uint64_t args)
{
	static const struct timespec pause = {.tv_nsec = 50000};
	const uint32_t one[3] = {1, 1, 1};
	uint64_t to = page + 2048;
	void *params[] = {&format, &args, &to};
	CUresult result = softgpu_launch(gpu, function, one, one, 0, NULL, params);

	while (result == CUDA_SUCCESS && (result = softgpu_query(gpu)) == CUDA_ERROR_NOT_READY) {
		nanosleep(&pause, NULL);
		result = CUDA_SUCCESS;
	}
	return result;
}

static const struct {
	const char *format;
	const char *text;
	int32_t result;
} formats[] = {
	{"", "", 0},
	{"%", "%", 0},
	{"100%% of %", "100% of %", 0},
	{"%d", "-1", 1},
	{"%hhd %hd", "-1 -2", 2},
	{"%hhu %hu", "255 65534", 2},
	{"%k", "%k", 0},
	{"%-+#k%d", "%-+#k-1", 1},
	{"%n|", "%n|", 0},
	{"%-5d|%+05d|", "-1   |-0002|", 2},
	{"%*d|", "-2|", 2},
	{"%.0s|", "|", 1},
	{"%ll", "%ll", 0},
	{"%1$d", "%1$d", 0},
};

/* The arguments are the integers -1, -2, -3, ... */
START_TEST(formats_of_any_kind)
{
	int32_t args[64], result = 99;
	char text[256];
	size_t len;

	for (int i = 0; i < 64; i++)
		args[i] = -1 - i;
	ck_assert_int_eq(softgpu_copy_htod_inline(gpu, page, formats[_i].format,
						  strlen(formats[_i].format) + 1, NULL),
			 CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_copy_htod_inline(gpu, page + 1024, args, sizeof(args), NULL),
			 CUDA_SUCCESS);
	/* A string's argument is an address, and none may be read. */
	if (strstr(formats[_i].format, "s")) {
		uint64_t string = page;

		softgpu_copy_htod_inline(gpu, page + 1024, &string, sizeof(string), NULL);
	}
	ck_assert_int_eq(print(page, page + 1024), CUDA_SUCCESS);
	len = softgpu_take_text(gpu, 0, text, sizeof(text) - 1);
	text[len] = '\0';
	ck_assert_str_eq(text, formats[_i].text);
	memcpy(&result, (void *)(uintptr_t)(page + 2048), sizeof(result));
	ck_assert_int_eq(result, formats[_i].result);
}
END_TEST

/* As wide and as long as a format can ask for: the text has its bound. */
START_TEST(long_text)
{
	static char text[3 * FGV_OUTPUT_RECORD_MAX];
	char format[1024] = "";
	size_t len;

	for (int i = 0; i < 60; i++)
		strcat(format, "%999999d%.99999d");
	ck_assert_int_eq(softgpu_copy_htod_inline(gpu, page, format, sizeof(format), NULL),
			 CUDA_SUCCESS);
	ck_assert_int_eq(print(page, page), CUDA_SUCCESS);
	len = softgpu_take_text(gpu, 0, text, sizeof(text));
	ck_assert_uint_eq(len, FGV_OUTPUT_RECORD_MAX);
}
END_TEST

/* A format, an argument and a string where nothing may be read; a format that does not end. */
START_TEST(bad_addresses)
{
	static char endless[4096];
	uint64_t bad = 16;

	memset(endless, 'x', sizeof(endless));
	softgpu_copy_htod_inline(gpu, page, endless, sizeof(endless), NULL);
	switch (_i) {
	case 0:
		ck_assert_int_eq(print(bad, page), CUDA_ERROR_ILLEGAL_ADDRESS);
		break;
	case 1:
		softgpu_copy_htod_inline(gpu, page, "%d", 3, NULL);
		ck_assert_int_eq(print(page, bad), CUDA_ERROR_ILLEGAL_ADDRESS);
		break;
	case 2:
		softgpu_copy_htod_inline(gpu, page, "%s", 3, NULL);
		softgpu_copy_htod_inline(gpu, page + 1024, &bad, sizeof(bad), NULL);
		ck_assert_int_eq(print(page, page + 1024), CUDA_ERROR_ILLEGAL_ADDRESS);
		break;
	case 3:
		ck_assert_int_eq(print(page + 1, page), CUDA_ERROR_ILLEGAL_ADDRESS);
		break;
	case 4:
		ck_assert_int_eq(print(0, page), CUDA_SUCCESS);
		break;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("softgpu: system");
	TCase *of_heap = tcase_create("heap");
	TCase *of_output = tcase_create("output");
	TCase *of_printf = tcase_create("printf");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(of_heap, heap_setup, heap_teardown);
	tcase_add_test(of_heap, pieces_do_not_overlap);
	tcase_add_test(of_heap, wrong_frees);
	tcase_add_test(of_output, output_is_bounded);
	tcase_add_checked_fixture(of_printf, gpu_setup, gpu_teardown);
	tcase_add_loop_test(of_printf, formats_of_any_kind, 0,
			    sizeof(formats) / sizeof(formats[0]));
	tcase_add_test(of_printf, long_text);
	tcase_add_loop_test(of_printf, bad_addresses, 0, 5);
	suite_add_tcase(suite, of_heap);
	suite_add_tcase(suite, of_output);
	suite_add_tcase(suite, of_printf);
	tcase_set_timeout(of_heap, 60);
	tcase_set_timeout(of_output, 60);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
