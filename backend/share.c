/*
 * Shares of GPUs; see share.h.
 */
#include "backend/share.h"

#include <sys/mman.h>
#include <unistd.h>
#include "backend/memory.h"
#include "common/util.h"

static int open_accounts(struct fgv_share *share)
{
	void *accounts;
	int ret;

	share->accounts_fd =
		fgv_memory_create("fairgv-accounts", sizeof(*share->accounts), &accounts);
	if (share->accounts_fd < 0)
		return share->accounts_fd;
	share->accounts = accounts;
	share->accounts_read_fd = fgv_memory_reopen_readable(share->accounts_fd);
	ret = share->accounts_read_fd;
	if (ret >= 0)
		return 0;
	munmap(share->accounts, sizeof(*share->accounts));
	close(share->accounts_fd);
	return ret;
}

static void close_accounts(struct fgv_share *share)
{
	close(share->accounts_read_fd);
	munmap(share->accounts, sizeof(*share->accounts));
	close(share->accounts_fd);
}

static int open_allowance(struct fgv_share *share, uint64_t memory_bytes)
{
	void *allowance;

	share->allowance_fd = fgv_memory_create_readable("fairgv-allowance",
							 sizeof(*share->allowance), &allowance);
	if (share->allowance_fd < 0)
		return share->allowance_fd;
	share->allowance = allowance;
	share->allowance->memory_bytes = memory_bytes;
	return 0;
}

static void close_allowance(struct fgv_share *share)
{
	munmap(share->allowance, sizeof(*share->allowance));
	close(share->allowance_fd);
}

static void detach(struct fgv_share *share)
{
	for (unsigned i = 0; i < FGV_COPY_ENGINES; i++) {
		if (share->copying[i])
			fgv_gpusched_detach_vgpu(share->copying[i]);
	}
	if (share->vgpu)
		fgv_gpusched_detach_vgpu(share->vgpu);
}

/* Its multiprocessors, under a policy that divides them. */
static int reserve(struct fgv_share *share, const struct fgv_config_vm *config)
{
	uint32_t units = 0, limit = 0;

	if (share->device->units.units)
		fgv_config_vm_units(config, &share->device->units, &units, &limit);
	return fgv_gpusched_set_units(share->vgpu, units, limit);
}

/* Its place on the device, of each engine that is granted by itself. */
static int attach(struct fgv_share *share, const struct fgv_config_vm *config)
{
	const struct fgv_device *device = share->device;
	uint32_t weight = (uint32_t)config->weight;
	int ret = fgv_gpusched_attach_vgpu(device->sched, weight, &share->vgpu);

	for (unsigned i = 0; i < FGV_COPY_ENGINES && !ret; i++) {
		if (device->copying[i])
			ret = fgv_gpusched_attach_vgpu(device->copying[i], weight,
						       &share->copying[i]);
	}
	if (!ret)
		ret = fgv_share_set_priority(share, (uint32_t)config->priority);
	if (!ret)
		ret = reserve(share, config);
	if (ret)
		detach(share);
	return ret;
}

/* One after another, from *@at = 0 on: what computes, and what copies by itself. NULL: no more. */
static struct fgv_gpusched_vgpu *next_engine(const struct fgv_share *share, unsigned *at)
{
	struct fgv_gpusched_vgpu *engine = NULL;

	for (; !engine && *at <= FGV_COPY_ENGINES; (*at)++)
		engine = *at ? share->copying[*at - 1] : share->vgpu;
	return engine;
}

int fgv_share_set_shares(struct fgv_share *share, const struct fgv_sched_shares *shares)
{
	struct fgv_gpusched_vgpu *engine;
	unsigned at = 0;
	int ret = 0;

	while (!ret && (engine = next_engine(share, &at)))
		ret = fgv_gpusched_set_shares(engine, shares);
	return ret;
}

int fgv_share_set_priority(struct fgv_share *share, uint32_t priority)
{
	struct fgv_gpusched_vgpu *engine;
	unsigned at = 0;
	int ret = 0;

	while (!ret && (engine = next_engine(share, &at)))
		ret = fgv_gpusched_set_priority(engine, priority);
	return ret;
}

int fgv_share_set_weight(struct fgv_share *share, uint32_t weight)
{
	struct fgv_gpusched_vgpu *engine;
	unsigned at = 0;
	int ret = 0;

	while (!ret && (engine = next_engine(share, &at)))
		ret = fgv_gpusched_set_weight(engine, weight);
	return ret;
}

bool fgv_share_copying_stats(const struct fgv_share *share, unsigned i,
			     struct fgv_gpusched_stats *stats)
{
	if (!share->copying[i])
		return false;
	fgv_gpusched_vgpu_stats(share->copying[i], stats);
	return true;
}

int fgv_share_init(struct fgv_share *share, const struct fgv_config_vm *config, unsigned number,
		   const struct fgv_device *device)
{
	int ret;

	*share = (struct fgv_share){.number = number, .device = device};
	ret = open_allowance(share, config->memory_bytes);
	if (ret)
		return ret;
	ret = open_accounts(share);
	if (ret)
		goto close_allowance;
	ret = attach(share, config);
	if (!ret)
		return 0;
	close_accounts(share);
close_allowance:
	close_allowance(share);
	return ret;
}

void fgv_share_fini(struct fgv_share *share)
{
	detach(share);
	close_accounts(share);
	close_allowance(share);
}

/* A word of an account, whose owner may be writing it. */
static uint64_t word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

void fgv_share_account(const struct fgv_share *share, unsigned account, struct fgv_account *now)
{
	const struct fgv_account *entry = &share->accounts->sessions[account];

	*now = (struct fgv_account){
		.memory_bytes = word(&entry->memory_bytes),
		.requests = word(&entry->requests),
		.round_trips = word(&entry->round_trips),
		.launches = word(&entry->launches),
		.batched = word(&entry->batched),
		.repeated = word(&entry->repeated),
		.changed = word(&entry->changed),
		.graphs = word(&entry->graphs),
		.doorbells_rung = word(&entry->doorbells_rung),
		.doorbells_received = word(&entry->doorbells_received),
		.parks = word(&entry->parks),
		.sliced = word(&entry->sliced),
		.parts = word(&entry->parts),
		.left_whole = word(&entry->left_whole),
		.bytes_in = word(&entry->bytes_in),
		.bytes_out = word(&entry->bytes_out),
		.errors = word(&entry->errors),
		.no_memory = word(&entry->no_memory),
		.away_bytes = word(&entry->away_bytes),
		.frozen = word(&entry->frozen),
		.asks = word(&entry->asks),
		.tries = word(&entry->tries),
		.moved_in = word(&entry->moved_in),
		.moved_out = word(&entry->moved_out),
	};
	for (unsigned i = 0; i < FGV_STAYS; i++)
		now->stays_bytes[i] = word(&entry->stays_bytes[i]);
}

void fgv_account_sum(struct fgv_account *sum, const struct fgv_account *account)
{
	sum->memory_bytes += account->memory_bytes;
	sum->requests += account->requests;
	sum->round_trips += account->round_trips;
	sum->launches += account->launches;
	sum->batched += account->batched;
	sum->repeated += account->repeated;
	sum->changed += account->changed;
	sum->graphs += account->graphs;
	sum->doorbells_rung += account->doorbells_rung;
	sum->doorbells_received += account->doorbells_received;
	sum->parks += account->parks;
	sum->sliced += account->sliced;
	sum->parts += account->parts;
	sum->left_whole += account->left_whole;
	sum->bytes_in += account->bytes_in;
	sum->bytes_out += account->bytes_out;
	sum->errors += account->errors;
	sum->no_memory += account->no_memory;
	sum->away_bytes += account->away_bytes;
	sum->moved_in += account->moved_in;
	sum->moved_out += account->moved_out;
	for (unsigned i = 0; i < FGV_STAYS; i++)
		sum->stays_bytes[i] += account->stays_bytes[i];
}

void fgv_share_clear(struct fgv_share *share, unsigned account)
{
	struct fgv_account *entry = &share->accounts->sessions[account];

	__atomic_store_n(&entry->memory_bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->requests, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->round_trips, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->launches, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->batched, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->repeated, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->changed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->graphs, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->doorbells_rung, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->doorbells_received, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->parks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->sliced, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->parts, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->left_whole, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->bytes_in, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->bytes_out, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->errors, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->no_memory, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->away_bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->frozen, FGV_FROZEN_NOT, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->asks, FGV_ASKS_NOTHING, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->tries, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->moved_in, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->moved_out, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < FGV_STAYS; i++)
		__atomic_store_n(&entry->stays_bytes[i], 0, __ATOMIC_RELAXED);
}

uint64_t fgv_share_shared(const struct fgv_share *share)
{
	return word(&share->accounts->shared.memory_bytes);
}

uint64_t fgv_share_shared_by(const struct fgv_share *share, unsigned account)
{
	return word(&share->accounts->shared.has_bytes[account]);
}

/* What the keeper writes is believed as far as the GPU goes. */
uint64_t fgv_share_shared_part(const struct fgv_share *share, unsigned account)
{
	uint64_t all = fgv_min_u64(fgv_share_shared(share), share->device->info.memory_bytes);
	uint64_t own = fgv_min_u64(fgv_share_shared_by(share, account), all);
	unsigned __int128 sum = 0;

	for (unsigned i = 0; i < FGV_SESSIONS_MAX; i++)
		sum += fgv_min_u64(fgv_share_shared_by(share, i), all);
	return sum ? (uint64_t)((unsigned __int128)all * own / sum) : 0;
}

void fgv_share_clear_shared(const struct fgv_share *share)
{
	struct fgv_shared_account *shared = &share->accounts->shared;

	for (unsigned i = 0; i < FGV_SESSIONS_MAX; i++)
		__atomic_store_n(&shared->has_bytes[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->memory_bytes, 0, __ATOMIC_RELAXED);
}

/* Pairs with the load in fgv_quota's quota_bytes(). */
void fgv_share_set_memory(struct fgv_share *share, uint64_t bytes)
{
	__atomic_store_n(&share->allowance->memory_bytes, bytes, __ATOMIC_RELAXED);
}

/* Pairs with the load in fgv_quota's sum_use(). */
void fgv_share_set_taken(struct fgv_share *share, uint64_t taken)
{
	__atomic_store_n(&share->allowance->taken, taken, __ATOMIC_SEQ_CST);
}

/* Before it is looked whether a process sleeps; pairs with the load in fgv_freezer_has_news(). */
void fgv_share_set_frozen(struct fgv_share *share, uint64_t frozen)
{
	__atomic_store_n(&share->allowance->frozen, frozen, __ATOMIC_SEQ_CST);
}

static void set_bit(uint64_t *word, unsigned bit, bool is_set)
{
	uint64_t mask = UINT64_C(1) << bit;

	__atomic_store_n(word, is_set ? *word | mask : *word & ~mask, __ATOMIC_SEQ_CST);
}

/* As fgv_share_set_frozen(). */
void fgv_share_set_out(struct fgv_share *share, unsigned account, bool is_out)
{
	set_bit(&share->allowance->out, account, is_out);
}

void fgv_share_set_alone(struct fgv_share *share, unsigned account, bool is_alone)
{
	set_bit(&share->allowance->alone, account, is_alone);
}

void fgv_share_set_paged(struct fgv_share *share, bool is_paged)
{
	__atomic_store_n(&share->allowance->paged, is_paged, __ATOMIC_SEQ_CST);
}

/* Pairs with the acquire in fgv_quota_ending(). */
void fgv_share_set_ending(struct fgv_share *share, uint64_t ending)
{
	__atomic_store_n(&share->allowance->ending, ending, __ATOMIC_RELEASE);
}
