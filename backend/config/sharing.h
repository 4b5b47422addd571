/* VMs whose programs share memory of the GPU: what that does not go together with. */
#ifndef FGV_BACKEND_CONFIG_SHARING_H
#define FGV_BACKEND_CONFIG_SHARING_H

#include "backend/config/values.h"

/* All has been read, and has its defaults. Refuses the first VM of which it can't be true. */
int fgv_config_sharing_check(const struct fgv_config_reader *reader);

#endif
