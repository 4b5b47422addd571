"""Runs programs of workloads/ in VMs of a backend of their own, all at once or one alone,
and measures the work that each gets done.

Programs start together, once all are ready, and run for the same time; what counts is
from their first second's end on, for as many seconds as were asked for. They go on for a
second more, so that nobody's measured time has a part in which others had ended.
"""
import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time

from backend_process import BackendProcess
from common import BACKEND, BUILD, CTL, RUN, Unable, words

PATIENCE_S = 120     # for a line of any program, which only a hang exceeds
LEAD_S = 1           # before the part that counts
TAIL_S = 1           # behind it
SLEEPING = ("burst-ms", "sleep-ms")


@dataclasses.dataclass(frozen=True)
class Workload:
    """A program and its options, as NAME or NAME:key=value,key=value."""
    program: str
    options: tuple = ()

    @classmethod
    def parse(cls, text):
        program, _, rest = text.partition(":")
        if not (BUILD / "workloads" / program).is_file():
            raise ValueError(f"there is no workload '{program}'")
        return cls(program, tuple(tuple(option.split("=", 1)) for option in rest.split(",")
                                  if option))

    def __str__(self):
        return ":".join(filter(None, [self.program, ",".join(map("=".join, self.options))]))

    def sleeps(self):
        return any(option[0] in SLEEPING for option in self.options)

    def without_sleep(self):
        return Workload(self.program, tuple(option for option in self.options
                                            if option[0] not in SLEEPING))

    def arguments(self, size):
        """Its command line; @size replaces what it would find by calibration, if there is one."""
        options = dict(option if len(option) == 2 else (*option, None) for option in self.options)
        if size is not None:
            options.pop("kernel-us", None)
            options["size"] = str(size)
        return [part for key, value in options.items()
                for part in (f"--{key}", value) if part is not None]


@dataclasses.dataclass(frozen=True)
class Way:
    """How programs get at the GPU: policy "native" is without FairGV."""
    policy: str = "fair"
    context: str = "isolated"
    slice_ms: object = None      # None: the daemon's default
    cosched: bool = True
    engines: bool = True         # granted by themselves
    warm: int = 0                # processes kept ready, which open the GPU while others use it

    def __str__(self):
        if self.policy in ("native", "none"):
            return self.policy if self.context == "isolated" else f"{self.policy} {self.context}"
        length = "" if self.slice_ms is None else f" {self.slice_ms:g} ms"
        alone = "" if self.cosched else " without coscheduling"
        whole = "" if self.engines else " one grant for all engines"
        return f"{self.policy} {self.context}{length}{alone}{whole}"

    def settings(self):
        """It in a daemon's configuration."""
        length = "" if self.slice_ms is None else f'slice = "{self.slice_ms * 1000:.0f}us";'
        alone = "" if self.cosched else 'cosched = "off";'
        whole = "" if self.engines else "engines = false;"
        return (f'policy = "{self.policy}"; context = "{self.context}"; warm = {self.warm}; '
                f'{length} {alone} {whole}')


@dataclasses.dataclass(frozen=True)
class Job:
    vm: str
    weight: int
    workload: Workload
    size: object = None          # None: the workload's own choice


class Native:
    """The driver alone: VMs are mere names."""
    device = None

    def __init__(self, environment):
        self.environment = environment

    def command(self, _vm):
        return []

    def stat(self):
        return None

    def stop(self):
        pass


class Backend(BackendProcess):
    """A daemon with the VMs of @jobs, which schedules by @way."""
    environment = {}

    def __init__(self, way, jobs, gpu):
        super().__init__(BACKEND, {job.vm: f"weight = {job.weight};" for job in jobs}, gpu,
                         way.settings())
        self.device = self.ready_line
        if not self.device:
            lines = self.log().strip().splitlines() or ["no reason given"]
            self.stop()
            raise Unable(f"the backend did not start: {lines[-1]}")

    def command(self, vm):
        return [RUN, "--socket", self.socket, "--vm", vm, "--"]

    def stat(self):
        """What the daemon reports of its VMs."""
        result = subprocess.run([CTL, "--socket", self.control, "stat", "--json"],
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise Unable(f"fairgvctl: {result.stderr.strip()}")
        return json.loads(result.stdout)


class Program:
    """A running workload; a thread hands its lines, and None at their end, to @events."""

    def __init__(self, host, job, seconds, events):
        self.name, self.events = f"{job.workload.program} in {job.vm}", events
        self.first = self.last = self.result = None
        self.ready, self.ended = False, False
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*host.command(job.vm), BUILD / "workloads" / job.workload.program,
             "--seconds", str(LEAD_S + seconds + TAIL_S), "--start-at", "-",
             *job.workload.arguments(job.size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            start_new_session=True, env={**os.environ, **host.environment})
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.events.put((self, line))
        self.events.put((self, None))

    def take(self, line, seconds):
        """Learns from a line that it printed."""
        if line is None:
            self.end()
        elif line.startswith("ready"):
            self.ready = True
        elif line.startswith("progress"):
            point = {key: float(value) for key, value in words(line).items() if key != "workload"}
            if not self.first and point["second"] >= LEAD_S:
                self.first = point
            elif not self.last and point["second"] >= LEAD_S + seconds:
                self.last = point
        else:
            self.result = words(line)

    def end(self):
        self.ended = True
        if self.process.wait() != 0 or not self.result or self.result["verified"] != "yes":
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines() or [f"status {self.process.returncode}"]
            raise Unable(f"{self.name}: {lines[-1]}")
        if not self.last:
            raise Unable(f"{self.name}: it synchronized too rarely to be measured")

    def rate(self, key):
        """By how much one of its counts grew in a second of the part that counts."""
        return (self.last[key] - self.first[key]) / (self.last["elapsed"] - self.first["elapsed"])

    def close(self):
        if not self.ended:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class Run:
    """Programs from their start to their end."""

    def __init__(self, host, seconds):
        self.host, self.seconds = host, seconds
        self.events = queue.Queue()
        self.before = self.after = None      # the daemon's reports around the part that counts
        self.programs = []

    def take_one(self):
        try:
            program, line = self.events.get(timeout=PATIENCE_S + self.seconds)
        except queue.Empty:
            raise Unable("a program hangs") from None
        program.take(line, self.seconds)
        if not self.before and all(p.first for p in self.programs):
            self.before = self.host.stat()
        if not self.after and any(p.last for p in self.programs):
            self.after = self.host.stat()

    def watch(self, jobs):
        for job in jobs:
            self.programs.append(Program(self.host, job, self.seconds, self.events))
        while not all(program.ready for program in self.programs):
            self.take_one()
        start = time.time() + 0.05 * len(self.programs)
        for program in self.programs:
            with contextlib.suppress(BrokenPipeError):       # why is found at its end
                program.process.stdin.write(f"{start:.6f}\n")
                program.process.stdin.flush()
        while not all(program.ended for program in self.programs):
            self.take_one()

    def overlap(self):
        """Whether nobody's measured time has a part in which somebody else had ended."""
        return (max(program.last["elapsed"] for program in self.programs) <=
                min(float(program.result["seconds"]) for program in self.programs))

    def close(self):
        for program in self.programs:
            program.close()


def wait_figures(before, after):
    """Percentiles of the waits for the grant that ended between two reports, in us."""
    counts = {edge: count for edge, count in after["histogram"]}
    for edge, count in before["histogram"]:
        counts[edge] -= count
    edges = sorted((edge for edge, count in counts.items() if count and edge is not None))
    if counts.get(None):
        edges.append(None)
    total = sum(counts[edge] for edge in edges)
    figures = {"waits": total}

    def below(part):
        seen = 0
        for edge in edges:
            seen += counts[edge]
            if seen >= part * total:
                return after["max_ns"] if edge is None else min(edge, after["max_ns"])
        return 0

    for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1)):
        figures[f"wait_{name}_us"] = below(part) / 1e3 if total else None
    return figures


def host_figures(run, vm):
    """What the daemon says of a VM in the part of a run that counts."""
    if not run.before or not run.after:
        return {}
    first, last = ({entry["name"]: entry for entry in report["vms"]}[vm]
                   for report in (run.before, run.after))
    passed_ns = run.after["time_ns"] - run.before["time_ns"]
    return {"gpu_share": (last["gpu_ns"] - first["gpu_ns"]) / passed_ns,
            "grants": last["grants"] - first["grants"],
            "stalls": last["stalls"] - first["stalls"],
            "favoured": last["favoured"] - first["favoured"],
            "sync_calls": last["sync_calls"] - first["sync_calls"],
            "overrun_us": (last["overrun_ns"] - first["overrun_ns"]) / 1e3,
            **wait_figures(first["wait"], last["wait"])}


class Bench:
    """What runs: on which GPU, and with which sizes workloads have been calibrated."""

    def __init__(self, gpu, native):
        self.gpu = gpu
        self.native = native     # the environment of native runs, None where there are none
        self.sizes = {}
        self.device = None

    def host(self, way, jobs):
        if way.policy != "native":
            return Backend(way, jobs, self.gpu)
        if self.native is None:
            raise Unable("native programs cannot run here")
        return Native(self.native)

    def run(self, way, jobs, seconds):
        """One dictionary of what was measured for each job, and whether they overlapped."""
        jobs = [dataclasses.replace(job, size=self.sizes.get(job.workload.without_sleep()))
                for job in jobs]
        host = self.host(way, jobs)
        run = Run(host, seconds)
        try:
            run.watch(jobs)
        finally:
            run.close()
            host.stop()
        self.device = host.device or self.device
        return [self.figures(run, job, program) for job, program in zip(jobs, run.programs)], \
            run.overlap()

    def figures(self, run, job, program):
        result = program.result
        if len(run.programs) == 1:
            self.sizes[job.workload.without_sleep()] = int(result["size"])
        figures = {"units_per_second": program.rate("units"), "size": int(result["size"]),
                   "device": result["device"], "kernel_us": float(result["kernel_us"]),
                   **host_figures(run, job.vm)}
        if "event_seconds" in result:
            figures["event_share"] = program.rate("event_seconds")
        return figures
