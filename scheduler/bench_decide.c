/*
 * What a decision costs: nanoseconds per hand-over (a holder gives back and is charged, the
 * next one is granted) and per question to which the answer is "nothing to do", at 10,
 * 1,000 and 100,000 vGPUs that all want the GPU, with weights from 1 to 10 and slices of
 * random length, or at the sizes that are given as arguments, behind the name of a policy if it
 * is not `fair`. One JSON object per line: the median of fifteen rounds, and the best one, since
 * a machine has other things to do too.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"
#include "scheduler/sched.h"

#define HAND_OVERS 200000u
#define ROUNDS	   15

static uint64_t seed = 88172645463325252ull;

static uint64_t draw_slice(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 41; /* up to 8.4 ms */
}

/* Half of them with requests, a quarter with limits that never bite. */
static void promise(struct fgv_sched_vgpu *vgpu, unsigned int i, unsigned int vgpus)
{
	struct fgv_sched_shares shares = {.limit = FGV_SCHED_WHOLE};

	if (i % 2 == 0)
		shares.request = FGV_SCHED_WHOLE / 2 / vgpus;
	if (i % 4 == 0)
		shares.limit = FGV_SCHED_WHOLE - 1;
	if (fgv_sched_set_shares(vgpu, &shares, 0) != 0)
		exit(EXIT_FAILURE);
}

/* The first is the most urgent one. */
static void rank(struct fgv_sched_vgpu *vgpu, struct fgv_sched_session *session, unsigned int i)
{
	const struct fgv_sched_advice advice = {.next_ns = FGV_NS_PER_MS};

	if (fgv_sched_set_priority(vgpu, i == 0 ? 0 : 1 + i % 9, 0) != 0)
		exit(EXIT_FAILURE);
	fgv_sched_advise(session, &advice);
}

static struct fgv_sched *populate(const struct fgv_policy *policy, unsigned int vgpus)
{
	struct fgv_sched *sched;
	struct fgv_sched_vgpu *vgpu;
	struct fgv_sched_session *session;

	if (fgv_sched_create(&sched, policy, NULL, 0) != 0)
		exit(EXIT_FAILURE);
	for (unsigned int i = 0; i < vgpus; i++) {
		if (fgv_sched_attach_vgpu(sched, 1 + i % 10, NULL, 0, &vgpu) != 0 ||
		    fgv_sched_attach_session(vgpu, NULL, 0, &session) != 0)
			exit(EXIT_FAILURE);
		if (policy->set_shares != NULL)
			promise(vgpu, i, vgpus);
		if (policy->set_priority != NULL)
			rank(vgpu, session, i);
		fgv_sched_request(session, 0);
	}
	return sched;
}

/*
 * A holder gives back. The most urgent one leaves a gap every time, which another fills, and is
 * back when that one is done.
 */
static void give_back(struct fgv_sched_session *holder, struct fgv_sched_session **urgent,
		      uint64_t used_ns, uint64_t now_ns)
{
	const struct fgv_sched_advice gap = {.gap_ns = 5 * FGV_NS_PER_MS};
	bool is_urgent = fgv_sched_vgpu_priority(fgv_sched_session_vgpu(holder)) == 0;

	if (is_urgent) {
		*urgent = holder;
		fgv_sched_advise(holder, &gap);
	}
	fgv_sched_release(holder, used_ns, !is_urgent, now_ns);
	if (!is_urgent && *urgent != NULL)
		fgv_sched_request(*urgent, now_ns);
}

/* Of one round: nanoseconds of real time per hand-over. */
static double hand_overs(struct fgv_sched *sched, struct fgv_sched_session **holder,
			 uint64_t *now_ns)
{
	struct fgv_sched_session *urgent = NULL;
	struct fgv_sched_decision d;
	uint64_t start_ns = fgv_now_ns();

	for (unsigned int i = 0; i < HAND_OVERS; i++) {
		if (*holder != NULL) {
			uint64_t used_ns = draw_slice();

			*now_ns += used_ns + 1;
			give_back(*holder, &urgent, used_ns, *now_ns);
		}
		while (fgv_sched_decide(sched, *now_ns, &d))
			if (d.action == FGV_SCHED_GRANT)
				*holder = d.session;
	}
	return (double)(fgv_now_ns() - start_ns) / HAND_OVERS;
}

static double nothing_to_do(struct fgv_sched *sched, uint64_t now_ns)
{
	struct fgv_sched_decision d;
	uint64_t start_ns = fgv_now_ns();

	for (unsigned int i = 0; i < HAND_OVERS; i++)
		while (fgv_sched_decide(sched, now_ns, &d))
			;
	return (double)(fgv_now_ns() - start_ns) / HAND_OVERS;
}

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void measure(const struct fgv_policy *policy, unsigned int vgpus)
{
	struct fgv_sched *sched = populate(policy, vgpus);
	struct fgv_sched_session *holder = NULL;
	double round_ns[ROUNDS], idle_ns[ROUNDS];
	uint64_t now_ns = 0;

	for (int round = 0; round < ROUNDS; round++) {
		round_ns[round] = hand_overs(sched, &holder, &now_ns);
		idle_ns[round] = nothing_to_do(sched, now_ns);
	}
	qsort(round_ns, ROUNDS, sizeof(*round_ns), ascending);
	qsort(idle_ns, ROUNDS, sizeof(*idle_ns), ascending);
	printf("{\"vgpus\": %u, \"hand_over_ns\": %.1f, \"best_ns\": %.1f, "
	       "\"no_decision_ns\": %.1f}\n",
	       vgpus, round_ns[ROUNDS / 2], round_ns[0], idle_ns[ROUNDS / 2]);
	fgv_sched_destroy(sched);
}

int main(int argc, char **argv)
{
	static const unsigned int sizes[] = {10, 1000, 100000};

	const struct fgv_policy *policy = argc > 1 ? fgv_policy_find(argv[1]) : NULL;
	int first = policy != NULL ? 2 : 1;

	if (policy == NULL)
		policy = &fgv_policy_fair;
	for (int i = first; i < argc; i++)
		measure(policy, (unsigned int)fgv_max_u64(1, strtoul(argv[i], NULL, 10)));
	for (size_t i = 0; i < FGV_ARRAY_LEN(sizes) && argc == first; i++)
		measure(policy, sizes[i]);
	return EXIT_SUCCESS;
}
