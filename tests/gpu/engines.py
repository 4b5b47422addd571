"""What programs for different engines of a GPU get beside each other: natively, with engines granted
by themselves, with one grant for all, and unscheduled; and streams of small kernels. About 60 s;
figures go to $OUT/engines.json, if OUT is set.

usage: tests/gpu/engines.py [TEST...], with abs_top_builddir as for tests/local/, and the command
that native programs run with in FAIRGV_NATIVE; FAIRGV_TEST_GPU=soft tries the program itself.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import BUILD, backend, expect, finish, main
from results import Results

GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
NATIVE = shlex.split(os.environ.get("FAIRGV_NATIVE", ""))
ENGINES = "tests/local/engines"
SECONDS = 1 if GPU == "cuda" else 0.5
KINDS = ("in", "out", "compute")
WAYS = {"engines": "", "one grant": "engines = false;", "none": 'policy = "none";'}
results = Results("engines")


def native(_, program, *arguments, **options):
    return subprocess.Popen([*NATIVE, BUILD / program, *map(str, arguments)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True, **options)


def rates(start, programs):
    """Programs at once, each a VM and what it does: what each did in a second."""
    running = [start(vm, ENGINES, "rate", SECONDS, *what, stdin=subprocess.PIPE)
               for vm, what in programs]
    for each in running:
        line = each.stdout.readline()
        expect(line == "begun\n", f"no beginning: {line!r}")
    for each in running:
        each.stdin.write("\n")
        each.stdin.flush()
    totals = []
    for each in running:
        status, out, err = finish(each)
        found = re.search(r"total=([\d.e+]+)", out)
        expect(status == 0 and found, f"status {status}: {out}{err}")
        totals.append(float(found[1]))
    return totals


def parts(start, alone, programs):
    return [rate / each for rate, each in zip(rates(start, programs), alone)]


def starts(vms):
    """Ways to start programs, each as long as its daemon runs."""
    if GPU == "cuda":
        yield "native", native
    for name, top in WAYS.items():
        with backend(vms, gpu=GPU, top=top) as daemon:
            yield name, daemon.start
            daemon.expect_at_rest()


def three():
    """One that copies in, one that copies out, one that computes: parts of what each does alone by
    the same way. All that the GPU can do at once is 3 in all."""
    vms = dict.fromkeys(KINDS, "")
    for name, start in starts(vms):
        alone = [rates(start, [(kind, [kind])])[0] for kind in KINDS]
        got = parts(start, alone, [(kind, [kind]) for kind in KINDS])
        results.report(f"three, {name}", **dict(zip(KINDS, got)), total=sum(got))


def pair():
    """One that copies in beside one that computes."""
    kinds = ("in", "compute")
    for name, start in starts(dict.fromkeys(kinds, "")):
        alone = [rates(start, [(kind, [kind])])[0] for kind in kinds]
        got = parts(start, alone, [(kind, [kind]) for kind in kinds])
        results.report(f"copying beside computing, {name}", **dict(zip(kinds, got)), total=sum(got))


def weights():
    """Two that copy in the same direction, 1:3."""
    with backend({"one": "weight = 1;", "three": "weight = 3;"}, gpu=GPU) as daemon:
        for kind in ("in", "out"):
            one, three = rates(daemon.start, [("one", [kind]), ("three", [kind])])
            results.report(f"copying {kind}, 1:3", one=one, three=three,
                           share_of_three=three / (one + three))
        daemon.expect_at_rest()


def mixed():
    """A program that copies both ways and computes at once, alone: as natively."""
    known = {}
    for name, start in starts({"one": ""}):
        known[name] = rates(start, [("one", KINDS)])[0]
    reference = known.get("native", known["none"])
    results.report("one that does all three, alone", **{name: rate / reference
                                                        for name, rate in known.items()})


def useless():
    """One that also copies, for nothing, beside one that only computes."""
    with backend({"one": "", "two": ""}, gpu=GPU) as daemon:
        alone = rates(daemon.start, [("two", ["compute"])])[0]
        plain = rates(daemon.start, [("one", ["compute"]), ("two", ["compute"])])
        more = rates(daemon.start, [("one", KINDS), ("two", ["compute"])])
        results.report("useless copies of a neighbour", without=plain[1] / alone,
                       beside=more[1] / alone)
        daemon.expect_at_rest()


def streams():
    """Kernels of one block in 1, 8 and 32 streams, alone and beside kernels that fill the GPU."""
    vms = {"one": "", "two": ""}
    known = {}
    for name, start in starts(vms):
        if name == "one grant":
            continue
        for kind in ("block", "long"):
            for count in (1, 8, 32):
                known[name, kind, count] = rates(start, [("one", [kind] * count)])[0]
        if name != "engines":
            continue
        full = rates(start, [("two", ["compute"])])[0]
        for count in (1, 8, 32):
            got = parts(start, (known[name, "block", count], full),
                        [("one", ["block"] * count), ("two", ["compute"])])
            results.report(f"{count} streams beside full kernels", streams=got[0], full=got[1])
    first = next(iter(known))[0]
    for (name, kind, count), rate in known.items():
        if name != first:
            results.report(f"{count} streams of {kind}, {name}",
                           of_native=rate / known[first, kind, count])


TESTS = {test.__name__: test for test in (three, pair, weights, mixed, useless, streams)}
main(*[TESTS[name] for name in sys.argv[1:] or TESTS])
