/*
 * The little that FairGV says to, and hears of, NVIDIA's resource manager (/dev/nvidiactl):
 * numbers and layouts of a few calls, as they are in drivers 550 to 595. Every call returns 0 and
 * leaves its status in the structure.
 */
#ifndef FGV_BACKEND_SCHED_RM_H
#define FGV_BACKEND_SCHED_RM_H

#include <linux/ioctl.h>
#include <stddef.h>
#include <stdint.h>

#define FGV_RM_TYPE    'F'
#define FGV_RM_FREE    0x29
#define FGV_RM_CONTROL 0x2a
#define FGV_RM_ALLOC   0x2b
#define FGV_RM_XFER    211 /* wraps any of them */

/* /dev/nvidiactl */
#define FGV_RM_MAJOR 195
#define FGV_RM_MINOR 255

/* Classes of objects. A channel's ends with CHANNEL in every generation of GPUs. */
#define FGV_RM_SUBDEVICE     0x2080
#define FGV_RM_GROUP	     0xa06c
#define FGV_RM_IS_CHANNEL(c) ((c) <= 0xffff && (c) >= 0xa000 && ((c)&0xff) == 0x6f)

#define FGV_RM_ENGINE_COMPUTE 1 /* of a group; 9 and up are those that copy */

enum fgv_rm_command {
	FGV_RM_DISABLE_CHANNELS = 0x2080110b,	/* of a subdevice */
	FGV_RM_SET_TIMESLICE = (int)0xa06c0103, /* of a group */
	FGV_RM_GET_TIMESLICE = (int)0xa06c0104,
	FGV_RM_RESTART_RUNLIST = (int)0xa06f0111, /* of a channel; root or CAP_SYS_NICE */
};

enum fgv_rm_status {
	FGV_RM_OK = 0,
	FGV_RM_NO_RIGHT = 0x1b,
	FGV_RM_BAD_ARGUMENT = 0x1f,
	FGV_RM_BAD_CLIENT = 0x23,
	FGV_RM_NOT_SUPPORTED = 0x56,
	FGV_RM_TIMEOUT = 0x65,
	FGV_RM_TIMEOUT_RETRY = 0x66,
};

struct fgv_rm_control {
	uint32_t client;
	uint32_t object;
	uint32_t command;
	uint32_t flags;
	uint64_t params;
	uint32_t params_len; /* exactly that of the command's */
	uint32_t status;
};
_Static_assert(sizeof(struct fgv_rm_control) == 32, "as the driver has it");
_Static_assert(offsetof(struct fgv_rm_control, params) == 16, "as the driver has it");
_Static_assert(offsetof(struct fgv_rm_control, status) == 28, "as the driver has it");

/* The beginning of both forms, of 32 and 48 bytes. */
struct fgv_rm_alloc {
	uint32_t client;
	uint32_t parent;
	uint32_t object; /* the new one's; after the call what it got */
	uint32_t class;
	uint64_t params;
};
_Static_assert(sizeof(struct fgv_rm_alloc) == 24, "as the driver has it");

#define FGV_RM_ALLOC_SHORT	  32
#define FGV_RM_ALLOC_LONG	  48
#define FGV_RM_ALLOC_SHORT_STATUS 28 /* where the status lies */
#define FGV_RM_ALLOC_LONG_STATUS  40

struct fgv_rm_free {
	uint32_t client;
	uint32_t parent;
	uint32_t object;
	uint32_t status;
};
_Static_assert(sizeof(struct fgv_rm_free) == 16, "as the driver has it");

struct fgv_rm_xfer {
	uint32_t command;
	uint32_t size;
	uint64_t data;
};
_Static_assert(sizeof(struct fgv_rm_xfer) == 16, "as the driver has it");

struct fgv_rm_group_params {
	uint32_t error_object;
	uint32_t ecc_error_object;
	uint32_t address_space;
	uint32_t engine;
	uint8_t is_vgpu;
	uint8_t reserved[3];
};
_Static_assert(sizeof(struct fgv_rm_group_params) == 20, "as the driver has it");
_Static_assert(offsetof(struct fgv_rm_group_params, engine) == 12, "as the driver has it");

struct fgv_rm_disable {
	uint8_t disable;
	uint8_t reserved1[3];
	uint32_t count; /* 1 to 64 */
	uint8_t only_scheduling;
	uint8_t rewind; /* 0: it loses work */
	uint8_t reserved2[6];
	uint64_t event; /* 0: nobody but the kernel may give one */
	uint32_t clients[64];
	uint32_t channels[64];
};
_Static_assert(sizeof(struct fgv_rm_disable) == 536, "as the driver has it");
_Static_assert(offsetof(struct fgv_rm_disable, event) == 16, "as the driver has it");
_Static_assert(offsetof(struct fgv_rm_disable, clients) == 24, "as the driver has it");
_Static_assert(offsetof(struct fgv_rm_disable, channels) == 280, "as the driver has it");

struct fgv_rm_timeslice {
	uint64_t us;
};
_Static_assert(sizeof(struct fgv_rm_timeslice) == 8, "as the driver has it");

struct fgv_rm_restart {
	uint8_t force;
	uint8_t bypass_wait;
};
_Static_assert(sizeof(struct fgv_rm_restart) == 2, "as the driver has it");

#define FGV_RM_IOCTL(number, type) _IOWR(FGV_RM_TYPE, number, type)
_Static_assert(FGV_RM_IOCTL(FGV_RM_CONTROL, struct fgv_rm_control) == 0xc020462a, "its number");

#endif
