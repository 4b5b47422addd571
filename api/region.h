/*
 * The region of a VM: the memory that an ivshmem device shows to its guest, whose kernel
 * module (guest-kmod/) hands its windows out to programs. Included by the daemon and by the
 * module, so only fixed-width types and no pointers.
 *
 *   0              struct fgv_region_head, one page
 *   4096           struct fgv_region_slot for each window
 *   windows_off    window 0, window 1, ...  each window_len bytes, as wire.h lays it out
 *
 * windows_off and window_len are multiples of the page size, the whole is padded to a power
 * of two, as PCI wants it, and the device has a vector more than windows.
 *
 * A slot is how a window gets a session. The guest asks, the daemon answers, each in its own
 * half; a request counts when its serial differs from the one answered last:
 *
 *   guest: hello, OPEN, serial + 1, rings     slot must be FREE
 *   host:  welcome, READY or REFUSED, serial, rings
 *   ...    the session; all lanes of the window are attached
 *   host:  GONE, rings                        the session has ended by itself (or never)
 *   guest: CLOSE, serial + 1, rings           always, also after REFUSED or GONE
 *   host:  FREE, serial, rings                the window is clean, nothing uses it any more
 *
 * A guest may close what it has not opened, or before its OPEN is answered: it has started
 * anew, or has lost patience. The host answers the request that stands in the slot, FREE to
 * any CLOSE; a request that has been overtaken gets no answer. The guest takes every state
 * but READY for the session's end.
 *
 * Where the hello only wants to look, the window has the view at its beginning once the slot
 * is READY. There is no session, so no lane and no end of it: the guest reads, and closes.
 *
 * When the host leaves the region for good, however that comes, it says so in the head and
 * rings vector 0: all sessions have ended, and no request is answered any more. A region that
 * has been left stays so; the guest gets another one with another device.
 *
 * Doorbells are ivshmem's. Peer FGV_REGION_HOST is the host: vector 0 is the daemon's,
 * vector 1 + w wakes the dispatcher of window w. The guest's own vectors: 0 says that a
 * slot has changed, 1 + w wakes the threads of window w.
 */
#ifndef FGV_API_REGION_H
#define FGV_API_REGION_H

#include "api/wire.h"

#define FGV_REGION_MAGIC   0x52564746u /* "FGVR" */
#define FGV_REGION_VERSION 2
#define FGV_REGION_HOST	   0 /* ivshmem peers */
#define FGV_REGION_GUEST   1
#define FGV_REGION_WINDOWS_MAX 63
#define FGV_REGION_SLOTS_OFF   4096

enum fgv_region_state { FGV_SLOT_FREE, FGV_SLOT_READY, FGV_SLOT_REFUSED, FGV_SLOT_GONE };
enum fgv_region_request { FGV_SLOT_NONE, FGV_SLOT_OPEN, FGV_SLOT_CLOSE };

/* Written by the host before the guest sees the region; but for the word that it writes last. */
struct fgv_region_head {
	uint32_t magic;
	uint32_t version;
	uint32_t wire_version;
	uint32_t windows;
	uint64_t window_len;
	uint64_t windows_off;
	uint32_t host_gone; /* 1: it has left */
	uint32_t reserved[7];
};
_Static_assert(sizeof(struct fgv_region_head) == FGV_CACHE_LINE, "region");

struct fgv_region_slot {
	/* The host's half. */
	uint32_t state;	 /* enum fgv_region_state */
	uint32_t answer; /* serial of the request that it answers */
	uint32_t reserved0[14];
	struct fgv_msg_welcome welcome; /* with READY and REFUSED; with GONE its text says why */
	uint8_t reserved1[64];
	/* The guest's half. */
	uint32_t request; /* enum fgv_region_request */
	uint32_t serial;
	uint32_t reserved2[14];
	struct fgv_msg_hello hello; /* with OPEN; vm is not looked at */
	uint8_t reserved3[264];
};
_Static_assert(sizeof(struct fgv_region_slot) == 1024, "region");
_Static_assert(offsetof(struct fgv_region_slot, request) == 512, "region");

#endif
