"""Kernels in parts on a real GPU, with holding off: two VMs of equal weight whose kernels are many
turns long. Each program runs alone, with whole kernels; then both run at once, with whole kernels
and in parts. Prints what each got of what it does alone, the Min-Max Ratio and the overhead (1 by
the sum), and judges those of parts by the project's targets. Results of whole kernels and of parts
are compared bit by bit. Figures go to $OUT/slicing.json, if OUT is set.

lavamd has kernels of 200 ms, and runs beside itself and beside hotspot. The kernels of hotspot
cannot be longer than a turn on an H200, where its largest problem takes about a millisecond; in
turns that are shorter, changing from one program to the other would be most of what is measured. So
it stands for the programs whose kernels fit into a turn and are not to be taken apart: after the
first few launches there are as many parts as launches in parts, none.

usage: tests/gpu/slicing.py [results|long|both]..., with abs_top_builddir as for tests/local/;
FAIRGV_TEST_GPU=soft tries the program itself, without judging. Takes 10, 35 and 10 s (without long,
20).
"""
import json
import os
import pathlib
import re
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import backend, expect, finish

GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
IS_SOFT = GPU == "soft"
SECONDS = 4
START_S = 8 if IS_SOFT else 3   # what a program needs to be ready
KERNEL_US = {"lavamd": 200_000, "hotspot": 200_000 if IS_SOFT else 500}
MMR, OVERHEAD = 0.97, 1.05
TURN = "6ms"
# What runs beside what, and whether whole kernels are tried, too.
EXPERIMENTS = {"long": (("lavamd", "hotspot"), ("off", "on")),
               "both": (("lavamd", "lavamd"), ("on",))}
PARTS_MAX = 100     # of kernels that fit into a turn: as many as it takes to learn that
results = {}
failed = []
alone = {}


def judge(name, is_right, text):
    print(f"  {'ok  ' if is_right else 'FAIL'} {name}: {text}", flush=True)
    if not is_right and not IS_SOFT:
        failed.append(name)


def daemon_with(slicing, turn):
    return backend({"vm1": "", "vm2": ""}, gpu=GPU,
                   top=f'hold = "off"; slicing = "{slicing}"; slice = "{turn}"; hang = "60s";')


def words(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def size_of(program):
    """The size at which its kernels take so long, or the largest."""
    with daemon_with("off", "6ms") as daemon:
        status, out, err = finish(daemon.start("vm1", f"workloads/{program}", "--kernel-us",
                                               KERNEL_US[program], "--iterations", 2))
        expect(status == 0, f"{program}: {status}: {out}{err}")
        line = words(out.splitlines()[-1])
        print(f"{program}: size {line['size']}, kernels of {float(line['kernel_us']) / 1000:.1f} ms")
        return line["size"]


def start(daemon, vm, program, size, at):
    return daemon.start(vm, f"workloads/{program}", "--size", size, "--seconds", SECONDS,
                        "--sync-every", 1, "--start-at", at)


def rate(program, out):
    """Units in a second, between the first and the last of its lines that others were busy at."""
    lines = [words(line) for line in out.splitlines() if line.startswith("progress ")]
    lines = [line for line in lines if float(line["elapsed"]) <= SECONDS]
    expect(len(lines) > 1, f"{program}: no progress: {out}")
    units, seconds = ([float(line[key]) for line in (lines[0], lines[-1])]
                      for key in ("units", "elapsed"))
    return (units[1] - units[0]) / (seconds[1] - seconds[0])


def run(slicing, programs, sizes):
    """Each one's rate, all at once, and what the daemon says of their VMs."""
    with daemon_with(slicing, TURN) as daemon:
        at = time.time() + START_S
        running = [start(daemon, f"vm{i + 1}", program, sizes[program], at)
                   for i, program in enumerate(programs)]
        rates = []
        for program, process in zip(programs, running):
            status, out, err = finish(process)
            expect(status == 0, f"{program}: {status}: {out}{err}")
            rates.append(rate(program, out))
        return rates, daemon.report()["vms"][:len(programs)]


def experiment(name, sizes):
    programs, ways = EXPERIMENTS[name]
    for program in sorted({*programs} - {*alone}):
        alone[program] = run("off", (program,), sizes)[0][0]
    for slicing in ways:
        rates, vms = run(slicing, programs, sizes)
        got = [each / alone[program] for each, program in zip(rates, programs)]
        ratio, overhead = min(got) / max(got), 1 / sum(got)
        counts = {key: [vm[key] for vm in vms]
                  for key in ("launches", "sliced", "parts", "left_whole", "grants")}
        results[f"{name}, {slicing}"] = {"programs": programs, "turn": TURN, "got": got,
                                         "mmr": ratio, "overhead": overhead, **counts}
        text = (f"{' and '.join(programs)}, turns of {TURN}: "
                f"{' : '.join(f'{each:.3f}' for each in got)} of alone, Min-Max Ratio {ratio:.3f}, "
                f"overhead {overhead:.3f}, {counts}")
        if slicing == "off":
            print(f"       {name}, whole: {text}", flush=True)
            continue
        parts = dict(zip(programs, counts["parts"]))
        judge(f"{name}, in parts",
              ratio >= MMR and overhead <= OVERHEAD and parts["lavamd"] and
              (IS_SOFT or parts.get("hotspot", 0) <= PARTS_MAX), text)


def digest(slicing, program, size):
    # In turns in which no kernel of either fits.
    with daemon_with(slicing, "100us") as daemon:
        status, out, err = finish(daemon.start("vm1", f"workloads/{program}", "--size", size,
                                               "--iterations", 3))
        expect(status == 0 and "verified=yes" in out, f"{program}: {status}: {out}{err}")
        return re.search("digest=([0-9a-f]+)", out)[1], daemon.report()["vms"][0]


def same_results(sizes):
    for program, size in sizes.items():
        whole, _ = digest("off", program, size)
        parts, vm = digest("on", program, size)
        judge(f"{program}, results", whole == parts and vm["sliced"] > 0,
              f"{parts} in {vm['parts']} parts, {whole} whole, {vm['left_whole']} left whole")


def main():
    wanted = sys.argv[1:] or ["results", *EXPERIMENTS]
    sizes = {program: size_of(program) for program in ("lavamd", "hotspot")}
    for name in wanted:
        if name == "results":
            same_results(sizes)
        else:
            experiment(name, sizes)
    if os.environ.get("OUT"):
        pathlib.Path(os.environ["OUT"], "slicing.json").write_text(json.dumps(results, indent=1),
                                                                   encoding="utf-8")
    sys.exit(1 if failed else 0)


main()
