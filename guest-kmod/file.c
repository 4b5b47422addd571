// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /dev/fairgv. A file gets its window once and keeps it until it is released, which is
 * when nobody has a descriptor or a mapping of it any more.
 *
 * A window is mapped page by page as it is touched, rather than at once, so that the
 * mappings can be taken away when the device is removed. A program that goes on touching
 * its window then finds a page of nothing there, and its end by poll().
 */
#include "compat.h"
#include "internal.h"

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

/* Mapped at a time, where the fault is in the middle. */
#define AROUND_BYTES (2ul << 20)

struct fairgv_file {
	struct fairgv_device *dev;
	struct list_head link; /* in dev->files */
	struct address_space *mapping;
	unsigned long nothing; /* a page, for after the device's removal */
	unsigned long opened; /* bit 0: it has a window, or is about to */
	struct fairgv_window *window; /* NULL until it is open */
};

/* Its window, or NULL. */
static struct fairgv_window *window_of(struct fairgv_file *file)
{
	/* Pairs with the release in open_window(): all of the window is there. */
	return smp_load_acquire(&file->window);
}

/* The misc device holds its mutex, so that it is not deregistered before we have a reference. */
static int file_open(struct inode *inode, struct file *filp)
{
	struct fairgv_device *dev = container_of(filp->private_data, struct fairgv_device, misc);
	struct fairgv_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	file->nothing = get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!file->nothing) {
		kfree(file);
		return -ENOMEM;
	}
	kref_get(&dev->kref);
	file->dev = dev;
	file->mapping = filp->f_mapping;
	mutex_lock(&dev->files_mutex);
	list_add(&file->link, &dev->files);
	mutex_unlock(&dev->files_mutex);
	filp->private_data = file;
	return stream_open(inode, filp);
}

static int file_release(struct inode *inode, struct file *filp)
{
	struct fairgv_file *file = filp->private_data;
	struct fairgv_device *dev = file->dev;

	mutex_lock(&dev->files_mutex);
	list_del(&file->link);
	mutex_unlock(&dev->files_mutex);
	if (file->window) {
		fairgv_bell_drop(file->window);
		fairgv_slot_close(file->window);
	}
	free_page(file->nothing);
	kfree(file);
	fairgv_device_put(dev);
	return 0;
}

static int open_window(struct fairgv_file *file, struct fairgv_open *open,
		       struct fairgv_open __user *user)
{
	struct fairgv_window *window = NULL;
	int err = fairgv_slot_open(file->dev, open, &window);

	if (err)
		return err;
	if (copy_to_user(user, open, sizeof(*open))) {
		if (window)
			fairgv_slot_close(window);
		return -EFAULT;
	}
	/* Pairs with the acquire in window_of(). */
	smp_store_release(&file->window, window);
	return 0;
}

static long ioctl_open(struct fairgv_file *file, struct fairgv_open __user *user)
{
	struct fairgv_open *open = memdup_user(user, sizeof(*open));
	int err = -EINVAL;

	if (IS_ERR(open))
		return PTR_ERR(open);
	if (open->flags & ~(FAIRGV_OPEN_LOOK | FAIRGV_OPEN_PRIORITY_MASK))
		goto out;
	err = -EBUSY;
	if (test_and_set_bit(0, &file->opened))
		goto out;
	open->window_len = 0;
	open->window = 0;
	err = open_window(file, open, user);
	if (!file->window)
		clear_bit_unlock(0, &file->opened);
out:
	kfree(open);
	return err;
}

static long ioctl_lane(struct fairgv_file *file, const struct fairgv_lane __user *user)
{
	struct fairgv_window *window = window_of(file);
	struct fairgv_lane lane;
	int err;

	if (copy_from_user(&lane, user, sizeof(lane)))
		return -EFAULT;
	if (!window)
		return -ENXIO;
	if (lane.lane >= window->lanes)
		return -EINVAL;
	err = fairgv_bell_add(window, lane.lane, lane.eventfd);
	/* Added first: whatever ends it now signals this one too. */
	return err ? err : fairgv_slot_check(window);
}

static long ioctl_counts(struct fairgv_device *dev, struct fairgv_counts __user *user)
{
	struct fairgv_counts counts;

	fairgv_counts_read(dev, &counts);
	return copy_to_user(user, &counts, sizeof(counts)) ? -EFAULT : 0;
}

static long ioctl_end(struct fairgv_file *file, struct fairgv_end __user *user)
{
	struct fairgv_window *window = window_of(file);
	struct fairgv_end end;
	int err;

	if (!window)
		return -ENXIO;
	err = fairgv_slot_end(window, &end);
	if (err)
		return err;
	return copy_to_user(user, &end, sizeof(end)) ? -EFAULT : 0;
}

static long file_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct fairgv_file *file = filp->private_data;

	if (!fairgv_device_is_there(file->dev))
		return -ENODEV;
	switch (cmd) {
	case FAIRGV_IOC_OPEN:
		return ioctl_open(file, (struct fairgv_open __user *)arg);
	case FAIRGV_IOC_LANE:
		return ioctl_lane(file, (struct fairgv_lane __user *)arg);
	case FAIRGV_IOC_COUNTS:
		return ioctl_counts(file->dev, (struct fairgv_counts __user *)arg);
	case FAIRGV_IOC_END:
		return ioctl_end(file, (struct fairgv_end __user *)arg);
	default:
		return -ENOTTY;
	}
}

/* Any write is a ring; it never blocks. */
static ssize_t file_write(struct file *filp, const char __user *buf, size_t len, loff_t *pos)
{
	struct fairgv_file *file = filp->private_data;
	struct fairgv_window *window = window_of(file);
	int idx, err;

	if (!window)
		return -ENXIO;
	if (len != sizeof(u64))
		return -EINVAL;
	err = fairgv_slot_check(window);
	if (err)
		return err;
	if (!fairgv_device_enter(file->dev, &idx))
		return -ENODEV;
	atomic64_inc(&file->dev->doorbells);
	fairgv_pci_ring(file->dev, 1 + window->index);
	fairgv_device_leave(file->dev, idx);
	return len;
}

static __poll_t file_poll(struct file *filp, struct poll_table_struct *table)
{
	struct fairgv_file *file = filp->private_data;
	struct fairgv_window *window;

	poll_wait(filp, &file->dev->wait, table);
	window = window_of(file);
	if (!fairgv_device_is_there(file->dev) || (window && fairgv_slot_check(window)))
		return EPOLLHUP;
	return 0;
}

/* The page at the fault, and those around it as far as they go. */
static vm_fault_t map_around(struct vm_fault *vmf, struct fairgv_window *window)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long start = max(ALIGN_DOWN(vmf->address, AROUND_BYTES), vma->vm_start);
	unsigned long end = min(ALIGN(vmf->address + 1, AROUND_BYTES), vma->vm_end);
	u64 off = (u64)window->index * window->dev->window_len;
	unsigned long first = PHYS_PFN(window->dev->windows_phys + off) + vma->vm_pgoff;
	vm_fault_t fault;
	unsigned long at;

	fault = vmf_insert_pfn(vma, vmf->address, first + PHYS_PFN(vmf->address - vma->vm_start));
	if (fault != VM_FAULT_NOPAGE)
		return fault;
	for (at = start; at < end; at += PAGE_SIZE)
		if (vmf_insert_pfn(vma, at, first + PHYS_PFN(at - vma->vm_start)) !=
		    VM_FAULT_NOPAGE)
			break;
	return VM_FAULT_NOPAGE;
}

static vm_fault_t file_fault(struct vm_fault *vmf)
{
	struct fairgv_file *file = vmf->vma->vm_file->private_data;
	vm_fault_t fault;
	int idx;

	if (!fairgv_device_enter(file->dev, &idx))
		return vmf_insert_pfn(vmf->vma, vmf->address, PHYS_PFN(__pa(file->nothing)));
	fault = map_around(vmf, window_of(file));
	fairgv_device_leave(file->dev, idx);
	return fault;
}

static const struct vm_operations_struct mapping_ops = {
	.fault = file_fault,
};

/* The page protection stays as it is: any other would not be write-back. */
static int file_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct fairgv_file *file = filp->private_data;
	unsigned long pages = PHYS_PFN(file->dev->window_len);

	if (!fairgv_device_is_there(file->dev))
		return -ENODEV;
	if (!window_of(file))
		return -ENXIO;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_pgoff > pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;
	fairgv_compat_vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP |
						VM_DONTCOPY);
	vma->vm_ops = &mapping_ops;
	return 0;
}

static const struct file_operations file_ops = {
	.owner = THIS_MODULE,
	.open = file_open,
	.release = file_release,
	.unlocked_ioctl = file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.write = file_write,
	.poll = file_poll,
	.mmap = file_mmap,
};

int fairgv_file_init(struct fairgv_device *dev)
{
	dev->misc = (struct miscdevice) {
		.minor = MISC_DYNAMIC_MINOR,
		.name = "fairgv",
		.fops = &file_ops,
		.parent = &dev->pdev->dev,
		.groups = fairgv_counts_groups,
		.mode = 0666,
	};
	return misc_register(&dev->misc);
}

void fairgv_file_fini(struct fairgv_device *dev)
{
	misc_deregister(&dev->misc);
}

void fairgv_file_end(struct fairgv_device *dev)
{
	struct fairgv_file *file;
	u32 i;

	wake_up_all(&dev->wait);
	for (i = 0; i < dev->window_count; i++)
		fairgv_bell_signal(&dev->windows[i]);
	mutex_lock(&dev->files_mutex);
	list_for_each_entry(file, &dev->files, link)
		unmap_mapping_range(file->mapping, 0, 0, 1);
	mutex_unlock(&dev->files_mutex);
}
