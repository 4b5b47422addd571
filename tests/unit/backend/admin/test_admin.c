/*
 * What the administrator's socket reports, what it changes, and what it makes of a request
 * that is none.
 */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/backend/admin/admin_client.h"

#define TWO_VMS                                                                                    \
	"gpu = \"soft\"; window = \"8M\"; lanes = 4;\n"                                            \
	"vms = ( { name = \"a\"; weight = 1; }, { name = \"b\"; weight = 3; } );\n"

static struct daemon server;
static unsigned descriptors;

static void start_server(void)
{
	daemon_start(&server, TWO_VMS);
	descriptors = daemon_descriptors(&server);
}

/* Whatever a test did: the daemon answers, and nothing stays behind. */
static void stop_server(void)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"list\"}");

	ck_assert_ptr_null(json_object_get(reply, "error"));
	json_decref(reply);
	daemon_await_idle(&server, descriptors);
	daemon_stop(&server);
}

/* --- Reports ----------------------------------------------------------------- */

START_TEST(list_shows_vms_and_sessions)
{
	int first = guest_open(&server, "b", "first", NULL);
	int second = guest_open(&server, "b", "second", NULL);
	json_t *reply = admin_ask(&server, "{\"request\": \"list\"}");
	const json_t *vm = report_at(reply, "vms", 1), *session = report_at(vm, "sessions", 0);

	ck_assert_int_gt(report_number(reply, "time_ns"), 0);
	ck_assert_uint_eq(report_length(reply, "gpus"), 1);
	report_expect(report_at(reply, "gpus", 0), "name", "soft GPU 0 (runs on the processor)");
	report_expect(report_at(reply, "gpus", 0), "policy", "fair");
	ck_assert_int_eq(report_number(report_at(reply, "gpus", 0), "weight"), 4);
	ck_assert_uint_eq(report_length(reply, "vms"), 2);
	ck_assert_uint_eq(report_length(report_at(reply, "vms", 0), "sessions"), 0);
	report_expect(vm, "name", "b");
	ck_assert_int_eq(report_number(vm, "weight"), 3);
	ck_assert_int_eq(report_number(vm, "device"), 0);
	ck_assert_uint_eq(report_length(vm, "sessions"), 2);
	ck_assert_int_eq(report_number(session, "number"), 1);
	report_expect(session, "program", "first");
	report_expect(session, "state", "idle");
	ck_assert_int_eq(report_number(session, "pid"), getpid());
	ck_assert_int_eq(report_number(session, "uid"), geteuid());
	ck_assert_ptr_null(json_object_get(session, "gpu_ns")); /* that is stat's */
	ck_assert_int_eq(report_number(report_at(vm, "sessions", 1), "number"), 2);
	json_decref(reply);
	close(first);
	close(second);
}
END_TEST

/* As fill_account() of daemon_session.c has it. */
static void expect_account(const json_t *object, json_int_t sessions, json_int_t memory_bytes)
{
	ck_assert_int_eq(report_number(object, "requests"), 7 * sessions);
	ck_assert_int_eq(report_number(object, "round_trips"), 5 * sessions);
	ck_assert_int_eq(report_number(object, "launches"), 3 * sessions);
	ck_assert_int_eq(report_number(object, "doorbells_rung"), 2 * sessions);
	ck_assert_int_eq(report_number(object, "doorbells_received"), 6 * sessions);
	ck_assert_int_eq(report_number(object, "memory_bytes"), memory_bytes);
}

static void expect_no_gpu_use(const json_t *object)
{
	static const char *const keys[] = {"gpu_ns",	 "grants", "overruns",
					   "overrun_ns", "stalls", "sync_calls"};
	const json_t *wait = json_object_get(object, "wait");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ck_assert_int_eq(report_number(object, keys[i]), 0);
	ck_assert_int_eq(report_number(wait, "count"), 0);
	ck_assert_int_eq(report_number(wait, "sum_ns"), 0);
	ck_assert_int_eq(report_number(wait, "p50_ns"), 0);
	ck_assert_int_eq(report_number(wait, "p99_ns"), 0);
	ck_assert_int_eq(report_number(wait, "max_ns"), 0);
	ck_assert_uint_eq(report_length(wait, "histogram"), 0);
}

START_TEST(figures_of_a_vm_include_sessions_that_ended)
{
	int fds[3];
	json_t *reply;

	for (int i = 0; i < 3; i++)
		fds[i] = guest_open(&server, "a", "p", NULL);
	close(fds[0]);
	close(fds[1]);
	AWAIT(daemon_children(&server) == 1);
	AWAIT(daemon_count_log(&server, "ended with status 0") == 2);
	reply = admin_ask(&server, "{\"request\": \"stat\"}");
	expect_account(report_at(reply, "vms", 0), 3, 4096);
	expect_no_gpu_use(report_at(reply, "vms", 0));
	ck_assert_int_eq(report_number(report_at(reply, "vms", 0), "starved"), 0);
	ck_assert_uint_eq(report_length(report_at(reply, "vms", 0), "sessions"), 1);
	expect_account(report_at(report_at(reply, "vms", 0), "sessions", 0), 1, 4096);
	expect_no_gpu_use(report_at(report_at(reply, "vms", 0), "sessions", 0));
	expect_account(report_at(reply, "vms", 1), 0, 0);
	ck_assert_int_eq(report_number(report_at(reply, "gpus", 0), "gpu_ns"), 0);
	json_decref(reply);
	close(fds[2]);
}
END_TEST

START_TEST(stat_of_some_vms)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"stat\", \"vms\": [\"b\"]}");

	ck_assert_uint_eq(report_length(reply, "vms"), 1);
	report_expect(report_at(reply, "vms", 0), "name", "b");
	/* What a share is a part of is still the whole. */
	ck_assert_int_eq(report_number(report_at(reply, "gpus", 0), "weight"), 4);
	json_decref(reply);
	reply = admin_ask(&server, "{\"request\": \"stat\", \"vms\": []}");
	ck_assert_uint_eq(report_length(reply, "vms"), 0);
	json_decref(reply);
}
END_TEST

/* A guest may call itself what it likes; the report stays JSON. */
START_TEST(names_of_programs)
{
	static const char *const names[] = {"a\"b\\c\n", "\xc3\xa4", "\xff\xfe\xc3"};
	static const char *const shown[] = {"a\"b\\c\n", "\xc3\xa4", "???"};
	int fd = guest_open(&server, "a", names[_i], NULL);
	json_t *reply = admin_ask(&server, "{\"request\": \"list\"}");

	report_expect(report_at(report_at(reply, "vms", 0), "sessions", 0), "program", shown[_i]);
	json_decref(reply);
	close(fd);
}
END_TEST

/* --- Changes ----------------------------------------------------------------- */

static json_int_t weight_of(size_t vm)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"list\"}");
	json_int_t weight = report_number(report_at(reply, "vms", vm), "weight");

	json_decref(reply);
	return weight;
}

static void expect_change(const json_t *reply, size_t i, const char *key, const char *before,
			  const char *after)
{
	const json_t *change = report_at(reply, "changes", i);

	report_expect(change, "vm", "a");
	report_expect(change, "key", key);
	report_expect(change, "before", before);
	report_expect(change, "after", after);
}

START_TEST(set_changes_values)
{
	json_t *reply = admin_ask(&server, "{\"request\": \"set\", \"vm\": \"a\", \"weight\": 5}");

	ck_assert_uint_eq(report_length(reply, "changes"), 1);
	expect_change(reply, 0, "weight", "1", "5");
	json_decref(reply);
	ck_assert_int_eq(weight_of(0), 5);
	ck_assert_int_eq(weight_of(1), 3);
	daemon_await_log(&server, "vm a: weight 1 -> 5");
	reply = admin_ask(&server,
			  "{\"request\": \"set\", \"vm\": \"a\", \"settings\": {\"weight\": "
			  "\"7\", \"memory\": \"1G\"}, \"save\": false}");
	ck_assert_uint_eq(report_length(reply, "changes"), 2);
	expect_change(reply, 0, "weight", "5", "7");
	expect_change(reply, 1, "memory", "none", "1G");
	json_decref(reply);
	ck_assert_int_eq(weight_of(0), 7);
}
END_TEST

#define SET_A "{\"request\": \"set\", \"vm\": \"a\", "

START_TEST(bad_set_changes_nothing)
{
	static const struct {
		const char *request, *error;
	} cases[] = {
		{"{\"request\": \"set\", \"vm\": \"c\", \"weight\": 2}", "no VM called \"c\""},
		{"{\"request\": \"set\", \"weight\": 2}", "\"vm\""},
		{"{\"request\": \"set\", \"vm\": 1, \"weight\": 2}", "\"vm\""},
		{"{\"request\": \"set\", \"vm\": \"a\"}", "\"settings\", an object, is missing"},
		{SET_A "\"settings\": {}}", "\"settings\", an object, is missing"},
		{SET_A "\"settings\": [\"weight\"]}", "\"settings\", an object, is missing"},
		{SET_A "\"weight\": 2, \"settings\": {}}", "one of \"settings\", or alone"},
		{SET_A "\"settings\": {\"weight\": 2}}", "set to a string"},
		{SET_A "\"settings\": {\"nosuch\": \"2\"}}", "\"nosuch\" can't be set"},
		{SET_A "\"settings\": {\"socket\": \"/x\"}}",
		 "\"socket\" can't be set, but weight"},
		{SET_A "\"settings\": {\"device\": \"1\"}}", "\"device\" can't be set"},
		{SET_A "\"settings\": {\"limit\": \"50%\"}}",
		 "vm a: limit: policy \"fair\" knows no limits"},
		{SET_A "\"settings\": {\"weight\": \"2\", \"memory\": \"1X\"}}", "is not a size"},
		{SET_A "\"settings\": {\"memory\": \"800G\"}}", "the VMs of GPU 0 are given"},
		{SET_A "\"settings\": {\"weight\": \"2\"}, \"save\": 1}",
		 "\"save\" is true or false"},
		{SET_A "\"weight\": 0}", "must be 1 to 10000"},
		{SET_A "\"weight\": -1}", "must be 1 to 10000"},
		{SET_A "\"weight\": 10001}", "must be 1 to 10000"},
		{SET_A "\"weight\": 4294967297}", "must be 1 to 10000"},
		{SET_A "\"weight\": 2.0}", "whole number"},
		{SET_A "\"weight\": \"2\"}", "whole number"},
		{SET_A "\"weight\": null}", "whole number"},
		{SET_A "\"weight\": 2, \"memory\": 1}", "no key \"memory\""},
		{"{\"request\": \"reload\", \"end\": 1}", "\"end\" is true or false"},
		{"{\"request\": \"reload\", \"vm\": \"a\"}", "no key \"vm\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		admin_expect_refusal(admin_ask(&server, cases[i].request), cases[i].error);
	ck_assert_int_eq(weight_of(0), 1);
	ck_assert_int_eq(weight_of(1), 3);
	ck_assert_uint_eq(daemon_count_log(&server, " -> "), 0);
}
END_TEST

/* --- Bad requests ------------------------------------------------------------ */

START_TEST(bad_requests)
{
	static const struct {
		const char *request, *error;
	} cases[] = {
		{"", "not JSON"},
		{"{", "not JSON"},
		{"{\"request\": \"list\"", "not JSON"},
		{"{\"request\": \"list\"} x", "not JSON"},
		{"{\"request\": \"list\", \"request\": \"stat\"}", "not JSON"},
		{"{\"request\": \"\xff\"}", "not JSON"},
		{"null", "not JSON"},
		{"[]", "key \"request\""},
		{"[\"list\"]", "key \"request\""},
		{"{}", "key \"request\""},
		{"{\"request\": 1}", "key \"request\""},
		{"{\"request\": null}", "key \"request\""},
		{"{\"request\": \"\"}", "no request \"\""},
		{"{\"request\": \"LIST\"}", "no request \"LIST\""},
		{"{\"request\": \"a\\nb\"}", "no request"},
		{"{\"request\": \"list\", \"vms\": []}", "no key \"vms\""},
		{"{\"request\": \"stat\", \"vm\": \"a\"}", "no key \"vm\""},
		{"{\"request\": \"stat\", \"vms\": \"a\"}", "list of names"},
		{"{\"request\": \"stat\", \"vms\": {}}", "list of names"},
		{"{\"request\": \"stat\", \"vms\": [1]}", "list of names"},
		{"{\"request\": \"stat\", \"vms\": [\"a\", \"c\"]}", "no VM called \"c\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		admin_expect_refusal(admin_ask(&server, cases[i].request), cases[i].error);
	admin_expect_refusal(admin_ask_bytes(&server, "{\"request\": \"list\0\"}", 20), "not JSON");
	admin_expect_refusal(admin_ask_bytes(&server, "{\"request\": \"list\"}\0", 20), "not JSON");
}
END_TEST

/* An array in an array and so on: the parser has an end. */
START_TEST(deep_request)
{
	char request[8000];

	memset(request, '[', sizeof(request));
	admin_expect_refusal(admin_ask_bytes(&server, request, sizeof(request)), "not JSON");
}
END_TEST

/* A name of some length in a character set that needs care where it is cut. */
START_TEST(long_names)
{
	char request[4096];
	int len = snprintf(request, sizeof(request), "{\"request\": \"x");

	for (int i = 0; i < 1000; i++)
		len += snprintf(request + len, sizeof(request) - (size_t)len, "\xc3\xa4");
	snprintf(request + len, sizeof(request) - (size_t)len, "\"}");
	admin_expect_refusal(admin_ask(&server, request), "there is no request \"x");
}
END_TEST

static TCase *requests_tests(void)
{
	TCase *tcase = tcase_create("requests");

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start_server, stop_server);
	tcase_add_test(tcase, list_shows_vms_and_sessions);
	tcase_add_test(tcase, figures_of_a_vm_include_sessions_that_ended);
	tcase_add_test(tcase, stat_of_some_vms);
	tcase_add_loop_test(tcase, names_of_programs, 0, 3);
	tcase_add_test(tcase, set_changes_values);
	tcase_add_test(tcase, bad_set_changes_nothing);
	tcase_add_test(tcase, bad_requests);
	tcase_add_test(tcase, deep_request);
	tcase_add_test(tcase, long_names);
	return tcase;
}

int main(void)
{
	SRunner *runner;
	Suite *suite = suite_create("admin");
	int failed;

	suite_add_tcase(suite, requests_tests());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
