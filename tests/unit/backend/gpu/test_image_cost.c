/*
 * What the variables and the code of an image will take of the GPU's memory: of PTX, of machine
 * code, of both in containers, and of what is none or lies.
 */
#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/fatbin.h"
#include "backend/gpu/image_cost.h"
#include "backend/gpu/ptx_bytes.h"
#include "tests/unit/backend/gpu/fatbin_build.h"

static char said[128];

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* --- Text ----------------------------------------------------------------------- */

static uint64_t bytes_of(const char *text)
{
	uint64_t bytes = 0;

	ck_assert_msg(fgv_ptx_bytes(text, NULL, 0, &bytes) == 0, "%s", text);
	return bytes;
}

/* At most an alignment more than there is: a variable may have to be moved to it. */
START_TEST(sizes_of_variables)
{
	static const struct {
		const char *text;
		uint64_t least, most;
	} cases[] = {
		{"", 0, 0},
		{".global .u8 x;", 1, 1},
		{".global .b1 x[100];", 100, 100},
		{".global .b32 x[100];", 400, 403},
		{".visible .global .align 16 .v4 .f32 x[2];", 32, 47},
		{".const .b64 x[2][3] = {{1, 2, 3}, {4}};", 48, 55},
		{".global .b8 x[] = {1, 2, 3, 4};", 4, 4},
		{".global .b16 x[][2] = {{1, 2}, {3, 4}};", 8, 40},
		{".weak .global .attribute(.managed) .align 4 .b8 x[10];", 10, 13},
		{".extern .global .b32 x[100];", 0, 0},
		{".visible .entry f(.param .u64 .ptr .global .align 4 p) { ret; }", 0, 0},
		{"ld.global.u32 %r1, [x]; st.global.v4.f32 [x], {%f1, %f2, %f3, %f4};", 0, 0},
		{"cvta.to.global.u64 %rd1, %rd2; @%p1 atom.global.add.u32 %r1, [x], 1;", 0, 0},
		{".shared .b8 s[1000]; .local .b8 l[1000];", 0, 0},
		{".global .texref t;", 8, 200},
		{".visible .func f() { .global .b8 inner[100]; }", 100, 100},
		{".globl x; .global_x y; .constant z;", 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t bytes = bytes_of(cases[i].text);

		ck_assert_msg(bytes >= cases[i].least && bytes <= cases[i].most, "%s: %llu",
			      cases[i].text, (unsigned long long)bytes);
	}
}
END_TEST

/* Another reader may take comments and strings to end elsewhere. */
START_TEST(nothing_hides)
{
	static const char *const texts[] = {
		".target sm_90.global.b8 x[4096];",
		".file 1 \"\\\"//\" .global .b8 x[4096];",
		".file 1 \"/*\" .global .b8 x[4096];",
		"/* .extern */ .global .b8 x[4096];",
		"//.extern\n.global .b8 x[4096];",
		"/*\n.extern*/ .global .b8 x[4096];",
		".global/**/.b8//\nx/* [1] */[/**/4096];",
		".version 8.0.global .b8 x[4096];",
		"@p\n.global .b8 x[010000];",
	};
	uint64_t most = 0;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ck_assert_msg(bytes_of(texts[i]) >= 4096, "%s", texts[i]);
	ck_assert_int_eq(fgv_ptx_bytes(".global .b64 x[0x8000000000000000];", NULL, 0, &most), 0);
	ck_assert_uint_eq(most, UINT64_MAX);
	ck_assert_int_eq(fgv_ptx_bytes(".global .b8 x[18446744073709551615]; .global .b8 y[9];",
				       NULL, 0, &most),
			 0);
	ck_assert_uint_eq(most, UINT64_MAX);
}
END_TEST

START_TEST(sizes_that_cannot_be_told)
{
	static const char *const texts[] = {
		".global .b8 x[1024*1024];", ".global .b8 x[n];", ".global .align 3 .b8 x[1];",
		".global .b8 x<n>;",	     ".global .b8 x[1",
	};
	uint64_t bytes;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ck_assert_msg(fgv_ptx_bytes(texts[i], NULL, 0, &bytes) < 0, "%s", texts[i]);
}
END_TEST

/* Each of very many beginnings of a comment could be looked through to the end of the text. */
START_TEST(bounded_time)
{
	static const char part[] = ".global/*";
	const size_t count = 200000, len = sizeof(part) - 1;
	char *text = malloc(count * len + 1);
	uint64_t bytes;

	for (size_t i = 0; i < count; i++)
		memcpy(text + i * len, part, len);
	text[count * len] = '\0';
	ck_assert_int_lt(fgv_ptx_bytes(text, NULL, 0, &bytes), 0);
	memset(text, '.', count * len);
	ck_assert_int_eq(fgv_ptx_bytes(text, NULL, 0, &bytes), 0);
	free(text);
}
END_TEST

START_TEST(says_what_cannot_be_told)
{
	static const char text[] = ".version 8.0\n.global .b8 x[n];";
	struct fgv_gpu_module_cost cost;

	ck_assert_int_eq(
		fgv_image_cost(text, sizeof(text) - 1, 90, NULL, 0, said, sizeof(said), &cost),
		CUDA_ERROR_INVALID_PTX);
	ck_assert_ptr_nonnull(strstr(said, "can't be told"));
}
END_TEST

START_TEST(placed_variables)
{
	char memory[16];
	const struct fgv_gpu_placed placed[] = {{"x", memory, 16}};
	uint64_t bytes;

	ck_assert_int_eq(fgv_ptx_bytes(".global .b8 x[16]; .global .b8 y[7];", placed, 1, &bytes),
			 0);
	ck_assert_uint_eq(bytes, 7);
	ck_assert_int_eq(fgv_ptx_bytes(".global .b8 x[17];", placed, 1, &bytes), 0);
	ck_assert_uint_eq(bytes, 17);
}
END_TEST

/* --- Machine code ------------------------------------------------------------------ */

struct section {
	const char *name;
	uint32_t type;
	uint64_t flags;
	uint64_t bytes;
};

struct code {
	uint8_t bytes[4096];
	size_t len;
};

static void build(struct code *code, const struct section *sections, size_t count)
{
	Elf64_Ehdr *head = (void *)code->bytes;
	Elf64_Shdr *table = (void *)(head + 1);
	char *names = (char *)(table + count + 1);
	size_t names_len = 1;

	memset(code, 0, sizeof(*code));
	memcpy(head->e_ident, ELFMAG, SELFMAG);
	head->e_ident[EI_CLASS] = ELFCLASS64;
	head->e_shoff = sizeof(*head);
	head->e_shentsize = sizeof(*table);
	head->e_shnum = (uint16_t)(count + 1);
	head->e_shstrndx = (uint16_t)count;
	for (size_t i = 0; i < count; i++) {
		table[i] = (Elf64_Shdr){
			.sh_name = (uint32_t)names_len,
			.sh_type = sections[i].type,
			.sh_flags = sections[i].flags,
			.sh_size = sections[i].bytes,
		};
		strcpy(names + names_len, sections[i].name);
		names_len += strlen(sections[i].name) + 1;
	}
	table[count] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = (uint64_t)((uint8_t *)names - code->bytes),
		.sh_size = names_len,
	};
	code->len = table[count].sh_offset + names_len;
	ck_assert_uint_le(code->len, sizeof(code->bytes));
}

static const struct section usual[] = {
	{".text.kernel", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 1000},
	{".nv.constant0.kernel", SHT_PROGBITS, SHF_ALLOC, 100},
	{".nv.global.init", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 20},
	{".nv.global", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 60ull << 30},
	{".nv.shared.kernel", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 48 * 1024},
	{".nv.info", SHT_PROGBITS, 0, 5000},
};

START_TEST(sections_of_machine_code)
{
	struct fgv_gpu_module_cost cost;
	struct code code;

	build(&code, usual, ARRAY_LEN(usual));
	ck_assert_int_eq(
		fgv_image_cost(code.bytes, code.len, 90, NULL, 0, said, sizeof(said), &cost),
		CUDA_SUCCESS);
	ck_assert_uint_eq(cost.data, (60ull << 30) + 20);
	ck_assert_uint_eq(cost.code, 1100);
	ck_assert_int_ne(fgv_image_cost(code.bytes, code.len, FGV_FATBIN_ANY_SM, NULL, 0, said,
					sizeof(said), &cost),
			 CUDA_SUCCESS);
}
END_TEST

/* A variable is no shared memory for being called so. */
START_TEST(names_that_lie)
{
	static const struct section sections[] = {
		{".nv.shared.x", 0x70000007, SHF_ALLOC, 1 << 20},
		{".nv.local.x", SHT_PROGBITS, SHF_ALLOC, 1 << 20},
		{".bss", SHT_NOBITS, 0, 1 << 20},
		{".nv.global.x", SHT_NOTE, 0, UINT64_MAX},
	};
	struct fgv_gpu_module_cost cost;
	struct code code;

	build(&code, sections, 3);
	ck_assert_int_eq(
		fgv_image_cost(code.bytes, code.len, 90, NULL, 0, said, sizeof(said), &cost),
		CUDA_SUCCESS);
	ck_assert_uint_eq(cost.data, 2 << 20);
	ck_assert_uint_eq(cost.code, 1 << 20);
	build(&code, sections, 4);
	ck_assert_int_eq(
		fgv_image_cost(code.bytes, code.len, 90, NULL, 0, said, sizeof(said), &cost),
		CUDA_SUCCESS);
	ck_assert_uint_eq(cost.data, UINT64_MAX);
}
END_TEST

START_TEST(broken_machine_code)
{
	struct fgv_gpu_module_cost cost;
	struct code code, broken;

	build(&code, usual, ARRAY_LEN(usual));
	for (size_t len = 0; len < code.len; len++) {
		uint8_t *exact = malloc(len + 1);

		memcpy(exact, code.bytes, len);
		ck_assert_int_ne(fgv_image_cost(exact, len, 90, NULL, 0, said, sizeof(said), &cost),
				 CUDA_SUCCESS);
		free(exact);
	}
	/* Whatever one byte is, nothing outside is read. */
	for (size_t i = 0; i < sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr); i++) {
		broken = code;
		broken.bytes[i] = 0xff;
		fgv_image_cost(broken.bytes, broken.len, 90, NULL, 0, said, sizeof(said), &cost);
	}
}
END_TEST

/* --- Containers -------------------------------------------------------------------- */

static void add(struct fatbin *image, unsigned kind, unsigned sm, const void *data, size_t len,
		enum fgv_fatbin_packing packing)
{
	fatbin_add(image,
		   &(struct fatbin_entry){
			   .kind = kind, .sm = sm, .packing = packing, .data = data, .len = len});
}

static struct fgv_gpu_module_cost cost_of(const struct fatbin *image, unsigned sm)
{
	struct fgv_gpu_module_cost cost;

	ck_assert_int_eq(
		fgv_image_cost(image->bytes, image->len, sm, NULL, 0, said, sizeof(said), &cost),
		CUDA_SUCCESS);
	return cost;
}

/* Which one the driver takes is not known: the largest counts of those that it may take. */
START_TEST(largest_of_a_container)
{
	static const char small[] = ".version 8.0\n.global .b8 x[10];";
	static const char large[] = ".version 8.0\n.global .b8 x[1000];";
	struct fatbin image;
	struct code code;

	build(&code, &usual[2], 1);
	fatbin_init(&image);
	fatbin_begin(&image);
	add(&image, FGV_FATBIN_PTX, 75, small, sizeof(small), FGV_FATBIN_ZSTD);
	add(&image, FGV_FATBIN_PTX, 100, large, sizeof(large), FGV_FATBIN_RAW);
	add(&image, FGV_FATBIN_CUBIN, 90, code.bytes, code.len, FGV_FATBIN_LZ4);
	ck_assert_uint_eq(cost_of(&image, 75).data, 10);
	ck_assert_uint_eq(cost_of(&image, 90).data, 20);
	ck_assert_uint_eq(cost_of(&image, 100).data, 1000);
	ck_assert_uint_eq(cost_of(&image, FGV_FATBIN_ANY_SM).data, 1000);
	fatbin_fini(&image);
}
END_TEST

/* The first is all of it, or the others are. */
START_TEST(sum_of_several_containers)
{
	static const char text[] = ".version 8.0\n.global .b8 x[1000];";
	struct fatbin image;

	fatbin_init(&image);
	for (int i = 0; i < 3; i++) {
		fatbin_begin(&image);
		add(&image, FGV_FATBIN_PTX, 75, text, sizeof(text), FGV_FATBIN_RAW);
	}
	ck_assert_uint_eq(cost_of(&image, 90).data, 2000);
	fatbin_fini(&image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("image_cost");
	TCase *tests = tcase_create("image_cost");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, sizes_of_variables);
	tcase_add_test(tests, nothing_hides);
	tcase_add_test(tests, sizes_that_cannot_be_told);
	tcase_add_test(tests, bounded_time);
	tcase_add_test(tests, says_what_cannot_be_told);
	tcase_add_test(tests, placed_variables);
	tcase_add_test(tests, sections_of_machine_code);
	tcase_add_test(tests, names_that_lie);
	tcase_add_test(tests, broken_machine_code);
	tcase_add_test(tests, largest_of_a_container);
	tcase_add_test(tests, sum_of_several_containers);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
