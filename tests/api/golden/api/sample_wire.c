/*
 * Made from sample.api by apigen.py; edit those.
 *
 * The table of operations.
 */
#include "api/sample_wire.h"

const struct fgv_op_info fgv_op_infos[FGV_OP_MAX + 1] = {
	[FGV_OP_EVERYTHING] = {"everything", sizeof(struct fgv_everything_request),
			       sizeof(struct fgv_everything_reply), true, true, false, false, false,
			       68},
	[FGV_OP_NOTHING_AT_ALL] = {"nothing_at_all", 0, 0, false, false, false, false, true,
				   FGV_OP_NO_STREAM},
	[FGV_OP_ASK] = {"ask", 0, 0, true, false, false, true, true, FGV_OP_NO_STREAM},
	[FGV_OP_ONLY_BYTES] = {"only_bytes", 0, 0, false, true, true, false, false,
			       FGV_OP_NO_STREAM},
	[FGV_OP_ASK_BYTES] = {"ask_bytes", sizeof(struct fgv_ask_bytes_request), 0, true, true,
			      true, false, false, FGV_OP_NO_STREAM},
	[FGV_OP_STREAMS] = {"streams", sizeof(struct fgv_streams_request), 0, false, false, false,
			    false, false, 0},
	[FGV_OP_LAST] = {"last", 0, sizeof(struct fgv_last_reply), true, false, false, false, false,
			 FGV_OP_NO_STREAM},
};
