/*
 * Telling which nodes are for the host.
 */
#include "frontend/cuda/graph/exec_way.h"

#include "api/gpu_wire.h"
#include "common/util.h"
#include "frontend/cuda/stream/host_func.h"

static enum fgv_stats_graph way_of_record(const struct fgv_record *record)
{
	CUhostFn function;
	void *data;

	if (record->run)
		return fgv_host_func_describe(record, &function, &data) ? FGV_STATS_GRAPH_FUNCTION
									: FGV_STATS_GRAPH_PAGEABLE;
	switch (record->op) {
	case FGV_OP_LAUNCH:
	case FGV_OP_LAUNCH_COOPERATIVE:
	case FGV_OP_LAUNCH_CLUSTERS:
	case FGV_OP_COPY_DEVICE:
	case FGV_OP_FILL:
	case FGV_OP_FILL_ROWS:
	case FGV_OP_COPY_BOX:
	case FGV_OP_EVENT_RECORD:
	case FGV_OP_STREAM_WAIT_EVENT:
		return FGV_STATS_GRAPH_HOST;
	default:
		return FGV_STATS_GRAPH_OTHER;
	}
}

/* No more than just too much, so that sums do not wrap. */
static uint64_t moved_by(const struct fgv_record *record)
{
	const struct fgv_copy_device_request *copy = (const void *)record->message;
	const struct fgv_copy_box_request *box = (const void *)record->message;
	const struct fgv_fill_request *fill = (const void *)record->message;
	const struct fgv_fill_rows_request *rows = (const void *)record->message;
	uint64_t moved;

	switch (record->op) {
	case FGV_OP_COPY_DEVICE:
		moved = copy->size;
		break;
	case FGV_OP_COPY_BOX:
		moved = box->box[0] * box->box[1] * box->box[2];
		break;
	case FGV_OP_FILL:
		moved = fill->count * fill->width;
		break;
	case FGV_OP_FILL_ROWS:
		moved = rows->width * rows->height;
		break;
	default:
		return 0;
	}
	return fgv_min_u64(moved, FGV_GRAPH_MOVED_MAX + 1);
}

static enum fgv_stats_graph way_of_node(struct fgv_node *node)
{
	enum fgv_stats_graph way = FGV_STATS_GRAPH_HOST;

	node->moved = 0;
	for (const struct fgv_record *each = node->work.task->records;
	     each && way == FGV_STATS_GRAPH_HOST; each = each->next) {
		way = way_of_record(each);
		node->moved += moved_by(each);
	}
	return way == FGV_STATS_GRAPH_HOST && node->moved > FGV_GRAPH_MOVED_MAX
		       ? FGV_STATS_GRAPH_MOVES
		       : way;
}

enum fgv_exec_side fgv_exec_side_of(struct fgv_node *node)
{
	node->moved = 0;
	if (node->work.bodies)
		return FGV_EXEC_HOST;
	if (!node->work.task->records)
		return FGV_EXEC_ANY;
	return way_of_node(node) == FGV_STATS_GRAPH_HOST ? FGV_EXEC_HOST : FGV_EXEC_PROGRAM;
}

/* Bodies have only what is for the host (choice.h); what they move is theirs. */
static enum fgv_stats_graph way_of_graph(struct fgv_graph *graph, uint64_t *moved)
{
	enum fgv_stats_graph way = FGV_STATS_GRAPH_HOST;

	for (struct fgv_node *each = graph->first; each && way == FGV_STATS_GRAPH_HOST;
	     each = each->next) {
		way = each->work.child ? way_of_graph(each->work.child, moved) : way_of_node(each);
		if (!each->work.child)
			*moved += each->moved;
	}
	return way;
}

enum fgv_stats_graph fgv_exec_way_of(struct fgv_graph *graph)
{
	uint64_t moved = 0;
	enum fgv_stats_graph way = way_of_graph(graph, &moved);

	return way == FGV_STATS_GRAPH_HOST && moved > FGV_GRAPH_MOVED_MAX ? FGV_STATS_GRAPH_MOVES
									  : way;
}
