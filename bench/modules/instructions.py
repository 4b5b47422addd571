"""The word instructions of bench: how many instructions single CUDA calls take on each side, as
callgrind counts them.

The guest's are those of our libcudart and what it calls, in a program on the soft GPU, between
the program's call and its return, but for the waiting, which is the host's time. The host's are
those of the dispatcher, on a GPU that does nothing. Runs with different counts are compared, so
that what is done once is not counted.

Where the kernel lets programs count, the same programs run once more without callgrind, and tell
what they have spent in cycles, or in nanoseconds where the machine counts no cycles.
"""
import collections
import os
import pathlib
import shutil
import subprocess
import tempfile

from common import BUILD, RUN, Unable, last_line, print_columns, words

FEW, MANY = 64, 192       # operations of the two runs; between synchronizations no ring is full
WAITING = "wait_for_reply"
LIBRARY = "libcudart.so"
OPERATIONS = {
    "launch": "asynchronous launch, no parameters",
    "launch_params": "asynchronous launch, 4 parameters",
    "launch_same": "a launch in a loop of 64, in which all is the same again",
    "launch_new": "the same with new arguments",
    "launch_sync": "launch + cudaDeviceSynchronize",
    "sync_idle": "cudaDeviceSynchronize, idle device",
    "copy_in_4B": "cudaMemcpy 4 B host to device",
    "copy_out_4B": "cudaMemcpy 4 B device to host",
    "malloc_free": "cudaMalloc + cudaFree 1 MiB",
    "graph_100": "cudaGraphInstantiate + cudaGraphExecDestroy, 100 kernels in a chain, an edge more",
    "graph_alike_100": "the same with another argument of one kernel, + cudaGraphLaunch",
    "graph_again_100": "the same without a change",
    "graph_update_100": "cudaGraphExecUpdate of all of them + cudaGraphLaunch",
}
HERE_ONLY = {"sync_idle", "graph_again_100"}   # what the library answers by itself
HOST_ONLY = {"launch_same", "launch_new"}   # the library does not know the difference
# The guest spends its time looking.
WAITED_FOR = {"launch_sync", "copy_out_4B", "malloc_free", "graph_100", "graph_alike_100",
              "graph_update_100"}
ROUNDS = 100                # of MANY operations: what the best has spent is told
UNITS = {"cycles": "cycles outside the kernel", "ns": "nanoseconds, as no cycles are counted here"}
# It never sleeps, so the host is awake too, and nobody rings.
AWAKE = {"FAIRGV_SPIN_US": "100000", "LD_BIND_NOW": "1"}


def callgrind(command, *options, environment=None):
    """Runs the last words of @command under callgrind; the lines of its output."""
    with tempfile.TemporaryDirectory(prefix="fairgv-instructions-") as folder:
        output = pathlib.Path(folder, "out")
        tool = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={output}",
                "--compress-strings=no", "--compress-pos=no", *options]
        result = subprocess.run(command(tool), text=True, capture_output=True, check=False,
                                env={**os.environ, **(environment or {})})
        if result.returncode or not output.exists():
            raise Unable(last_line(result.stderr, result.returncode))
        return output.read_text().splitlines()


def calls(lines):
    """(caller's object, callee's object, callee, instructions) of each line of calls."""
    here = there = callee = None
    is_cost = False
    for line in lines:
        if is_cost:
            yield here, there or here, callee, int(line.split()[-1])
            there, is_cost = None, False
        elif line.startswith("ob="):
            here = line[3:]
        elif line.startswith("cob="):
            there = line[4:]
        elif line.startswith("cfn="):
            callee = line[4:]
        else:
            is_cost = line.startswith("calls=")


def guest_run(operation, count):
    """Instructions of the library in one run of the program, waiting left out."""
    program = str(BUILD / "bench/operations")
    lines = callgrind(lambda tool: [str(RUN), "--", *tool, program, operation, str(count)],
                      environment=AWAKE)
    total = collections.Counter()
    for caller, callee, name, cost in calls(lines):
        total["called"] += cost * (caller == program and LIBRARY in callee)
        total["waited"] += cost * name.startswith(WAITING)
    return total["called"] - total["waited"]


def host_run(operation, count):
    """Instructions of the dispatcher in one run."""
    program = str(BUILD / "bench/host_requests")
    lines = callgrind(lambda tool: [*tool, program, operation, str(count)],
                      "--toggle-collect=fgv_dispatcher_run")
    return next(int(line.split()[1]) for line in lines if line.startswith("totals:"))


def each(run, operation):
    return round((run(operation, MANY) - run(operation, FEW)) / (MANY - FEW))


def spending(command):
    """(unit, what an operation costs); "none" where nothing counts."""
    result = subprocess.run([*command, str(MANY), str(ROUNDS)], text=True, capture_output=True,
                            check=False, env={**os.environ, **AWAKE})
    if result.returncode:
        raise Unable(last_line(result.stderr, result.returncode))
    line = words(result.stdout.splitlines()[-1])
    return line["unit"], int(line["spent"]) / MANY


def spendings(operation):
    """Keys of a row: guest_cycles and host_cycles, or guest_ns and host_ns; as far as they are known."""
    sides = {}
    if operation not in WAITED_FOR | HOST_ONLY:
        sides["guest"] = [str(RUN), "--", str(BUILD / "bench/operations"), operation]
    if operation not in HERE_ONLY:
        sides["host"] = [str(BUILD / "bench/host_requests"), operation]
    known = {side: spending(command) for side, command in sides.items()}
    return {f"{side}_{unit}": round(cost) for side, (unit, cost) in known.items() if unit != "none"}


def measure(_options):
    if not shutil.which("valgrind"):
        raise Unable("valgrind, which counts instructions, is not installed")
    rows = []
    for name, what in OPERATIONS.items():
        row = {"name": name, "what": what, "host": 0 if name in HERE_ONLY else each(host_run, name)}
        if name not in HOST_ONLY:
            row["guest"] = each(guest_run, name)
        rows.append({**row, **spendings(name)})
    return {"rows": rows}


def show(result):
    rows = result["rows"]
    units = [unit for unit in UNITS if any(f"host_{unit}" in row for row in rows)]
    keys = ["guest", "host", *(f"{side}_{unit}" for unit in units for side in ("guest", "host"))]
    print("instructions of one operation: the program's library, and the session's process"
          + "".join(f"; then {UNITS[unit]}" for unit in units) + "\n")
    print_columns([["what", *(key.replace("_", ", ") for key in keys)],
                   *([row["what"], *(str(row.get(key, "")) for key in keys)] for row in rows)], 1)


def add_words(measurements):
    word = measurements.add_parser("instructions", help="what single CUDA calls cost, counted")
    word.set_defaults(measure=measure, show=show)
