/*
 * All memory ordering between the two sides of a window goes through these. They
 * are the compiler's atomics, which ThreadSanitizer understands; liburcu gives the
 * pause instruction. Shared words are plain integers, as the layout is an ABI.
 */
#ifndef FGV_SHMRING_BARRIER_H
#define FGV_SHMRING_BARRIER_H

#include <stdint.h>
#include <urcu/arch.h>

static inline uint32_t fgv_load_acquire(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void fgv_store_release(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/*
 * For the two halves of a sleep: each side writes its own word, then reads the
 * other's, and at least one must see the other's write. Both accesses of both
 * sides are sequentially consistent, so that no fence stands alone.
 */
static inline uint32_t fgv_load_ordered(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static inline void fgv_store_ordered(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}

static inline void fgv_relax(void)
{
	caa_cpu_relax();
}

#endif
