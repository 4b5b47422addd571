/* See ivshmem_world.h. */
#define _GNU_SOURCE
#include "tests/unit/qemu-device/ivshmem_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shmring/park.h"

#define CONFIG                                                                                     \
	"gpu = \"soft\"; window = \"8M\"; lanes = 20;\n"                                           \
	"vms = ( { name = \"a\"; ivshmem = \"%s/a\"; windows = 3; sessions = 2; },\n"              \
	"        { name = \"b\"; ivshmem = \"%s/b\"; ivshmem_user = 65534; windows = 1; },\n"      \
	"        { name = \"c\"; } );\n"

static char folder[] = "/tmp/fairgv-qemu-XXXXXX";
unsigned descriptors;
char path_a[64], path_b[64];
struct daemon server;
struct qemu_guest guest;

static void launch(const char *vgpu)
{
	char config[sizeof(CONFIG) + 2 * sizeof(folder)];

	snprintf(config, sizeof(config), CONFIG, folder, folder);
	daemon_prepare(&server, config);
	server.vgpu = vgpu;
	daemon_launch(&server);
	ck_assert_msg(server.ready[0], "the daemon did not start; see %s", server.log);
	descriptors = daemon_descriptors(&server);
}

void start_server(void)
{
	launch(NULL);
	qemu_guest_attach(&guest, path_a);
}

void start_real_server(void)
{
	launch(FGV_TEST_VGPU);
	qemu_guest_attach(&guest, path_a);
}

void stop_daemon(void)
{
	daemon_await_idle(&server, descriptors);
	daemon_stop(&server);
	ck_assert_int_ne(access(path_a, F_OK), 0);
	ck_assert_int_ne(access(path_b, F_OK), 0);
}

void stop_server(void)
{
	if (guest.fd >= 0)
		qemu_guest_detach(&guest);
	AWAIT(daemon_children(&server) == 0);
	qemu_guest_attach(&guest, path_a);
	qemu_guest_open(&guest, 0, "last");
	qemu_guest_close(&guest, 0);
	qemu_guest_detach(&guest);
	stop_daemon();
}

pid_t session_process(const char *name)
{
	char text[64];
	const char *line, *at;

	snprintf(text, sizeof(text), "program \"%s\": begins (process", name);
	line = daemon_await_log(&server, text);
	at = strstr(line, "served by process ");
	ck_assert_ptr_nonnull(at);
	return atoi(at + strlen("served by process "));
}

uint32_t *arena(uint32_t window)
{
	const struct fgv_msg_welcome *welcome = &qemu_guest_slot(&guest, window)->welcome;

	return (uint32_t *)(qemu_guest_window(&guest, window) + welcome->arena_off);
}

void check_window(uint32_t window)
{
	uint32_t before = __atomic_load_n(arena(window), __ATOMIC_SEQ_CST);

	fgv_doorbell_ring(guest.bells[FGV_REGION_HOST][1 + window]);
	qemu_guest_await_bell(&guest, 1 + window);
	ck_assert_uint_gt(__atomic_load_n(arena(window), __ATOMIC_SEQ_CST), before);
}

void check_is_clean(uint32_t window)
{
	const uint8_t *at = qemu_guest_window(&guest, window);

	ck_assert(!at[0] && !memcmp(at, at + 1, WINDOW_LEN - 1));
}

static TCase *make_case(const char *name, void (*start)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, HANG_LIMIT_SEC * 2);
	tcase_add_checked_fixture(tcase, start, stop_server);
	return tcase;
}

TCase *served_case(void)
{
	return make_case("served", start_server);
}

TCase *real_case(void)
{
	return make_case("real", start_real_server);
}

int run_suite(const char *name, TCase *first, TCase *second)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	if (!mkdtemp(folder) || chmod(folder, 0755))
		return EXIT_FAILURE;
	snprintf(path_a, sizeof(path_a), "%s/a", folder);
	snprintf(path_b, sizeof(path_b), "%s/b", folder);
	suite_add_tcase(suite, first);
	if (second)
		suite_add_tcase(suite, second);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	rmdir(folder);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
