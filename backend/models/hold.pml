/*
 * Holding a session that has no grant (backend/sched/gpusched_hold.c, fgv_gate_begin_call() in
 * backend/vgpu/gate_grant.c). Its process may go into a call of the driver's that waits for the
 * GPU just as the daemon holds it. Checked: it does not wait there for ever, which would be a
 * deadlock; either it sees that it is held, and rings, or the daemon sees that it is in a call.
 *
 * A process that is in a call gets the grant here as soon as the daemon knows.
 * Memory is x86's: stores may be late, but for those that are ordered.
 *
 * Variants that must fail:
 *   BROKEN_NO_ORDER_CALL	in_call is a plain store
 *   BROKEN_NO_ORDER_HELD	is_held is a plain store
 *   BROKEN_NO_LOOK		the daemon does not look at the session once more after it holds it
 *   BROKEN_NO_RING		the process does not ring when it is held
 *   BROKEN_HELD_FIRST		the daemon looks, and then says that it holds
 */
#define CALLS 3
#define HOLDS 3

#define IN_CALL 0	/* addresses */
#define IS_HELD 1
byte memory[2];
chan of_process = [2] of { byte, byte };	/* stores on their way: (address, value) */
chan of_daemon = [2] of { byte, byte };
bool stands;		/* the session's kernels do, so that a call waits */
bool rung;

inline load(address, value)
{
	value = memory[address]
}

proctype process()
{
	byte calls, held;

	do
	:: calls < CALLS ->
		of_process!IN_CALL,1;
#ifndef BROKEN_NO_ORDER_CALL
		empty(of_process);		/* fgv_store_ordered() */
#endif
		load(IS_HELD, held);
		if
#ifndef BROKEN_NO_RING
		:: held -> rung = true
#else
		:: held
#endif
		:: !held
		fi;
		!stands;			/* the call of the driver's */
		of_process!IN_CALL,0;
		empty(of_process);
		calls++
	:: calls == CALLS -> break
	od
}

/* Sees a call: the session gets the grant, and is let go. */
inline look()
{
	load(IN_CALL, calling);
	if
	:: calling && held ->
		held = false;
		of_daemon!IS_HELD,0;
		empty(of_daemon);
		stands = false
	:: else
	fi
}

proctype daemon()
{
	byte holds, calling;
	bool held;

end:	do
	:: atomic { rung -> rung = false };
		look()
	:: holds < HOLDS && !held ->
		holds++;
		stands = true;
		held = true;
#ifdef BROKEN_HELD_FIRST
		look();
		if
		:: held -> of_daemon!IS_HELD,1; empty(of_daemon)
		:: else
		fi
#else
		of_daemon!IS_HELD,1;
#ifndef BROKEN_NO_ORDER_HELD
		empty(of_daemon);		/* fgv_store_ordered() */
#endif
#ifndef BROKEN_NO_LOOK
		look()
#endif
#endif
	od
}

proctype processors()
{
	byte address, value;

end:	do
	:: atomic { of_process?address,value -> memory[address] = value }
	:: atomic { of_daemon?address,value -> memory[address] = value }
	od
}

init
{
	atomic { run processors(); run process(); run daemon() }
}
