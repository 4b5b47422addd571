"""Programs that are placed, each on one of two soft GPUs (key place): by what they need and what is
free, so that none runs out of memory that another placement would have had.
"""
import os
import random
import subprocess

from harness import RUN, backend, expect, expect_verified, finish, main, wait_until

VECADD = "workloads/vecadd"
MIB = 1 << 20
GPU_MIB = 64            # of each soft GPU, and of the VM on each
GPUS = 2
PROGRAMS = 64

SETTINGS = f'devices = "all"; memory = "{GPU_MIB}M"; sessions = 64; '
TOP = f'soft_memory = "{GPU_MIB}M";'


def placing(settings):
    return backend({"vm1": SETTINGS + settings}, gpu=f"soft:{GPUS}", top=TOP)


def start(daemon, mib, need="", *arguments):
    """A program that has four vectors, with so many MiB together."""
    return daemon.start("vm1", VECADD, "--size", mib * MIB // 16, *arguments,
                        env={"FAIRGV_NEED": need})


def start_forever(daemon, mib, need=""):
    return start(daemon, mib, need, "--seconds", 86400)


def sessions(daemon):
    return [session for vm in daemon.report()["vms"] for session in vm["sessions"]]


def places(daemon):
    """The GPU of each session that there is."""
    return sorted(gpu["device"] for session in sessions(daemon) for gpu in session["gpus"])


def end(daemon, *programs):
    for program in programs:
        os.killpg(program.pid, 9)
        finish(program)


def mixed_needs():
    """Programs of 2 to 48 MiB, all at once and in any order: those that don't fit wait. Each has
    four allocations and its code, which count as well.
    """
    rng = random.Random(19)
    sizes = [rng.choice((2, 5, 11, 23, 34, 48)) for _ in range(PROGRAMS)]
    expect(sum(sizes) > 3 * GPUS * GPU_MIB, "that would fit at once")
    with placing('place = "mgb3"; place_wait = "3600s";') as daemon:
        programs = [start(daemon, size, f"{size + 1}M", "--iterations", 1) for size in sizes]
        seen = set()
        for program in programs:
            seen.update(places(daemon))
            for gpu in range(GPUS):
                used = sum(part["memory_bytes"] for session in sessions(daemon)
                           for part in session["gpus"] if part["device"] == gpu)
                expect(used <= GPU_MIB * MIB, f"{used} bytes are given of GPU {gpu}")
            expect_verified(program, "one of 64 programs")
        expect(seen == {0, 1}, f"they were on {seen}")
        daemon.expect_at_rest()


def full_gpus():
    """The third of three large programs is refused in one line, or waits for one of the others."""
    for wait in ("0", '"3600s"'):
        with placing(f'place = "mgb3"; need = "40M"; place_wait = {wait};') as daemon:
            large = [start_forever(daemon, 20) for _ in range(GPUS)]
            wait_until(lambda: len(sessions(daemon)) == GPUS, "two sessions")
            expect(places(daemon) == [0, 1], f"both are on {places(daemon)}")
            third = start(daemon, 20)
            if wait == "0":
                status, _, err = finish(third)
                expect(status == 1 and "needs 40 MiB" in err and "out of memory" in err,
                       f"status {status}: {err}")
                # What it says itself goes before what the administrator says of all.
                expect_verified(start(daemon, 10, "20M"), "a program that says it is small")
                end(daemon, *large)
            else:
                # One that says less gets by.
                expect_verified(start(daemon, 10, "20M"), "a small one beside one that waits")
                wait_until(lambda: len(sessions(daemon)) == GPUS, "the end of the small one")
                expect(third.poll() is None, "it did not wait")
                end(daemon, large[0])
                expect_verified(third, "one that has waited")
                end(daemon, large[1])
            daemon.expect_at_rest()


def too_large():
    """What fits nowhere is known before anything runs, and does not wait."""
    with placing('place = "mgb3"; place_wait = "3600s";') as daemon:
        for need in (f"{GPU_MIB + 1}M", "16777215T", f"{2 ** 23}G:4294967295x1024"):
            status, out, err = finish(start(daemon, 1, need))
            expect(status == 1 and "more than VM vm1 has" in err, f"status {status}: {out}{err}")
        status, _, err = finish(start(daemon, 1, "2 cakes"))
        expect(status == 1 and "FAIRGV_NEED" in err, f"status {status}: {err}")
        daemon.expect_at_rest()


def liars():
    """A program that takes more than it said finds what is left; the others keep theirs."""
    with placing('place = "mgb3"; place_wait = "3600s";') as daemon:
        honest = [start_forever(daemon, 30, "50M") for _ in range(GPUS)]
        wait_until(lambda: len(sessions(daemon)) == GPUS, "two sessions")
        status, _, err = finish(start(daemon, 40, "1M"))
        expect(status == 1 and "out of memory" in err, f"status {status}: {err}")
        wait_until(lambda: len(sessions(daemon)) == GPUS, "the end of the third")
        given = [session["gpus"][0]["memory_bytes"] for session in sessions(daemon)]
        expect(all(bytes >= 50 * MIB for bytes in given), f"the others have {given}")
        expect_verified(start(daemon, 10, "1M"), "one that takes what is left")
        end(daemon, *honest)
        wait_until(lambda: not sessions(daemon), "the end of all")
        # Alone it may have all that there is.
        expect_verified(start(daemon, 40, "1M"), "one that said too little, alone")
        # Kernels that fill any GPU keep nobody out.
        wide = start_forever(daemon, 2, "4M:4294967295x1024")
        wait_until(lambda: len(sessions(daemon)) == 1, "a session")
        expect_verified(start(daemon, 2, "4M:4294967295x1024"), "another one")
        end(daemon, wide)
        daemon.expect_at_rest()


def blocks_count():
    """mgb2: a GPU's multiprocessors are full with one that fills them, but nobody is shut out."""
    with placing('place = "mgb2"; place_wait = "1ms";') as daemon:
        programs = [start_forever(daemon, 2, "4M:4294967295x1024") for _ in range(GPUS)]
        wait_until(lambda: len(sessions(daemon)) == GPUS, "two sessions")
        expect(places(daemon) == [0, 1], f"both are on {places(daemon)}")
        expect_verified(start(daemon, 2, "4M:1x32"), "one more")
        end(daemon, *programs)
        daemon.expect_at_rest()


def without_needs():
    """Where nothing is known of them, programs are spread."""
    for rule in ("mgb3", "least"):
        with placing(f'place = "{rule}";') as daemon:
            programs = []
            for count in range(1, 2 * GPUS + 1):
                programs.append(start_forever(daemon, 4))
                wait_until(lambda: len(sessions(daemon)) == count, f"{count} sessions")
            if rule == "mgb3":
                expect(places(daemon) == [0, 0, 1, 1], f"they are on {places(daemon)}")
            listed = subprocess.run([RUN.parent / "fairgvctl", "--socket", f"{daemon.socket}.control",
                                     "list"], capture_output=True, text=True, check=True).stdout
            expect("GPU" in listed.split("session")[-1], listed)
            end(daemon, *programs)
            daemon.expect_at_rest()


main(mixed_needs, full_gpus, too_large, liars, blocks_count, without_needs)
