"""What the programs of this folder share: how a step is timed, and how a result is told.

A program prints one line for each thing that it measures, as key=value words:

    name=NAME unit=ms median=X low=X high=X samples=N result=R

R is a number that the program's work comes to. The same program gives the same one natively and
through FairGV, but for the order in which atomics add up.
"""
import statistics
import time


def timed(step, finish, samples, warm_up):
    """How many seconds @step() takes each time; @finish() waits for the GPUs."""
    times = []
    for i in range(-warm_up, samples):
        finish()
        began = time.perf_counter()
        step()
        finish()
        if i >= 0:
            times.append(time.perf_counter() - began)
    return times


def report(name, step, finish, samples=10, warm_up=3, result=None):
    """Times @step(); @finish() waits for the GPU. @result(): the number, after the last step."""
    times = [seconds * 1e3 for seconds in timed(step, finish, samples, warm_up)]
    value = float(result()) if result else 0.0
    print(f"name={name} unit=ms median={statistics.median(times):.6g} low={min(times):.6g} "
          f"high={max(times):.6g} samples={samples} result={value:.8g}", flush=True)
