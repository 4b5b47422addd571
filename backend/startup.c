/*
 * The configuration and the devices, at the daemon's start; see startup.h.
 */
#include "backend/startup.h"

#include <limits.h>
#include <stdio.h>
#include "backend/mps/mps.h"
#include "common/log.h"

static const char builtin_config[] = "vms = ( { name = \"default\"; } );";

/* For later programs, which a private daemon does not have. */
static void have_nothing_ready(struct fgv_config *config)
{
	config->warm = 0;
	for (size_t i = 0; i < config->vm_count; i++)
		config->vms[i].images_bytes = 0;
}

/* Where settings are kept: beside a socket that was chosen for this run; NULL: they are not. */
static const char *choose_settings(const struct fgv_startup *startup, char *path, size_t len)
{
	const struct fgv_backend_options *options = startup->options;

	if (options->private_fd >= 0)
		return NULL;
	if (!options->socket)
		return startup->config->settings;
	snprintf(path, len, "%s.settings", options->socket);
	return path;
}

static int read_config(const struct fgv_startup *startup, char *why, size_t why_len)
{
	const struct fgv_backend_options *options = startup->options;
	char kept[PATH_MAX];
	int ret;

	if (options->config_path)
		ret = fgv_config_load(startup->config, options->config_path, why, why_len);
	else
		ret = fgv_config_parse(startup->config, builtin_config, "built-in", why, why_len);
	if (ret)
		return ret;
	ret = fgv_live_init(startup->live, startup->config,
			    options->private_fd < 0 ? options->config_path : NULL,
			    choose_settings(startup, kept, sizeof(kept)), why, why_len);
	if (ret)
		fgv_config_fini(startup->config);
	return ret;
}

int fgv_startup(const struct fgv_startup *startup)
{
	const struct fgv_backend_options *options = startup->options;
	char why[1024], choice[512];
	bool is_news;
	int ret = read_config(startup, why, sizeof(why));

	if (ret) {
		fgv_error("%s", why);
		return ret;
	}
	ret = fgv_devices_init(startup->devices, startup->config, why, sizeof(why), choice,
			       sizeof(choice));
	if (!ret) {
		ret = fgv_mps_check(startup->config, startup->devices, choice, why, sizeof(why));
		if (ret)
			fgv_devices_fini(startup->devices);
	}
	if (ret) {
		fgv_error("%s", why);
		fgv_live_fini(startup->live);
		fgv_config_fini(startup->config);
		return ret;
	}
	/* To the program of a private daemon its library says so. */
	is_news = fgv_devices_are_substitutes(startup->devices) && options->private_fd < 0;
	/* It has one program, which begins at once. */
	if (options->private_fd >= 0)
		have_nothing_ready(startup->config);
	if (options->check)
		printf("OK: VMs: %zu; %s\n", startup->config->vm_count, choice);
	else
		fgv_log(is_news ? FGV_LOG_WARNING : FGV_LOG_INFO, "%s", choice);
	return 0;
}

void fgv_startup_undo(const struct fgv_startup *startup)
{
	fgv_devices_fini(startup->devices);
	fgv_live_fini(startup->live);
	fgv_config_fini(startup->config);
}
