/*
 * When work will be done: what each request costs by itself (cost.h), and how requests overlap
 * on the GPU (overlap.h). Nothing of it is ever charged.
 *
 * Threads: the dispatcher's.
 */
#ifndef FGV_VGPU_FORECAST_H
#define FGV_VGPU_FORECAST_H

#include "api/host.h"
#include "backend/gpu/gpu_ops.h"
#include "backend/vgpu/cost.h"
#include "backend/vgpu/overlap.h"

struct fgv_session;

#define FGV_FORECAST_SHAPES 64

/* The portion of a part (struct fgv_request) that fills the GPU once. */
#define FGV_PORTION_ALL 256u

/* What share of the GPU a launch of this shape takes, so that it is computed once. */
struct fgv_forecast_shape {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t share; /* 0: there is none here */
};

struct fgv_forecast {
	struct fgv_costs costs;
	struct fgv_overlap overlap;
	uint32_t processors;	    /* of the GPU */
	uint32_t processor_threads; /* that each has room for */
	uint32_t processor_blocks;
	struct fgv_forecast_shape shapes[FGV_FORECAST_SHAPES]; /* at their kinds' places */
	uint64_t unknown_ns; /* what a request is taken to cost whose kind was never measured */
};

/* What is known of a request before it is measured. */
struct fgv_expected {
	struct fgv_piece piece;
	uint16_t place; /* of its kind, in costs */
	bool is_trifle; /* next to nothing, whatever its kind */
	bool is_first;	/* of its kind */
};

/* For a GPU that can do what @info says. */
void fgv_forecast_init(struct fgv_forecast *forecast, const struct fgv_device_info *info,
		       uint64_t unknown_ns);

/* How many blocks of so many threads the GPU has room for at once, at most. */
uint64_t fgv_forecast_room(const struct fgv_forecast *forecast, const uint32_t block[3]);

/* What part of the GPU a kernel fills, by the number of its threads: 1 to FGV_SHARE_ALL. */
uint32_t fgv_forecast_share(const struct fgv_forecast *forecast, const uint32_t grid[3],
			    const uint32_t block[3]);

/*
 * The place of a function's parts. What costs has there is what one takes that fills the GPU, with
 * so many threads; those of other sizes take as much more or less.
 */
uint16_t fgv_forecast_part(uint32_t function);
double fgv_forecast_threads(const struct fgv_forecast *forecast);

/* What @request will take, whose handler has run: its subject and amount are known. */
void fgv_forecast_expect(struct fgv_session *session, const struct fgv_request *request,
			 const uint8_t *message, struct fgv_expected *expected);

/* It has gone to the GPU. By how much all work ends later. */
uint64_t fgv_forecast_add(struct fgv_session *session, const struct fgv_request *request,
			  const uint8_t *message, const struct fgv_expected *expected);

/*
 * Whether a request that has not been decoded, of @len bytes of arguments, would be done before
 * the work that is there already. False where that is not known.
 */
bool fgv_forecast_fits(struct fgv_session *session, const struct fgv_request *request,
		       const uint8_t *message, uint32_t len);

/*
 * Whether such a request comes behind work of its stream that is not known to be done. What takes
 * next to nothing does not.
 */
bool fgv_forecast_is_behind(struct fgv_session *session, uint16_t op, const uint8_t *message,
			    uint32_t len);

/* What such a request will take by itself; 0: that is not known. */
uint32_t fgv_forecast_ns(struct fgv_session *session, const struct fgv_request *request,
			 const uint8_t *message, uint32_t len);

#endif
