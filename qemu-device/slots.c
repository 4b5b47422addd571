/*
 * Slots; see slots.h. The handshake with a session's process is in link.c.
 */
#define _GNU_SOURCE
#include "qemu-device/slots.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend/hello.h"
#include "backend/view.h"
#include "common/util.h"
#include "qemu-device/link.h"
#include "shmring/barrier.h"
#include "shmring/park.h"

/* A private copy of the guest's half of a slot. */
struct request {
	uint32_t what; /* enum fgv_region_request */
	uint32_t serial;
	struct fgv_msg_hello hello;
};

static const char *vm_name(const struct fgv_slots *slots)
{
	return slots->scope.vm->config->name;
}

static void complain(struct fgv_slots_entry *entry, const char *what, const char *why)
{
	struct fgv_slots *slots = entry->slots;
	char more[2 * FGV_NAME_MAX];

	snprintf(more, sizeof(more),
		 "vm %s: refused and ignored requests of its guest:", vm_name(slots));
	if (fgv_log_may(&slots->complaints, more))
		fgv_warning_of(FGV_LOG_VM(vm_name(slots)), "%s of its guest, window %u: %s", what,
			       entry->window, why);
}

/* --- Telling the guest ------------------------------------------------------- */

static void ring(struct fgv_slots *slots, uint32_t vector)
{
	struct fgv_slots_scope *scope = &slots->scope;

	if (slots->blocked ||
	    fgv_bell_ring(scope->bell, scope->region->bells[FGV_REGION_GUEST][vector]))
		return;
	slots->blocked = true;
	fgv_warning_of(FGV_LOG_VM(vm_name(slots)),
		       "QEMU has made a doorbell block; it loses its region");
	shutdown(scope->qemu_fd, SHUT_RDWR);
}

static void ring_if_changed(struct fgv_slots *slots)
{
	if (slots->changed)
		ring(slots, 0);
	slots->changed = false;
}

static void show_state(struct fgv_slots_entry *entry, enum fgv_region_state state)
{
	struct fgv_region_slot *slot = fgv_region_slot(entry->slots->scope.region, entry->window);

	fgv_store_release(&slot->state, state);
	entry->slots->changed = true;
}

/* The request in hand is answered. Pairs with the guest's acquire of the answer. */
static void answer(struct fgv_slots_entry *entry, enum fgv_region_state state)
{
	struct fgv_region_slot *slot = fgv_region_slot(entry->slots->scope.region, entry->window);

	show_state(entry, state);
	fgv_store_release(&slot->answer, entry->serial);
}

static void welcome(struct fgv_slots_entry *entry, const struct fgv_msg_welcome *welcome,
		    enum fgv_region_state state)
{
	fgv_region_slot(entry->slots->scope.region, entry->window)->welcome = *welcome;
	answer(entry, state);
}

/* --- A slot's life ----------------------------------------------------------- */

static void refuse(struct fgv_slots_entry *entry, CUresult status, const char *text)
{
	struct fgv_msg_welcome refusal;

	fgv_hello_refuse(&refusal, status, text);
	entry->phase = FGV_PHASE_OVER;
	welcome(entry, &refusal, FGV_SLOT_REFUSED);
	complain(entry, "refused a program", text);
}

static void hang_up(struct fgv_slots_entry *entry)
{
	if (entry->link.fd < 0)
		return;
	fgv_loop_remove(entry->slots->scope.loop, &entry->link);
	close(entry->link.fd);
	entry->link.fd = -1;
}

static void show_reason(struct fgv_slots_entry *entry)
{
	struct fgv_region_slot *slot = fgv_region_slot(entry->slots->scope.region, entry->window);

	memset(slot->welcome.text, 0, sizeof(slot->welcome.text));
	memcpy(slot->welcome.text, entry->end, strnlen(entry->end, sizeof(entry->end)));
}

/* The session has ended, or is about to: by itself, or since the daemon does. */
static void end_session(struct fgv_slots_entry *entry)
{
	if (entry->link.fd >= 0)
		fgv_link_drain(entry);
	hang_up(entry);
	if (entry->phase == FGV_PHASE_STARTING) {
		refuse(entry, CUDA_ERROR_OPERATING_SYSTEM,
		       *entry->end ? entry->end
				   : "the session has ended before it began; the host's log says why");
	} else if (entry->phase == FGV_PHASE_READY) {
		entry->phase = FGV_PHASE_OVER;
		show_reason(entry);
		show_state(entry, FGV_SLOT_GONE);
		ring(entry->slots, 1 + entry->window);
	}
}

static void link_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_slots_entry *entry = (struct fgv_slots_entry *)watch;
	int ret = fgv_link_read(entry);

	(void)events;
	if (ret == FGV_LINK_READY) {
		entry->phase = FGV_PHASE_READY;
		welcome(entry, &entry->welcome, FGV_SLOT_READY);
	} else if (ret == FGV_LINK_REFUSED) {
		hang_up(entry);
		refuse(entry, entry->welcome.status, entry->welcome.text);
	} else if (ret < 0) {
		end_session(entry);
	}
	ring_if_changed(entry->slots);
}

static CUresult start_session(struct fgv_slots_entry *entry, const struct fgv_msg_hello *hello,
			      int connection_fd, char *text, size_t text_len)
{
	const struct fgv_slots_scope *scope = &entry->slots->scope;
	struct fgv_client_window window = {
		.fd = scope->region->fd,
		.off = fgv_region_window_off(scope->region, entry->window),
		.doorbell_fd = scope->region->bells[FGV_REGION_HOST][1 + entry->window],
	};
	struct fgv_client client = {
		.fd = connection_fd,
		.uid = scope->uid,
		.pid = scope->pid,
		.guest_pid = hello->pid,
		.priority = hello->priority,
		.need = hello->need,
		.window = &window,
	};
	CUresult status;

	memcpy(client.program, hello->program, sizeof(client.program));
	status = fgv_sessions_start(scope->sessions, scope->vm, &client, text, text_len);
	if (status == CUDA_SUCCESS)
		entry->session = scope->sessions->last_number;
	return status;
}

/* Makes the link; the process's end of it, or a negative errno. */
static int make_link(struct fgv_slots_entry *entry)
{
	int pair[2];
	int ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	entry->link.fd = pair[0];
	ret = fgv_loop_add(entry->slots->scope.loop, &entry->link, EPOLLIN);
	if (!ret)
		return pair[1];
	entry->link.fd = -1;
	close(pair[0]);
	close(pair[1]);
	return ret;
}

static CUresult connect_session(struct fgv_slots_entry *entry, const struct fgv_msg_hello *hello,
				char *text, size_t text_len)
{
	int ret = fgv_region_format(entry->slots->scope.region, entry->window);
	CUresult status;

	if (!ret)
		ret = make_link(entry);
	if (ret < 0) {
		snprintf(text, text_len, "the session can't be started: %s", strerror(-ret));
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	status = start_session(entry, hello, ret, text, text_len);
	close(ret);
	if (status)
		hang_up(entry);
	return status;
}

/* The guest may be writing to its window at any time: this is written once, and never read. */
static CUresult show(struct fgv_slots_entry *entry, char *text, size_t text_len)
{
	const struct fgv_slots_scope *scope = &entry->slots->scope;
	struct fgv_msg_view view;
	ssize_t written;

	/* The guest's module asks for the one GPU that there is in QEMU guests. */
	fgv_view_take(&view, scope->vm, scope->sessions, 0);
	written = pwrite(scope->region->fd, &view, sizeof(view),
			 (off_t)fgv_region_window_off(scope->region, entry->window));
	if (written == (ssize_t)sizeof(view))
		return CUDA_SUCCESS;
	snprintf(text, text_len, "there is no memory for the view");
	return CUDA_ERROR_OPERATING_SYSTEM;
}

/* Ready at once: it has a view, and no session. */
static void welcome_to_view(struct fgv_slots_entry *entry)
{
	struct fgv_msg_welcome shown = {
		.type = FGV_MSG_WELCOME,
		.version = FGV_WIRE_VERSION,
		.window_len = entry->slots->scope.region->layout.len,
	};

	snprintf(shown.vm, sizeof(shown.vm), "%s", vm_name(entry->slots));
	entry->phase = FGV_PHASE_SHOWN;
	entry->session = 0;
	welcome(entry, &shown, FGV_SLOT_READY);
}

static void open_to_look(struct fgv_slots_entry *entry)
{
	char text[256];
	CUresult status = show(entry, text, sizeof(text));

	if (status)
		refuse(entry, status, text);
	else
		welcome_to_view(entry);
}

static void open_slot(struct fgv_slots_entry *entry, const struct request *request)
{
	struct fgv_msg_hello hello = request->hello;
	char text[256];
	CUresult status;

	memset(hello.vm, 0, sizeof(hello.vm)); /* which VM it is is known */
	entry->serial = request->serial;
	entry->is_welcome = false;
	entry->end[0] = '\0';
	entry->lanes_sent = 0;
	entry->lanes_attached = 0;
	status = fgv_hello_check(&hello, sizeof(hello), text, sizeof(text));
	if (!status && hello.type == FGV_MSG_LOOK) {
		open_to_look(entry);
		return;
	}
	if (!status)
		status = connect_session(entry, &hello, text, sizeof(text));
	if (status)
		refuse(entry, status, text);
	else
		entry->phase = FGV_PHASE_STARTING;
}

/* Free again, if nothing uses the window any more. */
static void finish_closing(struct fgv_slots_entry *entry)
{
	const struct fgv_slots_scope *scope = &entry->slots->scope;
	int ret;

	if (fgv_sessions_has(scope->sessions, entry->session))
		return;
	ret = fgv_region_clean(scope->region, entry->window);
	if (ret) {
		fgv_error_of(FGV_LOG_VM(vm_name(entry->slots)), "window %u can't be cleaned: %s",
			     entry->window, strerror(-ret));
		return;
	}
	entry->phase = FGV_PHASE_FREE;
	answer(entry, FGV_SLOT_FREE);
}

static void close_slot(struct fgv_slots_entry *entry, uint32_t serial)
{
	entry->serial = serial;
	if (entry->phase == FGV_PHASE_FREE) {
		answer(entry, FGV_SLOT_FREE);
		return;
	}
	hang_up(entry);
	entry->phase = FGV_PHASE_CLOSING;
	finish_closing(entry);
}

/* --- The guest's requests ---------------------------------------------------- */

/* False: there is none but that which has been looked at. */
static bool take_request(struct fgv_slots_entry *entry, struct request *request)
{
	const struct fgv_region_slot *slot =
		fgv_region_slot(entry->slots->scope.region, entry->window);

	/* Pairs with the guest's release: what goes with the serial is there. */
	request->serial = fgv_load_acquire(&slot->serial);
	if (request->serial == entry->seen)
		return false;
	entry->seen = request->serial;
	request->what = __atomic_load_n(&slot->request, __ATOMIC_RELAXED);
	memcpy(&request->hello, &slot->hello, sizeof(request->hello));
	/* What is checked is the copy: nothing is read again. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

static void look_at(struct fgv_slots_entry *entry)
{
	struct request request;

	if (!take_request(entry, &request))
		return;
	if (request.what == FGV_SLOT_CLOSE)
		close_slot(entry, request.serial);
	else if (request.what != FGV_SLOT_OPEN)
		complain(entry, "ignored a request", "there is none such");
	else if (entry->phase != FGV_PHASE_FREE)
		complain(entry, "ignored a request", "open, but it is not free");
	else
		open_slot(entry, &request);
}

static void look(struct fgv_slots *slots)
{
	for (uint32_t w = 0; w < slots->scope.region->windows; w++)
		look_at(&slots->entries[w]);
	ring_if_changed(slots);
}

/* Whether the guest may be looked at now. Else it is when the period is over. */
static bool may_look(struct fgv_slots *slots)
{
	uint64_t now_ns = fgv_now_ns();

	if (now_ns - slots->period_ns >= FGV_SLOTS_PERIOD_MS * FGV_NS_PER_MS) {
		slots->period_ns = now_ns;
		slots->looks = 0;
	}
	if (slots->looks++ < FGV_SLOTS_LOOKS)
		return true;
	slots->look_again_ns = slots->period_ns + FGV_SLOTS_PERIOD_MS * FGV_NS_PER_MS;
	fgv_loop_change(slots->scope.loop, &slots->bell, 0);
	return false;
}

static void bell_ready(struct fgv_watch *watch, uint32_t events)
{
	struct fgv_slots *slots = (struct fgv_slots *)watch;

	(void)events;
	fgv_doorbell_clear(watch->fd);
	if (may_look(slots))
		look(slots);
}

uint64_t fgv_slots_deadline_ns(const struct fgv_slots *slots)
{
	return slots->look_again_ns;
}

void fgv_slots_tick(struct fgv_slots *slots)
{
	if (!slots->look_again_ns || fgv_now_ns() < slots->look_again_ns)
		return;
	slots->look_again_ns = 0;
	fgv_loop_change(slots->scope.loop, &slots->bell, EPOLLIN);
	look(slots);
}

/* --- All of them ------------------------------------------------------------- */

int fgv_slots_init(struct fgv_slots *slots, const struct fgv_slots_scope *scope)
{
	*slots = (struct fgv_slots){
		.bell = {.fd = scope->region->bells[FGV_REGION_HOST][0], .ready = bell_ready},
		.scope = *scope,
	};
	for (uint32_t w = 0; w < scope->region->windows; w++) {
		slots->entries[w] = (struct fgv_slots_entry){
			.link = {.fd = -1, .ready = link_ready},
			.slots = slots,
			.window = w,
		};
	}
	return fgv_loop_add(scope->loop, &slots->bell, EPOLLIN);
}

void fgv_slots_fini(struct fgv_slots *slots)
{
	for (uint32_t w = 0; w < slots->scope.region->windows; w++)
		end_session(&slots->entries[w]);
	fgv_region_leave((struct fgv_region_head *)slots->scope.region->base);
	ring(slots, 0);
	fgv_loop_remove(slots->scope.loop, &slots->bell);
}

void fgv_slots_reaped(struct fgv_slots *slots)
{
	for (uint32_t w = 0; w < slots->scope.region->windows; w++) {
		if (slots->entries[w].phase == FGV_PHASE_CLOSING)
			finish_closing(&slots->entries[w]);
	}
	ring_if_changed(slots);
}
