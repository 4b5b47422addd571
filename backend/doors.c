/*
 * The sockets; see doors.h.
 */
#include "backend/doors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"

struct fgv_door {
	struct fgv_transport transport;
	LIST_ENTRY(fgv_door) link;
};

static int add(struct fgv_doors *doors, const char *path, bool is_own, char *why, size_t why_len)
{
	struct fgv_door *door = calloc(1, sizeof(*door));
	int ret;

	if (!door) {
		snprintf(why, why_len, "%s: out of memory", path);
		return -ENOMEM;
	}
	ret = fgv_transport_init(&door->transport, doors->loop, path, is_own, doors->sessions,
				 doors->vms, why, why_len);
	if (ret)
		free(door);
	else
		LIST_INSERT_HEAD(&doors->list, door, link);
	return ret;
}

static void take_away(struct fgv_door *door)
{
	fgv_transport_fini(&door->transport);
	LIST_REMOVE(door, link);
	free(door);
}

int fgv_doors_init(struct fgv_doors *doors, int loop, const char *path,
		   struct fgv_sessions *sessions, const struct fgv_vms *vms, char *why,
		   size_t why_len)
{
	*doors = (struct fgv_doors){.loop = loop, .sessions = sessions, .vms = vms};
	LIST_INIT(&doors->list);
	return add(doors, path, false, why, why_len);
}

void fgv_doors_fini(struct fgv_doors *doors)
{
	struct fgv_door *door;

	while ((door = LIST_FIRST(&doors->list)))
		take_away(door);
}

int fgv_doors_open(struct fgv_doors *doors, const char *path, char *why, size_t why_len)
{
	const struct fgv_door *door;

	LIST_FOREACH(door, &doors->list, link) {
		if (door->transport.is_own && !strcmp(door->transport.path, path))
			return 0;
	}
	return add(doors, path, true, why, why_len);
}

/* The VM that has the socket at @path; NULL: there is none. */
static struct fgv_vm *owner_of(const struct fgv_doors *doors, const char *path)
{
	for (size_t i = 0; i < doors->vms->count; i++) {
		struct fgv_vm *vm = doors->vms->list[i];

		if (vm->config->socket && !strcmp(vm->config->socket, path))
			return vm;
	}
	return NULL;
}

void fgv_doors_settle(struct fgv_doors *doors)
{
	struct fgv_door *door, *after;

	for (door = LIST_FIRST(&doors->list); door; door = after) {
		struct fgv_transport *transport = &door->transport;
		struct fgv_vm *owner = transport->is_own ? owner_of(doors, transport->path) : NULL;

		after = LIST_NEXT(door, link);
		if (transport->is_own && !owner)
			take_away(door);
		else
			fgv_transport_lead(transport, owner);
	}
}

uint64_t fgv_doors_deadline_ns(const struct fgv_doors *doors)
{
	const struct fgv_door *door;
	uint64_t deadline_ns = 0;

	LIST_FOREACH(door, &doors->list, link)
		deadline_ns =
			fgv_earlier_ns(deadline_ns, fgv_transport_deadline_ns(&door->transport));
	return deadline_ns;
}

void fgv_doors_tick(struct fgv_doors *doors)
{
	struct fgv_door *door;

	LIST_FOREACH(door, &doors->list, link)
		fgv_transport_tick(&door->transport);
}

void fgv_doors_reaped(struct fgv_doors *doors)
{
	struct fgv_door *door;

	LIST_FOREACH(door, &doors->list, link)
		fgv_transport_reaped(&door->transport);
}
