// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What is told of a device's slow paths: to programs by an ioctl (file.c), to everybody in
 * /sys/class/misc/fairgv/.
 */
#include "internal.h"

#include <linux/device.h>
#include <linux/sysfs.h>

void fairgv_counts_read(struct fairgv_device *dev, struct fairgv_counts *counts)
{
	*counts = (struct fairgv_counts){
		.doorbells = atomic64_read(&dev->doorbells),
		.interrupts = atomic64_read(&dev->interrupts),
		.control = atomic64_read(&dev->control),
		.writeback = dev->writeback,
	};
}

/* The files are there as long as the device is: nobody reads one once it is deregistered. */
static struct fairgv_counts counts_of(struct device *device)
{
	struct miscdevice *misc = dev_get_drvdata(device);
	struct fairgv_counts counts;

	fairgv_counts_read(container_of(misc, struct fairgv_device, misc), &counts);
	return counts;
}

static ssize_t doorbells_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", counts_of(device).doorbells);
}
static DEVICE_ATTR_RO(doorbells);

static ssize_t interrupts_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", counts_of(device).interrupts);
}
static DEVICE_ATTR_RO(interrupts);

static ssize_t control_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", counts_of(device).control);
}
static DEVICE_ATTR_RO(control);

static ssize_t writeback_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", counts_of(device).writeback);
}
static DEVICE_ATTR_RO(writeback);

static struct attribute *fairgv_counts_attrs[] = {
	&dev_attr_doorbells.attr,
	&dev_attr_interrupts.attr,
	&dev_attr_control.attr,
	&dev_attr_writeback.attr,
	NULL,
};

static const struct attribute_group fairgv_counts_group = {
	.attrs = fairgv_counts_attrs,
};

const struct attribute_group *fairgv_counts_groups[] = {
	&fairgv_counts_group,
	NULL,
};
