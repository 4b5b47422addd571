"""The page of fairgv-metrics: it may run its own script only, and what that draws is what reports tell. A
JavaScript engine runs it with elements of the test's own (page_run.js), so that no browser is needed."""
import base64
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from harness import PATIENCE_S, expect, kill, main, wait_until
from serving import FOREVER, MATMUL, served

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT, KEPT_S = 600, 160, 300
GIB = 1 << 30


def run_page(page, replies):
    """What the page shows after each of them."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("page", "replies")]
        paths[0].write_text(page, encoding="utf-8")
        paths[1].write_text(json.dumps(replies), encoding="utf-8")
        done = subprocess.run(["node", HERE / "page_run.js", *paths], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S)
    expect(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def drawn(node, tag):
    """All elements of a kind below this one."""
    found = [node] if node["tag"] == tag else []
    return found + [other for child in node["children"] for other in drawn(child, tag)]


def lines(shown, gpu=0):
    """{(VM, figure): points} of a GPU."""
    section = drawn(shown["gpus"], "section")[gpu]
    return {(line["attributes"]["data-vm"], line["attributes"]["class"]):
            [tuple(map(float, point.split(","))) for point in line["attributes"]["points"].split()]
            for line in drawn(section, "polyline")}


def cells(shown, gpu=0):
    """The rows of the table of a GPU, by VM."""
    rows = drawn(drawn(shown["gpus"], "section")[gpu], "tr")
    texts = [[cell["text"] for cell in row["children"]] for row in rows]
    return {row[0]: dict(zip(texts[0], row)) for row in texts[1:]}


def near(found, wanted):
    """Points are drawn to a tenth."""
    return len(found) == len(wanted) and all(abs(a - b) <= 0.051 for pair in zip(found, wanted) for a, b in zip(*pair))


def report(second, vms, memory=4 * GIB):
    """{name: (weight, GPU time in s, memory, waits as [[edge, count], ...])} at a time."""
    return {"time_ns": int(second * 1e9),
            "gpus": [{"device": 0, "name": "a GPU", "policy": "fair", "memory_bytes": memory,
                      "weight": sum(vm[0] for vm in vms.values())}],
            "vms": [{"name": name, "weight": weight, "request_ppm": 0, "limit_ppm": 1000000, "device": 0,
                     "memory_limit_bytes": None, "sessions": [{}],
                     "wait": {"histogram": waits, "max_ns": 10**10},
                     "gpus": [{"device": 0, "gpu_ns": int(used * 1e9), "memory_bytes": used_memory}]}
                    for name, (weight, used, used_memory, waits) in vms.items()]}


def told(*reports):
    return [{"status": 200, "text": json.dumps(value)} for value in reports]


def page_is_closed():
    """Nothing comes from elsewhere, and no other script runs."""
    with served({"vm1": ""}) as (_, server):
        status, headers, page = server.ask("/")
    expect(status == 200 and headers["Content-Type"].startswith("text/html"), headers)
    script = re.search(r"<script>(.*)</script>", page, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    expect(policy["default-src"] == "'none'" and policy["script-src"] == f"'sha256-{digest}'", policy)
    expect(policy["connect-src"] == "'self'" and policy["frame-ancestors"] == "'none'", policy)
    expect(not re.search(r"\b(?:src|href)=|@import|url\(|\bon\w+=", page), "something from elsewhere")
    expect(not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script), "texts as HTML")
    expect(set(re.findall(r"https?://[^\s\"']*", page)) == {"http://www.w3.org/2000/svg"}, "an address")
    return page


def lines_are_right(page):
    odd = "<b onclick=x>&\"vm'"
    some, more, much = [[1000000, 5]], [[1000000, 5], [2000000, 99], [4000000, 1]], 3 * GIB
    shown = run_page(page, told(
        report(100, {"a": (3, 7, GIB, some), odd: (1, 0, 0, [])}),
        report(101, {"a": (3, 7.75, GIB, more), odd: (1, 0.25, GIB, [])}),
        report(161, {"a": (3, 7.75 + 30, much, more), odd: (1, 0.25, GIB, [[None, 1]])}),
        report(401, {"a": (1, 7.75 + 30 + 240, much, more), odd: (1, 0.25, 0, [[None, 1]])})))
    expect(not shown[0]["gpus"]["children"], "one report has no shares")
    # Of the second report alone: at the right edge.
    found = lines(shown[1])
    expect(near(found["a", "used"], [(WIDTH, HEIGHT * 0.25)]) and near(found[odd, "used"], [(WIDTH, HEIGHT * 0.75)]), found)
    expect(near(found["a", "owed"], [(WIDTH, HEIGHT * 0.25)]) and near(found[odd, "owed"], [(WIDTH, HEIGHT * 0.75)]), found)
    expect(near(found["a", "memory"], [(WIDTH, HEIGHT * 0.75)]), found)
    expect(cells(shown[1])["a"] == {"VM": "a", "weight": "3", "owed": "75.0%", "used": "75.0%", "wait p99": "2.0 ms",
                                    "memory": "1.0 GiB", "quota": "-", "programs": "1"}, cells(shown[1]))
    # A minute later: the first has moved to the left, and the scale of waits follows the longest.
    found, left = lines(shown[2]), WIDTH * (1 - 60 / KEPT_S)
    expect(near(found["a", "used"], [(left, HEIGHT * 0.25), (WIDTH, HEIGHT * 0.5)]), found)
    expect(near(found["a", "memory"], [(left, HEIGHT * 0.75), (WIDTH, HEIGHT * 0.25)]), found)
    expect(near(found["a", "wait"], [(left, HEIGHT * (1 - 0.002 / 10)), (WIDTH, HEIGHT)]), found)
    expect(near(found[odd, "wait"], [(left, HEIGHT), (WIDTH, 0)]), found)
    # Five minutes after the first it is on the edge; the weight has changed from then on.
    found = lines(shown[3])
    expect(near(found["a", "used"], [(0, HEIGHT * 0.25), (WIDTH * 0.2, HEIGHT * 0.5), (WIDTH, 0)]), found)
    expect(near(found["a", "owed"], [(0, HEIGHT * 0.25), (WIDTH * 0.2, HEIGHT * 0.25), (WIDTH, HEIGHT * 0.5)]), found)


def what_is_wrong_is_said(page):
    first, later = report(50, {"a": (1, 5, 0, [])}), report(51, {"a": (1, 5.5, 0, [])})
    again = [report(1, {"a": (1, 0.1, 0, [])}), report(2, {"a": (1, 0.35, 0, [])})]
    shown = run_page(page, [*told(first, later), {"status": 503, "text": "no daemon listens there"}, *told(*again)])
    expect("no daemon listens there" in shown[2]["status"]["text"], shown[2]["status"])
    expect(near(lines(shown[2])["a", "used"], [(WIDTH, HEIGHT * 0.5)]), "what was is gone")
    # A daemon that was started anew counts from 0; so does the clock after a start of the host.
    expect("no daemon" not in shown[4]["status"]["text"], shown[4]["status"])
    expect(near(lines(shown[4])["a", "used"], [(WIDTH * (1 - 1 / KEPT_S), HEIGHT * 0.9), (WIDTH, HEIGHT * 0.75)]),
           lines(shown[4]))


def real_reports_are_drawn(page):
    with served({"vm1": 'memory = "1G"; weight = 3;', "vm2": ""}) as (daemon, server):
        programs = [daemon.start(vm, MATMUL, *FOREVER) for vm in ("vm1", "vm2")]
        reports = []
        for grants in (10, 20, 30):
            wait_until(lambda grants=grants: daemon.report()["vms"][1]["grants"] > grants, "more turns")
            reports.append(daemon.report())
        for program in programs:
            kill(program)
    shown = run_page(page, told(*reports))
    now = reports[2]["time_ns"]
    for i, vm in enumerate(reports[2]["vms"]):
        wanted = []
        for before, after in zip(reports, reports[1:]):
            ns = [report["vms"][i]["gpus"][0]["gpu_ns"] for report in (before, after)]
            used = (ns[1] - ns[0]) / (after["time_ns"] - before["time_ns"])
            wanted.append((WIDTH * (1 - (now - after["time_ns"]) / 1e9 / KEPT_S), HEIGHT * (1 - min(used, 1))))
        found = lines(shown[2])
        expect(near(found[vm["name"], "used"], wanted), f"{vm['name']}: {found}, {wanted}")
        expect(cells(shown[2])[vm["name"]]["owed"] == ("75.0%", "25.0%")[i], cells(shown[2]))
        expect(cells(shown[2])[vm["name"]]["quota"] == ("1.0 GiB", "-")[i], cells(shown[2]))


def page_draws():
    page = page_is_closed()
    for test in (lines_are_right, what_is_wrong_is_said, real_reports_are_drawn):
        test(page)


if not shutil.which("node"):
    print("skipped: there is no node (package nodejs), which runs the script of the page")
    sys.exit(77)
main(page_draws)
