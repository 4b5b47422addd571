/*
 * Turns: the holder of a domain's grant, how its slice ends, and what is on the GPU meanwhile. A
 * slice that ends by holding goes as docs/design/0019-holding.md says: the next session is let
 * go first, then the one before is held, and in between the GPU serves both by halves.
 */
#include "common/util.h"
#include "scheduler/sim/share_world.h"

/* Is it on the GPU, as far as its channels are concerned? */
static bool is_on(const struct seat *seat)
{
	return seat != NULL && !seat->held && seat->running > 0;
}

/* Everybody on the GPU gets an equal part of it. A holder with nothing on it keeps it alone. */
static void share_gpu(struct domain *domain)
{
	struct seat *seats[] = {domain->holder, domain->leaving, domain->early};
	unsigned int on = 0;

	for (size_t i = 0; i < FGV_ARRAY_LEN(seats); i++)
		on += is_on(seats[i]);
	for (size_t i = 0; i < FGV_ARRAY_LEN(seats); i++) {
		struct seat *seat = seats[i];
		double rate;

		if (seat == NULL || (i == 2 && seat == domain->holder))
			continue;
		rate = is_on(seat) && !domain->changing ? 1.0 / on : 0;
		seat_set_rate(seat, rate, i == 0 && !seat->held && on == 0 ? 1 : rate);
	}
}

/* The GPU computes for @seat from now on. */
static void change_context(struct domain *domain, struct seat *seat)
{
	struct share_world *world = domain->world;

	if (!domain->computes || domain->context == seat)
		return;
	domain->context = seat;
	domain->changing = world->params.switch_ns > 0;
	if (domain->changing)
		share_set(world, &domain->changed, world->params.switch_ns);
}

void domain_context_changed(void *arg)
{
	struct domain *domain = arg;

	domain->changing = false;
	share_gpu(domain);
}

/* --- Giving back ----------------------------------------------------------- */

/* What the holder has to pay for since it last paid, as of the last catch-up. */
static uint64_t take_bill(struct seat *seat)
{
	const struct share_world *world = seat->domain->world;
	uint64_t now_ns = share_now(world), bill_ns = now_ns - seat->paid_at_ns;

	if (world->params.by_use)
		bill_ns = (uint64_t)seat->used_ns;
	seat->used_ns = 0;
	seat->paid_at_ns = now_ns;
	return bill_ns;
}

/* A newcomer starts at the virtual time, which must not be older than now. */
static void settle_unlimited(struct domain *domain)
{
	struct seat *holder = domain->holder;

	if (holder == NULL || holder->end_ns != FGV_SCHED_NO_LIMIT)
		return;
	seat_catch_up(holder);
	fgv_sched_charge(holder->session, take_bill(holder), share_now(domain->world));
}

static void lose_grant(struct seat *seat, bool more)
{
	struct domain *domain = seat->domain;
	struct share_world *world = domain->world;

	share_cancel(world, &domain->slice);
	share_cancel(world, &domain->idle);
	seat_set_rate(seat, seat->rate, domain->leaving == seat ? seat->rate : 0);
	domain->holder = NULL;
	fgv_sched_release(seat->session, take_bill(seat), more, share_now(world));
	domain_decide_soon(domain);
}

static void give_back(struct seat *seat)
{
	lose_grant(seat, seat_wants(seat));
}

void domain_hold(void *arg)
{
	struct domain *domain = arg;

	share_cancel(domain->world, &domain->hold);
	domain->leaving->held = true;
	seat_set_rate(domain->leaving, 0, 0);
	domain->leaving = NULL;
	domain->world->holds++;
	share_gpu(domain);
}

/* Takes the grant away while its work is on the GPU; held once the next has been let go. */
static void take_away(struct seat *seat)
{
	struct domain *domain = seat->domain;

	if (domain->leaving != NULL)
		domain_hold(domain);
	domain->leaving = seat;
	lose_grant(seat, true);
}

static void end_slice(struct seat *seat)
{
	const struct share_params *params = &seat->domain->world->params;

	seat->ending = true;
	seat_catch_up(seat);
	if (seat->running == 0)
		give_back(seat);
	else if (params->holds && seat->domain->computes &&
		 (seat->held || seat_left_ns(seat) > (double)params->drain_ns))
		take_away(seat);
}

/* With a lead: lets the next go on early, if it is held. */
static void prepare_next(struct domain *domain)
{
	struct share_world *world = domain->world;
	struct fgv_sched_session *next = fgv_sched_successor(domain->sched, share_now(world));
	struct seat *seat = next != NULL ? fgv_sched_session_owner(next) : NULL;

	if (seat == NULL || seat == domain->holder || !seat->held)
		return;
	domain->early = seat;
	share_set(world, &domain->let_go, world->params.let_go_ns);
}

void domain_slice(void *arg)
{
	struct domain *domain = arg;
	struct seat *holder = domain->holder;

	if (share_now(domain->world) >= holder->end_ns) {
		end_slice(holder);
		return;
	}
	engine_set(&domain->world->engine, &domain->slice, holder->end_ns);
	prepare_next(domain);
}

void domain_idle(void *arg)
{
	struct domain *domain = arg;

	give_back(domain->holder);
}

/* --- Going on -------------------------------------------------------------- */

/* The holder, if it does not have to be let go first, starts what it can, or gives back. */
static void go_on(struct seat *seat)
{
	struct domain *domain = seat->domain;
	struct share_world *world = domain->world;

	seat_start_operations(seat);
	if (is_on(seat) && domain->early == NULL)
		change_context(domain, seat);
	share_gpu(domain);
	if (seat->running > 0) {
		share_cancel(world, &domain->idle);
		return;
	}
	if (seat->ending || seat_wants(seat))
		give_back(seat);
	else if (domain->idle.place == 0)
		share_set(world, &domain->idle, world->params.idle_ns);
}

void seat_changed(struct seat *seat)
{
	struct domain *domain = seat->domain;

	if (domain->holder == seat) {
		go_on(seat);
		return;
	}
	share_gpu(domain);
	if (seat->running > 0 || seat_wants(seat)) {
		settle_unlimited(domain);
		fgv_sched_request(seat->session, share_now(domain->world));
		domain_decide_soon(domain);
	}
}

void domain_let_go(void *arg)
{
	struct domain *domain = arg;
	struct seat *seat = domain->early;

	domain->early = seat == domain->holder ? NULL : seat;
	seat->held = false;
	if (domain->leaving != NULL && domain->hold.place == 0)
		share_set(domain->world, &domain->hold, domain->world->params.hold_ns);
	if (seat == domain->holder) {
		go_on(seat);
		return;
	}
	if (seat->running > 0)
		change_context(domain, seat);
	share_gpu(domain);
}

/* --- The scheduler's driver ------------------------------------------------ */

static void set_end(struct domain *domain, struct seat *seat, uint64_t slice_ns)
{
	struct share_world *world = domain->world;
	uint64_t lead_ns = fgv_min_u64(world->params.lead_ns, slice_ns);

	seat->end_ns = FGV_SCHED_NO_LIMIT;
	if (slice_ns == FGV_SCHED_NO_LIMIT)
		return;
	seat->end_ns = share_now(world) + slice_ns;
	engine_set(&world->engine, &domain->slice, seat->end_ns - lead_ns);
}

/* Lets the new holder go, if it is held, and holds the one before. */
static void call_driver(struct domain *domain, struct seat *seat)
{
	struct share_world *world = domain->world;

	if (domain->early != NULL && domain->early != seat) {
		share_cancel(world, &domain->let_go); /* it was somebody else's turn after all */
		domain->early->held = true;
		seat_set_rate(domain->early, 0, 0);
		domain->early = NULL;
	}
	if (!seat->held) {
		domain->early = NULL;
		if (domain->leaving != NULL)
			share_set(world, &domain->hold, world->params.hold_ns);
	} else if (domain->early == NULL) {
		domain->early = seat;
		share_set(world, &domain->let_go, world->params.let_go_ns);
	}
}

static void take_grant(struct seat *seat, uint64_t slice_ns)
{
	struct domain *domain = seat->domain;
	struct share_world *world = domain->world;

	domain->holder = seat;
	seat->paid_at_ns = share_now(world);
	seat->ending = false;
	seat->started = seat->running > 0;
	set_end(domain, seat, slice_ns);
	if (domain->leaving == seat) {
		domain->leaving = NULL; /* is not interrupted */
		share_cancel(world, &domain->hold);
	} else {
		world->hand_overs++;
	}
	call_driver(domain, seat);
	go_on(seat);
}

void domain_decide(void *arg)
{
	struct domain *domain = arg;
	struct share_world *world = domain->world;
	struct fgv_sched_decision d;
	uint64_t next_ns;

	while (fgv_sched_decide(domain->sched, share_now(world), &d)) {
		struct seat *seat = fgv_sched_session_owner(d.session);

		if (d.action == FGV_SCHED_GRANT)
			take_grant(seat, d.slice_ns);
		else if (d.action == FGV_SCHED_LIMIT)
			set_end(domain, seat, d.slice_ns);
		else if (d.action == FGV_SCHED_STARVED)
			world->starved++;
	}
	next_ns = fgv_sched_next_ns(domain->sched, share_now(world));
	if (domain->decide.place == 0 && next_ns != FGV_SCHED_NEVER)
		engine_set(&world->engine, &domain->decide, next_ns);
}

void domain_decide_soon(struct domain *domain)
{
	share_set(domain->world, &domain->decide, 0);
}
