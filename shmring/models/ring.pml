/*
 * Slot hand-over by marks (shmring/ring.h): one producer and one consumer, a ring of
 * SIZE slots, positions that wrap at WRAP. Checked: every message arrives, once, in
 * order and whole, and nobody gets stuck.
 *
 * Memory is weaker than x86's: each side's stores wait in buffers, one per word, and
 * get to memory in any order. A release store waits until the side's earlier stores
 * have got there; then it may itself wait as long as it likes. fgv_ring_publish()
 * orders more than that; this hand-over needs no more. A payload is two words, so
 * that it can be torn.
 *
 * Variants that must fail:
 *   BROKEN_MARK_FIRST	the mark is stored before the payload
 *   BROKEN_NO_RELEASE	the mark is stored like any other word
 *   BROKEN_NO_ACQUIRE	the payload is loaded before the mark
 *   BROKEN_GIVEN_EARLY	the slot is given back before the payload is loaded
 *   BROKEN_COMPARE	"at least" instead of "equal", which wrap-around defeats
 */
#define SIZE	 2
#define WRAP	 8
#define START	 (WRAP - 3)
#define MESSAGES 11

#define next(p, n) (((p) + (n)) % WRAP)

byte mark[SIZE], first[SIZE], second[SIZE];	/* memory */

/* Stores that wait: the producer's, and the consumer's marks. */
bool first_waits[SIZE], second_waits[SIZE], mark_waits[SIZE], given_waits[SIZE];
byte first_value[SIZE], second_value[SIZE], mark_value[SIZE], given_value[SIZE];

byte received;

#define producer_drained (!first_waits[0] && !first_waits[1] && \
			  !second_waits[0] && !second_waits[1] && \
			  !mark_waits[0] && !mark_waits[1])
#define consumer_drained (!given_waits[0] && !given_waits[1])

#ifdef BROKEN_COMPARE
#define is_mark(value, wanted) ((value) >= (wanted))
#else
#define is_mark(value, wanted) ((value) == (wanted))
#endif

/* A side sees its own store before memory does. */
#define producer_sees(i) (mark_waits[i] -> mark_value[i] : mark[i])

inline store_payload(i, value)
{
	first_value[i] = value; first_waits[i] = true;
	second_value[i] = value; second_waits[i] = true
}

inline store_mark(i, value)
{
#ifndef BROKEN_NO_RELEASE
	producer_drained;
#endif
	atomic { mark_value[i] = value; mark_waits[i] = true }
}

proctype producer()
{
	byte position = START, sent = 0, i;

	do
	:: sent < MESSAGES ->
		i = position % SIZE;
		is_mark(producer_sees(i), position);	/* fgv_ring_reserve() */
#ifdef BROKEN_MARK_FIRST
		store_mark(i, next(position, 1));
		store_payload(i, sent);
#else
		store_payload(i, sent);
		store_mark(i, next(position, 1));	/* fgv_ring_publish() */
#endif
		position = next(position, 1);
		sent++
	:: else -> break
	od
}

inline load_payload(i)
{
	a = first[i];
	b = second[i]
}

inline give_back(i)
{
	consumer_drained;
	atomic { given_value[i] = next(position, SIZE); given_waits[i] = true }
}

proctype consumer()
{
	byte position = START, a, b, i;

	do
	:: received < MESSAGES ->
		i = position % SIZE;
#ifdef BROKEN_NO_ACQUIRE
		load_payload(i);
#endif
		/* fgv_ring_peek(); while its own mark waits, that is what it sees. */
		!given_waits[i] && is_mark(mark[i], next(position, 1));
#ifdef BROKEN_GIVEN_EARLY
		give_back(i);
#endif
#ifndef BROKEN_NO_ACQUIRE
		load_payload(i);
#endif
		assert(a == received && b == received);
#ifndef BROKEN_GIVEN_EARLY
		give_back(i);				/* fgv_ring_release() */
#endif
		position = next(position, 1);
		received++
	:: else -> break
	od
}

/* Brings waiting stores to memory, any of them at any time. */
proctype memory()
{
end:	do
	:: atomic { first_waits[0] -> first[0] = first_value[0]; first_waits[0] = false }
	:: atomic { first_waits[1] -> first[1] = first_value[1]; first_waits[1] = false }
	:: atomic { second_waits[0] -> second[0] = second_value[0]; second_waits[0] = false }
	:: atomic { second_waits[1] -> second[1] = second_value[1]; second_waits[1] = false }
	:: atomic { mark_waits[0] -> mark[0] = mark_value[0]; mark_waits[0] = false }
	:: atomic { mark_waits[1] -> mark[1] = mark_value[1]; mark_waits[1] = false }
	:: atomic { given_waits[0] -> mark[0] = given_value[0]; given_waits[0] = false }
	:: atomic { given_waits[1] -> mark[1] = given_value[1]; given_waits[1] = false }
	od
}

init
{
	/* fgv_ring_format() */
	mark[START % SIZE] = START;
	mark[next(START, 1) % SIZE] = next(START, 1);
	atomic { run memory(); run producer(); run consumer() }
}
