/*
 * What it takes from one configuration to another: each key changed by itself is listed or refused
 * as the table of keys says, all that is refused is named at once, and settings stand in for values
 * of the file until that changes.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/config/plan.h"
#include "backend/config/settings.h"
#include "backend/config/uids.h"
#include "common/util.h"

static char why[1024];

static void parse(struct fgv_config *config, const char *text)
{
	ck_assert_msg(!fgv_config_parse(config, text, "x.conf", why, sizeof(why)), "%s: %s", text,
		      why);
}

/* The plan from one text to another; its lines, or why it is refused, in @said. */
static int plan_of(const char *before, const char *after, const struct fgv_plan_vm *running,
		   bool ends, char *said, size_t len)
{
	static const struct fgv_plan_vm idle[8];
	struct fgv_config a, b;
	struct fgv_plan plan;
	char line[256];
	int ret;

	parse(&a, before);
	parse(&b, after);
	said[0] = why[0] = '\0';
	ret = fgv_plan_make(&plan, &a, &b, running ? running : idle, ends, why, sizeof(why));
	for (size_t i = 0; !ret && i < plan.count; i++) {
		fgv_plan_show(&plan.changes[i], line, sizeof(line));
		strncat(said, line, len - strlen(said) - 1);
		strncat(said, "\n", len - strlen(said) - 1);
	}
	if (ret)
		snprintf(said, len, "%s", why);
	else
		fgv_plan_fini(&plan);
	fgv_config_fini(&a);
	fgv_config_fini(&b);
	return ret;
}

static void expect_plan(const char *before, const char *after, const char *lines)
{
	char said[2048];

	ck_assert_msg(!plan_of(before, after, NULL, false, said, sizeof(said)), "%s", said);
	ck_assert_str_eq(said, lines);
}

static void expect_refusal(const char *before, const char *after, const struct fgv_plan_vm *running,
			   const char *text)
{
	char said[2048];

	ck_assert_int_eq(plan_of(before, after, running, false, said, sizeof(said)), -EINVAL);
	ck_assert_str_eq(said, text);
}

/* --- Plans -------------------------------------------------------------------- */

#define TOP "warm = 0; "
#define A   "{ name = \"a\"; }"
#define VMS "vms = ( " A ", { name = \"b\"; } );"

START_TEST(nothing_changes)
{
	expect_plan(TOP VMS, TOP VMS, "");
	/* What is written down is what was the default. */
	expect_plan(TOP VMS,
		    TOP "slice = \"6ms\"; vms = ( { name = \"a\"; weight = 1; }, "
			"{ name = \"b\"; limit = \"100%\"; memory = \"none\"; } );",
		    "");
	/* In another order: a program that names no VM gets another one, but no VM changes. */
	expect_plan(TOP VMS, TOP "vms = ( { name = \"b\"; }, " A " );", "");
}
END_TEST

START_TEST(values_and_vms_change)
{
	expect_plan(
		"warm = 1; starts = 5; vms = ( " A
		", { name = \"b\"; weight = 2; memory = \"1G\"; }, "
		"{ name = \"c\"; } );",
		"warm = 2; starts = 5; vms = ( { name = \"d\"; }, "
		"{ name = \"b\"; weight = 3; memory = \"1536M\"; users = [0, 7]; socket = \"/b\"; "
		"}, "
		"{ name = \"c\"; } );",
		"warm 1 -> 2\n"
		"vm a: removed\n"
		"vm b: weight 2 -> 3\n"
		"vm b: memory 1G -> 1536M\n"
		"vm b: users 0 -> 0,7\n"
		"vm b: socket none -> /b\n"
		"vm d: added\n");
}
END_TEST

START_TEST(all_that_is_refused_is_named)
{
	const struct fgv_plan_vm running[] = {{3, true}, {0, true}, {1, false}, {0, false}};

	expect_refusal("vms = ( { name = \"a\"; }, { name = \"b\"; ivshmem = \"/b\"; }, "
		       "{ name = \"c\"; }, { name = \"d\"; } );",
		       "gpu = \"soft\"; policy = \"none\"; slice = \"5ms\"; socket = \"/x\"; "
		       "vms = ( { name = \"b\"; ivshmem = \"/c\"; windows = 5; weight = 7; }, "
		       "{ name = \"c\"; device = 1; } );",
		       running,
		       "gpu, socket, policy, slice can only be changed by starting the daemon "
		       "again; "
		       "vm a is not in it any more, but has 3 programs and a QEMU (\"fairgvctl "
		       "reload "
		       "--end\" ends them); "
		       "vm b: ivshmem, windows can only be changed when its QEMU has ended; "
		       "vm c: device, devices can only be changed by starting the daemon again");
}
END_TEST

START_TEST(too_much_to_name_is_cut)
{
	char few[64], said[2048];
	struct fgv_config a, b;
	struct fgv_plan plan;
	const struct fgv_plan_vm idle = {0};

	parse(&a, "vms = ( " A " );");
	parse(&b, "gpu = \"soft\"; policy = \"none\"; slice = \"5ms\"; socket = \"/x\"; vms = ( " A
		  " );");
	ck_assert_int_eq(fgv_plan_make(&plan, &a, &b, &idle, false, few, sizeof(few)), -EINVAL);
	snprintf(said, sizeof(said), "%s", few);
	ck_assert_uint_eq(strlen(said), sizeof(few) - 1);
	ck_assert_str_eq(said + strlen(said) - 3, "...");
	fgv_config_fini(&a);
	fgv_config_fini(&b);
}
END_TEST

START_TEST(removal_of_what_runs)
{
	static const char before[] = "vms = ( " A ", { name = \"b\"; } );";
	static const char after[] = "vms = ( { name = \"b\"; } );";
	const struct fgv_plan_vm one = {1, false}, qemu = {0, true}, none = {0, false};
	char said[512];

	ck_assert_int_eq(plan_of(before, after, (struct fgv_plan_vm[]){one, none}, false, said,
				 sizeof(said)),
			 -EINVAL);
	ck_assert_ptr_nonnull(strstr(said, "vm a is not in it any more, but has 1 program ("));
	ck_assert_int_eq(plan_of(before, after, (struct fgv_plan_vm[]){qemu, none}, false, said,
				 sizeof(said)),
			 -EINVAL);
	ck_assert_ptr_nonnull(strstr(said, "but has a QEMU ("));
	ck_assert_int_eq(
		plan_of(before, after, (struct fgv_plan_vm[]){one, one}, true, said, sizeof(said)),
		0);
	ck_assert_str_eq(said, "vm a: removed\n");
	ck_assert_int_eq(plan_of(before, after, (struct fgv_plan_vm[]){none, one}, false, said,
				 sizeof(said)),
			 0);
}
END_TEST

START_TEST(qemu_keys_without_a_qemu)
{
	expect_plan("vms = ( { name = \"a\"; ivshmem = \"/a\"; } );",
		    "vms = ( { name = \"a\"; ivshmem = \"/b\"; windows = 9; } );",
		    "vm a: ivshmem /a -> /b\nvm a: windows 4 -> 9\n");
}
END_TEST

/* "hang" that is not there is not the same as "10s", which ends what can be held, too. */
START_TEST(hang_is_compared_as_it_was_given)
{
	expect_refusal("vms = ( " A " );", "hang = \"10s\"; vms = ( " A " );", NULL,
		       "hang can only be changed by starting the daemon again");
	expect_plan("hang = \"10s\"; vms = ( " A " );", "hang = \"10000ms\"; vms = ( " A " );", "");
}
END_TEST

/* A value other than the default for every key, so that none is forgotten by the comparison. */
static const struct {
	const char *name;
	bool of_vm;
	const char *text;
} others[] = {
	{"gpu", false, "\"soft:2\""},
	{"socket", false, "\"/x\""},
	{"control", false, "\"/x\""},
	{"settings", false, "\"/x\""},
	{"observe", false, "\"/x\""},
	{"observe_user", false, "77"},
	{"metrics_socket", false, "\"/x\""},
	{"metrics_port", false, "9"},
	{"policy", false, "\"gemini\""},
	{"preemptive", false, "true"},
	{"slice", false, "\"5ms\""},
	{"share_window", false, "\"5s\""},
	{"idle", false, "\"0\""},
	{"awake_lead", false, "\"0\""},
	{"hold", false, "\"off\""},
	{"hang", false, "\"5s\""},
	{"slicing", false, "\"auto\""},
	{"slice_blocks", false, "7"},
	{"engines", false, "false"},
	{"cosched", false, "\"off\""},
	{"interactive_calls", false, "3"},
	{"interactive_window", false, "\"20ms\""},
	{"batching", false, "false"},
	{"context", false, "\"mps\""},
	{"context_memory", false, "true"},
	{"overcommit", false, "1.5"},
	{"swap_share", false, "\"20%\""},
	{"frozen_memory", false, "\"1G\""},
	{"movable", true, "true"},
	{"sharing", true, "true"},
	{"soft_memory", false, "\"1G\""},
	{"window", false, "\"64M\""},
	{"lanes", false, "8"},
	{"warm", false, "2"},
	{"uids", false, "\"none\""},
	{"cgroup", false, "\"off\""},
	{"sandbox", false, "\"record\""},
	{"pageable_memory", false, "\"refuse\""},
	{"starts", false, "5"},
	{"starts_burst", false, "5"},
	{"weight", true, "5"},
	{"request", true, "\"5%\""},
	{"limit", true, "\"50%\""},
	{"slo", true, "\"50ms\""},
	{"memory", true, "\"1G\""},
	{"priority", true, "2"},
	{"sms", true, "\"25%\""},
	{"sms_limit", true, "32"},
	{"users", true, "[7]"},
	{"device", true, "1"},
	{"devices", true, "[2, 3]"},
	{"sessions", true, "5"},
	{"place", true, "\"least\""},
	{"place_wait", true, "\"5s\""},
	{"need", true, "\"1G\""},
	{"slicing", true, "\"on\""},
	{"gang", true, "true"},
	{"socket", true, "\"/y\""},
	{"process_memory", true, "\"1G\""},
	{"host_memory", true, "\"1G\""},
	{"processors", true, "5"},
	{"images", true, "\"1G\""},
	{"ivshmem", true, "\"/z\""},
	{"ivshmem_user", true, "77"},
	{"windows", true, "5"},
};

/* Whether the values of @before and @after differ, of all keys, in @name's alone. */
static void expect_difference(const struct fgv_config *before, const struct fgv_config *after,
			      const char *name, bool of_vm)
{
	const struct fgv_config_key *key = fgv_config_find_key(name, of_vm);
	const void *a = of_vm ? (const void *)before->vms : before;
	const void *b = of_vm ? (const void *)after->vms : after;
	char *shown_before, *shown_after;

	ck_assert_ptr_nonnull(key);
	ck_assert_msg(!fgv_config_is_same(key, a, b), "%s is the same", name);
	ck_assert_msg(fgv_config_is_same(key, b, b), "%s is not like itself", name);
	shown_before = fgv_config_show(key, a);
	shown_after = fgv_config_show(key, b);
	ck_assert_str_ne(shown_before, shown_after);
	free(shown_before);
	free(shown_after);
}

START_TEST(every_key_is_compared)
{
	char before_text[512], after_text[512];
	struct fgv_config before, after;

	for (size_t i = 0; i < FGV_ARRAY_LEN(others); i++) {
		const char *name = others[i].name;
		bool is_policy = !others[i].of_vm && !strcmp(name, "policy");
		const char *policy = is_policy			 ? ""
				     : !strncmp(name, "sms", 3) ? "policy = \"smguard\";"
				     : !strcmp(name, "priority") ? "policy = \"fikit\";"
				     : !strcmp(name, "gang")	 ? "policy = \"fair\";"
								 : "policy = \"gemini\";";
		const char *more = !strcmp(name, "slo") ? "request = \"1%\"; "
				   : !strcmp(name, "place_wait") || !strcmp(name, "need")
					   ? "place = \"least\"; "
					   : "";

		snprintf(before_text, sizeof(before_text), "%s vms = ( { name = \"a\"; %s} );",
			 policy, more);
		snprintf(after_text, sizeof(after_text),
			 others[i].of_vm ? "%s vms = ( { name = \"a\"; %s %s = %s; } );"
					 : "%s vms = ( { name = \"a\"; %s } ); %s = %s;",
			 policy, more, name, others[i].text);
		parse(&before, before_text);
		parse(&after, after_text);
		expect_difference(&before, &after, name, others[i].of_vm);
		fgv_config_fini(&before);
		fgv_config_fini(&after);
	}
}
END_TEST

START_TEST(the_list_of_keys_is_whole)
{
	size_t count;
	const struct fgv_config_key *keys = fgv_config_keys(&count);

	for (size_t i = 0; i < count; i++) {
		bool is_there = keys[i].type == FGV_CONFIG_VMS || keys[i].type == FGV_CONFIG_NAME;

		for (size_t j = 0; j < FGV_ARRAY_LEN(others); j++)
			is_there |= keys[i].of_vm == others[j].of_vm &&
				    !strcmp(keys[i].name, others[j].name);
		ck_assert_msg(is_there, "%s is not in this test's list", keys[i].name);
	}
}
END_TEST

/* --- Users of processes --------------------------------------------------------- */

START_TEST(vms_keep_their_users)
{
	static const char text[] = "uids = \"5000000-5000003\"; vms = ( { name = \"new\"; }, "
				   "{ name = \"b\"; }, { name = \"a\"; } );";
	const struct fgv_config_uid taken[] = {
		{"a", 5000000}, {"b", 5000001}, {"gone", 5000002}, {NULL, 5000003}};
	struct fgv_config config;

	parse(&config, text);
	/* Of "gone" nothing is left, but a VM that is leaving still has its user. */
	ck_assert_int_eq(fgv_config_uids_keep(&config, taken, 2, why, sizeof(why)), 0);
	ck_assert_uint_eq(config.vms[0].uid, 5000002);
	ck_assert_uint_eq(config.vms[1].uid, 5000001);
	ck_assert_uint_eq(config.vms[2].uid, 5000000);
	ck_assert_int_eq(fgv_config_uids_keep(&config, taken, 4, why, sizeof(why)), -EINVAL);
	ck_assert_str_eq(why, "x.conf:1: uids: 4 users for 3 VMs: one each is needed");
	fgv_config_fini(&config);
}
END_TEST

/* --- Settings ------------------------------------------------------------------- */

static struct fgv_config base;
static struct fgv_settings settings;

static void set_up(void)
{
	parse(&base,
	      "policy = \"gemini\"; vms = ( { name = \"a\"; weight = 2; memory = \"1G\"; },\n"
	      "{ name = \"b\"; request = \"60%\"; } );");
	settings = (struct fgv_settings){0};
}

static void tear_down(void)
{
	fgv_settings_fini(&settings);
	fgv_config_fini(&base);
}

static void set(const char *vm, const char *key, const char *value, bool kept)
{
	ck_assert_int_eq(
		fgv_settings_set(&settings, &base, vm, fgv_config_find_key(key, true), value, kept),
		0);
}

static uint64_t weight_of_a(void)
{
	struct fgv_config config;
	uint64_t weight;

	ck_assert_msg(!fgv_settings_apply(&settings, &base, &config, why, sizeof(why)), "%s", why);
	weight = config.vms[0].weight;
	fgv_config_fini(&config);
	return weight;
}

START_TEST(settings_stand_in)
{
	struct fgv_config config;

	set("a", "weight", "7", false);
	set("a", "memory", "none", false);
	set("b", "users", "0,77", false);
	set("b", "request", "70%", false);
	set("b", "slo", "20ms", false);
	ck_assert_int_eq(fgv_settings_apply(&settings, &base, &config, why, sizeof(why)), 0);
	ck_assert_uint_eq(config.vms[0].weight, 7);
	ck_assert_uint_eq(config.vms[0].memory_bytes, FGV_CONFIG_NO_LIMIT);
	ck_assert_uint_eq(config.vms[1].users.count, 2);
	ck_assert_uint_eq(config.vms[1].users.uids[1], 77);
	ck_assert_uint_eq(config.vms[1].request, 700000);
	ck_assert_uint_eq(config.vms[1].slo_ns, 20 * FGV_NS_PER_MS);
	fgv_config_fini(&config);
	set("a", "weight", "", false);
	ck_assert_uint_eq(weight_of_a(), 2);
	ck_assert_uint_eq(settings.count, 4);
}
END_TEST

START_TEST(bad_settings_are_refused)
{
	static const struct {
		const char *vm, *key, *value, *why;
	} cases[] = {
		{"a", "weight", "0", "vm a: weight: out of range: must be 1 to 10000"},
		{"a", "weight", "x", "vm a: weight: must be a whole number"},
		{"a", "weight", "99999999999999999999", "vm a: weight: must be a whole number"},
		{"a", "memory", "4X",
		 "vm a: memory: \"4X\" is not a size: digits, then K, M, G or T"},
		{"a", "users", "no such user", "vm a: users: no user is called \"no such user\""},
		{"a", "request", "50%",
		 "vm b: request: the VMs of device 0 would have requested 110%"},
		{"a", "limit", "0%", "vm a: limit: out of range: must be 0.1% to 100%"},
		{"b", "limit", "50%", "vm b: request: 60% is above the limit of 50%"},
	};
	struct fgv_config config;

	for (size_t i = 0; i < FGV_ARRAY_LEN(cases); i++) {
		set(cases[i].vm, cases[i].key, cases[i].value, false);
		ck_assert_int_eq(fgv_settings_apply(&settings, &base, &config, why, sizeof(why)),
				 -EINVAL);
		ck_assert_str_eq(why, cases[i].why);
		set(cases[i].vm, cases[i].key, "", false);
		ck_assert_uint_eq(settings.count, 0);
	}
}
END_TEST

START_TEST(kept_ones_stand_behind_others)
{
	set("a", "weight", "5", true);
	set("a", "weight", "9", false);
	ck_assert_uint_eq(weight_of_a(), 9);
	/* Back to the file's value for now: the kept one stays. */
	set("a", "weight", "", false);
	ck_assert_uint_eq(weight_of_a(), 2);
	ck_assert_uint_eq(settings.count, 2);
	set("a", "weight", "6", true);
	ck_assert_uint_eq(weight_of_a(), 6);
	ck_assert_uint_eq(settings.count, 1);
	set("a", "weight", "", true);
	ck_assert_uint_eq(settings.count, 0);
}
END_TEST

START_TEST(the_file_has_the_last_word)
{
	struct fgv_settings dropped;
	struct fgv_config edited;

	set("a", "weight", "5", true);
	set("a", "memory", "2G", false);
	set("b", "request", "70%", false);
	parse(&edited,
	      "policy = \"gemini\"; vms = ( { name = \"a\"; weight = 3; memory = 1073741824; } "
	      ");");
	ck_assert_int_eq(fgv_settings_prune(&settings, &edited, &dropped), 0);
	ck_assert_uint_eq(settings.count, 1);
	ck_assert_str_eq(settings.list[0].key->name, "memory");
	ck_assert_uint_eq(dropped.count, 2);
	ck_assert(fgv_settings_say_dropped(&dropped));
	fgv_settings_fini(&dropped);
	fgv_config_fini(&edited);
}
END_TEST

START_TEST(only_some_keys_are_set)
{
	static const char *const may[] = {
		"weight",	  "place_wait",	 "need",       "priority", "request",
		"limit",	  "slo",	 "memory",     "users",	   "sessions",
		"process_memory", "host_memory", "processors", "images",
		"movable",	  "sharing"};
	size_t count, found = 0;
	const struct fgv_config_key *keys = fgv_config_keys(&count);

	for (size_t i = 0; i < count; i++)
		found += fgv_settings_may_set(&keys[i]);
	ck_assert_uint_eq(found, FGV_ARRAY_LEN(may));
	for (size_t i = 0; i < FGV_ARRAY_LEN(may); i++)
		ck_assert(fgv_settings_may_set(fgv_config_find_key(may[i], true)));
}
END_TEST

/* --- Their file ------------------------------------------------------------------ */

static char folder[] = "/tmp/fairgv-test-XXXXXX";
static char path[64];

static void make_folder(void)
{
	set_up();
	strcpy(folder, "/tmp/fairgv-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s.conf", folder);
}

static void remove_folder(void)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
	tear_down();
}

static void save(void)
{
	ck_assert_msg(!fgv_settings_save(&settings, path, why, sizeof(why)), "%s", why);
}

START_TEST(what_is_kept_is_read_again)
{
	set("a", "weight", "5", true);
	set("a", "memory", "2G", false);
	set("b", "users", "root,77", true);
	save();
	fgv_settings_fini(&settings);
	ck_assert_int_eq(fgv_settings_load(&settings, path, why, sizeof(why)), 0);
	ck_assert_uint_eq(settings.count, 2);
	ck_assert_str_eq(settings.list[0].vm, "a");
	ck_assert_str_eq(settings.list[0].value, "5");
	ck_assert_str_eq(settings.list[0].was, "2");
	ck_assert(settings.list[1].kept);
	ck_assert_str_eq(settings.list[1].value, "root,77");
	ck_assert_uint_eq(weight_of_a(), 5);
}
END_TEST

START_TEST(without_any_there_is_no_file)
{
	ck_assert_int_eq(fgv_settings_load(&settings, path, why, sizeof(why)), 0);
	ck_assert_uint_eq(settings.count, 0);
	save();
	ck_assert_int_ne(access(path, F_OK), 0);
	set("a", "weight", "5", true);
	save();
	ck_assert_int_eq(access(path, F_OK), 0);
	set("a", "weight", "", true);
	save();
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* Where it can't be written the old one stays, and nothing else. */
START_TEST(a_file_that_can_not_be_written)
{
	char blocked[80];

	set("a", "weight", "5", true);
	save();
	snprintf(blocked, sizeof(blocked), "%s.new", path);
	ck_assert_int_eq(mkdir(blocked, 0700), 0);
	set("a", "weight", "6", true);
	ck_assert_int_eq(fgv_settings_save(&settings, path, why, sizeof(why)), -EISDIR);
	ck_assert_ptr_nonnull(strstr(why, path));
	fgv_settings_fini(&settings);
	ck_assert_int_eq(fgv_settings_load(&settings, path, why, sizeof(why)), 0);
	ck_assert_str_eq(settings.list[0].value, "5");
}
END_TEST

START_TEST(bad_files)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", ":1: settings must be a list"},
		{"settings = 1;", ":1: settings must be a list"},
		{"settings = (\n", ":2: syntax error"},
		{"settings = (\n1 );", ":2: a setting has vm, key, value and was"},
		{"settings = (\n{ vm = \"a\"; key = \"weight\"; value = 3; was = \"1\"; } );",
		 ":2: a setting has vm, key, value and was"},
		{"settings = (\n{ vm = \"a\"; key = \"device\"; value = \"3\"; was = \"1\"; } );",
		 ":2: there is nothing of that name to be set"},
		{"settings = (\n{ vm = \"a b\"; key = \"weight\"; value = \"3\"; was = \"1\"; } );",
		 ":2: there is nothing of that name to be set"},
	};

	for (size_t i = 0; i < FGV_ARRAY_LEN(cases); i++) {
		FILE *file = fopen(path, "w");

		ck_assert_ptr_nonnull(file);
		fputs(cases[i].text, file);
		fclose(file);
		ck_assert_int_eq(fgv_settings_load(&settings, path, why, sizeof(why)), -EINVAL);
		ck_assert_msg(!strncmp(why, path, strlen(path)) && strstr(why, cases[i].why),
			      "%s: %s", cases[i].text, why);
		ck_assert_uint_eq(settings.count, 0);
	}
}
END_TEST

static TCase *settings_tests(void)
{
	TCase *tcase = tcase_create("settings");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_add_test(tcase, settings_stand_in);
	tcase_add_test(tcase, bad_settings_are_refused);
	tcase_add_test(tcase, kept_ones_stand_behind_others);
	tcase_add_test(tcase, the_file_has_the_last_word);
	tcase_add_test(tcase, only_some_keys_are_set);
	tcase_add_test(tcase, what_is_kept_is_read_again);
	tcase_add_test(tcase, without_any_there_is_no_file);
	tcase_add_test(tcase, a_file_that_can_not_be_written);
	tcase_add_test(tcase, bad_files);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("plan");
	TCase *tcase = tcase_create("plan");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, nothing_changes);
	tcase_add_test(tcase, values_and_vms_change);
	tcase_add_test(tcase, all_that_is_refused_is_named);
	tcase_add_test(tcase, too_much_to_name_is_cut);
	tcase_add_test(tcase, removal_of_what_runs);
	tcase_add_test(tcase, qemu_keys_without_a_qemu);
	tcase_add_test(tcase, hang_is_compared_as_it_was_given);
	tcase_add_test(tcase, every_key_is_compared);
	tcase_add_test(tcase, the_list_of_keys_is_whole);
	tcase_add_test(tcase, vms_keep_their_users);
	suite_add_tcase(suite, tcase);
	suite_add_tcase(suite, settings_tests());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
