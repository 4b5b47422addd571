/*
 * The MD2 message digest (RFC 1319), and HMAC (RFC 2104) with it. It protects nothing: the runtime
 * wants its answer to one question in this form (integrity.h).
 */
#ifndef FGV_LIBCUDA_MD2_H
#define FGV_LIBCUDA_MD2_H

#include <stddef.h>
#include <stdint.h>

#define FGV_MD2_BYTES 16

struct fgv_md2 {
	uint8_t state[FGV_MD2_BYTES];
	uint8_t checksum[FGV_MD2_BYTES];
	uint8_t block[FGV_MD2_BYTES];
	uint32_t filled; /* of the block */
};

void fgv_md2_init(struct fgv_md2 *md2);
void fgv_md2_add(struct fgv_md2 *md2, const void *data, size_t len);
void fgv_md2_finish(struct fgv_md2 *md2, uint8_t digest[FGV_MD2_BYTES]);

/* With a key of one block. */
void fgv_md2_hmac(const uint8_t key[FGV_MD2_BYTES], const void *data, size_t len,
		  uint8_t digest[FGV_MD2_BYTES]);

#endif
