/*
 * The export tables that every copy of the runtime asks for.
 */
#include "driver.h"

typedef CUresult (*primary_function)(CUcontext *, CUdevice);
typedef CUresult (*put_function)(CUcontext, void *, void *, void (*)(CUcontext, void *, void *));
typedef CUresult (*remove_function)(CUcontext, void *);
typedef CUresult (*get_function)(void **, CUcontext, void *);

static void *const *find(const char *hex)
{
	const void *table = NULL;
	CUuuid uuid;

	for (int i = 0; i < 16; i++) {
		unsigned byte;

		EXPECT(sscanf(hex + 2 * i, "%2x", &byte) == 1);
		uuid.bytes[i] = (char)byte;
	}
	CUDA(cuGetExportTable(&table, &uuid));
	EXPECT(table);
	return table;
}

static void unknown(void)
{
	static const CUuuid uuid = {{1, 2, 3}};
	const void *table = &uuid;

	EXPECT(cuGetExportTable(&table, &uuid) != CUDA_SUCCESS);
	EXPECT(!table);
	EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(NULL, &uuid));
}

/* A context that is known before it is active, and is no other when it is. */
static void primary(void)
{
	void *const *table = find("6bd5fb6c5bf4e74a8987d93912fd9df9");
	primary_function get = (primary_function)table[2];
	CUcontext context, retained;
	unsigned flags;
	int active;

	EXPECT((size_t)table[0] >= 3 * sizeof(void *));
	CUDA(get(&context, 0));
	CUDA(cuDevicePrimaryCtxGetState(0, &flags, &active));
	EXPECT_EQ(0, active);
	CUDA(cuDevicePrimaryCtxRetain(&retained, 0));
	EXPECT(context == retained);
	CUDA(cuCtxSetCurrent(context));
}

static int ended;

static void end(CUcontext context, void *key, void *value)
{
	(void)context;
	EXPECT(key == &ended);
	EXPECT(value == (void *)0x1234);
	ended++;
}

/* What is kept in a context is there until it is taken out or the context ends. */
static void storage(void)
{
	void *const *table = find("c693336e1121df11a8c368f355d89593");
	put_function put = (put_function)table[0];
	remove_function take = (remove_function)table[1];
	get_function get = (get_function)table[2];
	CUcontext context;
	void *value = NULL;
	int other;

	CUDA(cuCtxCreate(&context, NULL, 0, 0));
	EXPECT(get(&value, context, &ended) != CUDA_SUCCESS);
	CUDA(put(context, &ended, (void *)0x1234, end));
	CUDA(put(context, &other, (void *)0x5678, NULL));
	CUDA(get(&value, NULL, &ended));
	EXPECT(value == (void *)0x1234);
	CUDA(get(&value, context, &other));
	EXPECT(value == (void *)0x5678);
	CUDA(take(context, &other));
	EXPECT(get(&value, context, &other) != CUDA_SUCCESS);
	CUDA(cuCtxDestroy(context));
	EXPECT_EQ(1, ended);
}

int main(void)
{
	unknown();
	CUDA(cuInit(0));
	primary();
	storage();
	return 0;
}
