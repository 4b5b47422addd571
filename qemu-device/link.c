/*
 * The handshake; see link.h. The process serves a guest that may have taken it over, so it is
 * believed no more than that guest.
 */
#include "qemu-device/link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "backend/fds.h"
#include "qemu-device/slots.h"

/* Lane messages that are not acknowledged yet: both sides' sockets have room for these. */
#define LANES_AHEAD 16
/* Messages that are looked through for the one that says why a session ends. */
#define DRAINED_MAX 64

/* The one eventfd of the window wakes all of its lanes' threads. */
static int send_lanes(struct fgv_slots_entry *entry)
{
	const struct fgv_region *region = entry->slots->scope.region;
	int bell_fd = region->bells[FGV_REGION_GUEST][1 + entry->window];

	while (entry->lanes_sent < region->layout.lanes &&
	       entry->lanes_sent - entry->lanes_attached < LANES_AHEAD) {
		struct fgv_msg_lane message = {.type = FGV_MSG_LANE, .lane = entry->lanes_sent};
		int ret = fgv_fds_send(entry->link.fd, &message, sizeof(message), &bell_fd, 1);

		/* An acknowledgement will come, and then there is room again. */
		if (ret && entry->lanes_sent > entry->lanes_attached)
			return 0;
		if (ret)
			return ret;
		entry->lanes_sent++;
	}
	return 0;
}

/* Any message of the process's. */
union message {
	struct fgv_msg_welcome welcome;
	struct fgv_msg_lane lane;
	struct fgv_msg_end end;
};

/*
 * Its length, 0 or less as of recv(). The kernel closes descriptors that come with it, as there
 * is no room for them. What says why the session ends is kept, the first of them.
 */
static ssize_t receive(struct fgv_slots_entry *entry, union message *message)
{
	ssize_t len = recv(entry->link.fd, message, sizeof(*message), MSG_DONTWAIT | MSG_TRUNC);

	if (len == sizeof(message->end) && message->end.type == FGV_MSG_END && !*entry->end) {
		memcpy(entry->end, message->end.text, sizeof(entry->end));
		entry->end[sizeof(entry->end) - 1] = '\0';
	}
	return len;
}

void fgv_link_drain(struct fgv_slots_entry *entry)
{
	union message message;

	for (int i = 0; i < DRAINED_MAX && !*entry->end; i++) {
		/* The other end's may be an error of this one, once. */
		if (receive(entry, &message) <= 0 && errno != ECONNRESET)
			break;
	}
}

static int read_welcome(struct fgv_slots_entry *entry)
{
	struct fgv_msg_welcome *welcome = &entry->welcome;
	union message message = {0};
	ssize_t len = receive(entry, &message);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return FGV_LINK_WAITING;
	*welcome = message.welcome;
	if (len != sizeof(*welcome) || welcome->type != FGV_MSG_WELCOME ||
	    welcome->version != FGV_WIRE_VERSION)
		return -EPROTO;
	welcome->vm[sizeof(welcome->vm) - 1] = '\0';
	welcome->text[sizeof(welcome->text) - 1] = '\0';
	if (welcome->status)
		return FGV_LINK_REFUSED;
	entry->is_welcome = true;
	return send_lanes(entry);
}

static int read_lane(struct fgv_slots_entry *entry)
{
	union message message;
	const struct fgv_msg_lane *lane = &message.lane;
	ssize_t len = receive(entry, &message);
	int ret;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return FGV_LINK_WAITING;
	if (len != sizeof(*lane) || lane->type != FGV_MSG_LANE || lane->status ||
	    lane->lane != entry->lanes_attached || lane->lane >= entry->lanes_sent)
		return -EPROTO;
	entry->lanes_attached++;
	ret = send_lanes(entry);
	if (ret)
		return ret;
	return entry->lanes_attached == entry->slots->scope.region->layout.lanes ? FGV_LINK_READY
										 : FGV_LINK_WAITING;
}

int fgv_link_read(struct fgv_slots_entry *entry)
{
	return entry->is_welcome ? read_lane(entry) : read_welcome(entry);
}
