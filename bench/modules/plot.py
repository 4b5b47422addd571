"""A bar plot of experiments: a bar for each VM, and where its fair share ends."""
import html

BAR = 14                 # height and
GAP = 5                  # distance of bars
HEAD = 30                # of an experiment
CHARACTER = 6.8          # width of one in a label, about
WIDTH = 420              # of the bar of a program that is alone
LONGEST = 1.2            # bar that is drawn, for a program that is faster than alone
MARGIN = 12
COLOURS = {"bar": "#4878a8", "fair": "#c03030", "text": "#222222", "axis": "#bbbbbb"}


def text(x, y, words, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{COLOURS["text"]}">{html.escape(words)}</text>')


def rectangle(x, y, width, height, colour):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{COLOURS[colour]}"/>')


def label(vm):
    return f'{vm["name"]} ({vm["weight"]})  {vm["workload"]}'


def vm_bar(vm, share, left, y):
    length = min(vm["progress"], LONGEST) * WIDTH
    mark = share * WIDTH
    return [text(left - 8, y + BAR - 3, label(vm), "end"),
            rectangle(left, y, length, BAR, "bar"),
            rectangle(left + mark - 1, y - 2, 2, BAR + 4, "fair"),
            text(left + max(length, mark) + 6, y + BAR - 3, f'{vm["progress"]:.3f}')]


def experiment(result, left, y):
    """Its parts, and where the next one begins."""
    total = sum(vm["weight"] for vm in result["vms"])
    parts = [text(MARGIN, y + 18, ": ".join(filter(None, [result["scenario"], result["title"],
                                                         result["way"]])), weight="bold"),
             text(left + LONGEST * WIDTH, y + 18, f'Min-Max Ratio {result["mmr"]:.3f}, sum '
                  f'{result["sum"]:.3f}', "end")]
    top = y + HEAD
    for i, vm in enumerate(result["vms"]):
        parts += vm_bar(vm, vm["weight"] / total, left, top + i * (BAR + GAP))
    bottom = top + len(result["vms"]) * (BAR + GAP)
    parts.append(rectangle(left - 1, top, 1, bottom - top - GAP, "axis"))
    return parts, bottom + GAP


def svg(results):
    """The experiments of kind share among @results."""
    results = [result for result in results if result["kind"] == "share"]
    longest = max((len(label(vm)) for result in results for vm in result["vms"]), default=0)
    left, y = MARGIN + round(longest * CHARACTER) + 8, MARGIN + 22
    width = left + round(WIDTH * LONGEST) + 60
    parts = [text(MARGIN, MARGIN + 12, "Work done, as a part of what the program does alone; "
                                       "red: the VM's share by weight")]
    for result in results:
        more, y = experiment(result, left, y)
        parts += more
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + MARGIN}" '
            'font-family="sans-serif" font-size="12">\n'
            f'<rect width="{width}" height="{y + MARGIN}" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")
