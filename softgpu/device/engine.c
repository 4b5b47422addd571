/*
 * The process's side of its seat at the device's engine (seat.h). One executor at a time
 * takes the engine or gives it back; fgv_engine_wake() is for the thread that stops them.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "softgpu/device/internal.h"

static void ring(int fd)
{
	uint64_t one = 1;

	/* A counter that is full has been rung. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
}

static void sleep_on_bell(int fd)
{
	struct pollfd bell = {.fd = fd, .events = POLLIN};
	uint64_t rings;

	if (poll(&bell, 1, -1) == 1)
		while (read(fd, &rings, sizeof(rings)) < 0 && errno == EINTR)
			continue;
}

static void give_back(const struct softgpu_engine *engine)
{
	__atomic_store_n(&engine->seat->state, SOFTGPU_SEAT_FREE, __ATOMIC_SEQ_CST);
	ring(engine->arbiter_fd);
}

/* It has been asked for; false: *@stop was set before it came. */
static bool await(const struct softgpu_engine *engine, const int *stop)
{
	struct softgpu_seat *seat = engine->seat;

	ring(engine->arbiter_fd);
	while (softgpu_seat_load(seat) == SOFTGPU_SEAT_WANTS) {
		if (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
			sleep_on_bell(engine->bell_fd);
		} else if (softgpu_seat_move(seat, SOFTGPU_SEAT_WANTS, SOFTGPU_SEAT_FREE)) {
			return false;
		}
	}
	return true;
}

bool fgv_engine_acquire(const struct softgpu_engine *engine, const int *stop)
{
	struct softgpu_seat *seat = engine->seat;

	if (softgpu_seat_move(seat, SOFTGPU_SEAT_IDLE, SOFTGPU_SEAT_BUSY))
		return true;
	__atomic_store_n(&seat->state, SOFTGPU_SEAT_WANTS, __ATOMIC_SEQ_CST);
	return await(engine, stop);
}

bool fgv_engine_is_held(const struct softgpu_engine *engine)
{
	return engine->seat && softgpu_seat_load(engine->seat) == SOFTGPU_SEAT_STOP;
}

bool fgv_engine_is_wanted(const struct softgpu_engine *engine)
{
	return softgpu_seat_load(engine->seat) != SOFTGPU_SEAT_BUSY;
}

void fgv_engine_stand_still(const struct softgpu_engine *engine, const int *stop)
{
	if (softgpu_seat_move(engine->seat, SOFTGPU_SEAT_STOP, SOFTGPU_SEAT_WANTS))
		await(engine, stop);
}

void fgv_engine_release(const struct softgpu_engine *engine)
{
	if (!softgpu_seat_move(engine->seat, SOFTGPU_SEAT_BUSY, SOFTGPU_SEAT_IDLE))
		give_back(engine);
}

void fgv_engine_wake(const struct softgpu_engine *engine)
{
	ring(engine->bell_fd);
}

void fgv_engine_leave(const struct softgpu_engine *engine)
{
	if (softgpu_seat_load(engine->seat) != SOFTGPU_SEAT_FREE)
		give_back(engine);
}
