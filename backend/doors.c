/*
 * The sockets; see doors.h.
 */
#include "backend/doors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/util.h"

int fgv_doors_init(struct fgv_doors *doors, int loop, const char *path,
		   struct fgv_sessions *sessions, struct fgv_vm *vms, size_t vm_count, char *why,
		   size_t why_len)
{
	int ret;

	*doors = (struct fgv_doors){.list = calloc(vm_count + 1, sizeof(*doors->list))};
	if (!doors->list) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	ret = fgv_transport_init(&doors->list[0], loop, path, NULL, sessions, vms, vm_count, why,
				 why_len);
	if (!ret)
		doors->count++;
	for (size_t i = 0; i < vm_count && !ret; i++) {
		if (!vms[i].config->socket)
			continue;
		ret = fgv_transport_init(&doors->list[doors->count], loop, vms[i].config->socket,
					 &vms[i], sessions, vms, vm_count, why, why_len);
		if (!ret)
			doors->count++;
	}
	if (ret)
		fgv_doors_fini(doors);
	return ret;
}

void fgv_doors_fini(struct fgv_doors *doors)
{
	while (doors->count)
		fgv_transport_fini(&doors->list[--doors->count]);
	free(doors->list);
	doors->list = NULL;
}

uint64_t fgv_doors_deadline_ns(const struct fgv_doors *doors)
{
	uint64_t deadline_ns = 0;

	for (size_t i = 0; i < doors->count; i++)
		deadline_ns =
			fgv_earlier_ns(deadline_ns, fgv_transport_deadline_ns(&doors->list[i]));
	return deadline_ns;
}

void fgv_doors_tick(struct fgv_doors *doors)
{
	for (size_t i = 0; i < doors->count; i++)
		fgv_transport_tick(&doors->list[i]);
}

void fgv_doors_reaped(struct fgv_doors *doors)
{
	for (size_t i = 0; i < doors->count; i++)
		fgv_transport_reaped(&doors->list[i]);
}
