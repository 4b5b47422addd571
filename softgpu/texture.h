/*
 * Textures and surfaces: what their objects stand for, and how one is read. The
 * dispatcher makes them; an executor drops them once the kernels queued before are done, so
 * that workers read without a lock.
 */
#ifndef FGV_SOFTGPU_TEXTURE_H
#define FGV_SOFTGPU_TEXTURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "softgpu/memory.h"

#define TEXTURES_MAX	   65536
#define TEXTURE_LEVELS_MAX 32

struct texture_level {
	uint64_t address;
	uint64_t pitch, slice; /* bytes from row to row and from slice to slice */
	int64_t size[3];       /* no 0 */
};

struct texture {
	uint64_t handle; /* what kernels get */
	CUarray_format format;
	unsigned channels;
	unsigned texel_bytes;
	bool is_linear; /* linear memory: beyond its end there is 0 */
	bool is_surface;
	CUDA_TEXTURE_DESC how;
	/* What follows from all this: fgv_texture_settle(). */
	bool is_integer; /* what it gives */
	CUaddress_mode modes[3];
	unsigned levels_count;
	struct texture_level levels[TEXTURE_LEVELS_MAX];
};

/* By index, each atomic; NULL: free. */
struct textures {
	struct texture **slots;
	uint32_t next;	      /* the dispatcher's: where it looks for a free one */
	uint32_t generations; /* goes up with each that is made */
};

/* A place to read at: floats or integers. */
struct texture_point {
	bool is_int;
	union {
		float f;
		int32_t i;
	} at[3];
	unsigned dims;
	uint32_t slice; /* layer and face */
	float lod;
};

CUresult fgv_textures_init(struct textures *textures);
void fgv_textures_fini(struct textures *textures);
/* What @handle names, or NULL. */
const struct texture *fgv_textures_find(const struct textures *textures, uint64_t handle);
void fgv_textures_drop(struct textures *textures, uint64_t handle);

void fgv_texture_settle(struct texture *texture);
/* Reads a texel, filtered as the texture says. False: its memory is not there any more. */
bool fgv_texture_sample(const struct texture *texture, struct memory_view *view,
			const struct texture_point *point, uint32_t out[4]);

/* The face that a direction meets, and where. */
uint32_t fgv_texture_face(const float direction[3], float *s, float *t);

#endif
