#define _GNU_SOURCE
#include "tests/fuzz/guest_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "api/gpu_wire.h"
#include "api/shape.h"
#include "common/util.h"
#include "frontend/client/lane.h"
#include "frontend/client/session.h"
#include "frontend/client/transport.h"
#include "frontend/cuda/context/device.h"
#include "shmring/lanes.h"
#include "shmring/park.h"
#include "shmring/spin.h"
#include "tests/unit/frontend/client/test_client_h200.h"

#define WINDOW_LEN (8ull << 20)
#define LANES	   4
#define PARAMS	   3

/* How far from a good host's a reply is. */
enum mode { TAME, CHANGED, WILD, FAILED, ODD };

struct link {
	struct fgv_window window;
	int fd;
	struct fgv_lanes *lanes;
	uint32_t numbers[FGV_STAGING_LOANS]; /* of the loans that came last */
};

static struct {
	struct link links[GUEST_DEVICES];
	unsigned greeted;
	struct slots_input *input; /* NULL: the host is a good one */
	uint32_t handles;
	uint64_t next_address;
} host;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static uint8_t draw(void)
{
	return host.input ? slots_draw(host.input) : 0;
}

static uint64_t draw_raw(size_t len)
{
	uint64_t value = 0;

	if (host.input)
		slots_draw_bytes(host.input, &value, len);
	return value;
}

/* Values at which something ends, and any. */
static uint64_t draw_wild(void)
{
	uint8_t how = draw();

	switch (how % 8) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - how / 8;
	case 2:
		return (1ull << 31) - 16 + how / 8;
	case 3:
		return (1ull << 32) - 16 + how / 8;
	case 4:
		return 1ull << (how / 8 * 2);
	case 5:
		return GUEST_VA_BASE + draw_raw(2) * 256;
	case 6:
		return how / 8;
	default:
		return draw_raw(8);
	}
}

/* --- The transport ------------------------------------------------------------------------ */

static CUresult attach(struct fgv_client *client, uint32_t lane, int doorbell)
{
	(void)doorbell;
	must(!fgv_lanes_attach(host.links[client->device].lanes, lane, -1));
	return CUDA_SUCCESS;
}

static bool why(struct fgv_client *client, char text[FGV_END_TEXT_MAX])
{
	(void)client, (void)text;
	return false;
}

static const struct fgv_transport transport = {.attach = attach, .why = why};

/* As connect.c leaves it. */
static CUresult connect_next(struct fgv_client *client)
{
	struct link *link = &host.links[host.greeted];
	struct fgv_window *window = &client->window;

	must(host.greeted++ < GUEST_DEVICES);
	must(!fgv_window_layout(&link->window, WINDOW_LEN, LANES));
	link->fd = fgv_window_create(&link->window);
	must(link->fd >= 0 && !fgv_window_map(&link->window, link->fd));
	link->lanes = fgv_lanes_create(&link->window);
	must(link->lanes != NULL);
	client->transport = &transport;
	*window = link->window;
	must(!fgv_window_map(window, link->fd));
	client->arena = fgv_arena_create(window->arena_off + window->staging_len,
					 window->arena_len - window->staging_len);
	must(client->arena != NULL);
	client->window_fd = link->fd;
	client->connection = client->doorbell = fgv_doorbell_create();
	must(client->doorbell >= 0);
	return CUDA_SUCCESS;
}

CUresult __wrap_fgv_connect(struct fgv_client *client, uint32_t *parts, char *text, size_t len);
CUresult __wrap_fgv_connect(struct fgv_client *client, uint32_t *parts, char *text, size_t len)
{
	(void)text, (void)len;
	*parts = GUEST_DEVICES - 1;
	return connect_next(client);
}

CUresult __wrap_fgv_connect_part(const struct fgv_client *first, struct fgv_client *client,
				 char *text, size_t len);
CUresult __wrap_fgv_connect_part(const struct fgv_client *first, struct fgv_client *client,
				 char *text, size_t len)
{
	(void)first, (void)text, (void)len;
	return connect_next(client);
}

/* --- What it writes into the window --------------------------------------------------------- */

static void describe_device(uint8_t *to, uint64_t len)
{
	struct fgv_device_info info = {
		.memory_bytes = GUEST_VA_LEN,
		.va_base = GUEST_VA_BASE,
		.va_len = GUEST_VA_LEN,
		.devices = GUEST_DEVICES,
		.driver_version = 13000,
		.name = "device",
		.pci_bus_id = "0000:06:00.0",
	};

	memcpy(info.attributes, h200_attributes, sizeof(h200_attributes));
	memset(info.attribute_known, 0xff, sizeof(info.attribute_known));
	memcpy(to, &info, fgv_min_u64(len, sizeof(info)));
}

/* PARAMS parameters of 8 bytes each; how long that is. */
static uint32_t describe_kernel(uint8_t *to, uint64_t room)
{
	struct fgv_function_info info = {.param_count = PARAMS, .param_bytes = 8 * PARAMS};
	uint32_t words[2 * PARAMS] = {8, 8, 8, 0, 8, 16};

	info.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
	info.attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 8;
	info.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
	if (room < sizeof(info) + sizeof(words))
		return 0;
	memcpy(to, &info, sizeof(info));
	memcpy(to + sizeof(info), words, sizeof(words));
	return sizeof(info) + sizeof(words);
}

/* The kernels "a" and "b", or managed variables of these names; how many bytes they are. */
static uint64_t describe_module(uint8_t *to, uint64_t room)
{
	uint64_t at = 0;

	for (char name = 'a'; name <= 'b' && room >= 512; name++) {
		struct fgv_kernel_record record = {.function = ++host.handles, .name_len = 2};

		record.info_len = describe_kernel(to + at + sizeof(record), room - at);
		record.len = (uint32_t)fgv_align_up(sizeof(record) + record.info_len + 2, 8);
		memcpy(to + at, &record, sizeof(record));
		memcpy(to + at + sizeof(record) + record.info_len, (char[2]){name, '\0'}, 2);
		at += record.len;
	}
	return at;
}

static uint64_t list_variables(uint8_t *to, uint64_t room)
{
	uint64_t size = 64, at = 0;

	for (char name = 'm'; name <= 'n' && room >= 64; name++) {
		memcpy(to + at, &size, sizeof(size));
		memcpy(to + at + sizeof(size), (char[2]){name, '\0'}, 2);
		at += sizeof(size) + 2;
	}
	return at;
}

/* What a good host writes into @sink; how long that is. */
static uint64_t write_good(uint16_t op, const struct fgv_shape_field *field, uint8_t *to,
			   uint64_t len, bool is_list)
{
	switch (op) {
	case FGV_OP_DEVICE_INFO:
		describe_device(to, len);
		return len;
	case FGV_OP_FUNCTION_GET:
		return describe_kernel(to, len);
	case FGV_OP_MODULE_LOAD:
	case FGV_OP_MODULE_LOAD_KNOWN:
		return is_list ? list_variables(to, len) : describe_module(to, len);
	case FGV_OP_MODULE_MANAGED:
		return list_variables(to, len);
	case FGV_OP_MODULE_KERNELS:
		memcpy(to, "a\0b", fgv_min_u64(len, 4));
		return 4;
	default:
		if (host.input && len)
			slots_draw_bytes(host.input, to, fgv_min_u64(len, draw()));
		return strcmp(field->name, "linked") ? len : 64;
	}
}

/* Some of it otherwise: bytes here and there, mostly in front. */
static void change(uint8_t *to, uint64_t len)
{
	for (unsigned count = draw() % 4 + 1u; count && len; count--) {
		uint64_t at = draw_raw(len > 4096 ? 2 : 1) * (draw() % 2 ? 1 : 4) % len;
		uint64_t value = draw_wild();
		uint64_t bytes = 1ull << draw() % 4;

		memcpy(to + at, &value, fgv_min_u64(bytes, len - at));
	}
}

/* --- Replies -------------------------------------------------------------------------------- */

struct answer {
	uint16_t op;
	enum mode mode;
	bool is_list;	  /* of managed variables, where a module was to be loaded */
	uint64_t written; /* into the sink */
	uint8_t data[FGV_SLOT_INLINE];
};

static void write_sinks(const struct link *link, struct answer *answer, const uint8_t *message)
{
	const struct fgv_shape *shape = &fgv_shapes[answer->op];

	for (unsigned i = 0; i < shape->in_count; i++) {
		const struct fgv_shape_field *field = &shape->ins[i];
		uint64_t span[2];
		uint8_t *to;

		if (field->form != FGV_SHAPE_SINK)
			continue;
		memcpy(span, message + field->offset, sizeof(span));
		to = fgv_window_resolve(&link->window, span[0], span[1]);
		must(to != NULL);
		answer->written = write_good(answer->op, field, to, span[1], answer->is_list);
		if (answer->mode != TAME)
			change(to, span[1]);
	}
}

static uint64_t good_value(const struct answer *answer, const struct fgv_shape_field *field)
{
	if (field->form == FGV_SHAPE_HANDLE || field->form == FGV_SHAPE_OPTIONAL)
		return answer->is_list ? 0 : ++host.handles;
	if (!strcmp(field->name, "address"))
		return host.next_address += 1 << 16;
	if (!strcmp(field->name, "bytes") || !strcmp(field->name, "info_len") ||
	    !strcmp(field->name, "len"))
		return answer->op == FGV_OP_MEMORY_GRANULARITY ? 4096 : answer->written;
	if (!strcmp(field->name, "kernels"))
		return answer->is_list ? FGV_KERNELS_UNKNOWN : 2;
	if (!strcmp(field->name, "size") || !strcmp(field->name, "number"))
		return 64;
	if (!strcmp(field->name, "refused") || !strcmp(field->name, "known"))
		return 0;
	return draw();
}

static void write_outs(struct answer *answer)
{
	const struct fgv_shape *shape = &fgv_shapes[answer->op];

	for (unsigned i = 0; i < shape->out_count; i++) {
		const struct fgv_shape_field *field = &shape->outs[i];
		size_t len = field->form == FGV_SHAPE_WORD ? 8 : 4;

		for (unsigned k = 0; k < field->count; k++) {
			uint64_t value =
				answer->mode == WILD ? draw_wild() : good_value(answer, field);

			memcpy(answer->data + field->offset + k * len, &value, len);
		}
	}
}

static void send_reply(const struct link *link, uint32_t lane, uint32_t call, struct answer *answer)
{
	struct fgv_reply reply = {.op = answer->op,
				  .call = call,
				  .data = answer->data,
				  .len = fgv_op_infos[answer->op].reply_len};

	if (answer->mode == FAILED) {
		reply.status = draw_raw(2) % 1000;
		reply.len = 0;
	} else if (answer->mode == ODD) {
		reply.len = draw() % (FGV_SLOT_INLINE + 1);
		reply.call += draw() % 8 == 7;
		reply.status = draw() % 8 == 7 ? draw_raw(8) : 0;
	}
	fgv_lanes_reply(link->lanes, lane, &reply);
}

/* Tells of what has been lent; not always. */
static void give_back(struct link *link, uint16_t op, const uint8_t *message)
{
	struct fgv_copy_in_bulk_request row;
	struct fgv_box_in_bulk_request box;
	uint32_t loan, number;

	if (op == FGV_OP_COPY_IN_BULK) {
		memcpy(&row, message, sizeof(row));
		loan = row.loan, number = row.number;
	} else if (op == FGV_OP_BOX_IN_BULK) {
		memcpy(&box, message, sizeof(box));
		loan = box.loan, number = box.number;
	} else {
		return;
	}
	must(loan < FGV_STAGING_LOANS);
	link->numbers[loan] = number;
	if (draw() < 0xf0)
		__atomic_store_n(&fgv_window_head(&link->window)->staging_done[loan], number,
				 __ATOMIC_RELEASE);
}

static enum mode draw_mode(void)
{
	uint8_t how = draw() % 32;

	if (how < 16)
		return TAME;
	return how == 31 ? ODD : how >= 28 ? FAILED : how >= 22 ? WILD : CHANGED;
}

static void serve(struct link *link, uint32_t lane, const struct fgv_slot *slot)
{
	static uint8_t message[FGV_MESSAGE_MAX];
	struct answer answer = {.op = slot->op};
	const void *from = slot->data;

	/* It has written over this itself, else. */
	if (slot->op > FGV_OP_MAX || slot->len > sizeof(message) ||
	    slot->len < fgv_op_infos[slot->op].request_len)
		from = NULL;
	else if (slot->len > FGV_SLOT_INLINE)
		from = fgv_window_resolve(&link->window, slot->heap_off, slot->len);
	if (from)
		memcpy(message, from, slot->len);
	fgv_lanes_release(link->lanes, lane);
	if (!from)
		return;
	give_back(link, slot->op, message);
	if (!fgv_op_infos[slot->op].call)
		return;
	answer.mode = draw_mode();
	answer.is_list = (slot->op == FGV_OP_MODULE_LOAD || slot->op == FGV_OP_MODULE_LOAD_KNOWN) &&
			 draw() % 4 == 3;
	write_sinks(link, &answer, message);
	write_outs(&answer);
	if (answer.mode == CHANGED)
		change(answer.data, fgv_op_infos[slot->op].reply_len);
	send_reply(link, lane, slot->call, &answer);
}

/* One request of what is there; false: there is none. */
static bool take_turn(void)
{
	for (unsigned i = 0; i < host.greeted; i++) {
		struct link *link = &host.links[i];
		const struct fgv_slot *slot;
		struct fgv_slot copy;
		uint32_t lane;

		slot = fgv_lanes_next(link->lanes, &lane);
		if (!slot)
			continue;
		copy = *slot;
		serve(link, lane, &copy);
		return true;
	}
	return false;
}

bool __wrap_fgv_spin_again(struct fgv_spin *spin);
bool __wrap_fgv_spin_again(struct fgv_spin *spin)
{
	(void)spin;
	return take_turn();
}

bool __wrap_fgv_spin_longer(const struct fgv_spin *spin);
bool __wrap_fgv_spin_longer(const struct fgv_spin *spin)
{
	(void)spin;
	return false;
}

int __wrap_fgv_doorbell_wait(int fd, int hangup_fd, int64_t timeout_ns);
int __wrap_fgv_doorbell_wait(int fd, int hangup_fd, int64_t timeout_ns)
{
	(void)fd, (void)hangup_fd, (void)timeout_ns;
	return take_turn() ? 1 : -ECONNRESET;
}

/* --- What the target asks for --------------------------------------------------------------- */

void guest_host_begin(struct slots_input *input)
{
	host.input = input;
	host.next_address = GUEST_VA_BASE;
}

static void restart_lane(const struct fgv_lane *of, void *unused)
{
	struct fgv_lane *lane = (struct fgv_lane *)of;
	const struct fgv_window *window = &lane->client->window;

	(void)unused;
	fgv_ring_attach(&lane->requests, fgv_window_requests(window, lane->index),
			FGV_REQUEST_SLOTS, FGV_RING_START);
	fgv_ring_attach(&lane->replies, fgv_window_replies(window, lane->index), FGV_REPLY_SLOTS,
			FGV_RING_START);
	fgv_heap_init(&lane->heap,
		      window->lanes_off + (uint64_t)lane->index * FGV_LANE_BYTES + FGV_LANE_HEAP,
		      FGV_LANE_HEAP_LEN);
	lane->reclaimed = FGV_RING_START;
	lane->open = NULL;
	lane->refused = CUDA_SUCCESS;
	must(!fgv_lanes_attach(host.links[lane->client->device].lanes, lane->index, -1));
}

static void revive_link(struct link *link, struct fgv_client *client)
{
	struct fgv_window *window = &link->window;
	struct fgv_window_head *head = fgv_window_head(window);

	memset(window->base, 0, window->arena_off);
	must(!fgv_window_format(window, link->fd, 0));
	for (unsigned i = 0; i < FGV_STAGING_LOANS; i++)
		head->staging_done[i] = link->numbers[i];
	fgv_lanes_destroy(link->lanes);
	link->lanes = fgv_lanes_create(window);
	must(link->lanes != NULL);
	client->ended = client->lost = 0;
}

void guest_host_revive(void)
{
	for (unsigned i = 0; i < host.greeted; i++)
		revive_link(&host.links[i], fgv_session_existing() + i);
	fgv_lane_visit(restart_lane, NULL);
}

void guest_host_scribble(void)
{
	const struct fgv_window *window = &host.links[draw() % GUEST_DEVICES].window;
	uint8_t where = draw();
	uint64_t at = draw_raw(2), value = draw_wild();

	if (where % 4 == 0)
		at %= FGV_PAGE_BYTES;
	else if (where % 4 == 1)
		at = window->lanes_off + at % FGV_LANE_HEAP;
	else
		at = window->arena_off + at * 8;
	memcpy(fgv_window_resolve(window, at & ~7ull, sizeof(value)), &value, sizeof(value));
}

void guest_host_redescribe(void)
{
	for (uint32_t i = 0; i < GUEST_DEVICES; i++) {
		struct fgv_device_info *info = (struct fgv_device_info *)fgv_device_info_of(i);

		if (!info)
			continue;
		describe_device((uint8_t *)info, sizeof(*info));
		if (host.input && draw() % 2)
			change((uint8_t *)info->attributes, sizeof(info->attributes));
	}
}
