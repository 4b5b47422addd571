"""The word cost of bench: the processor time and the memory that FairGV takes, all of it: the program's
own, its vGPU process's, and the daemon's.

Memory is what a process has for itself and its part of what it shares, as the kernel counts it
(Pss).
"""
import contextlib
import os
import pathlib
import subprocess
import time

from common import BUILD, Unable, last_line, positive, words
from experiment import Backend, Job
from experiment import Way as Schedule
from pairs import Measurement, Pair, Target, add_options

TICKS_IN_S = os.sysconf("SC_CLK_TCK")
MB = 1e6
VMS = 100
LEAD_S = 1               # before what counts: a program's start, or a session's coming to rest
TAIL_S = 0.5             # behind it, in which a synchronization ends
SECONDS = 2

# What keeps a GPU busy: a kernel's time, and after how many of them the program waits. One of
# them says all of a soft GPU, whose kernels are work of the processor.
BUSY = {"busy_short": ("28", "8"), "busy_long": ("207", "8"), "busy_asynchronous": ("207", "1300")}
MEASUREMENTS = {
    "busy_short": Measurement("busy: kernels of 28 us, waits after 8", Target("difference", 0.1)),
    "busy_long": Measurement("busy: kernels of 207 us, waits after 8", Target("difference", 0.1)),
    "busy_asynchronous": Measurement("busy: kernels of 207 us, waits after 1300",
                                     Target("difference", 0.1)),
    "idle": Measurement("idle session", Target("fairgv", 0)),
    "session_memory": Measurement("memory of an idle session", Target("difference", 16)),
    "daemon_memory": Measurement(f"memory of the daemon with {VMS} VMs", Target("fairgv", 20)),
}


def family(pid):
    """A process and all that descend from it."""
    found = [pid]
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):       # it has ended
            found += [each for child in path.read_text().split() for each in family(int(child))]
    return found


def processor_s(pid):
    """The processor time that it has used; None if it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS_IN_S


def memory_mb(pid):
    for name in ("smaps_rollup", "smaps"):
        with contextlib.suppress(FileNotFoundError):
            lines = pathlib.Path(f"/proc/{pid}/{name}").read_text().splitlines()
            return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / MB
    raise Unable(f"/proc says nothing of the memory of process {pid}")


def total_memory_mb(pids):
    return sum(memory_mb(pid) for pid in pids)


class Sample:
    """The processor time of these programs, and of what they start, until a moment."""

    def __init__(self, pids):
        self.taken = time.monotonic()
        self.used_s = {each: processor_s(each) for pid in pids for each in family(pid)}

    def cores_since(self, before):
        """On how many processors they ran, of those that run still or again."""
        used = sum(used_s - (before.used_s.get(pid) or 0)
                   for pid, used_s in self.used_s.items() if used_s is not None)
        return used / (self.taken - before.taken)


class Watched:
    """A program of ours that runs by one of the ways, and the processes of FairGV beside it."""

    def __init__(self, pair, way, program, *arguments):
        self.process = subprocess.Popen(
            way.command(BUILD / program, *arguments), env=way.surroundings(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pids = [self.process.pid]
        if way.name == "fairgv":
            self.pids.append(pair.host.process.pid)

    def lines(self):
        return map(words, self.process.stdout)

    def wait_for(self, text):
        for line in self.process.stdout:
            if line.strip() == text:
                return
        self.finish()
        raise Unable(f"it did not say '{text}'")

    def finish(self):
        """Ends its input, and waits for its end."""
        _, errors = self.process.communicate()
        if self.process.returncode:
            raise Unable(last_line(errors, self.process.returncode))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


def busy_cores(pair, way, arguments, seconds):
    """From a program's first full second on."""
    first = last = None
    with Watched(pair, way, "workloads/matmul", *arguments, "--seconds",
                 LEAD_S + seconds + TAIL_S) as watched:
        for line in watched.lines():
            if "second" not in line or last:
                continue
            if not first:
                first = Sample(watched.pids)
            elif int(line["second"]) >= LEAD_S + seconds:
                last = Sample(watched.pids)
        watched.finish()
    if not last:
        raise Unable("matmul synchronized too rarely to be measured")
    return last.cores_since(first)


def measure_idle(pair, way, seconds, daemon_mb):
    """A program that has used the GPU, and does nothing; @daemon_mb: the daemon's without it."""
    with Watched(pair, way, "bench/start", "--hold") as watched:
        watched.wait_for("held")
        time.sleep(LEAD_S)
        first = Sample(watched.pids)
        time.sleep(seconds)
        cores = Sample(watched.pids).cores_since(first)
        memory = total_memory_mb(each for pid in watched.pids for each in family(pid))
        watched.finish()
    memory -= daemon_mb if way.name == "fairgv" else 0
    return {"idle": (cores, "cores"), "session_memory": (memory, "MB")}


def sizes(pair):
    """What each busy program is run with; its size is looked for once."""
    if pair.soft:
        return {"busy_short": ("--size", 10, "--sync-every", 8)}
    found = {}
    for name, (kernel_us, every) in BUSY.items():
        line = pair.ways[0].run(BUILD / "workloads/matmul", "--kernel-us", kernel_us,
                                "--iterations", 1)[-1]
        found[name] = ("--size", line["size"], "--sync-every", every)
    return found


def daemon_memory(gpu):
    jobs = [Job(f"vm{i}", 1, None) for i in range(VMS)]
    host = Backend(Schedule(), jobs, gpu)
    try:
        return memory_mb(host.process.pid)
    finally:
        host.stop()


def cost(options):
    with Pair(options) as pair:
        seconds = options.seconds or (1 if pair.soft else SECONDS)
        # Before anything has run: what serves a program ends a moment after it.
        daemon_mb = total_memory_mb(family(pair.host.process.pid)) if pair.host else 0
        arguments = sizes(pair)

        def measure(way):
            busy = {name: (busy_cores(pair, way, each, seconds), "cores")
                    for name, each in arguments.items()}
            return {**busy, **measure_idle(pair, way, seconds, daemon_mb)}

        rows = pair.rows(pair.in_turns(measure), MEASUREMENTS.get)
    if pair.host:
        rows.append(pair.row("daemon_memory", "MB", MEASUREMENTS["daemon_memory"],
                             {"fairgv": [daemon_memory(options.gpu)]}))
    return pair.result(rows)


def add_words(measurements):
    word = measurements.add_parser("cost", help="the processor time and the memory that it takes")
    word.set_defaults(measure=cost)
    word.add_argument("--seconds", type=positive, metavar="S",
                      help=f"how long each of them is watched (default {SECONDS})")
    add_options(word, repeat=2)
