/*
 * Learning channels; see channels.h. Calls are looked at when they have returned, as the handles
 * are the resource manager's choice. What is freed again is forgotten.
 */
#define _GNU_SOURCE
#include "backend/vgpu/channels.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/sched/rm.h"

#define OBJECTS_MAX 256

/* Of those that count: subdevices, groups that compute, and channels of these. */
struct object {
	uint32_t client, parent, number;
	uint32_t class;
	int fd;
};

static struct {
	pthread_mutex_t lock;
	unsigned count;
	bool is_full;
	struct object objects[OBJECTS_MAX];
} learnt = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- What has been made; the lock is held ---------------------------------- */

static const struct object *find(uint32_t client, uint32_t number)
{
	for (unsigned i = 0; i < learnt.count; i++) {
		if (learnt.objects[i].client == client && learnt.objects[i].number == number)
			return &learnt.objects[i];
	}
	return NULL;
}

static bool computes(const struct fgv_rm_alloc *alloc, size_t len)
{
	const struct fgv_rm_group_params *params = (const void *)(uintptr_t)alloc->params;

	return len >= sizeof(*alloc) && params && params->engine == FGV_RM_ENGINE_COMPUTE;
}

static bool counts(const struct fgv_rm_alloc *alloc, size_t len)
{
	const struct object *parent;

	if (alloc->class == FGV_RM_SUBDEVICE)
		return true;
	if (alloc->class == FGV_RM_GROUP)
		return computes(alloc, len);
	if (!FGV_RM_IS_CHANNEL(alloc->class))
		return false;
	parent = find(alloc->client, alloc->parent);
	return parent && parent->class == FGV_RM_GROUP;
}

static void add(int fd, const struct fgv_rm_alloc *alloc, size_t len)
{
	if (!counts(alloc, len))
		return;
	if (learnt.count == OBJECTS_MAX) {
		learnt.is_full = true;
		return;
	}
	learnt.objects[learnt.count++] = (struct object){
		.client = alloc->client,
		.parent = alloc->parent,
		.number = alloc->object,
		.class = alloc->class,
		.fd = fd,
	};
}

/* With a client or a parent goes all that hangs on it. */
static void drop(uint32_t client, uint32_t number)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < learnt.count; i++) {
		const struct object *object = &learnt.objects[i];

		if (object->client == client &&
		    (number == client || object->number == number || object->parent == number))
			continue;
		learnt.objects[kept++] = *object;
	}
	learnt.count = kept;
}

/* --- What the driver says -------------------------------------------------- */

static bool alloc_succeeded(const void *data, size_t len)
{
	size_t off =
		len == FGV_RM_ALLOC_LONG ? FGV_RM_ALLOC_LONG_STATUS : FGV_RM_ALLOC_SHORT_STATUS;
	uint32_t status;

	if (len != FGV_RM_ALLOC_LONG && len != FGV_RM_ALLOC_SHORT)
		return false;
	memcpy(&status, (const char *)data + off, sizeof(status));
	return status == FGV_RM_OK;
}

static void look_at(int fd, unsigned number, const void *data, size_t len)
{
	const struct fgv_rm_free *freed = data;

	if (number == FGV_RM_ALLOC && alloc_succeeded(data, len)) {
		pthread_mutex_lock(&learnt.lock);
		add(fd, data, len);
		pthread_mutex_unlock(&learnt.lock);
	} else if (number == FGV_RM_FREE && len == sizeof(*freed) && freed->status == FGV_RM_OK) {
		pthread_mutex_lock(&learnt.lock);
		drop(freed->client, freed->object);
		pthread_mutex_unlock(&learnt.lock);
	}
}

void fgv_channels_look(int fd, unsigned long request, const void *data)
{
	const struct fgv_rm_xfer *xfer = data;

	if (_IOC_TYPE(request) != FGV_RM_TYPE || !data)
		return;
	if (_IOC_NR(request) == FGV_RM_XFER && _IOC_SIZE(request) == sizeof(*xfer))
		look_at(fd, xfer->command, (const void *)(uintptr_t)xfer->data, xfer->size);
	else
		look_at(fd, _IOC_NR(request), data, _IOC_SIZE(request));
}

/* In the place of the C library's, for all libraries of this process. */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *data;
	long ret;

	va_start(args, request);
	data = va_arg(args, void *);
	va_end(args);
	ret = syscall(SYS_ioctl, fd, request, data);
	if (ret == 0)
		fgv_channels_look(fd, request, data);
	return (int)ret;
}

/* --- What is told of it ---------------------------------------------------- */

static bool add_group(struct fgv_channels *channels, const struct object *group, int *fd)
{
	if (channels->group_count == FGV_CHANNEL_GROUPS_MAX || (*fd >= 0 && *fd != group->fd))
		return false;
	channels->groups[channels->group_count++] =
		(struct fgv_channel_group){group->client, group->number};
	*fd = group->fd;
	return true;
}

static bool add_channel(struct fgv_channels *channels, const struct object *channel)
{
	if (channels->channel_count == FGV_CHANNELS_MAX)
		return false;
	channels->channels[channels->channel_count++] =
		(struct fgv_channel){channel->client, channel->number};
	return true;
}

/* The one beside @group, on the same device; or the client's only one. */
static void choose_subdevice(struct fgv_channels *channels, const struct object *group)
{
	const struct object *found = NULL, *beside = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < learnt.count; i++) {
		const struct object *object = &learnt.objects[i];

		if (object->class != FGV_RM_SUBDEVICE || object->client != group->client)
			continue;
		count++;
		found = object;
		if (object->parent == group->parent)
			beside = object;
	}
	if (!beside && count == 1)
		beside = found;
	if (!beside)
		return;
	channels->client = beside->client;
	channels->subdevice = beside->number;
}

static void describe(struct fgv_channels *channels, int *fd)
{
	bool is_all = !learnt.is_full;

	for (unsigned i = 0; i < learnt.count; i++) {
		const struct object *object = &learnt.objects[i];

		if (object->class == FGV_RM_GROUP) {
			is_all &= add_group(channels, object, fd);
			choose_subdevice(channels, object);
		} else if (object->class != FGV_RM_SUBDEVICE) {
			is_all &= add_channel(channels, object);
		}
	}
	channels->is_partial = !is_all;
}

int fgv_channels_learnt(struct fgv_channels *channels)
{
	int fd = -1;

	memset(channels, 0, sizeof(*channels));
	pthread_mutex_lock(&learnt.lock);
	describe(channels, &fd);
	pthread_mutex_unlock(&learnt.lock);
	channels->has_file = fd >= 0;
	return fd;
}
