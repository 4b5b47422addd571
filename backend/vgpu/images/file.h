/*
 * An image in a file without a name that nobody can change any more, its writer included.
 *
 * Threads: any.
 */
#ifndef FGV_VGPU_IMAGES_FILE_H
#define FGV_VGPU_IMAGES_FILE_H

#include <stdint.h>

/* A file with a copy of @image, and a byte of zero behind it. A negative errno. */
int fgv_image_file_create(const void *image, uint64_t len);

/*
 * Whether @fd is such a file, for an image of @len bytes, and takes no more memory than that: 0, or
 * -EBADF. Whatever it is, this does not wait.
 */
int fgv_image_file_check(int fd, uint64_t len);

/* Its contents, with the byte of zero, for munmap() of @len + 1 bytes; NULL. It is checked. */
const char *fgv_image_file_map(int fd, uint64_t len);

#endif
