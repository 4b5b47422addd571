/*
 * The parts of a device, and the threads that may touch them. The dispatcher (the thread that calls
 * softgpu.h) submits to queues: one for copying in, one for copying out, several for computing. A
 * thread of each queue takes its commands in order. That of a queue for computing is called an
 * executor: it runs the blocks of its kernel on one multiprocessor, and workers help it on others
 * that are free.
 *
 * Locks: queue_lock for the lists of commands; job_lock for jobs, multiprocessors and rooms;
 * grid_lock, under which job_lock is taken, for cooperative grids. completed, waiting, fault, armed
 * and stop are atomics.
 */
#ifndef FGV_SOFTGPU_DEVICE_INTERNAL_H
#define FGV_SOFTGPU_DEVICE_INTERNAL_H

#include <pthread.h>

#include "common/util.h"
#include "softgpu/lower/lower.h"
#include "softgpu/lower/system.h"
#include "softgpu/machine.h"
#include "softgpu/memory.h"
#include "softgpu/ops/room.h"
#include "softgpu/softgpu.h"
#include "softgpu/space.h"
#include "softgpu/texture.h"

#define CAPABILITY_MAJOR 8
#define CAPABILITY_MINOR 0
#define SHARED_MAX	 (163u << 10) /* bytes of shared memory per block */
/* What a multiprocessor has room for. */
#define SM_BLOCKS	   32
#define SM_THREADS	   2048
#define SM_SHARED	   (SHARED_MAX + RESERVED_SHARED)
#define SHARED_DEFAULT_MAX (48u << 10)
/* There is no such cache: what programs ask of it is kept, and changes nothing. */
#define L2_BYTES	  (4u << 20)
#define L2_PERSISTING_MAX (L2_BYTES / 4 * 3)
#define THREADS_MAX	  1024
#define WORKERS_MAX	  256
#define PROGRAMS_MAX	  (1ull << 30) /* bytes of host memory for all that are loaded */

struct softgpu_function {
	struct softgpu_module *module;
	const struct code *code;
	struct softgpu_function_info info;
	struct softgpu_function *next;
};

struct softgpu_module {
	struct program *program;
	struct softgpu_function *functions; /* those that were asked for */
};

enum queue_index {
	QUEUE_COMPUTE, /* the first of those for all that is not a copy between host and device */
	QUEUE_IN = SOFTGPU_QUEUES - 2,
	QUEUE_OUT,
	QUEUES,
	COMPUTE_QUEUES = QUEUE_IN
};

struct softgpu_stream {
	struct softgpu_point last; /* its last command, and what that comes after */
	unsigned queue;		   /* of that command */
	unsigned compute;	   /* the queue that it computes in */
	bool is_blocking;	   /* waits for the legacy stream, and that for it */
};

struct softgpu_event {
	struct softgpu_point last; /* the record command, and what it comes after */
	struct softgpu_point all;  /* all record commands */
	unsigned queue;		   /* of the last one */
	bool is_recorded;
	uint64_t time_ns; /* written before that command is completed */
};

enum command_kind {
	COMMAND_LAUNCH,
	COMMAND_COPY,
	COMMAND_COPY_BOX,
	COMMAND_DROP_TEXTURE,
	COMMAND_FILL,
	COMMAND_RECORD,
	COMMAND_FREE,
	COMMAND_HIDE,
	COMMAND_UNMAP,
	COMMAND_UNLOAD,
	COMMAND_DROP_EVENT,
	COMMAND_CONDITION,
	COMMAND_DROP_CONDITION,
	COMMAND_CHOICE
};

struct launch {
	const struct code *code;
	uint32_t threads; /* of a block */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t dynamic_bytes;
	uint64_t workspace; /* of a cooperative grid, on the device; 0: it is none */
};

/* Where rows of a box are: the first one, and how far others are from it. */
struct box_end {
	uint64_t base;
	uint64_t pitch;
	uint64_t slice;
};

struct box_copy {
	struct box_end to, from;
	uint64_t width, height, depth;
};

struct copy {
	void *dst;
	const void *src;
	size_t bytes;
	bool is_peers; /* one is of a peer, which may have taken it away when it begins */
};

struct command {
	struct command *next;
	uint64_t number;	    /* in its queue, from 1 on */
	struct softgpu_point after; /* what is done before it begins */
	enum command_kind kind;
	union {
		struct launch launch;
		struct copy copy;
		struct box_copy box;
		struct {
			char *dst;
			size_t pitch;
			size_t row_elements;
			size_t rows;
			uint32_t value;
			unsigned width;
		} fill;
		struct softgpu_event *event;
		struct softgpu_module *module;
		uint64_t address;
		struct {
			uint64_t address;
			uint64_t bytes;
			bool is_view;
		} unmap;
		struct {
			uint32_t *at;
			uint32_t value;
		} condition;
		bool *dropped; /* whether that condition is used */
		struct choice *choice;
	};
	_Alignas(64) uint8_t param[]; /* of a launch, or what a copy keeps */
};

struct job;

/* What runs a block after another on a multiprocessor: an executor or one that helps them. */
struct worker {
	struct softgpu *gpu;
	pthread_t thread; /* unless it is an executor's */
	bool started;
	struct job *job; /* that it is at, under job_lock; NULL: none */
	unsigned unit;	 /* its multiprocessor, while it is at a job */
	struct block block;
	struct room room; /* under job_lock */
	unsigned turns;	  /* of its blocks, since it was started */
};

/* A kernel that runs. */
struct job {
	const struct launch *launch;
	const uint8_t *param;
	uint64_t grid; /* its number */
	uint64_t blocks;
	struct room_need need; /* of a block */
	uint64_t next;	       /* atomic: block to take */
	uint64_t units;	       /* multiprocessors that it may have; 0: all */
	int stop;	       /* atomic: no more blocks */
	int is_long;	       /* atomic: it has been logged that it takes long */
	uint64_t away_ns;      /* atomic: how long it has stood still */
	uint64_t began_ns;
	unsigned wanted; /* workers that may yet help, under job_lock */
	unsigned busy;	 /* workers at it, the executor included, under job_lock */
};

/* Of a queue for computing. */
struct executor {
	struct worker worker;
	struct job job;
};

/* The commands of one engine. */
struct queue {
	struct softgpu *gpu;
	pthread_t thread;
	bool started;
	pthread_cond_t filled;
	struct command *first;
	struct command **tail;
	uint64_t submitted; /* the dispatcher's */
	uint64_t begun;	    /* atomic: the last one that has begun, of those that touch memory */
	uint64_t completed;
};

struct softgpu {
	struct softgpu_config config;
	char name[64];
	struct memory memory;
	struct space space;
	struct textures textures;
	struct softgpu_system system;
	struct fgv_budget programs; /* host memory of all that are loaded */

	pthread_mutex_t queue_lock;
	pthread_cond_t queue_moved; /* something has completed, and waiting was not 0 */
	unsigned waiting;	    /* queues whose next command comes after something of another */
	struct queue queues[QUEUES];
	unsigned streams[COMPUTE_QUEUES]; /* that compute in each. The dispatcher's, as those below
					   */
	struct softgpu_point blocking;	  /* of all streams that are, together */
	struct softgpu_point kept;	  /* of what comes first: see copy.c */
	/* Numbers of commands of QUEUE_COMPUTE: */
	uint64_t last_free;    /* the last that gives memory back */
	uint64_t last_of_all;  /* the last that came after all: what computes comes after it */
	struct choice *choice; /* that takes what is submitted; NULL: none. The dispatcher's */
	int fault;	       /* CUresult */
	int armed;
	int stop;
	int completion_fd;

	unsigned units_count; /* multiprocessors */
	uint64_t units;	      /* atomic: those that kernels run on, of the lowest 64; 0: all */
	uint64_t room_max;    /* bytes that blocks may run in at once */

	pthread_mutex_t job_lock;
	pthread_cond_t job_ready; /* a worker may find a job that wants help */
	pthread_cond_t job_moved; /* all else that executors and what stands still wait for */
	uint64_t room_used;	  /* bytes of all rooms */
	uint8_t unit_used[WORKERS_MAX];
	unsigned at_work;	   /* workers at jobs */
	unsigned still;		   /* of them, those that stand still */
	unsigned waiting_to_start; /* executors */
	int held;		   /* atomic: workers stand still */
	bool is_away;		   /* the engine, while they do */
	unsigned engine_users;	   /* kernels that have the engine */
	bool engine_asked;	   /* an executor is about to get it */
	uint64_t grids;		   /* that were begun */
	struct executor executors[COMPUTE_QUEUES];
	struct worker *helpers; /* fewer by one than multiprocessors */
	pthread_mutex_t grid_lock;
	uint64_t grid_workspace; /* for cooperative grids; 0: none yet. The dispatcher's */
	struct softgpu_stream default_stream;
	/* Other devices that have ever reached the memory of this one, by their numbers; atomic. */
	struct softgpu *accessors[SOFTGPU_PEERS];
};

/* The engine of a copy between these places: one is host memory, or it is QUEUE_COMPUTE. */
unsigned fgv_queue_for_copy(struct softgpu *gpu, uint64_t dst, uint64_t src);

bool fgv_queue_is_done(const struct softgpu *gpu, const struct softgpu_point *point);

static inline void fgv_point_join(struct softgpu_point *point, const struct softgpu_point *other)
{
	for (unsigned i = 0; i < QUEUES; i++)
		point->numbers[i] = fgv_max_u64(point->numbers[i], other->numbers[i]);
}

/* streams.c */
/* What a command comes after that is submitted to @stream now. */
struct softgpu_point fgv_stream_point(const struct softgpu *gpu,
				      const struct softgpu_stream *stream);

/* engine.c; only where config.engine has a seat. Threads: one at a time */
/* Waits for the engine; false if *@stop became true first, of which fgv_engine_wake() tells. */
bool fgv_engine_acquire(const struct softgpu_engine *engine, const int *stop);
/*
 * Between two instructions of a kernel, all of whose workers stand still: gives the engine back if
 * the arbiter has held this process, and waits until it comes again or *@stop becomes true.
 */
void fgv_engine_stand_still(const struct softgpu_engine *engine, const int *stop);
/* Whether it must stand still; false without a seat. */
bool fgv_engine_is_held(const struct softgpu_engine *engine);
/* Whether it is to be given back at the end of what runs: somebody else wants it. */
bool fgv_engine_is_wanted(const struct softgpu_engine *engine);
/* The kernel is done: the engine stays here until somebody else wants it. */
void fgv_engine_release(const struct softgpu_engine *engine);
void fgv_engine_wake(const struct softgpu_engine *engine);
/* The executors have ended. */
void fgv_engine_leave(const struct softgpu_engine *engine);

/* turn.c; all under job_lock but the last */
/*
 * A kernel begins: waits until this process has the engine, which its kernels share until another
 * process wants it. False: the device is being taken down.
 */
bool fgv_turn_begin(struct softgpu *gpu);
void fgv_turn_end(struct softgpu *gpu);
/* Of a worker at a job: waits until the process isn't held any more. */
void fgv_turn_stand_still(struct softgpu *gpu);

/* queue.c */
struct command *fgv_queue_new(enum command_kind kind, size_t param_bytes);
/* In the order of @stream; NULL: the legacy one. QUEUE_COMPUTE: the queue it computes in. */
void fgv_queue_submit(struct softgpu *gpu, struct command *command, unsigned queue,
		      struct softgpu_stream *stream);
/* To @queue, in no stream: after what was submitted there and command->after. */
void fgv_queue_append(struct softgpu *gpu, struct command *command, unsigned queue);
/*
 * To QUEUE_COMPUTE, in no stream: after all that was submitted, and before all computing that is
 * submitted from then on. Returns its number.
 */
uint64_t fgv_queue_submit_last(struct softgpu *gpu, struct command *command);
CUresult fgv_queue_start(struct softgpu *gpu);
/* The queue for computing that the fewest streams use, which is counted as one of its own. */
unsigned fgv_queue_choose(struct softgpu *gpu);
void fgv_queue_stop(struct softgpu *gpu);
/* The sticky fault, or CUDA_SUCCESS. */
CUresult fgv_queue_fault(const struct softgpu *gpu);
/* Waits until all is done that was submitted; or the command of QUEUE_COMPUTE with this number. */
void fgv_queue_wait_all(struct softgpu *gpu);
void fgv_queue_wait(struct softgpu *gpu, uint64_t number);
/* Waits until all that gives memory back is done. */
void fgv_queue_wait_frees(struct softgpu *gpu);

/* After a fault: waits until no worker is at its kernel any more. */
void fgv_queue_wait_fault(struct softgpu *gpu);

/* Of a queue's thread: does what it says; after a fault only what gives something back. */
void fgv_queue_run(struct softgpu *gpu, struct command *command, unsigned queue);
/* It is done, or will not be. */
void fgv_queue_drop(struct command *command);

/* Told to stop, and waited for; the former from any thread. */
void fgv_queue_tell(struct softgpu *gpu);
/*
 * Of any thread: waits for what has begun at @gpu before this is called, and touches memory.
 */
void fgv_queue_wait_begun(struct softgpu *gpu);

/* peer.c; the device has its memory */
void fgv_peer_init(struct softgpu *gpu);

/* choice.c */
void fgv_choice_take(struct choice *choice, struct command *command);
void fgv_choice_run(struct softgpu *gpu, const struct choice *choice, unsigned queue);
void fgv_choice_free(struct choice *choice);

/* workers.c */
/* What its threads are called, as ps and top -H show them. */
#define SOFTGPU_THREAD_NAME "softgpu"

/* The thread takes no signals but those that its own faults raise. False: it was not started. */
bool fgv_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
/* The thread that was started calls this first. */
void fgv_thread_name(void);
CUresult fgv_workers_start(struct softgpu *gpu);
void fgv_workers_stop(struct softgpu *gpu);
/* Multiprocessors that kernels run on. */
unsigned fgv_workers_at_once(const struct softgpu *gpu);
/* Runs a kernel to its end on the calling thread, that of @executor, and workers. */
void fgv_workers_run(struct softgpu *gpu, struct executor *executor, const struct launch *launch,
		     const uint8_t *param);
/* Ends all kernels; those that begin later see gpu->fault or gpu->stop, which was set before. */
void fgv_workers_stop_jobs(struct softgpu *gpu);
/* Under job_lock: a multiprocessor or a place has become free, or the engine is back. */
void fgv_workers_tell_others(struct softgpu *gpu);
/* Between two turns of blocks: stands still if this process is held. */
void fgv_workers_between_turns(struct worker *worker, struct job *job);
/* Gets @room what a block of @job needs. False: it has no place, or there is no memory. */
bool fgv_workers_get_room(struct softgpu *gpu, struct room *room, const struct job *job);
void fgv_workers_drop_room(struct softgpu *gpu, struct room *room);

/* blocks.c */
/* Runs blocks of the job that @worker is at, in its room, while there are any. */
void fgv_blocks_run(struct worker *worker, struct job *job);
/* All blocks of a job, each in one of @rooms: they take turns on @worker's multiprocessor. */
void fgv_blocks_run_together(struct worker *worker, struct job *job, struct room *rooms);
/* There is no memory to run blocks of @job in. */
void fgv_blocks_refuse(struct worker *worker, struct job *job);

/* array.c */
void fgv_softgpu_box_run(const struct box_copy *copy);

/* module.c */
void fgv_module_destroy(struct softgpu_module *module);

#endif
