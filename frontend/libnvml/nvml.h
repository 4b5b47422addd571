/*
 * What the library's files share. Every function of NVML asks the host anew (client/look.h):
 * there is no session, no GPU, and nothing to be inherited by a forked child but a count.
 *
 * Threads: any.
 */
#ifndef FGV_LIBNVML_NVML_H
#define FGV_LIBNVML_NVML_H

#include <cuda.h>
#include <stdbool.h>

#include "api/wire.h"
#include "frontend/libnvml/abi.h"

#define FGV_EXPORT __attribute__((visibility("default")))

/* The same function by another name: `FGV_EXPORT enum fgv_nvml old(...) FGV_ALIAS(new);` */
#define FGV_ALIAS(function) __attribute__((alias(#function)))

/* nvmlDevice_t points to one. */
struct fgv_nvml_device {
	unsigned index;
};

/* The handle of the device at @index, if there is one; NULL: no VM has so many. */
struct fgv_nvml_device *fgv_nvml_handle(unsigned index);

/* Whether NVML is initialized. */
enum fgv_nvml fgv_nvml_ready(void);

/* Whether it is, and @device is a handle. */
enum fgv_nvml fgv_nvml_check(const struct fgv_nvml_device *device);

/*
 * A look at the VM and its first GPU. UNINITIALIZED; GPU_IS_LOST where the host is gone, or another
 * failure.
 */
enum fgv_nvml fgv_nvml_look(struct fgv_msg_view *view);

/* The same, of @device, which is checked as well; GPU_IS_LOST where there are fewer by now. */
enum fgv_nvml fgv_nvml_look_at(const struct fgv_nvml_device *device, struct fgv_msg_view *view);

/* What a status of the host's means here. */
enum fgv_nvml fgv_nvml_from(CUresult status);

/* An attribute of the device; false where the host does not know it. */
bool fgv_nvml_attribute(const struct fgv_msg_view *view, CUdevice_attribute attribute, int *value);

/* Writes @text to the caller's @to, of @len bytes; INSUFFICIENT_SIZE where it does not fit. */
enum fgv_nvml fgv_nvml_write(char *to, unsigned len, const char *text);

/* What @used_ns of the last second are, in percent. */
unsigned fgv_nvml_percent(uint64_t used_ns);

#endif
