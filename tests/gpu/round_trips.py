"""How often an eager training step of PyTorch waits for the host, after its first ten, and for what.
Each model is trained twice, for ten steps and for sixty: the difference is fifty steps'. About 40 s.

usage: tests/gpu/round_trips.py [MODEL...], with abs_top_builddir as for tests/local/, and the
command of a Python that has PyTorch in FAIRGV_PYTHON (default: python3). FAIRGV_TEST_GPU=soft tries
the script.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import BUILD, backend, expect, main
from results import Results

RUN = BUILD / "tools/fairgv-run"
PYTHON = shlex.split(os.environ.get("FAIRGV_PYTHON", "python3"))
STEPS = pathlib.Path(__file__).resolve().parent / "steps.py"
GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
FEW, MANY = 10, 60
MOST = 4                # round trips that a step may take
ROW = re.compile(r"^fairgv: (\w+) +(\d+) +(\d+)$", re.M)
results = Results("round_trips")


def round_trips(daemon, model, steps):
    """Of each operation."""
    done = subprocess.run([RUN, "--stats", "--socket", daemon.socket, "--", *PYTHON, STEPS, model,
                           str(steps)], capture_output=True, text=True, check=False, timeout=120)
    counts = {name: int(trips) for name, _, trips in ROW.findall(done.stderr)}
    expect(done.returncode == 0 and "total" in counts,
           f"{model}: status {done.returncode}: {done.stdout}{done.stderr}")
    return counts


def steps_of(model):
    with backend({"one": ""}, gpu=GPU) as daemon:
        few, many = (round_trips(daemon, model, steps) for steps in (FEW, MANY))
    each = {name: (trips - few.get(name, 0)) / (MANY - FEW) for name, trips in many.items()}
    results.report(f"a step of {model}", **{name: trips for name, trips in each.items() if trips})
    expect(each["total"] <= MOST, f"{model}: {each['total']} round trips a step")


def mlp():
    steps_of("mlp")


def convolution():
    steps_of("convolution")


def transformer():
    steps_of("transformer")


TESTS = {test.__name__: test for test in (mlp, convolution, transformer)}
main(*[TESTS[name] for name in sys.argv[1:] or TESTS])
