/*
 * What the GPU's driver says of a GPU, and of the memory that each process has on it, by NVIDIA's
 * management library (NVML), opened where it is there. The daemon alone asks, and nothing that a guest or a
 * vGPU process says goes into the answer.
 *
 * Threads: one.
 */
#ifndef FGV_BACKEND_NVML_H
#define FGV_BACKEND_NVML_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fgv_nvml;

/* A process and all memory that it has on one device, its context's included. */
struct fgv_nvml_use {
	pid_t pid;
	uint64_t bytes;
};

/* 0; or a negative errno and @why, one line, where there is no such library or it does not start.
 */
int fgv_nvml_open(struct fgv_nvml **nvml, char *why, size_t why_len);
/* NULL is allowed. */
void fgv_nvml_close(struct fgv_nvml *nvml);

/*
 * All processes on the device at @place, as 0000:1b:00.0, clients of an MPS server among them: how
 * many, at most @max, or a negative errno. Takes up to milliseconds.
 */
int fgv_nvml_uses(struct fgv_nvml *nvml, const char *place, struct fgv_nvml_use *uses, size_t max);

/*
 * Fills in those of @figures, by enum fgv_figure, that the device at @place has and that this
 * library tells; the others stay as they are. Takes up to milliseconds.
 */
void fgv_nvml_measure(struct fgv_nvml *nvml, const char *place, uint32_t *figures);

/*
 * How many NVLinks of the device at @place are up, carry accesses to other GPUs' memory, and do not
 * lead straight to one GPU: by a switch they lead to all of its GPUs. Takes up to milliseconds.
 */
uint32_t fgv_nvml_nvlinks(struct fgv_nvml *nvml, const char *place);

#endif
