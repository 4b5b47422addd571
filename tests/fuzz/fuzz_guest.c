/*
 * What a host says: a program calls the driver's face, and the replies, what lies in the window and
 * how devices and kernels are described are the input's. Whatever is said, the program goes on, if
 * only with errors.
 *
 * An input is drawn from its beginning on, by the calls and by the replies to them in turn.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/guest_calls.h"
#include "tests/fuzz/guest_host.h"
#include "tests/fuzz/target.h"

#define CALLS_MAX 64

static void start(void)
{
	static bool is_started;

	if (is_started)
		return;
	is_started = true;
	/* Copies are the calling thread's alone. */
	setenv("FAIRGV_COPY_THREADS", "0", 1);
	guest_host_begin(NULL);
	guest_calls_start();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct slots_input input = {.at = data, .end = data + len};

	start();
	guest_host_begin(&input);
	guest_host_redescribe();
	for (unsigned i = 0; i < CALLS_MAX && input.at < input.end; i++)
		guest_calls_run(&input);
	/* A good host again, for what the program gives back. */
	guest_host_begin(NULL);
	guest_host_revive();
	guest_host_redescribe();
	guest_calls_end();
	return 0;
}
