"""The workloads: each computes what the processor does, at sizes that fill no block and over
more than a round; their options, their lines, and what they refuse."""
import os
import resource
import subprocess
import time

from harness import BUILD, PATIENCE_S, RUN, backend, expect, finish, main

# Name, iterations that begin a second round, and sizes: of scan and pathfinder also one that
# gives a block more than a tile, or several blocks.
SIZES = (1, 2, 33, 100)
WORKLOADS = {
    "vecadd": (1001, SIZES), "matmul": (1002, SIZES), "hotspot": (11, SIZES),
    "blackscholes": (53, SIZES), "srad": (10, SIZES), "convolution": (8, SIZES),
    "histogram": (10, SIZES), "scan": (10, (1, 2, 33, 300007)), "nw": (6, (1, 2, 9)),
    "pathfinder": (6, (1, 2, 33, 1000)), "lavamd": (6, (1, 2, 9)), "heartwall": (10, (1, 2, 9)),
    "cfd": (3, (1, 2, 9)), "copyin": (1001, SIZES), "copyout": (1001, SIZES),
}
GRAPHS = ("vecadd", "matmul", "hotspot", "blackscholes", "convolution", "cfd")
# Kernel times to ask for; a real GPU's problems would be too large for the processor to check.
SHORT_US, LONG_US = 100, 4000 if os.environ.get("FAIRGV_TEST_GPU", "soft") == "soft" else 400
ADDRESSES = 32 << 30 # bytes that a program can have; lavamd wants as many for its largest size


def words(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def run(daemon, name, *options):
    """Its lines as lists of words, the last one being the result."""
    status, out, err = finish(daemon.start("vm1", f"workloads/{name}", *options))
    expect(status == 0 and "verified=yes" in out, f"{name} {options}: status {status}: {out}{err}")
    return out.splitlines()


def results():
    with backend({"vm1": ""}) as daemon:
        for name, (iterations, sizes) in WORKLOADS.items():
            for size in sizes:
                result = words(run(daemon, name, "--size", size, "--iterations", iterations)[-1])
                expect(result["iterations"] == str(iterations), f"iterations: {result}")
                expect(float(result["units"]) > 0, f"no units: {result}")


def units_are_work():
    """Twice the iterations are twice the units."""
    with backend({"vm1": ""}) as daemon:
        for name in WORKLOADS:
            once, twice = (float(words(run(daemon, name, "--size", 5, "--iterations", n)[-1])
                                 ["units"]) for n in (3, 6))
            expect(twice == 2 * once, f"{name}: {once} units, then {twice}")


def seconds():
    """A line for each second, with what was done until then."""
    with backend({"vm1": ""}) as daemon:
        *progress, last = map(words, run(daemon, "hotspot", "--seconds", 2.1, "--events",
                                         "--size", 40))
        expect(progress, f"no progress: {last}")
        units = [float(line["units"]) for line in [*progress, last]]
        expect(units[0] > 0 and units == sorted(units), f"units: {units}")
        for line in progress:
            expect(float(line["elapsed"]) >= int(line["second"]) >= 1, f"a second: {line}")
        expect(float(last["seconds"]) >= 2.1, f"the end: {last}")
        expect(0 < float(last["event_seconds"]) <= float(last["seconds"]), f"events: {last}")


def kernel_time():
    """Longer kernels are larger problems, and none is larger than what there can be."""
    with backend({"vm1": ""}) as daemon:
        for name in WORKLOADS:
            small, large = (words(run(daemon, name, "--kernel-us", us, "--iterations", 2)[-1])
                            for us in (SHORT_US, LONG_US))
            expect(int(small["size"]) < int(large["size"]), f"{small} {large}")
            expect(float(large["kernel_us"]) > 0, f"kernel time: {large}")


def bursts():
    """Two sleeps between three bursts of a launch each."""
    with backend({"vm1": ""}) as daemon:
        result = words(run(daemon, "vecadd", "--size", 10, "--iterations", 3, "--sync-every", 1,
                           "--burst-ms", 0.0001, "--sleep-ms", 60)[-1])
        expect(float(result["seconds"]) >= 0.12, f"it did not sleep: {result}")


def common_start():
    """Ready, it waits until it is told when; or starts at the time of its command line."""
    with backend({"vm1": ""}) as daemon:
        for name in WORKLOADS:
            program = subprocess.Popen(
                [RUN, "--socket", daemon.socket, "--vm", "vm1", "--", BUILD / "workloads" / name,
                 "--start-at", "-"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ready = program.stdout.readline()
            expect(ready.startswith(f"ready workload={name} "), f"{name} is not ready: {ready}")
            start = time.time() + 0.05
            out, _ = program.communicate(f"{start}\n", timeout=PATIENCE_S)
            expect(time.time() >= start, f"{name} did not wait")
            expect(program.returncode == 0 and "verified=yes" in out, f"{name}: {out}")
        start = time.time() + 0.5
        run(daemon, "vecadd", "--start-at", start)
        expect(time.time() >= start, "it did not wait")


def queries():
    """Asking whether the device is done, in vain or not, hurts nothing."""
    with backend({"vm1": ""}) as daemon:
        run(daemon, "hotspot", "--size", 100, "--iterations", 20, "--queries", 3)


def graphs():
    """A batch as a graph, which changes with the iterations; the last one is shorter."""
    with backend({"vm1": ""}) as daemon:
        for name in GRAPHS:
            run(daemon, name, "--size", 33, "--iterations", 21, "--sync-every", 5, "--graphs")
        expect(daemon.report()["vms"][0]["graphs"] == 5 * len(GRAPHS), daemon.report())


def too_large():
    """A size for which there is no memory is told."""
    with backend({"vm1": ""}) as daemon:
        result = subprocess.run(
            [RUN, "--socket", daemon.socket, "--vm", "vm1", "--", BUILD / "workloads/lavamd",
             "--size", str(1 << 24)], text=True, capture_output=True, check=False,
            timeout=PATIENCE_S,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES)))
        expect(result.returncode == 1 and "verified=no" in result.stdout and
               result.stderr == "lavamd: not enough memory for size 16777216\n",
               f"{result.returncode}: {result.stdout}{result.stderr}")


def refusals():
    with backend({"vm1": ""}) as daemon:
        for options, message in (
                (("--size", 0), "--size: '0' is not a number"),
                (("--queries", "1x"), "--queries: '1x' is not a number"),
                (("--kernel-us", "x"), "--kernel-us: 'x' is not a number"),
                (("--seconds", -1), "--seconds: '-1' is not a number"),
                (("--seconds", "nan"), "--seconds: 'nan' is not a number"),
                (("--seconds", 1, "--iterations", 1), "exclude each other"),
                (("--sleep-ms", 1), "need each other"),
                (("--start-at", "noon"), "--start-at: 'noon' is not a number"),
                (("--graphs",), "kernels alone"),
                (("surplus",), "unexpected argument 'surplus'")):
            status, out, err = finish(daemon.start("vm1", "workloads/srad", *options))
            expect(status == 2 and message in err and not out, f"{options}: {status}: {out}{err}")


main(results, units_are_work, seconds, kernel_time, bursts, common_start, queries, graphs, too_large,
     refusals)
