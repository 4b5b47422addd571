/*
 * What the runtime says about devices: counts, properties and attributes, which must
 * agree with each other and be what a program can build upon.
 */
#include "test.h"

static void expect_attribute(int device, const char *name, enum cudaDeviceAttr attribute,
			     long long property)
{
	int value = -1;

	CUDA(cudaDeviceGetAttribute(&value, attribute, device));
	if (value != property)
		FAIL("device %d: %s: property %lld, attribute %d", device, name, property, value);
}

static void attributes(int device, const struct cudaDeviceProp *p)
{
	const struct {
		const char *name;
		enum cudaDeviceAttr attribute;
		long long property;
	} pairs[] = {
		{"threads per block", cudaDevAttrMaxThreadsPerBlock, p->maxThreadsPerBlock},
		{"block x", cudaDevAttrMaxBlockDimX, p->maxThreadsDim[0]},
		{"block y", cudaDevAttrMaxBlockDimY, p->maxThreadsDim[1]},
		{"block z", cudaDevAttrMaxBlockDimZ, p->maxThreadsDim[2]},
		{"grid x", cudaDevAttrMaxGridDimX, p->maxGridSize[0]},
		{"grid y", cudaDevAttrMaxGridDimY, p->maxGridSize[1]},
		{"grid z", cudaDevAttrMaxGridDimZ, p->maxGridSize[2]},
		{"shared per block", cudaDevAttrMaxSharedMemoryPerBlock,
		 (long long)p->sharedMemPerBlock},
		{"shared opt-in", cudaDevAttrMaxSharedMemoryPerBlockOptin,
		 (long long)p->sharedMemPerBlockOptin},
		{"shared per multiprocessor", cudaDevAttrMaxSharedMemoryPerMultiprocessor,
		 (long long)p->sharedMemPerMultiprocessor},
		{"constant", cudaDevAttrTotalConstantMemory, (long long)p->totalConstMem},
		{"warp", cudaDevAttrWarpSize, p->warpSize},
		{"registers per block", cudaDevAttrMaxRegistersPerBlock, p->regsPerBlock},
		{"multiprocessors", cudaDevAttrMultiProcessorCount, p->multiProcessorCount},
		{"threads per multiprocessor", cudaDevAttrMaxThreadsPerMultiProcessor,
		 p->maxThreadsPerMultiProcessor},
		{"major", cudaDevAttrComputeCapabilityMajor, p->major},
		{"minor", cudaDevAttrComputeCapabilityMinor, p->minor},
		{"unified addressing", cudaDevAttrUnifiedAddressing, p->unifiedAddressing},
		{"integrated", cudaDevAttrIntegrated, p->integrated},
		{"can map host memory", cudaDevAttrCanMapHostMemory, p->canMapHostMemory},
		{"managed memory", cudaDevAttrManagedMemory, p->managedMemory},
		{"cooperative launch", cudaDevAttrCooperativeLaunch, p->cooperativeLaunch},
		{"concurrent kernels", cudaDevAttrConcurrentKernels, p->concurrentKernels},
		{"copy engines", cudaDevAttrAsyncEngineCount, p->asyncEngineCount},
		{"bus width", cudaDevAttrGlobalMemoryBusWidth, p->memoryBusWidth},
		{"L2", cudaDevAttrL2CacheSize, p->l2CacheSize},
		{"PCI bus", cudaDevAttrPciBusId, p->pciBusID},
		{"PCI device", cudaDevAttrPciDeviceId, p->pciDeviceID},
		{"PCI domain", cudaDevAttrPciDomainId, p->pciDomainID},
		{"pitch", cudaDevAttrMaxPitch, (long long)p->memPitch},
		{"texture alignment", cudaDevAttrTextureAlignment, (long long)p->textureAlignment},
	};

	for (const auto &pair : pairs)
		expect_attribute(device, pair.name, pair.attribute, pair.property);
}

/* What came with sm_80. */
static void sane_80(const struct cudaDeviceProp *p)
{
	EXPECT(p->reservedSharedMemPerBlock > 0);
	EXPECT(p->sharedMemPerMultiprocessor >=
	       p->sharedMemPerBlockOptin + p->reservedSharedMemPerBlock);
	EXPECT(p->maxThreadsPerMultiProcessor >= 1536);
	EXPECT(p->maxBlocksPerMultiProcessor >= 16);
	EXPECT(p->persistingL2CacheMaxSize > 0 && p->persistingL2CacheMaxSize <= p->l2CacheSize);
	EXPECT(p->accessPolicyMaxWindowSize > 0);
}

/* What every device since sm_75 has, and programs take for granted. */
static void sane(const struct cudaDeviceProp *p)
{
	EXPECT(p->name[0] && memchr(p->name, 0, sizeof(p->name)));
	EXPECT(p->totalGlobalMem >= (size_t)64 << 20);
	EXPECT_EQ(32, p->warpSize);
	EXPECT_EQ(1024, p->maxThreadsPerBlock);
	EXPECT_EQ(1024, p->maxThreadsDim[0]);
	EXPECT_EQ(64, p->maxThreadsDim[2]);
	EXPECT_EQ(2147483647, p->maxGridSize[0]);
	EXPECT_EQ(65535, p->maxGridSize[1]);
	EXPECT_EQ(48 * 1024, p->sharedMemPerBlock);
	EXPECT(p->sharedMemPerBlockOptin >= p->sharedMemPerBlock);
	EXPECT_EQ(64 * 1024, p->totalConstMem);
	EXPECT(p->regsPerBlock >= 32 * 1024);
	EXPECT(p->multiProcessorCount >= 1);
	EXPECT(p->maxThreadsPerMultiProcessor >= 1024);
	EXPECT(p->major * 10 + p->minor >= 75);
	EXPECT_EQ(1, p->unifiedAddressing);
}

int main(void)
{
	struct cudaDeviceProp properties;
	int count, device = -1, driver, runtime;
	size_t free, total;

	CUDA(cudaGetDeviceCount(&count));
	EXPECT(count >= 1);
	CUDA(cudaGetDevice(&device));
	EXPECT_EQ(0, device);
	for (int i = 0; i < count; i++) {
		memset(&properties, 0xee, sizeof(properties));
		CUDA(cudaGetDeviceProperties(&properties, i));
		sane(&properties);
		if (properties.major >= 8)
			sane_80(&properties);
		attributes(i, &properties);
		CUDA(cudaSetDevice(i));
		CUDA(cudaGetDevice(&device));
		EXPECT_EQ(i, device);
		CUDA(cudaMemGetInfo(&free, &total));
		EXPECT(free <= total && total <= properties.totalGlobalMem);
	}
	CUDA(cudaDriverGetVersion(&driver));
	CUDA(cudaRuntimeGetVersion(&runtime));
	EXPECT_EQ(CUDART_VERSION, runtime);
	EXPECT_EQ(CUDART_VERSION / 1000, driver / 1000);
	return 0;
}
