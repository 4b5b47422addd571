/* Which of the GPUs a VM has: keys "device" and "devices". */
#ifndef FGV_BACKEND_CONFIG_DEVICES_H
#define FGV_BACKEND_CONFIG_DEVICES_H

#include "backend/config/values.h"

/* Reads a list of numbers, or "all". */
int fgv_config_devices_read(const struct fgv_config_reader *reader,
			    const struct fgv_config_key *key, const config_setting_t *setting,
			    struct fgv_config_devices *devices);

/* All VMs have been read: the one device of each, or its list, becomes its list. */
int fgv_config_devices_join(const struct fgv_config_reader *reader);

#endif
