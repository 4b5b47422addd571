"""The word workloads of bench: what the programs of the paper's Table 3 get done alone, natively and
through FairGV.

Their kernels are as long as the paper's, but no longer than what a process can be filled and checked
for in a moment, at a size that is looked for once. They synchronize as often; but they never
sleep, and ask no questions.
"""
import math
import statistics

from calls import TABLE3, parse
from common import BUILD, positive, summary
from experiment import SLEEPING
from pairs import Measurement, Pair, Target, add_options

LEFT_OUT = (*SLEEPING, "queries")
LONGEST_US = 200         # that a kernel takes
SOFT = ("--size", 10, "--sync-every", 1)
SECONDS, SOFT_SECONDS = 1, 0.2
MEAN = Measurement("geometric mean of the times", Target("ratio", 1.0))
WORST = Measurement("worst", Target("ratio", 1.02))


def arguments_of(way, row, soft):
    """What a program is run with: the size that the kernel's time asks for, and its calls."""
    if soft:
        return SOFT
    options = {key: value for key, value in parse(row.options).items() if key not in LEFT_OUT}
    arguments = [part for key, value in options.items() for part in (f"--{key}", value)]
    line = way.run(BUILD / "workloads" / row.program, "--kernel-us", min(row.kernel_us, LONGEST_US),
                   "--iterations", 1)[-1]
    return [*arguments, "--size", line["size"]]


def iteration_us(way, row, arguments, seconds):
    line = way.run(BUILD / "workloads" / row.program, *arguments, "--seconds", seconds)[-1]
    return float(line["seconds"]) / int(line["iterations"]) * 1e6


def measure_row(pair, row, seconds):
    """Its row of the table, and the ratios turn by turn."""
    arguments = arguments_of(pair.ways[0], row, pair.soft)
    values = pair.in_turns(lambda way: iteration_us(way, row, arguments, seconds))
    ratios = [fairgv / native for native, fairgv in zip(values.get("native", []),
                                                        values.get("fairgv", []))]
    return pair.row(row.program, "us", Measurement(f"{row.program}, an iteration"), values), ratios


def conclusions(pair, ratios):
    """Rows over all programs, from each one's ratios of turns."""
    means = [math.exp(statistics.fmean(map(math.log, turn))) for turn in zip(*ratios)]
    worst = max(ratios, key=statistics.median)
    return [pair.judged({"name": name, "what": measurement.what, "unit": "",
                         "ratio": summary(values)}, measurement)
            for name, measurement, values in (("mean", MEAN, means), ("worst", WORST, worst))]


def workloads(options):
    with Pair(options) as pair:
        seconds = options.seconds or (SOFT_SECONDS if pair.soft else SECONDS)
        measured = [measure_row(pair, row, seconds) for row in TABLE3
                    if options.program in (None, row.program)]
        ratios = [turns for _, turns in measured if turns]
        return pair.result([row for row, _ in measured] + (conclusions(pair, ratios) if ratios else []))


def add_words(measurements):
    programs = [row.program for row in TABLE3]
    word = measurements.add_parser("workloads", help="what programs get done alone")
    word.set_defaults(measure=workloads)
    word.add_argument("--program", choices=programs, metavar="NAME",
                      help="this one only, of " + ", ".join(programs))
    word.add_argument("--seconds", type=positive, metavar="S",
                      help=f"how long each run lasts (default {SECONDS})")
    add_options(word, repeat=3)
