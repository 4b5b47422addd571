// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The ivshmem device: BAR 0 has the registers, BAR 2 is the region.
 *
 * The region is mapped as a whole although only its slots are read here, as that reserves
 * its memory type: the pages that programs map get the type that is found reserved
 * (file.c). Write-back is asked for, and x86 gives less without a word where the firmware
 * has set an MTRR for the BAR's place; only the page table says so.
 */
#include "internal.h"

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#define BAR_REGS 0
#define BAR_REGION 2

#define REGS_LEN 256
#define REG_DOORBELL 12

/* A copy of the region's head, checked against its BAR of @len bytes; else why not. */
static const char *check_head(const struct fgv_region_head *head, u64 len)
{
	u64 slots_end, windows_len;

	if (head->version != FGV_REGION_VERSION)
		return "of another version";
	if (!head->windows || head->windows > FGV_REGION_WINDOWS_MAX)
		return "without a sensible number of windows";
	if (!head->window_len || !PAGE_ALIGNED(head->window_len) ||
	    !PAGE_ALIGNED(head->windows_off))
		return "whose windows are no whole pages";
	slots_end = FGV_REGION_SLOTS_OFF + head->windows * sizeof(struct fgv_region_slot);
	if (head->windows_off < slots_end)
		return "whose windows and slots overlap";
	if (check_mul_overflow(head->window_len, (u64)head->windows, &windows_len) ||
	    head->windows_off > len || windows_len > len - head->windows_off)
		return "whose windows do not fit into its BAR";
	return NULL;
}

static struct fairgv_device *create(struct pci_dev *pdev, const struct fgv_region_head *head)
{
	struct fairgv_device *dev;
	int err;

	dev = kvzalloc(struct_size(dev, windows, head->windows), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	err = init_srcu_struct(&dev->srcu);
	if (err) {
		kvfree(dev);
		return ERR_PTR(err);
	}
	kref_init(&dev->kref);
	mutex_init(&dev->files_mutex);
	INIT_LIST_HEAD(&dev->files);
	init_waitqueue_head(&dev->wait);
	spin_lock_init(&dev->lock);
	dev->pdev = pdev;
	dev->window_count = head->windows;
	dev->window_len = head->window_len;
	dev->windows_phys = pci_resource_start(pdev, BAR_REGION) + head->windows_off;
	return dev;
}

/* Reads the head once, and makes the device that it describes. */
static struct fairgv_device *read_region(struct pci_dev *pdev, const void *region, u64 len)
{
	struct fgv_region_head head;
	const char *why;

	memcpy(&head, region, sizeof(head));
	if (head.magic != FGV_REGION_MAGIC)
		return ERR_PTR(-ENODEV);
	why = check_head(&head, len);
	if (!why)
		return create(pdev, &head);
	dev_err(&pdev->dev, "not used: a region %s\n", why);
	return ERR_PTR(-ENODEV);
}

static bool is_writeback(const void *mapped)
{
	unsigned int level;
	const pte_t *pte = lookup_address((unsigned long)mapped, &level);

	/* The two lie alike in entries of all sizes; write-back is neither. */
	return pte && !(pte_val(*pte) & (_PAGE_PWT | _PAGE_PCD));
}

static struct fairgv_device *map(struct pci_dev *pdev)
{
	u64 len = pci_resource_len(pdev, BAR_REGION);
	struct fairgv_device *dev;
	void __iomem *regs;
	void *region;

	regs = pci_iomap(pdev, BAR_REGS, REGS_LEN);
	if (!regs)
		return ERR_PTR(-ENOMEM);
	dev = ERR_PTR(-ENOMEM);
	region = memremap(pci_resource_start(pdev, BAR_REGION), len, MEMREMAP_WB);
	if (!region)
		goto err_regs;
	dev = read_region(pdev, region, len);
	if (IS_ERR(dev))
		goto err_region;
	dev->regs = regs;
	dev->region = region;
	dev->writeback = is_writeback(region);
	if (!dev->writeback)
		dev_warn(&pdev->dev,
			 "the region is not mapped write-back and will be slow: its root port wants pref64-reserve\n");
	return dev;

err_region:
	memunmap(region);
err_regs:
	pci_iounmap(pdev, regs);
	return dev;
}

static bool has_bars(struct pci_dev *pdev)
{
	return pci_resource_len(pdev, BAR_REGS) >= REGS_LEN &&
	       pci_resource_len(pdev, BAR_REGION) > FGV_REGION_SLOTS_OFF;
}

struct fairgv_device *fairgv_pci_init(struct pci_dev *pdev)
{
	struct fairgv_device *dev;
	int err;

	err = pci_enable_device(pdev);
	if (err)
		return ERR_PTR(err);
	dev = ERR_PTR(-ENODEV);
	if (!has_bars(pdev))
		goto err_enable;
	err = pci_request_regions(pdev, "fairgv");
	if (err) {
		dev = ERR_PTR(err);
		goto err_enable;
	}
	dev = map(pdev);
	if (IS_ERR(dev))
		goto err_request;
	/* For its interrupts, which are writes. */
	pci_set_master(pdev);
	return dev;

err_request:
	pci_release_regions(pdev);
err_enable:
	pci_disable_device(pdev);
	return dev;
}

void fairgv_pci_fini(struct fairgv_device *dev)
{
	struct pci_dev *pdev = dev->pdev;

	memunmap(dev->region);
	pci_iounmap(pdev, dev->regs);
	pci_release_regions(pdev);
	pci_disable_device(pdev);
}

void fairgv_pci_ring(struct fairgv_device *dev, u32 vector)
{
	iowrite32(FGV_REGION_HOST << 16 | vector, dev->regs + REG_DOORBELL);
}
