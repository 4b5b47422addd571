/*
 * Holding by NVIDIA's resource manager, which is played here: what a vGPU process learns of the
 * driver's calls, and what the daemon sends.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "backend/sched/hold.h"
#include "backend/sched/rm.h"
#include "backend/vgpu/channels.h"

#define CLIENT	  0xc1d00007u
#define DEVICE	  0x5c000002u
#define SUBDEVICE 0x5c000003u
#define GROUP	  0x5c000010u
#define CHANNEL	  0x5c000020u

static const struct fgv_channels some = {
	.client = CLIENT,
	.subdevice = SUBDEVICE,
	.group_count = 1,
	.channel_count = 3,
	.has_file = 1,
	.groups = {{CLIENT, GROUP}},
	.channels = {{CLIENT, CHANNEL}, {CLIENT, CHANNEL + 1}, {CLIENT, CHANNEL + 2}},
};

/* --- The manager ------------------------------------------------------------ */

#define CALLS_MAX 64

static struct {
	unsigned count;
	uint32_t commands[CALLS_MAX];
	struct fgv_rm_disable disables[CALLS_MAX];
	bool is_disabled;
	uint64_t timeslice_us;
	/* What it answers to the command, so many times. */
	uint32_t refused, status;
	unsigned refusals;
	bool refuses_enabling;
} rm;

static uint32_t set_timeslice(const struct fgv_rm_control *control)
{
	const struct fgv_rm_timeslice *params = (const void *)(uintptr_t)control->params;

	ck_assert_uint_eq(control->params_len, 8);
	ck_assert_uint_eq(control->client, CLIENT);
	ck_assert_uint_eq(control->object, GROUP);
	rm.timeslice_us = params->us;
	return FGV_RM_OK;
}

static uint32_t disable(const struct fgv_rm_control *control)
{
	const struct fgv_rm_disable *params = (const void *)(uintptr_t)control->params;

	ck_assert_uint_eq(control->params_len, 536);
	ck_assert_uint_eq(control->client, CLIENT);
	ck_assert_uint_eq(control->object, SUBDEVICE);
	ck_assert_uint_eq(params->count, 3);
	ck_assert_uint_eq(params->event, 0);
	ck_assert_uint_eq(params->rewind, 0);
	ck_assert_uint_eq(params->only_scheduling, 0);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(params->clients[i], CLIENT);
		ck_assert_uint_eq(params->channels[i], CHANNEL + i);
	}
	if (!params->disable && rm.refuses_enabling)
		return 0x40;
	rm.is_disabled = params->disable;
	return FGV_RM_OK;
}

static uint32_t answer(const struct fgv_rm_control *control)
{
	if (control->command == rm.refused && rm.refusals) {
		rm.refusals--;
		return rm.status;
	}
	switch (control->command) {
	case (uint32_t)FGV_RM_SET_TIMESLICE:
		return set_timeslice(control);
	case (uint32_t)FGV_RM_DISABLE_CHANNELS:
		return disable(control);
	case (uint32_t)FGV_RM_RESTART_RUNLIST:
		ck_assert_uint_eq(control->params_len, 2);
		ck_assert_uint_eq(control->object, CHANNEL);
		return FGV_RM_NO_RIGHT;
	default:
		ck_abort_msg("command %#x", control->command);
	}
}

static int call(int fd, unsigned long number, void *data)
{
	struct fgv_rm_control *control = data;

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(number, 0xc020462a);
	ck_assert_uint_lt(rm.count, CALLS_MAX);
	rm.commands[rm.count++] = control->command;
	control->status = answer(control);
	return 0;
}

static void setup(void)
{
	memset(&rm, 0, sizeof(rm));
}

static int adopt(const struct fgv_channels *channels, struct fgv_hold **hold, char *why)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int ret = fgv_hold_rm_adopt(channels, fd, call, hold, why, 512);

	if (ret)
		close(fd);
	return ret;
}

/* --- Holding ---------------------------------------------------------------- */

START_TEST(holds_and_lets_go)
{
	struct fgv_hold *hold;
	char why[512];

	ck_assert_int_eq(adopt(&some, &hold, why), 0);
	ck_assert_uint_eq(rm.timeslice_us, 1000);
	ck_assert(!rm.is_disabled);
	/* That the runlist can't be restarted is told, but no reason not to hold. */
	ck_assert_ptr_nonnull(strstr(why, "disable: yes (0); enable: yes (0)"));
	ck_assert_ptr_nonnull(strstr(why, "restart the runlist: no right to (0x1b)"));
	ck_assert(!hold->holder->is_free);
	ck_assert_int_eq(hold->holder->hold(hold), 0);
	ck_assert(rm.is_disabled);
	ck_assert_int_eq(hold->holder->release(hold), 0);
	ck_assert(!rm.is_disabled);
	hold->holder->forget(hold);
}
END_TEST

START_TEST(refused)
{
	static const struct {
		uint32_t command, status;
		int ret;
		const char *why;
	} cases[] = {
		{(uint32_t)FGV_RM_SET_TIMESLICE, FGV_RM_BAD_CLIENT, -EIO,
		 "time slice: not this file's client (0x23)"},
		{(uint32_t)FGV_RM_DISABLE_CHANNELS, FGV_RM_NOT_SUPPORTED, -EIO,
		 "disable: not supported (0x56)"},
		{(uint32_t)FGV_RM_DISABLE_CHANNELS, FGV_RM_NO_RIGHT, -EPERM,
		 "disable: no right to (0x1b)"},
		{(uint32_t)FGV_RM_DISABLE_CHANNELS, FGV_RM_BAD_ARGUMENT, -EIO,
		 "disable: arguments not understood (0x1f)"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fgv_hold *hold;
		char why[512];

		setup();
		rm.refused = cases[i].command;
		rm.status = cases[i].status;
		rm.refusals = CALLS_MAX;
		ck_assert_int_eq(adopt(&some, &hold, why), cases[i].ret);
		ck_assert_msg(strstr(why, cases[i].why), "%s", why);
	}
}
END_TEST

START_TEST(time_outs_are_tried_again)
{
	struct fgv_hold *hold;
	char why[512];

	rm.refused = (uint32_t)FGV_RM_DISABLE_CHANNELS;
	rm.status = FGV_RM_TIMEOUT_RETRY;
	rm.refusals = 2;
	ck_assert_int_eq(adopt(&some, &hold, why), 0);
	hold->holder->forget(hold);
}
END_TEST

/* One that is held and can't be let go is lost: whoever asked must end it. */
START_TEST(cannot_be_let_go)
{
	struct fgv_hold *hold;
	char why[512];

	ck_assert_int_eq(adopt(&some, &hold, why), 0);
	ck_assert_int_eq(hold->holder->hold(hold), 0);
	rm.refuses_enabling = true;
	ck_assert_int_eq(hold->holder->release(hold), -EIO);
	ck_assert_uint_eq(rm.commands[rm.count - 2], (uint32_t)FGV_RM_RESTART_RUNLIST);
	rm.refuses_enabling = false;
	ck_assert_int_eq(hold->holder->release(hold), 0);
	hold->holder->forget(hold);
	setup();
	rm.refuses_enabling = true;
	ck_assert_int_eq(adopt(&some, &hold, why), -ENOTRECOVERABLE);
}
END_TEST

/* What can't be all that it should be is not even tried. */
START_TEST(not_enough_or_too_much)
{
	struct fgv_channels channels[5] = {some, some, some, some, some};
	struct fgv_hold *hold;
	char why[512];

	channels[0].subdevice = 0;
	channels[1].channel_count = 0;
	channels[2].is_partial = 1;
	channels[3].channel_count = FGV_CHANNELS_MAX + 1;
	channels[4].group_count = FGV_CHANNEL_GROUPS_MAX + 1;
	for (int i = 0; i < 5; i++)
		ck_assert_int_lt(adopt(&channels[i], &hold, why), 0);
	ck_assert_uint_eq(rm.count, 0);
}
END_TEST

/* Only the resource manager's own file is called. */
START_TEST(another_file)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct fgv_hold *hold;
	char why[512];

	ck_assert_int_eq(fgv_hold_rm_adopt(&some, fd, NULL, &hold, why, sizeof(why)), -EBADF);
	ck_assert_int_eq(fgv_hold_rm_adopt(&some, -1, NULL, &hold, why, sizeof(why)), -EBADF);
	close(fd);
}
END_TEST

/* --- Learning --------------------------------------------------------------- */

#define OTHER_DEVICE 0x5c000102u
#define RM_FD	     21

/* As the driver's libraries make an object: directly or wrapped, in either form. */
static void make(uint32_t parent, uint32_t object, uint32_t class, const void *params, bool is_long,
		 bool is_wrapped)
{
	union {
		struct fgv_rm_alloc alloc;
		uint8_t bytes[FGV_RM_ALLOC_LONG];
	} made = {
		.alloc = {CLIENT, parent, object, class, (uintptr_t)params},
	};
	uint32_t len = is_long ? FGV_RM_ALLOC_LONG : FGV_RM_ALLOC_SHORT;
	const struct fgv_rm_xfer xfer = {FGV_RM_ALLOC, len, (uintptr_t)&made};

	if (is_wrapped)
		fgv_channels_look(RM_FD, FGV_RM_IOCTL(FGV_RM_XFER, struct fgv_rm_xfer), &xfer);
	else
		fgv_channels_look(RM_FD, _IOC(_IOC_READ | _IOC_WRITE, 'F', FGV_RM_ALLOC, len),
				  &made);
}

static void make_group(uint32_t device, uint32_t group, uint32_t engine, unsigned channels)
{
	const struct fgv_rm_group_params params = {.engine = engine};

	make(device, group, FGV_RM_GROUP, &params, true, true);
	for (uint32_t i = 1; i <= channels; i++)
		make(group, group + i, i & 1 ? 0xc86f : 0xc96f, NULL, i & 2, i & 4);
}

static void release(uint32_t object)
{
	const struct fgv_rm_free freed = {CLIENT, 0, object, FGV_RM_OK};

	fgv_channels_look(RM_FD, FGV_RM_IOCTL(FGV_RM_FREE, struct fgv_rm_free), &freed);
}

START_TEST(learns_what_computes)
{
	struct fgv_channels channels;

	make(OTHER_DEVICE, 0x77, FGV_RM_SUBDEVICE, NULL, false, false);
	make(DEVICE, SUBDEVICE, FGV_RM_SUBDEVICE, NULL, false, true);
	make(OTHER_DEVICE, 0x78, FGV_RM_SUBDEVICE, NULL, false, false);
	make_group(DEVICE, GROUP, FGV_RM_ENGINE_COMPUTE, 8);
	make_group(DEVICE, 0x5c000100, 11, 4); /* copies */
	make(DEVICE, 0x5c000200, 0x003e, NULL, true, false); /* memory */
	ck_assert_int_eq(fgv_channels_learnt(&channels), RM_FD);
	ck_assert_uint_eq(channels.client, CLIENT);
	ck_assert_uint_eq(channels.subdevice, SUBDEVICE);
	ck_assert_uint_eq(channels.group_count, 1);
	ck_assert_uint_eq(channels.groups[0].group, GROUP);
	ck_assert_uint_eq(channels.channel_count, 8);
	for (uint32_t i = 0; i < 8; i++)
		ck_assert_uint_eq(channels.channels[i].channel, GROUP + 1 + i);
	ck_assert(channels.has_file && !channels.is_partial);
}
END_TEST

START_TEST(forgets_what_is_freed)
{
	struct fgv_channels channels;

	make(DEVICE, SUBDEVICE, FGV_RM_SUBDEVICE, NULL, false, false);
	make_group(DEVICE, GROUP, FGV_RM_ENGINE_COMPUTE, 3);
	make_group(DEVICE, GROUP + 16, FGV_RM_ENGINE_COMPUTE, 2);
	release(GROUP + 1);
	fgv_channels_learnt(&channels);
	ck_assert_uint_eq(channels.channel_count, 4);
	release(GROUP + 16);
	fgv_channels_learnt(&channels);
	ck_assert_uint_eq(channels.group_count, 1);
	ck_assert_uint_eq(channels.channel_count, 2);
	release(CLIENT);
	ck_assert_int_eq(fgv_channels_learnt(&channels), -1);
	ck_assert_uint_eq(channels.channel_count + channels.group_count + channels.subdevice, 0);
}
END_TEST

START_TEST(learns_nothing_of_failures)
{
	struct fgv_rm_group_params params = {.engine = FGV_RM_ENGINE_COMPUTE};
	struct {
		struct fgv_rm_alloc alloc;
		uint32_t params_len, status;
	} made = {{CLIENT, DEVICE, GROUP, FGV_RM_GROUP, (uintptr_t)&params}, 0, 0x1b};
	struct fgv_channels channels;

	fgv_channels_look(RM_FD, _IOC(_IOC_READ | _IOC_WRITE, 'F', FGV_RM_ALLOC, 32), &made);
	ck_assert_int_eq(fgv_channels_learnt(&channels), -1);
	/* And calls to others are none of its business. */
	made.status = 0;
	fgv_channels_look(RM_FD, _IOC(_IOC_READ | _IOC_WRITE, 'T', FGV_RM_ALLOC, 32), &made);
	ck_assert_int_eq(fgv_channels_learnt(&channels), -1);
}
END_TEST

START_TEST(more_than_there_is_room_for)
{
	struct fgv_channels channels;

	make(DEVICE, SUBDEVICE, FGV_RM_SUBDEVICE, NULL, false, false);
	make_group(DEVICE, GROUP, FGV_RM_ENGINE_COMPUTE, FGV_CHANNELS_MAX + 1);
	fgv_channels_learnt(&channels);
	ck_assert_uint_eq(channels.channel_count, FGV_CHANNELS_MAX);
	ck_assert(channels.is_partial);
}
END_TEST

/* What others call is ours, and passes everything on. */
START_TEST(passes_calls_on)
{
	int fds[2], bytes = 0;

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(write(fds[1], "abc", 3), 3);
	ck_assert_int_eq(ioctl(fds[0], FIONREAD, &bytes), 0);
	ck_assert_int_eq(bytes, 3);
	ck_assert_int_eq(ioctl(-1, FIONREAD, &bytes), -1);
	ck_assert_int_eq(errno, EBADF);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("hold_rm");
	TCase *tcase = tcase_create("hold_rm");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, holds_and_lets_go);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, time_outs_are_tried_again);
	tcase_add_test(tcase, cannot_be_let_go);
	tcase_add_test(tcase, not_enough_or_too_much);
	tcase_add_test(tcase, another_file);
	tcase_add_test(tcase, learns_what_computes);
	tcase_add_test(tcase, forgets_what_is_freed);
	tcase_add_test(tcase, learns_nothing_of_failures);
	tcase_add_test(tcase, more_than_there_is_room_for);
	tcase_add_test(tcase, passes_calls_on);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
