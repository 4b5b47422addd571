/*
 * Reading configuration files: whatever their length, up to the bound.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/config/text.h"
#include "common/util.h"

/* Files of any length up to the longest one are read whole, and none that is longer. */
START_TEST(loads_any_length)
{
	static const size_t lengths[] = {0,    1,    4094,  4095,    4096,
					 4097, 8191, 65536, 1 << 20, (1 << 20) + 1};
	char path[] = "/tmp/fairgv-config-XXXXXX", *text = NULL;
	char *content = malloc(2 << 20);
	int fd = mkstemp(path);

	ck_assert_ptr_nonnull(content);
	ck_assert_int_ge(fd, 0);
	for (size_t i = 0; i < FGV_ARRAY_LEN(lengths); i++) {
		size_t len = lengths[i];

		for (size_t at = 0; at < len; at++)
			content[at] = (char)('a' + at % 23);
		ck_assert_int_eq(pwrite(fd, content, len, 0), len);
		ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
		if (len > 1 << 20) {
			ck_assert_int_eq(fgv_config_text_load(path, &text), -EFBIG);
			continue;
		}
		ck_assert_int_eq(fgv_config_text_load(path, &text), 0);
		ck_assert_uint_eq(strlen(text), len);
		ck_assert_int_eq(memcmp(text, content, len), 0);
		free(text);
	}
	close(fd);
	unlink(path);
	free(content);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text");
	TCase *tcase = tcase_create("text");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, loads_any_length);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
