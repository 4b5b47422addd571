"""Opens the page of fairgv-metrics in Chromium, and compares what is drawn with what the daemon reports:

    browse.py URL COMMAND...

COMMAND starts Chromium, which is spoken to by its debugging protocol, over descriptors 3 and 4. Standard input has
what `fairgvctl list --json` says; a program must be using the GPU all the time."""
import json
import os
import subprocess
import sys
import time

WIDTH, HEIGHT = 600, 160
FIGURES = {"used", "owed", "wait", "memory"}
PATIENCE_S = 120
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "about:blank")
# As the browser has parsed and laid it out.
LOOK = """JSON.stringify({
    status: document.getElementById("status").textContent,
    rows: [...document.querySelectorAll("tr")].map(row => [...row.children].map(cell => cell.textContent)),
    lines: [...document.querySelectorAll("polyline")].map(line => ({
        vm: line.dataset.vm, figure: line.getAttribute("class"), stroke: getComputedStyle(line).stroke,
        shown: line.ownerSVGElement.getBoundingClientRect().width,
        points: [...line.points].map(point => [point.x, point.y])}))})"""


class Browser:
    """One page of it."""

    def __init__(self, command):
        (its_in, self.out), (self.into, its_out) = os.pipe(), os.pipe()
        # High numbers, so that none is overwritten before it is copied.
        high = [os.dup2(fd, 100 + i) for i, fd in enumerate((its_in, its_out))]
        script = f'exec "$@" 3<&{high[0]} 4>&{high[1]} {high[0]}<&- {high[1]}>&-'
        # Bash, as dash knows no descriptors above 9.
        self.process = subprocess.Popen(["bash", "-c", script, "browse", *command, *OPTIONS], pass_fds=high,
                                        stderr=subprocess.DEVNULL)
        for fd in (its_in, its_out, *high):
            os.close(fd)
        self.text, self.number, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def receive(self):
        while b"\0" not in self.text:
            got = os.read(self.into, 1 << 16)
            if not got:
                sys.exit(f"the browser has ended with {self.process.wait()}")
            self.text += got
        message, self.text = self.text.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        reply = self.receive()
        while reply.get("id") != self.number:
            reply = self.receive()
        if "error" in reply:
            sys.exit(f"{method}: {reply['error']}")
        return reply["result"]

    def look(self):
        result = self.call("Runtime.evaluate", expression=LOOK)
        return json.loads(result["result"]["value"]) if "value" in result["result"] else {"rows": []}

    def end(self):
        os.close(self.out)
        self.process.wait(PATIENCE_S)


def share(text):
    return float(text.rstrip("%")) / 100


def table(shown):
    return {row[0]: dict(zip(shown["rows"][0], row)) for row in shown["rows"][1:]}


def is_drawn(shown):
    """Several seconds of a VM that uses the GPU."""
    return any(share(row["used"]) > 0 for row in table(shown).values()) and \
        all(len(line["points"]) > 2 for line in shown["lines"])


def expect(condition, what):
    if not condition:
        sys.exit(f"the page: {what}")


def check(shown, report):
    rows, vms = table(shown), {vm["name"]: vm for vm in report["vms"]}
    weights = sum(vm["weight"] for vm in vms.values())
    expect(rows.keys() == vms.keys(), f"VMs {list(rows)}, not {list(vms)}")
    drawn = {(line["vm"], line["figure"]): line for line in shown["lines"]}
    expect(drawn.keys() == {(vm, figure) for vm in vms for figure in FIGURES}, f"lines {list(drawn)}")
    for name, row in rows.items():
        owed = vms[name]["weight"] / weights
        limit = vms[name]["memory_limit_bytes"]
        expect(abs(share(row["owed"]) - owed) < 0.001, f"{name} is owed {row['owed']}, not {owed}")
        expect(row["quota"] == ("-" if limit is None else f"{limit / (1 << 20):.1f} MiB"), f"{name}'s quota: {row}")
        for figure in ("owed", "used"):
            x, y = drawn[name, figure]["points"][-1]
            expect(x == WIDTH and abs(y - HEIGHT * (1 - min(share(row[figure]), 1))) < 0.2,
                   f"{name}: {figure} is drawn at {x}, {y}, and written as {row[figure]}")
    for (name, figure), line in drawn.items():
        expect(line["shown"] > 100 and line["stroke"] != "none", f"{name}'s {figure} is not to be seen: {line}")
        expect(all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line["points"]), f"{name}: {line}")
    colours = {line["vm"]: line["stroke"] for line in shown["lines"]}
    expect(len(set(colours.values())) == len(vms), f"colours {colours}")


def main():
    report = json.load(sys.stdin)
    browser = Browser(sys.argv[2:])
    until = time.monotonic() + PATIENCE_S
    while "errorText" in browser.call("Page.navigate", url=sys.argv[1]):
        expect(time.monotonic() < until, "nobody serves it")
        time.sleep(0.5)
    shown = browser.look()
    while not is_drawn(shown):
        expect(time.monotonic() < until, f"nothing is drawn: {shown}")
        time.sleep(0.5)
        shown = browser.look()
    check(shown, report)
    browser.end()
    for name, row in table(shown).items():
        print(f"{name}: owed {row['owed']}, used {row['used']}")


main()
