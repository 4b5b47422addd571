// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The host's doorbells: vector 0 says that a slot has changed, or that the host has gone,
 * vector 1 + w wakes window w.
 */
#include "internal.h"

#include <linux/interrupt.h>

static irqreturn_t slot_changed(int irq, void *arg)
{
	struct fairgv_device *dev = arg;
	u32 i;

	atomic64_inc(&dev->control);
	fairgv_slot_look_for_host(dev);
	wake_up_all(&dev->wait);
	for (i = 0; i < dev->window_count; i++)
		if (fairgv_slot_check(&dev->windows[i]))
			fairgv_bell_signal(&dev->windows[i]);
	return IRQ_HANDLED;
}

static irqreturn_t window_woken(int irq, void *arg)
{
	struct fairgv_window *window = arg;

	atomic64_inc(&window->dev->interrupts);
	fairgv_bell_signal(window);
	return IRQ_HANDLED;
}

static void *cookie(struct fairgv_device *dev, u32 vector)
{
	return vector ? (void *)&dev->windows[vector - 1] : dev;
}

static void free_first(struct fairgv_device *dev, u32 count)
{
	while (count--)
		free_irq(pci_irq_vector(dev->pdev, count), cookie(dev, count));
	pci_free_irq_vectors(dev->pdev);
}

int fairgv_irq_init(struct fairgv_device *dev)
{
	u32 count = 1 + dev->window_count, i;
	int err;

	err = pci_alloc_irq_vectors(dev->pdev, count, count, PCI_IRQ_MSIX);
	if (err < 0) {
		dev_err(&dev->pdev->dev, "not used: %u windows want vectors=%u (%d)\n",
			dev->window_count, count, err);
		return -ENODEV;
	}
	for (i = 0; i < count; i++) {
		err = request_irq(pci_irq_vector(dev->pdev, i), i ? window_woken : slot_changed, 0,
				  "fairgv", cookie(dev, i));
		if (err) {
			free_first(dev, i);
			return err;
		}
	}
	return 0;
}

void fairgv_irq_fini(struct fairgv_device *dev)
{
	free_first(dev, 1 + dev->window_count);
}
