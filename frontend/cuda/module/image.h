/*
 * The fat binaries that nvcc links into a program, as far as the guest must know them:
 * where each container starts and ends, and which entries are machine code of other GPUs than
 * this one. What is in them is the host's to judge.
 *
 * Threads: any.
 */
#ifndef FGV_CUDA_IMAGE_H
#define FGV_CUDA_IMAGE_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct fgv_image_part {
	const void *data;
	uint64_t len;
};

enum fgv_image_kind { FGV_IMAGE_WRAPPER, FGV_IMAGE_CONTAINER, FGV_IMAGE_ELF, FGV_IMAGE_TEXT };

/* What @data, of four bytes at least, begins as; what is nothing else may be PTX. */
enum fgv_image_kind fgv_image_kind(const void *data);

/* The container at @data; -EBADMSG, as below. */
int fgv_image_container(const void *data, struct fgv_image_part *part);

/*
 * The containers that the wrapper at @wrapper names, which become one module: 0, and
 * *parts to be freed by the caller. -EBADMSG if it is no wrapper, or a container is
 * none, or is cut short by the end of the program's segment in which it lies;
 * -ENOMEM.
 */
int fgv_image_read(const void *wrapper, struct fgv_image_part **parts, uint32_t *count);

/* An image as it is sent: one piece behind the other. All zero: nothing yet. */
struct fgv_image_pieces {
	struct iovec *list;
	size_t count;
	uint64_t len; /* of all together */
	struct fgv_image_head *heads;
};

/*
 * Adds what a GPU of @sm may use of @part: all of it but the machine code of other families of
 * GPUs, and of later ones of its own. A container with nothing else, and what is none or malformed,
 * is added as it is. The part stays where it is as long as the pieces are used. 0 or -ENOMEM; the
 * pieces are for fgv_image_pieces_fini() either way.
 */
int fgv_image_trim(const struct fgv_image_part *part, unsigned sm, struct fgv_image_pieces *pieces);
void fgv_image_pieces_copy(const struct fgv_image_pieces *pieces, uint8_t *to);
void fgv_image_pieces_fini(struct fgv_image_pieces *pieces);

/* All of a file, for free(). CUDA_ERROR_FILE_NOT_FOUND, CUDA_ERROR_INVALID_IMAGE: it is empty. */
CUresult fgv_image_read_file(const char *name, char **data, size_t *len);

#endif
