// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The guest's side of FairGV: hands the windows of the VM's region, which an ivshmem
 * device shows, out to programs. What happens in a window is between the program and the
 * host; no request passes through here.
 */
#include "internal.h"

#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/module.h>

/* There is one /dev/fairgv. */
static unsigned long claimed;

static void release(struct kref *kref)
{
	struct fairgv_device *dev = container_of(kref, struct fairgv_device, kref);

	cleanup_srcu_struct(&dev->srcu);
	kvfree(dev);
}

void fairgv_device_put(struct fairgv_device *dev)
{
	kref_put(&dev->kref, release);
}

static int start(struct fairgv_device *dev)
{
	int err;

	fairgv_slot_init(dev);
	err = fairgv_irq_init(dev);
	if (err)
		return err;
	/* Left over by a kernel before this one, say: nobody here uses them. */
	fairgv_slot_close_all(dev);
	fairgv_slot_look_for_host(dev);
	err = fairgv_file_init(dev);
	if (err)
		goto err_irq;
	return 0;

err_irq:
	fairgv_irq_fini(dev);
	return err;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct fairgv_device *dev;
	int err;

	dev = fairgv_pci_init(pdev);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = -ENODEV;
	if (test_and_set_bit(0, &claimed)) {
		dev_err(&pdev->dev, "this VM has a FairGV region already\n");
		goto err_pci;
	}
	err = start(dev);
	if (err)
		goto err_claim;
	pci_set_drvdata(pdev, dev);
	dev_info(&pdev->dev, "%u windows of %llu MiB\n", dev->window_count,
		 dev->window_len >> 20);
	return 0;

err_claim:
	clear_bit(0, &claimed);
err_pci:
	fairgv_pci_fini(dev);
	fairgv_device_put(dev);
	return err;
}

/* No new files; nobody inside; no mapping left; and only then are the windows closed. */
static void remove(struct pci_dev *pdev)
{
	struct fairgv_device *dev = pci_get_drvdata(pdev);

	fairgv_file_fini(dev);
	WRITE_ONCE(dev->removed, true);
	synchronize_srcu(&dev->srcu);
	fairgv_file_end(dev);
	fairgv_slot_close_all(dev);
	fairgv_irq_fini(dev);
	fairgv_pci_fini(dev);
	clear_bit(0, &claimed);
	fairgv_device_put(dev);
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver fairgv_driver = {
	.name = "fairgv",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
};
module_pci_driver(fairgv_driver);

unsigned int fairgv_user_windows;
module_param_named(user_windows, fairgv_user_windows, uint, 0644);
MODULE_PARM_DESC(user_windows,
		 "windows that one user other than root may have at once (0: all but one)");

MODULE_DESCRIPTION("FairGV guest: windows of a shared GPU for programs");
MODULE_AUTHOR("The FairGV authors");
MODULE_LICENSE("Dual MIT/GPL");
