/* What the files of settings share; see settings.h. */
#ifndef FGV_BACKEND_CONFIG_SETTINGS_PRIV_H
#define FGV_BACKEND_CONFIG_SETTINGS_PRIV_H

#include "backend/config/settings.h"

/* Adds a copy; -ENOMEM. */
int fgv_settings_add(struct fgv_settings *settings, const struct fgv_setting *setting);

#endif
