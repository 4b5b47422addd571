/* Users of VMs' processes; see uids.h. */
#include "backend/config/uids.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* Whether somebody who may reach the daemon is user @uid. */
static bool is_somebody(const struct fgv_config *config, uid_t uid)
{
	for (size_t i = 0; i < config->vm_count; i++) {
		const struct fgv_config_vm *vm = &config->vms[i];

		if (uid == vm->ivshmem_user)
			return true;
		for (size_t j = 0; j < vm->users.count; j++) {
			if (vm->users.uids[j] == uid)
				return true;
		}
	}
	return uid == geteuid();
}

/* The user that VM @name has; 0: none. */
static uid_t uid_of(const char *name, const struct fgv_config_uid *taken, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (taken[i].vm && !strcmp(taken[i].vm, name))
			return taken[i].uid;
	}
	return 0;
}

static bool is_taken(uid_t uid, const struct fgv_config_uid *taken, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (taken[i].uid == uid)
			return true;
	}
	return false;
}

/* From *@next on; 0: there is none left. */
static uid_t next_free(const struct fgv_config_uids *uids, size_t *next,
		       const struct fgv_config_uid *taken, size_t count)
{
	for (; *next < uids->count; (*next)++) {
		uid_t uid = uids->first + (uid_t)*next;

		if (is_taken(uid, taken, count))
			continue;
		(*next)++;
		return uid;
	}
	return 0;
}

int fgv_config_uids_assign(const struct fgv_config_reader *reader,
			   const struct fgv_config_uid *taken, size_t count)
{
	struct fgv_config *config = reader->config;
	config_setting_t *top = config_root_setting(config->parsed);
	const config_setting_t *place = config_setting_get_member(top, "uids");
	size_t next = 0;

	for (size_t i = 0; i < config->vm_count && config->uids.count; i++) {
		uid_t uid = uid_of(config->vms[i].name, taken, count);
		const struct passwd *user;

		if (!uid)
			uid = next_free(&config->uids, &next, taken, count);
		if (!uid)
			return fgv_config_values_refuse(reader, place, "uids",
							"%zu users for %zu VMs: one each is needed",
							config->uids.count, config->vm_count);
		user = getpwuid(uid);
		if (user)
			return fgv_config_values_refuse(reader, place, "uids",
							"%u is user \"%s\"; it must be nobody",
							(unsigned)uid, user->pw_name);
		if (is_somebody(config, uid))
			return fgv_config_values_refuse(reader, place, "uids",
							"%u is a user of a VM, too", (unsigned)uid);
		config->vms[i].uid = uid;
	}
	return 0;
}

int fgv_config_uids_keep(struct fgv_config *config, const struct fgv_config_uid *taken,
			 size_t count, char *why, size_t why_len)
{
	const struct fgv_config_reader reader = {config, config->file, why, why_len};

	return fgv_config_uids_assign(&reader, taken, count);
}
