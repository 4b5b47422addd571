/*
 * Which sessions can be held; see holding.h.
 */
#include "backend/holding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/sched/hold.h"
#include "common/log.h"

#define WHY_LEN 512

void fgv_holding_init(struct fgv_holding *holding)
{
	*holding = (struct fgv_holding){.fd = -1};
}

void fgv_holding_fini(struct fgv_holding *holding)
{
	if (holding->fd >= 0)
		close(holding->fd);
	free(holding->channels);
	fgv_holding_init(holding);
}

void fgv_holding_learn(struct fgv_holding *holding, const struct fgv_channels *channels, int fd)
{
	fgv_holding_fini(holding);
	holding->fd = fd;
	holding->channels = malloc(sizeof(*channels));
	if (holding->channels)
		*holding->channels = *channels;
}

/* What is said once for each GPU. */
static void tell(const struct fgv_device *device, uint32_t *told, enum fgv_log_level level,
		 const char *how, const char *why)
{
	uint32_t bit = UINT32_C(1) << (device->ordinal % 32);

	if (*told & bit)
		return;
	*told |= bit;
	fgv_log_of(level, FGV_LOG_GPU(device->name), "kernels %s: %s", how, why);
}

static int adopt(struct fgv_holding *holding, const struct fgv_device *device, pid_t pid,
		 struct fgv_hold **hold, char *why)
{
	int ret;

	if (device->soft) {
		snprintf(why, WHY_LEN, "by its seat");
		return fgv_hold_soft_adopt(device->arbiter, pid, hold);
	}
	if (!holding->channels) {
		snprintf(why, WHY_LEN, "its process has not said by what");
		return -ENOENT;
	}
	ret = fgv_hold_rm_adopt(holding->channels, holding->fd, NULL, hold, why, WHY_LEN);
	if (!ret)
		holding->fd = -1;
	return ret;
}

/* Why nobody is held here; NULL: sessions may be. */
static const char *refusal(const struct fgv_config *config)
{
	if (!config->hold)
		return "key \"hold\" is off";
	if (config->context == FGV_CONTEXT_MPS)
		return "clients of MPS can't be";
	if (!config->policy->pick || config->policy->time_shared)
		return "only policies fair, gemini and fikit do that";
	return NULL;
}

bool fgv_holding_begin(struct fgv_holding *holding, const struct fgv_config *config,
		       const struct fgv_device *device, struct fgv_gpusched_session *session,
		       pid_t pid, const struct fgv_log_subject *subject, uint32_t *told)
{
	const char *never = refusal(config);
	struct fgv_hold *hold;
	char why[WHY_LEN];
	int ret;

	if (never) {
		tell(device, told, FGV_LOG_INFO, "are not held", never);
		fgv_holding_fini(holding);
		return true;
	}
	ret = adopt(holding, device, pid, &hold, why);
	if (ret) {
		tell(device, told, FGV_LOG_WARNING, "can't be held", why);
		fgv_debug_of(subject, "can't be held: %s: %s", strerror(-ret), why);
	} else {
		tell(device, told, FGV_LOG_INFO, "are held where they exceed a turn, by",
		     hold->holder->name);
		fgv_debug_of(subject, "can be held: %s", why);
		fgv_gpusched_session_hold(session, hold);
	}
	fgv_holding_fini(holding);
	return ret != -ENOTRECOVERABLE;
}
