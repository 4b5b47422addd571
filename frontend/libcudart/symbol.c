/*
 * Variables of modules, by what stands for them in the program.
 */
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/module/module.h"
#include "frontend/libcudart/cudart.h"
#include "frontend/libcudart/memcpy.h"
#include "frontend/libcudart/registration.h"

struct place {
	uint64_t address;
	uint64_t size;
};

/* A managed variable stands for itself. */
static cudaError_t find_managed(const void *symbol, struct place *place)
{
	uint64_t address = (uint64_t)(uintptr_t)symbol;
	struct fgv_range_view view;

	if (fgv_addrmap_look(address, 1, &view) == FGV_FIT_UNKNOWN ||
	    view.kind != FGV_RANGE_MANAGED_VARIABLE || view.start != address)
		return cudaErrorInvalidSymbol;
	*place = (struct place){address, view.len};
	return cudaSuccess;
}

/* The variable that @symbol stands for. */
static cudaError_t find(const void *symbol, struct place *place)
{
	struct fgv_variable *found = fgv_registration_variable(symbol);
	CUresult res;

	if (!found)
		return find_managed(symbol, place);
	res = fgv_variable_enter(&found);
	if (res == CUDA_ERROR_NOT_FOUND)
		return cudaErrorInvalidSymbol;
	if (!res)
		*place = (struct place){found->address, found->size};
	return fgv_error_from(res);
}

/* The address of [@offset, @offset + @count) in the variable. */
static cudaError_t find_part(const void *symbol, size_t count, size_t offset, void **part)
{
	struct place place;
	cudaError_t error = find(symbol, &place);

	if (error)
		return error;
	if (offset > place.size || count > place.size - offset)
		return cudaErrorInvalidValue;
	*part = (void *)(uintptr_t)(place.address + offset);
	return cudaSuccess;
}

cudaError_t fgv_symbol_target(const void *symbol, size_t count, size_t offset,
			      enum cudaMemcpyKind kind, void **part)
{
	if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
	    kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	return find_part(symbol, count, offset, part);
}

cudaError_t fgv_symbol_source(const void *symbol, size_t count, size_t offset,
			      enum cudaMemcpyKind kind, void **part)
{
	if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
	    kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	return find_part(symbol, count, offset, part);
}

/* fgv_memcpy() or fgv_memcpy_wait(). */
typedef cudaError_t copy_fn(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream);

static cudaError_t copy_to(copy_fn *copy, const void *symbol, const void *src, size_t count,
			   size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	void *part;
	cudaError_t error = fgv_symbol_target(symbol, count, offset, kind, &part);

	return error ? error : copy(part, src, count, kind, stream);
}

static cudaError_t copy_from(copy_fn *copy, void *dst, const void *symbol, size_t count,
			     size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	void *part;
	cudaError_t error = fgv_symbol_source(symbol, count, offset, kind, &part);

	return error ? error : copy(dst, part, count, kind, stream);
}

cudaError_t fgv_memcpy_to_symbol_wait(const void *symbol, const void *src, size_t count,
				      size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_to(fgv_memcpy_wait, symbol, src, count, offset, kind, stream);
}

cudaError_t fgv_memcpy_from_symbol_wait(void *dst, const void *symbol, size_t count, size_t offset,
					enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_from(fgv_memcpy_wait, dst, symbol, count, offset, kind, stream);
}

FGV_EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
					  size_t offset, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_to_symbol_wait(symbol, src, count, offset, kind, NULL));
}

FGV_EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
					       size_t offset, enum cudaMemcpyKind kind,
					       cudaStream_t stream)
{
	return fgv_error_set(copy_to(fgv_memcpy, symbol, src, count, offset, kind, stream));
}

FGV_EXPORT cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count,
					    size_t offset, enum cudaMemcpyKind kind)
{
	return fgv_error_set(fgv_memcpy_from_symbol_wait(dst, symbol, count, offset, kind, NULL));
}

FGV_EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count,
						 size_t offset, enum cudaMemcpyKind kind,
						 cudaStream_t stream)
{
	return fgv_error_set(copy_from(fgv_memcpy, dst, symbol, count, offset, kind, stream));
}

FGV_EXPORT cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
	if (!devPtr)
		return fgv_error_set(cudaErrorInvalidValue);
	return fgv_error_set(find_part(symbol, 0, 0, devPtr));
}

FGV_EXPORT cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	struct place place;
	cudaError_t error;

	if (!size)
		return fgv_error_set(cudaErrorInvalidValue);
	error = find(symbol, &place);
	if (!error)
		*size = place.size;
	return fgv_error_set(error);
}
