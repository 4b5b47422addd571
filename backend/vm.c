/*
 * VMs; see vm.h.
 */
#include "backend/vm.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include "backend/memory.h"

/* Of one vGPU process, beside those that are counted by processors. */
#define THREADS_MAX 64

_Static_assert(FGV_SESSIONS_MAX <= 64, "fgv_vm.taken has a bit for each");

static int open_accounts(struct fgv_vm *vm)
{
	void *accounts;
	int ret;

	vm->accounts_fd = fgv_memory_create("fairgv-accounts", sizeof(*vm->accounts), &accounts);
	if (vm->accounts_fd < 0)
		return vm->accounts_fd;
	vm->accounts = accounts;
	vm->accounts_read_fd = fgv_memory_reopen_readable(vm->accounts_fd);
	ret = vm->accounts_read_fd;
	if (ret >= 0)
		return 0;
	munmap(vm->accounts, sizeof(*vm->accounts));
	close(vm->accounts_fd);
	return ret;
}

static void close_accounts(struct fgv_vm *vm)
{
	close(vm->accounts_read_fd);
	munmap(vm->accounts, sizeof(*vm->accounts));
	close(vm->accounts_fd);
}

static int open_allowance(struct fgv_vm *vm)
{
	void *allowance;

	vm->allowance_fd =
		fgv_memory_create_readable("fairgv-allowance", sizeof(*vm->allowance), &allowance);
	if (vm->allowance_fd < 0)
		return vm->allowance_fd;
	vm->allowance = allowance;
	vm->allowance->memory_bytes = vm->config->memory_bytes;
	return 0;
}

static void close_allowance(struct fgv_vm *vm)
{
	munmap(vm->allowance, sizeof(*vm->allowance));
	close(vm->allowance_fd);
}

static void fill_keeper(struct fgv_keeper_setup *setup, const struct fgv_config_vm *config)
{
	*setup = (struct fgv_keeper_setup){
		.bytes = config->images_bytes,
		.data_bytes = config->process_memory_bytes,
		.threads = fgv_vm_threads(config),
		.uid = config->uid,
	};
	snprintf(setup->vm, sizeof(setup->vm), "%s", config->name);
}

static void detach_share(struct fgv_vm *vm)
{
	for (unsigned i = 0; i < FGV_COPY_ENGINES; i++) {
		if (vm->copying[i])
			fgv_gpusched_detach_vgpu(vm->copying[i]);
	}
	if (vm->vgpu)
		fgv_gpusched_detach_vgpu(vm->vgpu);
}

/* Its place on the device, of each engine that is granted by itself. */
static int attach_share(struct fgv_vm *vm)
{
	const struct fgv_device *device = vm->device;
	uint32_t weight = (uint32_t)vm->config->weight;
	const struct fgv_sched_shares shares = {
		.request = (uint32_t)vm->config->request,
		.limit = (uint32_t)vm->config->limit,
		.bound_ns = vm->config->slo_ns,
	};
	int ret = fgv_gpusched_attach_vgpu(device->sched, weight, &vm->vgpu);

	for (unsigned i = 0; i < FGV_COPY_ENGINES && !ret; i++) {
		if (device->copying[i])
			ret = fgv_gpusched_attach_vgpu(device->copying[i], weight,
						       &vm->copying[i]);
	}
	if (!ret)
		ret = fgv_vm_set_shares(vm, &shares);
	if (ret)
		detach_share(vm);
	return ret;
}

int fgv_vm_set_shares(struct fgv_vm *vm, const struct fgv_sched_shares *shares)
{
	int ret = fgv_gpusched_set_shares(vm->vgpu, shares);

	for (unsigned i = 0; i < FGV_COPY_ENGINES && !ret; i++) {
		if (vm->copying[i])
			ret = fgv_gpusched_set_shares(vm->copying[i], shares);
	}
	return ret;
}

int fgv_vm_set_weight(struct fgv_vm *vm, uint32_t weight)
{
	int ret = fgv_gpusched_set_weight(vm->vgpu, weight);

	for (unsigned i = 0; i < FGV_COPY_ENGINES && !ret; i++) {
		if (vm->copying[i])
			ret = fgv_gpusched_set_weight(vm->copying[i], weight);
	}
	return ret;
}

bool fgv_vm_copying_stats(const struct fgv_vm *vm, unsigned i, struct fgv_gpusched_stats *stats)
{
	if (!vm->copying[i])
		return false;
	fgv_gpusched_vgpu_stats(vm->copying[i], stats);
	return true;
}

int fgv_vm_init(struct fgv_vm *vm, const struct fgv_config_vm *config,
		const struct fgv_device *device)
{
	int ret;

	*vm = (struct fgv_vm){.config = config, .device = device, .cgroup_fd = -1};
	fill_keeper(&vm->keeper.setup, config);
	ret = open_allowance(vm);
	if (ret)
		return ret;
	ret = open_accounts(vm);
	if (ret)
		goto close_allowance;
	ret = attach_share(vm);
	if (!ret)
		return 0;
	close_accounts(vm);
close_allowance:
	close_allowance(vm);
	return ret;
}

void fgv_vm_fini(struct fgv_vm *vm)
{
	fgv_keeper_end(&vm->keeper);
	if (vm->cgroup_fd >= 0)
		close(vm->cgroup_fd);
	detach_share(vm);
	close_accounts(vm);
	close_allowance(vm);
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

/* Pairs with the load in fgv_quota's sum_use(). */
static void store_taken(struct fgv_vm *vm, uint64_t taken)
{
	vm->taken = taken;
	__atomic_store_n(&vm->allowance->taken, taken, __ATOMIC_SEQ_CST);
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
	return (uint64_t)__builtin_popcountll(vm->taken) >= vm->config->sessions;
}

/* The VM's other sessions look at it when they are short of memory. */
static void store_ending(struct fgv_vm *vm, uint64_t ending)
{
	vm->ending = ending;
	/* Pairs with the acquire in fgv_quota_ending(). */
	__atomic_store_n(&vm->allowance->ending, ending, __ATOMIC_RELEASE);
}

void fgv_vm_set_ending(struct fgv_vm *vm, unsigned account)
{
	store_ending(vm, vm->ending | UINT64_C(1) << account);
}

bool fgv_vm_has_ending(const struct fgv_vm *vm)
{
	return vm->ending;
}

/* A word of an account, whose owner may be writing it. */
static uint64_t word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

void fgv_vm_account(const struct fgv_vm *vm, unsigned account, struct fgv_account *now)
{
	const struct fgv_account *entry = &vm->accounts->sessions[account];

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
	};
}

static void add(struct fgv_account *sum, const struct fgv_account *account)
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
}

void fgv_vm_usage(const struct fgv_vm *vm, struct fgv_account *sum)
{
	*sum = vm->gone;
	for (unsigned i = 0; i < vm->config->sessions; i++) {
		struct fgv_account account;

		if (!(vm->taken & UINT64_C(1) << i))
			continue;
		fgv_vm_account(vm, i, &account);
		add(sum, &account);
	}
}

/* The VM's other sessions may be adding the words up. */
static void clear(struct fgv_account *entry)
{
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
}

void fgv_vm_put_account(struct fgv_vm *vm, unsigned account, struct fgv_account *last)
{
	fgv_vm_account(vm, account, last);
	clear(&vm->accounts->sessions[account]);
	add(&vm->gone, last);
	vm->gone.memory_bytes = 0; /* went with the process */
	store_taken(vm, vm->taken & ~(UINT64_C(1) << account));
	store_ending(vm, vm->ending & ~(UINT64_C(1) << account));
}
