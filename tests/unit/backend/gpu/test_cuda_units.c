/*
 * Multiprocessors of a session's own, with a driver of the test's: how a GPU is divided, which
 * groups a session's context has, and what happens when the driver refuses.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/cuda_internal.h"
#include "backend/shared.h"
#include "common/util.h"

#define GREEN	((CUgreenCtx)0x11)
#define CONTEXT ((CUcontext)0x22)
#define SMS	132
#define GROUPS	16

static struct {
	unsigned least; /* multiprocessors of a group, as the driver says */
	unsigned major;
	unsigned groups;
	CUresult split, create, set;
	unsigned asked_each, destroyed, flags;
	uint64_t described; /* groups */
	CUcontext current;
} said;

static struct fgv_cuda_driver driver;
static struct cuda cuda;

static CUresult device_resource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	(void)device;
	ck_assert_int_eq(type, CU_DEV_RESOURCE_TYPE_SM);
	memset(resource, 0, sizeof(*resource));
	resource->sm.smCount = SMS;
	resource->sm.minSmPartitionSize = said.least;
	return CUDA_SUCCESS;
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	(void)device;
	ck_assert_int_eq(attribute, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	*value = (int)said.major;
	return CUDA_SUCCESS;
}

/* A group's number is in its count of multiprocessors. */
static CUresult split_sms(CUdevResource *result, unsigned *count, const CUdevResource *input,
			  CUdevResource *remaining, unsigned flags, unsigned least)
{
	(void)remaining;
	ck_assert_uint_eq(input->sm.smCount, SMS);
	ck_assert_uint_eq(flags, 0);
	said.asked_each = least;
	if (said.split != CUDA_SUCCESS)
		return said.split;
	*count = result ? (unsigned)fgv_min_u64(*count, said.groups) : said.groups;
	for (unsigned i = 0; result && i < *count; i++)
		result[i].sm.smCount = i;
	return CUDA_SUCCESS;
}

static CUresult describe_resource(CUdevResourceDesc *description, CUdevResource *groups,
				  unsigned count)
{
	said.described = 0;
	for (unsigned i = 0; i < count; i++)
		said.described |= UINT64_C(1) << groups[i].sm.smCount;
	*description = (CUdevResourceDesc)0x33;
	return CUDA_SUCCESS;
}

static CUresult green_create(CUgreenCtx *green, CUdevResourceDesc description, CUdevice device,
			     unsigned flags)
{
	(void)device;
	ck_assert_ptr_eq(description, (CUdevResourceDesc)0x33);
	said.flags = flags;
	*green = GREEN;
	return said.create;
}

static CUresult green_destroy(CUgreenCtx green)
{
	ck_assert_ptr_eq(green, GREEN);
	said.destroyed++;
	return CUDA_SUCCESS;
}

static CUresult green_context(CUcontext *context, CUgreenCtx green)
{
	ck_assert_ptr_eq(green, GREEN);
	*context = CONTEXT;
	return CUDA_SUCCESS;
}

static CUresult context_set(CUcontext context)
{
	if (said.set == CUDA_SUCCESS)
		said.current = context;
	return said.set;
}

static void setup(void)
{
	said = (typeof(said)){.least = 8, .major = 9, .groups = GROUPS};
	driver = (struct fgv_cuda_driver){
		.device_resource = device_resource,
		.device_attribute = device_attribute,
		.split_sms = split_sms,
		.describe_resource = describe_resource,
		.green_create = green_create,
		.green_destroy = green_destroy,
		.green_context = green_context,
		.context_set = context_set,
	};
	cuda = (struct cuda){.base.ops = &fgv_gpu_cuda, .driver = &driver};
	cuda.legacy.next = cuda.legacy.previous = &cuda.legacy;
}

START_TEST(the_context_has_the_groups_of_the_set)
{
	ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 0xfff0), CUDA_SUCCESS);
	ck_assert_uint_eq(said.described, 0xfff0);
	ck_assert_uint_eq(said.asked_each, 8);
	ck_assert_uint_eq(said.flags, CU_GREEN_CTX_DEFAULT_STREAM);
	ck_assert_ptr_eq(said.current, CONTEXT);
	ck_assert_ptr_eq(cuda.context, CONTEXT);
	ck_assert_ptr_eq(cuda.green, GREEN);
	/* A thread that takes over has the same. */
	said.current = NULL;
	ck_assert_int_eq(fgv_gpu_cuda.use(&cuda.base), CUDA_SUCCESS);
	ck_assert_ptr_eq(said.current, CONTEXT);
	ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 0xf), CUDA_ERROR_NOT_PERMITTED);
}
END_TEST

START_TEST(an_earlier_driver_does_not_say_how_small_groups_are)
{
	static const unsigned majors[][2] = {{6, 1}, {7, 2}, {8, 4}, {9, 8}, {10, 8}};

	for (size_t i = 0; i < FGV_ARRAY_LEN(majors); i++) {
		setup();
		said.least = 0;
		said.major = majors[i][0];
		ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 1), CUDA_SUCCESS);
		ck_assert_uint_eq(said.asked_each, majors[i][1]);
	}
}
END_TEST

START_TEST(groups_that_are_not_there_are_refused)
{
	said.groups = 4;
	ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 0x18),
			 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	ck_assert_ptr_null(cuda.green);
	ck_assert_ptr_null(said.current);
}
END_TEST

START_TEST(a_session_with_streams_has_begun)
{
	struct fgv_gpu_stream stream = {.next = &cuda.legacy, .previous = &cuda.legacy};

	cuda.legacy.next = cuda.legacy.previous = &stream;
	ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 1), CUDA_ERROR_NOT_PERMITTED);
}
END_TEST

START_TEST(what_the_driver_refuses_leaves_nothing)
{
	said.split = CUDA_ERROR_INVALID_VALUE;
	ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 1), CUDA_ERROR_INVALID_VALUE);
	said.split = CUDA_SUCCESS;
	said.create = CUDA_ERROR_OUT_OF_MEMORY;
	ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 1), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(said.destroyed, 0);
	said.create = CUDA_SUCCESS;
	said.set = CUDA_ERROR_INVALID_CONTEXT;
	ck_assert_int_eq(fgv_cuda_set_units(&cuda.base, 1), CUDA_ERROR_INVALID_CONTEXT);
	ck_assert_uint_eq(said.destroyed, 1);
	ck_assert_ptr_null(cuda.green);
	ck_assert_ptr_null(cuda.context);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda units");
	TCase *tcase = tcase_create("units");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, the_context_has_the_groups_of_the_set);
	tcase_add_test(tcase, an_earlier_driver_does_not_say_how_small_groups_are);
	tcase_add_test(tcase, groups_that_are_not_there_are_refused);
	tcase_add_test(tcase, a_session_with_streams_has_begun);
	tcase_add_test(tcase, what_the_driver_refuses_leaves_nothing);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
