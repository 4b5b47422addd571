"""What a hostile program can take of a GPU beyond its VM's quota and share: nothing, is tested here.

usage: hostile.py [memory] [neighbour [STORM...]]     both, if none is named

memory: one program after another (hostile.cu) takes GPU memory in every way that there is, and
keeps it. Each must be refused at some point; what is charged is within the quota; and on a GPU of
NVIDIA's, what the device has less while it is kept is within the quota and a context's own memory. It
prints both, per way, so that what is charged can be compared with what is taken.

neighbour: a program of another VM works beside storms of module loads, large and small, of
allocations, pinned memory and streams, each measured by itself. It gets as much of what it has alone
as it gets beside an ordinary program of equal weight, to within 2 %; and what it loses, the other has
been charged. All storms are measured and printed, and then it is said which failed.
`hostile.py neighbour "variables of 64 KiB"` measures one.

FAIRGV_TEST_GPU: soft (small sizes, and memory only), or cuda; abs_top_builddir: the build or bundle.
A program of its own, which runs natively, asks the device what is free: FAIRGV_NATIVE is put before it.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "local"))
from harness import BUILD, Failure, backend, expect, finish, kill, wait_until

PROGRAM = "tests/gpu/hostile/hostile"
GPU = os.environ.get("FAIRGV_TEST_GPU", "soft")
IS_SOFT = GPU == "soft"
QUOTA = (256 if IS_SOFT else 4096) << 20
CONTEXT = 1 << 30       # what a context takes, and the driver for itself, at the most
SECONDS = 4             # of each measurement
STORM_SECONDS = SECONDS + 2
KERNEL = (132 * 4, 20000)
TOLERANCE = 0.02

# The arguments, on the soft GPU and on others. Each takes more than the quota if it is let.
WAYS = {
    "memory": ((), ()),
    "memory without addresses": (("chunks", 4 << 20), ("chunks", 64 << 20)),
    "one large variable": (("globals", 1 << 40), ("globals", 60 << 30)),
    "many variables": (("globals", 16 << 20), ("globals", 256 << 20)),
    "local memory": (("local", 256 << 10), ("local", 256 << 10)),
    "arrays of small layers": (("arrays", 2048), ("arrays", 2048)),
    "streams": (("streams",), ("streams",)),
    "events": (("events",), ("events",)),
    "graphs": (("graphs",), ("graphs",)),
    "limits": (("limits", 2000), ("limits", 94209)),
    "fragments": (("fragments", 1 << 10), ("fragments", 64 << 10)),
}
# These are few enough to be let, where they fit.
MAY_BE_LET = ("streams", "events", "graphs")

VMS = {"attacker": 'memory = "4G";', "neighbour": ""}
ORDINARY = ("neighbour", STORM_SECONDS, *KERNEL)
STORMS = {
    "large variables": ("storm", STORM_SECONDS, 1 << 30),
    "variables of 64 KiB": ("storm", STORM_SECONDS, 64 << 10),
    "allocations of 64 MiB": ("churn", STORM_SECONDS, 64 << 20),
    "allocations of 64 KiB": ("churn", STORM_SECONDS, 64 << 10),
    "pinned memory": ("pins", STORM_SECONDS, 16 << 20),
    "streams": ("spawn", STORM_SECONDS),
}


def native_free():
    """What the device has free, as a program beside FairGV sees it."""
    command = shlex.split(os.environ.get("FAIRGV_NATIVE", "")) + [str(BUILD / PROGRAM), "free"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(re.fullmatch(r"free (\d+) \d+\n", done.stdout)[1])


def vm_of(daemon, name):
    return next(vm for vm in daemon.report()["vms"] if vm["name"] == name)


def start(daemon, vm, *arguments):
    return subprocess.Popen(
        [BUILD / "tools/fairgv-run", "--socket", daemon.socket, "--vm", vm, "--", BUILD / PROGRAM,
         *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True)


def take(daemon, way, arguments):
    before = None if IS_SOFT else native_free()
    program = start(daemon, "attacker", *arguments)
    line = program.stdout.readline()
    found = re.fullmatch(r"done (\d+) (\w+)\n", line)
    if not found:
        kill(program)
        raise Failure(f"{way}: {line!r}\n{daemon.log()}")
    charged = vm_of(daemon, "attacker")["memory_bytes"]
    taken = None if IS_SOFT else before - native_free()
    program.stdin.close()
    program.stdin = None
    finish(program)
    print(f"  {way:24} {found[1]:>12} {found[2]:26} charged {charged >> 20:6} MiB"
          + ("" if taken is None else f"  taken {taken >> 20:6} MiB"), flush=True)
    expect(found[2] == "cudaErrorMemoryAllocation" or way in MAY_BE_LET, f"{way}: {found[2]}")
    expect(charged <= QUOTA, f"{way}: charged {charged} of {QUOTA}")
    expect(taken is None or taken <= QUOTA + CONTEXT, f"{way}: {taken} taken of {QUOTA}")


def test_memory():
    settings = {"attacker": f'memory = "{QUOTA >> 20}M";', "other": ""}
    with backend(settings, gpu=GPU) as daemon:
        for way, sizes in WAYS.items():
            arguments = sizes[0 if IS_SOFT else 1] or ("memory",)
            take(daemon, way, arguments)
            # Not its descriptors: it opens NVML when it first looks.
            wait_until(lambda: not daemon.children(), "the process's end")


def rate_of(program):
    status, out, err = finish(program)
    found = re.search(r"^did (\d+) ([\d.]+)\n\Z", out, re.MULTILINE)
    expect(status == 0 and found, f"status {status}: {out}{err}")
    return int(found[1]) / float(found[2])


def begin(daemon, vm, *arguments):
    program = start(daemon, vm, *arguments)
    line = program.stdout.readline()
    if line != "begun\n":
        kill(program)
        raise Failure(f"{vm} does not begin: {line!r}\n{daemon.log()}")
    return program


def begin_neighbour(daemon):
    return begin(daemon, "neighbour", "neighbour", SECONDS, *KERNEL)


def rate_beside(daemon, arguments):
    """The neighbour's rate beside another program, that one's own, and what was charged to both."""
    other = begin(daemon, "attacker", *arguments)
    neighbour = begin_neighbour(daemon)
    before, begun = [vm_of(daemon, vm) for vm in VMS], time.monotonic()
    neighbour.wait()
    after, seconds = [vm_of(daemon, vm) for vm in VMS], time.monotonic() - begun
    charged = [(b["gpu_ns"] - a["gpu_ns"]) / seconds / 1e9 for a, b in zip(before, after)]
    turns = [(b["grants"] - a["grants"]) / seconds for a, b in zip(before, after)]
    return rate_of(neighbour), rate_of(other), charged, turns


def measure(name, arguments):
    """Its part of its rate alone, before and after, as a GPU's clock changes with what it does; and
    what the other was charged, as a part of the time."""
    with backend(VMS, gpu=GPU) as daemon:
        alone = rate_of(begin_neighbour(daemon))
        beside, others, charged, turns = rate_beside(daemon, arguments)
        share = 2 * beside / (alone + rate_of(begin_neighbour(daemon)))
    print(f"  {name:24} {others:8.1f} a second; the neighbour has {share:.3f} of what it has alone "
          f"and is charged {charged[1]:.3f} for {turns[1]:.0f} turns a second, the other "
          f"{charged[0]:.3f} for {turns[0]:.0f}", flush=True)
    return share, charged[0]


def test_neighbour(names):
    if IS_SOFT:
        print("  left out: on the soft GPU the processors' load would decide")
        return
    owed = min(measure("an ordinary program", ORDINARY)[0], 0.5)
    measured = {name: measure(name, STORMS[name]) for name in names or STORMS}
    robbed = [name for name, (share, paid) in measured.items()
              if share < owed * (1 - TOLERANCE) or share + paid < 1 - 2 * TOLERANCE]
    expect(not robbed, f"the neighbour lost more than beside an ordinary program, or more than the "
           f"other paid for: {', '.join(robbed)}")


def main():
    words = sys.argv[1:] or ["memory", "neighbour"]
    storms = [word for word in words if word in STORMS]
    failures = []
    for word in words:
        if word in STORMS:
            continue
        print(f"{word}:", flush=True)
        try:
            {"memory": test_memory, "neighbour": lambda: test_neighbour(storms)}[word]()
        except Failure as failure:
            failures.append(str(failure))
    if failures:
        sys.exit("FAILED: " + "\n".join(failures))


main()
