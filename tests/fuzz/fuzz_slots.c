/*
 * What a guest writes into its lanes: the real dispatcher and handlers take it, on a soft GPU.
 *
 * An input is records: a number of an operation, 2 bytes; flags; and how many bytes follow, of
 * which the message is drawn (slots_input.h). Numbers from PSEUDO on are no requests.
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

#define FLAG_LANE    3u
#define FLAG_WILD    4u /* not what a program would say, mostly */
#define FLAG_ENGINES 4u /* of the first byte of all */
#define FLAG_MOVABLE 8u /* the same */
#define FLAG_SETTLE  8u
#define FLAG_LATER   16u /* the host does not look yet */

enum {
	PSEUDO = 0x400,
	PSEUDO_WRITE,
	PSEUDO_SLOT,
	PSEUDO_TAKE_GRANTS,
	PSEUDO_SETTLE,
	PSEUDO_WANT,
	PSEUDO_END
};

struct fuzzer {
	struct slots_session slots;
	struct slots_input input;
	struct slots_image images[SLOTS_IMAGES];
	uint8_t message[FGV_MESSAGE_MAX];
};

static void on_reply(void *of, const struct fgv_slot *slot)
{
	struct fuzzer *fuzzer = of;

	if (!slot->status && slot->op <= FGV_OP_MAX)
		slots_learn(&fuzzer->input, slot->op, slot->data, slot->len);
}

static void begin(struct fuzzer *fuzzer, unsigned flags)
{
	struct slots_input *input = &fuzzer->input;
	struct slots_session *slots = &fuzzer->slots;

	memset(fuzzer, 0, sizeof(*fuzzer));
	slots->on_reply = on_reply;
	slots->of = fuzzer;
	slots_begin(slots, flags & FLAG_ENGINES, flags & FLAG_MOVABLE);
	input->arena_off = slots_arena_off(slots);
	input->arena_len = slots_arena_len(slots);
	input->images = fuzzer->images;
	input->image_count = SLOTS_IMAGES;
	input->scratch_off = fgv_align_up(
		slots_write_images(slots_arena(slots, 0), input->arena_len, fuzzer->images), 4096);
}

/* Bytes into the arena, behind the images. */
static void write_arena(struct fuzzer *fuzzer)
{
	struct slots_input *input = &fuzzer->input;
	uint64_t off = input->scratch_off + slots_draw(input) * 16u;

	slots_draw_bytes(input, slots_arena(&fuzzer->slots, off), (size_t)(input->end - input->at));
}

static void post_slot(struct fuzzer *fuzzer, unsigned flags)
{
	struct fgv_slot slot;

	slots_draw_bytes(&fuzzer->input, &slot, sizeof(slot));
	slots_publish(&fuzzer->slots, flags & FLAG_LANE, &slot);
}

static void run_record(struct fuzzer *fuzzer, uint16_t op, unsigned flags)
{
	struct slots_session *slots = &fuzzer->slots;
	uint32_t len = 0;

	fuzzer->input.is_tame = !(flags & FLAG_WILD);
	if (op == PSEUDO_WRITE) {
		write_arena(fuzzer);
	} else if (op == PSEUDO_SLOT) {
		post_slot(fuzzer, flags);
	} else if (op == PSEUDO_TAKE_GRANTS) {
		slots_take_grants(slots);
	} else if (op == PSEUDO_WANT) {
		slots_want(slots, slots_draw(&fuzzer->input));
	} else if (op < PSEUDO) {
		if (op <= FGV_OP_MAX)
			len = slots_draw_message(&fuzzer->input, op, fuzzer->message);
		slots_post(slots, flags & FLAG_LANE, op, fuzzer->message, len);
	}
	if (op == PSEUDO_SETTLE || (flags & FLAG_SETTLE))
		slots_settle(slots);
	else if (!(flags & FLAG_LATER))
		slots_turn(slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct fuzzer fuzzer;
	unsigned records = 0;

	if (!len)
		return 0;
	begin(&fuzzer, data[0]);
	for (size_t at = 1;
	     len - at >= HEAD && records++ < RECORDS_MAX && !fuzzer.slots.has_ended;) {
		size_t bytes = fgv_min_u64(data[at + 3], len - at - HEAD);

		fuzzer.input.at = data + at + HEAD;
		fuzzer.input.end = fuzzer.input.at + bytes;
		run_record(&fuzzer, (uint16_t)((data[at] | data[at + 1] << 8) % PSEUDO_END),
			   data[at + 2]);
		at += HEAD + bytes;
	}
	slots_want(&fuzzer.slots, 0);
	slots_settle(&fuzzer.slots);
	slots_end(&fuzzer.slots);
	return 0;
}
