/* Promises of the configuration; see shares.h. */
#include "backend/config/shares.h"

#include <stdlib.h>
#include "backend/config/text.h"
#include "common/util.h"
#include "scheduler/admission.h"

uint64_t fgv_config_blocking_ns(const struct fgv_config *config)
{
	if (config->hold && config->context != FGV_CONTEXT_MPS)
		return FGV_SCHED_BLOCKING_NS;
	return config->slice_ns + FGV_SCHED_BLOCKING_NS;
}

/* A share that @vm has been given: promised to nobody else, and kept by the policy. */
static int check_share(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
		       const char *key, bool is_given)
{
	const config_setting_t *place = config_setting_get_member(vm->place, key);
	const struct fgv_policy *policy = reader->config->policy;

	if (!is_given || policy->set_shares)
		return 0;
	return fgv_config_values_refuse(reader, place, key,
					"policy \"%s\" knows no %ss; \"gemini\" does", policy->name,
					key);
}

/* The same of a priority, be it the one that it would have anyway. */
static int check_priority(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "priority");
	const struct fgv_policy *policy = reader->config->policy;

	if (!place || policy->set_priority)
		return 0;
	return fgv_config_values_refuse(reader, place, "priority",
					"policy \"%s\" knows no priorities; \"fikit\" does",
					policy->name);
}

static int check_gang(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "gang");
	const struct fgv_policy *policy = reader->config->policy;

	if (!vm->gang || policy->tell_gangs)
		return 0;
	return fgv_config_values_refuse(reader, place, "gang",
					"policy \"%s\" knows no gangs; \"fair\" does",
					policy->name);
}

/* The requests of @device's VMs up to @vm. */
static uint64_t requests_up_to(const struct fgv_config *config, const struct fgv_config_vm *vm,
			       unsigned device)
{
	uint64_t sum = 0;

	for (const struct fgv_config_vm *other = config->vms; other <= vm; other++)
		sum += fgv_config_uses(other, device) ? other->request : 0;
	return sum;
}

/* Beside those of @device's VMs before it. */
static bool is_slo_kept(const struct fgv_config *config, const struct fgv_config_vm *vm,
			unsigned device)
{
	size_t room = (size_t)(vm - config->vms) + 1, count = 0;
	struct fgv_sched_shares *all = calloc(room, sizeof(*all));
	bool is_kept;

	for (const struct fgv_config_vm *other = config->vms; all && other <= vm; other++) {
		if (fgv_config_uses(other, device))
			all[count++] = (struct fgv_sched_shares){
				.request = (uint32_t)other->request,
				.bound_ns = other->slo_ns,
			};
	}
	is_kept = all && fgv_admission_keeps(all, count, fgv_config_blocking_ns(config));
	free(all);
	return is_kept;
}

static int check_slo(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
		     unsigned device)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "slo");

	if (!vm->request)
		return fgv_config_values_refuse(reader, place, "slo",
						"needs a request, within which it is kept");
	if (!is_slo_kept(reader->config, vm, device))
		return fgv_config_values_refuse(
			reader, place, "slo",
			"can't be kept: the requests of device %u's VMs whose bounds are no "
			"longer, "
			"and %llu us until the GPU is given back, are more than that time",
			device,
			(unsigned long long)(fgv_config_blocking_ns(reader->config) /
					     FGV_NS_PER_US));
	return 0;
}

/* What @vm has been promised of @device, beside those before it. */
static int check_device_of(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm,
			   unsigned device)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "request");
	uint64_t sum = requests_up_to(reader->config, vm, device);
	char text[32];

	fgv_config_text_show_share(sum, text, sizeof(text));
	if (vm->request && sum > FGV_SCHED_WHOLE)
		return fgv_config_values_refuse(reader, place, "request",
						"the VMs of device %u would have requested %s",
						device, text);
	return vm->slo_ns ? check_slo(reader, vm, device) : 0;
}

static int check_shares_of(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "request");
	char text[2][32];
	int ret = check_share(reader, vm, "request", vm->request != 0);

	if (!ret)
		ret = check_share(reader, vm, "limit", vm->limit != FGV_SCHED_WHOLE);
	if (!ret)
		ret = check_share(reader, vm, "slo", vm->slo_ns != 0);
	if (!ret)
		ret = check_priority(reader, vm);
	if (!ret)
		ret = check_gang(reader, vm);
	if (ret)
		return ret;
	fgv_config_text_show_share(vm->request, text[0], sizeof(text[0]));
	fgv_config_text_show_share(vm->limit, text[1], sizeof(text[1]));
	if (vm->request > vm->limit)
		return fgv_config_values_refuse(reader, place, "request",
						"%s is above the limit of %s", text[0], text[1]);
	for (unsigned i = 0; i < vm->devices.count && !ret; i++)
		ret = check_device_of(reader, vm, vm->devices.list[i]);
	return ret;
}

int fgv_config_shares_check(const struct fgv_config_reader *reader, const config_setting_t *top)
{
	const config_setting_t *window = config_setting_get_member(top, "share_window");
	const struct fgv_policy *policy = reader->config->policy;
	int ret = 0;

	if (window && !policy->set_shares)
		return fgv_config_values_refuse(reader, window, "share_window",
						"policy \"%s\" knows no limits; \"gemini\" does",
						policy->name);
	for (size_t i = 0; i < reader->config->vm_count && !ret; i++)
		ret = check_shares_of(reader, &reader->config->vms[i]);
	return ret;
}
