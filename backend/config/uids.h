/*
 * The users that VMs' processes run as, one each (key "uids"), which must be nobody else's.
 *
 * Threads: none.
 */
#ifndef FGV_BACKEND_CONFIG_UIDS_H
#define FGV_BACKEND_CONFIG_UIDS_H

#include "backend/config/values.h"

/* A user that a VM's processes have. */
struct fgv_config_uid {
	const char *vm; /* NULL: of one that the configuration has no more */
	uid_t uid;
};

/*
 * Gives each VM its user: the one that it has among the @count ones that are @taken, else one that
 * is not taken. 0 or -EINVAL.
 */
int fgv_config_uids_assign(const struct fgv_config_reader *reader,
			   const struct fgv_config_uid *taken, size_t count);

/* The same for a configuration that has been read. */
int fgv_config_uids_keep(struct fgv_config *config, const struct fgv_config_uid *taken,
			 size_t count, char *why, size_t why_len);

#endif
