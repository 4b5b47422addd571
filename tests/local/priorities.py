"""Priorities of VMs and of sessions (policy fikit) on the soft GPU: the more urgent comes first,
whatever the others do; a session is never more urgent than its VM; both programs' results are
right; what can't be is refused.

Judged is the GPU time that the daemon accounts, one program's against another's."""
import contextlib
import json
import subprocess
import time

from harness import BUILD, PATIENCE_S, backend, expect, expect_verified, kill, main, wait_until

CTL = BUILD / "tools/fairgvctl"
MATMUL = "workloads/matmul"
BUSY = ("--size", 32, "--iterations", 100000000, "--sync-every", 2000)
SERVICE = ("--size", 16, "--iterations", 100000000, "--sync-every", 20, "--burst-ms", 1,
           "--sleep-ms", 5)
LONG = ("--size", 512, "--iterations", 10000000, "--sync-every", 1)    # beyond a turn
# Always has work on the GPU, however late its processes run.
GREEDY = ("--size", 512, "--iterations", 10000000, "--sync-every", 2000)
TOP = 'policy = "fikit";'
URGENT = {"vm1": "priority = 0;", "vm2": "weight = 1000;"}
MUCH = 4    # times as much as the other one


def ctl(daemon, *arguments):
    return subprocess.run([CTL, "--socket", f"{daemon.socket}.control", *arguments],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def used(daemon):
    """The GPU time of each session, by its number and VM."""
    return {(vm["name"], session["number"]): session["gpu_ns"]
            for vm in daemon.report()["vms"] for session in vm["sessions"]}


def gained(daemon, seconds=2):
    """What each session has had in some seconds, in the order of VMs and of sessions."""
    before = used(daemon)
    time.sleep(seconds)
    after = used(daemon)
    return [after[key] - before[key] for key in sorted(before)]


@contextlib.contextmanager
def running(daemon, *programs):
    """Programs, as (VM, priority or None, program, option...), that have begun to work."""
    started = []
    try:
        for vm, priority, *command in programs:
            env = {} if priority is None else {"FAIRGV_PRIORITY": str(priority)}
            started.append(daemon.start(vm, *command, env=env))
            # One after the other, so that their numbers are known; what is starved begins, too.
            wait_until(lambda: len(used(daemon)) == len(started), "its session")
        wait_until(lambda: max(used(daemon).values()) > 0, "work")
        yield started
    finally:
        for program in started:
            kill(program)


def the_urgent_one_comes_first():
    for other in (MATMUL, *BUSY), (MATMUL, *LONG), (MATMUL, *BUSY, "--graphs"):
        with backend(URGENT, top=TOP) as daemon:
            with running(daemon, ("vm1", None, MATMUL, *GREEDY), ("vm2", None, *other)):
                urgent, late = gained(daemon)
                expect(urgent > MUCH * late, f"{urgent} and {late} ns beside {other}")
            daemon.expect_at_rest()


def nothing_helps_the_others():
    """Streams, graphs, copies and many sessions are no way to the front."""
    for kind in "launches", "streams", "graphs":
        with backend(URGENT, top=TOP) as daemon:
            flood = ("vm2", 0, "tests/local/shares", kind, 200, 2)
            # They measure themselves first, which takes for ever beside the urgent one.
            with running(daemon, flood, flood, flood, ("vm1", None, MATMUL, *GREEDY)):
                urgent, *others = gained(daemon)
                expect(urgent > MUCH * sum(others), f"{kind}: {urgent} and {others} ns")
            daemon.expect_at_rest()


def gaps_are_filled():
    """What the urgent one leaves the other one has, and both compute the right thing."""
    with backend(URGENT, top=TOP) as daemon:
        with running(daemon, ("vm1", None, MATMUL, *SERVICE), ("vm2", None, MATMUL, *BUSY)):
            before = {vm["name"]: vm["wait"] for vm in daemon.report()["vms"]}
            wait_until(lambda: all(vm["wait"]["count"] > before[vm["name"]]["count"] + 40
                                   for vm in daemon.report()["vms"]), "turns of each")
            service, other = gained(daemon)
            expect(other > service, f"{service} and {other} ns")
        first = daemon.start("vm1", MATMUL, "--size", 48, "--iterations", 400, "--sync-every", 3)
        second = daemon.start("vm2", MATMUL, "--size", 48, "--iterations", 400, "--sync-every", 3)
        expect_verified(first, "the urgent program")
        expect_verified(second, "the other one")
        daemon.expect_at_rest()


def sessions_have_priorities():
    with backend({"vm1": "", "vm2": "priority = 7;"}, top=TOP) as daemon:
        with running(daemon, ("vm1", 9, MATMUL, *GREEDY), ("vm1", None, MATMUL, *GREEDY),
                     ("vm2", 0, MATMUL, *GREEDY)):
            last, first, boaster = gained(daemon)
            expect(first > MUCH * (last + boaster), f"{first}, {boaster} and {last} ns")
        with running(daemon, ("vm1", 9, MATMUL, *GREEDY), ("vm2", 0, MATMUL, *GREEDY)):
            last, second = gained(daemon)
            expect(second > MUCH * last, f"priorities 7 and 9: {second} and {last} ns")
        daemon.expect_at_rest()


def priorities_change():
    with backend(URGENT, top=TOP) as daemon:
        with running(daemon, ("vm1", None, MATMUL, *GREEDY), ("vm2", None, MATMUL, *GREEDY)):
            for first, second in ((9, 5), (3, 5), (5, 5), (0, 5)):
                changed = ctl(daemon, "set", "vm1", f"priority={first}")
                expect(changed.stdout.endswith(f" -> {first}\n"), f"what it says: {changed}")
                time.sleep(0.1)    # the turns of before
                one, two = gained(daemon, 1)
                if first > second:
                    one, two = two, one
                if first == second:
                    expect(MUCH * one < two, f"by weight: {one} and {two} ns")
                else:
                    expect(one > MUCH * two, f"{first} and {second}: {one} and {two} ns")
        [listed] = [vm for vm in json.loads(ctl(daemon, "list", "--json").stdout)["vms"]
                    if vm["name"] == "vm1"]
        expect(listed["priority"] == 0, f"list: {listed}")
        daemon.expect_at_rest()


def refusals():
    with backend(URGENT, top=TOP) as daemon:
        for arguments, text in (
                (("vm1", "priority=10"), "must be 0 to 9"), (("vm1", "priority=-1"), "must be 0 to 9"),
                (("vm1", "priority=1", "slo=1s"), 'slo: policy "fikit" knows no slos')):
            result = ctl(daemon, "set", *arguments)
            expect(result.returncode != 0 and text in result.stderr, f"{arguments}: {result}")
        for text in "10", "x", "-1", "5 ":
            program = daemon.start("vm1", "workloads/vecadd", env={"FAIRGV_PRIORITY": text})
            said = program.communicate(timeout=PATIENCE_S)
            expect(program.returncode != 0 and "FAIRGV_PRIORITY" in said[1], f"{text!r}: {said}")
        daemon.expect_at_rest()
    with backend({"vm1": ""}) as daemon:
        result = ctl(daemon, "set", "vm1", "priority=1")
        expect('policy "fair" knows no priorities; "fikit" does' in result.stderr, f"fair: {result}")
        with running(daemon, ("vm1", 9, MATMUL, *BUSY)):
            expect(gained(daemon, 1)[0] > 0, "a priority is nothing to fair")
        daemon.expect_at_rest()


main(the_urgent_one_comes_first, nothing_helps_the_others, gaps_are_filled,
     sessions_have_priorities, priorities_change, refusals)
