"""fairgvctl top on a terminal: what is on the screen is what the daemon tells, the keys do what they should,
and any size and kind of terminal will do."""
import contextlib
import os
import re
import subprocess
import xml.etree.ElementTree

from harness import BUILD, PATIENCE_S, backend, expect, finish, kill, main, needs, wait_until

needs("pyte")
from terminal import CELL, EDGE, LINE, Terminal, svg_of

CTL = BUILD / "tools/fairgvctl"
MATMUL = "workloads/matmul"
FOREVER = ("--size", 64, "--iterations", 10000000)
VMS = {"idle": 'memory = "1M";', "render": 'memory = "1G"; weight = 3;', "train": ""}
ROW = re.compile(r"^(?P<name>\w+) +(?P<weight>\d+) +(?P<owed>[\d.]+)% +(?P<used>[\d.]+|-)%? \[(?P<bar>[#| ]+)\]"
                 r" +(?P<wait>\S+(?: [mun]?s)?) +(?P<memory>[\d.]+ \w+) +(?P<quota>[\d.]+ \w+|-)$", re.M)
SESSION = re.compile(r"^ (?P<number>\d+) (?P<program>\S+) +(?P<state>holding|waiting|idle) +(?P<used>[\d.]+|-)%? "
                     r"\[(?P<bar>[# ]+)\]", re.M)


@contextlib.contextmanager
def top(socket, columns=80, lines=24, term="linux", arguments=()):
    terminal = Terminal([CTL, "--socket", socket, "--interval", "0.2", *arguments, "top"], columns, lines, term)
    try:
        terminal.wait_for(lambda text: "VM, program" in text, "the table")
        yield terminal
        terminal.keys("q")
        expect(terminal.end() == 0, "its status")
    finally:
        terminal.kill()


@contextlib.contextmanager
def busy():
    """A daemon with programs in two of its VMs."""
    with backend(VMS) as daemon:
        programs = {vm: daemon.start(vm, MATMUL, *FOREVER) for vm in ("render", "train")}
        try:
            wait_until(lambda: sum(vm["launches"] > 1 for vm in daemon.report()["vms"]) == 2, "kernels of both")
            yield daemon, programs
        finally:
            for program in programs.values():
                if program.poll() is None:
                    kill(program)


def rows(text):
    return {row["name"]: row for row in ROW.finditer(text)}


def thousandths(text):
    return round(float(text) * 10)


def bar(used, owed, width):
    """What a bar must look like."""
    filled, mark = used * width // 1000, owed * width // 1000
    return "".join("|" if owed and i == mark - 1 else "#" if i < filled else " " for i in range(width))


def both_are_seen(text):
    found = rows(text)
    return len(found) == 3 and all(found[vm]["used"] not in ("-", "0.0") for vm in ("render", "train")) and found


def bars_are_right(text):
    """Of a frame that has been drawn whole."""
    bars = [(row["used"], row["owed"], row["bar"]) for row in ROW.finditer(text)]
    bars += [(row["used"], "0", row["bar"]) for row in SESSION.finditer(text)]
    gpu = re.search(r"^GPU 0 +([\d.]+)% \[([# ]+)\]  memory [\d.]+ \w+ / 4.0 GiB  fair  soft GPU 0", text, re.M)
    bars += [(gpu[1], "0", gpu[2])] if gpu else []
    return len(bars) == 6 and all(shown == bar(thousandths(used), thousandths(owed), len(shown))
                                  for used, owed, shown in bars if used != "-")


def figures_are_shown():
    with busy() as (daemon, _), top(daemon.control) as terminal:
        found = terminal.wait_for(both_are_seen, "both VMs at work")
        terminal.wait_for(bars_are_right, "bars that show the figures beside them")
        shares = {"idle": ("1", "20.0", "1.0 MiB"), "render": ("3", "60.0", "1.0 GiB"), "train": ("1", "20.0", "-")}
        for name, values in shares.items():
            expect(found[name].group("weight", "owed", "quota") == values, found[name][0])
        expect(found["idle"].group("used", "wait", "memory") == ("0.0", "-", "0 B"), found["idle"][0])
        expect(found["render"]["memory"] != "0 B" and found["render"]["wait"] != "-", found["render"][0])
        sessions = {(str(session["number"]), "matmul") for vm in daemon.report()["vms"] for session in vm["sessions"]}
        terminal.wait_for(lambda text: {found.group("number", "program") for found in SESSION.finditer(text)} == sessions,
                          "the sessions")
        terminal.keys("jj")         # the session of render
        terminal.wait_for(lambda text: "render: what it used of GPU 0" in text, "the history of the VM")
        terminal.wait_for(lambda text: re.search(r"to now\n(?:.*\n)*.*[#:]\n.*quit", text), "a column of the history")


def keys_choose():
    with busy() as (daemon, _), top(daemon.control) as terminal:
        terminal.wait_for(both_are_seen, "both VMs at work")

        def order(text):
            return [row["name"] for row in ROW.finditer(text)]
        expect(order(terminal.text()) == ["idle", "render", "train"], "by name")
        terminal.keys("r")
        terminal.wait_for(lambda text: "reversed" in text and order(text) == ["train", "render", "idle"], "reversed")
        terminal.keys("rs")

        def is_by_use(text):
            values = [float(row["used"]) for row in ROW.finditer(text)]
            return "by used" in text and "reversed" not in text and len(values) == 3 and \
                values == sorted(values, reverse=True) and order(text)[-1] == "idle"
        terminal.wait_for(is_by_use, "by use")
        terminal.keys("v")
        terminal.wait_for(lambda text: not SESSION.search(text), "VMs alone")
        terminal.keys("v/TRAI\r")
        terminal.wait_for(lambda text: order(text) == ["train"] and 'only "TRAI"' in text and
                          len(SESSION.findall(text)) == 1, "one VM with its session")
        terminal.keys("/nothing\x7f\x7f\x7f\x7f\x7f\x7f\x7f\r")
        terminal.wait_for(lambda text: order(text) == ["train"], "which has an n")
        terminal.keys("/\r")
        terminal.wait_for(lambda text: len(order(text)) == 3 and "only" not in text, "all")
        terminal.keys("/none\x1b")
        terminal.wait_for(lambda text: "show names" not in text and len(order(text)) == 3, "no filter")
        terminal.keys("h")
        terminal.wait_for(lambda text: "set the weight of the VM" in text, "help")
        terminal.keys("h+ ")
        terminal.wait_for(lambda text: "every 0.4 s (paused)" in text and order(text), "a longer interval, paused")


def keys_change():
    with busy() as (daemon, programs), top(daemon.control) as terminal:
        def weight():
            return {vm["name"]: vm["weight"] for vm in daemon.report()["vms"]}["render"]
        terminal.wait_for(both_are_seen, "both VMs at work")
        terminal.keys("jw6\r")
        terminal.wait_for(lambda text: "render: weight 6" in text, "the answer")
        terminal.wait_for(lambda text: rows(text)["render"]["owed"] == "75.0", "the new share")
        expect(weight() == 6, weight())
        for text, answer in (("x", "x: a weight is a whole number"),
                             ("0", "weight: out of range: must be 1 to 10000")):
            terminal.keys(f"w{text}\r")
            terminal.wait_for(lambda text, answer=answer: answer in text, answer)
        expect(weight() == 6, weight())
        terminal.keys("e")
        terminal.wait_for(lambda text: "select a session" in text, "a VM can't be ended")
        terminal.keys("je")
        terminal.wait_for(lambda text: "program matmul of render? (y" in text, "the question")
        terminal.keys("n")
        terminal.wait_for(lambda text: "(y" not in text, "no")
        expect(programs["render"].poll() is None and len(SESSION.findall(terminal.text())) == 2, "nothing has ended")
        terminal.keys("ey")
        status, _, err = finish(programs["render"])
        expect(status != 0 and "administrator" in err, err)
        terminal.wait_for(lambda text: len(SESSION.findall(text)) == 1, "the other session alone")


def pictures_show_the_screen():
    """What docs/figures/top.py makes the picture in README of."""
    with busy() as (daemon, _), top(daemon.control) as terminal:
        terminal.keys("j")
        terminal.wait_for(lambda text: both_are_seen(text) and bars_are_right(text), "both VMs at work")
        picture = xml.etree.ElementTree.fromstring(svg_of(terminal.screen))
        lines = [[" "] * 80 for _ in range(24)]
        for piece in picture.iter("{http://www.w3.org/2000/svg}text"):
            column = round((float(piece.get("x")) - EDGE) / CELL)
            lines[(int(piece.get("y")) - EDGE) // LINE][column:column + len(piece.text)] = piece.text
        expect(["".join(line).rstrip() for line in lines] == terminal.lines(), f"{lines}, of\n{terminal.text()}")
        fills = {piece.get("fill") for piece in picture.iter("{http://www.w3.org/2000/svg}text")}
        expect(len(fills) >= 3, f"colours: {fills}")


def observers_see():
    with backend(VMS, top='observe = "{folder}/observe";') as daemon, \
            top(daemon.folder / "observe") as terminal:
        terminal.keys("w9\r")
        terminal.wait_for(lambda text: "this socket answers questions only" in text, "a refusal")


def any_terminal_will_do():
    with busy() as (daemon, _):
        for term in "vt100", "screen-256color":
            with top(daemon.control, term=term) as terminal:
                terminal.wait_for(both_are_seen, f"the table on {term}")
        with top(daemon.control) as terminal:
            for columns, lines in (160, 50), (40, 10), (20, 4), (5, 2), (300, 8), (80, 24):
                terminal.resize(columns, lines)
                terminal.wait_for(lambda text, lines=lines, columns=columns: text.startswith("fairgv"[:columns]) and
                                  (lines < 3 or "GPU 0"[:columns] in text), f"{columns} x {lines}")
            terminal.wait_for(both_are_seen, "all of it again")
        for term, command in (("no-such-terminal", []), ("xterm", ["cat"])):
            terminal = Terminal(["sh", "-c", " | ".join([f"{CTL} --socket {daemon.control} top", *command]) +
                                 "; echo ended"], term=term)
            terminal.wait_for(lambda text: "top needs a terminal" in text and "ended" in text, f"a refusal on {term}")
            expect(terminal.end() == 0, "sh")


def daemons_come_and_go():
    with backend(VMS) as daemon:
        with top(daemon.control) as terminal:
            daemon.process.terminate()
            daemon.process.wait(PATIENCE_S)
            terminal.wait_for(lambda text: "no daemon listens there" in text and "render" in text, "what is wrong")
            daemon.launch()
            terminal.keys("r")
            terminal.wait_for(lambda text: "no daemon" not in text and rows(text), "the new one")
        done = subprocess.run([CTL, "--socket", f"{daemon.control}.not", "top"], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False, env={**os.environ, "TERM": "xterm"})
        expect(done.returncode == 1 and "no daemon listens there" in done.stderr, done)


if __name__ == "__main__":
    main(figures_are_shown, keys_choose, keys_change, pictures_show_the_screen, observers_see, any_terminal_will_do, daemons_come_and_go)
