/*
 * What nvcc's start-up code calls: registering fat binaries, kernels and variables. Each binary is
 * a module of the core; the handle that the code passes around is what is known of it here.
 * Nothing is sent to the host before it is used.
 *
 * Lock: registered.mutex guards the lists, and is taken by whoever changes the tables.
 */
#include "frontend/libcudart/registration.h"

#include <pthread.h>
#include <stdlib.h>

#include "frontend/cuda/module/module.h"
#include "frontend/cuda/module/ptrhash.h"
#include "frontend/libcudart/cudart.h"

/* An address of the program's that stands for something. */
struct name {
	struct name *next;
	struct fgv_ptrhash *table;
	const void *host;
	void *what;
};

struct binary {
	struct binary *next;
	struct fgv_module *module;
	struct name *names;
};

static struct {
	pthread_mutex_t mutex;
	struct binary *binaries; /* the last one first, which is the next to be asked for */
	struct fgv_ptrhash kernels;
	struct fgv_ptrhash variables;
} registered = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct fgv_kernel *fgv_registration_kernel(const void *host)
{
	return fgv_ptrhash_find(&registered.kernels, host);
}

struct fgv_kernel *fgv_registration_find(const void *func)
{
	struct fgv_kernel *kernel = fgv_registration_kernel(func);

	return kernel ? kernel : fgv_registry_kernel(func);
}

struct fgv_variable *fgv_registration_variable(const void *host)
{
	return fgv_ptrhash_find(&registered.variables, host);
}

/* The link that points to what @handle stands for; to NULL if that is nothing. */
static struct binary **find_locked(void **handle)
{
	struct binary **link = &registered.binaries;

	while (*link && *link != (struct binary *)handle)
		link = &(*link)->next;
	return link;
}

/* NULL: none that is registered. */
static struct binary *find(void **handle)
{
	struct binary *binary;

	pthread_mutex_lock(&registered.mutex);
	binary = *find_locked(handle);
	pthread_mutex_unlock(&registered.mutex);
	return binary;
}

FGV_EXPORT void **__cudaRegisterFatBinary(void *wrapper)
{
	struct binary *binary = calloc(1, sizeof(*binary));

	if (!binary)
		return NULL;
	binary->module = fgv_registry_add(wrapper);
	if (!binary->module) {
		free(binary);
		return NULL;
	}
	pthread_mutex_lock(&registered.mutex);
	binary->next = registered.binaries;
	registered.binaries = binary;
	pthread_mutex_unlock(&registered.mutex);
	return (void **)binary;
}

/* All is registered; nothing is sent before it is used. */
FGV_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

static void forget_names_locked(struct binary *binary)
{
	struct name *name;

	while ((name = binary->names)) {
		binary->names = name->next;
		if (fgv_ptrhash_find(name->table, name->host) == name->what)
			fgv_ptrhash_remove(name->table, name->host);
		free(name);
	}
}

/* Anything that is not registered is ignored. */
FGV_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	struct binary **link, *binary;

	pthread_mutex_lock(&registered.mutex);
	link = find_locked(handle);
	binary = *link;
	if (binary) {
		*link = binary->next;
		forget_names_locked(binary);
	}
	pthread_mutex_unlock(&registered.mutex);
	if (binary)
		fgv_registry_remove(binary->module);
	free(binary);
}

/* Without memory what is named stays unknown, and its use says so. */
static void add_name(struct binary *binary, struct fgv_ptrhash *table, const void *host, void *what)
{
	struct name *name = malloc(sizeof(*name));

	if (!name)
		return;
	*name = (struct name){.table = table, .host = host, .what = what};
	pthread_mutex_lock(&registered.mutex);
	if (!fgv_ptrhash_set(table, host, what)) {
		name->next = binary->names;
		binary->names = name;
		name = NULL;
	}
	pthread_mutex_unlock(&registered.mutex);
	free(name);
}

FGV_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
				       const char *name, int thread_limit, uint3 *tid, uint3 *bid,
				       dim3 *block, dim3 *grid, int *warp_size)
{
	struct binary *binary = find(handle);
	struct fgv_kernel *kernel;

	(void)device, (void)thread_limit, (void)tid, (void)bid;
	(void)block, (void)grid, (void)warp_size;
	if (!binary || !host || !name)
		return;
	kernel = fgv_registry_add_kernel(binary->module, name);
	if (!kernel)
		return;
	kernel->host = host;
	add_name(binary, &registered.kernels, host, kernel);
}

static void add_variable(struct binary *binary, const void *host, void **managed, const char *name,
			 size_t size)
{
	struct fgv_variable *variable;

	if (!binary || !host || !name)
		return;
	variable = fgv_registry_add_variable(binary->module, name, size, managed);
	if (variable)
		add_name(binary, &registered.variables, host, variable);
}

FGV_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
				  int external, size_t size, int constant, int global)
{
	(void)device, (void)external, (void)constant, (void)global;
	add_variable(find(handle), host, NULL, name, size);
}

/* The program reaches the variable through the pointer at @host. */
FGV_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
					 int external, size_t size, int constant, int global)
{
	(void)device, (void)external, (void)constant, (void)global;
	add_variable(find(handle), host, host, name, size);
}

/* Asked for before a managed variable is used; nonzero: don't ask again. */
FGV_EXPORT char __cudaInitModule(void **handle)
{
	struct binary *binary = find(handle);

	return !binary || !fgv_registry_has_managed(binary->module) ||
	       !FGV_RESULT(fgv_module_enter(binary->module));
}
