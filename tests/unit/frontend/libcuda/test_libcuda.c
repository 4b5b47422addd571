/*
 * The driver's face, as far as it needs no GPU: the digest by which runtimes check it, which
 * symbols there are, and what is said of them.
 */
#define _GNU_SOURCE
#include <check.h>
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/gpu/cuda_driver.h"
#include "frontend/libcuda/integrity.h"
#include "frontend/libcuda/md2.h"

static void check_hex(const uint8_t *bytes, const char *wanted)
{
	char text[2 * FGV_MD2_BYTES + 1];

	for (int i = 0; i < FGV_MD2_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	ck_assert_str_eq(text, wanted);
}

/* RFC 1319, A.5 */
START_TEST(digests)
{
	static const struct {
		const char *text;
		const char *digest;
	} vectors[] = {
		{"", "8350e5a3e24c153df2275c9f80692773"},
		{"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
		{"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
		{"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
		{"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		 "da33def2a42df13975352846c30338cd"},
		{"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		 "d5976f79d83d3a0dc9806c3c66f3efd8"},
	};
	struct fgv_md2 md2;
	uint8_t digest[FGV_MD2_BYTES];

	for (unsigned i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		fgv_md2_init(&md2);
		fgv_md2_add(&md2, vectors[i].text, strlen(vectors[i].text));
		fgv_md2_finish(&md2, digest);
		check_hex(digest, vectors[i].digest);
	}
}
END_TEST

/* One answer of a real driver that was published, and the two that never change. */
START_TEST(answers)
{
	struct fgv_integrity asked = {
		.driver_version = 0x2f30,
		.version = 12082,
		.process = 0x2fa423,
		.thread = 0xf79c1000,
		.runtime_table = 0x7ffff6958240,
		.table = 0x7ffff6958220,
		.function = 0x7ffff2aaf4a0,
		.seconds = 0x682b9cee,
	};
	static const uint32_t uuid[4] = {0x8a2bfe9a, 0x382d25ac, 0xc5ae37ea, 0x5f32716d};
	struct fgv_integrity_device device = {.pci_bus = 2};
	uint8_t answer[FGV_INTEGRITY_BYTES];

	memcpy(device.uuid, uuid, sizeof(uuid));
	fgv_integrity_answer(&asked, &device, 1, answer);
	check_hex(answer, "4448a171b026cef76c8c3e39051b02dd");
	asked.version = 13000;
	fgv_integrity_answer(&asked, &device, 1, answer);
	check_hex(answer, "5c67cb031c184133e8d14c1faa83d38e");
	asked.version = 13001;
	fgv_integrity_answer(&asked, &device, 1, answer);
	check_hex(answer, "5c67cb031c184118e8d14c1faa83d38e");
}
END_TEST

enum thread { LEGACY, PER_THREAD };

static const struct {
	const char *name;
	int version;
	enum thread thread;
	const char *symbol;
	int is_implemented, is_found;
} symbols[] = {
#define SYMBOL(name, version, thread, symbol, is_implemented, is_found)                            \
	{name, version, thread, #symbol, is_implemented, is_found},
#include "frontend/libcuda/names.inc"
};

/* All that the toolkit declares, in all forms, is there, and what is not implemented says so. */
START_TEST(all_symbols_are_there)
{
	Dl_info info;

	ck_assert_uint_gt(sizeof(symbols) / sizeof(*symbols), 630);
	for (unsigned i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		CUresult (*symbol)(void) =
			(CUresult(*)(void))dlsym(RTLD_DEFAULT, symbols[i].symbol);

		ck_assert_msg(symbol != NULL, "%s is missing", symbols[i].symbol);
		ck_assert(dladdr((void *)symbol, &info));
		ck_assert_msg(strstr(info.dli_fname, "libcuda.so"), "%s is in %s",
			      symbols[i].symbol, info.dli_fname);
		if (!symbols[i].is_implemented)
			ck_assert_int_eq(symbol(), CUDA_ERROR_NOT_INITIALIZED);
	}
}
END_TEST

/* Each is found under its name at its version, or not at all: never another form of it. */
START_TEST(all_names_are_found)
{
	for (unsigned i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		cuuint64_t flags = symbols[i].thread == PER_THREAD
					   ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
					   : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
		CUdriverProcAddressQueryResult status;
		void *found;

		ck_assert_int_eq(cuGetProcAddress(symbols[i].name, &found, symbols[i].version,
						  flags, &status),
				 CUDA_SUCCESS);
		if (symbols[i].is_found)
			ck_assert_msg(found == dlsym(RTLD_DEFAULT, symbols[i].symbol), "%s %d",
				      symbols[i].name, symbols[i].version);
		else
			ck_assert_msg(!found && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
				      "%s %d", symbols[i].name, symbols[i].version);
	}
}
END_TEST

START_TEST(nothing_else_is)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	ck_assert_ptr_ne(library, NULL);
	ck_assert_ptr_eq(dlsym(library, "fgv_driver_symbol"), NULL);
	dlclose(library);
}
END_TEST

/* The host must not take it for NVIDIA's, and ask itself. */
START_TEST(the_host_knows_it)
{
	char why[200] = "";

	ck_assert_ptr_eq(fgv_cuda_driver_get(why, sizeof(why)), NULL);
	ck_assert_msg(strstr(why, "FairGV's own"), "%s", why);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: libcuda");
	TCase *tests = tcase_create("libcuda");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, digests);
	tcase_add_test(tests, answers);
	tcase_add_test(tests, all_symbols_are_there);
	tcase_add_test(tests, all_names_are_found);
	tcase_add_test(tests, nothing_else_is);
	tcase_add_test(tests, the_host_knows_it);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
