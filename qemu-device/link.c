/*
 * The handshake; see link.h. The process serves a guest that may have taken it over, so it is
 * believed no more than that guest.
 */
#include "qemu-device/link.h"

#include <errno.h>
#include <sys/socket.h>
#include "backend/fds.h"
#include "qemu-device/slots.h"

/* Lane messages that are not acknowledged yet: both sides' sockets have room for these. */
#define LANES_AHEAD 16

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

static int read_welcome(struct fgv_slots_entry *entry)
{
	struct fgv_msg_welcome *welcome = &entry->welcome;
	/* The kernel closes descriptors that come with it, as there is no room for them. */
	ssize_t len = recv(entry->link.fd, welcome, sizeof(*welcome), MSG_DONTWAIT | MSG_TRUNC);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return FGV_LINK_WAITING;
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
	struct fgv_msg_lane message;
	ssize_t len = recv(entry->link.fd, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
	int ret;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return FGV_LINK_WAITING;
	if (len != sizeof(message) || message.type != FGV_MSG_LANE || message.status ||
	    message.lane != entry->lanes_attached || message.lane >= entry->lanes_sent)
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
