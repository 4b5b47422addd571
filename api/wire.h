/*
 * What both sides of a session must agree on, beside the operations themselves
 * (gpu.api): the layout of a window, the slot, the limits, and the messages of
 * the local transport's socket. Included by guest and host, so only fixed-width
 * types, no pointers, and a size check under each struct.
 *
 * A window is the shared memory of one session:
 *
 *   0            struct fgv_window_head, one page
 *   lanes_off    lane 0, lane 1, ...  each FGV_LANE_BYTES:
 *                  struct fgv_lane_head | request slots | reply slots | heap
 *   arena_off    bulk data; its first staging_len bytes are kept registered with
 *                the GPU by the host
 *
 * The host never reads the layout from the window: it made it, and keeps its own
 * copy. The guest takes it from the welcome message.
 */
#ifndef FGV_API_WIRE_H
#define FGV_API_WIRE_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

/*
 * For people: the release that a side is of, as far as the wire goes. gpu.api's `version` is the
 * same number. What the sides compare is FGV_API_HASH, which apigen.py makes of gpu.api and of this
 * header; shmring's layout is not in it, so a change there must change this number.
 */
#define FGV_WIRE_VERSION 9

#define FGV_SLOT_BYTES	  128
#define FGV_SLOT_INLINE	  104
#define FGV_SLOT_FIRST	  40  /* of them, those in the slot's first cache line */
#define FGV_REQUEST_SLOTS 256 /* power of two */
#define FGV_REPLY_SLOTS	  64  /* power of two */
#define FGV_LANES_MAX	  128
#define FGV_STAGING_LOANS 16 /* parts of the window that the host may be at work on */
#define FGV_CACHE_LINE	  64
#define FGV_PAGE_BYTES	  4096

/*
 * One message: the arguments of an operation and the bytes that follow them. Up to
 * FGV_SLOT_INLINE bytes travel in the slot, more in the lane's heap. 64 KiB of data,
 * which is what CUDA copies before a pageable copy returns, and room for arguments.
 */
#define FGV_DATA_MAX	(64u * 1024)
#define FGV_MESSAGE_MAX (FGV_DATA_MAX + 512)

#define FGV_LANE_REQUESTS FGV_PAGE_BYTES
#define FGV_LANE_REPLIES  (FGV_LANE_REQUESTS + FGV_REQUEST_SLOTS * FGV_SLOT_BYTES)
#define FGV_LANE_HEAP	  (48u * 1024)
#define FGV_LANE_BYTES	  (256u * 1024)
#define FGV_LANE_HEAP_LEN (FGV_LANE_BYTES - FGV_LANE_HEAP)
_Static_assert(FGV_LANE_REPLIES + FGV_REPLY_SLOTS * FGV_SLOT_BYTES <= FGV_LANE_HEAP,
	       "the heap follows the rings");

#define FGV_WINDOW_MAGIC 0x57564746u /* "FGVW" */
#define FGV_NAME_MAX	 64	     /* of a VM, with its NUL */
#define FGV_DEVICES_MAX	 16	     /* of a session */

/*
 * A slot holds one request or one reply. mark: see shmring/ring.h. In a request,
 * ticket is the session-wide number drawn when posting (drawn upwards from 1), vcpu
 * the processor that the caller ran on. In a reply, which is always inline, status is a
 * CUresult and op and call are those of the request. call counts a lane's requests from 0.
 * Positions of both rings start at FGV_RING_START (shmring/ring.h). Nobody touches the second
 * cache line for a message that fits into the first.
 */
struct fgv_slot {
	uint32_t mark;
	uint16_t op;
	uint16_t vcpu;
	union {
		uint64_t ticket;
		uint64_t status;
	};
	uint32_t call;
	uint32_t len; /* of the message */
	union {
		uint8_t data[FGV_SLOT_INLINE];
		uint64_t heap_off; /* in the window, where len > FGV_SLOT_INLINE */
	};
};
_Static_assert(sizeof(struct fgv_slot) == FGV_SLOT_BYTES, "two cache lines");
_Static_assert(offsetof(struct fgv_slot, data) + FGV_SLOT_FIRST == FGV_CACHE_LINE, "the first");

/* Fields of different writers lie on different cache lines. */
struct fgv_window_head {
	/* Written by the host before the guest sees the window. */
	uint32_t magic;
	uint32_t version;
	uint8_t reserved0[FGV_CACHE_LINE - 8];
	/* Written by the host: nonzero while the dispatcher sleeps. */
	uint32_t host_parked;
	/* Written by the host: nonzero while the GPU is the session's, or about to be. */
	uint32_t online;
	/* Written by the host: nonzero while text that kernels have printed is to be fetched. */
	uint32_t text;
	uint8_t reserved1[FGV_CACHE_LINE - 12];
	/* Written by the guest: goes up when it has sent a message on the socket. */
	uint32_t control_seq;
	uint8_t reserved2[FGV_CACHE_LINE - 4];
	/*
	 * Written by the host: the number that came with a part of the window to be copied from,
	 * once that is done.
	 */
	uint32_t staging_done[FGV_STAGING_LOANS];
};
_Static_assert(sizeof(struct fgv_window_head) == 4 * FGV_CACHE_LINE, "a line for each purpose");

struct fgv_lane_head {
	/* Written by the guest: what the lane's thread sleeps for, an enum fgv_park. */
	uint32_t guest_parked;
	/* The same: the id of the thread that uses the lane, as the guest's kernel has it. */
	uint32_t guest_thread;
	uint8_t reserved[FGV_CACHE_LINE - 8];
};
_Static_assert(sizeof(struct fgv_lane_head) == FGV_CACHE_LINE, "one writer");

/*
 * The local transport: a SOCK_SEQPACKET Unix socket. The guest sends a hello; the
 * daemon checks it and hands the connection to the session's own process, which
 * sends the welcome, with two descriptors: the window's memfd and the eventfd that
 * wakes the dispatcher. A refusal is a welcome with a status and no descriptor. Before either, a
 * wait comes as often as it takes, for a program that can't be placed yet.
 * After that the guest sends one lane message per lane, with that lane's eventfd,
 * and gets it back without the descriptor as the acknowledgement. Either side's end
 * of the connection ends the session; a host that ends one says why before, if it can.
 *
 * A session with several GPUs has a window for each, of which the first welcome brings the first
 * one's. Behind it come welcomes for the others, each with a third descriptor: a connection, on
 * which lanes of that window are made known as on the first one.
 *
 * A hello of type FGV_MSG_LOOK wants no session: the daemon itself answers it, with a view of
 * the VM and one of its GPUs or a refusal, and that is the end of the connection.
 */
enum fgv_message_type {
	FGV_MSG_HELLO = 1,
	FGV_MSG_WELCOME = 2,
	FGV_MSG_LANE = 3,
	FGV_MSG_END = 4,
	FGV_MSG_LOOK = 5,
	FGV_MSG_VIEW = 6,
	FGV_MSG_WAIT = 7,
};

#define FGV_PRIORITY_LAST 9

/* What a program says that it needs of a GPU, where it is placed on one of several. 0: unknown. */
struct fgv_msg_need {
	uint64_t memory_bytes;
	uint64_t blocks;      /* of its kernels, at once */
	uint32_t block_warps; /* of one of them */
	uint32_t reserved;
};
_Static_assert(sizeof(struct fgv_msg_need) == 24, "wire");

struct fgv_msg_hello {
	uint32_t type; /* FGV_MSG_HELLO or FGV_MSG_LOOK */
	uint32_t version;
	char vm[FGV_NAME_MAX];	    /* empty: the first VM that the user may use */
	char program[FGV_NAME_MAX]; /* for the log */
	uint32_t pid;		    /* as the guest counts; for views of the VM only */
	uint32_t priority;	    /* 0 to FGV_PRIORITY_LAST; its VM's, if that is less urgent */
	struct fgv_msg_need need;
	uint64_t hash;	 /* FGV_API_HASH */
	uint32_t device; /* of a look: at which of the GPUs that programs see; else 0 */
	uint32_t reserved;
};
_Static_assert(sizeof(struct fgv_msg_hello) == 184, "wire");

/* The welcome comes later: there is no room for the program yet. */
struct fgv_msg_wait {
	uint32_t type;
	uint32_t reserved;
};
_Static_assert(sizeof(struct fgv_msg_wait) == 8, "wire");

struct fgv_msg_welcome {
	uint32_t type;
	uint32_t version;
	uint32_t status; /* a CUresult; the rest counts where it is 0 */
	uint32_t lanes;
	uint64_t window_len;
	uint64_t lanes_off;
	uint64_t arena_off;
	uint64_t arena_len;
	uint64_t staging_len;
	uint32_t is_substitute; /* 1: the GPU is the soft one, as the host has found no other */
	uint32_t parts;		/* further GPUs, for each of which a welcome follows */
	char vm[FGV_NAME_MAX];
	char text[256]; /* why not, where status is not 0; else the device's name */
};
_Static_assert(sizeof(struct fgv_msg_welcome) == 384, "wire");

struct fgv_msg_lane {
	uint32_t type;
	uint32_t lane;
	uint32_t status; /* in the acknowledgement: a CUresult */
	uint32_t reserved;
};
_Static_assert(sizeof(struct fgv_msg_lane) == 16, "wire");

/* The last message of the host's. Of several the first counts. */
#define FGV_END_TEXT_MAX 200

struct fgv_msg_end {
	uint32_t type;
	uint32_t reserved;
	char text[FGV_END_TEXT_MAX]; /* why, for the program's user */
};
_Static_assert(sizeof(struct fgv_msg_end) == 208, "wire");

/*
 * What the guest asks for once per device and answers the program's questions
 * from: operation device_info fills one of these.
 */
#define FGV_DEVICE_ATTRIBUTES 160

struct fgv_device_info {
	uint64_t memory_bytes; /* as the session may use it: its VM's quota at most */
	uint64_t va_base;      /* device addresses lie in [va_base, va_base + va_len); 0: unknown */
	uint64_t va_len;
	uint8_t uuid[16];
	uint32_t devices; /* that the session has */
	uint32_t driver_version;
	char name[256];
	char pci_bus_id[16];
	uint32_t attribute_known[FGV_DEVICE_ATTRIBUTES / 32]; /* one bit each */
	uint32_t reserved;
	int32_t attributes[FGV_DEVICE_ATTRIBUTES]; /* by CUdevice_attribute */
};
_Static_assert(sizeof(struct fgv_device_info) == 984, "wire");

/* What the host has measured of a GPU, a second ago at most. */
enum fgv_figure {
	FGV_FIGURE_TEMPERATURE, /* degrees Celsius */
	FGV_FIGURE_POWER,	/* mW, as are the limits */
	FGV_FIGURE_POWER_LIMIT,
	FGV_FIGURE_POWER_DEFAULT,  /* limit */
	FGV_FIGURE_POWER_LEAST,	   /* limit */
	FGV_FIGURE_POWER_MOST,	   /* limit */
	FGV_FIGURE_FAN,		   /* percent */
	FGV_FIGURE_STATE,	   /* of performance, 0 to 15 */
	FGV_FIGURE_CLOCK_GRAPHICS, /* MHz; in NVML's order, as are the next four */
	FGV_FIGURE_CLOCK_SM,
	FGV_FIGURE_CLOCK_MEMORY,
	FGV_FIGURE_CLOCK_VIDEO,
	FGV_FIGURE_MAX_GRAPHICS,
	FGV_FIGURE_MAX_SM,
	FGV_FIGURE_MAX_MEMORY,
	FGV_FIGURE_MAX_VIDEO,
	FGV_FIGURE_LINK_GENERATION, /* of PCI Express, and so on */
	FGV_FIGURE_LINK_WIDTH,
	FGV_FIGURE_LINK_MAX_GENERATION,
	FGV_FIGURE_LINK_MAX_WIDTH,
	FGV_FIGURES
};
#define FGV_FIGURE_UNKNOWN UINT32_MAX

/* A session of the VM. */
struct fgv_view_process {
	uint32_t pid; /* as its hello said */
	uint32_t reserved;
	uint64_t memory_bytes; /* of the GPU's, in use */
	uint64_t busy_ns;      /* time that it used the GPU for, in the last second */
	char program[FGV_NAME_MAX];
};
_Static_assert(sizeof(struct fgv_view_process) == 88, "wire");

/*
 * A VM and one of its GPUs, as the VM may see them: nothing of other VMs. What is counted is what
 * the VM has of that GPU; device.devices says how many GPUs there are to look at. The answer to a
 * look; in a virtual machine it lies at the beginning of the window.
 */
#define FGV_VIEW_PROCESSES 64
#define FGV_VIEW_NS	   1000000000u /* "the last second" */

struct fgv_msg_view {
	uint32_t type;
	uint32_t version;
	uint32_t status; /* a CUresult; the rest counts where it is 0 */
	uint32_t processes;
	uint64_t time_us;      /* when it was taken, since 1970 */
	uint64_t memory_bytes; /* that the VM may use */
	uint64_t used_bytes;   /* by all its sessions */
	uint64_t busy_ns;      /* time that it used the GPU for, in the last second */
	uint64_t peers;	       /* bits of those of the VM's GPUs whose memory it reaches */
	uint32_t nvlinks;      /* how many links to them it has, by a switch; 0 without peers */
	uint32_t reserved;
	char vm[FGV_NAME_MAX];
	char text[256];	 /* why not, where status is not 0 */
	char driver[80]; /* the version of the host's driver; empty: there is none */
	uint32_t figures[FGV_FIGURES];
	struct fgv_device_info device;
	struct fgv_view_process process[FGV_VIEW_PROCESSES];
};
_Static_assert(sizeof(struct fgv_msg_view) == 7160, "wire");

/*
 * Streams and events have handles of the guest's own: this bit, below it a number less than how
 * many there may be and FGV_OWN_SPARE, above it whatever the guest likes. The number of one that
 * was destroyed is used again after FGV_OWN_SPARE others: the host may not have come to it before.
 */
enum fgv_own_kind { FGV_OWN_STREAM, FGV_OWN_EVENT, FGV_OWN_KINDS };
#define FGV_OWN_BITS	    19
#define FGV_OWN_BIT	    (1u << FGV_OWN_BITS)
#define FGV_OWN_STREAMS_MAX 4096u
#define FGV_OWN_EVENTS_MAX  65536u
#define FGV_OWN_SPARE	    4096u

/* Operation function_get fills one of these: the layout of a kernel and its limits. */
#define FGV_FUNCTION_ATTRIBUTES 16
#define FGV_PARAMS_MAX		4096

struct fgv_function_info {
	uint32_t param_count;
	uint32_t param_bytes;			     /* of all parameters, each padded to 8 */
	int32_t attributes[FGV_FUNCTION_ATTRIBUTES]; /* by CUfunction_attribute */
	uint32_t param_sizes[];			     /* then as many offsets, as the GPU has them */
};
_Static_assert(sizeof(struct fgv_function_info) == 72, "wire");

/*
 * The text of a graph: its nodes, each a struct fgv_graph_node, the numbers of the nodes that it
 * waits for, 4 bytes each, and the message of the request that does its work, as it would be posted
 * by itself; the last two padded to 8 bytes each. A node waits for nodes before it in the text
 * alone, so there are no circles to be looked for. graph_build has all nodes, numbered from 0;
 * graph_update has those that change, and no edges.
 *
 * A node that chooses by a condition has a struct fgv_graph_choice for its message. The nodes of
 * its bodies come behind it, and wait for others of the same body alone.
 */
#define FGV_GRAPH_NO_OP		 0	    /* a node that does nothing */
#define FGV_GRAPH_CHOICE	 0xffffu    /* one that has bodies */
#define FGV_GRAPH_DEPTH_MAX	 16u	    /* of bodies in bodies */
#define FGV_GRAPH_BODIES_MAX	 1024u	    /* of one node */
#define FGV_GRAPH_CONDITIONS_MAX 4096u	    /* of one graph */
#define FGV_GRAPH_NODES_MAX	 (1u << 16) /* of one graph */
#define FGV_GRAPHS_NODES_MAX	 (1u << 18) /* of all graphs of a session */
#define FGV_GRAPH_EDGES_MAX	 (1u << 20) /* of one graph */
#define FGV_GRAPH_PRIORITY_MAX	 6u	    /* 1 - CUDA's greatest priority */
/*
 * Bytes that the copies and fills of one graph move. Engines that copy are not held
 * (docs/design/0019-holding.md), so this is what can go on of a graph behind the end of its slice.
 */
#define FGV_GRAPH_MOVED_MAX (256ull << 20)
#define FGV_GRAPH_TEXT_MAX  (64u << 20) /* bytes; of one graph, and that a session keeps */

struct fgv_graph_node {
	uint32_t number;
	uint32_t op;	      /* of a request that launches, copies on the device, or fills */
	uint32_t message_len; /* in bytes */
	uint32_t before_count;
	uint8_t is_disabled; /* it takes its place and does nothing */
	uint8_t priority;    /* of a kernel: 1 - its own; 0: that of the launch's stream */
	uint16_t body;	     /* of the node that it is in */
	uint32_t inside;     /* the number of that node + 1; 0: it is in none */
};
_Static_assert(sizeof(struct fgv_graph_node) == 24, "wire");

struct fgv_graph_choice {
	uint64_t condition; /* of the graph's home, as graph_condition has told it */
	uint32_t type;	    /* CUgraphConditionalNodeType */
	uint32_t bodies;    /* 1 or 2 of an if, 1 of a loop */
};
_Static_assert(sizeof(struct fgv_graph_choice) == 16, "wire");

/* An image of a module is no longer than this; the host keeps none that is shorter than that. */
#define FGV_IMAGE_MAX	   (512ull * 1024 * 1024)
#define FGV_IMAGE_KEPT_MIN (256ull * 1024)

/*
 * Operation module_load describes up to so many kernels, one after another: more than that, or for
 * which there is no room, are none that it describes. Each would have to be loaded by the driver,
 * used or not.
 */
#define FGV_KERNELS_DESCRIBED 8
#define FGV_KERNELS_UNKNOWN   UINT32_MAX

struct fgv_kernel_record {
	uint32_t len;	   /* of the record, a multiple of 8 */
	uint32_t function; /* its handle */
	uint32_t info_len; /* of a struct fgv_function_info, which follows */
	uint32_t name_len; /* of its name behind that, with a NUL */
};

/*
 * What a tensor map is made of: the arguments of cuTensorMapEncodeTiled() and its kin. Of arrays as
 * much counts as the rank says; all else is zero. Enumerations are CUDA's.
 */
#define FGV_TENSOR_RANK_MAX  5
#define FGV_TENSOR_MAP_BYTES 128

enum fgv_tensor_form {
	FGV_TENSOR_TILED,	/* box */
	FGV_TENSOR_IM2COL,	/* lower and upper of each but two dimensions, channels, pixels */
	FGV_TENSOR_IM2COL_WIDE, /* lower[0], upper[0], channels, pixels, mode */
};

struct fgv_tensor_shape {
	uint32_t form;
	uint32_t type;
	uint32_t rank;
	uint32_t interleave;
	uint32_t swizzle;
	uint32_t promotion;
	uint32_t fill;
	uint32_t mode;
	uint64_t address;
	uint64_t size[FGV_TENSOR_RANK_MAX];
	uint64_t stride[FGV_TENSOR_RANK_MAX - 1];
	uint32_t step[FGV_TENSOR_RANK_MAX];
	uint32_t box[FGV_TENSOR_RANK_MAX];
	int32_t lower[FGV_TENSOR_RANK_MAX - 2];
	int32_t upper[FGV_TENSOR_RANK_MAX - 2];
	uint32_t channels;
	uint32_t pixels;
};
_Static_assert(sizeof(struct fgv_tensor_shape) == 184, "wire");

/* One of the parts that operation link puts together. */
struct fgv_link_input {
	uint32_t type;	   /* a CUjitInputType */
	uint32_t name_len; /* without the NUL, as is the data's */
	uint64_t data_len;
};
_Static_assert(sizeof(struct fgv_link_input) == 16, "wire");

#define FGV_LINK_INPUTS_MAX  8192
#define FGV_LINK_OPTIONS_MAX 16

#endif
