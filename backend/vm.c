/*
 * VMs; see vm.h.
 */
#define _GNU_SOURCE
#include "backend/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(FGV_SESSIONS_MAX <= 64, "fgv_vm.taken has a bit for each");

static int map_accounts(struct fgv_vm *vm)
{
	size_t len = sizeof(*vm->accounts);

	if (ftruncate(vm->accounts_fd, (off_t)len) ||
	    fcntl(vm->accounts_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	vm->accounts = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, vm->accounts_fd, 0);
	return vm->accounts == MAP_FAILED ? -errno : 0;
}

int fgv_vm_init(struct fgv_vm *vm, const struct fgv_config_vm *config,
		const struct fgv_device *device)
{
	int ret;

	*vm = (struct fgv_vm){.config = config, .device = device};
	vm->accounts_fd = memfd_create("fairgv-accounts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (vm->accounts_fd < 0)
		return -errno;
	ret = map_accounts(vm);
	if (ret) {
		close(vm->accounts_fd);
		return ret;
	}
	vm->accounts->quota_bytes = config->memory_bytes;
	return 0;
}

void fgv_vm_fini(struct fgv_vm *vm)
{
	munmap(vm->accounts, sizeof(*vm->accounts));
	close(vm->accounts_fd);
}

bool fgv_vm_admits(const struct fgv_vm *vm, uid_t uid)
{
	const struct fgv_config_users *users = &vm->config->users;

	if (uid == geteuid())
		return true;
	for (size_t i = 0; i < users->count; i++) {
		if (users->uids[i] == uid)
			return true;
	}
	return false;
}

int fgv_vm_take_account(struct fgv_vm *vm)
{
	for (unsigned i = 0; i < vm->config->sessions; i++) {
		if (!(vm->taken & UINT64_C(1) << i)) {
			vm->taken |= UINT64_C(1) << i;
			return (int)i;
		}
	}
	return -EUSERS;
}

/* Moves a word out of an account that the VM's other sessions may be adding up. */
static uint64_t take_word(uint64_t *word)
{
	uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);

	__atomic_store_n(word, 0, __ATOMIC_RELAXED);
	return value;
}

void fgv_vm_put_account(struct fgv_vm *vm, unsigned account, struct fgv_account *last)
{
	struct fgv_account *entry = &vm->accounts->sessions[account];

	*last = (struct fgv_account){
		.memory_bytes = take_word(&entry->memory_bytes),
		.requests = take_word(&entry->requests),
		.round_trips = take_word(&entry->round_trips),
		.launches = take_word(&entry->launches),
		.doorbells = take_word(&entry->doorbells),
		.parks = take_word(&entry->parks),
	};
	vm->taken &= ~(UINT64_C(1) << account);
}
