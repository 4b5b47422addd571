/*
 * The answer by which a CUDA runtime makes sure that it talks to a whole driver: a keyed digest of
 * what both sides can see of the process, the tables and the devices. It is published by several
 * openly licensed projects.
 */
#ifndef FGV_LIBCUDA_INTEGRITY_H
#define FGV_LIBCUDA_INTEGRITY_H

#include <stdint.h>

#define FGV_INTEGRITY_BYTES 16

struct fgv_integrity_device {
	uint8_t uuid[16];
	int32_t pci_domain;
	int32_t pci_bus;
	int32_t pci_device;
};

/* What the digest is of, as it is laid out. */
struct fgv_integrity {
	uint32_t driver_version;
	uint32_t version; /* the runtime's, and which of its questions this is */
	uint32_t process;
	uint32_t thread;
	uint64_t runtime_table; /* addresses: of the table for runtimes, */
	uint64_t table;		/* of the one that this function is in, */
	uint64_t function;	/* and its own */
	uint64_t seconds;
};
_Static_assert(sizeof(struct fgv_integrity) == 48, "digest");
_Static_assert(sizeof(struct fgv_integrity_device) == 28, "digest");

/* The answer to the question @asked of a process with these devices, at most FGV_INTEGRITY_DEVICES.
 */
#define FGV_INTEGRITY_DEVICES 64
void fgv_integrity_answer(const struct fgv_integrity *asked,
			  const struct fgv_integrity_device *devices, uint32_t count,
			  uint8_t answer[FGV_INTEGRITY_BYTES]);

#endif
