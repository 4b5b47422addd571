/*
 * Follows points of a beating heart's wall through ultrasound images. A point is where the
 * piece of image around it, as the first image has it, is found again: a block of threads
 * looks for it at all places near the last one, a thread at each, and takes the place with
 * the least sum of squared differences. Each iteration sends the device an image and brings
 * back where the points are now: a program that waits for each of its kernels. The tracks of up
 * to 256 points are compared, exactly; of more points, those of a random choice of 256.
 */
#include "workload.h"

#include <algorithm>
#include <vector>

#define EDGE	256 /* of an image, in pixels */
#define PIXELS	(EDGE * EDGE)
#define PIECE	25 /* edge of what is compared */
#define REACH	7  /* pixels that a point moves at most in one image, either way */
#define PLACES	(2 * REACH + 1)
#define WINDOW	(PIECE + 2 * REACH)
#define BLOCK	256
#define FRAMES	8	     /* after the first image */
#define LEAST	(WINDOW / 2) /* coordinate that a point can have, so that the window fits */
#define MOST	(EDGE - 1 - WINDOW / 2)
#define SAMPLES 256
#define NOTHING 0xffffffffffffffffull

static_assert(PLACES * PLACES <= BLOCK, "a thread for each place");

struct point {
	int x, y;
	int difference; /* of its piece of image from that of the start */
};

/* The difference in front of the place: the least of these numbers is the best place. */
__device__ static unsigned long long compare(const int piece[PIECE][PIECE],
					     const int window[WINDOW][WINDOW], int place)
{
	int left = place % PLACES, top = place / PLACES;
	unsigned difference = 0;

	for (int y = 0; y < PIECE; y++)
		for (int x = 0; x < PIECE; x++) {
			int d = piece[y][x] - window[top + y][left + x];

			difference += d * d;
		}
	return (unsigned long long)difference << 32 | (unsigned)place;
}

/* A block for each point; @starts are the points in image @first. */
__global__ void track(struct point *to, const struct point *from, const struct point *starts,
		      const unsigned char *first, const unsigned char *image,
		      unsigned long long *count)
{
	__shared__ int piece[PIECE][PIECE], window[WINDOW][WINDOW];
	__shared__ unsigned long long best;
	struct point start = starts[blockIdx.x], point = from[blockIdx.x];
	int me = threadIdx.x;

	workload_count(count);
	if (me == 0)
		best = NOTHING;
	for (int i = me; i < PIECE * PIECE; i += BLOCK)
		piece[i / PIECE][i % PIECE] = first[(start.y - PIECE / 2 + i / PIECE) * EDGE +
						    start.x - PIECE / 2 + i % PIECE];
	for (int i = me; i < WINDOW * WINDOW; i += BLOCK)
		window[i / WINDOW][i % WINDOW] = image[(point.y - WINDOW / 2 + i / WINDOW) * EDGE +
						       point.x - WINDOW / 2 + i % WINDOW];
	__syncthreads();
	if (me < PLACES * PLACES)
		atomicMin(&best, compare(piece, window, me));
	__syncthreads();
	if (me == 0) {
		int place = (int)(best & 0xffffffff);

		point.x = min(max(point.x + place % PLACES - REACH, LEAST), MOST);
		point.y = min(max(point.y + place / PLACES - REACH, LEAST), MOST);
		point.difference = (int)(best >> 32);
		to[blockIdx.x] = point;
	}
}

struct heartwall : workload {
	std::vector<unsigned char> images; /* the first one, then FRAMES more */
	std::vector<struct point> starts, now;
	unsigned char *first, *image;
	struct point *device_starts;
	struct point *points[2]; /* iteration i writes points[i % 2] */

	double units() const override
	{
		return (double)size;
	}

	/* Speckles four pixels wide, at a place that need not be a pixel's. */
	static float speckle(const std::vector<float> &grains, float x, float y)
	{
		int column = (int)(x / 4), row = (int)(y / 4);
		float right = x / 4 - (float)column, down = y / 4 - (float)row;
		const float *grain = &grains[row * EDGE + column];

		return (grain[0] * (1 - right) + grain[1] * right) * (1 - down) +
		       (grain[EDGE] * (1 - right) + grain[EDGE + 1] * right) * down;
	}

	/* The heart, which contracts towards the middle, and noise. */
	void draw(const std::vector<float> &grains, int frame, uint64_t *dice)
	{
		float scale = 1 + 0.05f * (float)frame;

		for (int i = 0; i < PIXELS; i++) {
			float x = (float)(i % EDGE - EDGE / 2) * scale + EDGE;
			float y = (float)(i / EDGE - EDGE / 2) * scale + EDGE;
			int noise = (int)(workload_random(dice) % 16);

			images[frame * PIXELS + i] =
				(unsigned char)(speckle(grains, x, y) + (float)noise);
		}
	}

	/* Points on the wall, a ring about the middle. */
	void allocate() override
	{
		std::vector<float> grains((size_t)PIXELS), random(2 * (size_t)size);
		uint64_t dice = 3;

		images.resize((FRAMES + 1) * PIXELS);
		starts.resize(size);
		now.resize(size);
		workload_fill(grains.data(), grains.size(), 0, 239, 1);
		workload_fill(random.data(), random.size(), 0, 1, 2);
		for (int frame = 0; frame <= FRAMES; frame++)
			draw(grains, frame, &dice);
		for (size_t i = 0; i < starts.size(); i++) {
			float angle = random[2 * i] * (float)(2 * M_PI);
			float radius = 45 + 35 * random[2 * i + 1];

			starts[i] = {EDGE / 2 + (int)(radius * cosf(angle)),
				     EDGE / 2 + (int)(radius * sinf(angle)), 0};
		}
		for (unsigned char **memory : {&first, &image})
			CUDA(this, cudaMalloc(memory, PIXELS));
		for (struct point **memory : {&device_starts, &points[0], &points[1]})
			CUDA(this, cudaMalloc(memory, size * sizeof(struct point)));
	}

	void load() override
	{
		size_t bytes = size * sizeof(struct point);

		CUDA(this, cudaMemcpy(first, images.data(), PIXELS, cudaMemcpyHostToDevice));
		CUDA(this, cudaMemset(image, WORKLOAD_POISON, PIXELS));
		CUDA(this, cudaMemcpy(device_starts, starts.data(), bytes, cudaMemcpyHostToDevice));
		for (struct point *memory : points)
			CUDA(this, cudaMemset(memory, WORKLOAD_POISON, bytes));
	}

	void step(long i) override
	{
		const unsigned char *next = &images[(i % round + 1) * PIXELS];
		const struct point *from = i % round ? points[(i + 1) % 2] : device_starts;

		CUDA(this, cudaMemcpy(image, next, PIXELS, cudaMemcpyHostToDevice));
		track<<<(unsigned)size, BLOCK>>>(points[i % 2], from, device_starts, first, image,
						 count);
		workload_cuda(this, cudaGetLastError(), "launch of track");
		workload_fetch(this, now, points[i % 2]);
	}

	int difference(const struct point &start, int column, int row,
		       const unsigned char *later) const
	{
		int sum = 0;

		for (int y = -(PIECE / 2); y <= PIECE / 2; y++)
			for (int x = -(PIECE / 2); x <= PIECE / 2; x++) {
				int d = images[(start.y + y) * EDGE + start.x + x] -
					later[(row + y) * EDGE + column + x];

				sum += d * d;
			}
		return sum;
	}

	struct point reference_step(const struct point &start, const struct point &from,
				    const unsigned char *later) const
	{
		struct point best = {0, 0, INT32_MAX};

		for (int y = from.y - REACH; y <= from.y + REACH; y++)
			for (int x = from.x - REACH; x <= from.x + REACH; x++) {
				int d = difference(start, x, y, later);

				if (d < best.difference)
					best = {x, y, d};
			}
		best.x = std::clamp(best.x, LEAST, MOST);
		best.y = std::clamp(best.y, LEAST, MOST);
		return best;
	}

	bool verify_point(size_t i) const
	{
		struct point right = starts[i];

		for (long frame = 1; frame <= workload_depth(this); frame++)
			right = reference_step(starts[i], right, &images[frame * PIXELS]);
		return workload_same(this, now[i].x, right.x, 3 * i) &&
		       workload_same(this, now[i].y, right.y, 3 * i + 1) &&
		       workload_same(this, now[i].difference, right.difference, 3 * i + 2);
	}

	bool verify() override
	{
		uint64_t dice = 4;

		for (size_t i = 0; i < starts.size() && i < SAMPLES; i++)
			if (!verify_point(workload_sample(i, SAMPLES, starts.size(), &dice)))
				return false;
		return true;
	}

	void release() override
	{
		for (unsigned char *memory : {first, image})
			CUDA(this, cudaFree(memory));
		for (struct point *memory : {device_starts, points[0], points[1]})
			CUDA(this, cudaFree(memory));
	}
};

int main(int argc, char **argv)
{
	struct heartwall w = {};

	w.name = "heartwall";
	w.about = "Follows points of a heart's wall from image to image and checks the tracks.";
	w.size_about = "points";
	w.units_about = "one point in one image";
	w.size = 20;
	w.max_size = 1L << 24;
	w.iterations = 4;
	w.sync_every = 1;
	w.round = FRAMES;
	w.kernels = 1;
	w.growth = 1;
	workload_main(&w, argc, argv);
}
