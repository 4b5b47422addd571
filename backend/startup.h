/*
 * What the daemon reads and finds before it serves anyone: its configuration, and the GPUs that it
 * names. That is also all that --check does.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_STARTUP_H
#define FGV_BACKEND_STARTUP_H

#include "backend/config/config.h"
#include "backend/devices.h"
#include "backend/live.h"
#include "backend/options.h"

/* Where it goes. */
struct fgv_startup {
	const struct fgv_backend_options *options;
	struct fgv_config *config;
	struct fgv_live *live;
	struct fgv_devices *devices;
};

/* Logs, or with --check prints, what it has found. A negative errno where something is wrong, said.
 */
int fgv_startup(const struct fgv_startup *startup);
void fgv_startup_undo(const struct fgv_startup *startup);

#endif
