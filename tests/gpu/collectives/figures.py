"""What the programs of this folder share: sizes, how a step is timed, how a result is checked.

A program prints one line for each thing that it measures:

    name=NAME unit=us median=X low=X high=X samples=N bytes=N result=R
"""
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "frameworks"))
from report import timed

SIZES = tuple(1 << power for power in (10, 16, 20, 24, 30))


def say(text):
    print(f"# {text}", flush=True)


def report(name, step, finish, size, samples=20, warm_up=3, quiet=False, result=None):
    """Times @step() @samples times; @finish() waits for all GPUs."""
    times = [seconds * 1e6 for seconds in timed(step, finish, samples, warm_up)]
    value = float(result()) if result else 0.0
    if not quiet:
        print(f"name={name} unit=us median={statistics.median(times):.6g} low={min(times):.6g} "
              f"high={max(times):.6g} samples={samples} bytes={size} result={value:.8g}", flush=True)


def expect_equal(tensors, values):
    for tensor, value in zip(tensors, values, strict=True):
        if not bool((tensor == value).all()):
            raise SystemExit(f"wrong: {tensor} is not {value} everywhere")
