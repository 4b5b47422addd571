"""bench cosched: what coscheduling is worth, after the FairGV paper's figure 8.

Three VMs of weights 1:2:3 run one program each, all three on one processor; the daemon, its
vGPU processes, and with them the soft GPU, have the others. Every way of scheduling takes
its turn, over and over, so that what else the machine does hits all of them.

A program's progress is its work by what it does alone, on the same processor. From that:

  Min-Max Ratio     lowest by highest of progress / share by weight; 1 is fair
  overhead          1 / sum of progress: ideal by measured throughput, as the paper has it
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from common import BUILD, Unable, number, positive, print_columns, spread, summary
from experiment import LEAD_S, TAIL_S, Backend, Bench, Job, Way, Workload

GUEST_MODULES = ["@SRCDIR@/tests/vm", "@SRCDIR@/tests/local"]
WEIGHTS = (1, 2, 3)
POLL_US = 100000     # credit-poll's guests look for as long as they can be told to

# A soft GPU's kernels are ten times as long as a real one's. By the paper's rule, more than
# 10 synchronous calls in 10 ms, the first two are interactive and the last is not.
WORKLOADS = ("srad:kernel-us=60", "matmul:kernel-us=250,sync-every=1",
             "matmul:kernel-us=250,sync-every=64")

WAYS = {"fair": Way("fair"), "fair, cosched off": Way("fair", cosched=False),
        "credit-poll": Way("credit-poll"), "credit-hs": Way("credit-hs"),
        "strict-co": Way("strict-co")}


def pin(pid, processors):
    """All threads of a process, and what it starts."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), processors)


class Pinned(Backend):
    """A backend whose programs share one processor with @busy others, which only compute."""

    def __init__(self, way, jobs, gpu, processors, busy):
        self.processor, *rest = processors
        super().__init__(way, jobs, gpu)
        self.busy = [subprocess.Popen([*self.pinned(), sys.executable, "-c", "while True: pass"])
                     for _ in range(busy)]
        if way.policy == "credit-poll":
            self.environment = {"FAIRGV_SPIN_US": str(POLL_US)}
        pin(self.process.pid, rest)

    def pinned(self):
        return ["taskset", "--cpu-list", str(self.processor)]

    def command(self, vm):
        return [*self.pinned(), *super().command(vm)]

    def stop(self):
        for process in self.busy:
            process.kill()
            process.wait()
        super().stop()


class PinnedBench(Bench):
    def __init__(self, gpu, processors, busy):
        super().__init__(gpu, None)
        self.processors, self.busy = processors, busy

    def host(self, way, jobs):
        return Pinned(way, jobs, self.gpu, self.processors, self.busy if len(jobs) > 1 else 0)


def judge(rates, alone, favoured, grants_s, sync_calls):
    """One run of one way: the VMs' rates, and sums over them."""
    progress = [rate / alone for rate in rates]
    fair = [part * sum(WEIGHTS) / weight for part, weight in zip(progress, WEIGHTS)]
    return {"progress": progress, "mmr": min(fair) / max(fair), "overhead": 1 / sum(progress),
            "favoured": favoured / grants_s, "sync_calls": sync_calls / grants_s / 100}


def run_three(bench, way, workload, seconds):
    """All VMs at once: what judge() wants to know, but for what one does alone."""
    jobs = [Job(f"vm{i}", weight, workload) for i, weight in enumerate(WEIGHTS, 1)]
    figures, overlap = bench.run(way, jobs, seconds)

    def total(key):
        return sum(figure[key] for figure in figures)

    return {"rates": [figure["units_per_second"] for figure in figures],
            "favoured": total("favoured"), "grants_s": total("gpu_share") * seconds,
            "sync_calls": total("sync_calls")}, overlap


def run_alone(bench, workload, seconds):
    (figures,), _ = bench.run(Way("fair"), [Job("vm1", 1, workload)], seconds)
    return figures


def guests_order(way, workload, size, processors, options):
    """What cosched_guests.py is to do."""
    coscheduling = "" if way.cosched else 'cosched = "off";'
    environment = f"FAIRGV_SPIN_US={POLL_US}" if way.policy == "credit-poll" else ""
    return {"weights": WEIGHTS, "gpu": options.gpu, "top": f'policy = "{way.policy}"; {coscheduling}',
            "program": workload.program, "arguments": workload.arguments(size),
            "environment": environment, "seconds": options.seconds, "lead": LEAD_S, "tail": TAIL_S,
            "repeat": options.repeat, "processors": processors}


def run_guests(order):
    # -P: the modules of tests/vm, not those beside the script.
    done = subprocess.run(
        [sys.executable, "-P", BUILD / "bench/cosched_guests.py"], input=json.dumps(order),
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(GUEST_MODULES),
             "abs_top_builddir": str(BUILD)})
    if done.returncode != 0:
        raise Unable(f"guests: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return json.loads(done.stdout)


def measure_guests(workload, size, processors, options):
    """{way: its runs}; each way has guests that boot for it, so it has all its runs at once."""
    alone, runs = None, {}
    for name, way in WAYS.items():
        order = guests_order(way, workload, size, processors, options)
        result = run_guests({**order, "alone": alone is None})
        alone = alone or result["alone"]["rates"][0]
        runs[name] = [{**judge(run["rates"], alone, run["favoured"], run["gpu_ns"] / 1e9,
                               run["sync_calls"]), "overlap": True} for run in result["runs"]]
    return runs


def measure_local(bench, workload, options):
    """{way: its runs}, in turns; so is what a program does alone."""
    alone, runs = [], {name: [] for name in WAYS}
    for turn in range(options.repeat):
        alone.append(run_alone(bench, workload, options.seconds)["units_per_second"])
        for name in list(WAYS) if turn % 2 == 0 else reversed(WAYS):
            runs[name].append(run_three(bench, WAYS[name], workload, options.seconds))
    return {name: [{**judge(alone=statistics.median(alone), **figures), "overlap": overlap}
                   for figures, overlap in results] for name, results in runs.items()}


def measure_workload(bench, text, options):
    workload = Workload.parse(text)
    alone = run_alone(bench, workload, options.seconds)     # also calibrates it
    if options.guests:
        runs = measure_guests(workload, alone["size"], bench.processors, options)
    else:
        runs = measure_local(bench, workload, options)
    return {"workload": text, "kernel_us": alone["kernel_us"], "ways": {
        name: {"runs": results, **{key: summary([run[key] for run in results]) for key in
                                   ("mmr", "overhead", "favoured", "sync_calls")}}
        for name, results in runs.items()}}


def cosched(options):
    processors = sorted(os.sched_getaffinity(0))
    if options.guests and options.busy:
        raise Unable("--busy is for programs of the host")
    if len(processors) < 2:
        raise Unable("one processor is for the programs, so there must be another")
    bench = PinnedBench(options.gpu, processors, options.busy)
    results = [measure_workload(bench, text, options)
               for text in options.workload or WORKLOADS]
    return {"device": bench.device, "processors": len(processors), "busy": options.busy,
            "guests": options.guests,
            "repeat": options.repeat, "seconds": options.seconds, "workloads": results}


def print_cosched(result):
    print(f"{result['device']}; processors: {result['processors']}; weights "
          f"{':'.join(map(str, WEIGHTS))}; {'QEMU guests' if result['guests'] else 'programs of the host'}; "
          f"beside them {result['busy']} that only compute\n"
          f"median (lowest..highest) of {result['repeat']} runs of {result['seconds']} s; "
          "threads favoured in a second of GPU time, synchronous calls in 10 ms of it")
    for workload in result["workloads"]:
        print(f"\n{workload['workload']} (kernels of {number(workload['kernel_us'])} us)")
        table = [["way", "Min-Max Ratio", "overhead", "favoured", "calls"]]
        table += [[name, spread(way["mmr"], "{:.3f}".format), spread(way["overhead"], "{:.3f}".format),
                   number(way["favoured"]["median"]), number(way["sync_calls"]["median"])]
                  for name, way in workload["ways"].items()]
        print_columns(table, 1)
        if not all(run["overlap"] for way in workload["ways"].values() for run in way["runs"]):
            print("A program ended before another's time was over: it synchronizes too rarely.")


def workload_argument(text):
    try:
        Workload.parse(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None
    return text


def add_words(measurements):
    word = measurements.add_parser(
        "cosched", help="coscheduling, and the paper's rivals, on a processor that VMs share")
    word.set_defaults(measure=cosched, show=print_cosched)
    word.add_argument("--workload", action="append", type=workload_argument, metavar="NAME[:OPTIONS]",
                      help="this one instead; may be repeated")
    word.add_argument("--repeat", type=positive, default=3, metavar="N",
                      help="runs of each way (default 3)")
    word.add_argument("--seconds", type=positive, default=4, metavar="S",
                      help="that count of a run (default 4)")
    word.add_argument("--guests", action="store_true",
                      help="in virtual machines, of QEMU without KVM")
    word.add_argument("--busy", type=int, choices=range(17), default=0, metavar="N",
                      help="processes on the programs' processor that only compute (default 0)")
    word.add_argument("--gpu", default="soft", help="as in the backend's configuration (default soft)")
