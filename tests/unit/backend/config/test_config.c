/*
 * The configuration: what is read, each diagnostic with its place, and the man page
 * against the table of keys.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/config/config.h"
#include "backend/config/text.h"
#include "common/util.h"

static struct fgv_config config;
static char why[1024];

static int parse(const char *text)
{
	memset(why, 0, sizeof(why));
	return fgv_config_parse(&config, text, "x.conf", why, sizeof(why));
}

START_TEST(defaults)
{
	ck_assert_int_eq(parse("vms = ( { name = \"a\"; } );"), 0);
	ck_assert_int_eq(config.gpu.kind, FGV_GPU_AUTO);
	ck_assert_str_eq(config.socket, FGV_RUNSTATEDIR "/fairgv/backend.sock");
	ck_assert_str_eq(config.control, FGV_RUNSTATEDIR "/fairgv/control.sock");
	ck_assert_ptr_eq(config.policy, &fgv_policy_fair);
	ck_assert(!config.preemptive);
	ck_assert_uint_eq(config.slice_ns, FGV_SCHED_SLICE_NS);
	ck_assert_uint_eq(config.share_window_ns, 10 * FGV_NS_PER_SEC);
	ck_assert_uint_eq(config.idle_ns, 100 * FGV_NS_PER_US);
	ck_assert_uint_eq(config.awake_lead_ns, 300 * FGV_NS_PER_US);
	ck_assert(config.hold);
	ck_assert_int_eq(config.slicing, FGV_SLICING_OFF);
	ck_assert_uint_eq(config.hang_ns, 10 * FGV_NS_PER_SEC);
	ck_assert_uint_eq(config.hang_held_ns, 0);
	ck_assert(config.cosched);
	ck_assert_uint_eq(config.interactive_calls, 10);
	ck_assert_uint_eq(config.interactive_window_ns, 10 * FGV_NS_PER_MS);
	ck_assert_int_eq(config.context, FGV_CONTEXT_ISOLATED);
	ck_assert_uint_eq(config.soft_memory_bytes, UINT64_C(4) << 30);
	ck_assert_uint_eq(config.window_bytes, 1u << 30);
	ck_assert_uint_eq(config.lanes, 64);
	ck_assert_uint_eq(config.warm, 1);
	ck_assert_uint_eq(config.vm_count, 1);
	ck_assert_str_eq(config.vms[0].name, "a");
	ck_assert_uint_eq(config.vms[0].weight, 1);
	ck_assert_uint_eq(config.vms[0].request, 0);
	ck_assert_uint_eq(config.vms[0].limit, FGV_SCHED_WHOLE);
	ck_assert_uint_eq(config.vms[0].memory_bytes, FGV_CONFIG_NO_LIMIT);
	ck_assert_uint_eq(config.vms[0].device, 0);
	ck_assert_uint_eq(config.vms[0].sessions, FGV_SESSIONS_MAX);
	ck_assert_uint_eq(config.vms[0].users.count, 1);
	ck_assert_uint_eq(config.vms[0].users.uids[0], geteuid());
	ck_assert_ptr_null(config.observe);
	ck_assert_uint_eq(config.observe_user, geteuid());
	ck_assert_uint_eq(config.metrics_port, 0);
	ck_assert_ptr_null(config.vms[0].ivshmem);
	ck_assert_uint_eq(config.vms[0].ivshmem_user, geteuid());
	ck_assert_uint_eq(config.vms[0].windows, 4);
	ck_assert_ptr_null(config.vms[0].socket);
	ck_assert_uint_eq(config.vms[0].process_memory_bytes, UINT64_C(16) << 30);
	ck_assert_uint_eq(config.vms[0].host_memory_bytes, FGV_CONFIG_NO_LIMIT);
	ck_assert_uint_eq(config.vms[0].processors, 0);
	ck_assert_uint_eq(config.vms[0].uid, 1900000000);
	ck_assert_str_eq(config.cgroup, "auto");
	ck_assert(!config.record);
	ck_assert(!config.refuse_pageable);
	ck_assert_uint_eq(config.starts, 100);
	ck_assert_uint_eq(config.starts_burst, 400);
	fgv_config_fini(&config);
}
END_TEST

START_TEST(all_keys)
{
	ck_assert_int_eq(
		parse("gpu = \"cuda:2,0\";\n"
		      "socket = \"/run/x/y\"; control = \"/run/x/z\";\n"
		      "policy = \"credit-hs\"; preemptive = true; slice = \"1500us\";\n"
		      "idle = \"0\"; awake_lead = \"1ms\"; hang = \"2s\"; hold = \"off\"; context "
		      "= \"mps\"; slicing = \"auto\"; slice_blocks = 1500;\n"
		      "cosched = \"off\"; interactive_calls = 0; interactive_window = \"1s\";\n"
		      "soft_memory = 134217728;\n"
		      "window = \"64M\";\n"
		      "lanes = 8; warm = 0; uids = \"3000000-3000001\"; cgroup = \"/x\";\n"
		      "sandbox = \"record\"; pageable_memory = \"refuse\";\n"
		      "starts = 1; starts_burst = 2;\n"
		      "observe = \"/run/x/o\"; observe_user = 9; metrics_socket = \"/run/x/m\";\n"
		      "metrics_port = 65535;\n"
		      "vms = ( { name = \"vm-1_.Z\"; weight = 10000; memory = \"4G\";\n"
		      "          users = [\"root\", \"77\"]; device = 1; sessions = 2;\n"
		      "          slicing = \"on\"; },\n"
		      "        { name = \"b\"; memory = 5000000000L; users = (12, \"0\");\n"
		      "          socket = \"/run/c\"; process_memory = \"64M\";\n"
		      "          host_memory = \"1G\"; processors = 3;\n"
		      "          ivshmem = \"/run/b\"; ivshmem_user = 7; windows = 63; } );"),
		0);
	ck_assert_int_eq(config.gpu.kind, FGV_GPU_CUDA);
	ck_assert_uint_eq(config.gpu.count, 2);
	ck_assert_uint_eq(config.gpu.ordinals[0], 2);
	ck_assert_uint_eq(config.gpu.ordinals[1], 0);
	ck_assert_str_eq(config.socket, "/run/x/y");
	ck_assert_str_eq(config.control, "/run/x/z");
	ck_assert_str_eq(config.observe, "/run/x/o");
	ck_assert_uint_eq(config.observe_user, 9);
	ck_assert_str_eq(config.metrics_socket, "/run/x/m");
	ck_assert_uint_eq(config.metrics_port, 65535);
	ck_assert_ptr_eq(config.policy, &fgv_policy_credit_hs);
	ck_assert(config.preemptive);
	ck_assert_uint_eq(config.slice_ns, 1500 * FGV_NS_PER_US);
	ck_assert_uint_eq(config.idle_ns, 0);
	ck_assert_uint_eq(config.awake_lead_ns, FGV_NS_PER_MS);
	ck_assert(!config.hold);
	ck_assert_int_eq(config.slicing, FGV_SLICING_AUTO);
	ck_assert_uint_eq(config.slice_blocks, 1500);
	ck_assert_int_eq(config.vms[0].slicing, FGV_SLICING_ON);
	ck_assert_int_eq(config.vms[1].slicing, FGV_SLICING_AS_ALL);
	ck_assert_uint_eq(config.hang_ns, 2 * FGV_NS_PER_SEC);
	ck_assert_uint_eq(config.hang_held_ns, 2 * FGV_NS_PER_SEC);
	ck_assert(!config.cosched);
	ck_assert_uint_eq(config.interactive_calls, 0);
	ck_assert_uint_eq(config.interactive_window_ns, FGV_NS_PER_SEC);
	ck_assert_int_eq(config.context, FGV_CONTEXT_MPS);
	ck_assert_uint_eq(config.soft_memory_bytes, 134217728);
	ck_assert_uint_eq(config.window_bytes, 64u << 20);
	ck_assert_uint_eq(config.lanes, 8);
	ck_assert_uint_eq(config.warm, 0);
	ck_assert_uint_eq(config.vm_count, 2);
	ck_assert_uint_eq(config.vms[0].weight, 10000);
	ck_assert_uint_eq(config.vms[0].memory_bytes, UINT64_C(4) << 30);
	ck_assert_uint_eq(config.vms[0].users.count, 2);
	ck_assert_uint_eq(config.vms[0].users.uids[0], 0);
	ck_assert_uint_eq(config.vms[0].users.uids[1], 77);
	ck_assert_uint_eq(config.vms[0].device, 1);
	ck_assert_uint_eq(config.vms[0].sessions, 2);
	ck_assert_uint_eq(config.vms[1].memory_bytes, 5000000000);
	ck_assert_uint_eq(config.vms[1].users.uids[0], 12);
	ck_assert_str_eq(config.vms[1].ivshmem, "/run/b");
	ck_assert_uint_eq(config.vms[1].ivshmem_user, 7);
	ck_assert_uint_eq(config.vms[1].windows, 63);
	ck_assert_str_eq(config.vms[1].socket, "/run/c");
	ck_assert_uint_eq(config.vms[1].process_memory_bytes, 64 << 20);
	ck_assert_uint_eq(config.vms[1].host_memory_bytes, 1 << 30);
	ck_assert_uint_eq(config.vms[1].processors, 3);
	ck_assert_uint_eq(config.vms[0].uid, 3000000);
	ck_assert_uint_eq(config.vms[1].uid, 3000001);
	ck_assert_str_eq(config.cgroup, "/x");
	ck_assert(config.record);
	ck_assert(config.refuse_pageable);
	ck_assert_uint_eq(config.starts, 1);
	ck_assert_uint_eq(config.starts_burst, 2);
	fgv_config_fini(&config);
}
END_TEST

#define SHARES(text) "policy = \"gemini\"; vms = ( " text " );"

#define SMS(text) "policy = \"smguard\"; vms = ( " text " );"

static void expect_units(const struct fgv_units *gpu, int ret, const char *reason)
{
	ck_assert_int_eq(fgv_config_check_units(&config, 0, gpu, why, sizeof(why)), ret);
	if (ret)
		ck_assert_msg(strstr(why, reason) != NULL, "%s", why);
}

START_TEST(multiprocessors)
{
	const struct fgv_units h200 = {.units = 16, .each = 8}, soft = {16, 1, 1, ""};
	const struct fgv_units four = {.units = 4, .each = 8}, none = {.why = "not with this one"};
	uint32_t units, limit;

	ck_assert_int_eq(parse(SMS("{ name = \"a\"; sms = \"25%\"; },"
				   "{ name = \"b\"; sms = 64; },"
				   "{ name = \"c\"; },"
				   "{ name = \"d\"; sms = \"100%\"; device = 1; }")),
			 0);
	ck_assert_ptr_eq(config.policy, &fgv_policy_smguard);
	ck_assert(!config.hold);
	fgv_config_vm_units(&config.vms[0], &h200, &units, &limit);
	ck_assert_uint_eq(units, 4);
	ck_assert_uint_eq(limit, 0);
	fgv_config_vm_units(&config.vms[1], &h200, &units, &limit);
	ck_assert_uint_eq(units, 8);
	expect_units(&h200, 0, "");
	expect_units(&four, -EINVAL,
		     "sms: does not fit: the VMs up to this one reserve 72 of the GPU's 32 "
		     "multiprocessors");
	expect_units(&none, -EINVAL, "policy: not with this one");
	fgv_config_fini(&config);

	/* One without a reservation has what others lend, or would have nothing. */
	ck_assert_int_eq(parse(SMS("{ name = \"a\"; sms = \"100%\"; }, { name = \"b\"; }")), 0);
	expect_units(&soft, 0, "");
	expect_units(&h200, -EINVAL, "has no multiprocessors: the others have reserved all 128");
	fgv_config_fini(&config);
	ck_assert_int_eq(parse(SMS("{ name = \"a\"; sms = 2; sms_limit = \"25%\"; }")), 0);
	expect_units(&soft, 0, "");
	expect_units(&h200, -EINVAL, "sms_limit: is for multiprocessors that are lent");
	fgv_config_fini(&config);
	ck_assert_int_eq(parse(SMS("{ name = \"a\"; sms = 9; sms_limit = \"50%\"; }")), 0);
	expect_units(&soft, -EINVAL, "sms: is above sms_limit");
	fgv_config_fini(&config);
}
END_TEST

START_TEST(shares)
{
	ck_assert_int_eq(
		parse("share_window = \"2s\";\n" SHARES(
			"{ name = \"a\"; request = \"62.5%\"; limit = \"62.5%\"; },"
			"{ name = \"b\"; request = \"37.5%\"; },"
			"{ name = \"c\"; limit = \"0.1%\"; },"
			"{ name = \"d\"; request = \"80%\"; device = 1; slo = \"5ms\"; }")),
		0);
	ck_assert_ptr_eq(config.policy, &fgv_policy_gemini);
	ck_assert_uint_eq(config.share_window_ns, 2 * FGV_NS_PER_SEC);
	ck_assert_uint_eq(config.vms[0].request, 625000);
	ck_assert_uint_eq(config.vms[0].limit, 625000);
	ck_assert_uint_eq(config.vms[1].request, 375000);
	ck_assert_uint_eq(config.vms[2].request, 0);
	ck_assert_uint_eq(config.vms[2].limit, 1000);
	ck_assert_uint_eq(config.vms[2].slo_ns, 0);
	ck_assert_uint_eq(config.vms[3].request, 800000);
	ck_assert_uint_eq(config.vms[3].slo_ns, 5 * FGV_NS_PER_MS);
	fgv_config_fini(&config);
}
END_TEST

START_TEST(shares_as_text)
{
	static const struct {
		const char *text;
		uint64_t share;
	} good[] = {{"0%", 0},	    {"50%", 500000},	  {"12.5%", 125000},
		    {"0.0001%", 1}, {"99.9999%", 999999}, {"100%", FGV_SCHED_WHOLE}};
	static const char *const bad[] = {
		"",    "%",	   "50",   "50 %", "-1%",   "101%",	   "100.1%", "12.%",
		".5%", "1.23456%", "50%%", "1e1%", "0x10%", "4294967297%", "+1%",    "1.-5%"};
	uint64_t share = 7;
	char text[32];

	for (size_t i = 0; i < FGV_ARRAY_LEN(good); i++) {
		ck_assert_int_eq(fgv_config_text_share(good[i].text, &share), 0);
		ck_assert_uint_eq(share, good[i].share);
		fgv_config_text_show_share(share, text, sizeof(text));
		ck_assert_str_eq(text, good[i].text);
	}
	share = 7;
	for (size_t i = 0; i < FGV_ARRAY_LEN(bad); i++)
		ck_assert_msg(fgv_config_text_share(bad[i], &share) == -EINVAL, "%s", bad[i]);
	ck_assert_uint_eq(share, 7);
}
END_TEST

START_TEST(slice_by_preemption)
{
	ck_assert_int_eq(parse("preemptive = true; hang = 0; vms = ( { name = \"a\"; } );"), 0);
	ck_assert_uint_eq(config.slice_ns, FGV_SCHED_PREEMPTIVE_SLICE_NS);
	ck_assert_uint_eq(config.hang_ns, 0);
	fgv_config_fini(&config);
}
END_TEST

/* %VM% in a text stands for a list of VMs that is right. */
static const struct {
	const char *text;
	const char *error;
} refusals[] = {
	{"", "x.conf:1: vms: is missing"},
	{"gpu = \"auto\"", "x.conf:1: vms: is missing"},
	{"gpu = ;", "x.conf:1: syntax error"},
	{"\ngpu = \"auto\"; gpu = \"soft\";", "x.conf:2: duplicate setting name"},
	{"\ncolour = 1;\n%VM%", "x.conf:2: colour: unknown key"},
	{"name = \"a\"; %VM%", "x.conf:1: name: unknown key"},
	{"gpu = 1; %VM%", "x.conf:1: gpu: must be a string"},
	{"\n\ngpu = \"hip\"; %VM%", "x.conf:3: gpu: \"hip\" is none of auto, cuda, cuda:0,1, soft, "
				    "soft:2 (at most 16 devices)"},
	{"gpu = \"cuda:\"; %VM%", "x.conf:1: gpu: \"cuda:\" is none of"},
	{"gpu = \"cuda:0,\"; %VM%", "x.conf:1: gpu: \"cuda:0,\" is none of"},
	{"gpu = \"cuda:1,1\"; %VM%", "x.conf:1: gpu: \"cuda:1,1\" is none of"},
	{"gpu = \"cuda:-1\"; %VM%", "x.conf:1: gpu: \"cuda:-1\" is none of"},
	{"gpu = \"cuda:16\"; %VM%", "x.conf:1: gpu: \"cuda:16\" is none of"},
	{"gpu = \"soft:0\"; %VM%", "x.conf:1: gpu: \"soft:0\" is none of"},
	{"gpu = \"soft:17\"; %VM%", "x.conf:1: gpu: \"soft:17\" is none of"},
	{"gpu = \"soft:2x\"; %VM%", "x.conf:1: gpu: \"soft:2x\" is none of"},
	{"socket = 1; %VM%", "x.conf:1: socket: must be a string"},
	{"socket = \"x\"; %VM%", "x.conf:1: socket: must be an absolute path"},
	{"socket = \"\"; %VM%", "x.conf:1: socket: must be an absolute path"},
	{"socket = \"/12345678901234567890123456789012345678901234567890123456789012345678901234567"
	 "89012345678901234567890123456789\"; %VM%",
	 "x.conf:1: socket: longer than 107 characters"},
	{"cosched = true; %VM%", "x.conf:1: cosched: must be a string"},
	{"cosched = \"on\"; %VM%", "x.conf:1: cosched: \"on\" is none of auto, off"},
	{"slicing = \"maybe\"; %VM%", "x.conf:1: slicing: \"maybe\" is none of off, auto, on"},
	{"slicing = true; %VM%", "x.conf:1: slicing: must be a string"},
	{"hold = \"on\"; %VM%", "x.conf:1: hold: \"on\" is none of auto, off"},
	{"interactive_window = \"2s\"; %VM%",
	 "x.conf:1: interactive_window: out of range: must be 100us to 1s"},
	{"control = \"x\"; %VM%", "x.conf:1: control: must be an absolute path"},
	{"\npolicy = \"unfair\"; %VM%", "x.conf:2: policy: \"unfair\" is none of fair, "
					"credit-poll, credit-hs, strict-co, none"},
	{"policy = 1; %VM%", "x.conf:1: policy: must be a string"},
	{"preemptive = 1; %VM%", "x.conf:1: preemptive: must be true or false"},
	{"context = \"shared\"; %VM%", "x.conf:1: context: \"shared\" is none of isolated, mps"},
	{"context = true; %VM%", "x.conf:1: context: must be a string"},
	{"vms = ( { name = \"a\";\nrequest = \"10%\"; } );",
	 "x.conf:2: request: policy \"fair\" knows no requests; \"gemini\" does"},
	{"vms = ( { name = \"a\";\nlimit = \"10%\"; } );",
	 "x.conf:2: limit: policy \"fair\" knows no limits; \"gemini\" does"},
	{"share_window = \"1s\"; %VM%",
	 "x.conf:1: share_window: policy \"fair\" knows no limits; \"gemini\" does"},
	{SHARES("{ name = \"a\"; request = \"60%\"; },\n{ name = \"b\"; request = \"40.01%\"; }"),
	 "x.conf:2: request: the VMs of device 0 would have requested 100.01%"},
	{SHARES("{ name = \"a\"; device = 2; request = \"60%\"; },\n"
		"{ name = \"b\"; devices = [0, 2]; request = \"40.01%\"; }"),
	 "x.conf:2: request: the VMs of device 2 would have requested 100.01%"},
	{SHARES("{ name = \"a\"; devices = \"all\"; request = \"60%\"; },\n"
		"{ name = \"b\"; device = 3; request = \"40.01%\"; }"),
	 "x.conf:2: request: the VMs of device 3 would have requested 100.01%"},
	{SHARES("{ name = \"a\"; limit = \"50%\";\nrequest = \"50.5%\"; }"),
	 "x.conf:2: request: 50.5% is above the limit of 50%"},
	{"vms = ( { name = \"a\";\nslo = \"5ms\"; } );",
	 "x.conf:2: slo: policy \"fair\" knows no slos; \"gemini\" does"},
	{"vms = ( { name = \"a\";\npriority = 5; } );",
	 "x.conf:2: priority: policy \"fair\" knows no priorities; \"fikit\" does"},
	{"policy = \"gemini\";\nvms = ( { name = \"a\"; gang = true; } );",
	 "x.conf:2: gang: policy \"gemini\" knows no gangs; \"fair\" does"},
	{"policy = \"fikit\"; vms = ( { name = \"a\";\npriority = 10; } );",
	 "x.conf:2: priority: out of range: must be 0 to 9"},
	{"policy = \"fikit\"; vms = ( { name = \"a\";\nrequest = \"10%\"; } );",
	 "x.conf:2: request: policy \"fikit\" knows no requests; \"gemini\" does"},
	{SHARES("{ name = \"a\"; slo = \"5ms\"; }"), "x.conf:1: slo: needs a request"},
	{"vms = ( { name = \"a\";\nsms = \"25%\"; } );",
	 "x.conf:2: sms: policy \"fair\" divides no multiprocessors; \"smguard\" does"},
	{"policy = \"gemini\"; vms = ( { name = \"a\";\nsms_limit = 32; } );",
	 "x.conf:2: sms_limit: policy \"gemini\" divides no multiprocessors; \"smguard\" does"},
	{SMS("{ name = \"a\"; sms = \"60%\"; },\n{ name = \"b\"; sms = \"40.01%\"; }"),
	 "x.conf:2: sms: the VMs of device 0 would have reserved 100.01%"},
	{SMS("{ name = \"a\";\nsms = \"60%\"; sms_limit = \"50%\"; }"),
	 "x.conf:2: sms: is above sms_limit"},
	{SMS("{ name = \"a\";\nsms = \"a lot\"; }"),
	 "x.conf:2: sms: must be a number of multiprocessors, or a share"},
	{SMS("{ name = \"a\";\nsms = -1; }"), "x.conf:2: sms: out of range: must be 0 to 1024"},
	{SMS("{ name = \"a\";\nrequest = \"10%\"; }"),
	 "x.conf:2: request: policy \"smguard\" knows no requests; \"gemini\" does"},
	{SMS("{ name = \"a\";\npriority = 1; }"),
	 "x.conf:2: priority: policy \"smguard\" knows no priorities; \"fikit\" does"},
	{"gpu = \"cuda\";\n" SMS("{ name = \"a\"; }"),
	 "x.conf:2: policy: \"smguard\" needs context = \"mps\" on NVIDIA's GPUs"},
	{SHARES("{ name = \"a\"; slo = \"5ms\"; request = \"40%\"; },\n"
		"{ name = \"b\"; slo = \"5ms\"; request = \"41%\"; }"),
	 "x.conf:2: slo: can't be kept"},
	{"context = \"mps\"; " SHARES("{ name = \"a\"; slo = \"7ms\"; request = \"1%\"; }"),
	 "x.conf:1: slo: can't be kept"},
	{SHARES("{ name = \"a\"; limit = \"0%\"; }"),
	 "x.conf:1: limit: out of range: must be 0.1% to 100%"},
	{SHARES("{ name = \"a\"; limit = 50; }"),
	 "x.conf:1: limit: must be a share: a string as \"25%\""},
	{SHARES("{ name = \"a\"; request = \"0.5\"; }"),
	 "x.conf:1: request: \"0.5\" is not a share: 0% to 100%, with at most four decimals"},
	{"slice = 6; %VM%", "x.conf:1: slice: must be a duration: a string as \"6ms\""},
	{"slice = \"6\"; %VM%",
	 "x.conf:1: slice: \"6\" is not a duration: digits, then us, ms or s"},
	{"slice = \"6 ms\"; %VM%", "x.conf:1: slice: \"6 ms\" is not a duration"},
	{"slice = \"6m\"; %VM%", "x.conf:1: slice: \"6m\" is not a duration"},
	{"slice = \"-6ms\"; %VM%", "x.conf:1: slice: \"-6ms\" is not a duration"},
	{"slice = \"0\"; %VM%", "x.conf:1: slice: out of range: must be 100us to 1s"},
	{"slice = \"99us\"; %VM%", "x.conf:1: slice: out of range: must be 100us to 1s"},
	{"slice = \"1001ms\"; %VM%", "x.conf:1: slice: out of range: must be 100us to 1s"},
	{"slice = \"18446744073709551617us\"; %VM%", "x.conf:1: slice: out of range"},
	{"slice = \"18446744073709552s\"; %VM%", "x.conf:1: slice: out of range"},
	{"hang = \"1ms\"; %VM%", "x.conf:1: hang: out of range: must be 0 or 100ms to 3600s"},
	{"soft_memory = \"1K\"; %VM%", "x.conf:1: soft_memory: out of range: must be 64M to 16T"},
	{"soft_memory = true; %VM%", "x.conf:1: soft_memory: must be a size: a number of bytes, or "
				     "a string as \"4G\""},
	{"soft_memory = -1; %VM%", "x.conf:1: soft_memory: out of range: must be 64M to 16T"},
	{"window = \"256m\"; %VM%",
	 "x.conf:1: window: \"256m\" is not a size: digits, then K, M, G or T"},
	{"window = \"\"; %VM%", "x.conf:1: window: \"\" is not a size"},
	{"window = \"G\"; %VM%", "x.conf:1: window: \"G\" is not a size"},
	{"window = \"1GB\"; %VM%", "x.conf:1: window: \"1GB\" is not a size"},
	{"window = \"-1G\"; %VM%", "x.conf:1: window: \"-1G\" is not a size"},
	{"window = \"99999999999999999999\"; %VM%",
	 "x.conf:1: window: out of range: must be 1M to 1T"},
	{"window = \"16777216T\"; %VM%", "x.conf:1: window: out of range: must be 1M to 1T"},
	{"window = 33554433; %VM%", "x.conf:1: window: must be a multiple of 4096"},
	{"\nlanes = 64;\nwindow = \"8M\"; %VM%", "x.conf:3: window: too small for 64 lanes"},
	{"lanes = 0; %VM%", "x.conf:1: lanes: out of range: must be 1 to 128"},
	{"lanes = 129; %VM%", "x.conf:1: lanes: out of range: must be 1 to 128"},
	{"lanes = \"8\"; %VM%", "x.conf:1: lanes: must be a whole number"},
	{"\nvms = ();", "x.conf:2: vms: names no VM"},
	{"vms = \"a\";", "x.conf:1: vms: must be a list of groups: ( { ... } )"},
	{"vms = { name = \"a\"; };", "x.conf:1: vms: must be a list of groups: ( { ... } )"},
	{"vms = (\n\"a\");", "x.conf:2: vms: a VM must be a group: { ... }"},
	{"vms = (\n{ weight = 1; });", "x.conf:2: name: is missing"},
	{"vms = ( { name = 1; } );", "x.conf:1: name: must be a string"},
	{"vms = ( { name = \"\"; } );", "x.conf:1: name: \"\" is not a name: 1 to 63 of"},
	{"vms = ( { name = \"a b\"; } );", "x.conf:1: name: \"a b\" is not a name"},
	{"vms = ( { name = \"0123456789012345678901234567890123456789012345678901234567890123\"; } "
	 ");",
	 "x.conf:1: name: \"0123456789012345678901234567890123456789012345678901234567890123\" is "
	 "not a name"},
	{"vms = ( { name = \"a\"; },\n{ name = \"b\"; },\n{ name = \"a\"; } );",
	 "x.conf:3: name: another VM is called \"a\" already"},
	{"vms = ( { name = \"a\";\nweight = 0; } );",
	 "x.conf:2: weight: out of range: must be 1 to 10000"},
	{"vms = ( { name = \"a\"; weight = 10001; } );",
	 "x.conf:1: weight: out of range: must be 1 to 10000"},
	{"vms = ( { name = \"a\"; weight = -1; } );",
	 "x.conf:1: weight: out of range: must be 1 to 10000"},
	{"vms = ( { name = \"a\"; weight = 1.5; } );", "x.conf:1: weight: must be a whole number"},
	{"vms = ( { name = \"a\"; memory = \"0\"; } );",
	 "x.conf:1: memory: out of range: must be 1M to 1024T"},
	{"vms = ( { name = \"a\";\n\nmemory = \"4X\"; } );",
	 "x.conf:3: memory: \"4X\" is not a size"},
	{"vms = ( { name = \"a\"; users = \"root\"; } );",
	 "x.conf:1: users: must be a list, as [\"root\"]"},
	{"vms = ( { name = \"a\"; users = []; } );", "x.conf:1: users: names nobody"},
	{"vms = ( { name = \"a\";\nusers = [\"root\", \"no such user\"]; } );",
	 "x.conf:2: users: no user is called \"no such user\""},
	{"vms = ( { name = \"a\"; users = [\"4294967295\"]; } );",
	 "x.conf:1: users: 4294967295 is not a user's number"},
	{"vms = ( { name = \"a\"; users = [-1]; } );",
	 "x.conf:1: users: -1 is not a user's number"},
	{"vms = ( { name = \"a\"; users = [1.5]; } );",
	 "x.conf:1: users: a user must be a name or a number"},
	{"vms = ( { name = \"a\"; device = 16; } );",
	 "x.conf:1: device: out of range: must be 0 to 15"},
	{"vms = ( { name = \"a\"; devices = 1; } );",
	 "x.conf:1: devices: must be a list, as [0, 1], or \"all\""},
	{"vms = ( { name = \"a\"; devices = \"some\"; } );",
	 "x.conf:1: devices: must be a list, as [0, 1], or \"all\""},
	{"vms = ( { name = \"a\"; devices = []; } );", "x.conf:1: devices: names no device"},
	{"vms = ( { name = \"a\"; devices = [1,\n1]; } );",
	 "x.conf:2: devices: names device 1 twice"},
	{"vms = ( { name = \"a\"; devices = [0, 16]; } );",
	 "x.conf:1: devices: out of range: must be 0 to 15"},
	{"vms = ( { name = \"a\"; devices = [-1]; } );",
	 "x.conf:1: devices: out of range: must be 0 to 15"},
	{"vms = ( { name = \"a\"; devices = [\"0\"]; } );",
	 "x.conf:1: devices: a device must be a whole number"},
	{"vms = ( { name = \"a\"; place = \"cores\"; } );",
	 "x.conf:1: place: \"cores\" is none of fixed, mgb2, mgb3, least"},
	{"vms = ( { name = \"a\"; place = 2; } );", "x.conf:1: place: must be a string"},
	{"vms = ( { name = \"a\"; place = \"mgb3\"; place_wait = \"2d\"; } );",
	 "x.conf:1: place_wait: \"2d\" is not a duration: digits, then us, ms or s"},
	{"vms = ( { name = \"a\";\nneed = \"1G\"; } );",
	 "x.conf:2: need: means nothing where programs are not placed (key place)"},
	{"vms = ( { name = \"a\"; place = \"fixed\";\nplace_wait = \"1s\"; } );",
	 "x.conf:2: place_wait: means nothing where programs are not placed (key place)"},
	{"vms = ( { name = \"a\"; devices = [0];\ndevice = 0; } );",
	 "x.conf:2: device: \"devices\" says which ones already"},
	{"vms = ( { name = \"a\"; sessions = 65; } );",
	 "x.conf:1: sessions: out of range: must be 1 to 64"},
	{"vms = ( { name = \"a\"; windows = 64; } );",
	 "x.conf:1: windows: out of range: must be 1 to 63"},
	{"vms = ( { name = \"a\"; ivshmem = \"x\"; } );",
	 "x.conf:1: ivshmem: must be an absolute path"},
	{"vms = ( { name = \"a\"; ivshmem_user = [0]; } );",
	 "x.conf:1: ivshmem_user: a user must be a name or a number"},
	{"vms = ( { name = \"a\"; ivshmem_user = \"no such user\"; } );",
	 "x.conf:1: ivshmem_user: no user is called \"no such user\""},
	{"socket = \"/x\"; vms = ( { name = \"a\";\nivshmem = \"/x\"; } );",
	 "x.conf:2: ivshmem: is \"socket\" already"},
	{"observe = \"/x\"; vms = ( { name = \"a\"; ivshmem = \"/x\"; } );",
	 "x.conf:1: ivshmem: is \"observe\" already"},
	{"control = \"/x\";\nobserve = \"/x\"; vms = ( { name = \"a\"; } );",
	 "x.conf:2: observe: is \"control\" already"},
	{"socket = \"/x\";\nobserve = \"/x\"; vms = ( { name = \"a\"; } );",
	 "x.conf:2: observe: is \"socket\" already"},
	{"metrics_port = 65536; vms = ( { name = \"a\"; } );",
	 "x.conf:1: metrics_port: out of range: must be 0 to 65535"},
	{"control = \"/x\"; vms = ( { name = \"a\"; ivshmem = \"/x\"; } );",
	 "x.conf:1: ivshmem: is \"control\" already"},
	{"vms = ( { name = \"a\"; ivshmem = \"/x\"; },\n{ name = \"b\"; },\n"
	 "{ name = \"c\"; ivshmem = \"/x\"; } );",
	 "x.conf:3: ivshmem: is VM \"a\"'s already"},
	{"vms = ( { name = \"a\"; ivshmem = \"/x\"; },\n"
	 "{ name = \"b\"; ivshmem = \"/x.qmp\"; } );",
	 "x.conf:2: ivshmem: is VM \"a\"'s already"},
	{"vms = ( { name = \"a\"; ivshmem = \"/x.qmp\"; },\n"
	 "{ name = \"b\"; ivshmem = \"/x\"; } );",
	 "x.conf:2: ivshmem: with .qmp behind it is VM \"a\"'s already"},
	{"socket = \"/x.qmp\"; vms = ( { name = \"a\"; ivshmem = \"/x\"; } );",
	 "x.conf:1: ivshmem: with .qmp behind it is \"socket\" already"},
	{"vms = ( { name = \"a\"; ivshmem = \"/1234567890123456789012345678901234567890123456789"
	 "012345678901234567890123456789012345678901234567890123\"; } );",
	 "x.conf:1: ivshmem: longer than 103 characters"},
	{"vms = ( { name = \"a\"; socket = \"x\"; } );",
	 "x.conf:1: socket: must be an absolute path"},
	{"vms = ( { name = \"a\"; socket = \"/x\"; },\n{ name = \"b\"; socket = \"/x\"; } );",
	 "x.conf:2: socket: is VM \"a\"'s already"},
	{"socket = \"/x\"; vms = ( { name = \"a\";\nsocket = \"/x\"; } );",
	 "x.conf:2: socket: is \"socket\" already"},
	{"vms = ( { name = \"a\"; socket = \"/x.qmp\"; ivshmem = \"/x\"; } );",
	 "x.conf:1: ivshmem: with .qmp behind it is VM \"a\"'s already"},
	{"vms = ( { name = \"a\"; ivshmem = \"/x\"; },\n{ name = \"b\"; socket = \"/x.qmp\"; } );",
	 "x.conf:2: socket: is VM \"a\"'s already"},
	{"sandbox = \"off\"; %VM%", "x.conf:1: sandbox: \"off\" is none of enforce, record"},
	{"pageable_memory = 1; %VM%", "x.conf:1: pageable_memory: must be a string"},
	{"cgroup = \"x\"; %VM%", "x.conf:1: cgroup: must be auto, off or an absolute path"},
	{"uids = 1; %VM%", "x.conf:1: uids: must be a string"},
	{"uids = \"0-10\"; %VM%", "x.conf:1: uids: \"0-10\" is neither \"none\" nor a range"},
	{"uids = \"20-10\"; %VM%", "x.conf:1: uids: \"20-10\" is neither"},
	{"uids = \"1-4294967295\"; %VM%", "x.conf:1: uids: \"1-4294967295\" is neither"},
	{"uids = \"7\"; %VM%", "x.conf:1: uids: \"7\" is neither"},
	{"uids = \"5000000-5000000\"; vms = ( { name = \"a\"; }, { name = \"b\"; } );",
	 "x.conf:1: uids: 1 users for 2 VMs: one each is needed"},
	{"\nuids = \"65534-65535\"; %VM%", "x.conf:2: uids: 65534 is user \"nobody\""},
	{"uids = \"5000000-5000009\"; vms = ( { name = \"a\"; }, { name = \"b\"; users = "
	 "[5000001]; } );",
	 "x.conf:1: uids: 5000001 is a user of a VM, too"},
	{"starts = 0; %VM%", "x.conf:1: starts: out of range: must be 1 to 1000000"},
	{"vms = ( { name = \"a\";\ngpu = \"soft\"; } );", "x.conf:2: gpu: unknown key"},
	{"# 5000000000 \"\n/* \n 5000000000 */ weight5000000000 = \"5000000000\";\n"
	 "vms = ( { name = \"a\"; memory = 5000000000; } );",
	 "x.conf:4: a number is too large"},
	{"vms = ( { name = \"a\"; weight = 0x100000001; } );", "x.conf:1: a number is too large"},
	{"vms = ( { name = \"a\"; weight = 4294967297L; } );",
	 "x.conf:1: weight: out of range: must be 1 to 10000"},
	{"@include \"nowhere\"\n%VM%", "x.conf:1: cannot open include file"},
};

START_TEST(refusal)
{
	static const char vms[] = "vms = ( { name = \"right\"; } );";
	const char *text = refusals[_i].text;
	const char *mark = strstr(text, "%VM%");
	char whole[1024];

	if (mark)
		snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(mark - text), text, vms, mark + 4);
	else
		snprintf(whole, sizeof(whole), "%s", text);
	ck_assert_int_ne(parse(whole), 0);
	ck_assert_msg(!strncmp(why, refusals[_i].error, strlen(refusals[_i].error)),
		      "\"%s\":\n  said     %s\n  expected %s", whole, why, refusals[_i].error);
}
END_TEST

START_TEST(devices)
{
	ck_assert_int_eq(parse("gpu = \"soft:2\";\nvms = ( { name = \"a\"; device = 1; },\n"
			       "{ name = \"b\";\ndevice = 2; } );"),
			 0);
	ck_assert_int_eq(config.gpu.kind, FGV_GPU_SOFT);
	ck_assert_uint_eq(config.gpu.count, 2);
	ck_assert_int_eq(fgv_config_check_devices(&config, 3, why, sizeof(why)), 0);
	ck_assert_int_eq(fgv_config_check_devices(&config, 2, why, sizeof(why)), -EINVAL);
	ck_assert_str_eq(why,
			 "x.conf:4: device: there is no device 2: there are 2, counted from 0");
	fgv_config_refuse(&config, "gpu", why, sizeof(why), "no");
	ck_assert_str_eq(why, "x.conf:1: gpu: no");
	fgv_config_fini(&config);
}
END_TEST

START_TEST(placing)
{
	const struct fgv_config_vm *vms;

	ck_assert_int_eq(
		parse("vms = ( { name = \"a\"; },\n"
		      "{ name = \"b\"; devices = [0, 1]; place = \"mgb2\"; },\n"
		      "{ name = \"c\"; devices = \"all\"; place = \"least\"; need = \"2G\";"
		      " place_wait = 0; } );"),
		0);
	vms = config.vms;
	ck_assert_ptr_eq(vms[0].rule, &fgv_place_fixed);
	ck_assert(!fgv_config_places(&vms[0]));
	ck_assert_ptr_eq(vms[1].rule, &fgv_place_mgb2);
	ck_assert(fgv_config_places(&vms[1]));
	ck_assert_uint_eq(vms[1].need_bytes, 0);
	ck_assert_uint_eq(vms[1].place_wait_ns, 30000000000ull);
	ck_assert_ptr_eq(vms[2].rule, &fgv_place_least);
	ck_assert_uint_eq(vms[2].need_bytes, 2ull << 30);
	ck_assert_uint_eq(vms[2].place_wait_ns, 0);
	/* their programs see one GPU each, of however many */
	ck_assert_int_eq(fgv_config_check_devices(&config, 2, why, sizeof(why)), 0);
	fgv_config_fini(&config);
}
END_TEST

START_TEST(several_devices)
{
	const struct fgv_config_vm *vms;

	ck_assert_int_eq(parse("vms = ( { name = \"a\"; devices = [2, 0]; memory = \"2G\"; },\n"
			       "{ name = \"b\"; devices = \"all\"; memory = \"2G\"; },\n"
			       "{ name = \"c\"; device = 1; } );"),
			 0);
	vms = config.vms;
	ck_assert_uint_eq(vms[0].device, 2);
	ck_assert_uint_eq(vms[0].devices.count, 2);
	ck_assert_uint_eq(vms[0].devices.list[1], 0);
	ck_assert(fgv_config_uses(&vms[0], 0) && !fgv_config_uses(&vms[0], 1));
	ck_assert_uint_eq(vms[1].device, 0);
	ck_assert_uint_eq(fgv_config_device_count(&vms[1], 3), 3);
	ck_assert_uint_eq(vms[2].devices.count, 1);
	ck_assert_uint_eq(vms[2].devices.list[0], 1);
	ck_assert_int_eq(fgv_config_check_memory(&config, 1, 3ull << 30, why, sizeof(why)), 0);
	ck_assert_int_eq(fgv_config_check_memory(&config, 2, 3ull << 30, why, sizeof(why)),
			 -ENOMEM);
	ck_assert_int_eq(fgv_config_check_devices(&config, 2, why, sizeof(why)), -EINVAL);
	ck_assert_str_eq(why,
			 "x.conf:1: devices: there is no device 2: there are 2, counted from 0");
	ck_assert_int_eq(fgv_config_check_devices(&config, 3, why, sizeof(why)), 0);
	fgv_config_fini(&config);
	ck_assert_int_eq(
		parse("vms = ( { name = \"a\";\ndevices = \"all\"; ivshmem = \"/a\"; } );"), 0);
	ck_assert_int_eq(fgv_config_check_devices(&config, 1, why, sizeof(why)), 0);
	ck_assert_int_eq(fgv_config_check_devices(&config, 2, why, sizeof(why)), -EINVAL);
	ck_assert_str_eq(why, "x.conf:2: devices: a VM with a QEMU guest has one device");
	fgv_config_fini(&config);
	ck_assert_int_eq(parse("context = \"mps\"; vms = ( { name = \"a\"; devices = [0, 1]; } );"),
			 0);
	ck_assert_int_eq(fgv_config_check_devices(&config, 2, why, sizeof(why)), -EINVAL);
	ck_assert_str_eq(why, "x.conf:1: devices: under MPS a VM has one device");
	fgv_config_fini(&config);
}
END_TEST

START_TEST(sizes)
{
	char text[32];
	uint64_t bytes;

	ck_assert_int_eq(fgv_config_text_size("0", &bytes), 0);
	ck_assert_uint_eq(bytes, 0);
	ck_assert_int_eq(fgv_config_text_size("18446744073709551615", &bytes), 0);
	ck_assert_uint_eq(bytes, UINT64_MAX);
	ck_assert_int_eq(fgv_config_text_size("18446744073709551616", &bytes), -ERANGE);
	ck_assert_int_eq(fgv_config_text_size("16777215T", &bytes), 0);
	ck_assert_uint_eq(bytes, UINT64_C(16777215) << 40);
	ck_assert_int_eq(fgv_config_text_size("16777216T", &bytes), -ERANGE);
	ck_assert_int_eq(fgv_config_text_size(" 1", &bytes), -EINVAL);
	ck_assert_int_eq(fgv_config_text_size("1 G", &bytes), -EINVAL);
	fgv_config_text_show_size(UINT64_C(3) << 40, text, sizeof(text));
	ck_assert_str_eq(text, "3T");
	fgv_config_text_show_size(1025, text, sizeof(text));
	ck_assert_str_eq(text, "1025");
	fgv_config_text_show_size(0, text, sizeof(text));
	ck_assert_str_eq(text, "0");
}
END_TEST

static bool has_range(const struct fgv_config_key *key)
{
	return key->type == FGV_CONFIG_SIZE || key->type == FGV_CONFIG_NUMBER ||
	       key->type == FGV_CONFIG_DURATION || key->type == FGV_CONFIG_TIMEOUT ||
	       key->type == FGV_CONFIG_SHARE;
}

/* The default as the table says it in words is the default that is used. */
START_TEST(default_texts)
{
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);

	for (size_t i = 0; i < count; i++) {
		uint64_t value;

		if (!has_range(&keys[i]) || keys[i].standard == FGV_CONFIG_NO_LIMIT)
			continue;
		if (!strcmp(keys[i].name, "slice"))
			continue; /* depends on another key; see defaults, slice_by_preemption */
		if (fgv_config_text_size(keys[i].standard_text, &value) &&
		    fgv_config_text_share(keys[i].standard_text, &value))
			ck_assert_int_eq(fgv_config_text_duration(keys[i].standard_text, &value),
					 0);
		ck_assert_uint_eq(value, keys[i].standard);
		if (keys[i].type != FGV_CONFIG_TIMEOUT || value != 0)
			ck_assert(value >= keys[i].min && value <= keys[i].max);
	}
}
END_TEST

/*
 * Each key has a paragraph in the man page that opens with its type, range and
 * default: ".B weight" and then "(whole number, 1 to 10000; default: 1)".
 */
START_TEST(man_page)
{
	static const char *const types[] = {
		[FGV_CONFIG_GPU] = "string",
		[FGV_CONFIG_PATH] = "path",
		[FGV_CONFIG_SIZE] = "size",
		[FGV_CONFIG_NUMBER] = "whole number",
		[FGV_CONFIG_NAME] = "string",
		[FGV_CONFIG_USER] = "name or number",
		[FGV_CONFIG_USERS] = "list",
		[FGV_CONFIG_DEVICES] = "list",
		[FGV_CONFIG_DURATION] = "duration",
		[FGV_CONFIG_TIMEOUT] = "duration",
		[FGV_CONFIG_SWITCH] = "true or false",
		[FGV_CONFIG_FACTOR] = "true, false or a number from 1 to 100",
		[FGV_CONFIG_POLICY] = "string",
		[FGV_CONFIG_PLACE] = "string",
		[FGV_CONFIG_CONTEXT] = "string",
		[FGV_CONFIG_AUTO] = "string",
		[FGV_CONFIG_SANDBOX] = "string",
		[FGV_CONFIG_PAGEABLE] = "string",
		[FGV_CONFIG_UIDS] = "string",
		[FGV_CONFIG_CGROUP] = "string",
		[FGV_CONFIG_VMS] = "list of groups",
		[FGV_CONFIG_SHARE] = "share",
		[FGV_CONFIG_SMS] = "whole number, 0 to 1024, or share",
		[FGV_CONFIG_SLICING] = "string",
	};
	char *page, head[512], range[80];
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);

	ck_assert_int_eq(fgv_config_text_load(FGV_TEST_MAN, &page), 0);
	for (size_t i = 0; i < count; i++) {
		const struct fgv_config_key *key = &keys[i];
		const char *standard = key->standard_text;

		strcpy(range, has_range(key) ? ", " : "");
		if (has_range(key))
			fgv_config_text_show_range(key, range + 2, sizeof(range) - 2);
		if (standard)
			snprintf(head, sizeof(head), ".B %s\n(%s%s; default: %s)\n", key->name,
				 types[key->type], range, standard);
		else
			snprintf(head, sizeof(head), ".B %s\n(%s%s; required)\n", key->name,
				 types[key->type], range);
		ck_assert_msg(strstr(page, head) != NULL, "the man page lacks:\n%s", head);
	}
	free(page);
}
END_TEST

/* ... and describes nothing else: a ".TP" paragraph in KEYS is a key. */
START_TEST(man_page_has_no_other_keys)
{
	size_t count, paragraphs = 0;
	char *page, *keys_start, *keys_end;

	fgv_config_keys(&count);
	ck_assert_int_eq(fgv_config_text_load(FGV_TEST_MAN, &page), 0);
	keys_start = strstr(page, "\n.SH KEYS");
	ck_assert_ptr_nonnull(keys_start);
	keys_end = strstr(keys_start + 1, "\n.SH ");
	ck_assert_ptr_nonnull(keys_end);
	*keys_end = '\0';
	for (char *at = keys_start; (at = strstr(at, "\n.TP\n.B ")); at++)
		paragraphs++;
	ck_assert_uint_eq(paragraphs, count);
	free(page);
}
END_TEST

/* Where @name stands as ".BR name ," between @from and @to. */
static bool is_listed(const char *from, const char *to, const char *name)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "\n.BR %s ", name);
	const char *at = strstr(from, line);

	return at && at < to && strchr(",.;", at[len]);
}

/* The page says from when on another value of each key holds, as the table does. */
START_TEST(man_page_of_changes)
{
	static const char *const heads[] = {
		[FGV_CONFIG_AT_ONCE] = "\nKeys that hold at once:",
		[FGV_CONFIG_LATER] = "\nKeys that hold for programs that begin from then on:",
		[FGV_CONFIG_NO_QEMU] = "\nKeys of a VM that can change while its QEMU is not",
	};
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);
	char *page;

	ck_assert_int_eq(fgv_config_text_load(FGV_TEST_MAN, &page), 0);
	for (int when = FGV_CONFIG_AT_ONCE; when <= FGV_CONFIG_NO_QEMU; when++) {
		const char *head = strstr(page, heads[when]), *of_vm, *end;

		ck_assert_ptr_nonnull(head);
		end = strstr(head, "\n.PP");
		of_vm = strstr(head, "of a VM");
		ck_assert_ptr_nonnull(end);
		for (size_t i = 0; i < count; i++) {
			bool is_metrics = !strncmp(keys[i].name, "metrics_", 8);
			const char *from = keys[i].of_vm || is_metrics ? of_vm : head;
			const char *to = keys[i].of_vm || is_metrics || of_vm > end ? end : of_vm;

			ck_assert_msg(is_listed(from, to, keys[i].name) ==
					      ((int)keys[i].when == when),
				      "%s, under: %s", keys[i].name, heads[when]);
		}
	}
	free(page);
}
END_TEST

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(text, 1, len, file), len);
	fclose(file);
}

START_TEST(files)
{
	char folder[] = "/tmp/fairgv-test-XXXXXX";
	char path[64], expected[128];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(fgv_config_load(&config, folder, why, sizeof(why)), -EISDIR);
	snprintf(path, sizeof(path), "%s/a.conf", folder);
	ck_assert_int_eq(fgv_config_load(&config, path, why, sizeof(why)), -ENOENT);
	snprintf(expected, sizeof(expected), "%s: No such file or directory", path);
	ck_assert_str_eq(why, expected);
	write_file(path, "vms\0", 4);
	ck_assert_int_eq(fgv_config_load(&config, path, why, sizeof(why)), -EILSEQ);
	write_file(path, "@include \"b.conf\"\n", 18);
	snprintf(path, sizeof(path), "%s/b.conf", folder);
	write_file(path, "\nvms = ( { name = \"a\"; weight = 0; } );", 39);
	snprintf(path, sizeof(path), "%s/a.conf", folder);
	ck_assert_int_eq(fgv_config_load(&config, path, why, sizeof(why)), -EINVAL);
	/* How much of the path stands before it depends on libconfig's version. */
	ck_assert_msg(strstr(why, "b.conf:2: weight: out of range: must be 1 to 10000") != NULL,
		      "%s", why);
	unlink(path);
	snprintf(path, sizeof(path), "%s/b.conf", folder);
	unlink(path);
	rmdir(folder);
}
END_TEST

/* A file is included by its path as well as by its name; the numbers of lines stay. */
START_TEST(includes)
{
	char folder[] = "/tmp/fairgv-test-XXXXXX";
	char list[64], main_file[64], text[160];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(list, sizeof(list), "%s/list", folder);
	write_file(list, ", { name = \"b\"; }", 17);
	snprintf(main_file, sizeof(main_file), "%s/a.conf", folder);
	snprintf(text, sizeof(text), "vms = ( { name = \"a\"; }\n\t@include \t\"%s\"\n);", list);
	write_file(main_file, text, strlen(text));
	ck_assert_msg(!fgv_config_load(&config, main_file, why, sizeof(why)), "%s", why);
	ck_assert_uint_eq(config.vm_count, 2);
	ck_assert_str_eq(config.vms[1].name, "b");
	fgv_config_fini(&config);
	snprintf(text, sizeof(text), "\n@include \"%s\"\nnosuch = 1;", "/dev/null");
	write_file(main_file, text, strlen(text));
	ck_assert_int_eq(fgv_config_load(&config, main_file, why, sizeof(why)), -EINVAL);
	ck_assert_msg(strstr(why, "a.conf:3: nosuch: unknown key") != NULL, "%s", why);
	unlink(main_file);
	unlink(list);
	rmdir(folder);
}
END_TEST

/* libconfig itself would end the program. */
START_TEST(folders_are_not_included)
{
	static const char *const texts[] = {"@include \"\"\n", "\n@include \"/\"",
					    "@include \"list\""};
	char folder[] = "/tmp/fairgv-test-XXXXXX";
	char list[64], main_file[64];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(list, sizeof(list), "%s/list", folder);
	snprintf(main_file, sizeof(main_file), "%s/a.conf", folder);
	write_file(list, "\n\n @include \".\"", 15);
	for (size_t i = 0; i < FGV_ARRAY_LEN(texts); i++) {
		write_file(main_file, texts[i], strlen(texts[i]));
		ck_assert_int_eq(fgv_config_load(&config, main_file, why, sizeof(why)), -EINVAL);
		ck_assert_msg(strstr(why, i == 0   ? "a.conf:1: a folder can't be included"
					  : i == 1 ? "a.conf:2: a folder can't be included"
						   : "list:3: a folder can't be included"),
			      "%s", why);
	}
	write_file(list, "@include \"list\"\n@include \"list\"", 31);
	ck_assert_int_eq(fgv_config_load(&config, main_file, why, sizeof(why)), -EINVAL);
	ck_assert_msg(strstr(why, "list: includes nest too deep") != NULL, "%s", why);
	unlink(main_file);
	unlink(list);
	rmdir(folder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config");
	TCase *tcase = tcase_create("config");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, defaults);
	tcase_add_test(tcase, all_keys);
	tcase_add_test(tcase, slice_by_preemption);
	tcase_add_test(tcase, multiprocessors);
	tcase_add_test(tcase, shares);
	tcase_add_test(tcase, shares_as_text);
	tcase_add_loop_test(tcase, refusal, 0, FGV_ARRAY_LEN(refusals));
	tcase_add_test(tcase, devices);
	tcase_add_test(tcase, placing);
	tcase_add_test(tcase, several_devices);
	tcase_add_test(tcase, sizes);
	tcase_add_test(tcase, default_texts);
	tcase_add_test(tcase, man_page);
	tcase_add_test(tcase, man_page_has_no_other_keys);
	tcase_add_test(tcase, man_page_of_changes);
	tcase_add_test(tcase, files);
	tcase_add_test(tcase, includes);
	tcase_add_test(tcase, folders_are_not_included);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
