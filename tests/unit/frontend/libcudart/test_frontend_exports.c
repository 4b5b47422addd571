/*
 * What the library exports: exactly the names of the toolkit's own, under its version
 * node, and nothing of FairGV's. And what a stub does.
 */
#define _GNU_SOURCE
#include "tests/unit/frontend/libcudart/test_frontend.h"

#include <dlfcn.h>

#define NODE	"libcudart.so.13"
#define NODE_12 "libcudart.so.12"

static const struct {
	const char *node;
	const char *name;
} names[] = {
#define NAME(x)	   {NODE, #x},
#define NAME_12(x) {NODE_12, #x},
#include "frontend/libcudart/names.h"
#undef NAME
#undef NAME_12
};

START_TEST(all_names_are_there)
{
	Dl_info info;

	ck_assert_uint_gt(sizeof(names) / sizeof(names[0]), 800);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *symbol = dlvsym(RTLD_DEFAULT, names[i].name, names[i].node);

		ck_assert_msg(symbol != NULL, "%s is missing in %s", names[i].name, names[i].node);
		ck_assert(dladdr(symbol, &info));
		ck_assert_msg(strstr(info.dli_fname, "libcudart.so"), "%s is in %s", names[i].name,
			      info.dli_fname);
	}
}
END_TEST

START_TEST(nothing_else_is)
{
	void *library = dlopen(NODE, RTLD_NOW | RTLD_NOLOAD);

	ck_assert_ptr_ne(library, NULL);
	ck_assert_ptr_eq(dlsym(library, "fgv_error_from"), NULL);
	ck_assert_ptr_eq(dlsym(library, "fgv_unsupported_call"), NULL);
	dlclose(library);
}
END_TEST

/* What faces share is another library's, for them alone. */
START_TEST(the_core_is_private)
{
	void *library = dlopen("libfairgv.so.0", RTLD_NOW | RTLD_NOLOAD);
	Dl_info info;
	void *symbol;

	ck_assert_ptr_ne(library, NULL);
	symbol = dlvsym(library, "fgv_lane_begin", "FAIRGV_PRIVATE");
	ck_assert_ptr_ne(symbol, NULL);
	ck_assert(dladdr(symbol, &info));
	ck_assert_ptr_ne(strstr(info.dli_fname, "libfairgv.so"), NULL);
	ck_assert_ptr_eq(dlsym(library, "fgv_log_init"), NULL);
	dlclose(library);
}
END_TEST

START_TEST(stubs)
{
	setenv("FAIRGV_SOCKET", "/nowhere", 1);
	EXPECT(cudaGraphicsUnregisterResource(NULL), cudaErrorNotSupported);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: exports");
	TCase *tests = tcase_create("exports");

	tcase_add_test(tests, all_names_are_there);
	tcase_add_test(tests, nothing_else_is);
	tcase_add_test(tests, the_core_is_private);
	tcase_add_test(tests, stubs);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
