"""The dashboard for Grafana: its queries name metrics and labels that there are, and it is as Grafana wants it."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import BUILD, PATIENCE_S, Failure, backend, expect, kill, main, wait_until

DASHBOARD = pathlib.Path(os.environ["top_srcdir"]) / "packaging/grafana.json"
CTL = BUILD / "tools/fairgvctl"
PROMETHEUS_LABELS = {"instance", "job"}     # which it adds itself
KINDS = {"timeseries", "gauge", "stat"}


def metrics():
    """{metric: its labels}, as they are while a program runs."""
    with backend({"vm1": 'memory = "1G";'}) as daemon:
        program = daemon.start("vm1", "workloads/matmul", "--size", 64, "--iterations", 10000000)
        wait_until(lambda: daemon.report()["vms"][0]["launches"] > 1, "kernels")
        text = subprocess.run([CTL, "--socket", daemon.control, "metrics"], capture_output=True, text=True, check=True,
                              timeout=PATIENCE_S).stdout
        kill(program)
    return {name: set(re.findall(r"(\w+)=\"", labels)) for name, labels in re.findall(r"^(fairgv_\w+)\{(.*)\} ", text, re.M)}


def queries_of(dashboard):
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            expect(found and variable["definition"] == variable["query"]["query"], variable)
            yield found[1], {found[2]}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"], set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))


def expect_known(query, labels, known):
    """Labels of the legend are there if one of the query's metrics has them."""
    found = re.findall(r"(fairgv_\w+)(?:\{([^}]*)\})?", query)
    expect(found, f"no metric: {query}")
    grouped = {label.strip() for group in re.findall(r"(?:by|on) \(([^)]*)\)", query) for label in group.split(",")}
    of_all = set(PROMETHEUS_LABELS)
    for name, selection in found:
        expect(name in known, f"no metric is called {name}: {query}")
        selected = set(re.findall(r"(\w+)=~", selection))
        expect(selected <= known[name] | PROMETHEUS_LABELS, f"{name} has the labels {known[name]}: {query}")
        of_all |= known[name]
    by = re.search(r"sum by \(([^)]*)\)", query)
    left = {label.strip() for label in by[1].split(",")} if by else of_all
    expect(grouped <= of_all and labels <= left, f"{labels}, {grouped}: {query}")


def expect_promql(queries):
    """Prometheus can parse them."""
    if not shutil.which("promtool"):
        print("left out, as there is no promtool (package prometheus): its own look at the queries")
        return
    rules = [{"record": f"query:{i}", "expr": re.sub(r"\$\w+", lambda name: "5m" if "interval" in name[0] else ".*", query)}
             for i, query in enumerate(queries)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)     # JSON is YAML
        file.flush()
        done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S)
    expect(done.returncode == 0, done)


def expect_layout(dashboard):
    """A grid of 24 columns, of which no two panels have the same place."""
    taken, ids = {}, set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        expect(panel["type"] in KINDS and panel["id"] not in ids and place["x"] + place["w"] <= 24, panel["title"])
        ids.add(panel["id"])
        expect(panel["fieldConfig"]["defaults"]["unit"] and panel["description"].endswith("."), panel["title"])
        references = [target["refId"] for target in panel["targets"]]
        expect(len(set(references)) == len(references) > 0, panel["title"])
        for source in (panel, *panel["targets"]):
            expect(source["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"])
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                expect((x, y) not in taken, f"{panel['title']} covers {taken.get((x, y))}")
                taken[x, y] = panel["title"]


def dashboard_is_right():
    dashboard = json.loads(DASHBOARD.read_text())
    expect(dashboard["uid"] == "fairgv" and dashboard["title"] == "FairGV" and dashboard["schemaVersion"] == 38,
           "what it is called")
    expect_layout(dashboard)
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"]))) - {"__rate_interval", "__all"}
    expect(used <= names, f"variables {used}, of {names}")
    known, queries = metrics(), list(queries_of(dashboard))
    for query, labels in queries:
        expect_known(query, labels, known)
    for bad, labels in (("fairgv_vm_nosuch", set()), ('fairgv_vm_weight{engine=~"x"}', set()), ("up", set()),
                        ("fairgv_vm_weight", {"engine"}), ("sum by (vm) (fairgv_vm_memory_bytes)", {"gpu"})):
        try:
            expect_known(bad, labels, known)
        except Failure:
            continue
        raise Failure(f"this test finds nothing wrong with {bad} and {labels}")
    expect_promql([query for query, _ in queries])


main(dashboard_is_right)
