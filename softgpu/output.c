/* Output of kernels; see output.h. */
#include "softgpu/output.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct output_record {
	STAILQ_ENTRY(output_record) link;
	size_t len;
	size_t taken;
	char text[];
};

void fgv_softgpu_output_init(struct output *output)
{
	memset(output, 0, sizeof(*output));
	pthread_mutex_init(&output->lock, NULL);
	output->fifo_bytes = FGV_OUTPUT_FIFO_BYTES;
	for (unsigned i = 0; i < FGV_ARRAY_LEN(output->streams); i++)
		STAILQ_INIT(&output->streams[i].records);
}

/* The oldest record goes. */
static void drop_first(struct output_stream *s)
{
	struct output_record *r = STAILQ_FIRST(&s->records);

	STAILQ_REMOVE_HEAD(&s->records, link);
	s->bytes -= r->len;
	if (s->before == r)
		s->before = NULL;
	else if (!s->before)
		s->new_bytes -= r->len;
	free(r);
}

/* The oldest record of the running kernel goes. */
static void drop_first_new(struct output_stream *s)
{
	struct output_record *r;

	if (!s->before) {
		drop_first(s);
		return;
	}
	r = STAILQ_NEXT(s->before, link);
	STAILQ_REMOVE_AFTER(&s->records, s->before, link);
	s->bytes -= r->len;
	s->new_bytes -= r->len;
	free(r);
}

void fgv_softgpu_output_fini(struct output *output)
{
	for (unsigned i = 0; i < FGV_ARRAY_LEN(output->streams); i++) {
		while (!STAILQ_EMPTY(&output->streams[i].records))
			drop_first(&output->streams[i]);
	}
	pthread_mutex_destroy(&output->lock);
}

CUresult fgv_softgpu_output_resize(struct output *output, size_t fifo_bytes)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&output->lock);
	if (!output->used && fifo_bytes <= FGV_OUTPUT_KEPT_BYTES) {
		output->fifo_bytes = fgv_max_u64(fifo_bytes, FGV_OUTPUT_RECORD_MAX);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&output->lock);
	return result;
}

void fgv_softgpu_output_turn(struct output *output)
{
	pthread_mutex_lock(&output->lock);
	for (unsigned i = 0; i < FGV_ARRAY_LEN(output->streams); i++) {
		struct output_stream *s = &output->streams[i];

		s->before = STAILQ_LAST(&s->records, output_record, link);
		s->new_bytes = 0;
	}
	pthread_mutex_unlock(&output->lock);
}

bool fgv_softgpu_output_add(struct output *output, unsigned stream, const char *text, size_t len)
{
	struct output_stream *s = &output->streams[stream];
	struct output_record *r = malloc(sizeof(*r) + len);

	if (!r)
		return false;
	r->len = len;
	r->taken = 0;
	memcpy(r->text, text, len);
	pthread_mutex_lock(&output->lock);
	while (s->new_bytes && s->new_bytes + len > output->fifo_bytes)
		drop_first_new(s);
	while (s->bytes && s->bytes + len > FGV_OUTPUT_KEPT_BYTES)
		drop_first(s);
	output->used = true;
	STAILQ_INSERT_TAIL(&s->records, r, link);
	s->bytes += len;
	s->new_bytes += len;
	__atomic_store_n(&output->waiting, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&output->lock);
	return true;
}

size_t fgv_softgpu_output_take(struct output *output, unsigned stream, char *text, size_t room)
{
	struct output_stream *s = &output->streams[stream];
	size_t done = 0;

	pthread_mutex_lock(&output->lock);
	while (done < room && !STAILQ_EMPTY(&s->records)) {
		struct output_record *r = STAILQ_FIRST(&s->records);
		size_t part = fgv_min_u64(room - done, r->len - r->taken);

		memcpy(text + done, r->text + r->taken, part);
		done += part;
		r->taken += part;
		if (r->taken == r->len)
			drop_first(s);
	}
	if (STAILQ_EMPTY(&output->streams[0].records) && STAILQ_EMPTY(&output->streams[1].records))
		__atomic_store_n(&output->waiting, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&output->lock);
	return done;
}
