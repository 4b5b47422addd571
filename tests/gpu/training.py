"""Two VMs that train and infer with PyTorch on one GPU, with weights 1:1 and 1:3: what each gets of
what it does alone. About a minute; figures go to $OUT/training.json, if OUT is set.

usage: tests/gpu/training.py [TEST...], with abs_top_builddir as for tests/local/, and the command
of a Python that has PyTorch in FAIRGV_PYTHON (default: python3); FAIRGV_TOP has settings of the
daemon's, such as "slice = 30;"
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import BUILD, backend, expect, finish, main
from results import Results

RUN = BUILD / "tools/fairgv-run"
PYTHON = shlex.split(os.environ.get("FAIRGV_PYTHON", "python3"))
TRAINER = pathlib.Path(__file__).resolve().parent / "trainer.py"
TOP = os.environ.get("FAIRGV_TOP", "")
SECONDS = 5
KINDS = ("train", "infer")
results = Results("training")


def start(daemon, vm, kind):
    program = subprocess.Popen(
        [RUN, "--quiet", "--socket", daemon.socket, "--vm", vm, "--", *PYTHON, TRAINER, kind,
         str(SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True)
    line = program.stdout.readline()
    if line != "begun\n":
        status, out, err = finish(program)
        expect(False, f"{kind}: status {status}: {line}{out}{err}")
    return program


def rates(daemon, jobs):
    """Steps a second of programs that begin together."""
    programs = [start(daemon, vm, kind) for vm, kind in jobs]
    for program in programs:
        program.stdin.write("\n")
        program.stdin.flush()
    found = []
    for program in programs:
        status, out, err = finish(program)
        match = re.search(r"count=(\d+) seconds=([\d.]+)", out)
        expect(status == 0 and match, f"status {status}: {out}{err}")
        found.append(int(match[1]) / float(match[2]))
    return found


def share(weights):
    vms = {f"vm{i}": f"weight = {weight};" for i, weight in enumerate(weights, 1)}
    with backend(vms, gpu="cuda", top=TOP) as daemon:
        jobs = list(zip(vms, KINDS))
        alone = [rates(daemon, [job])[0] for job in jobs]
        parts = [rate / each for rate, each in zip(rates(daemon, jobs), alone)]
        fair = [part * sum(weights) / weight for part, weight in zip(parts, weights)]
        results.report(":".join(map(str, weights)), mmr=min(fair) / max(fair),
                       overhead=1 / sum(parts), **dict(zip(KINDS, parts)))


def equal():
    share((1, 1))


def one_to_three():
    share((1, 3))


TESTS = {test.__name__: test for test in (equal, one_to_three)}
main(*[TESTS[name] for name in sys.argv[1:] or TESTS])
