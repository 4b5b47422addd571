/* Which GPUs a VM has; see devices.h. */
#include "backend/config/devices.h"

#include <errno.h>
#include <string.h>

static bool has_device(const struct fgv_config_devices *devices, uint64_t device)
{
	for (unsigned i = 0; i < devices->count; i++) {
		if (devices->list[i] == device)
			return true;
	}
	return false;
}

static void take_all_devices(struct fgv_config_devices *devices)
{
	devices->is_all = true;
	for (devices->count = 0; devices->count < FGV_GPU_DEVICES_MAX; devices->count++)
		devices->list[devices->count] = devices->count;
}

static int read_device(const struct fgv_config_reader *reader, const struct fgv_config_key *key,
		       const config_setting_t *setting, struct fgv_config_devices *devices)
{
	int type = config_setting_type(setting);
	long long device = config_setting_get_int64(setting);

	if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
		return fgv_config_values_refuse(reader, setting, key->name,
						"a device must be a whole number");
	if (device < 0 || (uint64_t)device > key->max)
		return fgv_config_values_refuse(reader, setting, key->name,
						"out of range: must be 0 to %llu",
						(unsigned long long)key->max);
	if (has_device(devices, (uint64_t)device))
		return fgv_config_values_refuse(reader, setting, key->name,
						"names device %lld twice", device);
	devices->list[devices->count++] = (unsigned)device;
	return 0;
}

int fgv_config_devices_read(const struct fgv_config_reader *reader,
			    const struct fgv_config_key *key, const config_setting_t *setting,
			    struct fgv_config_devices *devices)
{
	const char *text = config_setting_get_string(setting);
	int count, ret = 0;

	if (text && !strcmp(text, "all")) {
		take_all_devices(devices);
		return 0;
	}
	if (!fgv_config_values_is_sequence(setting))
		return fgv_config_values_refuse(reader, setting, key->name,
						"must be a list, as [0, 1], or \"all\"");
	count = config_setting_length(setting);
	if (count == 0)
		return fgv_config_values_refuse(reader, setting, key->name, "names no device");
	for (int i = 0; i < count && !ret; i++)
		ret = read_device(reader, key, config_setting_get_elem(setting, (unsigned)i),
				  devices);
	return ret;
}

/* The one device and the list of them become one thing. */
static int join_devices(const struct fgv_config_reader *reader, struct fgv_config_vm *vm)
{
	const config_setting_t *device = config_setting_get_member(vm->place, "device");
	struct fgv_config_devices *devices = &vm->devices;

	if (device && devices->count)
		return fgv_config_values_refuse(reader, device, "device",
						"\"devices\" says which ones already");
	if (!devices->count)
		*devices = (struct fgv_config_devices){
			.count = 1,
			.list = {(unsigned)vm->device},
		};
	vm->device = devices->list[0];
	return 0;
}

/* Keys that only placement knows. */
static int check_placing(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm)
{
	static const char *const keys[] = {"place_wait", "need"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !fgv_config_places(vm); i++) {
		const config_setting_t *setting = config_setting_get_member(vm->place, keys[i]);

		if (setting)
			return fgv_config_values_refuse(reader, setting, keys[i],
							"means nothing where programs are not "
							"placed (key place)");
	}
	return 0;
}

int fgv_config_devices_join(const struct fgv_config_reader *reader)
{
	int ret = 0;

	for (size_t i = 0; i < reader->config->vm_count && !ret; i++)
		ret = join_devices(reader, &reader->config->vms[i]);
	for (size_t i = 0; i < reader->config->vm_count && !ret; i++)
		ret = check_placing(reader, &reader->config->vms[i]);
	return ret;
}

bool fgv_config_uses(const struct fgv_config_vm *vm, uint64_t device)
{
	return has_device(&vm->devices, device);
}

size_t fgv_config_device_count(const struct fgv_config_vm *vm, size_t devices)
{
	return vm->devices.is_all ? devices : vm->devices.count;
}

/* The key that says which devices a VM has; @vm's group where there is none. */
static const config_setting_t *place_of_devices(const struct fgv_config_vm *vm, const char **key)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "devices");

	*key = place ? "devices" : "device";
	if (!place)
		place = config_setting_get_member(vm->place, "device");
	return place ? place : vm->place;
}

static int check_devices_of(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
			    size_t devices, bool is_mps)
{
	size_t count = fgv_config_device_count(vm, devices);
	const char *key;
	const config_setting_t *place = place_of_devices(vm, &key);

	for (size_t i = 0; i < count; i++) {
		if (vm->devices.list[i] >= devices)
			return fgv_config_values_refuse(
				reader, place, key,
				"there is no device %u: there are %zu, counted from 0",
				vm->devices.list[i], devices);
	}
	if (fgv_config_places(vm))
		return 0;
	if (count > 1 && vm->ivshmem)
		return fgv_config_values_refuse(reader, place, key,
						"a VM with a QEMU guest has one device");
	if (count > 1 && is_mps)
		return fgv_config_values_refuse(reader, place, key,
						"under MPS a VM has one device");
	return 0;
}

int fgv_config_check_devices(const struct fgv_config *config, size_t devices, char *why,
			     size_t why_len)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};

	int ret = 0;

	for (size_t i = 0; i < config->vm_count && !ret; i++)
		ret = check_devices_of(&reader, &config->vms[i], devices,
				       config->context == FGV_CONTEXT_MPS);
	return ret;
}
