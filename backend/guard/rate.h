/*
 * How often something may happen: token buckets, one for each who may do it, as many as there is
 * room for. A bucket fills with so many tokens a second up to a burst; taking one is doing it
 * once. Pure: time comes as an argument.
 *
 * Threads: none of its own; one at a time.
 */
#ifndef FGV_BACKEND_GUARD_RATE_H
#define FGV_BACKEND_GUARD_RATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Zero is a full one. */
struct fgv_rate_bucket {
	uint64_t spent_ns; /* until when it would take to be full again */
};

struct fgv_rate {
	uint64_t per_second; /* not 0 */
	uint64_t burst;	     /* not 0 */
};

/* True, and one token taken; false where there is none. @now_ns never goes back. */
bool fgv_rate_take(const struct fgv_rate *rate, struct fgv_rate_bucket *bucket, uint64_t now_ns);

/* In how many ms there will be one again. */
unsigned fgv_rate_wait_ms(const struct fgv_rate *rate, const struct fgv_rate_bucket *bucket,
			  uint64_t now_ns);

/*
 * Buckets of users. Whose bucket is full needs none; where all are in use, the one that is
 * nearest to full goes.
 */
#define FGV_RATE_USERS_MAX 128

struct fgv_rate_users {
	unsigned count;
	uid_t uids[FGV_RATE_USERS_MAX];
	struct fgv_rate_bucket buckets[FGV_RATE_USERS_MAX];
};

struct fgv_rate_bucket *fgv_rate_user(struct fgv_rate_users *users, uid_t uid, uint64_t now_ns);

#endif
