"""A GPU with less memory than its VMs were promised: programs take turns at it, and nothing is lost."""
import subprocess
import time

from harness import BUILD, Failure, backend, expect, expect_verified, finish, kill, main, wait_until

MIB = 1 << 20
FAIRGVCTL = BUILD / "tools/fairgvctl"
FREEZE = "tests/local/freeze"
CARD = 64 * MIB
SHARED_NS = 300 * 1000 * 1000
MOST = 48 * MIB  # three quarters of the card
TOP = "soft_memory = \"64M\"; overcommit = 4.0; frozen_memory = \"1G\";"
MOVABLE = "movable = true; memory = \"56M\";"


def vms(count):
    return {f"vm{i}": MOVABLE for i in range(count)}


def start(daemon, vm, *sizes):
    return daemon.start(vm, FREEZE, *sizes, stdin=subprocess.PIPE)


def expect_line(program, wanted):
    line = program.stdout.readline()
    if line != wanted:
        program.kill()
        raise Failure(f"{line!r} instead of {wanted!r}: {finish(program)}")


def ask(program, rounds):
    program.stdin.write(f"{rounds}\n")
    program.stdin.flush()


def end(program, name):
    program.stdin.close()
    program.stdin = None
    expect_verified(program, name)


def resident(daemon):
    sessions = [each for vm in daemon.report()["vms"] for each in vm["sessions"]]
    return sum(gpu["resident_bytes"] for each in sessions for gpu in each["gpus"])


def take_turns(count):
    with backend(vms(count), top=TOP) as daemon:
        programs = [start(daemon, f"vm{i}", MOST) for i in range(count)]
        for each in programs:
            expect_line(each, "ready\n")
        for rounds in range(3, 9, 2):
            for each in programs:
                ask(each, 2)
            expect(resident(daemon) <= CARD, f"on the GPU: {resident(daemon)}")
            for each in programs:
                expect_line(each, f"rounds {rounds}\n")
        for i, each in enumerate(programs):
            end(each, f"program {i} of {count}")
        daemon.expect_at_rest()


def two_take_turns():
    take_turns(2)


def three_take_turns():
    take_turns(3)


def all_that_fits_stays():
    """Programs that fit together are not moved, whatever was promised."""
    with backend(vms(3), top=TOP) as daemon:
        programs = [start(daemon, f"vm{i}", 12 * MIB) for i in range(3)]
        for each in programs:
            expect_line(each, "ready\n")
        for each in programs:
            ask(each, 5)
            expect_line(each, "rounds 6\n")
        expect(resident(daemon) >= 36 * MIB, f"on the GPU: {resident(daemon)}")
        for each in programs:
            end(each, "a program that fits")
        daemon.expect_at_rest()


def gpu_ns(daemon):
    return [vm["gpu_ns"] for vm in daemon.report()["vms"]]


def neither_starves():
    """Of two that never pause each has its turn again and again, however long moving takes."""
    with backend(vms(2), top=TOP) as daemon:
        programs = [start(daemon, f"vm{i}", MOST) for i in range(2)]
        for each in programs:
            expect_line(each, "ready\n")
        for each in programs:
            ask(each, 100000)
        before = gpu_ns(daemon)
        wait_until(lambda: all(after >= was + SHARED_NS
                               for after, was in zip(gpu_ns(daemon), before)), "both's GPU time")
        for each in programs:
            kill(each)
        daemon.expect_at_rest()


def moved(daemon):
    vms = daemon.report()["vms"]
    return [sum(vm[key] for vm in vms) for key in ("moved_out", "moved_in")]


def none_is_moved_in_vain():
    """Of three that never pause one after the other comes in and has its turn: what has begun to come
    in does not leave for another one that does."""
    with backend(vms(3), top=TOP) as daemon:
        programs = [start(daemon, f"vm{i}", MOST) for i in range(3)]
        for each in programs:
            expect_line(each, "ready\n")
        before = moved(daemon)
        for each in programs:
            ask(each, 100000)
        wait_until(lambda: moved(daemon)[0] >= before[0] + 10 * MOST, "memory that moves")
        out, come = (after - was for after, was in zip(moved(daemon), before))
        for each in programs:
            kill(each)
        expect(come <= 2 * out, f"{come} bytes came in, {out} went out")
        daemon.expect_at_rest()


def killed_in_the_middle():
    with backend(vms(3), top=TOP) as daemon:
        for pause_ms in (0, 3, 30, 100):
            programs = [start(daemon, f"vm{i}", MOST) for i in range(3)]
            expect_line(programs[0], "ready\n")
            ask(programs[0], 3)
            time.sleep(pause_ms / 1000)
            kill(programs[1])
            expect_line(programs[0], "rounds 4\n")
            expect_line(programs[2], "ready\n")
            end(programs[0], "one beside a program that was killed")
            end(programs[2], "another one")
            daemon.expect_at_rest()


def fails_alone():
    """One program that needs more than the card has gets an error when it launches; others go on."""
    with backend({"vm0": "movable = true; memory = \"190M\";", "vm1": MOVABLE}, top=TOP) as daemon:
        other = start(daemon, "vm1", MOST)
        expect_line(other, "ready\n")
        program = start(daemon, "vm0", 40 * MIB, 40 * MIB)
        status, out, err = finish(program)
        expect(status != 0 and "out of memory" in err, f"{status} {out} {err}")
        ask(other, 2)
        expect_line(other, "rounds 3\n")
        end(other, "one beside a program that is too large")
        daemon.expect_at_rest()


def refused():
    """What the host has not set enough memory aside for, and what can't be moved away."""
    for top, config, wanted in (
            ("frozen_memory = \"64M\"; overcommit = 2.0; soft_memory = \"64M\";",
             {"vm0": MOVABLE, "vm1": MOVABLE}, "frozen_memory"),
            ("frozen_memory = \"1G\"; overcommit = 1.5; soft_memory = \"64M\";",
             {"vm0": MOVABLE, "vm1": MOVABLE}, "overcommit"),
            ("frozen_memory = \"1G\"; overcommit = 2.0; soft_memory = \"64M\";",
             {"vm0": "memory = \"40M\";", "vm1": "memory = \"40M\";"}, "movable")):
        try:
            with backend(config, top=top):
                pass
        except Failure as failure:
            expect(wanted in str(failure), f"{wanted}: {failure}")
            continue
        raise Failure(f"{top} was not refused")


main(two_take_turns, three_take_turns, neither_starves, none_is_moved_in_vain, all_that_fits_stays,
     killed_in_the_middle, fails_alone, refused)
