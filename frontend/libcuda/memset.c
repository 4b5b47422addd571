/*
 * Filling memory. Those that return when it is done have forms of their own for the thread's
 * default stream.
 */
#include "frontend/cuda/memory/fill.h"

#include "frontend/libcuda/driver.h"

static CUresult fill(CUdeviceptr address, uint32_t value, uint32_t element, size_t count,
		     CUstream stream, bool wait)
{
	const struct fgv_fill one = {
		.address = address,
		.pitch = SIZE_MAX - SIZE_MAX % 4,
		.value = value,
		.element = element,
		.count = count,
		.rows = 1,
	};

	return fgv_fill_run(&one, stream, wait);
}

static CUresult fill_rows(CUdeviceptr address, size_t pitch, uint32_t value, uint32_t element,
			  size_t count, size_t rows, CUstream stream, bool wait)
{
	const struct fgv_fill many = {
		.address = address,
		.pitch = pitch,
		.value = value,
		.element = element,
		.count = count,
		.rows = rows,
	};

	return fgv_fill_run(&many, stream, wait);
}

FGV_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return FGV_CALL(fill(dstDevice, uc, 1, N, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return FGV_CALL(fill(dstDevice, uc, 1, N, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
				    CUstream hStream)
{
	return FGV_CALL(fill(dstDevice, uc, 1, N, hStream, false));
}

FGV_EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
				    size_t Width, size_t Height)
{
	return FGV_CALL(
		fill_rows(dstDevice, dstPitch, uc, 1, Width, Height, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
					 size_t Width, size_t Height)
{
	return FGV_CALL(
		fill_rows(dstDevice, dstPitch, uc, 1, Width, Height, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
				      size_t Width, size_t Height, CUstream hStream)
{
	return FGV_CALL(fill_rows(dstDevice, dstPitch, uc, 1, Width, Height, hStream, false));
}

FGV_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return FGV_CALL(fill(dstDevice, us, 2, N, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return FGV_CALL(fill(dstDevice, us, 2, N, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
				     CUstream hStream)
{
	return FGV_CALL(fill(dstDevice, us, 2, N, hStream, false));
}

FGV_EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
				     size_t Width, size_t Height)
{
	return FGV_CALL(
		fill_rows(dstDevice, dstPitch, us, 2, Width, Height, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
					  size_t Width, size_t Height)
{
	return FGV_CALL(
		fill_rows(dstDevice, dstPitch, us, 2, Width, Height, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
				       size_t Width, size_t Height, CUstream hStream)
{
	return FGV_CALL(fill_rows(dstDevice, dstPitch, us, 2, Width, Height, hStream, false));
}

FGV_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return FGV_CALL(fill(dstDevice, ui, 4, N, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return FGV_CALL(fill(dstDevice, ui, 4, N, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
				     CUstream hStream)
{
	return FGV_CALL(fill(dstDevice, ui, 4, N, hStream, false));
}

FGV_EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
				     size_t Width, size_t Height)
{
	return FGV_CALL(
		fill_rows(dstDevice, dstPitch, ui, 4, Width, Height, CU_STREAM_LEGACY, true));
}

FGV_EXPORT CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
					  size_t Width, size_t Height)
{
	return FGV_CALL(
		fill_rows(dstDevice, dstPitch, ui, 4, Width, Height, CU_STREAM_PER_THREAD, true));
}

FGV_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
				       size_t Width, size_t Height, CUstream hStream)
{
	return FGV_CALL(fill_rows(dstDevice, dstPitch, ui, 4, Width, Height, hStream, false));
}
