/* Multiprocessors that the configuration reserves: what can be known without the GPUs. */
#ifndef FGV_BACKEND_CONFIG_SPATIAL_H
#define FGV_BACKEND_CONFIG_SPATIAL_H

#include "backend/config/values.h"

/* @top has been read, and has its defaults. Refuses the first reservation that can't be kept. */
int fgv_config_spatial_check(const struct fgv_config_reader *reader, const config_setting_t *top);

#endif
