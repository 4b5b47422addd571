/*
 * Devices: what each can be asked, how one is found by its address, and what is no device.
 */
#include "driver.h"

static void describe(CUdevice device)
{
	char name[256] = "", id[32] = "";
	CUdevice found = -1;
	int value, major, minor;
	CUuuid uuid, again;
	size_t bytes = 0;

	CUDA(cuDeviceGetName(name, sizeof(name), device));
	EXPECT(strlen(name) > 4);
	CUDA(cuDeviceGetName(id, 5, device));
	EXPECT_EQ(4, strlen(id));
	EXPECT(!strncmp(name, id, 4));
	CUDA(cuDeviceTotalMem(&bytes, device));
	EXPECT(bytes >= 1 << 20);
	CUDA(cuDeviceGetUuid(&uuid, device));
	CUDA(cuDeviceGetUuid(&again, device));
	EXPECT(!memcmp(&uuid, &again, sizeof(uuid)));
	CUDA(cuDeviceGetPCIBusId(id, sizeof(id), device));
	CUDA(cuDeviceGetByPCIBusId(&found, id));
	EXPECT_EQ(device, found);
	CUDA(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	CUDA(cuDeviceComputeCapability(&value, &minor, device));
	EXPECT_EQ(major, value);
	CUDA(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
	EXPECT_EQ(32, value);
	CUDA(cuDeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
}

/* Each that the header names has a value, or is named by no device. */
static void all_attributes(CUdevice device)
{
	int value, known = 0;

	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		known += !cuDeviceGetAttribute(&value, (CUdevice_attribute)i, device);
	EXPECT(known > 110);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
		    cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, device));
}

static void mistakes(void)
{
	char name[16];
	CUdevice device;
	int value;

	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 1000));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(NULL));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(NULL, 10, 0));
	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof(name), 1000));
	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE,
		    cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&device, "no bus"));
	EXPECT_CODE(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "ffff:ff:1f.0"));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(name, 3, 0));
	CUDA(cuDeviceCanAccessPeer(&value, 0, 0));
	EXPECT_EQ(0, value);
	EXPECT_CODE(
		CUDA_ERROR_INVALID_DEVICE,
		cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
}

static void errors(void)
{
	const char *text;

	CUDA(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
	EXPECT(!strcmp(text, "CUDA_ERROR_INVALID_VALUE"));
	CUDA(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
	EXPECT(!strcmp(text, "invalid argument"));
	CUDA(cuGetErrorName(CUDA_ERROR_CONTEXT_IS_DESTROYED, &text));
	EXPECT(!strcmp(text, "CUDA_ERROR_CONTEXT_IS_DESTROYED"));
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuGetErrorString((CUresult)12345, &text));
	EXPECT(!text);
}

int main(void)
{
	int count;

	errors();
	CUDA(cuInit(0));
	CUDA(cuDeviceGetCount(&count));
	EXPECT(count >= 1);
	for (int i = 0; i < count; i++) {
		CUdevice device;

		CUDA(cuDeviceGet(&device, i));
		describe(device);
		all_attributes(device);
	}
	mistakes();
	return 0;
}
