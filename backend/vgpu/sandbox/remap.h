/*
 * mremap() needs no descriptor: it makes the mapping of a part of a file one of more of it. So a
 * process that its guest has taken over could get from its own page of its VM's accounts to the
 * others', and from its window to others in the same region. What it is for is to map parts of
 * the window a second time (mapped.h). A filter of its own, beside the list, sees to it that this
 * is all that it does: the list is made before it is known where the window lies.
 *
 * Threads: any; it holds for all.
 */
#ifndef FGV_VGPU_REMAP_H
#define FGV_VGPU_REMAP_H

#include <stdint.h>

/*
 * From now on mremap() maps parts of [@base, @base + @len) once more, at an address that is
 * named, and returns ENOSYS for all else; realloc() then copies. 0 or a negative errno. Before the
 * list holds, and after new privileges are given up.
 */
int fgv_remap_confine(const void *base, uint64_t len);

#endif
