"""Holding on a real GPU: whether it works and why not, what programs with kernels of any length get
beside each other, and that being held and killed harms nobody. About 80 s; figures go to
$OUT/hold.json, if OUT is set, and what the daemon said of each control to $OUT/hold.log.

usage: tests/gpu/hold.py [TEST...], with abs_top_builddir as for tests/local/; FAIRGV_TEST_GPU=soft
tries the program itself. Two tests run only if they are named: lengths (two minutes), kernels of
28 us beside kernels of 0.5 ms, 200 ms and 1 s, with slices of 6 and 30 ms; and weights (half a
minute), three VMs with weights 1:2:3 and kernels of 0.3, 30 and 500 ms.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import backend, expect, expect_verified, finish, kill, main, wait_until
from results import Results

os.environ["FAIRGV_LOG"] = "debug"
GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
HOLD = "tests/local/hold"
BLOCKS = 264 if GPU == "cuda" else 2
SMALL_MS, LARGE_MS = (0.028, 200) if GPU == "cuda" else (1, 40)
LENGTHS_MS = (0.5, 200, 1000) if GPU == "cuda" else (4, 40)
WEIGHTS = {0.3: 1, 30: 2, 500: 3} if GPU == "cuda" else {1: 1, 10: 2, 60: 3}
KERNELS = 8             # of the longest there are, in the time that counts
SECONDS = 4 if GPU == "cuda" else 2
VMS = {"one": "", "two": ""}
results = Results("hold")


def figures(daemon, vm):
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    return found


def steps_per_ms(daemon):
    (first, *_) = [vm["name"] for vm in daemon.report()["vms"]]
    out = finish(daemon.start(first, HOLD, "calibrate", BLOCKS))[1]
    expect("steps_per_ms=" in out, f"calibration: {out}")
    return int(out.split("=")[1])


def loop(daemon, vm, milliseconds, rate, seconds=SECONDS):
    """A program that computes for so long when it is told to go, in batches of eight, or of one
    long kernel."""
    batch = 8 if milliseconds < 5 else 1
    program = daemon.start(vm, HOLD, "loop", max(1, round(milliseconds * rate)), batch, seconds,
                           BLOCKS, stdin=subprocess.PIPE)
    line = program.stdout.readline()
    expect(line == "begun\n", f"a program that computes: {line!r}")
    return program


def go(*programs):
    for program in programs:
        program.stdin.write("\n")
        program.stdin.flush()


def run(*arguments):
    program = loop(*arguments)
    go(program)
    return outcome(program)


def outcome(program):
    """Kernels a second, and the longest batch in ms."""
    status, out, err = finish(program)
    found = re.search(r"count=(\d+) seconds=([\d.]+) longest_ms=([\d.]+)", out)
    expect(status == 0 and found, f"status {status}: {out}{err}")
    return int(found[1]) / float(found[2]), float(found[3])


def endless(daemon, vm):
    program = daemon.start(vm, HOLD, "endless")
    line = program.stdout.readline()
    expect(line == "endless\n", f"an endless kernel: {line!r}")
    return program


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def keep_log(daemon):
    folder = os.environ.get("OUT")
    lines = [line for line in daemon.log().splitlines() if "held" in line or "holding" in line]
    for line in lines[:4]:
        print(f"  {line}")
    if folder:
        with open(pathlib.Path(folder, "hold.log"), "a", encoding="utf-8") as log:
            log.write(daemon.log())
    return lines


def probe():
    """What each control answered, with one session; nothing else can be said if this says no."""
    with backend(VMS, gpu=GPU) as daemon:
        expect_verified(daemon.start("one", HOLD, "chain", 1000, 2), "a small program")
        lines = keep_log(daemon)
        expect(any("kernels are held" in line for line in lines), "kernels can't be held here")


def shares(slice_length, lengths, weights=(1, 1)):
    """Programs with kernels of so many ms, in VMs of these weights, all at once."""
    vms = {f"vm{i}": f"weight = {weight};" for i, weight in enumerate(weights, 1)}
    seconds = max(SECONDS, KERNELS * max(lengths) / 1000)
    with backend(vms, gpu=GPU, top=f'slice = "{slice_length}";') as daemon:
        rate = steps_per_ms(daemon)
        alone = [run(daemon, "vm1", length, rate, seconds / 2)[0] for length in lengths]
        programs = [loop(daemon, vm, length, rate, seconds) for vm, length in zip(vms, lengths)]
        begun = processor_seconds(daemon.process.pid), time.monotonic()
        go(*programs)
        ends = [outcome(program) for program in programs]
        busy = processor_seconds(daemon.process.pid) - begun[0]
        parts = [end[0] / each for end, each in zip(ends, alone)]
        fair = [part * sum(weights) / weight for part, weight in zip(parts, weights)]
        name = ":".join(map(str, weights)) + ", " + ", ".join(f"{length:g} ms" for length in lengths)
        results.report(f"{name}, slices of {slice_length}", mmr=min(fair) / max(fair),
                       overhead=1 / sum(parts), longest_first_batch_ms=ends[0][1],
                       holds=sum(figures(daemon, vm)["holds"] for vm in vms),
                       daemon_processors=busy / (time.monotonic() - begun[1]),
                       **{vm: part for vm, part in zip(vms, parts)})
        daemon.expect_at_rest()
        return sum(figures(daemon, vm)["holds"] for vm in vms)


def shares_6ms():
    expect(shares("6ms", (SMALL_MS, LARGE_MS)) > 0, "the large kernels were never held")


def shares_30ms():
    expect(shares("30ms", (SMALL_MS, LARGE_MS)) > 0, "the large kernels were never held")


def lengths():
    for slice_length in ("6ms", "30ms"):
        for length in LENGTHS_MS:
            shares(slice_length, (SMALL_MS, length))


def weights():
    for slice_length in ("6ms", "30ms"):
        shares(slice_length, tuple(WEIGHTS), tuple(WEIGHTS.values()))


def beside_endless():
    """Small kernels beside one that never ends; then that one's VM starts another program."""
    with backend(VMS, gpu=GPU) as daemon:
        rate = steps_per_ms(daemon)
        alone = run(daemon, "one", SMALL_MS, rate, SECONDS / 2)[0]
        spinner = endless(daemon, "two")
        end = run(daemon, "one", SMALL_MS, rate, 2 * SECONDS)
        results.report("small beside endless", small=end[0] / alone, longest_small_batch_ms=end[1])
        expect(spinner.poll() is None, "the endless program was ended")
        os.killpg(spinner.pid, signal.SIGINT)
        finish(spinner)
        expect_verified(daemon.start("two", HOLD, "chain", 1000, 2), "the same VM's next program")
        daemon.expect_at_rest()


def equal():
    """Kernels that are held in the middle compute what they should."""
    with backend(VMS, gpu=GPU, top='slice = "2ms";') as daemon:
        rate = steps_per_ms(daemon)
        spinner = endless(daemon, "two")
        chain = daemon.start("one", HOLD, "chain", round(rate * LARGE_MS), 3, 2)
        expect_verified(chain, "kernels that were held")
        results.report("equal results", holds=figures(daemon, "one")["holds"])
        kill(spinner)
        daemon.expect_at_rest()


def killed():
    """kill -9 of the program, and of its vGPU process, while it may be held: the other goes on."""
    with backend(VMS, gpu=GPU) as daemon:
        rate = steps_per_ms(daemon)
        other = loop(daemon, "one", SMALL_MS, rate, 3 * SECONDS)
        go(other)
        for i in range(6):
            spinner = endless(daemon, "two")
            wait_until(lambda: figures(daemon, "two")["sessions"], "its session")
            (session,) = figures(daemon, "two")["sessions"]
            wait_until(lambda: figures(daemon, "two")["sessions"] and
                       figures(daemon, "two")["sessions"][0]["holds"] > 3, "some holds")
            os.kill(session["vgpu_pid"] if i % 2 else spinner.pid, signal.SIGKILL)
            kill(spinner)
        rate_beside, longest = outcome(other)
        results.report("beside programs that are killed", kernels_per_s=rate_beside,
                       longest_small_batch_ms=longest)
        daemon.expect_at_rest()


def daemon_killed():
    """kill -9 of the daemon while somebody is held: nothing of it is left, and a new one serves."""
    with backend(VMS, gpu=GPU) as daemon:
        programs = [endless(daemon, vm) for vm in VMS]
        wait_until(lambda: all(figures(daemon, vm)["holds"] > 3 for vm in VMS), "some holds")
        served = daemon.children()
        daemon.process.kill()
        daemon.process.wait()
        begun = time.monotonic()
        wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in served),
                   "the end of the vGPU processes")
        results.report("daemon killed", gone_after_s=time.monotonic() - begun)
        for program in programs:
            finish(program)
        daemon.launch()
        expect_verified(daemon.start("one", HOLD, "chain", 1000, 2), "with the next daemon")


TESTS = {test.__name__: test for test in (probe, shares_6ms, shares_30ms, beside_endless, equal,
                                          killed, daemon_killed, lengths, weights)}
USUAL = [name for name in TESTS if name not in ("lengths", "weights")]
main(*[TESTS[name] for name in sys.argv[1:] or USUAL])
