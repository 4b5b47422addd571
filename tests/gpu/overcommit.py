"""Programs that together need more memory than a GPU has, on a real GPU: two and then three of 12 GiB
each, which use all of it all the time, on a GPU with 16 GiB left. What they get done together, as a
part of what one gets done alone; what the one with least gets beside the one with most; and how fast
memory moves each way. Beside that natively: the same programs with managed memory, which the driver
moves as kernels touch it, at once and in turns (as nvshare has them), which the script gives by
stopping the others. About 95 s; figures go to $OUT/overcommit.json, if OUT is set.

usage: tests/gpu/overcommit.py [TEST...], with abs_top_builddir as for tests/local/, and the command
that native programs run with in FAIRGV_NATIVE; FAIRGV_TEST_GPU=soft tries the program itself.
"""
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import BUILD, Failure, backend, expect, finish, kill, main, wait_until
from results import Results

GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
IS_SOFT = GPU.startswith("soft")
NATIVE = shlex.split(os.environ.get("FAIRGV_NATIVE", ""))
SWEEP = "tests/local/sweep"
MIB, GIB = 1 << 20, 1 << 30
CARD, EACH, QUOTA = (64 * MIB, 48 * MIB, "56M") if IS_SOFT else (16 * GIB, 12 * GIB, "13G")
ALONE_S = 2
TOGETHER_S = {2: 5, 3: 8} if IS_SOFT else {2: 22, 3: 26}
UNIFIED_S, TURN_S = 10, 5
LEAST_RATIO, LEAST_MMR = 0.85, 0.95
# A span without progress is no part of a program's turn.
PAUSE_NS = 200_000_000
TOP = "overcommit = 4.0; frozen_memory = \"64G\";"
if IS_SOFT:
    TOP += " soft_memory = \"64M\"; swap_share = \"50%\";"
results = Results("overcommit")
failed = []


def judge(name, is_right, text):
    print(f"  {'ok  ' if is_right else 'FAIL'} {name}: {text}", flush=True)
    if not is_right and not IS_SOFT:
        failed.append(name)


# --- Programs -------------------------------------------------------------------------------------

def native(*arguments):
    return subprocess.Popen([*NATIVE, BUILD / SWEEP, *map(str, arguments)], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True)


def expect_ready(program, wanted="ready\n"):
    line = program.stdout.readline()
    if not line.startswith(wanted):
        status, out, err = finish(program)
        raise Failure(f"{line!r} instead of {wanted!r}: {status} {out}{err}")
    return line


def begin(program, seconds):
    program.stdin.write(f"{seconds}\n")
    program.stdin.flush()


def marks_of(program):
    """When it had done how many passes, in ns; its results are right."""
    status, out, err = finish(program)
    expect(status == 0 and "verified=yes" in out, f"status {status}: {out[-200:]}{err}")
    return [tuple(map(int, line.split())) for line in out.splitlines() if line[0].isdigit()]


class Room:
    """All of the GPU's memory but CARD is somebody else's."""

    def __enter__(self):
        self.program = None if IS_SOFT else native("leave", CARD)
        if self.program:
            left = int(expect_ready(self.program, "leaves ").split()[1])
            print(f"  left on the GPU: {left / GIB:.2f} GiB", flush=True)

    def __exit__(self, *_):
        if self.program:
            kill(self.program)


# --- What they have done --------------------------------------------------------------------------

def done_at(marks, at_ns):
    """Passes until then; between two marks in proportion."""
    before = (marks[0][0], 0)
    for mark in marks:
        if mark[0] > at_ns:
            span = mark[0] - before[0]
            return before[1] + (mark[1] - before[1]) * (at_ns - before[0]) / span if span else 0
        before = mark
    return before[1]


def turns_of(marks):
    """When its turns began; those at the edges are not whole."""
    return [after[0] for before, after in zip(marks, marks[1:]) if after[0] - before[0] > PAUSE_NS]


def whole_rounds(tapes):
    """The longest span from the beginning of a turn to that of a later one of the same program."""
    spans = [(turns[0], turns[-1]) for turns in map(turns_of, tapes) if len(turns) > 1]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def judged(tapes, begun_ns, end_ns, rate):
    """What all did of what one would have done alone in that time, and the least by the most."""
    span = whole_rounds(tapes) or (begun_ns, end_ns)
    did = [done_at(tape, span[1]) - done_at(tape, span[0]) for tape in tapes]
    return {"ratio": sum(did) / rate / (span[1] - span[0]) * 1e9,
            "min_max": min(did) / max(max(did), 1e-9), "passes": [round(each, 1) for each in did],
            "seconds": (span[1] - span[0]) / 1e9, "in_whole_rounds": bool(whole_rounds(tapes)),
            "longest_pause_s": max((after[0] - before[0]) / 1e9
                                   for tape in tapes for before, after in zip(tape, tape[1:]))}


def rate_of(marks):
    (from_ns, before), (to_ns, after) = marks[0], marks[-1]
    return (after - before) / (to_ns - from_ns) * 1e9


# --- Through FairGV -------------------------------------------------------------------------------

def moved(daemon):
    vms = daemon.report()["vms"]
    return [sum(vm[key] for vm in vms) for key in ("moved_out", "moved_in")]


def start(daemon, vm):
    return daemon.start(vm, SWEEP, EACH, stdin=subprocess.PIPE)


def alone(daemon):
    program = start(daemon, "vm0")
    expect_ready(program)
    begin(program, ALONE_S)
    rate = rate_of(marks_of(program))
    wait_until(lambda: not daemon.served(), "the end of its process")
    daemon.settle()     # the driver's libraries, which the daemon has used now, keep files open
    results.report("one alone", passes_per_s=rate, gib_per_s=2 * rate * EACH / GIB)
    return rate


def together(count):
    seconds = TOGETHER_S[count]
    vms = {f"vm{i}": f"movable = true; memory = \"{QUOTA}\";" for i in range(count)}
    with Room(), backend(vms, gpu=GPU, top=TOP, warm=0) as daemon:
        rate = alone(daemon)
        programs = [start(daemon, vm) for vm in vms]
        for program in programs:
            expect_ready(program)
        before, begun_ns = moved(daemon), time.monotonic_ns()
        for program in programs:
            begin(program, seconds)
        time.sleep(seconds)
        after, end_ns = moved(daemon), time.monotonic_ns()
        tapes = [marks_of(program) for program in programs]
        daemon.expect_at_rest()
    figures = judged(tapes, begun_ns, end_ns, rate)
    gib = [(now - then) / GIB for then, now in zip(before, after)]
    results.report(f"{count} together", **figures, gib_out=gib[0], gib_in=gib[1],
                   **change_of(tapes, gib))
    judge(f"{count} together", figures["ratio"] >= LEAST_RATIO,
          f"{figures['ratio']:.3f} of the throughput one after another")
    judge(f"{count} together, shares", figures["min_max"] >= LEAST_MMR,
          f"Min-Max Ratio {figures['min_max']:.3f}")


def change_of(tapes, gib):
    """Spans in which nobody made progress: the changes of turns, as far as nothing overlaps."""
    marks = sorted(mark[0] for tape in tapes for mark in tape)
    pauses = [after - before for before, after in zip(marks, marks[1:])
              if after - before > PAUSE_NS]
    idle_s = sum(pauses) / 1e9
    if not pauses:
        return {"changes": 0}
    return {"changes": len(pauses), "change_s": idle_s / len(pauses),
            "gib_per_s_out": gib[0] / idle_s, "gib_per_s_in": gib[1] / idle_s}


def two():
    together(2)


def three():
    together(3)


# --- Unified memory -------------------------------------------------------------------------------

def host_free_bytes():
    """Of the machine, and of its control group where that has a limit."""
    words = dict(line.split(":") for line in open("/proc/meminfo", encoding="ascii"))
    free = [int(words["MemAvailable"].split()[0]) * 1024]
    group = pathlib.Path("/sys/fs/cgroup")
    limit, used = group / "memory.max", group / "memory.current"
    if limit.exists() and used.exists() and limit.read_text().strip() != "max":
        free.append(int(limit.read_text()) - int(used.read_text()))
    return min(free)


def take_turns(programs, seconds):
    """One goes on at a time; the work of the one before has ended when it was stopped so long."""
    end = time.monotonic() + seconds
    for program in programs[1:]:
        os.killpg(program.pid, signal.SIGSTOP)
    at = 0
    while time.monotonic() < end:
        time.sleep(min(TURN_S, max(end - time.monotonic(), 0)))
        os.killpg(programs[at].pid, signal.SIGSTOP)
        at = (at + 1) % len(programs)
        os.killpg(programs[at].pid, signal.SIGCONT)
    for program in programs:
        os.killpg(program.pid, signal.SIGCONT)


def unified(count, in_turns, rate):
    seconds = count * TURN_S if in_turns else UNIFIED_S
    programs = [native(EACH, "managed") for _ in range(count)]
    for program in programs:
        expect_ready(program)
    begun_ns = time.monotonic_ns()
    for program in programs:
        begin(program, seconds)
    if in_turns:
        take_turns(programs, seconds)
    tapes = [marks_of(program) for program in programs]
    did = [done_at(tape, begun_ns + seconds * 1e9) for tape in tapes]
    results.report(f"{count} with unified memory{', in turns' if in_turns else ''}",
                   ratio=sum(did) / rate / seconds, min_max=min(did) / max(max(did), 1e-9),
                   passes=[round(each, 1) for each in did])


def managed():
    if IS_SOFT:
        print("  no unified memory of the soft GPU's own", flush=True)
        return
    free = host_free_bytes()
    expect(free > 3 * EACH, f"the host has {free / GIB:.1f} GiB free, which managed memory may take")
    with Room():
        program = native(EACH)
        expect_ready(program)
        begin(program, 1)
        rate = rate_of(marks_of(program))
        results.report("one alone, natively", passes_per_s=rate)
        unified(2, False, rate)
        unified(2, True, rate)


def all_right():
    expect(not failed, ", ".join(failed))


TESTS = {test.__name__: test for test in (two, three, managed)}
main(*[TESTS[name] for name in sys.argv[1:] or TESTS], all_right)
