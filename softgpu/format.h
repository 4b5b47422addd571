/*
 * printf as kernels have it: a format and its arguments, which lie in the memory of the
 * lane that prints, become text.
 */
#ifndef FGV_SOFTGPU_FORMAT_H
#define FGV_SOFTGPU_FORMAT_H

#include "softgpu/machine.h"

/* What reads as CUDA's null string is no fault; any other address that may not be read is. */
struct formatted {
	size_t len;  /* of the text */
	int count;   /* arguments used; what printf returns */
	bool faulty; /* an address that must not be read */
};

/*
 * Writes up to @room bytes of text. The arguments lie one behind the other from @args on,
 * each at a multiple of its own size; integers have been promoted, floats made doubles.
 */
struct formatted fgv_softgpu_format(struct warp *w, unsigned lane, uint64_t format, uint64_t args,
				    char *text, size_t room);

/* Reads a string of up to @room - 1 characters and ends it with a NUL. False: a fault. */
bool fgv_softgpu_read_string(struct warp *w, unsigned lane, uint64_t address, char *text,
			     size_t room);

#endif
