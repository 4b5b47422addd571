/*
 * A host that may say anything: the transport of the frontend's own code, which is linked into the
 * target, and the replies to what it asks. All is one thread's: where the frontend would look for a
 * reply again, or sleep, the host takes a turn instead. Waiting for what will not come ends the
 * session, as a host that hangs up does.
 *
 * What it says is drawn from the input, by the shapes of the operations (api/shape.h).
 */
#ifndef FUZZ_GUEST_HOST_H
#define FUZZ_GUEST_HOST_H

#include <stdbool.h>
#include "tests/fuzz/slots_input.h"

#define GUEST_DEVICES 2
#define GUEST_VA_BASE 0x7e9000000000ull
#define GUEST_VA_LEN  (1ull << 30)

/* From now on replies are drawn from @input; NULL: they are those of a good host. */
void guest_host_begin(struct slots_input *input);

/*
 * The session goes on as if it had just begun: rings that are empty, no reason to end. What the
 * frontend has of the host it keeps.
 */
void guest_host_revive(void);

/* Writes what is drawn somewhere into a window. */
void guest_host_scribble(void);

/* As if the devices had been described otherwise at first. */
void guest_host_redescribe(void);

#endif
