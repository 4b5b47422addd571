/*
 * The journal of sessions' processes (backend/journal.c), and daemons that are killed at any step,
 * one after the other. A process whose daemon was killed is killed by the kernel, or survives; one
 * that survives and is held never ends by itself. Numbers of processes are given again, and the
 * machine is started anew at times. Checked: no process of a session is killed for another one,
 * and when a daemon lets programs in, no process is there any more that is held.
 *
 * One process at a time has a number. What a pidfd means is the process, by its age, which no
 * other one has. Memory is sequentially consistent: each daemon has the file to itself.
 *
 * Variants that must fail:
 *   BROKEN_NO_TIME	a process is known by its number alone
 *   BROKEN_NO_PIDFD	it is looked at and then killed by its number
 *   BROKEN_NO_BOOT	entries of an earlier boot are believed
 *   BROKEN_WIPE_FIRST	the file is empty before the processes are ended
 *   BROKEN_ADD_LATE	a process is entered after it may be held
 *   BROKEN_NO_WAIT	programs are let in while processes are still ending
 */
#define PIDS	2
#define ENTRIES 2
#define DAEMONS 3
#define STARTS	2	/* sessions of one daemon */
#define OTHERS	1	/* processes that are nobody's business */

#define NONE   0	/* what has a number */
#define RUNS   1	/* a session's process */
#define HELD   2
#define ENDING 3	/* it was held, and is killed */
#define ZOMBIE 4	/* of the daemon that lives */
#define OTHER  5
byte is[PIDS], since[PIDS], age[PIDS];	/* since: as /proc says it; on each boot from 1 */
byte clock, ages;
byte boot = 1;

byte entry_pid[ENTRIES], entry_since[ENTRIES], entry_boot; /* the file; numbers are one more than here */
bool killed, gone;	/* the daemon is to go; it has */

#define is_free(who) (is[who] == NONE)

inline begin_process(who, what)
{
	clock++;
	ages++;
	is[who] = what;
	since[who] = clock;
	age[who] = ages
}

inline kill_process(who)
{
	assert(is[who] != OTHER);
	if
	:: is[who] == HELD -> is[who] = ENDING
	:: is[who] == RUNS -> is[who] = NONE
	:: else
	fi
}

/* end_process(), of entry @e. */
inline end_left(e)
{
	who = entry_pid[e] - 1;
	d_step { seen = age[who]; found = !is_free(who) };	/* pidfd_open() */
	if
#ifndef BROKEN_NO_TIME
	:: found && since[who] == entry_since[e] ->
#else
	:: found ->
#endif
		atomic {
			if
#ifndef BROKEN_NO_PIDFD
			:: !is_free(who) && age[who] == seen -> kill_process(who)
#else
			:: !is_free(who) -> kill_process(who)
#endif
			:: else
			fi
		}
	:: else
	fi
}

inline end_all()
{
	e = 0;
	do
	:: e < ENTRIES ->
		if
		:: entry_since[e] && entry_pid[e] -> end_left(e)
		:: else
		fi;
		e++
	:: else -> break
	od;
	e = 0
}

inline wipe()
{
	entry_boot = 0;
	e = 0;
	do
	:: e < ENTRIES -> entry_since[e] = 0; entry_pid[e] = 0; e++
	:: else -> break
	od;
	e = 0;
	entry_boot = boot
}

inline add()
{
	e = 0;
	do
	:: e < ENTRIES && (entry_since[e] || entry_pid[e]) -> e++
	:: else -> break
	od;
	if
	:: e < ENTRIES ->
		entry_pid[e] = who + 1;
		entry_since[e] = since[who]
	:: else
	fi;
	e = 0
}

/* While the process waits to be reaped, nobody else has its number. */
inline reap(number)
{
	e = 0;
	do
	:: e < ENTRIES ->
		if
		:: entry_pid[e] == number + 1 -> entry_since[e] = 0; entry_pid[e] = 0
		:: else
		fi;
		e++
	:: else -> break
	od;
	e = 0;
	is[number] = NONE
}

inline start_session(number)
{
	atomic { is_free(number) -> starts++; who = number; begin_process(who, RUNS) };
#ifndef BROKEN_ADD_LATE
	add();
	adopted = adopted | (1 << who)
#else
	adopted = adopted | (1 << who);
	atomic {
		if
		:: is[who] == RUNS -> is[who] = HELD
		:: else
		fi
	};
	add()
#endif
}

proctype daemon()
{
	byte e, who, seen, starts, adopted;
	bool found;

	{
#ifdef BROKEN_WIPE_FIRST
		byte old_pid[ENTRIES], old_since[ENTRIES];

		d_step {
			old_pid[0] = entry_pid[0]; old_since[0] = entry_since[0];
			old_pid[1] = entry_pid[1]; old_since[1] = entry_since[1];
			entry_since[0] = 0; entry_since[1] = 0;
			entry_pid[0] = 0; entry_pid[1] = 0
		};
		d_step {
			entry_pid[0] = old_pid[0]; entry_since[0] = old_since[0];
			entry_pid[1] = old_pid[1]; entry_since[1] = old_since[1]
		};
#endif
		if
#ifndef BROKEN_NO_BOOT
		:: entry_boot == boot -> end_all()
		:: else
#else
		:: end_all()
#endif
		fi;
#ifndef BROKEN_NO_WAIT
		is[0] != ENDING && is[1] != ENDING;
#endif
		wipe();
		assert(is[0] != HELD && is[0] != ENDING && is[1] != HELD && is[1] != ENDING);
		do
		:: starts < STARTS && is_free(0) -> start_session(0)
		:: starts < STARTS && is_free(1) -> start_session(1)
		:: atomic { is[0] == RUNS && (adopted & 1) -> is[0] = HELD }
		:: atomic { is[1] == RUNS && (adopted & 2) -> is[1] = HELD }
		:: atomic { is[0] == HELD -> is[0] = RUNS }
		:: atomic { is[1] == HELD -> is[1] = RUNS }
		:: is[0] == ZOMBIE -> adopted = adopted & 2; reap(0)
		:: is[1] == ZOMBIE -> adopted = adopted & 1; reap(1)
		od
	} unless { killed };
	gone = true
}

/* What the kernel does with the children of a daemon that has gone. */
inline leave(who)
{
	if
	:: is[who] == ZOMBIE -> is[who] = NONE
	:: is[who] == RUNS || is[who] == HELD -> is[who] = NONE
	:: is[who] == RUNS || is[who] == HELD
	:: else
	fi
}

inline start_machine()
{
	is[0] = NONE;
	is[1] = NONE;
	clock = 0;
	boot++
}

proctype machine()
{
	byte others;

end:	do
	:: atomic { is[0] == ENDING -> is[0] = NONE }
	:: atomic { is[1] == ENDING -> is[1] = NONE }
	:: atomic { is[0] == RUNS -> if :: gone -> is[0] = NONE :: else -> is[0] = ZOMBIE fi }
	:: atomic { is[1] == RUNS -> if :: gone -> is[1] = NONE :: else -> is[1] = ZOMBIE fi }
	:: atomic { others < OTHERS && is_free(0) -> others++; begin_process(0, OTHER) }
	:: atomic { others < OTHERS && is_free(1) -> others++; begin_process(1, OTHER) }
	:: atomic { is[0] == OTHER -> is[0] = NONE }
	:: atomic { is[1] == OTHER -> is[1] = NONE }
	od
}

init
{
	byte daemons;

	run machine();
	do
	:: daemons < DAEMONS ->
		killed = false;
		gone = false;
		daemons++;
		run daemon();
		killed = true;
		gone;
		atomic { leave(0); leave(1) };
		if
		:: atomic { boot == 1 -> start_machine() }
		:: true
		fi
	:: else -> break
	od
}
