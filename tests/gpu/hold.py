"""Holding on a real GPU: whether it works and why not, what programs with kernels of any length get
beside each other, and that being held and killed harms nobody. About 80 s; figures go to
$OUT/hold.json, if OUT is set, and what the daemon said of each control to $OUT/hold.log.

usage: tests/gpu/hold.py [TEST...], with abs_top_builddir as for tests/local/; FAIRGV_TEST_GPU=soft
tries the program itself.
"""
import json
import os
import pathlib
import re
import signal
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import backend, expect, expect_verified, finish, kill, main, wait_until

os.environ["FAIRGV_LOG"] = "debug"
GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
HOLD = "tests/local/hold"
BLOCKS = 264 if GPU == "cuda" else 2
SMALL_MS, LARGE_MS = (0.028, 200) if GPU == "cuda" else (1, 40)
SECONDS = 4 if GPU == "cuda" else 2
VMS = {"one": "", "two": ""}
results = {}


def keep():
    folder = os.environ.get("OUT")
    if folder:
        pathlib.Path(folder, "hold.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


def report(name, **figures):
    results[name] = figures
    keep()
    print(f"  {name}: " + ", ".join(f"{key} {value:.3f}" if isinstance(value, float)
                                    else f"{key} {value}" for key, value in figures.items()))


def figures(daemon, vm):
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    return found


def steps_per_ms(daemon):
    out = finish(daemon.start("one", HOLD, "calibrate", BLOCKS))[1]
    expect("steps_per_ms=" in out, f"calibration: {out}")
    return int(out.split("=")[1])


def loop(daemon, vm, milliseconds, rate, seconds=SECONDS):
    """A program that computes for so long, in batches of eight, or of one long kernel."""
    batch = 8 if milliseconds < 5 else 1
    program = daemon.start(vm, HOLD, "loop", max(1, round(milliseconds * rate)), batch, seconds,
                           BLOCKS)
    line = program.stdout.readline()
    expect(line == "begun\n", f"a program that computes: {line!r}")
    return program


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


def shares(slice_length):
    with backend(VMS, gpu=GPU, top=f'slice = "{slice_length}";') as daemon:
        rate = steps_per_ms(daemon)
        alone = [outcome(loop(daemon, "one", length, rate, SECONDS / 2))[0]
                 for length in (SMALL_MS, LARGE_MS)]
        begun = processor_seconds(daemon.process.pid), time.monotonic()
        programs = [loop(daemon, vm, length, rate)
                    for vm, length in zip(VMS, (SMALL_MS, LARGE_MS))]
        ends = [outcome(program) for program in programs]
        parts = [end[0] / each for end, each in zip(ends, alone)]
        busy = processor_seconds(daemon.process.pid) - begun[0]
        report(f"small beside large, {slice_length}", small=parts[0], large=parts[1],
               total=sum(parts), longest_small_batch_ms=ends[0][1],
               holds=figures(daemon, "one")["holds"] + figures(daemon, "two")["holds"],
               daemon_processors=busy / (time.monotonic() - begun[1]))
        expect(figures(daemon, "two")["holds"] > 0, "the large kernels were never held")
        daemon.expect_at_rest()


def shares_6ms():
    shares("6ms")


def shares_30ms():
    shares("30ms")


def beside_endless():
    """Small kernels beside one that never ends; then that one's VM starts another program."""
    with backend(VMS, gpu=GPU) as daemon:
        rate = steps_per_ms(daemon)
        alone = outcome(loop(daemon, "one", SMALL_MS, rate, SECONDS / 2))[0]
        spinner = endless(daemon, "two")
        end = outcome(loop(daemon, "one", SMALL_MS, rate, 2 * SECONDS))
        report("small beside endless", small=end[0] / alone, longest_small_batch_ms=end[1])
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
        report("equal results", holds=figures(daemon, "one")["holds"])
        kill(spinner)
        daemon.expect_at_rest()


def killed():
    """kill -9 of the program, and of its vGPU process, while it may be held: the other goes on."""
    with backend(VMS, gpu=GPU) as daemon:
        rate = steps_per_ms(daemon)
        other = loop(daemon, "one", SMALL_MS, rate, 3 * SECONDS)
        for i in range(6):
            spinner = endless(daemon, "two")
            wait_until(lambda: figures(daemon, "two")["sessions"], "its session")
            (session,) = figures(daemon, "two")["sessions"]
            wait_until(lambda: figures(daemon, "two")["sessions"] and
                       figures(daemon, "two")["sessions"][0]["holds"] > 3, "some holds")
            os.kill(session["vgpu_pid"] if i % 2 else spinner.pid, signal.SIGKILL)
            kill(spinner)
        rate_beside, longest = outcome(other)
        report("beside programs that are killed", kernels_per_s=rate_beside,
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
        report("daemon killed", gone_after_s=time.monotonic() - begun)
        for program in programs:
            finish(program)
        daemon.launch()
        expect_verified(daemon.start("one", HOLD, "chain", 1000, 2), "with the next daemon")


TESTS = {test.__name__: test for test in (probe, shares_6ms, shares_30ms, beside_endless, equal,
                                          killed, daemon_killed)}
main(*[TESTS[name] for name in sys.argv[1:] or TESTS])
