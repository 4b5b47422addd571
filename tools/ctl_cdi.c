/*
 * fairgvctl cdi: the VMs with sockets of their own as devices of the Container Device Interface, so
 * that "podman run --device fairgv.dev/gpu=NAME" gives a container its VM. The specification is
 * CNCF's, version 0.5.0: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
 */
#include "tools/ctl.h"

#include <errno.h>
#include <stdio.h>
#include "backend/config/config.h"
#include "common/log.h"

#define CDI_VERSION "0.5.0"
#define CDI_KIND    "fairgv.dev/gpu"

/* As it is on the host; nothing in it can be changed, executed as another user, or be a device. */
static json_t *mount_of(const char *path)
{
	return json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath", path, "containerPath", path,
			 "options", "ro", "nosuid", "nodev", "rbind");
}

static json_t *setting(const char *name, const char *value)
{
	return json_sprintf("%s=%s", name, value);
}

/*
 * The socket and not its folder, which only root of the host may enter, and users of the container
 * may not be that.
 */
static json_t *device_of(const struct fgv_config_vm *vm)
{
	return json_pack("{s:s, s:{s:[o], s:[o]}}", "name", vm->name, "containerEdits", "env",
			 setting("FAIRGV_SOCKET", vm->socket), "mounts", mount_of(vm->socket));
}

static json_t *devices_of(const struct fgv_config *config)
{
	json_t *devices = json_array();
	int err = 0;

	for (size_t i = 0; i < config->vm_count; i++) {
		if (config->vms[i].socket)
			err |= json_array_append_new(devices, device_of(&config->vms[i]));
	}
	if (!err)
		return devices;
	json_decref(devices);
	return NULL;
}

static int print(const struct fgv_config *config)
{
	json_t *devices = devices_of(config);
	json_t *spec;

	if (devices && !json_array_size(devices)) {
		json_decref(devices);
		fgv_error("%s: no VM has a socket of its own (key \"socket\" in its group)",
			  config->file);
		return -ENOENT;
	}
	spec = json_pack("{s:s, s:s, s:o, s:{s:[o], s:[o]}}", "cdiVersion", CDI_VERSION, "kind",
			 CDI_KIND, "devices", devices, "containerEdits", "env",
			 setting("LD_LIBRARY_PATH", FGV_PKGLIBDIR), "mounts",
			 mount_of(FGV_PKGLIBDIR));
	if (!spec) {
		fgv_error("out of memory");
		return -ENOMEM;
	}
	json_dumpf(spec, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(spec);
	return fgv_ctl_flush();
}

int fgv_ctl_cdi(const char *config_path)
{
	struct fgv_config config;
	char why[1024];
	int ret = fgv_config_load(&config, config_path, why, sizeof(why));

	if (ret) {
		fgv_error("%s", why);
		return ret;
	}
	ret = print(&config);
	fgv_config_fini(&config);
	return ret;
}
