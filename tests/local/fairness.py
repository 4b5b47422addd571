"""bench fairness on the soft GPU: shares follow weights, and small kernels get their part
beside large ones, which they do not where nobody schedules.

All bounds are on programs beside each other, and wide: processors that others use, too, do
not serve the soft GPU evenly. What one second's work was is judged by the best of a few runs. Problem sizes are given, as sizes found by measuring a kernel
differ from run to run on such processors, and with them the work of a second.
"""
import json
import os
import pathlib
import subprocess
import tempfile

from harness import BUILD, PATIENCE_S, expect, main

GPU = os.environ.get("FAIRGV_TEST_GPU", "soft")
SMALL = "matmul:size=32,sync-every=400"
LARGE = "matmul:size=112,sync-every=5"
RUNS = 3


def fairness(*options):
    """Runs it; its status, what it printed, and its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "json")
        result = subprocess.run(
            [BUILD / "bench/bench", "fairness", "--gpu", GPU, "--json", path, *options],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        output = result.stdout + result.stderr
        if path.exists():
            return result.returncode, output, json.loads(path.read_text())
        return result.returncode, output, None


def share(*options):
    """The one experiment of a run that succeeds, whose figures agree with each other."""
    status, output, document = fairness("--alone-seconds", "1", *options)
    expect(status == 0, output)
    (result,) = document["results"]
    progress = [vm["progress"] for vm in result["vms"]]
    weights = [vm["weight"] for vm in result["vms"]]
    fair = [part * sum(weights) / weight for part, weight in zip(progress, weights)]
    expect(all(part > 0 for part in progress), f"no progress: {output}")
    expect(abs(result["mmr"] - min(fair) / max(fair)) < 1e-9, f"Min-Max Ratio: {output}")
    expect(abs(result["overhead"] * sum(progress) - 1) < 1e-9, f"overhead: {output}")
    return result, output


def in_some_run(holds):
    """@holds says what is wrong, if anything."""
    for _ in range(RUNS):
        wrong = holds()
        if not wrong:
            return
    expect(False, wrong)


def weights():
    """Twice the weight is about twice the work, and the daemon has accounted it so."""
    result, output = share("--vms", "1:2", "--workload", SMALL, "--seconds", "4")
    one, two = result["vms"]
    expect(1.25 < two["gpu_share"] / one["gpu_share"] < 3.5, output)
    for vm in (one, two):
        expect(vm["grants"] > 1 and vm["waits"] > 1, f"nobody waited: {vm}")
        expect(0 < vm["wait_p50_us"] <= vm["wait_p99_us"] <= vm["wait_max_us"], f"waits: {vm}")
    return "" if 1.25 < two["units_per_second"] / one["units_per_second"] < 3.5 else output


def small_beside_large():
    """The small kernels get about half of the GPU's time, and of the work a multiple of what
    they do where nobody schedules: there, kernels take turns, however long each is."""
    part, outputs = {}, ""
    for policy in ("fair", "none"):
        result, output = share("--policy", policy, "--workload", SMALL, "--workload", LARGE,
                               "--seconds", "3")
        small, large = result["vms"]
        part[policy] = small["units_per_second"] / large["units_per_second"]
        outputs += output
        if policy == "fair":
            time = small["gpu_share"] / (small["gpu_share"] + large["gpu_share"])
    expect(time > 0.3, f"{time:.2f} of the GPU's time: {outputs}")
    return "" if part["fair"] > 1.5 * part["none"] else f"scheduling changes little: {part} {outputs}"


def refusals():
    for options, message in (
            (("--workload", "nosuch"), "no workload 'nosuch'"),
            (("--workload", "matmul", "--workload", "matmul", "--vms", "1:2:3"), "2 workloads"),
            (("--vms", "1:0"), "'0' is not a number from 1"),
            (("--slice", "long"), "'long' is no length"),
            (("--policy", "nosuch"), "nosuch"),
            (("--workload", "matmul:size=0"), "--size: '0'")):
        status, output, _ = fairness(*options)
        expect(status != 0 and message in output and "Traceback" not in output,
               f"{options}: {output}")


def work_follows_weights():
    in_some_run(weights)


def work_beside_large():
    in_some_run(small_beside_large)


main(work_follows_weights, work_beside_large, refusals)
