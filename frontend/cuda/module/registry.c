/*
 * The lists of what is registered, and the tables by which it is found.
 *
 * Locks: registry.mutex guards the lists and is taken before a module's.
 */
#include "frontend/cuda/module/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cuda/context/context.h"
#include "frontend/cuda/context/errlog.h"
#include "frontend/cuda/context/object.h"
#include "frontend/cuda/graph/exec_kept.h"
#include "frontend/cuda/memory/addrmap.h"
#include "frontend/cuda/memory/hostmem.h"
#include "frontend/cuda/module/ptrhash.h"

static struct {
	pthread_mutex_t mutex;
	struct fgv_module *modules;
	struct fgv_ptrhash kernels; /* by their own addresses */
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct fgv_module *add(const struct fgv_module *made)
{
	struct fgv_module *module = malloc(sizeof(*module));

	if (!module)
		return NULL;
	*module = *made;
	pthread_mutex_init(&module->mutex, NULL);
	pthread_mutex_lock(&registry.mutex);
	module->next = registry.modules;
	registry.modules = module;
	pthread_mutex_unlock(&registry.mutex);
	return module;
}

struct fgv_module *fgv_registry_add(const void *wrapper)
{
	return add(&(struct fgv_module){.wrapper = wrapper});
}

struct fgv_module *fgv_registry_add_image(const void *image, uint64_t len)
{
	struct fgv_module made = {.image = malloc(len), .image_len = len}, *module = NULL;

	if (made.image) {
		memcpy(made.image, image, len);
		module = add(&made);
	}
	if (!module)
		free(made.image);
	return module;
}

/* The link that points to @module; to NULL if it is not registered. */
static struct fgv_module **find_locked(const struct fgv_module *module)
{
	struct fgv_module **link = &registry.modules;

	while (*link && *link != module)
		link = &(*link)->next;
	return link;
}

static int keep_locked(struct fgv_module *module, struct fgv_kernel *kernel)
{
	int err = fgv_ptrhash_set(&registry.kernels, kernel, kernel);

	if (err)
		return err;
	kernel->module = module;
	kernel->carveout = -1;
	kernel->next = module->kernels;
	module->kernels = kernel;
	return 0;
}

struct fgv_kernel *fgv_registry_add_kernel(struct fgv_module *module, const char *name)
{
	struct fgv_kernel *kernel = calloc(1, sizeof(*kernel));
	int err = -EINVAL;

	if (!kernel)
		return NULL;
	kernel->name = name;
	pthread_mutex_lock(&registry.mutex);
	if (*find_locked(module))
		err = keep_locked(module, kernel);
	pthread_mutex_unlock(&registry.mutex);
	if (!err)
		return kernel;
	free(kernel);
	return NULL;
}

struct fgv_variable *fgv_registry_add_variable(struct fgv_module *module, const char *name,
					       uint64_t size, void **managed)
{
	struct fgv_variable *variable = malloc(sizeof(*variable));
	bool is_kept;

	if (!variable)
		return NULL;
	*variable = (struct fgv_variable){
		.name = name, .size = size, .managed = managed, .module = module};
	pthread_mutex_lock(&registry.mutex);
	is_kept = *find_locked(module);
	if (is_kept) {
		variable->next = module->variables;
		module->variables = variable;
	}
	pthread_mutex_unlock(&registry.mutex);
	if (is_kept)
		return variable;
	free(variable);
	return NULL;
}

bool fgv_registry_has_managed(const struct fgv_module *module)
{
	const struct fgv_variable *variable = module ? module->variables : NULL;

	while (variable && !variable->managed)
		variable = variable->next;
	return variable;
}

static struct fgv_kernel *find_kernel_locked(const struct fgv_module *module, const char *name)
{
	struct fgv_kernel *kernel = module->kernels;

	while (kernel && strcmp(kernel->name, name) != 0)
		kernel = kernel->next;
	return kernel;
}

/* With a copy of @name behind it. */
static struct fgv_kernel *make_kernel_locked(struct fgv_module *module, const char *name)
{
	size_t len = strlen(name) + 1;
	struct fgv_kernel *kernel = calloc(1, sizeof(*kernel) + len);

	if (!kernel)
		return NULL;
	kernel->name = memcpy(kernel + 1, name, len);
	if (!keep_locked(module, kernel))
		return kernel;
	free(kernel);
	return NULL;
}

struct fgv_kernel *fgv_registry_kernel_named(struct fgv_module *module, const char *name)
{
	struct fgv_kernel *kernel;

	pthread_mutex_lock(&registry.mutex);
	kernel = find_kernel_locked(module, name);
	if (!kernel)
		kernel = make_kernel_locked(module, name);
	pthread_mutex_unlock(&registry.mutex);
	return kernel;
}

static struct fgv_variable *find_variable_locked(const struct fgv_module *module, const char *name)
{
	struct fgv_variable *variable = module->variables;

	while (variable && strcmp(variable->name, name) != 0)
		variable = variable->next;
	return variable;
}

/* With a copy of @name behind it. */
static struct fgv_variable *make_variable_locked(struct fgv_module *module, const char *name)
{
	size_t len = strlen(name) + 1;
	struct fgv_variable *variable = calloc(1, sizeof(*variable) + len);

	if (!variable)
		return NULL;
	variable->module = module;
	variable->name = memcpy(variable + 1, name, len);
	variable->next = module->variables;
	module->variables = variable;
	return variable;
}

struct fgv_variable *fgv_registry_variable_named(struct fgv_module *module, const char *name)
{
	struct fgv_variable *variable;

	pthread_mutex_lock(&registry.mutex);
	variable = find_variable_locked(module, name);
	if (!variable)
		variable = make_variable_locked(module, name);
	pthread_mutex_unlock(&registry.mutex);
	return variable;
}

int fgv_registry_add_managed_named(struct fgv_module *module, const char *name, uint64_t size)
{
	struct fgv_variable *variable = fgv_registry_variable_named(module, name);

	if (!variable)
		return -ENOMEM;
	/* It has its memory, as long as the host said then. */
	if (variable->address && (!variable->managed || variable->size != size))
		return -EINVAL;
	variable->size = size;
	variable->managed = &variable->own;
	return 0;
}

struct fgv_variable *fgv_registry_managed_named(struct fgv_module *module, const char *name)
{
	struct fgv_variable *variable;

	pthread_mutex_lock(&registry.mutex);
	variable = find_variable_locked(module, name);
	pthread_mutex_unlock(&registry.mutex);
	return variable && variable->managed ? variable : NULL;
}

/* --- On other devices --------------------------------------------------------- */

static struct fgv_module *make_twin_locked(struct fgv_module *original, uint32_t device)
{
	struct fgv_module *twin = calloc(1, sizeof(*twin));

	if (!twin)
		return NULL;
	twin->wrapper = original->wrapper;
	twin->image = original->image;
	twin->image_len = original->image_len;
	twin->original = original;
	pthread_mutex_init(&twin->mutex, NULL);
	original->twins[device] = twin;
	return twin;
}

static CUresult module_on_locked(uint32_t device, struct fgv_module **module)
{
	struct fgv_module *original = (*module)->original ? (*module)->original : *module;
	struct fgv_module *twin = device ? original->twins[device] : original;

	/* Which may have become known after the twin was made. */
	if (device && fgv_registry_has_managed(original))
		return FGV_UNSUPPORTED("managed variables on another device than the first");
	if (!twin)
		twin = make_twin_locked(original, device);
	if (!twin)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*module = twin;
	return CUDA_SUCCESS;
}

static CUresult kernel_on_locked(uint32_t device, struct fgv_kernel **kernel)
{
	struct fgv_module *module = (*kernel)->module;
	CUresult res = module_on_locked(device, &module);
	struct fgv_kernel *twin;

	if (res)
		return res;
	twin = find_kernel_locked(module, (*kernel)->name);
	if (!twin)
		twin = make_kernel_locked(module, (*kernel)->name);
	if (!twin)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (twin != *kernel && device)
		twin->original = (*kernel)->original ? (*kernel)->original : *kernel;
	twin->host = (*kernel)->host;
	*kernel = twin;
	return CUDA_SUCCESS;
}

/* Keeps @twin where it is found without a lock; without memory it is not. */
static void keep_twin_locked(struct fgv_kernel *kernel, uint32_t device, struct fgv_kernel *twin)
{
	struct fgv_kernel **twins = kernel->twins;

	if (!twins) {
		twins = calloc(FGV_DEVICES_MAX, sizeof(struct fgv_kernel *));
		/* Pairs with the acquire in fgv_registry_kernel_twin(), as does the next. */
		__atomic_store_n(&kernel->twins, twins, __ATOMIC_RELEASE);
	}
	if (twins)
		__atomic_store_n(&twins[device], twin, __ATOMIC_RELEASE);
}

CUresult fgv_registry_kernel_twin(uint32_t device, struct fgv_kernel **kernel)
{
	struct fgv_kernel *asked = *kernel;
	struct fgv_kernel **twins = __atomic_load_n(&asked->twins, __ATOMIC_ACQUIRE);
	struct fgv_kernel *twin = twins ? __atomic_load_n(&twins[device], __ATOMIC_ACQUIRE) : NULL;
	CUresult res;

	if (twin) {
		*kernel = twin;
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&registry.mutex);
	res = kernel_on_locked(device, kernel);
	if (!res)
		keep_twin_locked(asked, device, *kernel);
	pthread_mutex_unlock(&registry.mutex);
	return res;
}

CUresult fgv_registry_module_on(uint32_t device, struct fgv_module **module)
{
	CUresult res;

	if (!device)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&registry.mutex);
	res = module_on_locked(device, module);
	pthread_mutex_unlock(&registry.mutex);
	return res;
}

CUresult fgv_registry_variable_on(uint32_t device, struct fgv_variable **variable)
{
	struct fgv_module *module = (*variable)->module;
	struct fgv_variable *twin;
	CUresult res;

	if (!device)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&registry.mutex);
	res = module_on_locked(device, &module);
	twin = res ? NULL : find_variable_locked(module, (*variable)->name);
	if (!res && !twin)
		twin = make_variable_locked(module, (*variable)->name);
	if (!res && !twin)
		res = CUDA_ERROR_OUT_OF_MEMORY;
	if (!res) {
		twin->size = (*variable)->size;
		*variable = twin;
	}
	pthread_mutex_unlock(&registry.mutex);
	return res;
}

/* --- The end ------------------------------------------------------------------ */

struct fgv_kernel *fgv_registry_kernel(const void *handle)
{
	return fgv_ptrhash_find(&registry.kernels, handle);
}

static void forget_kernel(struct fgv_kernel *kernel)
{
	__atomic_store_n(&kernel->ready, 0, __ATOMIC_RELAXED);
	free(kernel->info);
	kernel->info = NULL;
}

/* A managed one stays where the program has seen it. */
static void forget_variable(struct fgv_variable *variable)
{
	if (__atomic_exchange_n(&variable->ready, 0, __ATOMIC_RELAXED) && !variable->managed)
		fgv_addrmap_remove(variable->address, FGV_RANGE_VARIABLE);
}

/* With @lane, tells the host too. */
static void unload(struct fgv_module *module, struct fgv_lane *lane)
{
	pthread_mutex_lock(&module->mutex);
	for (struct fgv_kernel *each = module->kernels; each; each = each->next)
		forget_kernel(each);
	for (struct fgv_variable *each = module->variables; each; each = each->next)
		forget_variable(each);
	if (lane && module->tried && !module->result) {
		fgv_exec_kept_drop(lane);
		fgv_post_module_unload(lane, module->handle);
	}
	free(module->snapshot);
	module->snapshot = NULL;
	module->tried = false;
	pthread_mutex_unlock(&module->mutex);
}

/* At the end of the program managed variables stay for whoever still reads them. */
static void free_managed(const struct fgv_module *module, struct fgv_lane *lane)
{
	for (const struct fgv_variable *each = module->variables; each; each = each->next) {
		if (each->managed && each->address)
			fgv_hostmem_free(lane, each->address, FGV_RANGE_MANAGED_VARIABLE);
	}
}

static void destroy(struct fgv_module *module)
{
	struct fgv_variable *variable;
	struct fgv_object_info name;
	struct fgv_kernel *kernel;

	while ((kernel = module->kernels)) {
		module->kernels = kernel->next;
		fgv_ptrhash_remove(&registry.kernels, kernel);
		free(kernel->fits);
		free(kernel->twins);
		free(kernel);
	}
	while ((variable = module->variables)) {
		module->variables = variable->next;
		free(variable);
	}
	if (module->library)
		fgv_object_destroy(FGV_OBJECT_LIBRARY, module->library, &name);
	pthread_mutex_destroy(&module->mutex);
	if (!module->original)
		free(module->image);
	free(module->found);
	free(module);
}

/* On device @device; whoever asks for it again makes another. */
static void remove_twin(struct fgv_module *module, uint32_t device)
{
	struct fgv_lane *lane = NULL;
	struct fgv_module *twin = NULL;

	pthread_mutex_lock(&registry.mutex);
	if (*find_locked(module)) {
		twin = module->twins[device];
		module->twins[device] = NULL;
	}
	pthread_mutex_unlock(&registry.mutex);
	if (!twin)
		return;
	if (fgv_context_enter_on(device, &lane))
		lane = NULL;
	pthread_mutex_lock(&registry.mutex);
	unload(twin, lane);
	destroy(twin);
	pthread_mutex_unlock(&registry.mutex);
	if (lane)
		fgv_lane_leave(lane);
}

/* A library that is unloaded; or the end of the program, when there is no lane to have. */
void fgv_registry_remove(struct fgv_module *module)
{
	struct fgv_module **link;
	struct fgv_lane *lane = NULL;

	for (uint32_t i = 1; i < fgv_session_count(); i++)
		remove_twin(module, i);
	if (fgv_session_existing() && fgv_context_enter_on(0, &lane))
		lane = NULL;
	pthread_mutex_lock(&registry.mutex);
	link = find_locked(module);
	if (*link) {
		*link = module->next;
		unload(module, lane);
		if (lane)
			free_managed(module, lane);
		destroy(module);
	}
	pthread_mutex_unlock(&registry.mutex);
	if (lane)
		fgv_lane_leave(lane);
}

void fgv_registry_unload(struct fgv_lane *lane)
{
	uint32_t device = lane->client->device;

	pthread_mutex_lock(&registry.mutex);
	for (struct fgv_module *each = registry.modules; each; each = each->next) {
		struct fgv_module *there = device ? each->twins[device] : each;

		if (there)
			unload(there, lane);
	}
	pthread_mutex_unlock(&registry.mutex);
}
