/*
 * What a guest writes into its lanes: the real dispatcher and handlers take it, on a soft GPU or on
 * two of them.
 *
 * An input is a byte that says what session it is, and records: a number of an operation, 2 bytes;
 * flags; and how many bytes follow, of which the message is drawn (slots_input.h). Numbers from
 * PSEUDO on are no requests.
 */
#include <string.h>
#include "api/gpu_wire.h"
#include "common/util.h"
#include "tests/fuzz/slots_images.h"
#include "tests/fuzz/slots_input.h"
#include "tests/fuzz/slots_session.h"
#include "tests/fuzz/target.h"

#define RECORDS_MAX 256
#define HEAD	    4

/* Of the first byte. */
#define FLAG_ENGINES 4u
#define FLAG_MOVABLE 8u
#define FLAG_PARTS   16u /* it has two GPUs */
#define FLAG_UNITS   32u

/* Of a record. */
#define FLAG_LANE   3u
#define FLAG_WILD   4u /* not what a program would say, mostly */
#define FLAG_SETTLE 8u
#define FLAG_LATER  16u /* the host does not look yet */
#define FLAG_SECOND 32u /* to the second GPU, if there is one */

enum {
	PSEUDO = 0x400,
	PSEUDO_WRITE,
	PSEUDO_SLOT,
	PSEUDO_TAKE_GRANTS,
	PSEUDO_SETTLE,
	PSEUDO_WANT,
	PSEUDO_UNITS,
	PSEUDO_END
};

/* What the guest knows of a part. */
struct side {
	struct fuzzer *fuzzer;
	struct slots_input input;
	struct slots_image images[SLOTS_IMAGES];
};

struct fuzzer {
	struct slots_session parts[SLOTS_PARTS];
	struct side sides[SLOTS_PARTS];
	unsigned parts_count;
	uint8_t message[FGV_MESSAGE_MAX];
};

/* Handles are a part's own; addresses of one part are said to another, too. */
static void on_reply(void *of, const struct fgv_slot *slot)
{
	struct side *side = of;
	struct fuzzer *fuzzer = side->fuzzer;

	if (slot->status || slot->op > FGV_OP_MAX)
		return;
	slots_learn(&side->input, slot->op, slot->data, slot->len);
	for (unsigned i = 0; i < fuzzer->parts_count; i++) {
		if (&fuzzer->sides[i] != side)
			fuzzer->sides[i].input.addresses = side->input.addresses;
	}
}

static void begin_side(struct side *side, const struct slots_session *slots)
{
	struct slots_input *input = &side->input;
	uint64_t end;

	input->arena_off = slots_arena_off(slots);
	input->arena_len = slots_arena_len(slots);
	input->images = side->images;
	input->image_count = SLOTS_IMAGES;
	end = slots_write_images(slots_arena(slots, 0), input->arena_len, side->images);
	input->scratch_off = fgv_align_up(end, 4096);
}

static void begin(struct fuzzer *fuzzer, unsigned flags)
{
	unsigned how = (flags & FLAG_ENGINES ? SLOTS_ENGINES : 0) |
		       (flags & FLAG_MOVABLE ? SLOTS_MOVABLE : 0) |
		       (flags & FLAG_UNITS ? SLOTS_UNITS : 0);

	memset(fuzzer, 0, sizeof(*fuzzer));
	fuzzer->parts_count = flags & FLAG_PARTS ? SLOTS_PARTS : 1;
	for (unsigned i = 0; i < fuzzer->parts_count; i++) {
		fuzzer->sides[i].fuzzer = fuzzer;
		fuzzer->parts[i].on_reply = on_reply;
		fuzzer->parts[i].of = &fuzzer->sides[i];
	}
	slots_begin(fuzzer->parts, fuzzer->parts_count, how);
	for (unsigned i = 0; i < fuzzer->parts_count; i++)
		begin_side(&fuzzer->sides[i], &fuzzer->parts[i]);
}

/* Bytes into the arena, behind the images. */
static void write_arena(struct slots_session *slots, struct slots_input *input)
{
	uint64_t off = input->scratch_off + slots_draw(input) * 16u;

	slots_draw_bytes(input, slots_arena(slots, off), (size_t)(input->end - input->at));
}

static void post_slot(struct slots_session *slots, struct slots_input *input, unsigned flags)
{
	struct fgv_slot slot;

	slots_draw_bytes(input, &slot, sizeof(slot));
	slots_publish(slots, flags & FLAG_LANE, &slot);
}

static void post_message(struct fuzzer *fuzzer, unsigned part, uint16_t op, unsigned flags)
{
	uint32_t len = 0;

	if (op <= FGV_OP_MAX)
		len = slots_draw_message(&fuzzer->sides[part].input, op, fuzzer->message);
	slots_post(&fuzzer->parts[part], flags & FLAG_LANE, op, fuzzer->message, len);
}

static void run_pseudo(struct slots_session *slots, struct slots_input *input, uint16_t op,
		       unsigned flags)
{
	unsigned drawn;

	switch (op) {
	case PSEUDO_WRITE:
		write_arena(slots, input);
		break;
	case PSEUDO_SLOT:
		post_slot(slots, input, flags);
		break;
	case PSEUDO_TAKE_GRANTS:
		slots_take_grants(slots);
		break;
	case PSEUDO_WANT:
		slots_want(slots, slots_draw(input));
		break;
	case PSEUDO_UNITS:
		drawn = slots_draw(input);
		slots_set_units(slots, drawn | (unsigned)slots_draw(input) << 8);
		break;
	}
}

static void run_record(struct fuzzer *fuzzer, const uint8_t *head, const uint8_t *bytes, size_t len)
{
	uint16_t op = (uint16_t)((head[0] | head[1] << 8) % PSEUDO_END);
	unsigned flags = head[2];
	unsigned part = flags & FLAG_SECOND ? fuzzer->parts_count - 1 : 0;
	struct slots_input *input = &fuzzer->sides[part].input;

	input->at = bytes;
	input->end = bytes + len;
	input->is_tame = !(flags & FLAG_WILD);
	if (op < PSEUDO)
		post_message(fuzzer, part, op, flags);
	else
		run_pseudo(&fuzzer->parts[part], input, op, flags);
	if (op == PSEUDO_SETTLE || (flags & FLAG_SETTLE))
		slots_settle(fuzzer->parts, fuzzer->parts_count);
	else if (!(flags & FLAG_LATER))
		slots_turn(fuzzer->parts, fuzzer->parts_count);
}

/* One part's end is the session's. */
static bool has_ended(const struct fuzzer *fuzzer)
{
	return fuzzer->parts[0].has_ended || fuzzer->parts[fuzzer->parts_count - 1].has_ended;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct fuzzer fuzzer;
	unsigned records = 0;

	if (!len)
		return 0;
	begin(&fuzzer, data[0]);
	for (size_t at = 1; len - at >= HEAD && records++ < RECORDS_MAX && !has_ended(&fuzzer);) {
		size_t bytes = fgv_min_u64(data[at + 3], len - at - HEAD);

		run_record(&fuzzer, data + at, data + at + HEAD, bytes);
		at += HEAD + bytes;
	}
	for (unsigned i = 0; i < fuzzer.parts_count; i++)
		slots_want(&fuzzer.parts[i], 0);
	slots_settle(fuzzer.parts, fuzzer.parts_count);
	slots_end(fuzzer.parts, fuzzer.parts_count);
	return 0;
}
