/*
 * The worst of guests: root in it, with the module out of the way, has the device's memory and
 * doorbells alone. It gets sessions as the module would, ruins their windows under the host,
 * and all the rest from time to time, until it is killed.
 *
 *	hostile FOLDER		the device's, in /sys/bus/pci/devices
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/gpu_wire.h"
#include "api/region.h"
#include "shmring/ring.h"

#define DOORBELL     3	 /* ivshmem's register, in words */
#define ANSWER_MS    500 /* the host may have lost what it would answer by */
#define ALL_EVERY    4	 /* sessions between two that the whole region is spoilt after */
#define LOOKED_AT_US 20000
#define WAKE_UPS     200

struct device {
	volatile uint32_t *registers;
	uint8_t *region;
	size_t region_len;
	struct fgv_region_head head; /* as it was before */
};

static uint64_t dice = 0x9e3779b97f4a7c15;

static uint64_t throw_dice(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice;
}

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void *map_bar(const char *folder, int bar, size_t *len)
{
	char path[256];
	struct stat file;
	void *base;
	int fd;

	snprintf(path, sizeof(path), "%s/resource%d", folder, bar);
	fd = open(path, O_RDWR);
	if (fd < 0 || fstat(fd, &file))
		die(path);
	*len = (size_t)file.st_size;
	base = mmap(NULL, *len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		die(path);
	close(fd);
	return base;
}

static void enable(const char *folder)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/enable", folder);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "1", 1) != 1)
		die(path);
	close(fd);
}

static void ring(const struct device *device, uint32_t vector)
{
	device->registers[DOORBELL] = FGV_REGION_HOST << 16 | vector;
}

static void spoil(uint8_t *from, size_t len)
{
	uint64_t *words = (uint64_t *)from;

	for (size_t i = 0; i < len / sizeof(*words); i++)
		words[i] = throw_dice();
}

static uint8_t *window_of(const struct device *device, uint32_t window)
{
	return device->region + device->head.windows_off + window * device->head.window_len;
}

/* Whether the host answers with @state. */
static bool ask(const struct device *device, uint32_t window, uint32_t request, uint32_t state)
{
	struct fgv_region_slot *slot =
		(struct fgv_region_slot *)(device->region + FGV_REGION_SLOTS_OFF) + window;
	uint32_t serial = slot->serial + 1;

	slot->hello = (struct fgv_msg_hello){
		.type = FGV_MSG_HELLO,
		.version = device->head.wire_version,
		.program = "hostile",
		.hash = FGV_API_HASH,
	};
	slot->request = request;
	__atomic_store_n(&slot->serial, serial, __ATOMIC_SEQ_CST);
	ring(device, 0);
	for (int ms = 0; ms < ANSWER_MS; ms++) {
		if (__atomic_load_n(&slot->answer, __ATOMIC_ACQUIRE) == serial)
			return slot->state == state;
		usleep(1000);
	}
	return false;
}

/* Requests that look as if they were some: operations and arguments are thrown. */
static void post_nonsense(const struct device *device, uint32_t window)
{
	struct fgv_slot *slots =
		(struct fgv_slot *)(window_of(device, window) + FGV_PAGE_BYTES + FGV_LANE_REQUESTS);

	for (uint32_t i = 0; i < FGV_REQUEST_SLOTS; i++) {
		uint32_t position = FGV_RING_START + i;
		struct fgv_slot *slot = &slots[position % FGV_REQUEST_SLOTS];

		spoil((uint8_t *)slot, sizeof(*slot));
		slot->op = throw_dice() % 64;
		slot->ticket = i + 1;
		slot->call = i;
		slot->len = throw_dice() % 4 ? throw_dice() % FGV_SLOT_INLINE : slot->len;
		__atomic_store_n(&slot->mark, position + 1, __ATOMIC_RELEASE);
	}
	ring(device, 1 + window);
}

static void spoil_session(const struct device *device, uint32_t window)
{
	if (throw_dice() % 2) {
		post_nonsense(device, window);
		usleep(LOOKED_AT_US);
	}
	spoil(window_of(device, window), device->head.window_len);
	for (int i = 0; i < WAKE_UPS; i++)
		ring(device, 1 + window);
}

static void spoil_all(const struct device *device)
{
	spoil(device->region, device->region_len);
	for (uint32_t vector = 0; vector <= device->head.windows; vector++)
		ring(device, vector);
}

int main(int argc, char **argv)
{
	struct device device;
	size_t len;

	if (argc != 2) {
		fputs("usage: hostile FOLDER\n", stderr);
		return EXIT_FAILURE;
	}
	enable(argv[1]);
	device.registers = map_bar(argv[1], 0, &len);
	device.region = map_bar(argv[1], 2, &device.region_len);
	memcpy(&device.head, device.region, sizeof(device.head));
	if (device.head.magic != FGV_REGION_MAGIC)
		die("this is no region");
	for (unsigned sessions = 0;;) {
		uint32_t window = (uint32_t)(throw_dice() % device.head.windows);

		ask(&device, window, FGV_SLOT_CLOSE, FGV_SLOT_FREE);
		if (!ask(&device, window, FGV_SLOT_OPEN, FGV_SLOT_READY))
			continue;
		spoil_session(&device, window);
		if (++sessions % ALL_EVERY == 0)
			spoil_all(&device);
		printf("spoilt=%u\n", sessions);
		fflush(stdout);
	}
}
