/*
 * Digests of images: what they are of, and that pieces and threads make no difference.
 */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "common/digest.h"

#define LEN (2 * (size_t)FGV_DIGEST_LEAF + 12345)

static uint8_t *image;

static void setup(void)
{
	uint32_t value = 1;

	image = malloc(LEN);
	ck_assert_ptr_nonnull(image);
	for (size_t i = 0; i < LEN; i++) {
		value = value * 1664525 + 1013904223;
		image[i] = (uint8_t)(value >> 24);
	}
}

static void teardown(void)
{
	free(image);
}

static struct fgv_digest digest_of(const struct iovec *pieces, size_t count, uint64_t len)
{
	struct fgv_digest leaves[3];

	ck_assert_uint_le(fgv_digest_leaves(len), 3);
	for (size_t i = 0; i < fgv_digest_leaves(len); i++)
		leaves[i] = fgv_digest_leaf(pieces, count, len, i);
	return fgv_digest_root(leaves, len);
}

static struct fgv_digest digest_of_image(size_t len)
{
	const struct iovec piece = {image, len};

	return digest_of(&piece, 1, len);
}

static bool same(struct fgv_digest a, struct fgv_digest b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/* FIPS 180-2, appendix B.1. */
START_TEST(a_leaf_is_sha256)
{
	static const uint8_t expected[FGV_DIGEST_BYTES] = {
		0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
		0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
		0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	struct fgv_digest digest = fgv_digest_bytes("abc", 3);

	ck_assert_mem_eq(digest.bytes, expected, sizeof(expected));
}
END_TEST

START_TEST(pieces_make_no_difference)
{
	struct iovec pieces[] = {
		{image, 1},
		{image + 1, 0},
		{image + 1, FGV_DIGEST_LEAF - 1},
		{image + FGV_DIGEST_LEAF, 100},
		{image + FGV_DIGEST_LEAF + 100, LEN - FGV_DIGEST_LEAF - 100},
	};
	const struct iovec whole = {image, LEN};

	ck_assert(same(digest_of(pieces, 5, LEN), digest_of_image(LEN)));
	ck_assert_uint_eq(fgv_digest_sample(pieces, 5, LEN), fgv_digest_sample(&whole, 1, LEN));
}
END_TEST

START_TEST(a_leaf_can_be_hashed_where_it_lies)
{
	const struct iovec whole = {image, LEN};

	ck_assert(same(fgv_digest_leaf(&whole, 1, LEN, 1),
		       fgv_digest_bytes(image + FGV_DIGEST_LEAF, FGV_DIGEST_LEAF)));
	ck_assert(same(fgv_digest_leaf(&whole, 1, LEN, 2),
		       fgv_digest_bytes(image + 2 * FGV_DIGEST_LEAF, 12345)));
}
END_TEST

START_TEST(each_byte_and_the_length_count)
{
	const size_t places[] = {0, FGV_DIGEST_LEAF - 1, FGV_DIGEST_LEAF, LEN - 1};
	struct fgv_digest first = digest_of_image(LEN);

	ck_assert(!same(first, digest_of_image(LEN - 1)));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		image[places[i]] ^= 1;
		ck_assert(!same(first, digest_of_image(LEN)));
		image[places[i]] ^= 1;
	}
	ck_assert(same(first, digest_of_image(LEN)));
}
END_TEST

/* Hashes of leaves that are the content of another image name that image, not this one. */
START_TEST(leaves_are_no_content)
{
	struct fgv_digest leaves[3];
	const struct iovec whole = {image, LEN}, inner = {leaves, sizeof(leaves)};

	for (size_t i = 0; i < 3; i++)
		leaves[i] = fgv_digest_leaf(&whole, 1, LEN, i);
	ck_assert(!same(digest_of(&inner, 1, sizeof(leaves)), fgv_digest_root(leaves, LEN)));
}
END_TEST

START_TEST(samples_are_of_the_whole_length)
{
	const struct iovec whole = {image, LEN};
	uint64_t first = fgv_digest_sample(&whole, 1, LEN);
	uint8_t probes[FGV_DIGEST_PROBES * FGV_DIGEST_PROBE_BYTES];

	for (unsigned i = 0; i < FGV_DIGEST_PROBES; i++) {
		size_t at = (size_t)fgv_digest_probe_at(LEN, i);

		ck_assert_uint_le(at + FGV_DIGEST_PROBE_BYTES, LEN);
		memcpy(probes + i * FGV_DIGEST_PROBE_BYTES, image + at, FGV_DIGEST_PROBE_BYTES);
	}
	ck_assert_uint_eq(fgv_digest_sample_of(probes, LEN), first);
	image[0] ^= 1;
	ck_assert_uint_ne(fgv_digest_sample(&whole, 1, LEN), first);
	image[0] ^= 1;
	image[fgv_digest_probe_at(LEN, FGV_DIGEST_PROBES - 1)] ^= 1;
	ck_assert_uint_ne(fgv_digest_sample(&whole, 1, LEN), first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("digest");
	TCase *tests = tcase_create("digest");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_leaf_is_sha256);
	tcase_add_test(tests, pieces_make_no_difference);
	tcase_add_test(tests, a_leaf_can_be_hashed_where_it_lies);
	tcase_add_test(tests, each_byte_and_the_length_count);
	tcase_add_test(tests, leaves_are_no_content);
	tcase_add_test(tests, samples_are_of_the_whole_length);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
