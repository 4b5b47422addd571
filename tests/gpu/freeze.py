"""Memory that may move, on a real GPU: how long freezing and thawing 8 GiB take, and that the GPU has
the memory free meanwhile; what a program costs that could do without; and what an allocation takes
that is hardly used. About 50 s; figures go to $OUT/freeze.json, if OUT is set.

usage: tests/gpu/freeze.py [TEST...], with abs_top_builddir as for tests/local/; FAIRGV_TEST_GPU=soft
tries the program itself, without judging.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import BUILD, backend, expect, expect_verified, main
from results import Results

GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
IS_SOFT = GPU.startswith("soft")
FAIRGVCTL = BUILD / "tools/fairgvctl"
FREEZE = "tests/local/freeze"
MIB, GIB = 1 << 20, 1 << 30
LARGE = [32 * MIB] * 4 if IS_SOFT else [2 * GIB] * 4
TIMES = 2 if IS_SOFT else 3
MOST_S, MOST_RATIO = 0.5, 1.01
TURNS = 2 if IS_SOFT else 7
# A program that launches, and one that keeps the GPU's memory busy: sizes and rounds.
PROGRAMS = {"launches": ([MIB // 8] * 4, 20 if IS_SOFT else 20000),
            "memory": ([256 * MIB // (32 if IS_SOFT else 1)], 2 if IS_SOFT else 1500)}
HUGE, TOUCHED = (1 * GIB, 64 * MIB) if IS_SOFT else (64 * GIB, 1 * GIB)
CONFIG = {"top": "frozen_memory = \"64G\"; overcommit = true;", "gpu": GPU, "warm": 0}
results = Results("freeze")


def ctl(daemon, *arguments):
    begun = time.monotonic()
    done = subprocess.run([FAIRGVCTL, "--socket", f"{daemon.socket}.control", *arguments],
                          capture_output=True, text=True, check=False)
    took = time.monotonic() - begun
    expect(done.returncode == 0, f"fairgvctl {arguments}: {done.stdout}{done.stderr}")
    return took, done.stdout


def session(daemon, vm="vm1"):
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    (only,) = found["sessions"]
    return only


def free_mib():
    """Of the whole GPU, as its driver says; nothing of the soft one."""
    if IS_SOFT:
        return 0
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def counting(daemon, vm, sizes):
    program = daemon.start(vm, FREEZE, *sizes, stdin=subprocess.PIPE)
    line = program.stdout.readline()
    expect(line == "ready\n", f"the program does not count: {line!r}")
    return program


def rounds(program, count):
    """How long the program takes for so many."""
    begun = time.monotonic()
    program.stdin.write(f"{count}\n")
    program.stdin.flush()
    line = program.stdout.readline()
    expect(line.startswith("rounds "), f"no rounds: {line!r}")
    return time.monotonic() - begun


def end(program, what):
    program.stdin.close()
    program.stdin = None
    expect_verified(program, what)


def freezes():
    with backend({"vm1": "movable = true;"}, **CONFIG) as daemon:
        program = counting(daemon, "vm1", LARGE)
        frozen, thawed = [], []
        before = free_mib()
        for _ in range(TIMES):
            took, said = ctl(daemon, "freeze", "vm1")
            frozen.append(took)
            freed = free_mib() - before
            thawed.append(ctl(daemon, "thaw", "vm1")[0])
            rounds(program, 1)
        print("  " + said.strip())
        resident = session(daemon)["gpus"][0]["resident_bytes"]
        expect(resident >= sum(LARGE), f"back on the GPU: {resident}")
        end(program, f"frozen {TIMES} times")
        gib = sum(LARGE) / GIB
        results.report("freeze", seconds=min(frozen), gib_per_s=gib / min(frozen), freed_mib=freed)
        results.report("thaw", seconds=min(thawed), gib_per_s=gib / min(thawed))
        results.report("all", freeze=[round(each, 3) for each in frozen],
                       thaw=[round(each, 3) for each in thawed])
        if not IS_SOFT:
            expect(freed >= sum(LARGE) // MIB, f"free on the GPU: {freed} MiB more")
            expect(max(min(frozen), min(thawed)) <= MOST_S, f"over {MOST_S} s")


def costs_nothing():
    vms = {"vm1": "movable = true;", "vm2": ""}
    worst = 0
    with backend(vms, **CONFIG) as daemon:
        for name, (sizes, count) in PROGRAMS.items():
            programs = {vm: counting(daemon, vm, sizes) for vm in vms}
            took = {vm: [] for vm in vms}
            for program in programs.values():
                rounds(program, max(1, count // 10))
            for _ in range(TURNS):
                for vm, program in programs.items():
                    took[vm].append(rounds(program, count))
            for program in programs.values():
                end(program, name)
            movable, plain = (statistics.median(took[vm]) for vm in ("vm1", "vm2"))
            results.report(name, movable=movable, plain=plain, ratio=movable / plain)
            worst = max(worst, movable / plain)
    if not IS_SOFT:
        expect(worst <= MOST_RATIO, f"a movable program takes {worst:.3f} of the time")


def takes_what_is_touched():
    with backend({"vm1": "movable = true;"}, **CONFIG) as daemon:
        before = free_mib()
        program = counting(daemon, "vm1", [f"{HUGE}:{TOUCHED}"])
        taken = before - free_mib()
        its = session(daemon)["gpus"][0]
        results.report("hardly used", allocated_mib=its["memory_bytes"] // MIB,
                       resident_mib=its["resident_bytes"] // MIB, taken_of_gpu_mib=taken)
        expect(its["resident_bytes"] <= TOUCHED + 128 * MIB, f"on the GPU: {its}")
        end(program, "a program that allocates much")


TESTS = {test.__name__: test for test in (freezes, costs_nothing, takes_what_is_touched)}
main(*[TESTS[name] for name in sys.argv[1:] or TESTS])
