/* Video instructions: what one does, as the lowering says it and the handler reads it. */
#ifndef FGV_SOFTGPU_VIDEO_H
#define FGV_SOFTGPU_VIDEO_H

#include <stdbool.h>
#include <stdint.h>

enum video_op {
	VIDEO_ADD, VIDEO_SUB, VIDEO_ABSDIFF, VIDEO_MIN, VIDEO_MAX, VIDEO_AVRG, VIDEO_SHL, VIDEO_SHR,
	VIDEO_SET
};
enum video_compare { VIDEO_EQ, VIDEO_NE, VIDEO_LT, VIDEO_LE, VIDEO_GT, VIDEO_GE };
/* What becomes of the result and the third operand. */
enum video_second { VIDEO_ALONE, VIDEO_MERGE, VIDEO_PLUS, VIDEO_LESSER, VIDEO_GREATER };

struct video {
	uint8_t op;
	uint8_t compare; /* of VIDEO_SET */
	uint8_t second;
	bool sat;
	bool wrap; /* of a shift */
	bool signed_d;
	bool signed_a;
	bool signed_b;
	/* Elements, of @bits each: 1 of 32, 2 of 16, or 4 of 8. */
	uint8_t elements;
	uint8_t bits;
	uint8_t mask; /* elements that are computed */
	/* Which element of {b, a} each is: the first are a's. Of one, its lowest bit and its width. */
	uint8_t select_a[4];
	uint8_t select_b[4];
	uint8_t bits_a;
	uint8_t bits_b;
	/* Of one: where in the result it goes. */
	uint8_t place_d;
	uint8_t bits_d;
};

#endif
