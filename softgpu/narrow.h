/*
 * Conversions to the short floating-point types in any rounding mode, and from those
 * of eight bits. The result's bits are in the low end of the value; of tf32 as in a f32.
 */
#ifndef FGV_SOFTGPU_NARROW_H
#define FGV_SOFTGPU_NARROW_H

#include <stdbool.h>
#include <stdint.h>

enum narrow_format { NARROW_F16, NARROW_BF16, NARROW_TF32, NARROW_E4M3, NARROW_E5M2 };
enum narrow_round { NARROW_NEAREST, NARROW_ZERO, NARROW_DOWN, NARROW_UP, NARROW_AWAY };

/* Both in one byte, with what happens to negative and to infinite results. */
#define NARROW_CONTROL(format, round) ((unsigned)(format) | (unsigned)(round) << 3)
#define NARROW_FORMAT(control)	      ((control)&7)
#define NARROW_ROUND(control)	      ((control) >> 3 & 7)
#define NARROW_SATFINITE	      64u
#define NARROW_RELU		      128u

uint32_t fgv_softgpu_narrow(double value, unsigned control);
/* As f16: exact. */
uint16_t fgv_softgpu_from_e4m3(uint8_t value);
uint16_t fgv_softgpu_from_e5m2(uint8_t value);

#endif
