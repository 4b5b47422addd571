/*
 * What things are taken to cost on NVIDIA's GPUs, with a driver that is played here.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/cuda_internal.h"

#define MIB (1024ull * 1024)

static struct {
	CUresult status; /* of what is asked of arrays */
	size_t size, alignment;
	int arrays, mipmapped; /* there are */
	unsigned flags, levels;
} fake;

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	(void)device;
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = 132;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*value = 2048;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = 9;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *wanted)
{
	*array = (CUarray)&fake;
	fake.flags = wanted->Flags;
	fake.arrays++;
	return CUDA_SUCCESS;
}

static CUresult array_destroy(CUarray array)
{
	(void)array;
	fake.arrays--;
	return CUDA_SUCCESS;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs)
{
	needs->size = fake.size;
	needs->alignment = fake.alignment;
	return fake.status;
}

static CUresult array_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array,
				   CUdevice device)
{
	(void)array;
	(void)device;
	return requirements(needs);
}

static CUresult mipmapped_create(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
				 unsigned levels)
{
	*array = (CUmipmappedArray)&fake;
	fake.flags = wanted->Flags;
	fake.levels = levels;
	fake.mipmapped++;
	return CUDA_SUCCESS;
}

static CUresult mipmapped_destroy(CUmipmappedArray array)
{
	(void)array;
	fake.mipmapped--;
	return CUDA_SUCCESS;
}

static CUresult mipmapped_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs,
				       CUmipmappedArray array, CUdevice device)
{
	(void)array;
	(void)device;
	return requirements(needs);
}

static const struct fgv_cuda_driver driver = {
	.device_attribute = device_attribute,
	.array_create = array_create,
	.array_destroy = array_destroy,
	.array_requirements = array_requirements,
	.mipmapped_create = mipmapped_create,
	.mipmapped_destroy = mipmapped_destroy,
	.mipmapped_requirements = mipmapped_requirements,
};
static struct cuda cuda = {.driver = &driver};

static uint64_t cost_of(const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels, uint64_t texels)
{
	uint64_t bytes = texels;

	ck_assert_int_eq(fgv_cuda_array_cost(&cuda.base, wanted, levels, &bytes), CUDA_SUCCESS);
	/* Asking has left nothing behind, and took no memory. */
	ck_assert(!fake.arrays && !fake.mipmapped);
	ck_assert(fake.flags & CUDA_ARRAY3D_DEFERRED_MAPPING);
	return bytes;
}

static const CUDA_ARRAY3D_DESCRIPTOR layers = {
	.Width = 512,
	.Height = 1,
	.Depth = 16384,
	.Format = CU_AD_FORMAT_UNSIGNED_INT8,
	.NumChannels = 1,
	.Flags = CUDA_ARRAY3D_LAYERED,
};

START_TEST(arrays_by_the_driver)
{
	fake.size = 4096 * MIB - 5;
	fake.alignment = 65536;
	ck_assert_uint_eq(cost_of(&layers, 0, 8 * MIB), 4096 * MIB);
	ck_assert_uint_eq(cost_of(&layers, 3, 8 * MIB), 4096 * MIB);
	ck_assert_uint_eq(fake.levels, 3);
}
END_TEST

/* 512 times as much as its texels, as was measured. */
START_TEST(arrays_that_the_driver_says_nothing_of)
{
	fake.status = CUDA_ERROR_NOT_SUPPORTED;
	ck_assert_uint_ge(cost_of(&layers, 0, 8 * MIB), 512 * 8 * MIB);
	ck_assert_uint_ge(cost_of(&layers, 2, 8 * MIB), 2 * 512 * 8 * MIB);
	fake.status = CUDA_SUCCESS;
	fake.size = 0;
	ck_assert_uint_ge(cost_of(&layers, 0, 8 * MIB), 512 * 8 * MIB);
	ck_assert_uint_eq(cost_of(&(CUDA_ARRAY3D_DESCRIPTOR){.Width = 1ull << 40,
							     .Height = 1ull << 40,
							     .Depth = 1ull << 40},
				  0, 1ull << 40),
			  UINT64_MAX);
}
END_TEST

START_TEST(costs_of_the_rest)
{
	struct fgv_gpu_costs costs;
	struct fgv_gpu_module_cost module;
	char log[128];

	fgv_cuda_costs(&cuda.base, &costs);
	ck_assert_uint_eq(costs.threads, 132 * 2048);
	ck_assert_uint_eq(costs.granule, 2 * MIB);
	/* 4,096 of them took 2.2 GiB. */
	ck_assert_uint_ge(4096 * costs.stream, 2200 * MIB);
	ck_assert_int_eq(fgv_cuda_module_cost(&cuda.base, ".version 8.0\n.global .b8 x[3145728];",
					      38, NULL, 0, log, sizeof(log), &module),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(module.data, 4 * MIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_cost");
	TCase *tests = tcase_create("cuda_cost");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tests, arrays_by_the_driver);
	tcase_add_test(tests, arrays_that_the_driver_says_nothing_of);
	tcase_add_test(tests, costs_of_the_rest);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
