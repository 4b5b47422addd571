/*
 * Refused system calls; see refusals.h.
 */
#include "backend/guard/refusals.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/log.h"
#include "common/util.h"

/* Of these, which call it is is an argument. */
static const struct {
	int number;
	unsigned argument;
	bool is_mask; /* flags, rather than a command */
} commands[] = {
	{SYS_ioctl, 1, false},	 {SYS_fcntl, 1, false},	  {SYS_prctl, 0, false},
	{SYS_madvise, 2, false}, {SYS_clone, 0, true},	  {SYS_socket, 0, false},
	{SYS_mmap, 2, true},	 {SYS_mprotect, 2, true},
};

static struct fgv_refusal_kind kind_of(const struct seccomp_data *call, unsigned *argument)
{
	struct fgv_refusal_kind kind = {.number = call->nr};

	for (size_t i = 0; i < FGV_ARRAY_LEN(commands); i++) {
		if (commands[i].number != call->nr)
			continue;
		*argument = commands[i].argument;
		kind.has_argument = true;
		kind.argument = (uint32_t)call->args[*argument];
	}
	return kind;
}

/* True: the first of its kind. Those for which there is no room are never first. */
static bool is_new(struct fgv_refusals *refusals, const struct fgv_refusal_kind *kind)
{
	for (unsigned i = 0; i < refusals->kind_count; i++) {
		const struct fgv_refusal_kind *known = &refusals->kinds[i];

		if (known->number == kind->number && known->argument == kind->argument)
			return false;
	}
	if (refusals->kind_count == FGV_REFUSAL_KINDS_MAX)
		return false;
	refusals->kinds[refusals->kind_count++] = *kind;
	return true;
}

static void tell(struct fgv_refusals *refusals, const struct seccomp_data *call)
{
	unsigned argument = 0;
	struct fgv_refusal_kind kind = kind_of(call, &argument);
	char *name, command[40] = "";

	if (!is_new(refusals, &kind))
		return;
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, kind.number);
	if (kind.has_argument)
		snprintf(command, sizeof(command), " arg%u == %#x", argument, kind.argument);
	if (refusals->record)
		fgv_info_of(refusals->subject, "recorded: %s%s", name ? name : "unknown", command);
	else
		fgv_warning_of(refusals->subject, "its process was refused system call %s (%d)%s",
			       name ? name : "unknown", kind.number, command);
	free(name);
}

static void answer(const struct fgv_refusals *refusals, const struct seccomp_notif *call)
{
	struct seccomp_notif_resp *response;

	if (seccomp_notify_alloc(NULL, &response))
		return;
	response->id = call->id;
	if (refusals->record)
		response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		response->error = -ENOSYS;
	/* Fails where the process has gone meanwhile. */
	seccomp_notify_respond(refusals->watch.fd, response);
	seccomp_notify_free(NULL, response);
}

/* False: it asked often enough. */
static bool take_one(struct fgv_refusals *refusals)
{
	struct seccomp_notif *call;

	if (seccomp_notify_alloc(&call, NULL))
		return false;
	if (seccomp_notify_receive(refusals->watch.fd, call) == 0) {
		refusals->count++;
		tell(refusals, &call->data);
		answer(refusals, call);
	}
	seccomp_notify_free(call, NULL);
	return refusals->record || refusals->count < FGV_REFUSALS_MAX;
}

static void call_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_refusals *refusals = (struct fgv_refusals *)watch;

	if (!(events & EPOLLIN)) {
		fgv_refusals_fini(refusals);
	} else if (!take_one(refusals)) {
		fgv_warning_of(refusals->subject,
			       "its process was refused %llu system calls; it is not listened to "
			       "any more",
			       (unsigned long long)refusals->count);
		fgv_refusals_fini(refusals);
	}
}

void fgv_refusals_init(struct fgv_refusals *refusals)
{
	*refusals = (struct fgv_refusals){.watch = {.fd = -1, .ready = call_ready}};
}

int fgv_refusals_listen(struct fgv_refusals *refusals, int loop, int listener,
			const struct fgv_log_subject *subject, bool record)
{
	int ret;

	refusals->watch.fd = listener;
	refusals->loop = loop;
	refusals->subject = subject;
	refusals->record = record;
	ret = fgv_loop_add(loop, &refusals->watch, EPOLLIN);
	if (ret) {
		close(listener);
		refusals->watch.fd = -1;
	}
	return ret;
}

void fgv_refusals_fini(struct fgv_refusals *refusals)
{
	if (refusals->watch.fd < 0)
		return;
	fgv_loop_remove(refusals->loop, &refusals->watch);
	close(refusals->watch.fd);
	refusals->watch.fd = -1;
}
