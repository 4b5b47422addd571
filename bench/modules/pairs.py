"""Runs programs natively and through FairGV in turns, and says what came out: medians with
lowest and highest, and what FairGV's are to native, each formed between neighbours.

FairGV is a daemon of its own with one VM, as an administrator would have it: scheduling is
on, and the daemon was there before the programs; but it keeps no process ready, unless that is
measured, as the next would open the GPU meanwhile. Where the driver cannot be used, FairGV
alone is measured, on the soft GPU, at sizes that suit it.
"""
import dataclasses
import os
import subprocess
import time

from common import (BUILD, RUN, Unable, last_line, native_environment, number, positive,
                    print_columns, spread, summary, words)
from experiment import PATIENCE_S, Backend, Job
from experiment import Way as Schedule

VM = "vm1"


@dataclasses.dataclass(frozen=True)
class Target:
    """What a figure is to be: FairGV's own ("fairgv"), its ratio to native, or the difference."""
    of: str
    limit: float
    at_least: bool = False

    def text(self, unit):
        sign = ">=" if self.at_least else "<="
        value = {"fairgv": f"{self.limit:g} {unit}", "ratio": f"{self.limit:g} x native",
                 "difference": f"native + {self.limit:g} {unit}"}[self.of]
        return f"{sign} {value}".strip()

    def is_met(self, row):
        """None where it was not measured."""
        if self.of not in row:
            return None
        value = row[self.of]["median"]
        return value >= self.limit if self.at_least else value <= self.limit


@dataclasses.dataclass(frozen=True)
class Measurement:
    what: str
    target: object = None        # a Target


class Way:
    """One way to run a program: a word for it, what goes before it, its environment."""

    def __init__(self, name, prefix, environment):
        self.name, self.prefix, self.environment = name, prefix, environment
        self.device = None

    def command(self, program, *arguments):
        return [*map(str, self.prefix), str(program), *map(str, arguments)]

    def surroundings(self, **more):
        return {**os.environ, **self.environment, **more}

    def run(self, program, *arguments, **environment):
        """The program's output as a list of {key: value}, one for each line."""
        try:
            result = subprocess.run(self.command(program, *arguments), text=True, check=False,
                                    env=self.surroundings(**environment), capture_output=True)
        except OSError as error:
            raise Unable(str(error)) from None
        if result.returncode != 0:
            raise Unable(last_line(result.stderr, result.returncode))
        lines = [words(line) for line in result.stdout.splitlines()]
        self.device = next((line["device"] for line in lines if "device" in line), self.device)
        return lines


def through(host):
    """The way through a daemon's only VM."""
    way = Way("fairgv", host.command(VM), {})
    way.device = host.device
    return way


class Pair:
    """The ways that can be used here, and the daemon of one of them; a context manager."""

    def __init__(self, options, warm=0):
        self.repeat, self.ways, self.note = options.repeat, [], None
        self.host = None if options.native_only else Backend(Schedule(warm=warm),
                                                             [Job(VM, 1, None)], options.gpu)
        self.soft = bool(self.host) and self.host.device.startswith("soft GPU")
        if self.soft:
            self.note = "native is left out, as FairGV has a soft GPU"
        elif not options.fairgv_only:
            self.try_native(options)
        if self.host:
            self.ways.append(through(self.host))

    def try_native(self, options):
        try:
            native = Way("native", [], native_environment(options.cuda_lib))
            native.run(BUILD / "bench/start")
            self.ways.append(native)
        except Unable as reason:
            self.note = f"native cannot run here ({reason})"
            if options.native_only:
                raise Unable(self.note) from None

    def await_warm(self):
        """Until the daemon has a process that is ready, and nothing else is going on."""
        deadline = time.monotonic() + PATIENCE_S
        while self.host and not self.host.stat()["gpus"][0]["warm"]:
            if time.monotonic() > deadline:
                raise Unable(f"no process gets ready: {last_line(self.host.log(), 'no reason')}")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.host:
            self.host.stop()

    def in_turns(self, measure):
        """{way's name: what @measure(way) returned, in order}. They take turns at being first."""
        runs = {way.name: [] for way in self.ways}
        for turn in range(self.repeat):
            for way in self.ways if turn % 2 == 0 else reversed(self.ways):
                runs[way.name].append(measure(way))
        return runs

    def judged(self, row, measurement):
        """The row with its target, if it has one, and whether that is met on a real GPU."""
        target = measurement.target
        row["target"] = target and {"text": target.text(row["unit"]),
                                    "met": None if self.soft else target.is_met(row)}
        return row

    def row(self, name, unit, measurement, values):
        """One row, from {way's name: values, in the order of turns}."""
        row = {"name": name, "what": measurement.what, "unit": unit,
               **{way: summary(figures) for way, figures in values.items()}}
        if len(values) == 2:
            turns = list(zip(values["native"], values["fairgv"]))
            row["difference"] = summary([fairgv - native for native, fairgv in turns])
            if all(native for native, _ in turns):
                row["ratio"] = summary([fairgv / native for native, fairgv in turns])
        return self.judged(row, measurement)

    def rows(self, runs, measurement_of):
        """One row for each; @runs has {name: (value, unit)} for each turn of each way."""
        first = next(iter(runs.values()))[0]
        return [self.row(name, unit, measurement_of(name),
                         {way: [result[name][0] for result in results]
                          for way, results in runs.items()})
                for name, (_, unit) in first.items()]

    def result(self, rows):
        return {"devices": {way.name: way.device for way in self.ways}, "note": self.note,
                "soft": self.soft, "repeat": self.repeat, "rows": rows}


def target_cells(row):
    if not row["target"]:
        return ["", ""]
    return [row["target"]["text"], {True: "met", False: "MISSED", None: "-"}[row["target"]["met"]]]


def ratio_text(value):
    """To a thousandth, as the targets are closer to 1 than three digits of it tell."""
    return f"{value:.3f}"


def print_pairs(result):
    if result["note"]:
        print(result["note"])
    for way, device in result["devices"].items():
        print(f"{way}: {(device or 'unknown').replace('_', ' ')}")
    if result["soft"]:
        print("small sizes, and no target applies, as the GPU is a soft one")
    columns = [*result["devices"], *(["ratio"] if len(result["devices"]) == 2 else [])]
    ratio = "; ratio: FairGV to native" if "ratio" in columns else ""
    print(f"median (lowest..highest) of {result['repeat']} runs each{ratio}\n")
    print_columns([["what", "unit", *columns, "target", ""]] + [
        [row["what"], row["unit"],
         *(spread(row[column], ratio_text if column == "ratio" else number)
           if column in row else "" for column in columns),
         *target_cells(row)] for row in result["rows"]], 2)


def add_options(word, repeat):
    """The options of a word that is measured here."""
    word.set_defaults(show=print_pairs)
    word.add_argument("--repeat", type=positive, default=repeat, metavar="N",
                      help="runs of each way (default %(default)s)")
    word.add_argument("--gpu", default="auto", help="as in the backend's configuration")
    word.add_argument("--cuda-lib", metavar="DIR",
                      help="folder of the toolkit's libcudart.so.13, for native runs")
    only = word.add_mutually_exclusive_group()
    only.add_argument("--fairgv-only", action="store_true", help="leave native out")
    only.add_argument("--native-only", action="store_true", help="leave FairGV out")
