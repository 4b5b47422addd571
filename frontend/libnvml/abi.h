/*
 * What callers of NVML and this library must agree on: codes, and the structures of the
 * functions that are implemented. Written from NVML's public description, and checked by size,
 * so that the library does not depend on a toolkit that has nvml.h.
 */
#ifndef FGV_LIBNVML_ABI_H
#define FGV_LIBNVML_ABI_H

#include <stddef.h>
#include <stdint.h>

enum fgv_nvml {
	FGV_NVML_SUCCESS = 0,
	FGV_NVML_UNINITIALIZED = 1,
	FGV_NVML_INVALID_ARGUMENT = 2,
	FGV_NVML_NOT_SUPPORTED = 3,
	FGV_NVML_NO_PERMISSION = 4,
	FGV_NVML_NOT_FOUND = 6,
	FGV_NVML_INSUFFICIENT_SIZE = 7,
	FGV_NVML_DRIVER_NOT_LOADED = 9,
	FGV_NVML_TIMEOUT = 10,
	FGV_NVML_GPU_IS_LOST = 15,
	FGV_NVML_OPERATING_SYSTEM = 17,
	FGV_NVML_VERSION_MISMATCH = 18,
	FGV_NVML_IN_USE = 19,
	FGV_NVML_MEMORY = 20,
	FGV_NVML_NO_DATA = 21,
	FGV_NVML_ARGUMENT_VERSION = 25,
	FGV_NVML_UNKNOWN = 999,
};

/* A structure that says which version of it the caller has begins with this. */
#define FGV_NVML_VERSION(type, number) ((uint32_t)(sizeof(type) | (number) << 24))

struct fgv_nvml_memory {
	uint64_t total;
	uint64_t free;
	uint64_t used;
};
_Static_assert(sizeof(struct fgv_nvml_memory) == 24, "NVML");

struct fgv_nvml_memory_v2 {
	uint32_t version;
	uint32_t padding;
	uint64_t total;
	uint64_t reserved;
	uint64_t free;
	uint64_t used;
};
_Static_assert(sizeof(struct fgv_nvml_memory_v2) == 40, "NVML");

struct fgv_nvml_utilization {
	uint32_t gpu; /* percent, both */
	uint32_t memory;
};

struct fgv_nvml_process_v1 {
	uint32_t pid;
	uint32_t padding;
	uint64_t memory_bytes;
};
_Static_assert(sizeof(struct fgv_nvml_process_v1) == 16, "NVML");

#define FGV_NVML_NO_INSTANCE UINT32_MAX

struct fgv_nvml_process {
	uint32_t pid;
	uint32_t padding;
	uint64_t memory_bytes;
	uint32_t gpu_instance;
	uint32_t compute_instance;
};
_Static_assert(sizeof(struct fgv_nvml_process) == 24, "NVML");

struct fgv_nvml_process_detail {
	uint32_t pid;
	uint32_t padding;
	uint64_t memory_bytes;
	uint32_t gpu_instance;
	uint32_t compute_instance;
	uint64_t protected_bytes;
};
_Static_assert(sizeof(struct fgv_nvml_process_detail) == 32, "NVML");

#define FGV_NVML_MODE_COMPUTE 0

struct fgv_nvml_process_list {
	uint32_t version;
	uint32_t mode; /* of processes: 0 compute, 1 graphics, 2 MPS */
	uint32_t count;
	uint32_t padding;
	struct fgv_nvml_process_detail *processes;
};
_Static_assert(sizeof(struct fgv_nvml_process_list) == 24, "NVML");

/* What a process has used until a time in microseconds; percents. */
struct fgv_nvml_sample {
	uint32_t pid;
	uint32_t padding;
	uint64_t time_us;
	uint32_t sm;
	uint32_t memory;
	uint32_t encoder;
	uint32_t decoder;
};
_Static_assert(sizeof(struct fgv_nvml_sample) == 32, "NVML");

struct fgv_nvml_sample_v1 {
	uint64_t time_us;
	uint32_t pid;
	uint32_t sm;
	uint32_t memory;
	uint32_t encoder;
	uint32_t decoder;
	uint32_t jpeg;
	uint32_t ofa;
	uint32_t padding;
};
_Static_assert(sizeof(struct fgv_nvml_sample_v1) == 40, "NVML");

struct fgv_nvml_samples {
	uint32_t version;
	uint32_t count;
	uint64_t since_us;
	struct fgv_nvml_sample_v1 *samples;
};
_Static_assert(sizeof(struct fgv_nvml_samples) == 24, "NVML");

struct fgv_nvml_pci_v2 {
	char bus_id[16];
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
	uint32_t device_id;
	uint32_t subsystem_id;
	uint32_t reserved[4];
};
_Static_assert(sizeof(struct fgv_nvml_pci_v2) == 52, "NVML");

struct fgv_nvml_pci {
	char bus_id_short[16];
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
	uint32_t device_id;
	uint32_t subsystem_id;
	char bus_id[32];
};
_Static_assert(sizeof(struct fgv_nvml_pci) == 68, "NVML");

struct fgv_nvml_pci_ext {
	uint32_t version;
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
	uint32_t device_id;
	uint32_t subsystem_id;
	uint32_t base_class;
	uint32_t sub_class;
	char bus_id[32];
};
_Static_assert(sizeof(struct fgv_nvml_pci_ext) == 64, "NVML");

#define FGV_NVML_UUID_TEXT  1
#define FGV_NVML_UUID_BYTES 2

struct fgv_nvml_uuid {
	uint32_t version;
	uint32_t type;
	char value[44]; /* text, or 16 bytes */
};
_Static_assert(sizeof(struct fgv_nvml_uuid) == 52, "NVML");

struct fgv_nvml_temperature {
	uint32_t version;
	uint32_t sensor; /* 0: the GPU's */
	int32_t degrees;
};
_Static_assert(sizeof(struct fgv_nvml_temperature) == 12, "NVML");

#define FGV_NVML_TYPE_U32 1

#define FGV_NVML_LINKS_MAX 36

struct fgv_nvml_field {
	uint32_t id;
	uint32_t scope;
	int64_t time_us;
	int64_t latency_us;
	uint32_t type; /* of the value */
	uint32_t status;
	union {
		uint32_t u32;
		uint64_t u64;
	};
};
_Static_assert(sizeof(struct fgv_nvml_field) == 40, "NVML");

struct fgv_nvml_fabric {
	uint8_t cluster[16];
	uint32_t status;
	uint32_t clique;
	uint8_t state;
	uint8_t padding[3];
};
_Static_assert(sizeof(struct fgv_nvml_fabric) == 28, "NVML");

struct fgv_nvml_fabric_v2 {
	uint32_t version;
	struct fgv_nvml_fabric fabric;
	uint32_t health_mask;
};
_Static_assert(sizeof(struct fgv_nvml_fabric_v2) == 36, "NVML");

struct fgv_nvml_fabric_v3 {
	uint32_t version;
	struct fgv_nvml_fabric fabric;
	uint32_t health_mask;
	uint8_t health;
	uint8_t padding[3];
};
_Static_assert(sizeof(struct fgv_nvml_fabric_v3) == 40, "NVML");

/* Confidential computing: all zero where there is none. */
struct fgv_nvml_confidential {
	uint32_t environment;
	uint32_t feature;
	uint32_t tools;
};
_Static_assert(sizeof(struct fgv_nvml_confidential) == 12, "NVML");

struct fgv_nvml_confidential_v1 {
	uint32_t version;
	struct fgv_nvml_confidential state;
	uint32_t several_gpus;
};
_Static_assert(sizeof(struct fgv_nvml_confidential_v1) == 20, "NVML");

#endif
