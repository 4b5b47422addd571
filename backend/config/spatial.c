/* Multiprocessors that the configuration reserves; see spatial.h. */
#include "backend/config/spatial.h"

#include <errno.h>
#include "backend/config/text.h"
#include "scheduler/spatial.h"

/* One that is given although nobody would keep it. */
static int check_known(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
		       const char *key, bool is_given)
{
	const struct fgv_policy *policy = reader->config->policy;

	if (!is_given || policy->set_units)
		return 0;
	return fgv_config_values_refuse(
		reader, config_setting_get_member(vm->place, key), key,
		"policy \"%s\" divides no multiprocessors; \"smguard\" does", policy->name);
}

static bool is_part(uint64_t sms)
{
	return sms & FGV_CONFIG_PART;
}

/* Both as parts, or both as numbers; otherwise the GPU tells. */
static bool is_above(uint64_t sms, uint64_t limit)
{
	return limit && sms > limit && is_part(sms) == is_part(limit);
}

/* The parts that @device's VMs up to @vm have reserved. */
static uint64_t parts_up_to(const struct fgv_config *config, const struct fgv_config_vm *vm,
			    unsigned device)
{
	uint64_t sum = 0;

	for (const struct fgv_config_vm *other = config->vms; other <= vm; other++) {
		if (fgv_config_uses(other, device) && is_part(other->sms))
			sum += other->sms & ~FGV_CONFIG_PART;
	}
	return sum;
}

static int check_device_of(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
			   unsigned device)
{
	uint64_t sum = parts_up_to(reader->config, vm, device);
	char text[32];

	if (!vm->sms || sum <= FGV_SCHED_WHOLE)
		return 0;
	fgv_config_text_show_share(sum, text, sizeof(text));
	return fgv_config_values_refuse(reader, config_setting_get_member(vm->place, "sms"), "sms",
					"the VMs of device %u would have reserved %s", device,
					text);
}

static int check_vm(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm)
{
	int ret = check_known(reader, vm, "sms", vm->sms != 0);

	if (!ret)
		ret = check_known(reader, vm, "sms_limit", vm->sms_limit != 0);
	if (ret)
		return ret;
	if (is_above(vm->sms, vm->sms_limit))
		return fgv_config_values_refuse(reader, config_setting_get_member(vm->place, "sms"),
						"sms", "is above sms_limit");
	for (unsigned i = 0; i < vm->devices.count && !ret; i++)
		ret = check_device_of(reader, vm, vm->devices.list[i]);
	return ret;
}

/* Contexts of their own take turns on an NVIDIA GPU, whatever multiprocessors they are for. */
static int check_context(const struct fgv_config_reader *reader, const config_setting_t *top)
{
	const struct fgv_config *config = reader->config;

	if (!config->policy->set_units || config->gpu.kind != FGV_GPU_CUDA ||
	    config->context == FGV_CONTEXT_MPS)
		return 0;
	return fgv_config_values_refuse(reader, config_setting_get_member(top, "policy"), "policy",
					"\"%s\" needs context = \"mps\" on NVIDIA's GPUs: programs "
					"with contexts of their own do not run at once",
					config->policy->name);
}

int fgv_config_spatial_check(const struct fgv_config_reader *reader, const config_setting_t *top)
{
	int ret = check_context(reader, top);

	for (size_t i = 0; i < reader->config->vm_count && !ret; i++)
		ret = check_vm(reader, &reader->config->vms[i]);
	return ret;
}

/* --- With the GPU ------------------------------------------------------------- */

static uint32_t units_of(uint64_t sms, const struct fgv_units *gpu)
{
	return fgv_spatial_units(sms & ~FGV_CONFIG_PART, is_part(sms), gpu->units, gpu->each);
}

void fgv_config_vm_units(const struct fgv_config_vm *vm, const struct fgv_units *gpu,
			 uint32_t *units, uint32_t *limit)
{
	*units = units_of(vm->sms, gpu);
	*limit = units_of(vm->sms_limit, gpu);
}

static const config_setting_t *place_of(const struct fgv_config_vm *vm, const char *key)
{
	return config_setting_get_member(vm->place, key);
}

static int check_units_of(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
			  const struct fgv_units *gpu, unsigned *reserved)
{
	uint32_t units, limit;

	fgv_config_vm_units(vm, gpu, &units, &limit);
	*reserved += units;
	if (limit && !gpu->lends)
		return fgv_config_values_refuse(reader, place_of(vm, "sms_limit"), "sms_limit",
						"is for multiprocessors that are lent, as only "
						"those of soft GPUs are");
	if (limit && units > limit)
		return fgv_config_values_refuse(reader, place_of(vm, "sms"), "sms",
						"is above sms_limit");
	if (units && *reserved > gpu->units)
		return fgv_config_values_refuse(
			reader, place_of(vm, "sms"), "sms",
			"does not fit: the VMs up to this one reserve %u of the GPU's %u "
			"multiprocessors that can be divided, in groups of %u",
			*reserved * gpu->each, gpu->units * gpu->each, gpu->each);
	return 0;
}

/* A VM that has reserved none, where nothing is left and nothing lent, would wait for ever. */
static int check_left(const struct fgv_config_reader *reader, const struct fgv_config *config,
		      size_t device, const struct fgv_units *gpu, unsigned reserved)
{
	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		if (!vm->sms && fgv_config_uses(vm, device) && !gpu->lends &&
		    reserved == gpu->units)
			return fgv_config_values_refuse(
				reader, place_of(vm, "name"), "name",
				"has no multiprocessors: the others have reserved all %u",
				gpu->units * gpu->each);
	}
	return 0;
}

int fgv_config_check_units(const struct fgv_config *config, size_t device,
			   const struct fgv_units *gpu, char *why, size_t why_len)
{
	struct fgv_config_reader reader = {NULL, config->file, why, why_len};
	unsigned reserved = 0;
	int ret = 0;

	if (!config->policy->set_units)
		return 0;
	if (!gpu->units)
		return fgv_config_refuse(config, "policy", why, why_len, gpu->why);
	for (size_t i = 0; i < config->vm_count && !ret; i++) {
		if (fgv_config_uses(&config->vms[i], device))
			ret = check_units_of(&reader, &config->vms[i], gpu, &reserved);
	}
	return ret ? ret : check_left(&reader, config, device, gpu, reserved);
}
