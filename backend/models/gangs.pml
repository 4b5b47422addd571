/*
 * Gangs (scheduler/gangs.c): three GPUs, each with a scheduler of its own, and three gangs in a
 * circle, each with parts on two of them, which wait until they have had a turn on both together, or
 * ask no more. Checked: a GPU is called by one gang at a time, and no gangs wait for each other in a
 * circle. This holds even if a part kept its GPU for as long as its gang is called on the other one;
 * in truth turns end by the clock as well. What tags say is left out: any gang may be first anywhere.
 *
 * A step of a scheduler under the gangs' lock is one atomic step; these come in any order.
 *
 * Variants that must fail:
 *   BROKEN_ONE_BY_ONE	a gang gets its GPUs one after the other, and keeps the first meanwhile
 *   BROKEN_NO_CHECK	a gang calls GPUs that another one has called
 *   BROKEN_STAYS	what was called stays so when the gang asks no more
 */
#define GPUS	3
#define GANGS	3
#define NOBODY	GANGS

/* Gang i has parts on GPUs i and i + 1; the other GPU of a part. */
#define HAS(gang, gpu)	 ((gpu) == (gang) || (gpu) == ((gang) + 1) % GPUS)
#define OTHER(gang, gpu) ((gang) == (gpu) -> ((gang) + 1) % GPUS : (gang))

#define NOT_CALLED(gang, gpu) (caller[gpu] == NOBODY || caller[gpu] == (gang))
#ifdef BROKEN_NO_CHECK
#define MAY_CALL(gang, gpu) true
#else
#define MAY_CALL(gang, gpu) NOT_CALLED(gang, gpu)
#endif
#ifdef BROKEN_ONE_BY_ONE
#define ENDS(gang, gpu) met[gang]
#else
#define ENDS(gang, gpu) (met[gang] || caller[OTHER(gang, gpu)] != (gang))
#endif
#define MAY_BEGIN(gang, gpu)                                                                       \
	(HAS(gang, gpu) && asks[gang] && holder[gpu] == NOBODY && caller[gpu] == NOBODY &&         \
	 MAY_CALL(gang, OTHER(gang, gpu)))

byte caller[GPUS] = NOBODY;	/* whose appointment a GPU has */
byte holder[GPUS] = NOBODY;
bool met[GANGS];		/* has had both GPUs at the same time */
bool asks[GANGS] = true;

inline grant(gang, gpu)
{
	assert(holder[gpu] == NOBODY);
	holder[gpu] = gang;
	if
	:: caller[gpu] == gang -> caller[gpu] = NOBODY
	:: else
	fi;
	if
	:: holder[OTHER(gang, gpu)] == gang -> met[gang] = true; asks[gang] = false
	:: else
	fi
}

/* Its appointment is made: on both GPUs at once, or not at all. */
inline begin(gang, gpu)
{
	assert(NOT_CALLED(gang, OTHER(gang, gpu)));
#ifndef BROKEN_ONE_BY_ONE
	caller[gpu] = gang;
	if
	:: holder[OTHER(gang, gpu)] != gang -> caller[OTHER(gang, gpu)] = gang
	:: else
	fi;
#endif
	grant(gang, gpu)
}

inline cancel(gang)
{
#ifndef BROKEN_STAYS
	if
	:: caller[gang] == gang -> caller[gang] = NOBODY
	:: else
	fi;
	if
	:: caller[(gang + 1) % GPUS] == gang -> caller[(gang + 1) % GPUS] = NOBODY
	:: else
	fi
#else
	skip
#endif
}

proctype scheduler(byte gpu)
{
	byte gang;

end:	do
	:: atomic { holder[gpu] == NOBODY && caller[gpu] != NOBODY && asks[caller[gpu]] ->
		gang = caller[gpu];
		grant(gang, gpu);
		gang = 0 }
	:: atomic { MAY_BEGIN(0, gpu) -> begin(0, gpu) }
	:: atomic { MAY_BEGIN(1, gpu) -> begin(1, gpu) }
	:: atomic { MAY_BEGIN(2, gpu) -> begin(2, gpu) }
	:: atomic { holder[gpu] != NOBODY && ENDS(holder[gpu], gpu) -> holder[gpu] = NOBODY }
	od
}

/* A program ends, or has nothing to do on its GPUs any more; or goes on until it has had its turn. */
proctype program(byte gang)
{
	if
	:: atomic { asks[gang] ->
		asks[gang] = false;
		met[gang] = true;
		cancel(gang) }
	:: skip
	fi
}

/* Nothing moves any more: all have had their turns or ended, and nothing is left behind. */
proctype watch()
{
	timeout ->
	assert(met[0] && met[1] && met[2]);
	assert(caller[0] == NOBODY && caller[1] == NOBODY && caller[2] == NOBODY)
}

init
{
	atomic { run program(0); run program(1); run program(2); run scheduler(0); run scheduler(1); run scheduler(2); run watch() }
}
