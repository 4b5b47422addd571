/*
 * The ticket rule (shmring/lanes.c): guest threads, each with a lane, draw a ticket and
 * then publish; the dispatcher chooses what runs next. Checked: what was published, its
 * call returned, before another thread began to post, runs before that; and everything
 * runs. "Before" is the clock on the wall, which includes every way in which one thread
 * can learn of another.
 *
 * A look at a lane is one step, in between anything may happen. That a look sees all
 * that was published before what an earlier look has seen is what the acquire load in
 * fgv_ring_peek() is for; memory is sequentially consistent here.
 *
 * Variants that must fail:
 *   BROKEN_NO_LOOK	the smallest head seen so far runs
 *   BROKEN_ONE_LOOK	one look at each lane, even if it brings a smaller head
 *   BROKEN_AFTER_LAST	ticket n + 1 runs at once after ticket n, though others below
 *			may be missing
 */
#define LANES	    3
#define POSTS(lane) (lane == 0 -> 2 : (lane == 1 -> 2 : 1))
#define POSTS_MAX   2
#define ALL	    5

#define id(lane, number) ((lane) * POSTS_MAX + (number))
#define IDS		 (LANES * POSTS_MAX)
#define bit(n)		 (1 << (n))

/* Of a post: its ticket, and those returned when it was drawn that have not run yet. */
byte ticket_of[IDS], before[IDS];
byte drawn;			/* tickets */
byte returned;			/* posts that have not run yet, one bit each */
byte published[LANES];		/* how many */

proctype guest(byte lane)
{
	byte number;

	do
	:: number < POSTS(lane) ->
		atomic {
			drawn++;
			ticket_of[id(lane, number)] = drawn;
			before[id(lane, number)] = returned
		};
		atomic {
			published[lane]++;
			returned = returned | bit(id(lane, number));
			number++
		}
	:: else -> break
	od
}

#define NONE LANES

/* The dispatcher's own. */
byte done[LANES];		/* requests of each lane that ran: the ring's position */
byte head[LANES];		/* the ticket of the lane's head, 0: none */
byte newest, count, cursor, best, quiet;
byte last = NONE;

#ifdef BROKEN_AFTER_LAST
#define is_expected(lane) (head[lane] == newest + 1)
#else
#define is_expected(lane) (count == newest && head[lane] == newest + 1)
#endif

inline look(lane)
{
	if
	:: head[lane] == 0 && published[lane] > done[lane] ->
		head[lane] = ticket_of[id(lane, done[lane])]
	:: else
	fi
}

#ifdef BROKEN_ONE_LOOK
#define restart skip
#else
#define restart quiet = 1
#endif

inline prefer(lane)
{
	if
	:: head[lane] && (best == NONE || head[lane] < head[best]) -> best = lane; restart
	:: else
	fi
}

/* One more lane of a look around. */
inline look_on()
{
	quiet++;
	if
	:: head[cursor] == 0 ->
		look(cursor);
		prefer(cursor)
	:: else
	fi;
	cursor = (cursor + 1) % LANES
}

/* The assertion: nothing that had returned before this was begun is still to run. */
inline execute()
{
	me = id(best, done[best]);
	assert(before[me] == 0);
	other = 0;
	do
	:: other < IDS -> before[other] = before[other] & (255 - bit(me)); other++
	:: else -> break
	od;
	returned = returned & (255 - bit(me));
	ticket_of[me] = 0;
	count++;
	if
	:: head[best] > newest -> newest = head[best]
	:: else
	fi;
	last = best;
	head[best] = 0;
	done[best]++;
	me = 0;
	other = 0
}

proctype dispatcher()
{
	byte me, other;

	do
	:: count < ALL ->
		/* The lane that ran last, then the heads that are known. */
		d_step {
			best = NONE;
			if
			:: last != NONE -> look(last)
			:: else
			fi;
			prefer(0);
			prefer(1);
			prefer(2);
			quiet = 0
		};
		do
		:: best != NONE && is_expected(best) -> break
#ifdef BROKEN_NO_LOOK
		:: best != NONE -> break
#endif
		:: (best == NONE || !is_expected(best)) && quiet < LANES -> d_step { look_on() }
		:: (best == NONE || !is_expected(best)) && quiet == LANES -> break
		od;
		atomic {
			if
			:: best != NONE -> execute()
			:: else
			fi;
			best = NONE;
			quiet = 0
		}
	:: else -> break
	od
}

init
{
	atomic { run guest(0); run guest(1); run guest(2); run dispatcher() }
}
