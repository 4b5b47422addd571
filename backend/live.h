/*
 * The configuration as the daemon runs it, and how it changes while programs run: the file that is
 * read again, and settings (config/settings.h). A change is taken over as a whole, or refused with
 * one line that says why, and then nothing has changed. VMs that it does not name go on
 * undisturbed.
 *
 * First it is compared (config/plan.h) and prepared: VMs are made, and sockets opened. All that can
 * fail is done then. What follows only puts values where they are looked at.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_BACKEND_LIVE_H
#define FGV_BACKEND_LIVE_H

#include <limits.h>
#include "backend/config/plan.h"
#include "backend/config/settings.h"
#include "backend/live_step.h"

struct fgv_live {
	struct fgv_live_parts parts;
	const char *path;	  /* of the file; NULL: there is none to read again */
	char kept_path[PATH_MAX]; /* of the settings that are kept; "": none are */
	struct fgv_config base;	  /* without settings */
	struct fgv_settings settings;
};

/* What is asked for, and by whom. */
struct fgv_live_request {
	bool ends;	/* the programs of VMs that are not in the file any more */
	const char *by; /* for the log */
};

/* A value to set: "" is the configuration's. */
struct fgv_live_value {
	const struct fgv_config_key *key;
	const char *text;
};

/*
 * @config has been read from the file at @path (NULL: it is built in), which stays, and gets its
 * settings; @kept: where they are kept, NULL: beside nothing. -EINVAL and the like, with @why.
 */
int fgv_live_init(struct fgv_live *live, struct fgv_config *config, const char *path,
		  const char *kept, char *why, size_t why_len);
void fgv_live_fini(struct fgv_live *live);

/* The VMs of the configuration, and their sockets, are made, in @parts. A negative errno and @why.
 */
int fgv_live_start(struct fgv_live *live, const struct fgv_live_parts *parts, char *why,
		   size_t why_len);

/*
 * Reads the file again, and takes it over: *@done is what has changed, for fgv_plan_fini(). A
 * negative errno and @why: refused, which is in the log.
 */
int fgv_live_reload(struct fgv_live *live, const struct fgv_live_request *request,
		    struct fgv_plan *done, char *why, size_t why_len);

/* The same with other values for @vm, all of @values or none; @keeps them for later starts. */
int fgv_live_set(struct fgv_live *live, const char *vm, const struct fgv_live_value *values,
		 size_t count, bool keeps, const char *by, struct fgv_plan *done, char *why,
		 size_t why_len);

#endif
