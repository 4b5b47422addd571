/*
 * The session from the program's side: getting none, losing it, sticky errors, forking,
 * leaving, many threads on few lanes; and what FAIRGV_STATS says in the end.
 */
#define _GNU_SOURCE
#include "tests/unit/frontend/libcudart/test_frontend.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the library says on stderr goes here. */
static char said[4096];
static int stderr_pipe[2] = {-1, -1};

static void listen_to_stderr(void)
{
	ck_assert_int_eq(pipe2(stderr_pipe, O_NONBLOCK | O_CLOEXEC), 0);
	dup2(stderr_pipe[1], STDERR_FILENO);
}

static int lines_said(void)
{
	ssize_t got = read(stderr_pipe[0], said, sizeof(said) - 1);
	int lines = 0;

	said[got > 0 ? got : 0] = '\0';
	for (const char *at = said; (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

START_TEST(nobody_there)
{
	void *p;
	int n = 5, version = 5;

	setenv("FAIRGV_SOCKET", "/nowhere/at/all", 1);
	listen_to_stderr();
	EXPECT(cudaGetDeviceCount(&n), cudaErrorNoDevice);
	EXPECT(cudaMalloc(&p, 1), cudaErrorNoDevice);
	EXPECT(cudaDeviceSynchronize(), cudaErrorNoDevice);
	EXPECT(cudaDeviceReset(), cudaErrorNoDevice);
	EXPECT(cudaDriverGetVersion(&version), cudaSuccess);
	ck_assert_int_eq(version, 0);
	ck_assert_int_eq(lines_said(), 1);
	ck_assert_ptr_ne(strstr(said, "/nowhere/at/all"), NULL);
}
END_TEST

static void expect_no_device(const char *device, const char *text)
{
	void *p;

	unsetenv("FAIRGV_SOCKET");
	setenv("FAIRGV_DEVICE", device, 1);
	listen_to_stderr();
	EXPECT(cudaMalloc(&p, 1), cudaErrorNoDevice);
	ck_assert_int_eq(lines_said(), 1);
	ck_assert_msg(strstr(said, text), "%s", said);
}

START_TEST(no_such_device)
{
	expect_no_device("/nowhere/device", "cannot open /nowhere/device");
}
END_TEST

START_TEST(other_device)
{
	expect_no_device("/dev/null", "/dev/null is not a FairGV device");
}
END_TEST

START_TEST(socket_goes_before_device)
{
	void *p;

	setenv("FAIRGV_DEVICE", "/nowhere/device", 1);
	setup();
	EXPECT(cudaMalloc(&p, 1), cudaSuccess);
	teardown();
}
END_TEST

static void expect_refusal(cudaError_t code, const char *text)
{
	void *p;

	host_be_h200();
	host_start();
	listen_to_stderr();
	EXPECT(cudaMalloc(&p, 1), code);
	ck_assert_int_eq(lines_said(), 1);
	ck_assert_msg(strstr(said, text), "%s", said);
	host_stop();
}

START_TEST(refused)
{
	host_init();
	host.refuse = CUDA_ERROR_DEVICE_UNAVAILABLE;
	expect_refusal(cudaErrorDevicesUnavailable, "refused: the VM is full");
}
END_TEST

START_TEST(other_version)
{
	host_init();
	host.version = FGV_WIRE_VERSION + 1;
	expect_refusal(cudaErrorInitializationError, "version");
}
END_TEST

START_TEST(no_descriptors)
{
	host_init();
	host.no_descriptors = true;
	expect_refusal(cudaErrorInitializationError, "descriptors");
}
END_TEST

START_TEST(vm_is_named)
{
	void *p;

	setenv("FAIRGV_VM", "blue", 1);
	setup();
	EXPECT(cudaMalloc(&p, 1), cudaSuccess);
	ck_assert_str_eq(host.vm, "blue");
	teardown();
}
END_TEST

/* A failed attempt is made again: here the daemon comes later. */
START_TEST(comes_later)
{
	void *p;

	setenv("FAIRGV_SOCKET", "/nowhere/at/all", 1);
	EXPECT(cudaMalloc(&p, 1), cudaErrorNoDevice);
	setup();
	EXPECT(cudaMalloc(&p, 1), cudaSuccess);
	teardown();
}
END_TEST

static void *wait_for_stream(void *arg)
{
	__atomic_store_n((int *)arg, cudaStreamSynchronize(NULL), __ATOMIC_RELEASE);
	return NULL;
}

START_TEST(lost_while_waiting)
{
	pthread_t threads[3];
	int results[3] = {-1, -1, -1};
	void *p;

	setup();
	EXPECT(cudaMalloc(&p, 16), cudaSuccess);
	listen_to_stderr();
	HOST_SET(hold_sync, 1);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, wait_for_stream, &results[i]);
	while (HOST_GET(requests[FGV_OP_STREAM_SYNC]) < 3)
		sched_yield();
	host_stop();
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(results[i], cudaErrorLaunchFailure);
	}
	EXPECT(cudaMalloc(&p, 16), cudaErrorLaunchFailure);
	EXPECT(cudaFree(p), cudaErrorLaunchFailure);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaErrorLaunchFailure);
	EXPECT(cudaDeviceReset(), cudaErrorLaunchFailure);
	EXPECT(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
	ck_assert_int_eq(lines_said(), 1);
	ck_assert_ptr_ne(strstr(said, "lost"), NULL);
}
END_TEST

START_TEST(lost_while_the_ring_is_full)
{
	cudaError_t error = cudaSuccess;

	setup();
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	HOST_SET(pause, 1);
	for (int i = 0; i < FGV_REQUEST_SLOTS; i++)
		ck_assert_int_eq(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), 0);
	HOST_SET(die, 1);
	while (error == cudaSuccess)
		error = launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0);
	ck_assert_int_eq(error, cudaErrorLaunchFailure);
	EXPECT(cudaStreamQuery(NULL), cudaErrorLaunchFailure);
	host_stop();
}
END_TEST

START_TEST(lost_in_a_bulk_copy)
{
	size_t len = 32u << 20;
	char *h = calloc(1, len);
	void *p;

	setup();
	EXPECT(cudaMalloc(&p, len), cudaSuccess);
	HOST_SET(pause, 1);
	HOST_SET(die, 1);
	EXPECT(cudaMemcpy(p, h, len, cudaMemcpyHostToDevice), cudaErrorLaunchFailure);
	EXPECT(cudaMemcpy(h, p, len, cudaMemcpyDeviceToHost), cudaErrorLaunchFailure);
	host_stop();
	free(h);
}
END_TEST

/* The list of what fails and what does not is that of an H200. */
START_TEST(sticky_error)
{
	char h[16], h2[16];
	cudaStream_t stream;
	cudaEvent_t event;
	struct cudaDeviceProp prop;
	void *p, *q;
	int n;

	setup();
	EXPECT(cudaMalloc(&p, 16), cudaSuccess);
	EXPECT(cudaStreamCreate(&stream), cudaSuccess);
	EXPECT(cudaEventCreate(&event), cudaSuccess);
	HOST_SET(status[FGV_OP_DEVICE_SYNC], CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	HOST_SET(status[FGV_OP_DEVICE_SYNC], CUDA_SUCCESS);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	EXPECT(cudaMalloc(&q, 16), cudaErrorIllegalAddress);
	EXPECT(cudaFree(p), cudaErrorIllegalAddress);
	EXPECT(cudaFree(NULL), cudaErrorIllegalAddress);
	EXPECT(cudaMemcpy(p, h, 16, cudaMemcpyHostToDevice), cudaErrorIllegalAddress);
	EXPECT(cudaMemcpy(p, h, 0, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaMemcpy(h, h2, 4, cudaMemcpyHostToHost), cudaErrorIllegalAddress);
	EXPECT(cudaMemset(p, 0, 4), cudaErrorIllegalAddress);
	EXPECT(cudaGetDeviceCount(&n), cudaSuccess);
	EXPECT(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
	EXPECT(cudaSetDevice(0), cudaSuccess);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaErrorIllegalAddress);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(0, 1, 1), 0), cudaErrorIllegalAddress);
	EXPECT(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
	EXPECT(cudaEventRecord(event, NULL), cudaErrorIllegalAddress);
	EXPECT(cudaEventDestroy(event), cudaErrorIllegalAddress);
	EXPECT(cudaDeviceGetStreamPriorityRange(&n, &n), cudaErrorIllegalAddress);
	EXPECT(cudaDeviceReset(), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaErrorDevicesUnavailable);
	EXPECT(cudaMalloc(&q, 16), cudaErrorDevicesUnavailable);
	teardown();
}
END_TEST

START_TEST(error_of_a_post_comes_with_the_next_call)
{
	setup();
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaSuccess);
	HOST_SET(status[FGV_OP_LAUNCH], CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaErrorLaunchOutOfResources);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	teardown();
}
END_TEST

static void *read_last_error(void *arg)
{
	*(int *)arg = cudaPeekAtLastError();
	return NULL;
}

START_TEST(last_error_is_the_threads_own)
{
	pthread_t thread;
	int other = -1;
	void *p;

	setup();
	ck_assert_int_eq(cudaSetDevice(99), cudaErrorInvalidDevice);
	ck_assert_int_eq(cudaMalloc(&p, 16), cudaSuccess);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	pthread_create(&thread, NULL, read_last_error, &other);
	pthread_join(thread, NULL);
	ck_assert_int_eq(other, cudaSuccess);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
	teardown();
}
END_TEST

/* Runs @body in a child; its exit status. */
static int in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(body());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* 0 if all is as CUDA has it in a forked child. */
static int use_after_fork(void)
{
	void *p;
	int n = -1;

	if (cudaMalloc(&p, 16) != cudaErrorInitializationError)
		return 1;
	if (cudaDeviceSynchronize() != cudaErrorInitializationError)
		return 2;
	if (cudaGetDeviceCount(&n) != cudaSuccess || n != 1)
		return 3;
	if (cudaSetDevice(0) != cudaErrorInitializationError)
		return 4;
	if (launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0) != cudaErrorInitializationError)
		return 5;
	return cudaGetLastError() == cudaErrorInitializationError ? 0 : 6;
}

START_TEST(forked_child_has_no_session)
{
	void *p;

	setup();
	EXPECT(cudaMalloc(&p, 16), cudaSuccess);
	ck_assert_int_eq(in_child(use_after_fork), 0);
	EXPECT(cudaMalloc(&p, 16), cudaSuccess);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	teardown();
}
END_TEST

static int connect_in_child(void)
{
	void *p;

	return cudaMalloc(&p, 16);
}

START_TEST(child_may_be_the_first)
{
	setup();
	ck_assert_int_eq(in_child(connect_in_child), cudaSuccess);
	teardown();
}
END_TEST

#define CROWD 40

static pthread_barrier_t crowd;

static void *one_of_many(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	unsigned char h[1000], back[1000];
	void *p;

	memset(h, (int)me, sizeof(h));
	pthread_barrier_wait(&crowd);
	for (int i = 0; i < 50; i++) {
		if (cudaMalloc(&p, sizeof(h)) ||
		    cudaMemcpy(p, h, sizeof(h), cudaMemcpyHostToDevice) ||
		    launch(kernel_add, of(me + 1, 1, 1), of(1, 1, 1), 0) ||
		    cudaMemcpy(back, p, sizeof(h), cudaMemcpyDeviceToHost) ||
		    memcmp(h, back, sizeof(h)) || cudaFree(p))
			return (void *)1;
	}
	pthread_barrier_wait(&crowd);
	return NULL;
}

static void run_crowd(void)
{
	pthread_t threads[CROWD];
	void *failed;

	pthread_barrier_init(&crowd, NULL, CROWD);
	for (uintptr_t i = 0; i < CROWD; i++)
		pthread_create(&threads[i], NULL, one_of_many, (void *)i);
	for (int i = 0; i < CROWD; i++) {
		pthread_join(threads[i], &failed);
		ck_assert_ptr_eq(failed, NULL);
	}
	pthread_barrier_destroy(&crowd);
}

START_TEST(more_threads_than_lanes)
{
	static const uint32_t lanes[] = {1, 2, 16, 64};

	host_init();
	host_be_h200();
	host.lanes = lanes[_i];
	host_start();
	register_program();
	run_crowd();
	ck_assert_uint_eq(HOST_GET(launch_count), CROWD * 50);
	ck_assert_uint_le(HOST_GET(lanes_attached), lanes[_i]);
	teardown();
}
END_TEST

static void *call_once(void *arg)
{
	size_t left, all;

	(void)arg;
	return cudaMemGetInfo(&left, &all) ? (void *)1 : NULL;
}

START_TEST(lanes_are_used_again)
{
	pthread_t thread;
	void *failed;

	setup();
	for (int i = 0; i < 300; i++) {
		pthread_create(&thread, NULL, call_once, NULL);
		pthread_join(thread, &failed);
		ck_assert_ptr_eq(failed, NULL);
	}
	ck_assert_uint_eq(HOST_GET(lanes_attached), 1);
	ck_assert_uint_eq(HOST_GET(requests[FGV_OP_MEM_INFO]), 300);
	teardown();
}
END_TEST

START_TEST(who_waits_holds_up_nobody)
{
	pthread_t thread;
	int result = -1;
	void *p;

	setup();
	HOST_SET(hold_sync, 1);
	pthread_create(&thread, NULL, wait_for_stream, &result);
	while (!HOST_GET(requests[FGV_OP_STREAM_SYNC]))
		sched_yield();
	for (int i = 0; i < 100; i++) {
		EXPECT(launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0), cudaSuccess);
		EXPECT(cudaMalloc(&p, 16), cudaSuccess);
	}
	ck_assert_int_eq(__atomic_load_n(&result, __ATOMIC_ACQUIRE), -1);
	HOST_SET(hold_sync, 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, cudaSuccess);
	teardown();
}
END_TEST

/* What a program with statistics does; its exit prints them. */
static void use_and_exit(const char *stats)
{
	void *p;

	setenv("FAIRGV_STATS", stats, 1);
	setup();
	cudaMalloc(&p, 4096);
	for (int i = 0; i < 10; i++)
		launch(kernel_empty, of(1, 1, 1), of(1, 1, 1), 0);
	cudaDeviceSynchronize();
	cudaImportExternalMemory(NULL, NULL);
	cudaImportExternalMemory(NULL, NULL);
	exit(cudaGetLastError() == cudaErrorNotSupported ? 0 : 1);
}

static int run_and_read(const char *stats, int capture, char *text, size_t room)
{
	pid_t pid = fork();
	int status;
	ssize_t got;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (capture >= 0)
			dup2(capture, STDERR_FILENO);
		use_and_exit(stats);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (capture >= 0) {
		got = pread(capture, text, room - 1, 0);
		text[got > 0 ? got : 0] = '\0';
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(statistics_in_words)
{
	char name[64], text[4096];
	int fd;

	snprintf(name, sizeof(name), "/tmp/fgv-stats-%d", (int)getpid());
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(run_and_read(name, -1, NULL, 0), 0);
	text[pread(fd, text, sizeof(text) - 1, 0)] = '\0';
	close(fd);
	unlink(name);
	/* device_info, mem_alloc, module_load, function_get, 10 launches, device_sync */
	ck_assert_ptr_ne(strstr(text, "requests=15\n"), NULL);
	ck_assert_ptr_ne(strstr(text, "round_trips=5\n"), NULL);
	ck_assert_ptr_ne(strstr(text, "op.launch=10,0\n"), NULL);
	ck_assert_ptr_ne(strstr(text, "op.device_sync=1,1\n"), NULL);
	ck_assert_ptr_ne(strstr(text, "unsupported=cudaImportExternalMemory:2\n"), NULL);
}
END_TEST

START_TEST(statistics_as_a_table)
{
	const char *warning;
	char text[4096];
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	ck_assert_int_eq(run_and_read("1", fd, text, sizeof(text)), 0);
	close(fd);
	ck_assert_ptr_ne(strstr(text, "total"), NULL);
	ck_assert_ptr_ne(strstr(text, "cudaImportExternalMemory, 2 calls"), NULL);
	/* Of two calls the first is warned of, when it is made. */
	warning = strstr(text, "fairgv: warning: not supported: cudaImportExternalMemory\n");
	ck_assert_ptr_ne(warning, NULL);
	ck_assert_ptr_eq(strstr(strchr(warning, '\n'), "not supported: cudaImportExternalMemory\n"),
			 NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend: sessions");
	TCase *tests = tcase_create("sessions");

	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, nobody_there);
	tcase_add_test(tests, no_such_device);
	tcase_add_test(tests, other_device);
	tcase_add_test(tests, socket_goes_before_device);
	tcase_add_test(tests, refused);
	tcase_add_test(tests, other_version);
	tcase_add_test(tests, no_descriptors);
	tcase_add_test(tests, vm_is_named);
	tcase_add_test(tests, comes_later);
	tcase_add_test(tests, lost_while_waiting);
	tcase_add_test(tests, lost_while_the_ring_is_full);
	tcase_add_test(tests, lost_in_a_bulk_copy);
	tcase_add_test(tests, sticky_error);
	tcase_add_test(tests, error_of_a_post_comes_with_the_next_call);
	tcase_add_test(tests, last_error_is_the_threads_own);
	tcase_add_test(tests, forked_child_has_no_session);
	tcase_add_test(tests, child_may_be_the_first);
	tcase_add_loop_test(tests, more_threads_than_lanes, 0, 4);
	tcase_add_test(tests, lanes_are_used_again);
	tcase_add_test(tests, who_waits_holds_up_nobody);
	tcase_add_test(tests, statistics_in_words);
	tcase_add_test(tests, statistics_as_a_table);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
