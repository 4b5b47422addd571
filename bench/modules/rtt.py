"""The word rtt of bench: how often programs wait for the host, and how often they ask it to.

A workload is run twice with different iterations: the difference is the loop's, the rest belongs
to setting up and taking down. A conformance program is run once, with bench/sync_calls.so counting its
calls that wait for the GPU in NVIDIA's runtime as well.
"""
import os
import pathlib
import tempfile

from calls import TABLE3
from common import BUILD, print_columns, words
from counts import counted, daemon

SMALL = 10               # a size at which no copy is divided
FEW, MANY = 8, 24        # iterations to count calls with
WORKLOADS = (*(row.program for row in TABLE3), "vecadd")
COUNTER = BUILD / "bench/sync_calls.so"
NOT_COUNTED = ("cuda12",)    # the counter goes on to functions of CUDA 13

# Copies in one iteration that NVIDIA's runtime waits for.
COPIES = {"heartwall": 2, "srad": 1}


def workload_row(way, program):
    """How often an iteration waits, which the program asks for, and how often all the rest."""
    few, many = (counted(way, BUILD / "workloads" / program, "--size", SMALL, "--sync-every", 1,
                         "--iterations", n)[1] for n in (FEW, MANY))
    each = (many.round_trips - few.round_trips) / (MANY - FEW)
    return {"program": program, "own": 1 + COPIES.get(program, 0), "round_trips": each,
            "besides": few.round_trips - FEW * each}


def conformance_programs():
    """Those that have been built."""
    return sorted(path.name for path in (BUILD / "tests/cuda").glob("*")
                  if path.is_file() and os.access(path, os.X_OK) and not path.suffix
                  and path.name not in NOT_COUNTED)


def conformance_row(way, program):
    with tempfile.TemporaryDirectory(prefix="fairgv-rtt-") as folder:
        calls = pathlib.Path(folder, "calls")
        _, counts = counted(way, BUILD / "tests/cuda" / program, LD_PRELOAD=str(COUNTER),
                            SYNC_CALLS=str(calls))
        own = sum(int(words(line)["calls"]) for line in calls.read_text().splitlines()) \
            if calls.exists() else 0
    return {"program": program, "requests": counts.requests, "own": own, "waits": counts.waits,
            "apart": counts.round_trips - counts.waits}


def rtt(options):
    chosen = options.program
    with daemon(options.gpu) as way:
        return {"device": way.device,
                "workloads": [workload_row(way, program) for program in WORKLOADS
                              if chosen in (None, program)],
                "conformance": [conformance_row(way, program) for program in conformance_programs()
                                if chosen in (None, program)]}


def print_rtt(result):
    if result["workloads"]:
        print("calls of an iteration that wait in NVIDIA's runtime, its round trips (--sync-every 1), "
              "and round trips besides\n")
        print_columns([["workload", "calls", "round trips", "besides"]] + [
            [row["program"], *(f"{row[key]:g}" for key in ("own", "round_trips", "besides"))]
            for row in result["workloads"]], 1)
        print()
    if not result["conformance"]:
        print("no conformance program of that name is built (make cuda-tests)")
        return
    print("requests; calls that wait for the GPU in NVIDIA's runtime, round trips that do, and those "
          "that wait for no work\n")
    print_columns([["program", "requests", "calls", "round trips", "without work"]] + [
        [row["program"], *(str(row[key]) for key in ("requests", "own", "waits", "apart"))]
        for row in result["conformance"]], 1)


def add_words(measurements):
    word = measurements.add_parser("rtt", help="how often programs wait for the host")
    word.set_defaults(measure=rtt, show=print_rtt)
    word.add_argument("--program", metavar="NAME",
                      help="this one only, of workloads/ or tests/cuda/")
    word.add_argument("--gpu", default="auto", help="as in the backend's configuration")
