/*
 * MD2 as RFC 1319 describes it; the names of the steps are the RFC's section numbers.
 */
#include "frontend/libcuda/md2.h"

#include <string.h>

#define ROUNDS 18

/* 3.2: a permutation of the bytes, made from the digits of pi. */
static const uint8_t pi[256] = {
	41,  46,  67,  201, 162, 216, 124, 1,	61,  54,  84,  161, 236, 240, 6,   19,	98,  167,
	5,   243, 192, 199, 115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,
	253, 212, 224, 22,  103, 66,  111, 24,	138, 23,  229, 18,  190, 78,  196, 214, 218, 158,
	222, 73,  160, 251, 245, 142, 187, 47,	238, 122, 169, 104, 121, 145, 21,  178, 7,   63,
	148, 194, 16,  137, 11,	 34,  95,  33,	128, 127, 93,  154, 90,	 144, 50,  39,	53,  62,
	204, 231, 191, 247, 151, 3,   255, 25,	48,  179, 72,  165, 181, 209, 215, 94,	146, 42,
	172, 86,  170, 198, 79,	 184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116,
	4,   241, 69,  157, 112, 89,  100, 113, 135, 32,  134, 91,  207, 101, 230, 45,	168, 2,
	27,  96,  37,  173, 174, 176, 185, 246, 28,  70,  97,  105, 52,	 64,  126, 15,	85,  71,
	163, 35,  221, 81,  175, 58,  195, 92,	249, 206, 186, 197, 234, 38,  44,  83,	13,  110,
	133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
	171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,	232, 109,
	233, 203, 213, 254, 59,	 0,   29,  57,	242, 239, 183, 14,  102, 88,  208, 228, 166, 119,
	114, 248, 235, 117, 75,	 10,  49,  68,	80,  180, 143, 237, 31,	 26,  219, 153, 141, 51,
	159, 17,  131, 20,
};

void fgv_md2_init(struct fgv_md2 *md2)
{
	memset(md2, 0, sizeof(*md2));
}

/* 3.2 */
static void add_checksum(struct fgv_md2 *md2, const uint8_t block[FGV_MD2_BYTES])
{
	uint8_t last = md2->checksum[FGV_MD2_BYTES - 1];

	for (int i = 0; i < FGV_MD2_BYTES; i++) {
		md2->checksum[i] ^= pi[block[i] ^ last];
		last = md2->checksum[i];
	}
}

/* 3.4 */
static void add_state(struct fgv_md2 *md2, const uint8_t block[FGV_MD2_BYTES])
{
	uint8_t all[3 * FGV_MD2_BYTES];
	unsigned t = 0;

	for (int i = 0; i < FGV_MD2_BYTES; i++) {
		all[i] = md2->state[i];
		all[FGV_MD2_BYTES + i] = block[i];
		all[2 * FGV_MD2_BYTES + i] = block[i] ^ md2->state[i];
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < sizeof(all); i++)
			t = all[i] ^= pi[t];
		t = (t + round) % 256;
	}
	memcpy(md2->state, all, FGV_MD2_BYTES);
}

void fgv_md2_add(struct fgv_md2 *md2, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++) {
		md2->block[md2->filled++] = bytes[i];
		if (md2->filled < FGV_MD2_BYTES)
			continue;
		add_checksum(md2, md2->block);
		add_state(md2, md2->block);
		md2->filled = 0;
	}
}

/* 3.1: padding to whole blocks, of one to 16 bytes, each of which says how many there are. */
void fgv_md2_finish(struct fgv_md2 *md2, uint8_t digest[FGV_MD2_BYTES])
{
	uint8_t padding[FGV_MD2_BYTES];
	uint32_t len = FGV_MD2_BYTES - md2->filled;

	memset(padding, (int)len, sizeof(padding));
	fgv_md2_add(md2, padding, len);
	memcpy(padding, md2->checksum, sizeof(padding));
	add_state(md2, padding);
	memcpy(digest, md2->state, FGV_MD2_BYTES);
}

static void begin_with_key(struct fgv_md2 *md2, const uint8_t key[FGV_MD2_BYTES], uint8_t pad)
{
	uint8_t block[FGV_MD2_BYTES];

	for (int i = 0; i < FGV_MD2_BYTES; i++)
		block[i] = key[i] ^ pad;
	fgv_md2_init(md2);
	fgv_md2_add(md2, block, sizeof(block));
}

void fgv_md2_hmac(const uint8_t key[FGV_MD2_BYTES], const void *data, size_t len,
		  uint8_t digest[FGV_MD2_BYTES])
{
	struct fgv_md2 md2;

	begin_with_key(&md2, key, 0x36);
	fgv_md2_add(&md2, data, len);
	fgv_md2_finish(&md2, digest);
	begin_with_key(&md2, key, 0x5c);
	fgv_md2_add(&md2, digest, FGV_MD2_BYTES);
	fgv_md2_finish(&md2, digest);
}
