"""Kernels in parts: results are bit by bit those of whole kernels, for all workloads and for the
programs of tests/cuda/ whose kernels have more than a block; and a VM with short kernels gets its
share beside one kernel that is many turns long, where nothing is held.

Shares are of the GPU time that the daemon accounts, so that it matters to nothing how fast this
machine is.
"""
import contextlib
import re
import time

from harness import backend, expect, expect_verified, finish, kill, main, wait_until

HOLD = "tests/local/hold"
ON = 'slicing = "on"; hold = "off";'
# Name, options: sizes with more blocks than a part has, and blocks that are not full.
WORKLOADS = {
    "vecadd": (1001, 4), "matmul": (100, 3), "hotspot": (100, 11), "blackscholes": (1001, 4),
    "srad": (100, 4), "convolution": (100, 4), "histogram": (100, 4), "scan": (9001, 4),
    "nw": (33, 3), "pathfinder": (1000, 4), "lavamd": (27, 1), "heartwall": (33, 2),
    "cfd": (9, 3),
}
# Those that launch a kernel of several blocks outside of graphs.
PROGRAMS = ("clusters", "copies", "cuda12", "device_malloc", "faults", "form_many", "form_none",
            "form_ptx", "form_size", "form_speed", "graph_memory", "managed", "memory", "params",
            "pinned", "pools", "printf", "registered", "tensor", "vectors")
# Its kernels can't be taken apart, or not without harm.
WHOLE = ("cooperative", "together", "separate", "managed_vars", "assert")


def figures(daemon, vm="vm1"):
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    return found


def run_workload(daemon, name, size, iterations):
    status, out, err = finish(daemon.start("vm1", f"workloads/{name}", "--size", size,
                                           "--iterations", iterations))
    expect(status == 0 and "verified=yes" in out, f"{name}: status {status}: {out}{err}")
    return re.search("digest=([0-9a-f]+)", out)[1]


def workloads_are_the_same():
    with contextlib.ExitStack() as stack:
        whole, parts, pairs = (
            stack.enter_context(backend({"vm1": ""}, top=top))
            for top in ("", f"{ON} slice_blocks = 1;", f"{ON} slice_blocks = 7;"))
        for name, options in WORKLOADS.items():
            expected = run_workload(whole, name, *options)
            expect(int(expected, 16), f"{name} has no result")
            for daemon in parts, pairs:
                before = figures(daemon)
                digest = run_workload(daemon, name, *options)
                after = figures(daemon)
                expect(digest == expected, f"{name}: {digest} in parts, {expected} whole")
                expect(daemon is pairs or after["sliced"] > before["sliced"],
                       f"{name}: nothing ran in parts: {after}")
        expect(figures(whole)["parts"] == 0, f"parts where it is off: {figures(whole)}")
        for daemon in parts, pairs:
            seen = figures(daemon)
            expect(seen["left_whole"] == 0, f"left whole: {seen}: {daemon.log()}")
            expect(seen["parts"] > 2 * seen["sliced"], f"few parts: {seen}")


def programs_are_the_same():
    """Each checks its results itself; printed lines, faults and what they leave behind too."""
    with backend({"vm1": ""}, top=f"{ON} slice_blocks = 1;") as daemon:
        for name in PROGRAMS:
            before = figures(daemon)
            status, out, err = finish(daemon.start("vm1", f"tests/cuda/{name}"))
            expect(status == 0, f"{name}: status {status}: {out}{err}")
            expect(figures(daemon)["sliced"] > before["sliced"], f"{name}: no parts")


def whole_programs_work():
    with backend({"vm1": ""}, top=ON) as daemon:
        for name in WHOLE:
            status, out, err = finish(daemon.start("vm1", f"tests/cuda/{name}"))
            expect(status == 0, f"{name}: status {status}: {out}{err}")
    with backend({"vm1": ""}, top=f"{ON} slice_blocks = 1;") as daemon:
        status, out, err = finish(daemon.start("vm1", "tests/cuda/cooperative"))
        expect(status == 0, f"cooperative: status {status}: {out}{err}")
        expect(figures(daemon)["left_whole"] > 0, f"not counted: {figures(daemon)}")
        expect("is left whole: its blocks run all at once" in daemon.log(), daemon.log())


def a_vm_can_be_exempt():
    with backend({"vm1": 'slicing = "off";', "vm2": ""}, top=f"{ON} slice_blocks = 2;") as daemon:
        for vm in "vm1", "vm2":
            expect_verified(daemon.start(vm, "workloads/hotspot", "--size", 100,
                                         "--iterations", 3), vm)
        expect(figures(daemon, "vm1")["sliced"] == 0, "the one that is exempt")
        expect(figures(daemon, "vm2")["sliced"] == 3, "the other one")


def one_kernel_takes_many_turns():
    """Beside a program with short kernels, which gets its turns before the long one has ended."""
    with backend({"vm1": "", "vm2": ""}, top=f'{ON} slice = "4ms";') as daemon:
        short = daemon.start("vm2", "tests/local/shares", "waits", 300, 4)
        expect(short.stdout.readline() == "begun\n", "short kernels")
        before = figures(daemon, "vm2")
        expect_verified(daemon.start("vm1", HOLD, "chain", 1000, 1, 40000), "the long kernel")
        long, after = figures(daemon), figures(daemon, "vm2")
        kill(short)
        expect(long["launches"] == 1 and long["holds"] == 0, f"not one kernel, or held: {long}")
        expect(long["grants"] > 4, f"few turns for one kernel: {long}")
        expect(after["grants"] - before["grants"] > 4, f"few turns beside it: {before} {after}")


def share_of_two_long_kernels():
    """The smaller by the larger use, while each has a single kernel, and so always wants the GPU."""
    with backend({"vm1": "", "vm2": ""}, top=f'{ON} slice = "4ms";') as daemon:
        programs = [daemon.start(vm, HOLD, "chain", 1000, 1, blocks)
                    for vm, blocks in (("vm1", 60000), ("vm2", 120000))]
        wait_until(lambda: all(vm["parts"] > 2 for vm in daemon.report()["vms"]), "parts of both")
        looks = [daemon.report()["vms"]]
        while programs[0].poll() is None:
            looks.append(daemon.report()["vms"])
            time.sleep(0.02)
        for program in programs:
            expect_verified(program, "a long kernel")
        for vm in daemon.report()["vms"]:
            expect(vm["launches"] == 1 and vm["holds"] == 0, f"not one kernel, or held: {vm}")
        # Behind its last part the first one no longer wants the GPU.
        parts = figures(daemon)["parts"]
        within = [look for look in looks if look[0]["parts"] < parts]
        if not within:
            return 0    # this program ran late: the kernel had ended when it looked
        first, last = within[0], within[-1]
        used = [end["gpu_ns"] - begin["gpu_ns"] for begin, end in zip(first, last)]
        if last[0]["grants"] <= 4:
            return 0
        return min(used) / max(max(used), 1)


def two_long_kernels_share():
    """The best of three: a turn in which this machine stood still is made up for later only."""
    ratios = []
    while not ratios or (max(ratios) < 0.7 and len(ratios) < 3):
        ratios.append(share_of_two_long_kernels())
    expect(max(ratios) >= 0.7, f"unequal: {ratios}")


main(workloads_are_the_same, programs_are_the_same, whole_programs_work, a_vm_can_be_exempt,
     one_kernel_takes_many_turns, two_long_kernels_share)
