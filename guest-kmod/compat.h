/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What differs between the kernels that this builds for, Linux 6.1 and later.
 */
#ifndef FAIRGV_COMPAT_H
#define FAIRGV_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/version.h>

static inline void fairgv_compat_eventfd_signal(struct eventfd_ctx *ctx)
{
#if KERNEL_VERSION(6, 8, 0) > LINUX_VERSION_CODE
	eventfd_signal(ctx, 1);
#else
	eventfd_signal(ctx);
#endif
}

static inline void fairgv_compat_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
	vma->vm_flags |= flags;
#else
	vm_flags_set(vma, flags);
#endif
}

#endif
