/*
 * Conditions that kernels set, and commands that are run as they say. A choice is one command in
 * the queue; those of its bodies are in lists of its own, and stay there, as a loop runs them again
 * and again. While a choice is begun and not ended, what is submitted goes to one of its lists.
 *
 * Threads: the values are atomic, for kernels set them and the executor looks at them; all else is
 * the dispatcher's until the choice is submitted, and the executor's from then on.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/device/internal.h"

struct body {
	struct command *first;
	struct command **end;
};

struct choice {
	struct choice *outer; /* while it is begun: in whose body it is */
	uint32_t *value;
	CUgraphConditionalNodeType type;
	unsigned bodies_count, body;
	struct body bodies[];
};

/* --- Conditions ------------------------------------------------------------------ */

static uint32_t *value_of(struct conditions *conditions, uint64_t condition)
{
	if (!condition || condition > CONDITIONS_MAX ||
	    !__atomic_load_n(&conditions->is_used[condition - 1], __ATOMIC_ACQUIRE))
		return NULL;
	return &conditions->values[condition - 1];
}

bool fgv_softgpu_condition_set(struct conditions *conditions, uint64_t condition, uint32_t value)
{
	uint32_t *at = value_of(conditions, condition);

	if (at)
		__atomic_store_n(at, value, __ATOMIC_RELAXED);
	return at != NULL;
}

/* Numbers are used again as late as can be. */
CUresult softgpu_condition_create(struct softgpu *gpu, uint64_t *condition)
{
	struct conditions *conditions = &gpu->system.conditions;

	for (uint32_t tried = 0; tried < CONDITIONS_MAX; tried++) {
		uint32_t at = conditions->next++ % CONDITIONS_MAX;

		if (__atomic_load_n(&conditions->is_used[at], __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&conditions->values[at], 0, __ATOMIC_RELAXED);
		__atomic_store_n(&conditions->is_used[at], true, __ATOMIC_RELEASE);
		*condition = at + 1;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Kernels that set it may be queued. */
void softgpu_condition_destroy(struct softgpu *gpu, uint64_t condition)
{
	struct command *command = fgv_queue_new(COMMAND_DROP_CONDITION, 0);

	if (!command)
		return; /* lost until the process ends */
	command->dropped = &gpu->system.conditions.is_used[condition - 1];
	fgv_queue_submit_last(gpu, command);
}

CUresult softgpu_condition_set(struct softgpu *gpu, uint64_t condition, uint32_t value,
			       struct softgpu_stream *stream)
{
	uint32_t *at = value_of(&gpu->system.conditions, condition);
	struct command *command;

	if (!at)
		return CUDA_ERROR_INVALID_VALUE;
	command = fgv_queue_new(COMMAND_CONDITION, 0);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->condition.at = at;
	command->condition.value = value;
	fgv_queue_submit(gpu, command, QUEUE_COMPUTE, stream);
	return CUDA_SUCCESS;
}

/* --- Choices --------------------------------------------------------------------- */

CUresult softgpu_choice_begin(struct softgpu *gpu, uint64_t condition,
			      CUgraphConditionalNodeType type, unsigned bodies)
{
	uint32_t *value = value_of(&gpu->system.conditions, condition);
	struct choice *choice;

	if (!value || !bodies)
		return CUDA_ERROR_INVALID_VALUE;
	choice = calloc(1, sizeof(*choice) + bodies * sizeof(struct body));
	if (!choice)
		return CUDA_ERROR_OUT_OF_MEMORY;
	choice->outer = gpu->choice;
	choice->value = value;
	choice->type = type;
	choice->bodies_count = bodies;
	for (unsigned i = 0; i < bodies; i++)
		choice->bodies[i].end = &choice->bodies[i].first;
	gpu->choice = choice;
	return CUDA_SUCCESS;
}

void softgpu_choice_body(struct softgpu *gpu, unsigned body)
{
	gpu->choice->body = body;
}

CUresult softgpu_choice_end(struct softgpu *gpu, struct softgpu_stream *stream)
{
	struct command *command = fgv_queue_new(COMMAND_CHOICE, 0);
	struct choice *choice = gpu->choice;

	gpu->choice = choice->outer;
	if (!command) {
		fgv_choice_free(choice);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	command->choice = choice;
	fgv_queue_submit(gpu, command, QUEUE_COMPUTE, stream);
	return CUDA_SUCCESS;
}

void fgv_choice_take(struct choice *choice, struct command *command)
{
	struct body *body = &choice->bodies[choice->body];

	*body->end = command;
	body->end = &command->next;
}

void fgv_choice_free(struct choice *choice)
{
	for (unsigned i = 0; i < choice->bodies_count; i++) {
		while (choice->bodies[i].first) {
			struct command *command = choice->bodies[i].first;

			choice->bodies[i].first = command->next;
			fgv_queue_drop(command);
		}
	}
	free(choice);
}

static void run_body(struct softgpu *gpu, const struct choice *choice, unsigned body,
		     unsigned queue)
{
	for (struct command *each = choice->bodies[body].first; each; each = each->next)
		fgv_queue_run(gpu, each, queue);
}

void fgv_choice_run(struct softgpu *gpu, const struct choice *choice, unsigned queue)
{
	uint32_t value = __atomic_load_n(choice->value, __ATOMIC_RELAXED);

	switch (choice->type) {
	case CU_GRAPH_COND_TYPE_IF:
		if (value || choice->bodies_count > 1)
			run_body(gpu, choice, value ? 0 : 1, queue);
		break;
	case CU_GRAPH_COND_TYPE_WHILE:
		while (__atomic_load_n(choice->value, __ATOMIC_RELAXED) &&
		       fgv_queue_fault(gpu) == CUDA_SUCCESS)
			run_body(gpu, choice, 0, queue);
		break;
	case CU_GRAPH_COND_TYPE_SWITCH:
		if (value < choice->bodies_count)
			run_body(gpu, choice, value, queue);
		break;
	}
}
