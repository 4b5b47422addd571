/*
 * Reading a texture, by the rules of the CUDA programming guide's appendix on texture
 * fetching: where a coordinate leads, in which way neighbours are weighed (in steps of 1/256),
 * and what stands for a texel that is not there.
 */
#include <math.h>
#include <string.h>

#include "common/texel.h"
#include "softgpu/texture.h"

#define WEIGHT_STEPS   256.0f
#define COORDINATE_MAX 1073741824.0f /* beyond any texture, and an integer */
#define OUTSIDE	       (-1)

/* One texel's channels, as floats or as integers. */
struct texel {
	union {
		float f[4];
		uint32_t u[4];
	};
};

/* Texels along one dimension, and the second one's weight. */
struct span {
	int64_t index[2];
	float weight;
};

static bool is_integer(const struct texture *texture)
{
	if (texture->format == CU_AD_FORMAT_FLOAT || texture->format == CU_AD_FORMAT_HALF)
		return false;
	return (texture->how.flags & CU_TRSF_READ_AS_INTEGER) ||
	       fgv_texel_channel_bytes(texture->format) == 4;
}

static CUaddress_mode mode_of(const struct texture *texture, unsigned dim)
{
	CUaddress_mode mode = texture->how.addressMode[dim];

	if (texture->is_linear)
		return CU_TR_ADDRESS_MODE_BORDER;
	if (mode == CU_TR_ADDRESS_MODE_CLAMP || mode == CU_TR_ADDRESS_MODE_BORDER ||
	    (texture->how.flags & CU_TRSF_NORMALIZED_COORDINATES))
		return mode;
	return CU_TR_ADDRESS_MODE_CLAMP;
}

void fgv_texture_settle(struct texture *texture)
{
	texture->is_integer = is_integer(texture);
	for (unsigned d = 0; d < 3; d++)
		texture->modes[d] = mode_of(texture, d);
}

/* The index that stands for @i in a dimension of @size. */
static int64_t address(CUaddress_mode mode, int64_t i, int64_t size)
{
	switch (mode) {
	case CU_TR_ADDRESS_MODE_WRAP:
		return (i % size + size) % size;
	case CU_TR_ADDRESS_MODE_MIRROR:
		i = i < 0 ? -1 - i : i >= size ? 2 * size - 1 - i : i;
		break;
	case CU_TR_ADDRESS_MODE_BORDER:
		return i < 0 || i >= size ? OUTSIDE : i;
	case CU_TR_ADDRESS_MODE_CLAMP:
		break;
	}
	return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* Brings a normalized coordinate into [0, 1) where the mode repeats. */
static float repeat(CUaddress_mode mode, float x)
{
	float whole = floorf(x);

	if (mode == CU_TR_ADDRESS_MODE_WRAP)
		return x - whole;
	if (mode == CU_TR_ADDRESS_MODE_MIRROR)
		return fmodf(whole, 2) != 0 ? 1 - (x - whole) : x - whole;
	return x;
}

static float limit(float x)
{
	if (!(x > -COORDINATE_MAX))
		return isnan(x) ? 0 : -COORDINATE_MAX;
	return x < COORDINATE_MAX ? x : COORDINATE_MAX;
}

/* The greatest whole number that is not above @x, which is within limits. */
static int64_t whole_below(float x)
{
	int32_t whole = (int32_t)x;

	return whole - ((float)whole > x);
}

static struct span find_span(const struct texture *texture, unsigned dim, float x, int64_t size,
			     bool is_filtered)
{
	CUaddress_mode mode = texture->modes[dim];
	struct span span = {.weight = 0};
	int64_t first;

	if (texture->how.flags & CU_TRSF_NORMALIZED_COORDINATES)
		x = repeat(mode, x) * (float)size;
	x = limit(is_filtered ? x - 0.5f : x);
	first = whole_below(x);
	span.index[0] = address(mode, first, size);
	if (is_filtered) {
		span.weight = floorf((x - (float)first) * WEIGHT_STEPS + 0.5f) / WEIGHT_STEPS;
		span.index[1] = address(mode, first + 1, size);
	}
	return span;
}

/* Not by _Float16, which not every compiler has for these processors. */
static float half_to_float(uint16_t bits)
{
	uint32_t word = (uint32_t)(bits & 0x7fff) << 13;
	bool is_finite = (bits & 0x7c00) != 0x7c00;
	float value;

	if (!is_finite)
		word |= 0x7f800000;
	memcpy(&value, &word, sizeof(value));
	if (is_finite)
		value *= 0x1p112f; /* exponents count from 127, not from 15 */
	return bits & 0x8000 ? -value : value;
}

static float from_srgb(float x)
{
	return x <= 0.04045f ? x / 12.92f : powf((x + 0.055f) / 1.055f, 2.4f);
}

/* Channel @c of the texel at @p as an integer: extended, or the bits of a float. */
static uint32_t read_channel(CUarray_format format, const uint8_t *p, unsigned c)
{
	uint32_t word;
	uint16_t half;

	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
		return p[c];
	case CU_AD_FORMAT_SIGNED_INT8:
		return (uint32_t)(int8_t)p[c];
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		memcpy(&half, p + 2 * c, sizeof(half));
		return format == CU_AD_FORMAT_SIGNED_INT16 ? (uint32_t)(int16_t)half : half;
	default:
		memcpy(&word, p + 4 * c, sizeof(word));
		return word;
	}
}

static float scale(float value, float most)
{
	return value < -most ? -1 : value / most;
}

static float channel_as_float(const struct texture *texture, uint32_t bits, unsigned c)
{
	float value;

	switch (texture->format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
		value = (float)bits / 255;
		return texture->how.flags & CU_TRSF_SRGB && c < 3 ? from_srgb(value) : value;
	case CU_AD_FORMAT_SIGNED_INT8:
		return scale((float)(int32_t)bits, 127);
	case CU_AD_FORMAT_UNSIGNED_INT16:
		return (float)bits / 65535;
	case CU_AD_FORMAT_SIGNED_INT16:
		return scale((float)(int32_t)bits, 32767);
	case CU_AD_FORMAT_HALF:
		return half_to_float((uint16_t)bits);
	default:
		memcpy(&value, &bits, sizeof(value));
		return value;
	}
}

static struct texel border_of(const struct texture *texture)
{
	struct texel texel = {.u = {0}};

	if (texture->is_linear)
		return texel;
	for (unsigned c = 0; c < 4; c++) {
		if (texture->is_integer)
			memcpy(&texel.u[c], &texture->how.borderColor[c], sizeof(texel.u[c]));
		else
			texel.f[c] = texture->how.borderColor[c];
	}
	return texel;
}

/* What a channel that is not there reads as: 0, the last 1. */
static void read_texel(const struct texture *texture, const uint8_t *p, struct texel *texel)
{
	*texel = (struct texel){.u = {0}};
	if (texture->is_integer)
		texel->u[3] = 1;
	else
		texel->f[3] = 1;
	if (texture->format == CU_AD_FORMAT_FLOAT) {
		memcpy(texel->f, p, texture->texel_bytes);
		return;
	}
	for (unsigned c = 0; c < texture->channels; c++) {
		texel->u[c] = read_channel(texture->format, p, c);
		if (!texture->is_integer)
			texel->f[c] = channel_as_float(texture, texel->u[c], c);
	}
}

/* The texel at @index of a level, of which OUTSIDE is none. */
static bool fetch(const struct texture *texture, const struct texture_level *level,
		  struct memory_view *view, const int64_t index[3], struct texel *texel)
{
	uint64_t at = level->address + (uint64_t)index[0] * texture->texel_bytes +
		      (uint64_t)index[1] * level->pitch + (uint64_t)index[2] * level->slice;

	if (index[0] < 0 || index[1] < 0 || index[2] < 0) {
		*texel = border_of(texture);
		return true;
	}
	if (!fgv_softgpu_view_has(view, at, at + texture->texel_bytes))
		return false;
	read_texel(texture, (const uint8_t *)(uintptr_t)at, texel);
	return true;
}

/* The mean of 2, 4 or 8 neighbours: two in each of @dims dimensions. */
static bool filter(const struct texture *texture, const struct texture_level *level,
		   struct memory_view *view, unsigned dims, const struct span spans[3],
		   struct texel *texel)
{
	struct texel sum = {.f = {0}};

	for (unsigned corner = 0; corner < 1u << dims; corner++) {
		int64_t index[3] = {spans[0].index[0], spans[1].index[0], spans[2].index[0]};
		struct texel part;
		float weight = 1;

		for (unsigned d = 0; d < dims; d++) {
			unsigned second = corner >> d & 1;

			index[d] = spans[d].index[second];
			weight *= second ? spans[d].weight : 1 - spans[d].weight;
		}
		if (weight == 0)
			continue;
		if (!fetch(texture, level, view, index, &part))
			return false;
		for (unsigned c = 0; c < 4; c++)
			sum.f[c] += weight * part.f[c];
	}
	*texel = sum;
	return true;
}

static bool sample_level(const struct texture *texture, const struct texture_level *level,
			 struct memory_view *view, const struct texture_point *point,
			 struct texel *texel)
{
	bool is_filtered = texture->how.filterMode == CU_TR_FILTER_MODE_LINEAR && !point->is_int &&
			   !texture->is_integer;
	struct span spans[3] = {{.index = {0, 0}}, {.index = {0, 0}}, {.index = {0, 0}}};
	int64_t index[3];

	if (point->dims < 3)
		spans[2].index[0] = address(CU_TR_ADDRESS_MODE_CLAMP, point->slice, level->size[2]);
	for (unsigned d = 0; d < point->dims; d++) {
		if (point->is_int)
			spans[d].index[0] =
				address(texture->modes[d], point->at[d].i, level->size[d]);
		else
			spans[d] =
				find_span(texture, d, point->at[d].f, level->size[d], is_filtered);
	}
	if (is_filtered)
		return filter(texture, level, view, point->dims, spans, texel);
	for (unsigned d = 0; d < 3; d++)
		index[d] = spans[d].index[0];
	return fetch(texture, level, view, index, texel);
}

/* The level to read, and the weight of the one behind it. */
static unsigned find_level(const struct texture *texture, float lod, float *weight)
{
	float last = (float)(texture->levels_count - 1);

	*weight = 0;
	if (texture->levels_count == 1)
		return 0;
	lod += texture->how.mipmapLevelBias;
	lod = fmaxf(lod, texture->how.minMipmapLevelClamp);
	lod = fmaxf(fminf(lod, fminf(texture->how.maxMipmapLevelClamp, last)), 0);
	if (texture->how.mipmapFilterMode == CU_TR_FILTER_MODE_POINT)
		return (unsigned)floorf(lod + 0.5f);
	*weight = floorf((lod - floorf(lod)) * WEIGHT_STEPS) / WEIGHT_STEPS;
	return (unsigned)floorf(lod);
}

bool fgv_texture_sample(const struct texture *texture, struct memory_view *view,
			const struct texture_point *point, uint32_t out[4])
{
	struct texel texel, behind;
	float weight;
	unsigned level = find_level(texture, point->lod, &weight);

	if (!sample_level(texture, &texture->levels[level], view, point, &texel))
		return false;
	if (weight > 0 && !texture->is_integer) {
		if (!sample_level(texture, &texture->levels[level + 1], view, point, &behind))
			return false;
		for (unsigned c = 0; c < 4; c++)
			texel.f[c] += weight * (behind.f[c] - texel.f[c]);
	}
	memcpy(out, texel.u, sizeof(texel.u));
	return true;
}

/* The axis that is the longest, x before y before z; then the other two on its face. */
uint32_t fgv_texture_face(const float direction[3], float *s, float *t)
{
	float x = direction[0], y = direction[1], z = direction[2];
	float ax = fabsf(x), ay = fabsf(y), az = fabsf(z), m;
	uint32_t face;

	if (ax >= ay && ax >= az) {
		face = x < 0 ? 1 : 0;
		m = ax;
		*s = x < 0 ? z : -z;
		*t = -y;
	} else if (ay >= az) {
		face = y < 0 ? 3 : 2;
		m = ay;
		*s = x;
		*t = y < 0 ? -z : z;
	} else {
		face = z < 0 ? 5 : 4;
		m = az;
		*s = z < 0 ? -x : x;
		*t = -y;
	}
	*s = (*s / m + 1) / 2;
	*t = (*t / m + 1) / 2;
	return face;
}
