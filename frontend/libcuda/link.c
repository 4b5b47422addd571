/*
 * Linking at run time. The options of a linking stay until it is destroyed, since some are places
 * for results.
 */
#include "frontend/cuda/module/link.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/libcuda/driver.h"
#include "frontend/libcuda/jit.h"

/* Those that the host's linker is told; others are results, hints or of the driver's own. */
static const CUjit_option told[] = {
	CU_JIT_MAX_REGISTERS,	    CU_JIT_THREADS_PER_BLOCK, CU_JIT_OPTIMIZATION_LEVEL,
	CU_JIT_GENERATE_DEBUG_INFO, CU_JIT_LOG_VERBOSE,	      CU_JIT_GENERATE_LINE_INFO,
};

/* The list of options is copied, the values stay the program's. */
struct kept {
	struct fgv_jit jit;
	CUjit_option options[];
};

static struct kept *keep(const struct fgv_jit *jit)
{
	struct kept *kept = malloc(sizeof(*kept) + jit->count * sizeof(kept->options[0]));

	if (!kept)
		return NULL;
	if (jit->count)
		memcpy(kept->options, jit->options, jit->count * sizeof(kept->options[0]));
	kept->jit = (struct fgv_jit){jit->count, kept->options, jit->values};
	return kept;
}

static CUresult create(const struct fgv_jit *jit, CUlinkState *state)
{
	struct fgv_link_option options[sizeof(told) / sizeof(told[0])];
	struct kept *kept;
	unsigned count = 0;
	uint32_t value;
	CUresult res = fgv_jit_check(jit);

	if (res)
		return res;
	if (fgv_jit_number(jit, CU_JIT_GLOBAL_SYMBOL_COUNT, &value) && value)
		return FGV_UNSUPPORTED("addresses of the program's own for symbols");
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		if (fgv_jit_number(jit, told[i], &value))
			options[count++] = (struct fgv_link_option){(uint32_t)told[i], value};
	}
	kept = keep(jit);
	res = kept ? fgv_link_create(options, count, kept, state) : CUDA_ERROR_OUT_OF_MEMORY;
	if (res)
		free(kept);
	return res;
}

FGV_EXPORT CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options,
				    void **optionValues, CUlinkState *stateOut)
{
	const struct fgv_jit jit = {numOptions, options, optionValues};

	return FGV_CALL(create(&jit, stateOut));
}

FGV_EXPORT CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options,
				 void **optionValues, CUlinkState *stateOut)
{
	return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

/* What the options ask of one part is a hint. */
static CUresult add_data(CUlinkState state, CUjitInputType type, const void *data, size_t size,
			 const char *name, const struct fgv_jit *jit)
{
	CUresult res = fgv_jit_check(jit);

	return res ? res : fgv_link_add(state, type, data, size, name);
}

FGV_EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data,
				     size_t size, const char *name, unsigned int numOptions,
				     CUjit_option *options, void **optionValues)
{
	const struct fgv_jit jit = {numOptions, options, optionValues};

	return FGV_CALL(add_data(state, type, data, size, name, &jit));
}

FGV_EXPORT CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
				  const char *name, unsigned int numOptions, CUjit_option *options,
				  void **optionValues)
{
	return cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

static CUresult add_file(CUlinkState state, CUjitInputType type, const char *path,
			 const struct fgv_jit *jit)
{
	CUresult res = fgv_jit_check(jit);

	return res ? res : fgv_link_add_file(state, type, path);
}

FGV_EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
				     unsigned int numOptions, CUjit_option *options,
				     void **optionValues)
{
	const struct fgv_jit jit = {numOptions, options, optionValues};

	return FGV_CALL(add_file(state, type, path, &jit));
}

FGV_EXPORT CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
				  unsigned int numOptions, CUjit_option *options,
				  void **optionValues)
{
	return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}

/* A failure that the host says nothing of is said by its code. */
static CUresult complete(CUlinkState state, void **image, size_t *len)
{
	struct fgv_link_log log;
	const struct kept *kept;
	const char *errors = log.errors;
	void *owner;
	CUresult res = fgv_link_owner(state, &owner);

	if (res)
		return res;
	kept = owner;
	res = fgv_link_complete(state, image, len, &log);
	if (res && !*errors)
		cuGetErrorString(res, &errors);
	fgv_jit_tell(&kept->jit, errors, log.info);
	return res;
}

FGV_EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	return FGV_CALL(complete(state, cubinOut, sizeOut));
}

static CUresult destroy(CUlinkState state)
{
	void *kept;
	CUresult res = fgv_link_destroy(state, &kept);

	if (!res)
		free(kept);
	return res;
}

FGV_EXPORT CUresult cuLinkDestroy(CUlinkState state)
{
	return FGV_CALL_ANYWHERE(destroy(state));
}
