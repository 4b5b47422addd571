/*
 * Of what the messages of the operations are made, for programs that make messages from nothing:
 * the fuzzers. The table is generated from gpu.api; it is no part of the daemon or of the
 * libraries.
 */
#ifndef FGV_API_SHAPE_H
#define FGV_API_SHAPE_H

#include <stdint.h>

enum fgv_shape_form {
	FGV_SHAPE_NUMBER,   /* 4 bytes */
	FGV_SHAPE_WORD,	    /* 8 bytes */
	FGV_SHAPE_FLOAT,    /* 4 bytes */
	FGV_SHAPE_HANDLE,   /* 4 bytes; of an object of some kind */
	FGV_SHAPE_OPTIONAL, /* the same, or 0 */
	FGV_SHAPE_SOURCE,   /* an offset and a length, 8 bytes each, of what the host reads */
	FGV_SHAPE_SINK,	    /* the same of what it writes */
	FGV_SHAPE_BYTES,    /* data that follows the arguments */
};

struct fgv_shape_field {
	const char *name;
	enum fgv_shape_form form;
	unsigned kind; /* enum fgv_kind of a handle */
	uint16_t offset;
	uint16_t count;
};

struct fgv_shape {
	unsigned in_count, out_count;
	const struct fgv_shape_field *ins, *outs;
};

/* By the operation's number, FGV_OP_MAX + 1 of them. What is no operation has no fields. */
extern const struct fgv_shape fgv_shapes[];

#endif
