/*
 * Shared memory; see shared.h.
 */
#include "backend/vgpu/images/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct fgv_shared_memory {
	RB_ENTRY(fgv_shared_memory) node;
	struct fgv_key key;
	uint64_t bytes;
	uint64_t users; /* bits of the sessions' accounts; never none */
	unsigned maker; /* account of the session that put it there */
	uint32_t gpu;	/* or FGV_SHARED_HOST */
	int fd;
};

_Static_assert(FGV_SESSIONS_MAX <= 64, "users has a bit for each");

static int compare(const struct fgv_shared_memory *a, const struct fgv_shared_memory *b)
{
	int first = (a->key.words[0] > b->key.words[0]) - (a->key.words[0] < b->key.words[0]);

	return first ? first
		     : (a->key.words[1] > b->key.words[1]) - (a->key.words[1] < b->key.words[1]);
}

RB_GENERATE_INTERNAL(fgv_shared_tree, fgv_shared_memory, node, compare,
		     __attribute__((unused)) static)

void fgv_shared_init(struct fgv_shared *shared)
{
	*shared = (struct fgv_shared){0};
	RB_INIT(&shared->tree);
}

/* Pairs with the loads of fgv_quota's load_shared(): shown before anything is told. */
static void add_to(uint64_t *word, uint64_t bytes)
{
	__atomic_store_n(word, *word + bytes, __ATOMIC_SEQ_CST);
}

/* Where it is charged; NULL: nowhere. */
static struct fgv_shared_account *account_of(struct fgv_shared *shared,
					     const struct fgv_shared_memory *memory)
{
	return memory->gpu == FGV_SHARED_HOST ? NULL : shared->accounts[memory->gpu];
}

static void charge(struct fgv_shared *shared, const struct fgv_shared_memory *memory,
		   uint64_t bytes)
{
	struct fgv_shared_account *account = account_of(shared, memory);

	if (account)
		add_to(&account->memory_bytes, bytes);
}

/* Session number @user has so much more. */
static void count(struct fgv_shared *shared, const struct fgv_shared_memory *memory, unsigned user,
		  uint64_t bytes)
{
	struct fgv_shared_account *account = account_of(shared, memory);

	if (account)
		add_to(&account->has_bytes[user], bytes);
}

static void forget(struct fgv_shared *shared, struct fgv_shared_memory *memory)
{
	/* It is charged for until the driver has it back. */
	close(memory->fd);
	charge(shared, memory, -memory->bytes);
	RB_REMOVE(fgv_shared_tree, &shared->tree, memory);
	shared->count--;
	free(memory);
}

static void add_user(struct fgv_shared *shared, struct fgv_shared_memory *memory, unsigned account)
{
	uint64_t bit = UINT64_C(1) << account;

	if (memory->users & bit)
		return;
	memory->users |= bit;
	count(shared, memory, account, memory->bytes);
}

static void remove_user(struct fgv_shared *shared, struct fgv_shared_memory *memory,
			unsigned account)
{
	uint64_t bit = UINT64_C(1) << account;

	if (!(memory->users & bit))
		return;
	memory->users &= ~bit;
	count(shared, memory, account, -memory->bytes);
	if (!memory->users)
		forget(shared, memory);
}

void fgv_shared_fini(struct fgv_shared *shared)
{
	for (unsigned account = 0; account < FGV_SESSIONS_MAX; account++)
		fgv_shared_end(shared, account);
}

void fgv_shared_add_gpu(struct fgv_shared *shared, struct fgv_shared_account *account)
{
	if (shared->gpus < FGV_GPU_DEVICES_MAX)
		shared->accounts[shared->gpus++] = account;
}

static struct fgv_shared_memory *find(struct fgv_shared *shared, const struct fgv_key *key)
{
	struct fgv_shared_memory wanted = {.key = *key};

	return RB_FIND(fgv_shared_tree, &shared->tree, &wanted);
}

static int check(const struct fgv_shared *shared, uint32_t gpu, uint64_t bytes)
{
	if (!shared->gpus)
		return -EPERM;
	if (gpu == FGV_SHARED_HOST ? bytes != FGV_PAGE_BYTES
				   : gpu >= shared->gpus || !bytes || bytes > FGV_SHARED_BYTES_MAX)
		return -EINVAL;
	return shared->count < FGV_SHARED_MAX ? 0 : -ENOSPC;
}

static int make(struct fgv_shared *shared, uint32_t gpu, uint64_t bytes, int fd,
		struct fgv_shared_memory **out)
{
	struct fgv_shared_memory *made;
	int ret = check(shared, gpu, bytes);

	if (ret)
		return ret;
	made = malloc(sizeof(*made));
	if (!made)
		return -ENOSPC;
	*made = (struct fgv_shared_memory){.bytes = bytes, .gpu = gpu, .fd = fd};
	if (getrandom(&made->key, sizeof(made->key), 0) != sizeof(made->key) ||
	    RB_INSERT(fgv_shared_tree, &shared->tree, made)) {
		free(made);
		return -ENOSPC;
	}
	*out = made;
	return 0;
}

int fgv_shared_put(struct fgv_shared *shared, unsigned account, uint32_t gpu, uint64_t bytes,
		   int fd, struct fgv_key *key)
{
	struct fgv_shared_memory *memory;
	int ret = make(shared, gpu, bytes, fd, &memory);

	if (ret) {
		close(fd);
		return ret;
	}
	shared->count++;
	memory->maker = account;
	charge(shared, memory, bytes);
	add_user(shared, memory, account);
	*key = memory->key;
	return 0;
}

int fgv_shared_find(struct fgv_shared *shared, uint32_t gpu, const struct fgv_key *key,
		    uint64_t *bytes)
{
	struct fgv_shared_memory *memory = find(shared, key);

	if (!memory)
		return shared->gpus ? -ENOENT : -EPERM;
	if (memory->gpu != gpu)
		return -EXDEV;
	*bytes = memory->bytes;
	return memory->fd;
}

void fgv_shared_use(struct fgv_shared *shared, unsigned account, const struct fgv_key *key)
{
	struct fgv_shared_memory *memory = find(shared, key);

	if (memory)
		add_user(shared, memory, account);
}

void fgv_shared_drop(struct fgv_shared *shared, unsigned account, const struct fgv_key *key)
{
	struct fgv_shared_memory *memory = find(shared, key);

	if (memory)
		remove_user(shared, memory, account);
}

/* Where that fails it is no page of words: then nobody waits for one. */
static void say_over(const struct fgv_shared_memory *memory)
{
	uint8_t page[FGV_PAGE_BYTES];

	memset(page, FGV_WORDS_OVER, sizeof(page));
	if (pwrite(memory->fd, page, sizeof(page), 0) < 0)
		errno = 0;
}

void fgv_shared_end(struct fgv_shared *shared, unsigned account)
{
	struct fgv_shared_memory *memory, *next;

	RB_FOREACH_SAFE(memory, fgv_shared_tree, &shared->tree, next)
	{
		if (memory->gpu == FGV_SHARED_HOST && memory->maker == account)
			say_over(memory);
		remove_user(shared, memory, account);
	}
}
