/*
 * The keeper of what a VM's programs have in common: a process that has files of the images of
 * modules, and descriptors of memory that they share, and gives them to the VM's vGPU processes. It
 * has the user, the control group and the sandbox of these, and nothing else of
 * theirs; what it does for one VM nobody of another can see.
 *
 * It believes nothing of what it is told. An image is named by the digest that it makes itself, of
 * a file that cannot change, a leaf at a time, so that whoever asks does not wait for that. Memory
 * has a random key, and is charged for as large as its first owner says: that one can cheat nobody
 * but its own VM by it, and the GPU only until the VM's sessions have ended.
 *
 * Threads: one.
 */
#ifndef FGV_VGPU_IMAGES_KEEPER_H
#define FGV_VGPU_IMAGES_KEEPER_H

#include <stdint.h>

struct fgv_prepare;
struct fgv_shared;

/* What this process does from its order on, to the end of its control socket. The exit status. */
int fgv_keeper_run(const struct fgv_prepare *prepare);

/*
 * The same without the sandbox; what sessions begin and end comes on @control. @shared is the
 * caller's, and empty at the end.
 */
void fgv_keeper_serve(int control, uint64_t bytes_max, struct fgv_shared *shared);

#endif
