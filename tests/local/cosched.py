"""Coscheduling, end to end on the soft GPU: the thread of an interactive program is favoured
for its turns and as it was between them; others are left alone, and all are when it is off."""
import contextlib
import json
import os
import pathlib
import subprocess

from harness import BUILD, PATIENCE_S, backend, expect, kill, main, wait_until

CTL = BUILD / "tools/fairgvctl"
VMS = {"vm1": "weight = 1;", "vm2": "weight = 2;"}
FOREVER = ("--size", 16, "--iterations", 100000000)
INTERACTIVE = ("workloads/srad", *FOREVER)                              # waits in each iteration
ASYNCHRONOUS = ("workloads/matmul", *FOREVER, "--sync-every", 100000000)

# Whoever waits at all is interactive: how often a program gets to it depends on the processors.
EASILY = "interactive_calls = 0;"


def stat(daemon, vm):
    """The only session of @vm, as the daemon reports it."""
    result = subprocess.run([CTL, "--socket", f"{daemon.socket}.control", "stat", "--json", vm],
                            capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    sessions = json.loads(result.stdout)["vms"][0]["sessions"]
    return sessions[0] if sessions else None


@contextlib.contextmanager
def running(daemon, programs):
    """Programs by their VMs; {vm: process id} once each has had the GPU."""
    started = [daemon.start(vm, *program) for vm, program in programs.items()]
    try:
        for vm in programs:
            wait_until(lambda: (stat(daemon, vm) or {"launches": 0})["launches"] > 10,
                       f"a program in {vm}")
        yield {vm: stat(daemon, vm)["pid"] for vm in programs}
    finally:
        for process in started:
            kill(process)


def favoured(pid):
    """How many threads of a process that runs have a better nice value than this one."""
    folder = pathlib.Path(f"/proc/{pid}/task")
    texts = [(thread / "stat").read_text() for thread in folder.iterdir()]
    nices = [int(text.rpartition(")")[2].split()[16]) for text in texts]
    return sum(nice < os.getpriority(os.PRIO_PROCESS, 0) for nice in nices)


def means(daemon):
    """What the daemon says that it does."""
    lines = [line for line in daemon.log().splitlines() if "coscheduling: " in line]
    expect(len(lines) == 1, f"said once: {lines}")
    for words in ("nice value better by 10", "gets short slices", "does not let"):
        if words in lines[0]:
            return words
    return expect(False, lines)


def favoured_and_put_back():
    with backend(VMS, top=EASILY) as daemon:
        with running(daemon, {"vm1": INTERACTIVE, "vm2": INTERACTIVE}) as pids:
            wait_until(lambda: all(stat(daemon, vm)["interactive"] for vm in VMS), "interactive")
            wait_until(lambda: "coscheduling: " in daemon.log(), "the means")
            how = means(daemon)
            if how == "does not let":
                expect(not stat(daemon, "vm1")["favoured"], "favoured by no means")
                return
            for vm in VMS:
                before = stat(daemon, vm)["favoured"]
                wait_until(lambda: stat(daemon, vm)["favoured"] > before + 10, f"turns of {vm}")
            if how.startswith("nice"):
                for pid in pids.values():
                    wait_until(lambda: favoured(pid) == 1, "a turn")
                    wait_until(lambda: favoured(pid) == 0, "the end of a turn")
            means(daemon)
        daemon.expect_at_rest()


def who_is_left_alone_is_as_it_was():
    with backend(VMS, top=EASILY) as daemon:
        with running(daemon, {"vm1": INTERACTIVE}) as pids:
            with running(daemon, {"vm2": INTERACTIVE}):
                wait_until(lambda: "coscheduling: " in daemon.log(), "the means")
            wait_until(lambda: not stat(daemon, "vm2"), "the other's end")
            wait_until(lambda: not favoured(pids["vm1"]), "its last turn's end")
            before = stat(daemon, "vm1")
            wait_until(lambda: stat(daemon, "vm1")["sync_calls"] > before["sync_calls"] + 100,
                       "calls")
            expect(stat(daemon, "vm1")["favoured"] == before["favoured"], "favoured, but alone")
        daemon.expect_at_rest()


def asynchronous_is_left_alone():
    with backend(VMS, top=EASILY) as daemon:
        with running(daemon, {"vm1": ASYNCHRONOUS, "vm2": INTERACTIVE}):
            # At its beginning it waits once, which is enough here for a window of time.
            wait_until(lambda: stat(daemon, "vm2")["interactive"] and
                       not stat(daemon, "vm1")["interactive"], "what they are")
            before = stat(daemon, "vm1")
            wait_until(lambda: stat(daemon, "vm1")["grants"] > before["grants"] + 10, "turns")
            session = stat(daemon, "vm1")
            expect(not session["interactive"] and session["sync_calls"] == before["sync_calls"] and
                   session["favoured"] <= before["favoured"] + 1, f"{before}, then {session}")
        daemon.expect_at_rest()


def off():
    with backend(VMS, top=f'cosched = "off"; {EASILY}') as daemon:
        with running(daemon, {"vm1": INTERACTIVE, "vm2": INTERACTIVE}) as pids:
            grants = stat(daemon, "vm1")["grants"]
            wait_until(lambda: stat(daemon, "vm1")["grants"] > grants + 20, "turns")
            # At times it is not, where others keep the processors busy.
            wait_until(lambda: stat(daemon, "vm1")["interactive"], "an interactive session")
            expect(not stat(daemon, "vm1")["favoured"], "counted as favoured")
            expect(not favoured(pids["vm1"]), "favoured")
        expect("coscheduling" not in daemon.log(), "it speaks of it")
        daemon.expect_at_rest()


main(favoured_and_put_back, who_is_left_alone_is_as_it_was, asynchronous_is_left_alone, off)
