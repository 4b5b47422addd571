"""The word frameworks of bench: whether PyTorch, JAX and their like run through FairGV as they do
natively, and as fast. The programs are tests/gpu/frameworks/*.py; nothing is set for them.
"""
import math
import os
import pathlib
import statistics
import subprocess

from common import Unable, last_line, summary, words
from pairs import Measurement, Pair, Target, add_options, print_pairs

PROGRAMS = "@SRCDIR@/tests/gpu/frameworks"
HELPERS = ("report",)
PATIENCE_S = 240
TOLERANCE = 1e-3         # of a result, for the order in which atomics add up
MEAN = Measurement("geometric mean of the times", Target("ratio", 1.0))
WORST = Measurement("worst", Target("ratio", 1 / 0.97))


def find_programs(options):
    """Those that were named, or all that there are."""
    found = {path.stem: path for path in sorted(pathlib.Path(options.programs).glob("*.py"))
             if path.stem not in HELPERS}
    unknown = set(options.program or ()) - set(found)
    if unknown or not found:
        raise Unable(f"{options.programs}: there is no {', '.join(sorted(unknown)) or 'program'}")
    return [found[name] for name in options.program or found]


def run(way, python, path):
    """({what: (ms, result)}, why it failed or None) of one program."""
    try:
        result = subprocess.run(way.command(python, path), text=True,
                                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                                capture_output=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return {}, f"no end within {PATIENCE_S} s"
    lines = [words(line) for line in result.stdout.splitlines()]
    figures = {line["name"]: (float(line["median"]), float(line["result"]))
               for line in lines if "result" in line}
    if result.returncode:
        return figures, last_line(result.stderr, result.returncode)
    left_out = [line for line in lines if "left_out" in line]
    return figures, left_out[0]["because"].replace("_", " ") if left_out and not figures else None


def is_same(a, b):
    return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def measure_program(pair, python, path):
    """(rows, what is wrong with it)."""
    runs = pair.in_turns(lambda way: run(way, python, path))
    wrong = [f"{path.stem}: {way}: {why}" for way, turns in runs.items() for _, why in turns if why]
    if wrong:
        return [], wrong[:1]
    rows, values = [], {way: [figures for figures, _ in turns] for way, turns in runs.items()}
    for what in values[pair.ways[-1].name][0]:
        results = [figures[what][1] for turns in values.values() for figures in turns]
        if not all(is_same(results[0], other) for other in results):
            wrong.append(f"{what}: results differ: {results}")
        rows.append(pair.row(what, "ms", Measurement(what), {
            way: [figures[what][0] for figures in turns] for way, turns in values.items()}))
    return rows, wrong


def conclusions(pair, rows):
    ratios = [row["ratio"]["median"] for row in rows if "ratio" in row]
    if not ratios:
        return []
    return [pair.judged({"name": name, "what": measurement.what, "unit": "",
                         "ratio": summary([value])}, measurement)
            for name, measurement, value in (
                ("mean", MEAN, math.exp(statistics.fmean(map(math.log, ratios)))),
                ("worst", WORST, max(ratios)))]


def frameworks(options):
    chosen = find_programs(options)
    with Pair(options) as pair:
        if pair.soft:
            raise Unable("the frameworks need a GPU")
        measured = [measure_program(pair, options.python, path) for path in chosen]
        rows = [row for part, _ in measured for row in part]
        wrong = [text for _, part in measured for text in part]
        return {**pair.result(rows + conclusions(pair, rows)), "wrong": wrong, "failed": bool(wrong)}


def show(result):
    print_pairs(result)
    for text in result["wrong"]:
        print(f"WRONG: {text}")


def add_words(measurements):
    word = measurements.add_parser("frameworks", help="PyTorch, JAX and others, results and speed")
    add_options(word, repeat=2)
    word.set_defaults(measure=frameworks, show=show)
    word.add_argument("--program", action="append", metavar="NAME",
                      help="this one only (may be repeated)")
    word.add_argument("--programs", default=PROGRAMS, metavar="DIR",
                      help="folder of the programs (default tests/gpu/frameworks)")
    word.add_argument("--python", default="python3", help="that has the frameworks")
