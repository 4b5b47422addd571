/* What the configuration promises its VMs: whether it can be kept, and by whom. */
#ifndef FGV_BACKEND_CONFIG_SHARES_H
#define FGV_BACKEND_CONFIG_SHARES_H

#include "backend/config/values.h"

/* @top has been read, and has its defaults. Refuses the first promise that can't be kept. */
int fgv_config_shares_check(const struct fgv_config_reader *reader, const config_setting_t *top);

#endif
