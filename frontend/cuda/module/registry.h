/*
 * The modules that the program has, with their kernels and variables: by name, and kernels by what
 * the program holds for them, which is the address of their struct (CUkernel, CUfunction). Nothing
 * here asks the host; module.h does.
 *
 * Threads: any. Adding locks; finding a kernel by its handle does not. A module must not be
 * removed while one of its kernels is being launched.
 */
#ifndef FGV_CUDA_REGISTRY_H
#define FGV_CUDA_REGISTRY_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/wire.h"

struct fgv_lane;
struct fgv_snapshot;

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
	uint32_t handle;	       /* the host's */
	struct fgv_snapshot *snapshot; /* of its kernels, while it is loaded; NULL: not known */
	char *found; /* managed variables that the host has found instead of loading it */
	uint64_t found_bytes;
	CUlibrary library; /* what the program holds for it; NULL: nothing yet */
	/*
	 * The same module on the other devices, by their ordinals, where it has been used there;
	 * the registry's mutex guards them. Of a twin: what it is one of.
	 */
	struct fgv_module *twins[FGV_DEVICES_MAX];
	struct fgv_module *original;
};

/* What the host has said of clusters of one shape. */
struct fgv_fit {
	uint32_t size[3]; /* in blocks; all 0: of the largest there can be */
	uint32_t block[3];
	uint32_t shared_bytes;
	uint32_t any_size;
	uint32_t policy;
	uint32_t uneven; /* the grid is not of whole clusters, which the driver may refuse */
	int32_t answer;	 /* how many run at once; or of how many blocks the largest is */
};

/* The last answers that were new; all calls for one shape are answered by the first. */
#define FGV_FITS 8
struct fgv_fits {
	uint32_t count; /* that were ever kept */
	struct fgv_fit last[FGV_FITS];
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
	const void *host; /* what stands for it in a face's program; NULL: the struct alone */
	const char *name; /* the program's, or of a module with an image the module's */
	struct fgv_kernel *next;
	struct fgv_fits *fits;	   /* NULL: nothing yet; the module's mutex guards them */
	struct fgv_kernel **twins; /* atomic, as are its entries: by devices; NULL: none yet */
	const struct fgv_kernel *original; /* of a twin: what the program holds; else NULL */
};

struct fgv_variable {
	uint32_t ready; /* atomic: the address is known, and the module is loaded */
	uint64_t address;
	uint64_t size; /* as registered, then as the host says */
	struct fgv_module *module;
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

/* One that the program names, with @name its own. NULL: no memory, or no such module. */
struct fgv_kernel *fgv_registry_add_kernel(struct fgv_module *module, const char *name);
/* @managed: gets its address when the module is loaded; NULL: it is no managed variable. */
struct fgv_variable *fgv_registry_add_variable(struct fgv_module *module, const char *name,
					       uint64_t size, void **managed);

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

/* The kernel that @handle is, a CUkernel or a CUfunction; NULL: none. */
struct fgv_kernel *fgv_registry_kernel(const void *handle);

/*
 * The same on device @device, on which it may have been used never before; what the program holds
 * is the first device's. CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_NOT_SUPPORTED for modules that have
 * managed variables.
 */
CUresult fgv_registry_kernel_twin(uint32_t device, struct fgv_kernel **kernel);
CUresult fgv_registry_module_on(uint32_t device, struct fgv_module **module);
CUresult fgv_registry_variable_on(uint32_t device, struct fgv_variable **variable);

static inline CUresult fgv_registry_kernel_on(uint32_t device, struct fgv_kernel **kernel)
{
	return __builtin_expect(!device, 1) ? CUDA_SUCCESS
					    : fgv_registry_kernel_twin(device, kernel);
}

/* For the reset of a device alone: forgets all that the host has said. What is used later, is
 * loaded anew.
 */
void fgv_registry_unload(struct fgv_lane *lane);

#endif
