"""The words of bench, on the soft GPU: what each measures is there and is possible, and what is
stated of pairs follows from them. How often programs wait is counted, and so has a bound."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import BUILD, PATIENCE_S, expect, main

sys.path.append(str(BUILD / "bench"))
from pairs import Measurement, Pair, Target

TOP = pathlib.Path(__file__).resolve().parents[2]
GPU = ("--gpu", "soft")
WORKLOADS = ("blackscholes", "cfd", "convolution", "heartwall", "histogram", "hotspot", "lavamd",
             "matmul", "nw", "pathfinder", "scan", "srad", "vecadd")
BESIDES = 20         # round trips of a program outside its loop, at most
BEYOND = 10          # times that a conformance program waits more often than it calls
# Copies to pageable memory that its graphs make, each of which the launch waits for (0006-graphs.md).
COPIES_OUT = {"graph_cuts": 102}


def bench(word, *options):
    """What it wrote as JSON, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "json")
        done = subprocess.run([BUILD / "bench/bench", word, *options, "--json", path], text=True,
                              capture_output=True, check=False, timeout=PATIENCE_S)
        expect(done.returncode == 0, f"{word}: status {done.returncode}: {done.stderr}")
        return json.loads(path.read_text()), done.stdout


def measured(word, *options):
    """The rows of a word that compares, by their names; each has figures that are in order."""
    result, text = bench(word, *GPU, "--repeat", "1", *options)
    expect(result["soft"] and "small sizes" in text, f"{word} says nothing of the soft GPU: {text}")
    expect("native" not in result["devices"], f"native, on no GPU: {result}")
    for row in result["rows"]:
        low, median, high = (row["fairgv"][key] for key in ("low", "median", "high"))
        expect(0 <= low <= median <= high, f"{word}: {row}")
        expect(row["what"] in text, f"not printed: {row}")
        expect(not row["target"] or row["target"]["met"] is None, f"judged: {row}")
    return {row["name"]: row["fairgv"]["median"] for row in result["rows"]}


def single_calls():
    launch = measured("launch", "--samples", "1")
    expect(set(launch) == {"launch_call", "launch_call_params", "launch_sync", "launch_sustained",
                           "launch_any", "launch_fifty_new", "launch_fifty_same",
                           "sync_idle"}, launch)
    expect(min(launch.values()) > 0 and launch["launch_call"] < launch["launch_sync"], launch)
    copy = measured("copy", "--samples", "1")
    kinds = {f"{kind}_{way}_{size}" for kind in ("pageable", "pinned", "registered")
             for way in ("in", "out") for size in ("4KiB", "64KiB", "1MiB")}
    expect(set(copy) == kinds | {"in_4B", "out_4B"} and min(copy.values()) > 0, copy)
    alloc = measured("alloc", "--samples", "1")
    expect(len(alloc) == 8 and min(alloc.values()) > 0, alloc)
    streams = measured("streams", "--samples", "1")
    kernels = {f"streams_{count}_{us}us" for count in (1, 8, 32) for us in (30, 460)}
    expect(set(streams) == kernels | {"copy_alone", "copy_beside_kernel"}, streams)
    expect(min(streams.values()) > 0, streams)
    graphs = measured("graphs", "--samples", "1")
    kinds = ("empty", "work", "call", "capture", "instantiate", "first", "shape",
             "update", "set_params")
    expect(set(graphs) == {f"graph_{kind}_10" for kind in kinds} | {"graph_branches"}, graphs)
    expect(min(graphs.values()) > 0, graphs)


def start():
    """A process lasts longer than what it does first."""
    figures = measured("start")
    for ending in ("", "_cold"):
        first_call, first_kernel, process = (
            figures[name + ending] for name in ("first_call", "first_kernel", "process"))
        expect(0 < first_call + first_kernel < process, figures)


def workloads():
    figures = measured("workloads", "--program", "matmul")
    expect(set(figures) == {"matmul"} and figures["matmul"] > 0, figures)


def cost():
    """A session at work costs time, one at rest does not; both have memory."""
    figures = measured("cost")
    expect(set(figures) == {"busy_short", "idle", "session_memory", "daemon_memory"}, figures)
    expect(figures["busy_short"] > figures["idle"], f"who was busy? {figures}")
    expect(min(figures["session_memory"], figures["daemon_memory"]) > 0.5, f"memory: {figures}")


def round_trips():
    """An iteration waits for the host no more often than the program asks it to; nor does, but for a
    few times, a conformance program."""
    result = bench("rtt", *GPU)[0]
    rows = result["workloads"]
    expect({row["program"] for row in rows} == set(WORKLOADS), f"which programs: {rows}")
    for row in rows:
        expect(0 < row["round_trips"] <= row["own"], f"round trips of an iteration: {row}")
        expect(row["besides"] <= BESIDES, f"round trips besides: {row}")
    expect(len(result["conformance"]) > 30, "the conformance programs are not built")
    for row in result["conformance"]:
        copies = COPIES_OUT.get(row["program"], 0)
        expect(row["waits"] <= row["own"] + copies + BEYOND, f"it waits too often: {row}")


def table3():
    """A launch is one call; two questions and a synchronization are three, and those wait."""
    row, = bench("table3", *GPU, "--program", "blackscholes", "--options", "queries=2", "--seconds",
                 "1")[0]["rows"]
    expect(row["asynchronous"] > 0 and row["kernel_us"] > 0, f"nothing counted: {row}")
    expect(abs(row["synchronous"] / row["asynchronous"] - 3) < 1e-9, f"not three to one: {row}")


def figure():
    """The README's, drawn where it can be; where not, it is said."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "svg")
        done = subprocess.run([BUILD / "bench/bench", "figure", TOP / "docs/figures/share.json", path],
                              text=True, capture_output=True, check=False, timeout=PATIENCE_S)
        if not shutil.which("gnuplot"):
            expect(done.returncode == 1 and "gnuplot" in done.stderr, f"{done}")
            return
        expect(done.returncode == 0, f"figure: {done.stderr}")
        for words in ("<svg", "time slicing", "27 µs", "0.087", "0.789", "share by weight"):
            expect(words in path.read_text(), f"no {words} in the figure")


def chart():
    """fairgv-sim's, by gnuplot; without gnuplot it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "svg")
        command = [BUILD / "tools/fairgv-sim", "figure", "gemini-13", "--svg", path]
        done = subprocess.run(command, text=True, capture_output=True, check=False, env={"PATH": "/nonexistent"})
        expect(done.returncode == 1 and "package gnuplot-nox" in done.stderr, f"without gnuplot: {done}")
        if not shutil.which("gnuplot"):
            return
        done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=PATIENCE_S)
        expect(done.returncode == 0 and not done.stderr, f"chart: {done}")
        for words in ("<svg", "Gemini, figure 13", "RetinaNet R50 (0.3, 0.6)", "time (s)"):
            expect(words in path.read_text(), f"no {words} in the chart")


class MadeUp(Pair):
    """Two ways whose figures are given."""

    def __init__(self, native, fairgv, soft=False):
        self.repeat, self.soft, self.note = len(native), soft, None
        self.figures = {"native": list(native), "fairgv": list(fairgv)}
        self.ways = [type("Way", (), {"name": name, "device": None}) for name in self.figures]
        self.order = []

    def measure(self, way):
        self.order.append(way.name)
        return self.figures[way.name].pop(0)


def host_requests():
    """What bench instructions counts of the host: each operation comes to its end."""
    program = BUILD / "bench/host_requests"
    usage = subprocess.run([program], text=True, capture_output=True, check=False)
    operations = usage.stderr.partition("of:")[2].split()
    expect(len(operations) > 5, f"operations: {usage.stderr}")
    for operation in operations:
        done = subprocess.run([program, operation, "64"], text=True, capture_output=True,
                              check=False, timeout=PATIENCE_S)
        expect(done.returncode == 0 and f"operation={operation} count=64" in done.stdout,
               f"{operation}: status {done.returncode}: {done.stdout}{done.stderr}")


def pairs():
    """Turns change their order, a ratio is of neighbours, and a target is met or not."""
    pair = MadeUp((1, 10, 4), (2, 10, 2))
    runs = pair.in_turns(pair.measure)
    expect(pair.order == ["native", "fairgv", "fairgv", "native", "native", "fairgv"], pair.order)
    row = pair.row("name", "us", Measurement("what", Target("ratio", 1)), runs)
    expect(row["ratio"] == {"median": 1, "low": 0.5, "high": 2}, row)
    expect(row["difference"] == {"median": 0, "low": -2, "high": 1}, row)
    expect(row["target"] == {"text": "<= 1 x native", "met": True}, row)
    for target, met in ((Target("ratio", 0.9), False), (Target("fairgv", 2), True),
                        (Target("fairgv", 1.9), False), (Target("difference", -0.1), False),
                        (Target("fairgv", 3, at_least=True), False),
                        (Target("fairgv", 2, at_least=True), True)):
        expect(pair.row("name", "us", Measurement("", target), runs)["target"]["met"] == met, target)
    expect(MadeUp((), (), soft=True).row("", "us", Measurement("", Target("ratio", 1)), runs)
           ["target"]["met"] is None, "a soft GPU's figures were judged")


def refusals():
    for options, message in ((("nosuch",), "invalid choice"),
                             (("launch", "--repeat", "0"), "'0' is not a number from 1"),
                             (("launch", "--gpu", "nosuch"), "did not start"),
                             (("figure", "/nonexistent", "figure.svg"), "/nonexistent")):
        done = subprocess.run([BUILD / "bench/bench", *options], text=True, capture_output=True,
                              check=False, timeout=PATIENCE_S)
        expect(done.returncode != 0 and message in done.stderr and "Traceback" not in done.stderr,
               f"{options}: {done.stderr}")


main(single_calls, start, workloads, cost, round_trips, table3, figure, chart, host_requests, pairs,
     refusals)
