/*
 * Whether anything is captured.
 */
#include "frontend/cuda/stream/capturing.h"

uint32_t fgv_capturing_uses;
const struct fgv_capturing *fgv_capturing_table;

void fgv_capturing_begin(const struct fgv_capturing *table)
{
	__atomic_store_n(&fgv_capturing_table, table, __ATOMIC_RELAXED);
	/* Pairs with the acquire in fgv_capturing_now(). */
	__atomic_fetch_add(&fgv_capturing_uses, 1, __ATOMIC_RELEASE);
}

void fgv_capturing_end(void)
{
	__atomic_fetch_sub(&fgv_capturing_uses, 1, __ATOMIC_RELEASE);
}
