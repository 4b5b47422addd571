/*
 * The fat binary reader: what nvcc makes is read, and whatever else comes is an error and
 * nothing worse. The images that are hostile lie at the end of a heap block of their own
 * size, so that AddressSanitizer sees a read past them.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/fatbin.h"
#include "tests/unit/backend/gpu/fatbin_build.h"

static const char text_a[] =
	".version 8.0\n.target sm_70\n.address_size 64\n// a a a a a a a a a a\n";
static const char text_b[] =
	".version 8.0\n.target sm_90\n.address_size 64\n// b b b b b b b b b b\n";

static struct fatbin image;

static void setup(void)
{
	fatbin_init(&image);
}

static void teardown(void)
{
	fatbin_fini(&image);
}

static void add(unsigned kind, unsigned sm, enum fgv_fatbin_packing packing, const char *text)
{
	fatbin_add(&image, &(struct fatbin_entry){
				   .kind = kind,
				   .sm = sm,
				   .packing = packing,
				   .data = text,
				   .len = strlen(text),
			   });
}

/* NULL: none is for a GPU of @sm. */
static void expect_text_for(unsigned sm, const char *text)
{
	struct fgv_fatbin_texts texts;

	ck_assert_int_eq(fgv_fatbin_ptx(image.bytes, image.len, sm, &texts), 0);
	ck_assert_uint_eq(texts.count, text ? 1 : 0);
	if (text)
		ck_assert_str_eq(texts.texts[0], text);
	fgv_fatbin_texts_free(&texts);
}

static void expect_text(const char *text)
{
	expect_text_for(FGV_FATBIN_ANY_SM, text);
}

START_TEST(reads_every_packing)
{
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 70, (enum fgv_fatbin_packing)_i, text_a);
	expect_text(text_a);
}
END_TEST

START_TEST(takes_the_highest_sm)
{
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 70, FGV_FATBIN_RAW, text_a);
	add(FGV_FATBIN_PTX, 90, FGV_FATBIN_ZSTD, text_b);
	add(FGV_FATBIN_PTX, 80, FGV_FATBIN_LZ4, text_a);
	add(FGV_FATBIN_CUBIN, 100, FGV_FATBIN_RAW, "machine code");
	expect_text(text_b);
}
END_TEST

START_TEST(prefers_what_runs_everywhere)
{
	fatbin_begin(&image);
	fatbin_add(&image, &(struct fatbin_entry){
				   .kind = FGV_FATBIN_PTX,
				   .sm = 90,
				   .is_arch_specific = 1,
				   .data = text_b,
				   .len = strlen(text_b),
			   });
	add(FGV_FATBIN_PTX, 70, FGV_FATBIN_RAW, text_a);
	expect_text(text_a);
}
END_TEST

START_TEST(takes_what_the_gpu_can_run)
{
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 70, FGV_FATBIN_RAW, text_a);
	add(FGV_FATBIN_PTX, 100, FGV_FATBIN_RAW, text_b);
	expect_text_for(60, NULL);
	expect_text_for(90, text_a);
	expect_text_for(100, text_b);
}
END_TEST

START_TEST(takes_what_one_gpu_alone_can_run)
{
	fatbin_begin(&image);
	fatbin_add(&image, &(struct fatbin_entry){
				   .kind = FGV_FATBIN_PTX,
				   .sm = 90,
				   .is_arch_specific = 1,
				   .data = text_b,
				   .len = strlen(text_b),
			   });
	expect_text_for(90, text_b);
	expect_text_for(100, NULL);
}
END_TEST

START_TEST(reads_all_containers)
{
	struct fgv_fatbin_texts texts;
	unsigned containers;

	fatbin_begin(&image);
	add(FGV_FATBIN_CUBIN, 90, FGV_FATBIN_RAW, "linked machine code");
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 90, FGV_FATBIN_LZ4, text_a);
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 90, FGV_FATBIN_ZSTD, text_b);
	ck_assert_int_eq(fgv_fatbin_check(image.bytes, image.len, &containers), 0);
	ck_assert_uint_eq(containers, 3);
	ck_assert_int_eq(fgv_fatbin_ptx(image.bytes, image.len, FGV_FATBIN_ANY_SM, &texts), 0);
	ck_assert_uint_eq(texts.count, 2);
	ck_assert_str_eq(texts.texts[0], text_a);
	ck_assert_str_eq(texts.texts[1], text_b);
	fgv_fatbin_texts_free(&texts);
}
END_TEST

START_TEST(machine_code_alone_is_no_text)
{
	struct fgv_fatbin_texts texts;

	fatbin_begin(&image);
	add(FGV_FATBIN_CUBIN, 90, FGV_FATBIN_RAW, "machine code");
	ck_assert_int_eq(fgv_fatbin_ptx(image.bytes, image.len, FGV_FATBIN_ANY_SM, &texts), 0);
	ck_assert_uint_eq(texts.count, 0);
	fgv_fatbin_texts_free(&texts);
}
END_TEST

/* Claims to unpack to more than there may be. */
START_TEST(refuses_a_bomb)
{
	struct fgv_fatbin_texts texts;
	uint64_t claim = (uint64_t)FGV_FATBIN_TEXT_MAX + 1;

	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 70, FGV_FATBIN_ZSTD, text_a);
	memcpy(image.bytes + 16 + 56, &claim, sizeof(claim));
	ck_assert_int_eq(fgv_fatbin_ptx(image.bytes, image.len, FGV_FATBIN_ANY_SM, &texts), -E2BIG);
}
END_TEST

/* Nothing but the same byte over and over: far more than what an image of this size may be. */
START_TEST(refuses_what_unpacks_to_too_much)
{
	const size_t len = 8 << 20;
	struct fgv_fatbin_texts texts;
	char *text = malloc(len + 1);

	ck_assert_ptr_nonnull(text);
	memset(text, ' ', len);
	text[len] = '\0';
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 70, FGV_FATBIN_ZSTD, text);
	ck_assert_uint_lt(image.len, 8192);
	ck_assert_int_eq(fgv_fatbin_ptx(image.bytes, image.len, FGV_FATBIN_ANY_SM, &texts), -E2BIG);
	text[512 << 10] = '\0';
	fatbin_fini(&image);
	fatbin_init(&image);
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 70, FGV_FATBIN_ZSTD, text);
	expect_text(text);
	free(text);
}
END_TEST

static bool mentions(unsigned sm)
{
	static const char *const words[] = {"one", "other"};

	return fgv_fatbin_mentions(image.bytes, image.len, sm, words, 2);
}

/* Words are looked for where the GPU may take its code from, and nowhere else. */
START_TEST(finds_words_in_what_is_used)
{
	fatbin_begin(&image);
	add(FGV_FATBIN_CUBIN, 70, FGV_FATBIN_LZ4, "code of another family, which has one");
	add(FGV_FATBIN_CUBIN, 90, FGV_FATBIN_LZ4, "code without any");
	add(FGV_FATBIN_PTX, 100, FGV_FATBIN_ZSTD, ".ptx for what is newer, with one");
	ck_assert(!mentions(90));
	ck_assert(mentions(75));
	ck_assert(mentions(100));
	ck_assert(mentions(FGV_FATBIN_ANY_SM));
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 80, FGV_FATBIN_RAW, ".ptx with the other");
	ck_assert(mentions(90));
	ck_assert(!mentions(60));
}
END_TEST

/* What can't be unpacked may have any word in it; nobody tries for long. */
START_TEST(may_be_in_what_is_too_much)
{
	uint64_t claim = (uint64_t)FGV_FATBIN_TEXT_MAX + 1;

	fatbin_begin(&image);
	add(FGV_FATBIN_CUBIN, 90, FGV_FATBIN_ZSTD, "code without any");
	ck_assert(!mentions(90));
	memcpy(image.bytes + 16 + 56, &claim, sizeof(claim));
	ck_assert(mentions(90));
}
END_TEST

START_TEST(refuses_a_wrong_claim)
{
	struct fgv_fatbin_texts texts;
	int delta = _i / 2 == 0 ? -1 : 1;
	uint64_t claim = strlen(text_a) + (uint64_t)(int64_t)delta;

	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 70, _i % 2 ? FGV_FATBIN_ZSTD : FGV_FATBIN_LZ4, text_a);
	memcpy(image.bytes + 16 + 56, &claim, sizeof(claim));
	ck_assert_int_eq(fgv_fatbin_ptx(image.bytes, image.len, FGV_FATBIN_ANY_SM, &texts),
			 -EINVAL);
}
END_TEST

/* All forms in one image of three containers. */
static void build_everything(void)
{
	fatbin_begin(&image);
	add(FGV_FATBIN_CUBIN, 90, FGV_FATBIN_RAW, "linked machine code");
	add(FGV_FATBIN_PTX, 70, FGV_FATBIN_RAW, text_a);
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 90, FGV_FATBIN_LZ4, text_a);
	fatbin_begin(&image);
	add(FGV_FATBIN_PTX, 90, FGV_FATBIN_ZSTD, text_b);
}

/* A copy whose end is the end of the heap block. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes, len);
	return copy;
}

static int read_and_free(const uint8_t *bytes, size_t len)
{
	struct fgv_fatbin_texts texts;
	int err = fgv_fatbin_ptx(bytes, len, FGV_FATBIN_ANY_SM, &texts);

	if (err == 0)
		fgv_fatbin_texts_free(&texts);
	return err;
}

START_TEST(survives_truncation_everywhere)
{
	size_t ends[3] = {0}, end_count = 0, at = 0, extent;

	build_everything();
	for (; at < image.len; at += extent) {
		ck_assert_int_eq(fgv_fatbin_extent(image.bytes + at, image.len - at, &extent), 0);
		ends[end_count++] = at + extent;
	}
	for (size_t len = 0; len <= image.len; len++) {
		uint8_t *copy = exact_copy(image.bytes, len);
		int whole = len == ends[0] || len == ends[1] || len == ends[2];

		ck_assert_int_eq(read_and_free(copy, len), whole ? 0 : -EINVAL);
		free(copy);
	}
}
END_TEST

/* Every byte of the image, set to values that have made readers stumble. */
START_TEST(survives_every_changed_byte)
{
	static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

	build_everything();
	for (size_t i = 0; i < image.len; i++) {
		for (size_t v = 0; v < sizeof(values); v++) {
			uint8_t *copy = exact_copy(image.bytes, image.len);

			copy[i] = values[v];
			read_and_free(copy, image.len);
			free(copy);
		}
	}
}
END_TEST

START_TEST(survives_random_corruption)
{
	unsigned seed = 20250101;

	build_everything();
	for (int round = 0; round < 20000; round++) {
		uint8_t *copy = exact_copy(image.bytes, image.len);
		int changes = 1 + rand_r(&seed) % 8;

		while (changes-- > 0)
			copy[(size_t)rand_r(&seed) % image.len] = (uint8_t)rand_r(&seed);
		read_and_free(copy, image.len);
		free(copy);
	}
}
END_TEST

/* Lengths that overflow when they are added to something. */
START_TEST(survives_huge_lengths)
{
	static const size_t fields[] = {8, 16 + 8, 16 + 56};
	static const uint64_t huge[] = {UINT64_MAX,	 UINT64_MAX - 7, UINT64_MAX - 15,
					UINT64_MAX - 79, INT64_MAX,	 UINT32_MAX};

	for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
		for (size_t h = 0; h < sizeof(huge) / sizeof(huge[0]); h++) {
			fatbin_fini(&image);
			fatbin_begin(&image);
			add(FGV_FATBIN_PTX, 70, FGV_FATBIN_ZSTD, text_a);
			memcpy(image.bytes + fields[f], &huge[h], 8);
			ck_assert_int_lt(read_and_free(image.bytes, image.len), 0);
		}
	}
}
END_TEST

START_TEST(refuses_more_containers_than_it_counts)
{
	unsigned containers;

	for (unsigned i = 0; i < FGV_FATBIN_CONTAINERS_MAX; i++)
		fatbin_begin(&image);
	ck_assert_int_eq(fgv_fatbin_check(image.bytes, image.len, &containers), 0);
	ck_assert_uint_eq(containers, FGV_FATBIN_CONTAINERS_MAX);
	fatbin_begin(&image);
	ck_assert_int_eq(fgv_fatbin_check(image.bytes, image.len, &containers), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fatbin");
	TCase *valid = tcase_create("valid"), *hostile = tcase_create("hostile");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(valid, setup, teardown);
	tcase_add_loop_test(valid, reads_every_packing, 0, 3);
	tcase_add_test(valid, takes_the_highest_sm);
	tcase_add_test(valid, prefers_what_runs_everywhere);
	tcase_add_test(valid, takes_what_the_gpu_can_run);
	tcase_add_test(valid, takes_what_one_gpu_alone_can_run);
	tcase_add_test(valid, reads_all_containers);
	tcase_add_test(valid, machine_code_alone_is_no_text);
	tcase_add_checked_fixture(hostile, setup, teardown);
	tcase_set_timeout(hostile, 120);
	tcase_add_test(valid, finds_words_in_what_is_used);
	tcase_add_test(hostile, refuses_a_bomb);
	tcase_add_test(hostile, refuses_what_unpacks_to_too_much);
	tcase_add_test(hostile, may_be_in_what_is_too_much);
	tcase_add_loop_test(hostile, refuses_a_wrong_claim, 0, 4);
	tcase_add_test(hostile, survives_truncation_everywhere);
	tcase_add_test(hostile, survives_every_changed_byte);
	tcase_add_test(hostile, survives_random_corruption);
	tcase_add_test(hostile, survives_huge_lengths);
	tcase_add_test(hostile, refuses_more_containers_than_it_counts);
	suite_add_tcase(suite, valid);
	suite_add_tcase(suite, hostile);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
