/*
 * VMs; see vm.h.
 */
#include "backend/vm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

/* Of one vGPU process, beside those that are counted by processors. */
#define THREADS_MAX 64

_Static_assert(FGV_SESSIONS_MAX <= 64, "fgv_vm.taken has a bit for each");

static void fill_keeper(struct fgv_keeper_setup *setup, const struct fgv_config_vm *config,
			unsigned gpus)
{
	*setup = (struct fgv_keeper_setup){
		.gpus = gpus,
		.sharing = config->sharing,
		.bytes = config->images_bytes,
		.data_bytes = config->process_memory_bytes,
		.threads = fgv_vm_threads(config),
		.uid = config->uid,
	};
	snprintf(setup->vm, sizeof(setup->vm), "%s", config->name);
}

static void fini_shares(struct fgv_vm *vm)
{
	while (vm->share_count)
		fgv_share_fini(&vm->shares[--vm->share_count]);
	fgv_gang_destroy(vm->gang);
	vm->gang = NULL;
}

/* Its turns on all its GPUs go together from now on. */
static int make_gang(struct fgv_vm *vm, const struct fgv_devices *devices)
{
	int ret = fgv_gang_create(&vm->gang, devices->gangs.gangs);

	for (unsigned i = 0; i < vm->share_count && !ret; i++)
		ret = fgv_gpusched_set_gang(vm->shares[i].vgpu, vm->gang);
	return ret;
}

int fgv_vm_init(struct fgv_vm *vm, const struct fgv_config_vm *config,
		const struct fgv_devices *devices)
{
	size_t count = fgv_config_device_count(config, devices->count);
	int ret;

	*vm = (struct fgv_vm){.config = &vm->copy, .cgroup_fd = -1};
	ret = fgv_config_copy_vm(&vm->copy, config);
	if (ret)
		return ret;
	fill_keeper(&vm->keeper.setup, config, (unsigned)count);
	vm->keeper.shares = vm->shares;
	vm->keeper.lines = &vm->lines;
	vm->lines.vm = vm->keeper.setup.vm;
	while (vm->share_count < count && !ret) {
		unsigned number = config->devices.list[vm->share_count];

		ret = fgv_share_init(&vm->shares[vm->share_count], config, number,
				     &devices->list[number]);
		vm->share_count += !ret;
	}
	if (!ret && config->gang)
		ret = make_gang(vm, devices);
	if (ret)
		fgv_vm_fini(vm);
	return ret;
}

void fgv_vm_fini(struct fgv_vm *vm)
{
	fini_shares(vm);
	fgv_relay_limit_fini(&vm->lines);
	fgv_config_free_vm(&vm->copy);
}

const struct fgv_share *fgv_vm_share_of(const struct fgv_vm *vm, unsigned device)
{
	for (unsigned i = 0; i < vm->share_count; i++) {
		if (vm->shares[i].number == device)
			return &vm->shares[i];
	}
	return NULL;
}

int fgv_vm_set_weight(struct fgv_vm *vm, uint32_t weight)
{
	int ret = 0;

	for (unsigned i = 0; i < vm->share_count && !ret; i++)
		ret = fgv_share_set_weight(&vm->shares[i], weight);
	return ret;
}

int fgv_vm_set_priority(struct fgv_vm *vm, uint32_t priority)
{
	int ret = 0;

	for (unsigned i = 0; i < vm->share_count && !ret; i++)
		ret = fgv_share_set_priority(&vm->shares[i], priority);
	return ret;
}

/* All of its GPUs, or none: what one of them refuses is taken back on those before. */
int fgv_vm_set_shares(struct fgv_vm *vm, const struct fgv_sched_shares *shares)
{
	struct fgv_sched_shares before;
	unsigned done = 0;
	int ret = 0;

	fgv_gpusched_shares(vm->shares[0].vgpu, &before);
	while (done < vm->share_count && !ret) {
		ret = fgv_share_set_shares(&vm->shares[done], shares);
		done += !ret;
	}
	while (ret && done > 0)
		fgv_share_set_shares(&vm->shares[--done], &before);
	return ret;
}

static bool is_same_keeper(const struct fgv_keeper_setup *a, const struct fgv_keeper_setup *b)
{
	return a->bytes == b->bytes && a->data_bytes == b->data_bytes && a->threads == b->threads &&
	       a->sharing == b->sharing;
}

void fgv_vm_take_config(struct fgv_vm *vm, struct fgv_config_vm *config)
{
	struct fgv_keeper_setup setup;

	fgv_config_free_vm(&vm->copy);
	vm->copy = *config;
	*config = (struct fgv_config_vm){0};
	for (unsigned i = 0; i < vm->share_count; i++)
		fgv_share_set_memory(&vm->shares[i], vm->copy.memory_bytes);
	fill_keeper(&setup, &vm->copy, vm->share_count);
	if (is_same_keeper(&setup, &vm->keeper.setup))
		return;
	/*
	 * It has its setup from its start, and is started again by the next one to want it; but one
	 * that sessions have memory of stays as it is.
	 */
	if (!fgv_keeper_has_memory(&vm->keeper))
		fgv_keeper_end(&vm->keeper);
	vm->keeper.setup = setup;
}

bool fgv_vm_admits(const struct fgv_vm *vm, const struct fgv_peer *peer)
{
	const struct fgv_config_users *users = &vm->config->users;

	if (fgv_peer_is_own(peer))
		return true;
	for (size_t i = 0; i < users->count && fgv_peer_is_user(peer); i++) {
		if (users->uids[i] == peer->uid)
			return true;
	}
	return false;
}

/* The driver's, the soft GPU's, which has one for each processor, FairGV's own, and the keeper. */
uint64_t fgv_vm_threads(const struct fgv_config_vm *config)
{
	return config->sessions * (THREADS_MAX + 2 * (uint64_t)get_nprocs_conf()) + 1;
}

static void store_taken(struct fgv_vm *vm, uint64_t taken)
{
	vm->taken = taken;
	for (unsigned i = 0; i < vm->share_count; i++)
		fgv_share_set_taken(&vm->shares[i], taken);
}

int fgv_vm_take_account(struct fgv_vm *vm)
{
	for (unsigned i = 0; i < vm->config->sessions; i++) {
		if (!(vm->taken & UINT64_C(1) << i)) {
			store_taken(vm, vm->taken | UINT64_C(1) << i);
			return (int)i;
		}
	}
	return -EUSERS;
}

bool fgv_vm_is_full(const struct fgv_vm *vm)
{
	return fgv_vm_sessions(vm) >= vm->config->sessions;
}

bool fgv_vm_is_empty(const struct fgv_vm *vm)
{
	return !vm->taken;
}

unsigned fgv_vm_sessions(const struct fgv_vm *vm)
{
	return (unsigned)__builtin_popcountll(vm->taken);
}

/* The VM's other sessions look at it when they are short of memory. */
static void store_ending(struct fgv_vm *vm, uint64_t ending)
{
	vm->ending = ending;
	for (unsigned i = 0; i < vm->share_count; i++)
		fgv_share_set_ending(&vm->shares[i], ending);
}

void fgv_vm_set_ending(struct fgv_vm *vm, unsigned account)
{
	store_ending(vm, vm->ending | UINT64_C(1) << account);
}

bool fgv_vm_has_ending(const struct fgv_vm *vm)
{
	return vm->ending;
}

void fgv_vm_set_frozen(struct fgv_vm *vm, unsigned account, bool is_frozen)
{
	uint64_t bit = UINT64_C(1) << account;

	vm->frozen = is_frozen ? vm->frozen | bit : vm->frozen & ~bit;
	for (unsigned i = 0; i < vm->share_count; i++)
		fgv_share_set_frozen(&vm->shares[i], vm->frozen);
}

void fgv_vm_account(const struct fgv_vm *vm, unsigned account, struct fgv_account *now)
{
	*now = (struct fgv_account){0};
	for (unsigned i = 0; i < vm->share_count; i++) {
		struct fgv_account part;

		fgv_share_account(&vm->shares[i], account, &part);
		fgv_account_sum(now, &part);
	}
}

void fgv_vm_usage(const struct fgv_vm *vm, struct fgv_account *sum)
{
	*sum = vm->gone;
	for (unsigned i = 0; i < FGV_SESSIONS_MAX; i++) {
		struct fgv_account account;

		if (!(vm->taken & UINT64_C(1) << i))
			continue;
		fgv_vm_account(vm, i, &account);
		fgv_account_sum(sum, &account);
	}
	for (unsigned i = 0; i < vm->share_count; i++)
		sum->memory_bytes += fgv_share_shared(&vm->shares[i]);
}

uint64_t fgv_vm_memory_on(const struct fgv_vm *vm, const struct fgv_share *share)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < FGV_SESSIONS_MAX; i++) {
		struct fgv_account account;

		if (!(vm->taken & UINT64_C(1) << i))
			continue;
		fgv_share_account(share, i, &account);
		bytes += account.memory_bytes;
	}
	return bytes + fgv_share_shared(share);
}

void fgv_vm_put_account(struct fgv_vm *vm, unsigned account, struct fgv_account *last)
{
	fgv_vm_account(vm, account, last);
	for (unsigned i = 0; i < vm->share_count; i++)
		fgv_share_clear(&vm->shares[i], account);
	fgv_account_sum(&vm->gone, last);
	vm->gone.memory_bytes = 0; /* went with the process, as did what was away of it */
	vm->gone.away_bytes = 0;
	memset(vm->gone.stays_bytes, 0, sizeof(vm->gone.stays_bytes));
	fgv_vm_set_frozen(vm, account, false);
	for (unsigned i = 0; i < vm->share_count; i++) {
		fgv_share_set_out(&vm->shares[i], account, false);
		fgv_share_set_alone(&vm->shares[i], account, false);
	}
	store_taken(vm, vm->taken & ~(UINT64_C(1) << account));
	store_ending(vm, vm->ending & ~(UINT64_C(1) << account));
}
