/*
 * Parking and doorbells (shmring/park.h): a dispatcher that sleeps, and two guest
 * threads that post, each on its own lane. Checked: no wake-up is lost. A dispatcher
 * that sleeps with a message unread and nobody left to ring is a deadlock, which Spin
 * reports as an invalid end state.
 *
 * Memory is x86's: each processor has a first-in, first-out store buffer, and loads
 * don't wait for it. An ordered store is one that waits until its buffer is empty.
 * No word has two writers, and nobody reads a word of its own, so loads need not look
 * into the buffer. The doorbell is the kernel's and never late.
 *
 * A guest that waits for a reply or for room is the same with the parts exchanged.
 *
 * Variants that must fail:
 *   BROKEN_NO_ORDER_POST	publishing is a plain store
 *   BROKEN_NO_ORDER_PARK	announcing is a plain store
 *   BROKEN_NO_RECHECK		sleeps without looking once more
 *   BROKEN_CLEAR_LATE		clears the doorbell after it has looked once more
 *   BROKEN_RING_FIRST		looks whether to ring, then publishes
 */
#define GUESTS	 2
#define MESSAGES 2	/* of each guest */

#define DISPATCHER GUESTS	/* its processor's number */
#define PARKED	   GUESTS	/* address of the parked word; below it, the lanes' marks */

byte memory[GUESTS + 1];
chan buffer[GUESTS + 1] = [2] of { byte, byte };	/* (address, value) */
bool rung;

#define store(who, address, value)	   buffer[who]!address,value
#define store_ordered(who, address, value) buffer[who]!address,value; empty(buffer[who])

#ifdef BROKEN_NO_ORDER_POST
#define store_mark store
#else
#define store_mark store_ordered
#endif
#ifdef BROKEN_NO_ORDER_PARK
#define store_parked store
#else
#define store_parked store_ordered
#endif

proctype guest(byte who)
{
	byte sent;
	bool parked;

	do
	:: sent < MESSAGES ->
		sent++;
#ifdef BROKEN_RING_FIRST
		parked = memory[PARKED];
		store_mark(who, who, sent);
#else
		store_mark(who, who, sent);		/* fgv_ring_publish() */
		parked = memory[PARKED];		/* fgv_park_is_announced() */
#endif
		if
		:: parked -> rung = true		/* fgv_doorbell_ring() */
		:: else
		fi
	:: else -> break
	od
}

proctype dispatcher()
{
	byte read[GUESTS];
	bool found;

	do
	:: read[0] < memory[0] -> read[0]++
	:: read[1] < memory[1] -> read[1]++
	:: read[0] == MESSAGES && read[1] == MESSAGES -> break
	:: read[0] >= memory[0] && read[1] >= memory[1] &&
	   (read[0] < MESSAGES || read[1] < MESSAGES) ->
#ifndef BROKEN_CLEAR_LATE
		rung = false;				/* fgv_doorbell_clear() */
#endif
		store_parked(DISPATCHER, PARKED, 1);	/* fgv_park_announce() */
		found = false;
#ifndef BROKEN_NO_RECHECK
		/* fgv_lanes_any_ordered() */
		found = memory[0] > read[0];
		found = found || memory[1] > read[1];
#endif
#ifdef BROKEN_CLEAR_LATE
		rung = false;
#endif
		if
		:: found
		:: !found -> rung			/* fgv_doorbell_wait() */
		fi;
		store(DISPATCHER, PARKED, 0)		/* fgv_park_withdraw() */
	od
}

/* Takes stores out of one buffer, in order, at any time. */
proctype processor(byte who)
{
	byte address, value;

end:	do
	:: atomic { buffer[who]?address,value -> memory[address] = value }
	od
}

init
{
	atomic {
		run processor(0); run processor(1); run processor(DISPATCHER);
		run guest(0); run guest(1); run dispatcher()
	}
}
