#include "tests/fuzz/slots_input.h"

#include <string.h>
#include "api/gpu_wire.h"
#include "api/shape.h"
#include "common/util.h"

/* Nodes of a graph's text, and of what is in them. */
#define NODES_MAX 8
#define DEPTH_MAX 1
#define NODE_ROOM 512
#define WORDS_MAX 24

/* What the modules of slots_images.c have. */
static const char *const names[] = {"add",     "shared", "wait",  "fault",   "print", "local",
				    "forever", "bias",	 "shade", "managed", "",      "choose"};

/* What can be a node of a graph, and two that can't. */
static const uint16_t node_ops[] = {
	FGV_OP_FILL,	     FGV_OP_LAUNCH,
	FGV_GRAPH_NO_OP,     FGV_OP_COPY_DEVICE,
	FGV_OP_COPY_BOX,     FGV_OP_FILL_ROWS,
	FGV_OP_EVENT_RECORD, FGV_OP_STREAM_WAIT_EVENT,
	FGV_OP_VALUE_WRITE,  FGV_OP_LAUNCH_COOPERATIVE,
	FGV_GRAPH_CHOICE,    FGV_OP_HOST_FUNC,
	FGV_OP_COPY_IN,	     FGV_OP_VALUE_WAIT,
	FGV_OP_BOX_IN,	     FGV_OP_MEM_FREE,
};

/* --- Drawing ------------------------------------------------------------------------- */

uint8_t slots_draw(struct slots_input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

void slots_draw_bytes(struct slots_input *input, void *to, size_t len)
{
	size_t left = fgv_min_u64(len, (uint64_t)(input->end - input->at));

	memset(to, 0, len);
	memcpy(to, input->at, left);
	input->at += left;
}

static uint64_t draw_raw(struct slots_input *input, size_t len)
{
	uint64_t value = 0;

	slots_draw_bytes(input, &value, len);
	return value;
}

static void know(struct slots_known *known, uint64_t value)
{
	known->values[known->count++ % SLOTS_KNOWN_MAX] = value;
}

/* 0: the last of them. */
static uint64_t recall(const struct slots_known *known, unsigned back)
{
	unsigned count = (unsigned)fgv_min_u64(known->count, SLOTS_KNOWN_MAX);

	if (!count)
		return 0;
	return known->values[(known->count - 1 - back % count) % SLOTS_KNOWN_MAX];
}

static uint32_t draw_handle(struct slots_input *input, unsigned kind)
{
	uint8_t how = slots_draw(input);
	const struct slots_known *known = &input->objects[kind];

	switch (how % 8) {
	case 5:
		return 0;
	case 6: /* of another life */
		return (uint32_t)recall(known, how / 8) + (1u << 20);
	case 7:
		return (uint32_t)draw_raw(input, 4);
	default:
		return (uint32_t)recall(known, how % 8 * 2);
	}
}

static uint32_t draw_number(struct slots_input *input)
{
	uint8_t how = slots_draw(input);

	if (input->is_tame)
		return how % 8;
	switch (how % 8) {
	case 4:
		return 1u << (how / 8);
	case 5:
		return FGV_OWN_BIT | how / 8;
	case 6:
		return UINT32_MAX - how / 8;
	case 7:
		return (uint32_t)draw_raw(input, 4);
	default:
		return how / 8;
	}
}

static uint64_t draw_word(struct slots_input *input)
{
	uint8_t how = slots_draw(input);

	switch (how % 8) {
	case 0:
		return recall(&input->addresses, how / 8);
	case 1:
		return recall(&input->addresses, how / 8) + draw_raw(input, 2);
	case 2:
		return how / 8;
	case 3:
		return (uint64_t)slots_draw(input) << (how / 8 % 2 ? 21 : 12);
	case 4:
		return 1ull << (how / 8 * 2);
	case 5: /* where the guest may show its pages */
		return 0x400000000000ull + ((uint64_t)(how / 8) << 12);
	case 6:
		return UINT64_MAX - how / 8;
	default:
		return draw_raw(input, 8);
	}
}

/* Sizes that fit what there is, where it is a tame one's. */
static uint64_t draw_size(struct slots_input *input)
{
	uint8_t how;

	if (!input->is_tame)
		return draw_word(input);
	how = slots_draw(input);
	return how % 2 ? (uint64_t)(how / 2 + 1) << 21 : 4u << (how / 2 % 16);
}

static void draw_span(struct slots_input *input, bool is_source, uint64_t span[2])
{
	uint8_t how = slots_draw(input);
	const struct slots_image *image = &input->images[how / 4 % input->image_count];

	switch (how % 4) {
	case 0:
		span[0] = input->arena_off + (is_source ? image->off : input->scratch_off);
		span[1] = is_source ? image->len : 4096;
		break;
	case 1:
		span[0] = input->arena_off + (uint64_t)slots_draw(input) * 4096;
		span[1] = (uint64_t)slots_draw(input) << (how / 4 % 16);
		break;
	case 2:
		span[0] = input->arena_off + input->scratch_off + slots_draw(input);
		span[1] = draw_raw(input, 2);
		break;
	default:
		span[0] = draw_word(input);
		span[1] = draw_word(input);
	}
}

/* --- Fields -------------------------------------------------------------------------- */

static bool is_named(const struct fgv_shape_field *field, const char *name)
{
	return strcmp(field->name, name) == 0;
}

/* What a tame guest says whatever the input is, or UINT32_MAX. */
static uint32_t usual_number(const struct fgv_shape_field *field)
{
	if (is_named(field, "param_count"))
		return 3;
	if (is_named(field, "channels"))
		return 1;
	if (is_named(field, "format"))
		return 0x20;
	return UINT32_MAX;
}

static uint32_t draw_field_number(struct slots_input *input, const struct fgv_shape_field *field)
{
	uint32_t usual = input->is_tame ? usual_number(field) : UINT32_MAX;
	uint32_t drawn;

	if (usual != UINT32_MAX)
		return usual;
	drawn = draw_number(input);
	if (!input->is_tame)
		return drawn;
	if (is_named(field, "grid") || is_named(field, "block"))
		return drawn + 1;
	if (is_named(field, "width"))
		return 4u << drawn % 2;
	return drawn;
}

static uint64_t draw_field_word(struct slots_input *input, const struct fgv_shape_field *field)
{
	if (is_named(field, "size") || is_named(field, "count") || is_named(field, "value"))
		return draw_size(input);
	if (is_named(field, "offset") && input->is_tame)
		return 0;
	return draw_word(input);
}

static void draw_field(struct slots_input *input, const struct fgv_shape_field *field,
		       uint8_t *message)
{
	uint8_t *at = message + field->offset;
	uint64_t word, span[2];
	uint32_t number;

	for (unsigned i = 0; i < field->count; i++) {
		switch (field->form) {
		case FGV_SHAPE_WORD:
			word = draw_field_word(input, field);
			memcpy(at + i * sizeof(word), &word, sizeof(word));
			break;
		case FGV_SHAPE_SOURCE:
		case FGV_SHAPE_SINK:
			draw_span(input, field->form == FGV_SHAPE_SOURCE, span);
			memcpy(at, span, sizeof(span));
			break;
		case FGV_SHAPE_BYTES:
			break;
		default:
			number = field->form == FGV_SHAPE_NUMBER  ? draw_field_number(input, field)
				 : field->form == FGV_SHAPE_FLOAT ? (uint32_t)draw_raw(input, 4)
								  : draw_handle(input, field->kind);
			memcpy(at + i * sizeof(number), &number, sizeof(number));
		}
	}
}

/* --- What follows the arguments ------------------------------------------------------- */

static uint32_t draw_words(struct slots_input *input, uint8_t *to, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t word = draw_word(input);

		memcpy(to + 8 * i, &word, sizeof(word));
	}
	return 8 * count;
}

static uint32_t draw_name(struct slots_input *input, uint8_t *to)
{
	const char *name = names[slots_draw(input) % FGV_ARRAY_LEN(names)];

	memcpy(to, name, strlen(name));
	return (uint32_t)strlen(name);
}

/* As module_load_placed has them. */
static uint32_t draw_placed(struct slots_input *input, uint8_t *to)
{
	uint32_t len = draw_words(input, to, 2);

	len += draw_name(input, to + len);
	to[len] = '\0';
	return len + 1;
}

static uint32_t draw_choice(struct slots_input *input, uint8_t *message)
{
	struct fgv_graph_choice choice = {
		.condition = draw_word(input),
		.type = slots_draw(input) % 4,
		.bodies = slots_draw(input) % 4 + 1u,
	};

	memcpy(message, &choice, sizeof(choice));
	return sizeof(choice);
}

static uint32_t draw_node(struct slots_input *input, unsigned number, uint8_t *to)
{
	uint8_t how = slots_draw(input);
	uint32_t before = number ? number - 1 - slots_draw(input) % number : 0;
	struct fgv_graph_node node = {.number = how & 0x80 ? slots_draw(input) : number,
				      .op = node_ops[how % FGV_ARRAY_LEN(node_ops)],
				      .before_count = number && !(how & 0x40),
				      .is_disabled = (how & 0x60) == 0x60};
	uint32_t len = sizeof(node) + (node.before_count ? 8 : 0);

	memset(to, 0, len + NODE_ROOM);
	if (how & 0x20) {
		node.inside = slots_draw(input);
		node.body = slots_draw(input);
	}
	if (node.op == FGV_GRAPH_CHOICE)
		node.message_len = draw_choice(input, to + len);
	else if (node.op != FGV_GRAPH_NO_OP)
		node.message_len = slots_draw_message(input, (uint16_t)node.op, to + len);
	memcpy(to, &node, sizeof(node));
	if (node.before_count)
		memcpy(to + sizeof(node), &before, sizeof(before));
	return len + (uint32_t)fgv_align_up(node.message_len, 8);
}

static uint32_t draw_text(struct slots_input *input, uint8_t *to)
{
	unsigned count = slots_draw(input) % NODES_MAX + 1;
	uint32_t len = 0;

	input->depth++;
	for (unsigned i = 0; i < count; i++)
		len += draw_node(input, i, to + len);
	input->depth--;
	return len;
}

static uint32_t draw_anything(struct slots_input *input, uint8_t *to)
{
	uint32_t len = slots_draw(input);

	slots_draw_bytes(input, to, len);
	return len;
}

/* What a program would send behind the arguments of @op. */
static uint32_t draw_right_bytes(struct slots_input *input, uint16_t op, uint8_t *to)
{
	switch (op) {
	case FGV_OP_LAUNCH:
	case FGV_OP_LAUNCH_COOPERATIVE:
	case FGV_OP_LAUNCH_CLUSTERS:
		return draw_words(input, to, 3);
	case FGV_OP_FUNCTION_GET:
	case FGV_OP_GLOBAL_GET:
		return draw_name(input, to);
	case FGV_OP_MODULE_LOAD_PLACED:
		return draw_placed(input, to);
	case FGV_OP_GRAPH_BUILD:
	case FGV_OP_GRAPH_PART:
	case FGV_OP_GRAPH_UPDATE:
		return input->depth < DEPTH_MAX ? draw_text(input, to) : 0;
	case FGV_OP_TENSOR_MAP:
		return draw_words(input, to, sizeof(struct fgv_tensor_shape) / 8);
	case FGV_OP_TENSOR_MAP_REPLACE:
		return draw_words(input, to, FGV_TENSOR_MAP_BYTES / 8);
	default:
		return draw_words(input, to, slots_draw(input) % WORDS_MAX);
	}
}

/* A node of a graph is bounded by its room. */
static uint32_t draw_bytes(struct slots_input *input, uint16_t op, uint8_t *to)
{
	if (!input->is_tame && slots_draw(input) % 2)
		return draw_anything(input, to);
	return draw_right_bytes(input, op, to);
}

uint32_t slots_draw_message(struct slots_input *input, uint16_t op, uint8_t *message)
{
	const struct fgv_shape *shape = &fgv_shapes[op];
	uint32_t len = fgv_op_infos[op].request_len;

	memset(message, 0, len);
	for (unsigned i = 0; i < shape->in_count; i++)
		draw_field(input, &shape->ins[i], message);
	if (fgv_op_infos[op].has_bytes)
		len += draw_bytes(input, op, message + len);
	/* What the guest names itself it knows without a reply. */
	if (op == FGV_OP_STREAM_MAKE || op == FGV_OP_EVENT_MAKE) {
		uint32_t handle;

		memcpy(&handle, message, sizeof(handle));
		know(&input->objects[op == FGV_OP_STREAM_MAKE ? FGV_KIND_STREAM : FGV_KIND_EVENT],
		     handle);
	}
	return len;
}

void slots_learn(struct slots_input *input, uint16_t op, const uint8_t *reply, size_t len)
{
	const struct fgv_shape *shape = &fgv_shapes[op];

	if (len < fgv_op_infos[op].reply_len)
		return;
	for (unsigned i = 0; i < shape->out_count; i++) {
		const struct fgv_shape_field *field = &shape->outs[i];
		uint64_t value = 0;

		if (field->form == FGV_SHAPE_HANDLE || field->form == FGV_SHAPE_OPTIONAL) {
			memcpy(&value, reply + field->offset, 4);
			if (value)
				know(&input->objects[field->kind], value);
		} else if (is_named(field, "address") || is_named(field, "condition") ||
			   is_named(field, "number")) {
			memcpy(&value, reply + field->offset, 8);
			know(&input->addresses, value);
		}
	}
}
