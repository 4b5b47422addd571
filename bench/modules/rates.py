"""The word softgpu of bench: how fast the soft GPU's machine runs instructions, and loads PTX."""
import os
import statistics
import subprocess

from common import BUILD, Unable, number, positive, print_columns, words

PROGRAM = BUILD / "bench/softgpu_rate"


def run(*arguments):
    """The program's lines as {key: value}."""
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise Unable(result.stderr.strip() or f"status {result.returncode}")
    return [words(line) for line in result.stdout.splitlines()]


def measure(options):
    rates, loads = {}, []
    for _ in range(options.repeat):
        for line in run(options.ms):
            rates.setdefault(line["kind"], []).append(float(line["million_per_s"]))
    for path in options.ptx:
        lines = [run(options.ms, path)[0] for _ in range(options.repeat)]
        loads.append({"name": os.path.basename(path), "bytes": int(lines[0]["bytes"]),
                      "ms": statistics.median(float(line["ms"]) for line in lines)})
    return {"repeat": options.repeat, "loads": loads,
            "rates": {kind: statistics.median(values) for kind, values in rates.items()}}


def show(result):
    print(f"warp-instructions in a second of a processor, median of {result['repeat']} runs\n")
    print_columns([["instruction", "million/s"],
                   *([kind, number(rate)] for kind, rate in result["rates"].items())], 1)
    if result["loads"]:
        print()
        print_columns([["PTX", "bytes", "ms to load"],
                       *([load["name"], str(load["bytes"]), number(load["ms"])]
                         for load in result["loads"])], 1)


def add_words(measurements):
    word = measurements.add_parser("softgpu", help="how fast the soft GPU runs instructions")
    word.set_defaults(measure=measure, show=show)
    word.add_argument("ptx", nargs="*", metavar="PTX", help="texts to load, timed")
    word.add_argument("--ms", type=positive, default=50, metavar="MS",
                      help="how long each measurement takes at least (default 50)")
    word.add_argument("--repeat", type=positive, default=3, metavar="N", help="runs (default 3)")
