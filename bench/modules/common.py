"""What the benchmarks share: where the build is, and how programs run natively."""
import argparse
import os
import pathlib
import statistics

BUILD = pathlib.Path(__file__).resolve().parent.parent
RUN = BUILD / "tools/fairgv-run"
CTL = BUILD / "tools/fairgvctl"
BACKEND = BUILD / "backend/fairgv-backend"
CUDA_DIR = "@CUDA_DIR@"


class Unable(Exception):
    """A program did not run to its end; the text says why, in one line."""


def native_environment(chosen):
    """What a program needs to find the toolkit's own libcudart, in the folder @chosen or else
    in that of the configured toolkit or one of the usual."""
    places = [chosen] if chosen else [
        f"{CUDA_DIR}/lib64", f"{os.environ.get('CUDA_HOME', CUDA_DIR)}/lib64",
        "/usr/local/cuda/lib64", "/usr/local/lib"]
    for place in places:
        if pathlib.Path(place, "libcudart.so.13").exists():
            path = ":".join(filter(None, [place, os.environ.get("LD_LIBRARY_PATH")]))
            return {"LD_LIBRARY_PATH": path}
    raise Unable(f"no libcudart.so.13 in {', '.join(places)}: name its folder with --cuda-lib")


def words(line):
    """The key=value words of a line that a program printed."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def summary(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def spread(values, form=number):
    """A summary as text."""
    return f"{form(values['median'])} ({form(values['low'])}..{form(values['high'])})"


def last_line(text, status):
    """Why a program failed, in a line."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else f"status {status}"


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1")
    return int(text)


def print_columns(table, left):
    """A table whose first @left columns are text and whose others are numbers."""
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) if i < left else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(line, widths))).rstrip())
