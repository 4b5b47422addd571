/*
 * The daemon in the place of a guest program, towards the process of its session: the
 * welcome, and then all lanes.
 *
 * Threads: the daemon's main one.
 */
#ifndef FGV_QEMU_DEVICE_LINK_H
#define FGV_QEMU_DEVICE_LINK_H

struct fgv_slots_entry;

enum fgv_link_news {
	FGV_LINK_WAITING,
	FGV_LINK_READY,	  /* entry->welcome is the process's, and all lanes are attached */
	FGV_LINK_REFUSED, /* entry->welcome says why */
};

/*
 * Reads a message of the process, and goes on. What has come of it, or a negative errno: the
 * process has hung up, or said what it should not.
 */
int fgv_link_read(struct fgv_slots_entry *entry);

/* Before the link is given up: takes what is still to be read of why the session ends. */
void fgv_link_drain(struct fgv_slots_entry *entry);

#endif
