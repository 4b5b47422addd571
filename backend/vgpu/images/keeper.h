/*
 * The keeper of a VM's images: a process that has files of them, and gives them to the VM's vGPU
 * processes. It has the user, the control group and the sandbox of these, and nothing else of
 * theirs; what it does for one VM nobody of another can see.
 *
 * It believes nothing of what it is told. An image is named by the digest that it makes itself, of
 * a file that cannot change, a leaf at a time, so that whoever asks does not wait for that.
 *
 * Threads: one.
 */
#ifndef FGV_VGPU_IMAGES_KEEPER_H
#define FGV_VGPU_IMAGES_KEEPER_H

#include <stdint.h>

struct fgv_prepare;

/* What this process does from its order on, to the end of its control socket. The exit status. */
int fgv_keeper_run(const struct fgv_prepare *prepare);

/* The same without the sandbox; the sockets of sessions come on @control. */
void fgv_keeper_serve(int control, uint64_t bytes_max);

#endif
