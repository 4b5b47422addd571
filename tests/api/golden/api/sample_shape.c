/*
 * Made from sample.api by apigen.py; edit those.
 *
 * Of what each operation's messages are made.
 */
#include "api/shape.h"

#include <stddef.h>
#include "api/host.h"
#include "api/sample_wire.h"

const struct fgv_shape fgv_shapes[FGV_OP_MAX + 1] = {
	[FGV_OP_EVERYTHING] = {
		.in_count = 14,
		.ins = (const struct fgv_shape_field[]){
			{"a", FGV_SHAPE_NUMBER, 0, offsetof(struct fgv_everything_request, a), 1},
			{"b", FGV_SHAPE_WORD, 0, offsetof(struct fgv_everything_request, b), 1},
			{"c", FGV_SHAPE_NUMBER, 0, offsetof(struct fgv_everything_request, c), 1},
			{"d", FGV_SHAPE_SOURCE, 0, offsetof(struct fgv_everything_request, d_off),
			 1},
			{"e", FGV_SHAPE_FLOAT, 0, offsetof(struct fgv_everything_request, e), 1},
			{"f", FGV_SHAPE_WORD, 0, offsetof(struct fgv_everything_request, f), 2},
			{"module", FGV_SHAPE_HANDLE, FGV_KIND_MODULE,
			 offsetof(struct fgv_everything_request, module), 1},
			{"stream", FGV_SHAPE_OPTIONAL, FGV_KIND_STREAM,
			 offsetof(struct fgv_everything_request, stream), 1},
			{"event", FGV_SHAPE_HANDLE, FGV_KIND_EVENT,
			 offsetof(struct fgv_everything_request, event), 1},
			{"array", FGV_SHAPE_OPTIONAL, FGV_KIND_ARRAY,
			 offsetof(struct fgv_everything_request, array), 1},
			{"texture", FGV_SHAPE_HANDLE, FGV_KIND_TEXTURE,
			 offsetof(struct fgv_everything_request, texture), 1},
			{"g", FGV_SHAPE_SINK, 0, offsetof(struct fgv_everything_request, g_off), 1},
			{"function", FGV_SHAPE_HANDLE, FGV_KIND_FUNCTION,
			 offsetof(struct fgv_everything_request, function), 1},
			{"rest", FGV_SHAPE_BYTES, 0, 0, 1},
		},
		.out_count = 4,
		.outs = (const struct fgv_shape_field[]){
			{"function", FGV_SHAPE_HANDLE, FGV_KIND_FUNCTION,
			 offsetof(struct fgv_everything_reply, function), 1},
			{"sum", FGV_SHAPE_WORD, 0, offsetof(struct fgv_everything_reply, sum), 1},
			{"c", FGV_SHAPE_NUMBER, 0, offsetof(struct fgv_everything_reply, c), 1},
			{"e", FGV_SHAPE_FLOAT, 0, offsetof(struct fgv_everything_reply, e), 3},
		},
	},
	[FGV_OP_NOTHING_AT_ALL] = {
	},
	[FGV_OP_ASK] = {
	},
	[FGV_OP_ONLY_BYTES] = {
		.in_count = 1,
		.ins = (const struct fgv_shape_field[]){
			{"text", FGV_SHAPE_BYTES, 0, 0, 1},
		},
	},
	[FGV_OP_ASK_BYTES] = {
		.in_count = 2,
		.ins = (const struct fgv_shape_field[]){
			{"where", FGV_SHAPE_FLOAT, 0, offsetof(struct fgv_ask_bytes_request, where),
			 3},
			{"text", FGV_SHAPE_BYTES, 0, 0, 1},
		},
	},
	[FGV_OP_STREAMS] = {
		.in_count = 4,
		.ins = (const struct fgv_shape_field[]){
			{"from", FGV_SHAPE_OPTIONAL, FGV_KIND_STREAM,
			 offsetof(struct fgv_streams_request, from), 1},
			{"to", FGV_SHAPE_OPTIONAL, FGV_KIND_STREAM,
			 offsetof(struct fgv_streams_request, to), 1},
			{"at", FGV_SHAPE_WORD, 0, offsetof(struct fgv_streams_request, at), 1},
			{"delta", FGV_SHAPE_NUMBER, 0, offsetof(struct fgv_streams_request, delta),
			 3},
		},
	},
	[FGV_OP_LAST] = {
		.out_count = 1,
		.outs = (const struct fgv_shape_field[]){
			{"all", FGV_SHAPE_NUMBER, 0, offsetof(struct fgv_last_reply, all), 10},
		},
	},
};
