/*
 * Memory that the daemon shares with vGPU processes, by descriptor.
 */
#ifndef FGV_BACKEND_MEMORY_H
#define FGV_BACKEND_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes @len bytes of zeros and maps them at *@base. Returns their descriptor, or a negative
 * errno. Sealed: its receiver can neither shrink nor grow it. Give both back by munmap() and
 * close().
 */
int fgv_memory_create(const char *name, size_t len, void **base);

/* The same, but nobody can ever write there except through this mapping. */
int fgv_memory_create_readable(const char *name, size_t len, void **base);

/*
 * A second descriptor of what @fd is, by which it can only be read and mapped to be read; or a
 * negative errno.
 */
int fgv_memory_reopen_readable(int fd);

/* The same as the first, but only the first @map_len bytes are mapped. */
int fgv_memory_create_large(const char *name, uint64_t len, size_t map_len, void **base);

#endif
