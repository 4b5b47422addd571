/*
 * Images of a guest's with managed variables, whose PTX is changed and printed before a GPU gets
 * it: what comes out can be read, and has no managed variable any more that was placed.
 *
 * The first byte says which variables are placed where; the image follows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/placed.h"
#include "ptx/ptx.h"
#include "tests/fuzz/target.h"

#define NAMES_MAX 4

struct placing {
	struct fgv_gpu_placed placed[NAMES_MAX];
	char *names[NAMES_MAX];
	size_t count;
	unsigned how;
};

/* Room of a variable's own size, so that AddressSanitizer sees what is written beside it. */
static void add(const char *name, uint64_t bytes, void *arg)
{
	struct placing *placing = arg;
	struct fgv_gpu_placed *placed = &placing->placed[placing->count];

	if (placing->count == NAMES_MAX || bytes > 1 << 20 || !(placing->how >> placing->count & 1))
		return;
	placing->names[placing->count] = strdup(name);
	*placed = (struct fgv_gpu_placed){.name = placing->names[placing->count],
					  .memory = malloc(bytes ? bytes : 1),
					  .bytes = bytes};
	if (!placed->name || !placed->memory)
		abort();
	placing->count++;
}

static void check_text(const char *text)
{
	struct ptx_module *module;
	struct ptx_error error;
	int err = fgv_ptx_parse(text, strlen(text), &module, &error);

	if (err == -EINVAL)
		abort();
	if (!err)
		fgv_ptx_destroy(module);
}

static void place(const uint8_t *data, size_t len, struct placing *placing)
{
	struct fgv_fatbin_texts texts;
	char log[256];

	if (fgv_placed_texts(data, len, FGV_FATBIN_ANY_SM, placing->placed, placing->count, log,
			     sizeof(log), &texts) != CUDA_SUCCESS)
		return;
	for (size_t i = 0; i < texts.count; i++)
		check_text(texts.texts[i]);
	fgv_fatbin_texts_free(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct placing placing = {.how = len ? data[0] : 0};
	char log[256];

	if (!len)
		return 0;
	if (fgv_placed_list(data + 1, len - 1, FGV_FATBIN_ANY_SM, add, &placing, log,
			    sizeof(log)) == CUDA_SUCCESS)
		place(data + 1, len - 1, &placing);
	for (size_t i = 0; i < placing.count; i++) {
		free(placing.names[i]);
		free(placing.placed[i].memory);
	}
	return 0;
}
