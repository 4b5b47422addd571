/*
 * Waiting for room (fgv_park_announce_for_room(), fgv_lanes_release()): a guest that
 * finds the ring full, or the heap, sleeps; the host does not ring for each slot that
 * it gives back, but where a quarter of the ring has been or none is left. Checked: the
 * guest does not sleep for ever, which would be a deadlock.
 *
 * Marks are taken as counts of what was published and released, one writer each: the
 * hand-over itself is ring.pml's. Memory is x86's, as in park.pml. The room is less
 * than the ring: that is what a heap full of large messages comes to.
 *
 * Variants that must fail:
 *   BROKEN_NO_ORDER	a slot is always given back by a plain store
 *   BROKEN_NO_RECHECK	sleeps without looking once more
 *   BROKEN_ONLY_QUARTERS	does not ring when nothing is left
 */
#define QUARTER	 4
#define ROOM	 3	/* requests that fit at one time */
#define MESSAGES 10

#define RELEASED 0	/* addresses: the host's words */
byte memory[1];
byte published, parked;	/* the guest's stores are all ordered but one, which may be late */
chan buffer = [4] of { byte, byte };		/* the host's, (address, value) */
chan guest_buffer = [2] of { byte };		/* values for parked */
bool rung;

proctype guest()
{
	byte sent;

	do
	:: sent < MESSAGES && sent - memory[RELEASED] < ROOM ->
		empty(guest_buffer);
		sent++;
		published = sent			/* fgv_ring_publish() */
	:: sent < MESSAGES && sent - memory[RELEASED] >= ROOM ->
		rung = false;				/* fgv_doorbell_clear() */
		empty(guest_buffer);
		parked = true;				/* fgv_park_announce_for_room() */
		if
#ifndef BROKEN_NO_RECHECK
		:: sent - memory[RELEASED] < ROOM
		:: sent - memory[RELEASED] >= ROOM -> rung
#else
		:: rung
#endif
		fi;
		guest_buffer!false			/* fgv_park_withdraw() */
	:: sent == MESSAGES -> break
	od
}

proctype host()
{
	byte done;
	bool tells, announced;

	do
	:: done < MESSAGES && published > done ->
		done++;
		/* room_is_worth_telling() */
		tells = done % QUARTER == 0;
#ifndef BROKEN_ONLY_QUARTERS
		tells = tells || published == done;
#endif
		buffer!RELEASED,done;			/* fgv_ring_release() */
		if
		:: tells ->
#ifndef BROKEN_NO_ORDER
			empty(buffer);
#endif
			announced = parked;
			if
			:: announced -> rung = true
			:: else
			fi
		:: else
		fi
	:: done == MESSAGES -> break
	od
}

proctype processors()
{
	byte address, value;

end:	do
	:: atomic { buffer?address,value -> memory[address] = value }
	:: atomic { guest_buffer?value -> parked = value }
	od
}

init
{
	atomic { run processors(); run guest(); run host() }
}
