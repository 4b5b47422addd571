// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * How a window gets a session and loses it: requests in its slot, and the host's answers
 * (api/region.h). A window that is given back stays in the host's hands until the host
 * has said FREE, which is waited for only where that very window is needed.
 *
 * Locks: dev->lock for a window's owner and its requests; waiting is done without.
 */
#include "internal.h"

#include <linux/bitops.h>
#include <linux/cred.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

static_assert(sizeof(struct fgv_msg_welcome) == FAIRGV_WELCOME_LEN);
static_assert(FGV_END_TEXT_MAX == sizeof_field(struct fairgv_end, text));
static_assert(FGV_END_TEXT_MAX <= sizeof_field(struct fgv_msg_welcome, text));
static_assert(sizeof_field(struct fgv_msg_hello, program) == FAIRGV_PROGRAM_MAX);

void fairgv_slot_init(struct fairgv_device *dev)
{
	struct fgv_region_slot *slots = dev->region + FGV_REGION_SLOTS_OFF;
	u32 i;

	for (i = 0; i < dev->window_count; i++) {
		struct fairgv_window *window = &dev->windows[i];

		window->dev = dev;
		window->index = i;
		window->slot = &slots[i];
		window->serial = READ_ONCE(slots[i].serial);
		spin_lock_init(&window->bells_lock);
	}
}

static void post_locked(struct fairgv_window *window, enum fgv_region_request request)
{
	WRITE_ONCE(window->slot->request, request);
	/* Pairs with the host's acquire: it sees the request and what goes with it. */
	virt_store_release(&window->slot->serial, ++window->serial);
	atomic64_inc(&window->dev->control);
	fairgv_pci_ring(window->dev, 0);
}

static bool is_answered(struct fairgv_window *window)
{
	/* Pairs with the host's release: state and welcome are of this answer. */
	return virt_load_acquire(&window->slot->answer) == window->serial;
}

/* Between enter and leave. */
static bool host_has_gone(struct fairgv_device *dev)
{
	const struct fgv_region_head *head = dev->region;

	/* Pairs with the host's release: it does nothing more here. */
	return virt_load_acquire(&head->host_gone);
}

static bool is_free(struct fairgv_window *window)
{
	return is_answered(window) && READ_ONCE(window->slot->state) == FGV_SLOT_FREE;
}

/* Whether @uid has as many windows as a user may have, so that one is left for others. */
static bool has_enough_locked(struct fairgv_device *dev, kuid_t uid)
{
	u32 limit = READ_ONCE(fairgv_user_windows);
	u32 taken = 0;
	u32 i;

	if (uid_eq(uid, GLOBAL_ROOT_UID))
		return false;
	if (!limit)
		limit = max_t(u32, dev->window_count - 1, 1);
	for (i = 0; i < dev->window_count; i++)
		taken += dev->windows[i].taken && uid_eq(dev->windows[i].owner, uid);
	return taken >= limit;
}

/*
 * A free window, now @uid's. NULL while the host is about to free one, -EBUSY where all are in
 * use, -EDQUOT where @uid has enough.
 */
static struct fairgv_window *take_locked(struct fairgv_device *dev, kuid_t uid)
{
	struct fairgv_window *result = ERR_PTR(-EBUSY);
	u32 i;

	if (has_enough_locked(dev, uid))
		return ERR_PTR(-EDQUOT);
	for (i = 0; i < dev->window_count; i++) {
		struct fairgv_window *window = &dev->windows[i];

		if (window->taken)
			continue;
		if (is_free(window)) {
			window->taken = true;
			window->owner = uid;
			return window;
		}
		result = NULL;
	}
	return result;
}

static struct fairgv_window *take(struct fairgv_device *dev)
{
	struct fairgv_window *window;
	int idx;

	if (!fairgv_device_enter(dev, &idx))
		return ERR_PTR(-ENODEV);
	if (host_has_gone(dev)) {
		window = ERR_PTR(-EHOSTDOWN);
	} else {
		spin_lock(&dev->lock);
		window = take_locked(dev, current_uid());
		spin_unlock(&dev->lock);
	}
	fairgv_device_leave(dev, idx);
	return window;
}

static int ask(struct fairgv_window *window, const struct fairgv_open *open)
{
	struct fgv_msg_hello hello = {
		.type = open->flags & FAIRGV_OPEN_LOOK ? FGV_MSG_LOOK : FGV_MSG_HELLO,
		.version = open->wire_version,
		.hash = open->wire_hash,
		.pid = task_tgid_nr(current),
		.priority = (open->flags & FAIRGV_OPEN_PRIORITY_MASK) >> FAIRGV_OPEN_PRIORITY_SHIFT,
	};
	struct fairgv_device *dev = window->dev;
	int idx;

	strscpy_pad(hello.program, open->program, sizeof(hello.program));
	if (!fairgv_device_enter(dev, &idx))
		return -ENODEV;
	spin_lock(&dev->lock);
	window->slot->hello = hello;
	post_locked(window, FGV_SLOT_OPEN);
	spin_unlock(&dev->lock);
	fairgv_device_leave(dev, idx);
	return 0;
}

/* Also true where no answer will come. */
static bool has_answer(struct fairgv_window *window)
{
	bool answered = true;
	int idx;

	if (!fairgv_device_enter(window->dev, &idx))
		return true;
	answered = is_answered(window) || host_has_gone(window->dev);
	fairgv_device_leave(window->dev, idx);
	return answered;
}

/* 0 with a session, 1 without one; takes a copy of the host's welcome. */
static int read_answer(struct fairgv_window *window, struct fairgv_open *open)
{
	struct fgv_msg_welcome welcome;
	bool gone;
	u32 state;
	int idx;

	if (!fairgv_device_enter(window->dev, &idx))
		return -ENODEV;
	gone = host_has_gone(window->dev);
	state = READ_ONCE(window->slot->state);
	memcpy(&welcome, &window->slot->welcome, sizeof(welcome));
	fairgv_device_leave(window->dev, idx);
	if (gone)
		return -EHOSTDOWN;
	if (state != FGV_SLOT_READY && state != FGV_SLOT_REFUSED)
		return -EPIPE;
	memcpy(open->welcome, &welcome, sizeof(welcome));
	window->lanes = min_t(u32, welcome.lanes, FGV_LANES_MAX);
	return state == FGV_SLOT_REFUSED;
}

/* The time that is left, or -ETIMEDOUT or -EINTR. */
static long as_error(long left)
{
	return left > 0 ? left : left ? -EINTR : -ETIMEDOUT;
}

static int ask_and_wait(struct fairgv_window *window, struct fairgv_open *open, long left)
{
	int err = ask(window, open);

	if (err)
		return err;
	left = as_error(wait_event_killable_timeout(window->dev->wait, has_answer(window), left));
	return left < 0 ? left : read_answer(window, open);
}

int fairgv_slot_open(struct fairgv_device *dev, struct fairgv_open *open,
		     struct fairgv_window **result)
{
	long left = msecs_to_jiffies(open->timeout_ms);
	struct fairgv_window *window = NULL;
	int answer;

	left = as_error(wait_event_killable_timeout(dev->wait, (window = take(dev)), left));
	if (IS_ERR(window))
		return PTR_ERR(window);
	if (!window)
		return left;
	answer = ask_and_wait(window, open, left);
	if (answer) {
		fairgv_slot_close(window);
		return min(answer, 0);
	}
	open->window_len = dev->window_len;
	open->window = window->index;
	*result = window;
	return 0;
}

void fairgv_slot_close(struct fairgv_window *window)
{
	struct fairgv_device *dev = window->dev;
	int idx;

	if (!fairgv_device_enter(dev, &idx))
		return;
	spin_lock(&dev->lock);
	window->taken = false;
	post_locked(window, FGV_SLOT_CLOSE);
	spin_unlock(&dev->lock);
	fairgv_device_leave(dev, idx);
}

void fairgv_slot_close_all(struct fairgv_device *dev)
{
	u32 i;

	spin_lock(&dev->lock);
	for (i = 0; i < dev->window_count; i++)
		if (!is_free(&dev->windows[i]))
			post_locked(&dev->windows[i], FGV_SLOT_CLOSE);
	spin_unlock(&dev->lock);
}

int fairgv_slot_check(struct fairgv_window *window)
{
	int idx, err = 0;

	if (!fairgv_device_enter(window->dev, &idx))
		return -ENODEV;
	if (host_has_gone(window->dev) || READ_ONCE(window->slot->state) != FGV_SLOT_READY)
		err = -EPIPE;
	fairgv_device_leave(window->dev, idx);
	return err;
}

int fairgv_slot_end(struct fairgv_window *window, struct fairgv_end *end)
{
	const struct fgv_region_slot *slot = window->slot;
	int idx, err = 0;

	if (!fairgv_device_enter(window->dev, &idx))
		return -ENODEV;
	/* Pairs with the host's release: the text is there. */
	if (virt_load_acquire(&slot->state) == FGV_SLOT_GONE)
		memcpy(end->text, slot->welcome.text, sizeof(end->text));
	else
		err = -ENODATA;
	fairgv_device_leave(window->dev, idx);
	if (!err && !end->text[0])
		err = -ENODATA;
	end->text[sizeof(end->text) - 1] = '\0';
	return err;
}

void fairgv_slot_look_for_host(struct fairgv_device *dev)
{
	if (host_has_gone(dev) && !test_and_set_bit(0, &dev->gone_said))
		dev_warn(&dev->pdev->dev,
			 "the host has gone: no program has a GPU until the device is replaced\n");
}
