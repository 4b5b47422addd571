/* Shared memory; see sharing.h. */
#include "backend/config/sharing.h"

static int check(const struct fgv_config_reader *reader, const struct fgv_config_vm *vm)
{
	const config_setting_t *place = config_setting_get_member(vm->place, "sharing");

	if (vm->movable)
		return fgv_config_values_refuse(
			reader, place, "sharing",
			"memory that programs share stays on the GPU: not with \"movable = true\"");
	if (fgv_config_pages(reader->config))
		return fgv_config_values_refuse(
			reader, place, "sharing",
			"memory that programs share stays on the GPU: not where overcommit is a "
			"number");
	return 0;
}

int fgv_config_sharing_check(const struct fgv_config_reader *reader)
{
	int ret = 0;

	for (size_t i = 0; i < reader->config->vm_count && !ret; i++) {
		if (reader->config->vms[i].sharing)
			ret = check(reader, &reader->config->vms[i]);
	}
	return ret;
}
