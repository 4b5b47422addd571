/*
 * Limits; see limits.h.
 */
#include "backend/vgpu/sandbox/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "common/util.h"

/* Descriptors: a lane takes one, and NVIDIA's driver one for each mapping. */
#define FILES_MAX 65536

/* Between 0 and 1000; the higher the sooner. What is lost is one program's. */
static const char oom_score[] = "500";

void fgv_limits_begin(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* Neither files that are too long nor a daemon that reads no lines is a reason to end. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (fd < 0)
		return;
	/* May fail where it is higher already, which is as well. */
	if (write(fd, oom_score, strlen(oom_score)) < 0)
		errno = 0;
	close(fd);
}

static int lower(__rlimit_resource_t resource, uint64_t most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	limit.rlim_max = fgv_min_u64(limit.rlim_max, most);
	limit.rlim_cur = fgv_min_u64(limit.rlim_cur, most);
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

static uint64_t data_limit(const struct fgv_limits *limits)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* Their shadow is private memory of terabytes. */
	(void)limits;
	return RLIM_INFINITY;
#else
	return limits->data_bytes ? limits->data_bytes : RLIM_INFINITY;
#endif
}

int fgv_limits_set(const struct fgv_limits *limits)
{
	const struct {
		__rlimit_resource_t resource;
		uint64_t most;
	} list[] = {
		{RLIMIT_CORE, 0},
		{RLIMIT_MSGQUEUE, 0},
		{RLIMIT_NICE, 0},
		{RLIMIT_RTPRIO, 0},
		{RLIMIT_NOFILE, FILES_MAX},
		{RLIMIT_DATA, data_limit(limits)},
		{RLIMIT_FSIZE, limits->file_bytes ? limits->file_bytes : RLIM_INFINITY},
		{RLIMIT_NPROC, limits->threads ? limits->threads : RLIM_INFINITY},
	};
	int err = 0;

	for (size_t i = 0; i < FGV_ARRAY_LEN(list) && err == 0; i++)
		err = lower(list[i].resource, list[i].most);
	return err;
}
