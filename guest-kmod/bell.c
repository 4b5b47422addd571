// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The eventfds that a window's threads sleep on. The host wakes a window, not a thread,
 * so all of them are signalled; a process with nothing to read sleeps again.
 */
#include "compat.h"
#include "internal.h"

int fairgv_bell_add(struct fairgv_window *window, u32 lane, int eventfd)
{
	struct eventfd_ctx *bell = eventfd_ctx_fdget(eventfd);
	int err = 0;

	if (IS_ERR(bell))
		return PTR_ERR(bell);
	spin_lock_irq(&window->bells_lock);
	if (window->bells[lane])
		err = -EBUSY;
	else
		window->bells[lane] = bell;
	window->bells_used = max(window->bells_used, lane + 1);
	spin_unlock_irq(&window->bells_lock);
	if (err)
		eventfd_ctx_put(bell);
	return err;
}

void fairgv_bell_drop(struct fairgv_window *window)
{
	u32 i;

	spin_lock_irq(&window->bells_lock);
	for (i = 0; i < window->bells_used; i++) {
		if (window->bells[i])
			eventfd_ctx_put(window->bells[i]);
		window->bells[i] = NULL;
	}
	window->bells_used = 0;
	spin_unlock_irq(&window->bells_lock);
}

void fairgv_bell_signal(struct fairgv_window *window)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&window->bells_lock, flags);
	for (i = 0; i < window->bells_used; i++)
		if (window->bells[i])
			fairgv_compat_eventfd_signal(window->bells[i]);
	spin_unlock_irqrestore(&window->bells_lock, flags);
}
