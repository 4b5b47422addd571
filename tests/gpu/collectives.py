"""NCCL and PyTorch with two GPUs, natively and through FairGV in turns: results, and what a step
takes. About two minutes; figures go to $OUT/collectives.json, if OUT is set.

usage: tests/gpu/collectives.py [one|collectives|ddp|fsdp...], with abs_top_builddir as for
tests/local/, and in FAIRGV_NATIVE what goes before a native program.
"""
import os
import pathlib
import shlex
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import RUN, Failure, backend, expect, main
from common import words
from results import Results

FOLDER = pathlib.Path(__file__).resolve().parent / "collectives"
PYTHON = shlex.split(os.environ.get("FAIRGV_PYTHON", "python3"))
NATIVE = shlex.split(os.environ.get("FAIRGV_NATIVE", "env"))
VM = os.environ.get("FAIRGV_VM", "devices = [0, 1];")
PROGRAMS = {"one": ("one_process.py",), "collectives": ("two_processes.py", "collectives"),
            "ddp": ("two_processes.py", "ddp"), "fsdp": ("two_processes.py", "fsdp")}
TURNS = 2
PATIENCE_S = 100
results = Results("collectives")


def lines_of(command):
    """{name: (microseconds, result)} of a program, which must end well."""
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=PATIENCE_S,
                              check=False)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"no end within {PATIENCE_S} s: {(late.stdout or b'')[-500:]!r}"
                      f"{(late.stderr or b'')[-2000:]!r}") from None
    expect(done.returncode == 0, f"status {done.returncode}: {done.stdout[-500:]}{done.stderr[-3000:]}")
    found = [words(line) for line in done.stdout.splitlines() if line.startswith("name=")]
    return {line["name"]: (float(line["median"]), float(line["result"])) for line in found}


def compare(daemon, what):
    program, *arguments = PROGRAMS[what]
    command = [*PYTHON, FOLDER / program, *arguments]
    ways = {"native": NATIVE, "fairgv": [RUN, "--quiet", "--socket", daemon.socket, "--vm", "vm1",
                                         "--"]}
    runs = {way: [lines_of([*map(str, prefix), *map(str, command)]) for _ in range(TURNS)]
            for way, prefix in ways.items()}
    for name in runs["native"][0]:
        best = {way: min(turn[name][0] for turn in turns) for way, turns in runs.items()}
        ends = {turn[name][1] for turns in runs.values() for turn in turns}
        expect(max(ends) - min(ends) <= 1e-3 * max(1.0, *map(abs, ends)), f"{name}: results {ends}")
        results.report(f"{what} {name}", **{f"{way}_us": us for way, us in best.items()},
                       speed=best["native"] / best["fairgv"])


def as_natively():
    wrong = []
    with backend({"vm1": VM}, gpu="cuda:0,1") as daemon:
        for what in sys.argv[1:] or PROGRAMS:
            began = time.monotonic()
            try:
                compare(daemon, what)
            except Failure as failure:
                wrong.append(f"{what}: {failure}")
                print(wrong[-1], flush=True)
                print(daemon.log()[-2000:], flush=True)
            print(f"  {what}: {time.monotonic() - began:.1f} s", flush=True)
        daemon.expect_at_rest()
    expect(not wrong, f"{len(wrong)} of them failed")


main(as_natively)
