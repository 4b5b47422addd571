"""Which graphs of the conformance programs the host launches as one, and which are cut: those with
something in them that is the program's own."""
import pathlib
import tempfile

from harness import backend, expect, finish, main

# By program, the ways that its graphs go, of FAIRGV_STATS.
WAYS = {
    "graphs": {"host", "pageable"},
    "capture": {"host", "pageable"},
    "capture_edges": {"host"},
    "conditional": {"host"},
    "graph_again": {"host"},
    "graph_cuts": {"function", "pageable", "cut"},
    "graph_edges": {"host"},
    "graph_memory": {"host"},
    "graph_nodes": {"host"},
    "graph_objects": {"function"},
}


def figures(path):
    lines = (line.partition("=") for line in path.read_text().splitlines())
    return {key: value for key, _, value in lines}


def launched_by_the_host():
    sum_of_launches = 0
    with backend({"vm1": ""}) as daemon, tempfile.TemporaryDirectory() as folder:
        for program, ways in WAYS.items():
            path = pathlib.Path(folder, program)
            status, out, err = finish(daemon.start("vm1", f"tests/cuda/{program}",
                                                   env={"FAIRGV_STATS": str(path)}))
            expect(status == 0, f"{program}: status {status}: {out}{err}")
            found = figures(path)
            prefix = "graphs."
            expect({key.removeprefix(prefix) for key in found if key.startswith(prefix)} == ways,
                   f"{program}: {found}")
            launches = int(found.get("op.graph_launch", "0,0").split(",")[0])
            expect(launches >= int(found.get("graphs.host", 0)), f"{program}: {found}")
            sum_of_launches += launches
        counted = daemon.report()["vms"][0]["graphs"]
        expect(counted == sum_of_launches, f"the daemon counts {counted} of {sum_of_launches}")


main(launched_by_the_host)
