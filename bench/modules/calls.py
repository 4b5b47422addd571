"""The word table3 of bench: what the workloads ask of a GPU in their loops, kernels and calls that wait
for an answer or do not, beside what the paper's programs do.

Each is run twice with different iterations; the difference is the loop's, the rest belongs to
setting up and taking down.
"""
import dataclasses
import math

from common import BUILD, Unable, number, positive, print_columns
from counts import counted, daemon

GROWTH = 16              # by which a run is longer than one before, at most
SECONDS = 2              # that a row of the table lasts


@dataclasses.dataclass(frozen=True)
class Row:
    """One of the paper's Table 3: microseconds, calls in 10 ms, and the options that come near."""
    program: str
    kernel_us: float
    asynchronous: float
    synchronous: float
    options: str


TABLE3 = (
    Row("cfd", 198, 49.761, 87.130, "sync-every=1,queries=11"),
    Row("heartwall", 10201, 0.794, 11.233, "sync-every=1,queries=9,burst-ms=1,sleep-ms=2.4"),
    Row("hotspot", 133, 59.520, 0.014, "sync-every=4000,burst-ms=1,sleep-ms=140"),
    Row("lavamd", 1908357, 0.002, 0.061, "sync-every=1,queries=29,burst-ms=1,sleep-ms=3000"),
    Row("nw", 11032, 2.666, 0.076, "sync-every=5"),
    Row("pathfinder", 592, 0.027, 0.078, "sync-every=1,queries=2,burst-ms=0.1,sleep-ms=370"),
    Row("srad", 46, 247.525, 643.589, "sync-every=1,queries=6"),
    Row("blackscholes", 377, 26.318, 26.355, "sync-every=1"),
    Row("convolution", 391, 19.223, 19.281, "sync-every=1,queries=1,burst-ms=0.1,sleep-ms=0.2"),
    Row("histogram", 431, 39.561, 39.588, "sync-every=1,queries=1"),
    Row("matmul", 207, 44.241, 0.033, "sync-every=1300,burst-ms=1,sleep-ms=25"),
    Row("scan", 171, 54.705, 54.757, "sync-every=1,queries=2"),
)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run: how long its loop took, and what all of it asked for."""
    size: int
    iterations: int
    seconds: float
    requests: int
    waits: int
    kernel_us: float = math.nan


def run(way, program, *options):
    line, counts = counted(way, BUILD / "workloads" / program, *options)
    return Run(int(line["size"]), int(line["iterations"]), float(line["seconds"]),
               counts.requests, counts.round_trips, float(line.get("kernel_us", math.nan)))


def parse(text):
    """The options that key=value,key=value stands for; --sync-every is always one of them."""
    pairs = (option.partition("=") for option in text.split(",") if option)
    return {"sync-every": "1", **{key: value for key, _, value in pairs}}


def checked(text):
    """The same text, if iterations can be counted by it; the rest is for the workload to judge."""
    positive(parse(text)["sync-every"])
    return text


def short_and_long(way, row, arguments, every, seconds):
    """A run of one period between synchronizations, and one that lasts about @seconds. It is felt
    for: the first period takes longer than others, or shorter where there are pauses between."""
    short = last = run(way, row.program, *arguments, "--iterations", every)
    periods = 1
    while last is short or last.seconds < seconds / 2:
        periods = max(3, min(round(periods * seconds / last.seconds), GROWTH * periods))
        last = run(way, row.program, *arguments, "--iterations", every * periods)
    return short, last


def table3_row(way, row, seconds):
    """What a row's program does, at the size that the kernel's time asks for."""
    options = parse(row.options)
    arguments = [part for key, value in options.items() for part in ("--" + key, value)]
    found = run(way, row.program, "--kernel-us", row.kernel_us, "--iterations", 1)
    arguments += ["--size", found.size]
    short, long = short_and_long(way, row, arguments, int(options["sync-every"]), seconds)
    waiting = long.waits - short.waits
    # How many 10 ms the iterations took that the long run has more.
    spans = long.seconds * 100 * (1 - short.iterations / long.iterations)
    return {"program": row.program, "options": row.options, "size": found.size,
            "kernel_us": found.kernel_us, "paper_kernel_us": row.kernel_us,
            "asynchronous": (long.requests - short.requests - waiting) / spans,
            "paper_asynchronous": row.asynchronous,
            "synchronous": waiting / spans, "paper_synchronous": row.synchronous}


def table3(options):
    rows = [row for row in TABLE3 if options.program in (None, row.program)]
    if options.options is not None:
        if options.program is None:
            raise Unable("--options is for one workload: name it with --program")
        rows = [dataclasses.replace(rows[0], options=options.options)]
    with daemon(options.gpu) as way:
        return {"rows": [table3_row(way, row, options.seconds) for row in rows]}


def print_table3(result):
    print("kernel time, and calls in 10 ms that do not wait and that wait; "
          "the paper's figure behind each\n")
    columns = ("kernel_us", "asynchronous", "synchronous")
    print_columns([["workload", "options", "us", "paper", "async", "paper", "sync", "paper"]] + [
        [row["program"], row["options"],
         *(number(row[key]) for column in columns for key in (column, "paper_" + column))]
        for row in result["rows"]], 2)


def add_words(measurements):
    programs = [row.program for row in TABLE3]
    word = measurements.add_parser("table3", help="the workloads against the paper's Table 3")
    word.set_defaults(measure=table3, show=print_table3)
    word.add_argument("--program", choices=programs, metavar="NAME",
                      help="this workload only, of " + ", ".join(programs))
    word.add_argument("--seconds", type=positive, default=SECONDS, metavar="S",
                      help="how long each runs, about (default %(default)s)")
    word.add_argument("--options", type=checked, metavar="KEY=VALUE,...",
                      help="options for --program other than those known to come near")
    word.add_argument("--gpu", default="auto", help="as in the backend's configuration")
