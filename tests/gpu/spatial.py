"""Multiprocessors of VMs' own (policy smguard) on a real GPU, under MPS: a service has reserved 25 %
of them and a batch job 75 %; the kernels of both are long. Each runs alone, and then both at once:
each is to get what its multiprocessors give it alone, within 3 %. The same programs run under the
policy fair, for comparison. Then the batch job does nothing but move memory, beside a service that
does, too: what is left to each of memory bandwidth is printed, and not judged.

Figures go to $OUT/spatial.json, if OUT is set.

usage: tests/gpu/spatial.py, with abs_top_builddir as for tests/local/. FAIRGV_TEST_GPU=soft tries
the program itself, without judging. Takes 40 s.
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import PATIENCE_S, backend, expect, finish
from results import Results

GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
IS_SOFT = GPU == "soft"
CONTEXT = "" if IS_SOFT else 'context = "mps";'
SECONDS = 3
BOUND = 0.03
BLOCKS = 16 if IS_SOFT else 8448    # many waves of them on any part of the GPU
KERNELS_MS = {"service": 20, "batch": 200}     # on all of the GPU
VMS = {"service": 'sms = "25%";', "batch": 'sms = "75%";'}
WORDS = 1 << (16 if IS_SOFT else 28)
results = Results("spatial")
failed = []


def daemon_with(policy):
    vms = VMS if policy == "smguard" else dict.fromkeys(VMS, "")
    return backend(vms, gpu=GPU, top=f'policy = "{policy}"; {CONTEXT} hang = "60s";')


def number(text, key):
    found = re.search(rf"{key}=([\d.]+)", text)
    expect(found, f"no {key} in {text!r}")
    return float(found[1])


def steps_per_ms():
    with daemon_with("fair") as daemon:
        status, out, err = finish(daemon.start("service", "tests/local/hold", "calibrate", BLOCKS))
        expect(status == 0, f"calibrate: {status}: {out}{err}")
        return number(out, "steps_per_ms")


def begin(daemon, vm, *arguments):
    program = daemon.start(vm, *arguments, stdin=subprocess.PIPE)
    line = program.stdout.readline()
    expect(line == "begun\n", f"{vm}: {line!r} {'' if line else program.stderr.read()}")
    return program


def rates(daemon, programs, key):
    """Of programs that have begun and wait for a line: units in a second."""
    for program in programs.values():
        program.stdin.write("\n")
        program.stdin.flush()
    rate = {}
    for vm, program in programs.items():
        out, err = program.communicate(timeout=PATIENCE_S)
        expect(program.returncode == 0, f"{vm}: {program.returncode}: {out}{err}")
        rate[vm] = number(out, key) / number(out, "seconds")
    return rate


def alone_and_beside(policy, commands, key):
    """What each gets alone, and beside the other."""
    with daemon_with(policy) as daemon:
        alone = {}
        for vm, command in commands.items():
            alone |= rates(daemon, {vm: begin(daemon, vm, *command)}, key)
        beside = rates(daemon, {vm: begin(daemon, vm, *command)
                                for vm, command in commands.items()}, key)
    return alone, beside


def long_kernels(per_ms):
    commands = {vm: ("tests/local/hold", "loop", int(per_ms * ms), 1, SECONDS, BLOCKS)
                for vm, ms in KERNELS_MS.items()}
    for policy in "smguard", "fair":
        alone, beside = alone_and_beside(policy, commands, "count")
        parts = {vm: beside[vm] / alone[vm] for vm in commands}
        results.report(policy, **{f"{vm}_of_alone": part for vm, part in parts.items()},
                       **{f"{vm}_alone_per_s": alone[vm] for vm in commands})
        for vm, part in parts.items():
            if policy == "smguard" and abs(part - 1) > BOUND and not IS_SOFT:
                failed.append(f"{vm}: {part:.3f} of what it does alone")


def bandwidth():
    commands = {vm: ("tests/local/moves", WORDS, SECONDS) for vm in VMS}
    alone, beside = alone_and_beside("smguard", commands, "gigabytes")
    results.report("bandwidth", **{f"{vm}_alone_GB_s": alone[vm] for vm in VMS},
                   **{f"{vm}_beside_GB_s": beside[vm] for vm in VMS})


long_kernels(steps_per_ms())
bandwidth()
for what in failed:
    print(f"FAIL {what}")
sys.exit(bool(failed))
