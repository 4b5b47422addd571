/*
 * What a program calls, drawn from the input: nothing that CUDA would not let it, so whatever goes
 * wrong was said by the host.
 */
#ifndef FUZZ_GUEST_CALLS_H
#define FUZZ_GUEST_CALLS_H

#include "tests/fuzz/slots_input.h"

/* The program begins: contexts on all devices. */
void guest_calls_start(void);

/* One call, or a few that belong together. */
void guest_calls_run(struct slots_input *input);

/* The program gives back all that it has, and resets the devices. */
void guest_calls_end(void);

#endif
