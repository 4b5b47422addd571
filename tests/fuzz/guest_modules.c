/* What the program does with modules and their kernels. */
#include "tests/fuzz/guest_program.h"

#include <string.h>
#include "common/util.h"

/* What begins as a fat binary does, and is none. */
static const uint64_t container[6] = {0xba55ed50, 32};

static const char text[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
			   ".global .managed .align 4 .u32 m[16];\n.global .managed .u32 n[16];\n"
			   ".visible .entry a(.param .u64 p)\n{\nret;\n}\n";

static const char *draw_name(void)
{
	static const char *const names[] = {"a", "b", "m", "n", "none"};

	return names[guest_draw() % FGV_ARRAY_LEN(names)];
}

static void ask_module(CUmodule module)
{
	CUfunction function, all[8];
	CUdeviceptr address;
	unsigned count;
	size_t size;

	if (!cuModuleGetFunction(&function, module, draw_name()))
		program.function = function;
	if (!cuModuleGetGlobal_v2(&address, &size, module, draw_name()))
		cuMemcpyDtoH_v2(program.buffer, address, fgv_min_u64(size, BUFFER));
	if (!cuModuleGetFunctionCount(&count, module))
		cuModuleEnumerateFunctions(all, 8, module);
}

void guest_load_module(void)
{
	CUmodule module;

	if (guest_draw() % 2 &&
	    !cuModuleLoadData(&module, guest_draw() % 2 ? text : (const void *)container))
		guest_keep(MODULE, FROM(module));
	module = TO(CUmodule, guest_pick(MODULE));
	if (module)
		ask_module(module);
}

void guest_load_library(void)
{
	CUlibrary library;
	CUkernel kernel, all[8];
	CUfunction function;
	CUmodule module;
	CUdeviceptr address;
	unsigned count;
	size_t size;

	if (guest_draw() % 2 &&
	    !cuLibraryLoadData(&library, guest_draw() % 2 ? text : (const void *)container, NULL,
			       NULL, 0, NULL, NULL, 0))
		guest_keep(LIBRARY, FROM(library));
	library = TO(CUlibrary, guest_pick(LIBRARY));
	if (!library)
		return;
	if (!cuLibraryGetKernel(&kernel, library, draw_name()) &&
	    !cuKernelGetFunction(&function, kernel))
		program.function = function;
	cuLibraryGetGlobal(&address, &size, library, draw_name());
	if (!cuLibraryGetManaged(&address, &size, library, draw_name()) && size)
		memset(TO(void *, address), 1, 1);
	if (!cuLibraryGetKernelCount(&count, library))
		cuLibraryEnumerateKernels(all, 8, library);
	if (!cuLibraryGetModule(&module, library))
		ask_module(module);
}

static size_t no_shared(int threads)
{
	return (size_t)threads;
}

void guest_ask_function(void)
{
	CUlaunchConfig config = {.gridDimX = 2,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 32,
				 .blockDimY = 1,
				 .blockDimZ = 1};
	CUfunction function = program.function;
	int value, grid, block;
	size_t offset, size;

	if (!function)
		return;
	cuFuncGetAttribute(&value, (CUfunction_attribute)(guest_draw() % 18), function);
	cuFuncSetAttribute(function, (CUfunction_attribute)(guest_draw() % 18), guest_draw() * 64);
	cuFuncGetParamInfo(function, guest_draw(), &offset, &size);
	cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, guest_draw() * 4,
						    guest_draw_len());
	cuOccupancyMaxPotentialBlockSize(&grid, &block, function,
					 guest_draw() % 2 ? no_shared : NULL, guest_draw_len(),
					 guest_draw() * 4);
	cuOccupancyAvailableDynamicSMemPerBlock(&size, function, guest_draw(), guest_draw() * 4);
	cuOccupancyMaxActiveClusters(&value, function, &config);
	cuOccupancyMaxPotentialClusterSize(&value, function, &config);
}

/* As many arguments as the host may say, each as long as a message. */
void guest_launch(void)
{
	CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
				     .value.clusterDim = {2, 1, 1}};
	CUlaunchConfig config = {.gridDimX = guest_draw() + 1u,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 4 * guest_draw() + 1u,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = guest_pick_stream(),
				 .attrs = &cluster,
				 .numAttrs = guest_draw() % 2};
	size_t len = BUFFER;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, program.buffer,
			 CU_LAUNCH_PARAM_BUFFER_SIZE, &len, CU_LAUNCH_PARAM_END};
	CUfunction function = program.function;

	if (!function)
		return;
	switch (guest_draw() % 4) {
	case 0:
		cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, guest_draw(), guest_pick_stream(), NULL,
			       extra);
		break;
	case 1:
		cuLaunchKernelEx(&config, function, program.args, NULL);
		break;
	case 2:
		cuLaunchCooperativeKernel(function, config.gridDimX, 1, 1, 32, 1, 1, 0,
					  guest_pick_stream(), program.args);
		break;
	default:
		cuLaunchKernel(function, config.gridDimX, 1, 1, config.blockDimX, 1, 1,
			       guest_draw(), guest_pick_stream(), program.args, NULL);
	}
}

void guest_link_images(void)
{
	char info[64], errors[64];
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
				  CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {info, TO(void *, sizeof(info)), errors, TO(void *, sizeof(errors))};
	CUlinkState state;
	void *image;
	size_t len;

	if (cuLinkCreate_v2(4, options, values, &state))
		return;
	cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)text, sizeof(text), "a", 0, NULL, NULL);
	if (!cuLinkComplete(state, &image, &len) && len)
		program.buffer[0] = ((const uint8_t *)image)[len - 1];
	cuLinkDestroy(state);
}
