"""The word figure of bench: draws what fairness measured, with gnuplot.

A group of bars for each experiment in which VMs shared a GPU, a bar for each VM: the part of its
work alone that its program got done. A line across the bar is its VM's share by weight.
"""
import json
import shutil
import subprocess
import textwrap

from common import Unable

GROUP_WIDTH, HEIGHT, MARGIN = 155, 340, 80   # of the figure, in its own units
LABEL_LETTERS = 15       # in a line under a group
NUMBER_HEIGHT = 0.08     # on the axis, about
CLUSTER = 0.84           # of the distance between groups, which their bars take
COLOURS = ("#4878a8", "#e0904c", "#60a468", "#b05c5c", "#8870a8", "#8c7464", "#c880b0", "#7c7c7c")


def quoted(text):
    """As gnuplot reads it in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def label_of(result):
    text = ": ".join(filter(None, [result.get("scenario"), result["way"]]))
    return "\n".join(textwrap.wrap(text, LABEL_LETTERS))


def title_of(number, groups):
    """Of the VMs that are the @number-th of theirs: its name, and its program if that is the same."""
    vms = [vms[number] for vms in groups if number < len(vms)]
    workloads = {vm.get("workload") for vm in vms}
    return " ".join(filter(None, [vms[0]["name"], workloads.pop() if len(workloads) == 1 else None]))


def bars_of(number, groups, width):
    """A line of data for each bar of these VMs: where its middle is, its height, its mark's, and its
    number's, which the mark must not cross."""
    lines = []
    for group, vms in enumerate(groups):
        if number < len(vms):
            place = group + (number - (len(vms) - 1) / 2) * width
            share = vms[number]["weight"] / sum(vm["weight"] for vm in vms)
            height = vms[number]["progress"]
            above = share if height < share < height + NUMBER_HEIGHT else height
            lines.append(f"{place:.4f} {height:.3f} {share:.4f} {above:.4f}")
    return lines


def script(results):
    """What gnuplot is to do, to standard output."""
    groups = [result["vms"] for result in results]
    most = max(map(len, groups))
    width = CLUSTER / most
    ticks = ", ".join(f"{quoted(label_of(result))} {i}" for i, result in enumerate(results))
    lines = [f"set terminal svg noenhanced size {MARGIN + GROUP_WIDTH * len(groups)}, {HEIGHT} "
             'font "sans-serif,13" background rgb "white"',
             "set encoding utf8", "set border 3", "set xtics nomirror scale 0", "set ytics nomirror",
             f"set xtics ({ticks})", f"set xrange [-0.6:{len(groups) - 0.4:.1f}]", "set yrange [0:*]", f"set offsets 0, 0, {NUMBER_HEIGHT}, 0",
             f"set boxwidth {width:.4f}", "set style fill solid",
             "set key outside top left horizontal Left reverse", "set bmargin 4",
             'set ylabel "work done, alone = 1"', "set grid ytics"]
    plots = []
    for number in range(most):
        lines += [f"$vm{number} << END", *bars_of(number, groups, width), "END"]
        plots += [f'$vm{number} using 1:2 with boxes fc rgb "{COLOURS[number % len(COLOURS)]}" '
                  f"title {quoted(title_of(number, groups))}",
                  f"$vm{number} using 1:4:2 with labels offset 0,0.6 notitle"]
    for number in range(most):
        plots.append(f"$vm{number} using ($1-{width / 2:.4f}):3:({width:.4f}):(0) with vectors nohead "
                     f'lw 2 lc rgb "#202020" title "{"" if number else "share by weight"}"')
    return "\n".join([*lines, "plot " + ", \\\n     ".join(plots)]) + "\n"


def draw(options):
    try:
        with open(options.result, encoding="utf-8") as file:
            results = [result for result in json.load(file)["results"] if result["kind"] == "share"]
    except (OSError, ValueError, KeyError) as reason:
        raise Unable(f"{options.result} is not what fairness wrote: {reason}") from None
    if not results:
        raise Unable(f"{options.result}: nobody shared anything")
    if not shutil.which("gnuplot"):
        raise Unable("gnuplot draws the figure, and is not installed")
    done = subprocess.run(["gnuplot"], input=script(results), capture_output=True, text=True,
                          check=False)
    if done.returncode or done.stderr.strip():
        raise Unable(f"gnuplot: {done.stderr.strip()}")
    with open(options.figure, "w", encoding="utf-8") as file:
        file.write(done.stdout)


def add_words(measurements):
    word = measurements.add_parser("figure", help="draws what fairness measured, with gnuplot")
    word.set_defaults(measure=draw)
    word.add_argument("result", metavar="RESULT.json", help="as fairness --json wrote it")
    word.add_argument("figure", metavar="FIGURE.svg")
