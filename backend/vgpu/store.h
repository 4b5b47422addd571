/*
 * The host's memory of a frozen session (freezer.h), and its way into a file and back. The file
 * belongs to fairgvctl, which is at the other end of a socket that came by the daemon. This process
 * sees neither the file nor a key.
 *
 *	save:	<- READY, length (64 bits), bytes
 *		-> KEPT: they are in the file
 *		<- KEPT: they are here no more
 *	load:	<- READY
 *		-> length, bytes, KEPT: these were all, and right
 *		<- KEPT: they are here
 *
 * (-> comes in here; words of enum fgv_store_word.) Whatever else comes, or nothing more, leaves
 * the bytes where they are. In place of READY comes why not.
 *
 * Threads: the dispatcher's, which waits for nothing here.
 */
#ifndef FGV_VGPU_STORE_H
#define FGV_VGPU_STORE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/shared.h"

struct fgv_store {
	uint8_t *bytes; /* NULL: none */
	size_t len;
	int fd;	       /* while they are on their way */
	uint64_t head; /* the length, as it is said */
	size_t done;   /* bytes of the way, with the head */
};

/* Where they are on their way: how far. */
enum fgv_store_step {
	FGV_STORE_WAITS, /* for the other end */
	FGV_STORE_GOES_ON,
	FGV_STORE_DONE,	  /* the other end says so: fgv_store_agree() */
	FGV_STORE_FAILED, /* it is no longer on its way */
};

/* All zero, and of no pages yet. False: the host's memory is short. @len 0: none. */
bool fgv_store_make(struct fgv_store *store, size_t len);
/* The kernel clears its pages before anybody else gets them. */
void fgv_store_drop(struct fgv_store *store);

/* Takes @fd over. For loading the store has been made, as long as it is to become. */
void fgv_store_begin(struct fgv_store *store, int fd);
/* Does not go on. */
void fgv_store_stop(struct fgv_store *store);

enum fgv_store_step fgv_store_save(struct fgv_store *store);
enum fgv_store_step fgv_store_load(struct fgv_store *store);

/*
 * After the end of either: says the same, when whoever hears it may rely on it. Then it is no longer
 * on its way.
 */
void fgv_store_agree(struct fgv_store *store);

/* What there is to be waited for. */
void fgv_store_poll(const struct fgv_store *store, bool saves, struct pollfd *poll);

#endif
