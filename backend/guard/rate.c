/*
 * Token buckets, kept as the time at which they are full again; see rate.h.
 */
#include "backend/guard/rate.h"

#include "common/util.h"

static uint64_t token_ns(const struct fgv_rate *rate)
{
	return FGV_NS_PER_SEC / rate->per_second;
}

/* The latest time at which the bucket may be full again if it is to have a token now. */
static uint64_t horizon_ns(const struct fgv_rate *rate, uint64_t now_ns)
{
	return now_ns + (rate->burst - 1) * token_ns(rate);
}

bool fgv_rate_take(const struct fgv_rate *rate, struct fgv_rate_bucket *bucket, uint64_t now_ns)
{
	uint64_t from_ns = bucket->spent_ns > now_ns ? bucket->spent_ns : now_ns;

	if (from_ns > horizon_ns(rate, now_ns))
		return false;
	bucket->spent_ns = from_ns + token_ns(rate);
	return true;
}

unsigned fgv_rate_wait_ms(const struct fgv_rate *rate, const struct fgv_rate_bucket *bucket,
			  uint64_t now_ns)
{
	uint64_t horizon = horizon_ns(rate, now_ns);

	if (bucket->spent_ns <= horizon)
		return 0;
	return (unsigned)((bucket->spent_ns - horizon) / FGV_NS_PER_MS) + 1;
}

struct fgv_rate_bucket *fgv_rate_user(struct fgv_rate_users *users, uid_t uid, uint64_t now_ns)
{
	unsigned place = 0;

	for (unsigned i = 0; i < users->count; i++) {
		if (users->uids[i] == uid)
			return &users->buckets[i];
		if (users->buckets[i].spent_ns < users->buckets[place].spent_ns)
			place = i;
	}
	if (users->count < FGV_RATE_USERS_MAX &&
	    (!users->count || users->buckets[place].spent_ns > now_ns))
		place = users->count++;
	users->uids[place] = uid;
	users->buckets[place] = (struct fgv_rate_bucket){0};
	return &users->buckets[place];
}
