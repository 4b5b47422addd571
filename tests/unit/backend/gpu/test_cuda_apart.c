/*
 * Memory and addresses apart, and linking, as NVIDIA's driver is asked for them, with a driver that
 * is played here.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/cuda_internal.h"

#define UNIT (2ull << 20)

/* What the driver was asked last, and what it says. */
static struct {
	CUresult status;
	unsigned calls, failures; /* the first so many creations fail */
	CUmemAllocationProp prop;
	CUmemAccessDesc access;
	uint64_t numbers[4];
	unsigned options, parts;
	char *errors;
	bool is_destroyed;
} fake;

static CUresult memory_create(CUmemGenericAllocationHandle *handle, size_t bytes,
			      const CUmemAllocationProp *prop, unsigned long long flags)
{
	ck_assert_uint_eq(flags, 0);
	fake.prop = *prop;
	fake.numbers[0] = bytes;
	*handle = 77;
	return ++fake.calls <= fake.failures ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult memory_map(CUdeviceptr address, size_t bytes, size_t offset,
			   CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	ck_assert_uint_eq(flags, 0);
	fake.numbers[0] = address;
	fake.numbers[1] = bytes;
	fake.numbers[2] = offset;
	fake.numbers[3] = handle;
	return fake.status;
}

static CUresult memory_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *list,
			      size_t count)
{
	ck_assert_uint_eq(count, 1);
	fake.numbers[0] = address;
	fake.numbers[1] = bytes;
	fake.access = *list;
	return fake.status;
}

static CUresult address_reserve(CUdeviceptr *address, size_t bytes, size_t alignment,
				CUdeviceptr hint, unsigned long long flags)
{
	ck_assert_uint_eq(flags, 0);
	fake.numbers[0] = bytes;
	fake.numbers[1] = alignment;
	fake.numbers[2] = hint;
	*address = 0x7000000000ull;
	return fake.status;
}

static CUresult mem_free(CUdeviceptr address)
{
	(void)address;
	return CUDA_SUCCESS;
}

static CUresult stream_query(CUstream stream)
{
	(void)stream;
	return CUDA_ERROR_NOT_READY;
}

static CUresult link_create(unsigned count, CUjit_option *options, void **values,
			    CUlinkState *state)
{
	fake.options = count;
	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			fake.errors = values[i];
		if (options[i] == CU_JIT_MAX_REGISTERS)
			fake.numbers[0] = (uintptr_t)values[i];
	}
	*state = (CUlinkState)&fake;
	return CUDA_SUCCESS;
}

static CUresult link_add(CUlinkState state, CUjitInputType type, void *data, size_t len,
			 const char *name, unsigned count, CUjit_option *options, void **values)
{
	(void)state, (void)count, (void)options, (void)values;
	/* Of PTX the NUL counts. */
	ck_assert(type != CU_JIT_INPUT_PTX || len == strlen(data) + 1);
	ck_assert_str_eq(name, "part");
	fake.parts++;
	return CUDA_SUCCESS;
}

static CUresult link_complete(CUlinkState state, void **image, size_t *len)
{
	static char made[] = "machine code";

	(void)state;
	*image = made;
	*len = sizeof(made);
	if (fake.status != CUDA_SUCCESS)
		strcpy(fake.errors, "no such symbol");
	return fake.status;
}

static CUresult link_destroy(CUlinkState state)
{
	(void)state;
	fake.is_destroyed = true;
	return CUDA_SUCCESS;
}

static const struct fgv_cuda_driver driver = {
	.memory_create = memory_create,
	.memory_map = memory_map,
	.memory_access = memory_access,
	.address_reserve = address_reserve,
	.mem_free = mem_free,
	.stream_query = stream_query,
	.link_create = link_create,
	.link_add = link_add,
	.link_complete = link_complete,
	.link_destroy = link_destroy,
};
static struct cuda cuda;

static void setup(void)
{
	memset(&fake, 0, sizeof(fake));
	cuda = (struct cuda){.driver = &driver, .device = 3};
	cuda.legacy.next = cuda.legacy.previous = &cuda.legacy;
}

/* Memory of this device, for no other process, and what was put off is freed before it fails. */
START_TEST(makes_memory)
{
	struct fgv_gpu_memory *memory;

	ck_assert_int_eq(fgv_cuda_memory_create(&cuda.base, UNIT, &memory), CUDA_SUCCESS);
	ck_assert_uint_eq((uintptr_t)memory, 77);
	ck_assert_int_eq(fake.prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
	ck_assert_int_eq(fake.prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	ck_assert_int_eq(fake.prop.location.id, 3);
	fake.calls = 0;
	fake.failures = 1;
	ck_assert_int_eq(fgv_cuda_memory_create(&cuda.base, UNIT, &memory),
			 CUDA_ERROR_OUT_OF_MEMORY);
	cuda.legacy.is_busy = true;
	ck_assert_int_eq(fgv_cuda_discard(&cuda, GARBAGE_MEMORY, 4096, UNIT), CUDA_SUCCESS);
	fake.calls = 0;
	ck_assert_int_eq(fgv_cuda_memory_create(&cuda.base, UNIT, &memory), CUDA_SUCCESS);
	ck_assert_uint_eq(fake.calls, 2);
}
END_TEST

START_TEST(maps_it)
{
	uint64_t address;

	ck_assert_int_eq(fgv_cuda_address_reserve(&cuda.base, 8 * UNIT, 4 * UNIT, 99, &address),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(address, 0x7000000000ull);
	ck_assert(fake.numbers[0] == 8 * UNIT && fake.numbers[1] == 4 * UNIT &&
		  fake.numbers[2] == 99);
	ck_assert_int_eq(fgv_cuda_memory_map(&cuda.base, address, 2 * UNIT, UNIT,
					     (struct fgv_gpu_memory *)77),
			 CUDA_SUCCESS);
	ck_assert(fake.numbers[0] == address && fake.numbers[1] == 2 * UNIT &&
		  fake.numbers[2] == UNIT && fake.numbers[3] == 77);
	ck_assert_int_eq(
		fgv_cuda_memory_access(&cuda.base, address, UNIT, CU_MEM_ACCESS_FLAGS_PROT_READ),
		CUDA_SUCCESS);
	ck_assert_int_eq(fake.access.flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	ck_assert_int_eq(fake.access.location.id, 3);
	fake.access = (CUmemAccessDesc){.flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
	ck_assert_int_eq(fgv_cuda_memory_unview(&cuda.base, address, UNIT), CUDA_SUCCESS);
	ck_assert_int_eq(fake.access.flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	ck_assert_int_eq(fake.access.location.id, 3);
}
END_TEST

/* The image is a copy, as the driver's goes with its linker, which goes also after a failure. */
START_TEST(links)
{
	const struct fgv_gpu_link_input inputs[] = {
		{CU_JIT_INPUT_PTX, "part", ".version 7.0", 12},
		{CU_JIT_INPUT_CUBIN, "part", "\177ELF....", 8},
	};
	const CUjit_option options[] = {CU_JIT_MAX_REGISTERS};
	const uint32_t values[] = {32};
	char errors[64] = "", info[64] = "";
	const struct fgv_gpu_link what = {
		.inputs = inputs,
		.inputs_count = 2,
		.options = options,
		.values = values,
		.options_count = 1,
		.errors = errors,
		.info = info,
		.log_len = sizeof(errors),
	};
	void *image;
	size_t len;

	ck_assert_int_eq(fgv_cuda_link(&cuda.base, &what, &image, &len), CUDA_SUCCESS);
	ck_assert_uint_eq(len, sizeof("machine code"));
	ck_assert_str_eq(image, "machine code");
	free(image);
	ck_assert(fake.parts == 2 && fake.options == 5 && fake.numbers[0] == 32);
	ck_assert(fake.is_destroyed);
	fake.is_destroyed = false;
	fake.status = CUDA_ERROR_UNKNOWN;
	ck_assert_int_eq(fgv_cuda_link(&cuda.base, &what, &image, &len), CUDA_ERROR_UNKNOWN);
	ck_assert_str_eq(errors, "no such symbol");
	ck_assert(fake.is_destroyed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_apart");
	TCase *tests = tcase_create("cuda_apart");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, makes_memory);
	tcase_add_test(tests, maps_it);
	tcase_add_test(tests, links);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
