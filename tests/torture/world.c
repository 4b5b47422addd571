/* The window and descriptors of a torture run, and the messages that everybody knows. */
#define _GNU_SOURCE
#include "tests/torture/torture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shmring/park.h"

#define WINDOW_LEN (2ull << 20)

void torture_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("torture: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(1);
}

/* splitmix64 */
uint64_t random_u64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int need(int result, const char *what)
{
	if (result < 0)
		torture_fail("%s: %d", what, result);
	return result;
}

void world_init(struct world *world, uint64_t requests, uint64_t seed)
{
	int sockets[2];

	*world = (struct world){.requests = requests, .seed = seed};
	need(fgv_window_layout(&world->window, WINDOW_LEN, TORTURE_LANES), "window layout");
	world->window_fd = need(fgv_window_create(&world->window), "window");
	need(fgv_window_map(&world->window, world->window_fd), "mapping");
	world->score = mmap(NULL, sizeof(*world->score), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (world->score == MAP_FAILED)
		torture_fail("no memory for the score");
	need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), "socketpair");
	world->host_socket = sockets[0];
	world->guest_socket = sockets[1];
	world->host_doorbell = need(fgv_doorbell_create(), "doorbell");
	for (uint32_t i = 0; i < TORTURE_LANES; i++)
		world->lane_doorbells[i] = need(fgv_doorbell_create(), "doorbell");
}

void world_fini(struct world *world)
{
	fgv_window_unmap(&world->window);
	munmap(world->score, sizeof(*world->score));
	close(world->window_fd);
	close(world->host_doorbell);
	for (uint32_t i = 0; i < TORTURE_LANES; i++)
		close(world->lane_doorbells[i]);
	if (world->host_socket >= 0)
		close(world->host_socket);
	if (world->guest_socket >= 0)
		close(world->guest_socket);
}

/* Lengths: most fit in the slot, some are anything, few are as long as they may be. */
static uint32_t pick_len(uint64_t random)
{
	uint64_t kind = random % 64, detail = random >> 32;

	if (kind < 40)
		return (uint32_t)(detail % (FGV_SLOT_INLINE + 1));
	if (kind < 60)
		return (uint32_t)(detail % 1024);
	if (kind < 63)
		return (uint32_t)(detail % FGV_MESSAGE_MAX);
	return FGV_MESSAGE_MAX;
}

struct message message_of(const struct world *world, uint32_t lane, uint64_t number)
{
	uint64_t state = world->seed + ((uint64_t)lane << 56) + number;
	struct message message = {.key = random_u64(&state)};
	uint64_t random = random_u64(&state);

	message.len = pick_len(random);
	/* Long rows of posts fill the ring, single calls empty it. */
	message.op = number / 512 % 2 || random >> 8 & 3 ? TORTURE_POST : TORTURE_CALL;
	if (number + 1 == world->requests)
		message.op = TORTURE_CALL;
	return message;
}

void message_fill(const struct message *message, void *data)
{
	uint64_t state = message->key;
	uint8_t *to = data;

	for (uint32_t off = 0; off < message->len; off += sizeof(state)) {
		uint64_t word = random_u64(&state);
		uint32_t left = message->len - off;

		memcpy(to + off, &word, left < sizeof(word) ? left : sizeof(word));
	}
}

void message_verify(const struct message *message, const void *data)
{
	uint64_t state = message->key;
	const uint8_t *from = data;

	for (uint32_t off = 0; off < message->len; off += sizeof(state)) {
		uint64_t word = random_u64(&state);
		uint32_t left = message->len - off;

		if (memcmp(from + off, &word, left < sizeof(word) ? left : sizeof(word)))
			torture_fail("wrong content at byte %u of %u", off, message->len);
	}
}

uint64_t reply_status(const struct message *message)
{
	return ~message->key;
}
