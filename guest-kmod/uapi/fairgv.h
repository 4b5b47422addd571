/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * /dev/fairgv: a window of the VM's region for each open file.
 *
 *	fd = open("/dev/fairgv", O_RDWR | O_CLOEXEC);
 *	ioctl(fd, FAIRGV_IOC_OPEN, &open);		waits for the host's welcome
 *	base = mmap(NULL, open.window_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
 *	ioctl(fd, FAIRGV_IOC_LANE, &lane);		an eventfd for a lane's thread
 *	write(fd, &any_u64, 8);				wakes the host's dispatcher
 *	poll(fd)					POLLHUP: the session has ended
 *	ioctl(fd, FAIRGV_IOC_END, &end);		and why
 *
 * All is taken back when the last descriptor and mapping are gone. Every lane's eventfd is
 * signalled when the host wakes the window, and when the session ends. OPEN succeeds also
 * where the host refuses: its welcome says so, window_len is 0, and OPEN may be tried again.
 * A forked child does not have the mapping.
 *
 * With FAIRGV_OPEN_LOOK there is no session: the host has written a view of this virtual machine
 * to the beginning of the window, which is to be mapped, read and closed.
 *
 * Errors: ENODEV the device has been removed; EDQUOT
 * this user has as many windows as it may have (OPEN); EBUSY all windows are in use (OPEN), or there
 * is one already; ETIMEDOUT no welcome, or no window that its last program has left; EHOSTDOWN
 * the host has gone, and does not come back to this device (OPEN); EPIPE the session has ended,
 * or the host has gone; ENXIO before OPEN; EINVAL an unknown flag, no such lane, not an
 * eventfd, a write of other than 8 bytes, or a mapping that is private or too long.
 */
#ifndef _UAPI_FAIRGV_H
#define _UAPI_FAIRGV_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FAIRGV_PROGRAM_MAX 64
#define FAIRGV_WELCOME_LEN 384 /* struct fgv_msg_welcome */

struct fairgv_open {
	__u32 wire_version;		  /* in */
	__u32 timeout_ms;		  /* in */
	char program[FAIRGV_PROGRAM_MAX]; /* in: for the host's log */
	__u8 welcome[FAIRGV_WELCOME_LEN]; /* out: the host's answer, whatever its status */
	__u64 window_len;		  /* out */
	__u32 window;			  /* out: its number */
	__u32 flags;			  /* in: FAIRGV_OPEN_... */
	__u64 wire_hash;		  /* in: as wire_version, for the host to compare */
};

#define FAIRGV_OPEN_LOOK 1u

/* The priority that the program wants, from 0 to 9; 0: its virtual machine's. */
#define FAIRGV_OPEN_PRIORITY_SHIFT 8
#define FAIRGV_OPEN_PRIORITY_MASK  (0xfu << FAIRGV_OPEN_PRIORITY_SHIFT)

struct fairgv_lane {
	__u32 lane;
	__s32 eventfd;
};

/*
 * How often the slow paths were taken, by all programs since the device was found. The files
 * of these names in /sys/class/misc/fairgv/ say the same.
 */
struct fairgv_counts {
	__u64 doorbells;  /* rung by programs */
	__u64 interrupts; /* of windows */
	__u64 control;	  /* both, of slots */
	__u64 writeback;  /* 1: so the windows are mapped; 0: they are slow, see the kernel's log */
	__u64 reserved[4];
};

/* Why the session has ended; ENODATA where the host does not say, or it goes on. */
struct fairgv_end {
	char text[200]; /* with its NUL */
};

#define FAIRGV_IOC_OPEN	  _IOWR('G', 0, struct fairgv_open)
#define FAIRGV_IOC_LANE	  _IOW('G', 1, struct fairgv_lane)
#define FAIRGV_IOC_COUNTS _IOR('G', 2, struct fairgv_counts)
#define FAIRGV_IOC_END	  _IOR('G', 3, struct fairgv_end)

#endif
