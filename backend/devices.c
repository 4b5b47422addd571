/*
 * Finding the GPUs; see devices.h. The process that asks the driver leaves its answer
 * in memory shared with the daemon.
 */
#define _GNU_SOURCE
#include <config.h>

#include "backend/devices.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/gpu/gpu_ops.h"
#include "backend/sched/arbiter.h"
#include "backend/sched/gpusched.h"
#include "common/log.h"
#include "common/util.h"

/* The first use of the driver after boot takes seconds on a machine with many GPUs. */
#define PROBE_TIMEOUT_MS 60000

/* A context's own memory, where it was not measured: 527 MiB on an H200, 591 under MPS. */
#define CONTEXT_BYTES (640ull * 1024 * 1024)

struct probe {
	int count;
	char why[256];
	char places[FGV_GPU_DEVICES_MAX][32];
	bool reaches_host[FGV_GPU_DEVICES_MAX];
	uint32_t peers[FGV_GPU_DEVICES_MAX];
	struct fgv_units units[FGV_GPU_DEVICES_MAX];
	struct fgv_device_info infos[FGV_GPU_DEVICES_MAX]; /* zero: the device does not open */
};

static void probe_device(const struct fgv_gpu_ops *ops, const struct fgv_gpu_config *config,
			 struct fgv_device_info *info)
{
	struct fgv_gpu *gpu;

	if (ops->open(config, &gpu))
		return;
	if (ops->info(gpu, info))
		*info = (struct fgv_device_info){0};
	ops->close(gpu);
}

static void probe_cuda_device(struct probe *probe, int ordinal, int count)
{
	const struct fgv_gpu_config config = {.ordinal = ordinal};

	probe_device(&fgv_gpu_cuda, &config, &probe->infos[ordinal]);
	fgv_gpu_cuda.place(ordinal, probe->places[ordinal], sizeof(probe->places[ordinal]));
	fgv_gpu_cuda.divide(ordinal, &probe->units[ordinal]);
	probe->reaches_host[ordinal] = fgv_cuda_reaches_host(ordinal);
	probe->peers[ordinal] = fgv_gpu_cuda.peers(ordinal, count);
}

static void probe_cuda(struct probe *probe, const struct fgv_config *wanted)
{
	const struct fgv_gpu_choice *choice = &wanted->gpu;
	int count = fgv_gpu_cuda.count(probe->why, sizeof(probe->why));
	int limit = count < FGV_GPU_DEVICES_MAX ? count : FGV_GPU_DEVICES_MAX;

	for (int i = 0; i < limit && !choice->count; i++)
		probe_cuda_device(probe, i, limit);
	for (unsigned i = 0; i < choice->count; i++) {
		unsigned ordinal = choice->ordinals[i];

		if ((int)ordinal < limit)
			probe_cuda_device(probe, (int)ordinal, limit);
	}
	probe->count = limit;
}

static unsigned soft_count(const struct fgv_gpu_choice *choice)
{
	return choice->kind == FGV_GPU_SOFT && choice->count ? choice->count : 1;
}

/* The daemon gets no threads of a soft GPU's either. */
static void probe_soft(struct probe *probe, const struct fgv_config *wanted)
{
	int count = (int)soft_count(&wanted->gpu);

	for (int i = 0; i < count; i++) {
		const struct fgv_gpu_config config = {
			.ordinal = i,
			.soft_memory_bytes = wanted->soft_memory_bytes,
			.soft_is_divided = wanted->policy->set_units != NULL,
		};

		probe_device(&fgv_gpu_soft, &config, &probe->infos[i]);
		fgv_gpu_soft.divide(i, &probe->units[i]);
		probe->peers[i] = fgv_gpu_soft.peers(i, count);
	}
}

/* Waits for the process that asks; -ETIMEDOUT, or -ECHILD where it crashed. */
static int await_probe(pid_t pid)
{
	int pidfd = pidfd_open(pid, 0);
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	int status = 0;
	int ready = pidfd < 0 ? -1 : poll(&poll_fd, 1, PROBE_TIMEOUT_MS);

	if (ready != 1)
		kill(pid, SIGKILL);
	if (pidfd >= 0)
		close(pidfd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (ready != 1)
		return -ETIMEDOUT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* Asks in a process of its own. */
static int run_probe(struct probe *probe, const struct fgv_config *wanted,
		     void (*ask)(struct probe *probe, const struct fgv_config *wanted))
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			ask(probe, wanted);
		_exit(0);
	}
	return pid < 0 ? -errno : await_probe(pid);
}

static void run_cuda_probe(struct probe *probe, const struct fgv_config *wanted)
{
	int ret = run_probe(probe, wanted, probe_cuda);

	if (!ret)
		return;
	probe->count = 0;
	if (ret == -ETIMEDOUT)
		snprintf(probe->why, sizeof(probe->why), "NVIDIA's driver did not answer in %d s",
			 PROBE_TIMEOUT_MS / 1000);
	else if (ret == -ECHILD)
		snprintf(probe->why, sizeof(probe->why), "NVIDIA's driver crashed when asked");
	else
		snprintf(probe->why, sizeof(probe->why), "can't ask NVIDIA's driver: %s",
			 strerror(-ret));
}

/* The first word of digits and dots that the kernel's module says of itself. */
static void read_driver_version(char *version, size_t len)
{
	FILE *file = fopen("/proc/driver/nvidia/version", "re");
	char line[256] = "";

	*version = '\0';
	if (!file)
		return;
	if (fgets(line, sizeof(line), file)) {
		char *rest = NULL;

		for (char *word = strtok_r(line, " \t\n", &rest); word && !*version;
		     word = strtok_r(NULL, " \t\n", &rest)) {
			if (strchr(word, '.') && word[strspn(word, "0123456789.")] == '\0')
				snprintf(version, len, "%s", word);
		}
	}
	fclose(file);
}

static void add_cuda(struct fgv_devices *devices, const struct probe *probe, unsigned ordinal)
{
	struct fgv_device *device = &devices->list[devices->count++];

	*device = (struct fgv_device){
		.ordinal = ordinal,
		.reaches_host = probe->reaches_host[ordinal],
		.peers = probe->peers[ordinal],
		.units = probe->units[ordinal],
		.info = probe->infos[ordinal],
	};
	if (*probe->infos[ordinal].name)
		snprintf(device->name, sizeof(device->name), "%s", probe->infos[ordinal].name);
	else
		snprintf(device->name, sizeof(device->name), "CUDA device %u", ordinal);
	snprintf(device->place, sizeof(device->place), "%s", probe->places[ordinal]);
	read_driver_version(device->driver, sizeof(device->driver));
}

static int add_cuda_devices(struct fgv_devices *devices, const struct probe *probe,
			    const struct fgv_gpu_choice *choice, char *text, size_t len)
{
	if (!probe->count) {
		snprintf(text, len, "no CUDA device: %s", probe->why);
		return -ENODEV;
	}
	for (unsigned i = 0; i < choice->count; i++) {
		if (choice->ordinals[i] >= (unsigned)probe->count) {
			snprintf(text, len, "there is no CUDA device %u: there are %d, from 0",
				 choice->ordinals[i], probe->count);
			return -ENODEV;
		}
		add_cuda(devices, probe, choice->ordinals[i]);
	}
	for (int i = 0; i < probe->count && !choice->count; i++)
		add_cuda(devices, probe, (unsigned)i);
	return 0;
}

static void add_soft_devices(struct fgv_devices *devices, const struct probe *probe, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct fgv_device *device = &devices->list[devices->count++];

		*device = (struct fgv_device){
			.soft = true,
			.ordinal = i,
			.info = probe->infos[i],
			.units = probe->units[i],
			.peers = probe->peers[i],
			.driver = PACKAGE_VERSION,
		};
		snprintf(device->name, sizeof(device->name), "soft GPU %u (runs on the processor)",
			 i);
	}
}

/* @text: what is wrong, or on success what was chosen and why. */
static int choose(struct fgv_devices *devices, const struct fgv_config *config, struct probe *probe,
		  char *text, size_t len)
{
	const struct fgv_gpu_choice *choice = &config->gpu;
	int ret;

	if (choice->kind != FGV_GPU_SOFT)
		run_cuda_probe(probe, config);
	if (choice->kind == FGV_GPU_CUDA || probe->count > 0) {
		ret = add_cuda_devices(devices, probe, choice, text, len);
		if (!ret)
			snprintf(text, len, "using CUDA: %s",
				 choice->kind == FGV_GPU_CUDA ? "configured" : "a device answers");
		return ret;
	}
	ret = run_probe(probe, config, probe_soft);
	if (ret) {
		snprintf(text, len, "can't ask the soft GPU: %s", strerror(-ret));
		return ret;
	}
	add_soft_devices(devices, probe, soft_count(choice));
	if (choice->kind == FGV_GPU_SOFT)
		snprintf(text, len, "using the soft GPU: configured");
	if (choice->kind == FGV_GPU_SOFT)
		return 0;
	snprintf(text, len, "using the soft GPU: no CUDA device: %s", probe->why);
	for (size_t i = 0; i < devices->count; i++)
		devices->list[i].is_substitute = true;
	return 0;
}

/*
 * A guest's kernels then reach what its own vGPU process is made of. The sandbox is around that
 * process, so that this is one wall less and not the last.
 */
static int check_reach(const struct fgv_devices *devices, const struct fgv_config *config,
		       char *text, size_t len)
{
	for (size_t i = 0; i < devices->count; i++) {
		if (!devices->list[i].reaches_host)
			continue;
		snprintf(text, len,
			 "kernels on %s reach the memory of the processes that serve them "
			 "(option uvm_disable_hmm=1 of module nvidia-uvm ends that)",
			 devices->list[i].name);
		if (config->refuse_pageable)
			return -EPERM;
		fgv_warning("%s", text);
	}
	return 0;
}

int fgv_devices_check_memory(const struct fgv_devices *devices, const struct fgv_config *config,
			     char *why, size_t why_len)
{
	int ret = 0;

	for (size_t i = 0; i < devices->count && !ret; i++) {
		uint64_t bytes = devices->list[i].info.memory_bytes;

		if (!bytes) /* it does not open, which its sessions are told */
			continue;
		ret = fgv_config_check_memory(config, i, bytes, why, why_len);
		if (!ret && *why)
			fgv_warning("%s", why);
	}
	return ret;
}

/* Contexts of their own take turns on an NVIDIA GPU, whatever multiprocessors they are for. */
static int check_runs_at_once(const struct fgv_device *device, const struct fgv_config *config,
			      char *why, size_t why_len)
{
	if (!config->policy->set_units || device->soft || config->context == FGV_CONTEXT_MPS)
		return 0;
	return fgv_config_refuse(config, "policy", why, why_len,
				 "divides NVIDIA's GPUs only with context = \"mps\"");
}

int fgv_devices_check_units(const struct fgv_devices *devices, const struct fgv_config *config,
			    char *why, size_t why_len)
{
	int ret = 0;

	for (size_t i = 0; i < devices->count && !ret; i++) {
		ret = check_runs_at_once(&devices->list[i], config, why, why_len);
		if (!ret)
			ret = fgv_config_check_units(config, i, &devices->list[i].units, why,
						     why_len);
	}
	return ret;
}

int fgv_devices_init(struct fgv_devices *devices, const struct fgv_config *config, char *why,
		     size_t why_len, char *choice, size_t choice_len)
{
	char text[512] = "";
	struct probe *probe = mmap(NULL, sizeof(*probe), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ret;

	*devices = (struct fgv_devices){0};
	if (probe == MAP_FAILED) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	ret = choose(devices, config, probe, text, sizeof(text));
	munmap(probe, sizeof(*probe));
	if (ret) {
		fgv_config_refuse(config, "gpu", why, why_len, text);
	} else {
		ret = fgv_config_check_devices(config, devices->count, why, why_len);
		snprintf(choice, choice_len, "%s", text);
	}
	if (!ret)
		ret = fgv_devices_check_memory(devices, config, why, why_len);
	if (!ret)
		ret = fgv_devices_check_units(devices, config, why, why_len);
	if (!ret) {
		ret = check_reach(devices, config, text, sizeof(text));
		if (ret)
			fgv_config_refuse(config, "pageable_memory", why, why_len, text);
	}
	if (ret)
		fgv_devices_fini(devices);
	return ret;
}

void fgv_devices_fini(struct fgv_devices *devices)
{
	devices->count = 0;
}

static void stop_schedulers(struct fgv_device *device)
{
	fgv_gpusched_destroy(device->sched);
	device->sched = NULL;
	for (unsigned i = 0; i < FGV_COPY_ENGINES; i++) {
		fgv_gpusched_destroy(device->copying[i]);
		device->copying[i] = NULL;
	}
}

void fgv_devices_stop(struct fgv_devices *devices)
{
	for (size_t i = 0; i < devices->count; i++) {
		stop_schedulers(&devices->list[i]);
		fgv_arbiter_destroy(devices->list[i].arbiter);
		devices->list[i].arbiter = NULL;
	}
	fgv_gpugangs_fini(&devices->gangs);
	fgv_cosched_fini(&devices->cosched);
}

/* Programs that wait for a copy are waited for by the engine that computes, which favours them. */
static int start_copying(struct fgv_device *device, const struct fgv_gpusched_config *sched)
{
	struct fgv_gpusched_config copying = *sched;
	int ret = 0;

	copying.cosched = NULL;
	copying.gangs = NULL;
	/* Multiprocessors have nothing to do with it. */
	if (sched->policy->set_units)
		copying.policy = &fgv_policy_fair;
	for (unsigned i = 0; i < FGV_COPY_ENGINES && !ret; i++)
		ret = fgv_gpusched_create(&device->copying[i], &copying);
	return ret;
}

static int start_device(struct fgv_device *device, const struct fgv_gpusched_config *all,
			bool engines)
{
	struct fgv_gpusched_config sched = *all;
	int ret;

	sched.params.units = device->units.units;
	sched.params.lends = device->units.lends;
	ret = fgv_gpusched_create(&device->sched, &sched);
	if (!ret && engines)
		ret = start_copying(device, &sched);
	if (!ret && device->soft)
		ret = fgv_arbiter_create(&device->arbiter, device->name, sched.hang_ns);
	return ret;
}

_Static_assert(FGV_GPU_DEVICES_MAX <= FGV_GANGS_GPUS, "each has a number among the gangs'");

int fgv_devices_start(struct fgv_devices *devices, const struct fgv_config *config)
{
	struct fgv_gpusched_config sched = {
		.policy = config->policy,
		.hang_ns = config->hang_ns,
		.hang_held_ns = config->hang_held_ns,
	};
	int ret = fgv_cosched_init(&devices->cosched);

	if (ret)
		return ret;
	ret = fgv_gpugangs_init(&devices->gangs);
	if (ret) {
		fgv_cosched_fini(&devices->cosched);
		return ret;
	}
	if (config->cosched)
		sched.cosched = &devices->cosched;
	fgv_sched_params_init(&sched.params);
	sched.gangs = &devices->gangs;
	sched.params.slice_ns = config->slice_ns;
	sched.params.share_window_ns = config->share_window_ns;
	sched.params.blocking_ns = fgv_config_blocking_ns(config);
	sched.params.awake_lead_ns = config->awake_lead_ns;
	sched.params.interactive_calls = (uint32_t)config->interactive_calls;
	sched.params.interactive_window_ns = config->interactive_window_ns;
	for (size_t i = 0; i < devices->count && !ret; i++) {
		sched.number = (unsigned)i;
		ret = start_device(&devices->list[i], &sched, config->engines);
	}
	if (ret)
		fgv_devices_stop(devices);
	return ret;
}

void fgv_device_forget(const struct fgv_device *device, pid_t pid)
{
	if (device->arbiter)
		fgv_arbiter_forget(device->arbiter, pid);
}

uint64_t fgv_device_context_bytes(const struct fgv_device *device)
{
	if (device->soft)
		return 0;
	return device->context_bytes ? device->context_bytes : CONTEXT_BYTES;
}
