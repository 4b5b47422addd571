/*
 * What the program's constructors register: modules (fat binaries), and their kernels
 * and variables by the addresses that stand for them in the host program. Nothing is
 * sent until a kernel or a variable is used; then its module is, once, and the kernel
 * or variable is asked for, once.
 *
 * Threads: any. Registering locks; finding does not. A module must not be
 * unregistered while one of its kernels is being launched.
 */
#ifndef FGV_CUDA_REGISTRY_H
#define FGV_CUDA_REGISTRY_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/wire.h"

struct fgv_lane;

struct fgv_module {
	const void *wrapper; /* the program's */
	void *image;	     /* in its place: an image that is the module's own; or NULL */
	uint64_t image_len;
	struct fgv_kernel *kernels;
	struct fgv_variable *variables;
	struct fgv_module *next;
	pthread_mutex_t mutex; /* guards the rest, and making kernels ready */
	bool tried;	       /* to load it; with this result: */
	CUresult result;
	uint32_t handle; /* the host's */
};

/* The clusters that were last found to fit, and how many at once; the module's mutex guards it. */
struct fgv_fit {
	uint32_t size[3];
	uint32_t block[3];
	uint32_t shared_bytes;
	uint32_t any_size;
	uint32_t policy;
	int32_t active; /* 0: none yet */
};

struct fgv_kernel {
	uint32_t ready;			/* atomic: what follows is known */
	uint32_t function;		/* the host's handle */
	uint32_t args_len;		/* of all parameters, each padded to 8 */
	struct fgv_function_info *info; /* with param_count sizes */
	uint32_t max_dynamic_shared;	/* atomic; as cudaFuncSetAttribute allows */
	int carveout;			/* atomic; as it asks for */
	uint32_t any_cluster;		/* atomic; the same */
	uint32_t cluster_policy;	/* atomic; the same */
	struct fgv_module *module;
	const void *host; /* what stands for it in the program; NULL: the struct alone */
	const char *name; /* the program's, or of a module with an image the module's */
	struct fgv_kernel *next;
	struct fgv_fit fit;
};

struct fgv_variable {
	uint32_t ready; /* atomic: the address is known, and the module is loaded */
	uint64_t address;
	uint64_t size; /* as registered, then as the host says */
	struct fgv_module *module;
	const void *host;
	void **managed; /* where the program keeps a managed one's address; NULL: it is none */
	void *own;	/* what that points to where no program has a place for it */
	const char *name;
	struct fgv_variable *next;
};

/* NULL: no memory. Whether @wrapper is any good is found out when it is used. */
struct fgv_module *fgv_registry_add(const void *wrapper);
/* One with a copy of @image, as a program loads it by itself. */
struct fgv_module *fgv_registry_add_image(const void *image, uint64_t len);
/* Also unloads it. NULL, or anything that is not registered, is ignored. */
void fgv_registry_remove(struct fgv_module *module);

/* -ENOMEM, -EINVAL if @module is not registered. */
int fgv_registry_add_kernel(struct fgv_module *module, const void *host, const char *name);
int fgv_registry_add_variable(struct fgv_module *module, const void *host, const char *name,
			      uint64_t size);
/* @managed gets its address when the module is loaded. */
int fgv_registry_add_managed(struct fgv_module *module, void **managed, const char *name,
			     uint64_t size);

/* One of a module with an image, which is found by its name alone; once more, it is no other. */
int fgv_registry_add_managed_named(struct fgv_module *module, const char *name, uint64_t size);
/* NULL: the module has none of that name. */
struct fgv_variable *fgv_registry_managed_named(struct fgv_module *module, const char *name);

/*
 * A kernel or a variable of a module with an image of its own, whether there is one or not:
 * that is found out when it is loaded. NULL: no memory.
 */
struct fgv_kernel *fgv_registry_kernel_named(struct fgv_module *module, const char *name);
struct fgv_variable *fgv_registry_variable_named(struct fgv_module *module, const char *name);

bool fgv_registry_has_managed(const struct fgv_module *module);

/* @key: what stands for the kernel in the program, or the struct itself. NULL: none. */
struct fgv_kernel *fgv_registry_kernel(const void *key);
struct fgv_variable *fgv_registry_variable(const void *key);

/* Forgets all that the host has said: everything is loaded anew when used. */
void fgv_registry_unload(struct fgv_lane *lane);

/*
 * Makes @kernel known to the host, in full. CUDA_ERROR_NOT_FOUND if its module lacks
 * it, CUDA_ERROR_INVALID_IMAGE if the fat binary is no good, or the host's error.
 */
CUresult fgv_kernel_load(struct fgv_lane *lane, struct fgv_kernel *kernel);
CUresult fgv_variable_load(struct fgv_lane *lane, struct fgv_variable *variable);

/* The names of its kernels, each with a NUL and @bytes in all; for free(). */
CUresult fgv_module_kernel_names(struct fgv_lane *lane, struct fgv_module *module, char **names,
				 uint64_t *bytes);

/* Registers the managed variables of a module with an image, which must not be loaded yet. */
CUresult fgv_module_find_managed(struct fgv_lane *lane, struct fgv_module *module);

/* Loads @module itself, so that its managed variables have addresses. */
CUresult fgv_module_need(struct fgv_lane *lane, struct fgv_module *module);

/* The same, but cheap where it is known already. */
static inline CUresult fgv_kernel_need(struct fgv_lane *lane, struct fgv_kernel *kernel)
{
	/* Pairs with the release in fgv_kernel_load(). */
	if (__builtin_expect(__atomic_load_n(&kernel->ready, __ATOMIC_ACQUIRE) != 0, 1))
		return CUDA_SUCCESS;
	return fgv_kernel_load(lane, kernel);
}

static inline CUresult fgv_variable_need(struct fgv_lane *lane, struct fgv_variable *variable)
{
	/* Pairs with the release in fgv_variable_load(). */
	if (__atomic_load_n(&variable->ready, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	return fgv_variable_load(lane, variable);
}

#endif
