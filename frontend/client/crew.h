/*
 * Helpers: threads of this library that copy pieces of large copies beside the thread whose
 * copy it is. All threads of the program share them: jobs are taken in the order in which they
 * were added, by helpers and by whoever waits for one.
 *
 * They are started when a copy first has use for them, half as many as there are processors
 * (the other half is for the host's process and the rest of the program), up to HELPERS_MAX of
 * crew.c, or as many as FAIRGV_COPY_THREADS says. With nothing to do they sleep. They stay to
 * the end of the process, and of what the program's signals do only those reach them that their
 * own access to its memory raises. A forked child has none, and no session to copy for.
 *
 * Threads: any.
 */
#ifndef FGV_CLIENT_CREW_H
#define FGV_CLIENT_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Its owner's; from fgv_crew_add() until it is done, the crew's. */
struct fgv_crew_job {
	void (*run)(struct fgv_crew_job *job);
	STAILQ_ENTRY(fgv_crew_job) link;
	uint32_t done; /* atomic; 0 when it is added */
};

/* How many helpers there are, once the first call has started them; 0: use none of the rest. */
unsigned fgv_crew_need(void);

void fgv_crew_add(struct fgv_crew_job *job);

/* Runs a job that nobody has begun, whosever it is; false if there is none. */
bool fgv_crew_help(void);

static inline bool fgv_crew_is_done(const struct fgv_crew_job *job)
{
	/* Pairs with the release in crew.c: what it has written is there. */
	return __atomic_load_n(&job->done, __ATOMIC_ACQUIRE);
}

/* Returns when @job is done. For a thread with nothing to help with. No cancellation point. */
void fgv_crew_wait(const struct fgv_crew_job *job);

#endif
