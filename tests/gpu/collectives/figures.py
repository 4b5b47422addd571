"""What the programs of this folder share: sizes, how a step is timed, how a result is checked.

A program prints one line for each thing that it measures:

    name=NAME unit=us median=X low=X high=X samples=N bytes=N result=R
"""
import statistics
import time

SIZES = tuple(1 << power for power in (10, 16, 20, 24, 30))


def say(text):
    print(f"# {text}", flush=True)


def report(name, step, finish, size, samples=20, warm_up=3, quiet=False, result=None):
    """Times @step() @samples times; @finish() waits for all GPUs."""
    times = []
    for i in range(-warm_up, samples):
        finish()
        began = time.perf_counter()
        step()
        finish()
        if i >= 0:
            times.append((time.perf_counter() - began) * 1e6)
    value = float(result()) if result else 0.0
    if not quiet:
        print(f"name={name} unit=us median={statistics.median(times):.6g} low={min(times):.6g} "
              f"high={max(times):.6g} samples={samples} bytes={size} result={value:.8g}", flush=True)


def expect_equal(tensors, values):
    for tensor, value in zip(tensors, values, strict=True):
        if not bool((tensor == value).all()):
            raise SystemExit(f"wrong: {tensor} is not {value} everywhere")
