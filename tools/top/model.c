/* From reports to rows; see model.h. */
#define _GNU_SOURCE
#include "tools/top/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/log.h"
#include "common/util.h"
#include "tools/ctl.h"
#include "tools/ctl_figures.h"

#define PPM 1000000 /* what shares are parts of in a report */

static void *make_array(size_t count, size_t size)
{
	void *array = calloc(count ? count : 1, size);

	if (array)
		return array;
	fgv_error("out of memory");
	exit(EXIT_FAILURE);
}

static uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Programs name themselves; a cell of the screen is a byte of theirs. */
static void copy_text(char *to, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(to, FGV_TOP_NAME_LEN, "%s", text ? text : "?");
	for (char *at = to; *at; at++) {
		if (*at < ' ' || *at > '~')
			*at = '?';
	}
}

static unsigned share_of(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part / (double)whole * FGV_TOP_WHOLE + 0.5) : 0;
}

/* --- What there is ----------------------------------------------------------- */

static void free_vms(struct fgv_top_vm *vms, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(vms[i].sessions);
	free(vms);
}

void fgv_top_model_fini(struct fgv_top_model *model)
{
	free_vms(model->vms, model->vm_count);
	free(model->gpus);
	free(model->rows);
	json_decref(model->report);
	*model = (struct fgv_top_model){0};
}

/* Two successive reports. */
struct span {
	const json_t *earlier, *later; /* the earlier is NULL for the first */
	uint64_t len_ns;
};

/* What its weight gives it, within what it is promised and allowed. */
static unsigned owed_to(const json_t *report, const json_t *vm)
{
	const json_t *gpu = fgv_ctl_find_like(json_object_get(report, "gpus"), vm, "device");
	unsigned owed = share_of(number(vm, "weight"), number(gpu, "weight"));
	unsigned request = share_of(number(vm, "request_ppm"), PPM);
	unsigned limit = share_of(number(vm, "limit_ppm"), PPM);

	owed = request > owed ? request : owed;
	return limit && limit < owed ? limit : owed;
}

static uint64_t limit_of(const json_t *vm)
{
	const json_t *limit = json_object_get(vm, "memory_limit_bytes");

	return json_is_integer(limit) ? (uint64_t)json_integer_value(limit) : FGV_TOP_NO_LIMIT;
}

/* What a VM and a session have both. Without an earlier report only memory is known. */
static int read_row(struct fgv_top_row *row, const struct span *span, const json_t *object,
		    const json_t *before)
{
	struct fgv_ctl_figures figures;

	if (fgv_ctl_figures_of(object, before, &figures))
		return -EPROTO;
	row->memory = figures.memory_bytes;
	if (!span->len_ns)
		return 0;
	row->used = share_of(figures.gpu_ns, span->len_ns);
	row->wait_ns = fgv_hist_quantile_ns(&figures.wait, 990);
	row->launches = (double)figures.launches * FGV_NS_PER_SEC / (double)span->len_ns;
	return 0;
}

static int read_session(struct fgv_top_row *row, const struct span *span,
			const struct fgv_top_row *vm, const json_t *session, const json_t *before)
{
	*row = *vm;
	row->is_session = true;
	row->number = number(session, "number");
	row->owed = 0;
	row->used = 0;
	row->limit = FGV_TOP_NO_LIMIT;
	copy_text(row->name, session, "program");
	copy_text(row->state, session, "state");
	return read_row(row, span, session, before);
}

static int read_sessions(struct fgv_top_vm *vm, const struct span *span, const json_t *object,
			 const json_t *before)
{
	const json_t *sessions = json_object_get(object, "sessions");
	const json_t *old = json_object_get(before, "sessions");
	json_t *session;
	size_t i;
	int ret = 0;

	vm->sessions = make_array(json_array_size(sessions), sizeof(*vm->sessions));
	json_array_foreach(sessions, i, session)
	{
		ret |= read_session(&vm->sessions[i], span, &vm->row, session,
				    fgv_ctl_find_like(old, session, "number"));
	}
	vm->session_count = json_array_size(sessions);
	return ret;
}

static int read_vm(struct fgv_top_vm *vm, const struct span *span, const json_t *object)
{
	const json_t *old = json_object_get(span->earlier, "vms");
	const json_t *before = fgv_ctl_find_like(old, object, "name");
	struct fgv_top_row *row = &vm->row;
	int ret = read_row(row, span, object, before);

	copy_text(row->name, object, "name");
	copy_text(row->vm, object, "name");
	row->device = number(object, "device");
	row->weight = number(object, "weight");
	row->owed = owed_to(span->later, object);
	row->limit = limit_of(object);
	return ret | read_sessions(vm, span, object, before);
}

static const struct fgv_top_vm *find_vm(const struct fgv_top_model *model, const char *name)
{
	for (size_t i = 0; i < model->vm_count; i++) {
		if (!strcmp(model->vms[i].row.name, name))
			return &model->vms[i];
	}
	return NULL;
}

/* What the VM used before, and now, the oldest going if there is no more room. */
static void append_history(struct fgv_top_vm *vm, const struct fgv_top_vm *before)
{
	size_t len = before ? before->history_len : 0;
	size_t from = len == FGV_TOP_HISTORY;

	if (before)
		memcpy(vm->history, before->history + from, (len - from) * sizeof(*vm->history));
	len -= from;
	vm->history[len] = vm->row.used;
	vm->history_len = len + 1;
}

static int read_vms(const struct fgv_top_model *model, const struct span *span,
		    struct fgv_top_vm **vms, size_t *count)
{
	const json_t *list = json_object_get(span->later, "vms");
	json_t *object;
	size_t i;
	int ret = 0;

	*count = json_array_size(list);
	*vms = make_array(*count, sizeof(**vms));
	json_array_foreach(list, i, object)
	{
		ret |= read_vm(&(*vms)[i], span, object);
		if (span->len_ns)
			append_history(&(*vms)[i], find_vm(model, (*vms)[i].row.name));
	}
	return ret;
}

static void read_gpu(struct fgv_top_gpu *gpu, const struct span *span, const json_t *object)
{
	const json_t *old = json_object_get(span->earlier, "gpus");
	uint64_t before_ns = number(fgv_ctl_find_like(old, object, "device"), "gpu_ns");
	json_t *vm, *share;
	size_t i, j;

	gpu->device = number(object, "device");
	gpu->memory = number(object, "memory_bytes");
	copy_text(gpu->name, object, "name");
	copy_text(gpu->policy, object, "policy");
	if (span->len_ns)
		gpu->used =
			share_of(fgv_ctl_since(number(object, "gpu_ns"), before_ns), span->len_ns);
	json_array_foreach(json_object_get(span->later, "vms"), i, vm)
	{
		json_array_foreach(json_object_get(vm, "gpus"), j, share)
		{
			if (number(share, "device") == gpu->device)
				gpu->memory_used += number(share, "memory_bytes");
		}
	}
}

static void read_gpus(struct fgv_top_model *model, const struct span *span)
{
	const json_t *list = json_object_get(span->later, "gpus");
	json_t *object;
	size_t i;

	free(model->gpus);
	model->gpu_count = json_array_size(list);
	model->gpus = make_array(model->gpu_count, sizeof(*model->gpus));
	json_array_foreach(list, i, object) read_gpu(&model->gpus[i], span, object);
}

int fgv_top_model_take(struct fgv_top_model *model, json_t *report)
{
	struct span span = {.earlier = model->report, .later = report};
	struct fgv_top_vm *vms;
	size_t count;

	if (span.earlier)
		span.len_ns =
			fgv_ctl_since(number(report, "time_ns"), number(span.earlier, "time_ns"));
	if (read_vms(model, &span, &vms, &count) ||
	    !json_is_array(json_object_get(report, "gpus"))) {
		free_vms(vms, count);
		json_decref(report);
		return -EPROTO;
	}
	free_vms(model->vms, model->vm_count);
	model->vms = vms;
	model->vm_count = count;
	read_gpus(model, &span);
	model->has_rates = span.len_ns != 0;
	json_decref(model->report);
	model->report = report;
	fgv_top_model_arrange(model);
	return 0;
}

/* --- The rows ---------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

/* The largest first, but names from a to z. */
static int compare_rows(const struct fgv_top_row *a, const struct fgv_top_row *b,
			const struct fgv_top_model *model)
{
	int order = 0;

	if (model->sort == FGV_TOP_BY_USED)
		order = compare_numbers(a->used, b->used);
	else if (model->sort == FGV_TOP_BY_WAIT)
		order = compare_numbers(a->wait_ns, b->wait_ns);
	else if (model->sort == FGV_TOP_BY_MEMORY)
		order = compare_numbers(a->memory, b->memory);
	if (!order)
		order = strcmp(a->name, b->name);
	if (!order)
		order = compare_numbers(b->number, a->number);
	return model->reversed ? -order : order;
}

static int compare_sessions(const void *a, const void *b, void *model)
{
	return compare_rows(a, b, model);
}

static int compare_vms(const void *a, const void *b, void *model)
{
	return compare_rows(&((const struct fgv_top_vm *)a)->row,
			    &((const struct fgv_top_vm *)b)->row, model);
}

static bool matches(const struct fgv_top_model *model, const struct fgv_top_row *row)
{
	return strcasestr(row->name, model->filter);
}

/* The VM, where it is wanted or one of its sessions is, and these; all of them if the VM is. */
static void add_rows(struct fgv_top_model *model, const struct fgv_top_vm *vm)
{
	bool all = matches(model, &vm->row);
	size_t head = model->row_count++;

	model->rows[head] = &vm->row;
	for (size_t i = 0; i < vm->session_count; i++) {
		bool wanted = all || matches(model, &vm->sessions[i]);

		if (wanted)
			model->rows[model->row_count++] = &vm->sessions[i];
	}
	if (!all && model->row_count == head + 1)
		model->row_count = head;
	else if (model->no_sessions)
		model->row_count = head + 1;
}

void fgv_top_model_arrange(struct fgv_top_model *model)
{
	size_t most = model->vm_count;

	for (size_t i = 0; i < model->vm_count; i++) {
		struct fgv_top_vm *vm = &model->vms[i];

		qsort_r(vm->sessions, vm->session_count, sizeof(*vm->sessions), compare_sessions,
			model);
		most += vm->session_count;
	}
	if (model->vm_count)
		qsort_r(model->vms, model->vm_count, sizeof(*model->vms), compare_vms, model);
	free(model->rows);
	model->rows = make_array(most, sizeof(struct fgv_top_row *));
	model->row_count = 0;
	for (size_t i = 0; i < model->vm_count; i++)
		add_rows(model, &model->vms[i]);
}

const struct fgv_top_vm *fgv_top_model_vm(const struct fgv_top_model *model,
					  const struct fgv_top_row *row)
{
	return find_vm(model, row->vm);
}
