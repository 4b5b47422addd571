/*
 * The filter of system calls; see filter.h.
 */
#define _GNU_SOURCE
#include "backend/vgpu/sandbox/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/util.h"

#define CONDITIONS_MAX 2

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

struct condition {
	unsigned argument;
	uint64_t mask, value;
	bool is_self; /* the value is the process's number */
};

/* As callgen.py writes them. */
struct fgv_call_rule {
	const char *name;
	unsigned count;
	struct condition conditions[CONDITIONS_MAX];
};

#include "backend/vgpu/sandbox/calls_base.h"
#include "backend/vgpu/sandbox/calls_cuda.h"
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include "backend/vgpu/sandbox/calls_sanitizer.h"
#endif

static int allow(scmp_filter_ctx context, const struct fgv_call_rule *rule)
{
	int number = seccomp_syscall_resolve_name(rule->name);
	struct scmp_arg_cmp compared[CONDITIONS_MAX];
	int err;

	/* Older libraries don't know the newest names, nor this processor the oldest. */
	if (number == __NR_SCMP_ERROR || number < 0)
		return 0;
	for (unsigned i = 0; i < rule->count; i++) {
		const struct condition *condition = &rule->conditions[i];

		compared[i] = (struct scmp_arg_cmp){
			.arg = condition->argument,
			.op = SCMP_CMP_MASKED_EQ,
			.datum_a = condition->mask,
			.datum_b = condition->is_self ? (scmp_datum_t)getpid() : condition->value,
		};
	}
	err = seccomp_rule_add_array(context, SCMP_ACT_ALLOW, number, rule->count, compared);
	return err == -EEXIST ? 0 : err;
}

static int allow_all(scmp_filter_ctx context, const struct fgv_call_rule *rules, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && err == 0; i++)
		err = allow(context, &rules[i]);
	return err;
}

static int add_rules(scmp_filter_ctx context, const struct fgv_filter_terms *terms)
{
	int err = 0;

	/* The C library asks for it first, and nobody need hear of each thread. */
	if (terms->listen)
		err = seccomp_rule_add(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (err == 0)
		err = allow_all(context, base_calls, FGV_ARRAY_LEN(base_calls));
	if (err == 0 && terms->cuda && !terms->record)
		err = allow_all(context, cuda_calls, FGV_ARRAY_LEN(cuda_calls));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	if (err == 0)
		err = allow_all(context, sanitizer_calls, FGV_ARRAY_LEN(sanitizer_calls));
#endif
	return err;
}

static int read_program(int fd, struct sock_fprog *program)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		return -errno;
	program->len = (unsigned short)((size_t)file.st_size / sizeof(*program->filter));
	program->filter = malloc((size_t)file.st_size);
	if (!program->filter)
		return -ENOMEM;
	if (pread(fd, program->filter, (size_t)file.st_size, 0) == file.st_size)
		return 0;
	free(program->filter);
	program->filter = NULL;
	return -EIO;
}

/* The library writes programs to files only. */
static int export(scmp_filter_ctx context, struct sock_fprog *program)
{
	int fd = memfd_create("fairgv-filter", MFD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = seccomp_export_bpf(context, fd);
	if (err == 0)
		err = read_program(fd, program);
	close(fd);
	return err;
}

int fgv_filter_init(struct fgv_filter *filter, const struct fgv_filter_terms *terms)
{
	uint32_t rest = terms->listen ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(ENOSYS);
	scmp_filter_ctx context = seccomp_init(rest);
	int err;

	*filter = (struct fgv_filter){.terms = *terms};
	if (!context)
		return -ENOMEM;
	/* Calls by another processor's numbers. */
	err = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* Looked up in a tree, by the kernels that don't keep the answers. */
	if (err == 0)
		err = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (err == 0)
		err = add_rules(context, terms);
	if (err == 0)
		err = export(context, &filter->program);
	seccomp_release(context);
	return err;
}

void fgv_filter_fini(struct fgv_filter *filter)
{
	free(filter->program.filter);
	filter->program.filter = NULL;
}

static int load(const struct fgv_filter *filter, unsigned flags)
{
	long ret = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter->program);

	return ret < 0 ? -errno : (int)ret;
}

/* Where nobody can listen, as under another listener: the same list, and the kernel refuses. */
static int load_deaf(struct fgv_filter *filter)
{
	struct fgv_filter_terms terms = filter->terms;
	int err;

	terms.listen = false;
	fgv_filter_fini(filter);
	err = fgv_filter_init(filter, &terms);
	return err == 0 ? load(filter, SECCOMP_FILTER_FLAG_TSYNC) : err;
}

int fgv_filter_load(struct fgv_filter *filter, int *listener)
{
	int ret;

	*listener = -1;
	if (!filter->terms.listen) {
		ret = load(filter, SECCOMP_FILTER_FLAG_TSYNC);
		return ret > 0 ? -ESRCH : ret;
	}
	ret = load(filter, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
				   SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (ret == -EINVAL || ret == -EBUSY)
		return load_deaf(filter);
	if (ret < 0)
		return ret;
	*listener = ret;
	return 0;
}
