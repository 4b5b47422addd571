/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the files of the module share.
 *
 * A device lives until it is removed and its last file is closed. In between, after the
 * removal, files are open that lead nowhere: whatever touches the hardware or the region
 * does so between fairgv_device_enter() and fairgv_device_leave(), and the removal waits
 * for the threads that are inside.
 *
 * The host is trusted, but what is in the region may be left over from one that has
 * ended: every shared field is read once, and checked before it is used.
 */
#ifndef FAIRGV_INTERNAL_H
#define FAIRGV_INTERNAL_H

#include <linux/atomic.h>
#include <linux/eventfd.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/uidgid.h>
#include <linux/wait.h>

#include "api/region.h"
#include "uapi/fairgv.h"

struct fairgv_window {
	struct fairgv_device *dev;
	struct fgv_region_slot *slot; /* shared with the host */
	u32 index;
	u32 lanes; /* of its session */

	/* Under dev->lock. */
	u32 serial; /* of the last request */
	bool taken; /* an open file has it */
	kuid_t owner; /* whose file, while it is taken */

	spinlock_t bells_lock; /* taken in interrupts */
	u32 bells_used; /* those from here on are NULL */
	struct eventfd_ctx *bells[FGV_LANES_MAX];
};

struct fairgv_device {
	struct kref kref;
	struct pci_dev *pdev; /* until it is removed, as are the mappings */
	void __iomem *regs;
	void *region; /* all of BAR 2 */
	phys_addr_t windows_phys;
	u64 window_len;
	u32 window_count;
	bool writeback;

	struct srcu_struct srcu;
	bool removed;

	struct miscdevice misc;
	struct mutex files_mutex; /* of the list of open files */
	struct list_head files;

	/* Woken when a slot may have changed, and by the removal. */
	wait_queue_head_t wait;
	unsigned long gone_said; /* bit 0: that the host has gone is in the log */
	spinlock_t lock; /* which process has which window, and requests for them */

	atomic64_t doorbells;
	atomic64_t interrupts;
	atomic64_t control;

	struct fairgv_window windows[];
};

/* False where the device has been removed; then there is nothing to leave. */
static inline bool fairgv_device_enter(struct fairgv_device *dev, int *idx)
{
	*idx = srcu_read_lock(&dev->srcu);
	if (!READ_ONCE(dev->removed))
		return true;
	srcu_read_unlock(&dev->srcu, *idx);
	return false;
}

static inline void fairgv_device_leave(struct fairgv_device *dev, int idx)
{
	srcu_read_unlock(&dev->srcu, idx);
}

static inline bool fairgv_device_is_there(const struct fairgv_device *dev)
{
	return !READ_ONCE(dev->removed);
}

void fairgv_device_put(struct fairgv_device *dev);

/* main.c: windows that one user may have, root excepted; 0: all but one. */
extern unsigned int fairgv_user_windows;

/*
 * pci.c: a new device, its BARs mapped and its region checked. -ENODEV, without a word,
 * for somebody else's ivshmem device.
 */
struct fairgv_device *fairgv_pci_init(struct pci_dev *pdev);
/* Lets go of the hardware; the device itself stays until its last fairgv_device_put(). */
void fairgv_pci_fini(struct fairgv_device *dev);
/* Rings the host's doorbell @vector; between enter and leave. */
void fairgv_pci_ring(struct fairgv_device *dev, u32 vector);

/* irq.c: from now on the host's doorbells are heard. */
int fairgv_irq_init(struct fairgv_device *dev);
void fairgv_irq_fini(struct fairgv_device *dev);

/*
 * slot.c: getting a window and giving it back. Opening waits for the host, at most
 * open->timeout_ms, and fills in what open says of it. Where the host refuses that is a
 * success without a window.
 */
void fairgv_slot_init(struct fairgv_device *dev);
int fairgv_slot_open(struct fairgv_device *dev, struct fairgv_open *open,
		     struct fairgv_window **window);
void fairgv_slot_close(struct fairgv_window *window);
/* Asks the host to take back all windows that are not free, whoever had them. */
void fairgv_slot_close_all(struct fairgv_device *dev);
/* Says in the log, once, that the host has gone, if it has; the device is not removed. */
void fairgv_slot_look_for_host(struct fairgv_device *dev);
/* Whether the session goes on: 0, -EPIPE, or -ENODEV without a device. Any context. */
int fairgv_slot_check(struct fairgv_window *window);
/* Why the session has ended: 0, -ENODATA where that is not known, or -ENODEV. */
int fairgv_slot_end(struct fairgv_window *window, struct fairgv_end *end);

/*
 * bell.c: the eventfds of a window's lanes. Adding takes a reference; -EBUSY where the
 * lane has one.
 */
int fairgv_bell_add(struct fairgv_window *window, u32 lane, int eventfd);
void fairgv_bell_drop(struct fairgv_window *window);
void fairgv_bell_signal(struct fairgv_window *window);

/* counts.c: how often the slow paths were taken; the groups are of sysfs. */
void fairgv_counts_read(struct fairgv_device *dev, struct fairgv_counts *counts);
extern const struct attribute_group *fairgv_counts_groups[];

/* file.c: /dev/fairgv appears and goes; ending makes the open files lead nowhere. */
int fairgv_file_init(struct fairgv_device *dev);
void fairgv_file_fini(struct fairgv_device *dev);
void fairgv_file_end(struct fairgv_device *dev);

#endif
