/*
 * Landlock: which files the process may open from now on, whatever its user may. Also ends
 * TCP, and where the kernel knows how (Linux 6.12), signals to processes outside and abstract
 * sockets of theirs.
 *
 * Threads: holds for the thread that asks and for those that it starts; so before there are any.
 */
#ifndef FGV_VGPU_LANDLOCK_H
#define FGV_VGPU_LANDLOCK_H

#include <stdbool.h>

/*
 * @cuda: what NVIDIA's driver needs may be opened, its devices also for writing; else nothing
 * may. @mps: also what clients of MPS share with its server. New privileges must be given up
 * already. 0, -ENOSYS or -EOPNOTSUPP where the kernel has no Landlock, or another negative errno.
 */
int fgv_landlock_enter(bool cuda, bool mps);

#endif
