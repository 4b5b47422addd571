"""Requests and limits of VMs (policy gemini) on the soft GPU: a limit holds for a VM that is
alone, whatever its kernels are, and a request beside others; both change while programs run;
what can't be kept is refused.

Judged is the GPU time that the daemon accounts against the clock and against other VMs'.
Upper bounds of limits are the policy's promise, with a kernel that can't be interrupted on top;
the others are wide, and may take a while to be kept, as processors that others use, too, serve
programs unevenly."""
import contextlib
import json
import subprocess
import time

from harness import BUILD, PATIENCE_S, backend, expect, kill, main, wait_until

CTL = BUILD / "tools/fairgvctl"
MATMUL = "workloads/matmul"
SMALL = ("--size", 16, "--iterations", 100000000, "--sync-every", 20)
LARGE = ("--size", 128, "--iterations", 10000000, "--sync-every", 1)
ASYNC = ("--size", 32, "--iterations", 100000000, "--sync-every", 2000)
SERVICE = (*SMALL, "--burst-ms", 1, "--sleep-ms", 30)
LONG = ("--size", 512, "--iterations", 10000000, "--sync-every", 1)    # beyond a turn
TOP = 'policy = "gemini"; share_window = "1s";'
WINDOWS = 8


def ctl(daemon, *arguments):
    return subprocess.run([CTL, "--socket", f"{daemon.socket}.control", *arguments],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def change(daemon, *arguments):
    result = ctl(daemon, "set", *arguments)
    expect(result.returncode == 0, f"{arguments}: {result.stderr}")
    return result.stdout


def used(daemon):
    """The clock, and each VM's GPU time."""
    report = json.loads(ctl(daemon, "stat", "--json").stdout)
    return report["time_ns"], {vm["name"]: vm["gpu_ns"] for vm in report["vms"]}


def engines(daemon):
    """The clock, and what vm1 has used of each engine."""
    report = daemon.report()
    vm = report["vms"][0]
    return report["time_ns"], [vm["gpu_ns"]] + [vm[name]["gpu_ns"]
                                                for name in ("copy_in", "copy_out") if name in vm]


def gained(daemon, seconds, holds=lambda part: True):
    """Each VM's part of the time, over some seconds; or over more of them, until that @holds."""
    from_ns, before = used(daemon)
    for _ in range(WINDOWS):
        time.sleep(seconds)
        to_ns, after = used(daemon)
        part = {vm: (after[vm] - before[vm]) / (to_ns - from_ns) for vm in after}
        if holds(part):
            break
    return part


@contextlib.contextmanager
def busy(daemon, **programs):
    """A program in each VM that does not end before the block does."""
    running = [daemon.start(vm, MATMUL, *options) for vm, options in programs.items()]
    try:
        wait_until(lambda: all(vm["launches"] > 1 for vm in daemon.report()["vms"]
                               if vm["name"] in programs), "kernels in each VM")
        yield
    finally:
        for program in running:
            kill(program)


def a_limit_holds_alone():
    for options in SMALL, LARGE:
        with backend({"vm1": 'limit = "20%";'}, top=TOP) as daemon:
            with busy(daemon, vm1=options):
                part = gained(daemon, 3, lambda part: part["vm1"] > 0.05)["vm1"]
                expect(0.05 < part < 0.25, f"{part:.3f} of the GPU with a limit of 0.2: {options}")
            daemon.expect_at_rest()


def no_way_around_a_limit():
    """Streams, graphs and copies are charged as kernels are."""
    for kind in "streams", "graphs", "copies":
        with backend({"vm1": 'limit = "20%";'}, top=TOP) as daemon:
            program = daemon.start("vm1", "tests/local/shares", kind, 200, 2)
            expect(program.stdout.readline() == "begun\n", f"{kind}: no beginning")
            from_ns, before = engines(daemon)
            for _ in range(WINDOWS):
                time.sleep(3)
                to_ns, after = engines(daemon)
                part = max(end - begin for begin, end in zip(before, after)) / (to_ns - from_ns)
                if part > 0.05:
                    break
            expect(0.05 < part < 0.25, f"{kind}: {part:.3f} of an engine with a limit of 0.2")
            kill(program)
            daemon.expect_at_rest()


def long_kernels_are_held_alone():
    """What its limit does not let run stands still, although nobody else wants the GPU."""
    with backend({"vm1": 'limit = "20%";'}, top=TOP) as daemon:
        with busy(daemon, vm1=LONG):
            part = gained(daemon, 3, lambda part: part["vm1"] > 0.05)["vm1"]
            [vm] = daemon.report()["vms"]
            expect(vm["holds"] > 5, f"held {vm['holds']} times, {vm['launches']} kernels")
            expect(0.05 < part < 0.25, f"{part:.3f} of the GPU with a limit of 0.2")
        daemon.expect_at_rest()


def limits_change():
    with backend({"vm1": ""}, top=TOP) as daemon:
        with busy(daemon, vm1=SMALL):
            free = gained(daemon, 1, lambda part: part["vm1"] > 0.28)["vm1"]
            expect(change(daemon, "vm1", "limit=10%") == "vm1: limit 100% -> 10%\n", "what it says")
            limited = gained(daemon, 2)["vm1"]
            change(daemon, "vm1", "limit=100%")
            again = gained(daemon, 1, lambda part: part["vm1"] > 2 * limited)["vm1"]
            expect(limited < 0.14 and min(free, again) > 2 * limited,
                   f"{free:.3f}, limited {limited:.3f}, then {again:.3f}")
        daemon.expect_at_rest()


def requests_are_kept():
    vms = {"vm1": 'request = "70%";', "vm2": "weight = 100;"}
    with backend(vms, top=TOP) as daemon:
        rows = [line.split() for line in ctl(daemon, "list").stdout.splitlines()]
        expect(any(row[:3] == ["vm1", "1", "70%..100%"] for row in rows), f"list: {rows}")
        with busy(daemon, vm1=ASYNC, vm2=ASYNC):
            part = gained(daemon, 3, lambda part: part["vm1"] > 1.2 * part["vm2"])
            expect(part["vm1"] > 1.2 * part["vm2"], f"a request of 0.7: {part}")
            change(daemon, "vm1", "request=0%")
            part = gained(daemon, 3, lambda part: part["vm2"] > 2 * part["vm1"])
            expect(part["vm2"] > 2 * part["vm1"], f"the same by weights of 1 and 100: {part}")
        daemon.expect_at_rest()


def a_bound_comes_first():
    """A service with a bound hardly waits beside busy programs that wait for each other."""
    vms = {"vm1": 'request = "40%"; slo = "10ms";', "vm2": "", "vm3": ""}
    with backend(vms, top=TOP) as daemon:
        with busy(daemon, vm1=SERVICE, vm2=ASYNC, vm3=ASYNC):
            before = {vm["name"]: vm["wait"] for vm in daemon.report()["vms"]}

            def waits_less():
                waits = {vm["name"]: vm["wait"] for vm in daemon.report()["vms"]}
                turns = {vm: wait["count"] - before[vm]["count"] for vm, wait in waits.items()}
                if min(turns.values()) <= 40:
                    return False
                mean = {vm: (wait["sum_ns"] - before[vm]["sum_ns"]) / turns[vm]
                        for vm, wait in waits.items()}
                return 2 * mean["vm1"] < min(mean["vm2"], mean["vm3"])
            wait_until(waits_less, "waits of vm1 that are half as long as others', at the most")
        change(daemon, "vm1", "slo=0")
        daemon.expect_at_rest()


def refusals():
    vms = {"vm1": 'request = "60%";', "vm2": 'limit = "30%";'}
    with backend(vms, top=TOP) as daemon:
        for arguments, text in (
                (("vm2", "request=41%", "limit=100%"), "the VMs of device 0 would have requested 101%"),
                (("vm2", "request=40%"), "40% is above the limit of 30%"),
                (("vm2", "slo=5ms"), "slo: needs a request"),
                (("vm1", "slo=2ms"), "slo: can't be kept"),
                (("vm1", "limit=50%"), "60% is above the limit of 50%"),
                (("vm1", "request=0%", "limit=0%"), "limit: out of range: must be 0.1% to 100%")):
            result = ctl(daemon, "set", *arguments)
            expect(result.returncode == 1 and text in result.stderr, f"{arguments}: {result}")
        expect(change(daemon, "vm2", "request=40%", "limit=100%") ==
               "vm2: request 0% -> 40%\nvm2: limit 30% -> 100%\n", "what it says")
        daemon.expect_at_rest()


main(a_limit_holds_alone, no_way_around_a_limit, long_kernels_are_held_alone, limits_change,
     requests_are_kept, a_bound_comes_first, refusals)
