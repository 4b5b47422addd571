/*
 * What comes from QEMU's monitor, in pieces: the VM gets threads that can be ones, or none, and no
 * connection stays when QEMU has gone.
 *
 * The input is pieces, each with its length in front of it. One of no bytes connects anew.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/util.h"
#include "qemu-device/qmp.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/world.h"

#define INPUTS_MAX 64 /* of one server; then it is taken down */

static struct {
	struct fgv_config_vm config;
	struct fgv_vm vm, *listed;
	struct fgv_vms vms;
	struct fgv_qmp qmp;
	char folder[40], path[48], beside[64];
	int loop;
	unsigned inputs;
} server;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void begin(void)
{
	char why[256];

	strcpy(server.folder, "/dev/shm/fairgv-fuzz-XXXXXX");
	must(mkdtemp(server.folder));
	snprintf(server.path, sizeof(server.path), "%s/qemu", server.folder);
	snprintf(server.beside, sizeof(server.beside), "%s.qmp", server.path);
	server.config = (struct fgv_config_vm){
		.name = "a", .ivshmem = server.path, .ivshmem_user = geteuid()};
	server.vm = (struct fgv_vm){.config = &server.config};
	server.listed = &server.vm;
	server.vms = (struct fgv_vms){.list = &server.listed, .count = 1};
	server.loop = fgv_loop_create();
	must(server.loop >= 0);
	fgv_qmp_init(&server.qmp, server.loop, true, &server.vms);
	must(!fgv_qmp_open(&server.qmp, server.path, geteuid(), why, sizeof(why)));
	fgv_qmp_settle(&server.qmp);
	server.inputs = 0;
}

static void end(void)
{
	fgv_qmp_fini(&server.qmp);
	close(server.loop);
	must(!rmdir(server.folder));
	server.folder[0] = '\0';
}

/* What has been begun for an input that is not the last one of its server. */
static void end_at_exit(void)
{
	if (*server.folder)
		end();
}

/* With a VM of which nothing has been told. */
static void begin_input(void)
{
	static bool is_known;

	if (!is_known)
		is_known = atexit(end_at_exit) == 0;
	if (*server.folder && server.inputs == INPUTS_MAX)
		end();
	if (!*server.folder)
		begin();
	server.inputs++;
	memset(&server.vm.vcpus, 0, sizeof(server.vm.vcpus));
}

static void connect_anew(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = fuzz_connect(server.beside, SOCK_STREAM);
	must(*fd >= 0);
	fuzz_loop_turn(server.loop);
}

static void check(void)
{
	const struct fgv_vcpus *vcpus = &server.vm.vcpus;

	must(vcpus->count <= FGV_VCPUS_MAX && (!vcpus->count || vcpus->pid == getpid()));
	for (uint32_t i = 0; i < FGV_VCPUS_MAX; i++)
		must(i < vcpus->count ? vcpus->threads[i] >= 0 : vcpus->threads[i] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int next_fd, fd = -1;

	begin_input();
	next_fd = fuzz_next_fd();
	connect_anew(&fd);
	for (size_t at = 0; at < len;) {
		size_t bytes = fgv_min_u64(data[at], len - at - 1);

		at++;
		if (bytes)
			send(fd, data + at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		else
			connect_anew(&fd);
		fuzz_loop_turn(server.loop);
		fgv_qmp_tick(&server.qmp, fgv_now_ns());
		at += bytes;
	}
	close(fd);
	fuzz_loop_turn(server.loop);
	check();
	must(fgv_qmp_deadline_ns(&server.qmp) == 0);
	must(fuzz_next_fd() == next_fd);
	return 0;
}
