/*
 * The file of settings that are kept: it is read, or refused with a reason. What was read is
 * applied or refused as a configuration is, and after it has been written again it reads the same.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/config/config.h"
#include "backend/config/settings.h"
#include "tests/fuzz/target.h"

#define CONFIG                                                                                     \
	"gpu = \"soft\";\n"                                                                        \
	"vms = ( { name = \"vm1\"; weight = 2; memory = \"1G\"; }, { name = \"vm2\"; } );\n"

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void apply(const struct fgv_settings *settings, const struct fgv_config *base)
{
	struct fgv_config config;
	char why[512] = "";

	if (!fgv_settings_apply(settings, base, &config, why, sizeof(why)))
		fgv_config_fini(&config);
	else
		must(*why);
}

static void prune(struct fgv_settings *settings, const struct fgv_config *base)
{
	struct fgv_settings dropped;
	size_t count = settings->count;

	must(!fgv_settings_prune(settings, base, &dropped));
	must(settings->count + dropped.count == count);
	fgv_settings_say_dropped(&dropped);
	fgv_settings_fini(&dropped);
}

static void expect_same(const struct fgv_settings *settings, const struct fgv_settings *other)
{
	must(settings->count == other->count);
	for (size_t i = 0; i < settings->count; i++) {
		const struct fgv_setting *a = &settings->list[i], *b = &other->list[i];

		must(!strcmp(a->vm, b->vm) && a->key == b->key && !strcmp(a->value, b->value) &&
		     !strcmp(a->was, b->was));
	}
}

/* In memory, where nothing waits for a disk. */
static void write_again(const struct fgv_settings *settings)
{
	struct fgv_settings read;
	char folder[] = "/dev/shm/fairgv-fuzz-XXXXXX", path[sizeof(folder) + 16], why[512];

	must(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/settings", folder);
	must(!fgv_settings_save(settings, path, why, sizeof(why)));
	must(!fgv_settings_load(&read, path, why, sizeof(why)));
	expect_same(settings, &read);
	fgv_settings_fini(&read);
	unlink(path);
	must(!rmdir(folder));
}

static void use(struct fgv_settings *settings)
{
	static struct fgv_config base;
	char why[512];

	if (!base.vm_count)
		must(!fgv_config_parse(&base, CONFIG, "base", why, sizeof(why)));
	write_again(settings);
	apply(settings, &base);
	prune(settings, &base);
	apply(settings, &base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fgv_settings settings;
	char path[32], why[512] = "";
	int fd = memfd_create("settings", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!fgv_settings_load(&settings, path, why, sizeof(why))) {
		use(&settings);
		fgv_settings_fini(&settings);
	} else {
		must(*why);
	}
	close(fd);
	return 0;
}
