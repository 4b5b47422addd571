/*
 * Getting a session from the daemon: hello, welcome, window (wire.h).
 */
#ifndef FGV_CLIENT_CONNECT_H
#define FGV_CLIENT_CONNECT_H

#include "frontend/client/client.h"

/* The guest's kernel module, in a virtual machine. */
#define FGV_DEVICE_NAME "/dev/fairgv"

/*
 * Connects to the daemon at FAIRGV_SOCKET, if that is set; else through FAIRGV_DEVICE or
 * FGV_DEVICE_NAME, if that is there; else to the daemon at its usual place. With a daemon
 * it is the VM FAIRGV_VM, else the first that the user may use. Fills in *client but for
 * the lanes. What it returns on failure is a CUresult, and @why says it in words:
 *
 *   CUDA_ERROR_NO_DEVICE            no daemon there, or the device is gone
 *   CUDA_ERROR_DEVICE_UNAVAILABLE   not allowed to connect, or no session to be had
 *   CUDA_ERROR_NOT_INITIALIZED      it answers nonsense, or another version
 *   CUDA_ERROR_OUT_OF_MEMORY        no memory or descriptors here
 *   any other                       the daemon's own refusal
 *
 * Threads: one at a time.
 */
CUresult fgv_connect(struct fgv_client *client, uint32_t *parts, char *why, size_t why_len);

/* The same for one of the *@parts further GPUs that there are, in their order. */
CUresult fgv_connect_part(const struct fgv_client *first, struct fgv_client *client, char *why,
			  size_t why_len);

/*
 * @fd, or in its place a copy above the standard streams, which programs close and open at
 * will. Passes negative values through; a negative value also if there is no copy.
 */
int fgv_connect_raise(int fd);

#endif
