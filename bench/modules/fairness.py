"""The word fairness of bench: shares one GPU between VMs that run real programs, and measures what
each gets of it.

Each experiment starts a backend of its own. A program runs alone first, then all run at
once, each in a VM of its own weight. Progress is the work that a program says it has done
in the time that counts, by the work it does alone in such a time; not what the scheduler
charged. From it:

  Min-Max Ratio     lowest by highest of progress / share by weight; 1 is fair
  slowest/fastest   highest by lowest progress, which is how much longer one takes
  sum               of all progress; less than 1 is what sharing costs
  overhead          1 / sum: ideal by measured throughput, as the FairGV paper has it
  idle              part of the time in which the GPU did nobody's work
"""
import argparse
import os
import re
import statistics
import subprocess
import sys

from common import BUILD, Unable, native_environment, number, positive, print_columns
from experiment import Bench, Backend, Job, Way, Workload
from scenarios import SCENARIOS, workload_of

TURNS = 3                # of each way, where ways are compared one program at a time


def jobs_of(weights, workloads):
    if len(workloads) == 1:
        workloads = workloads * len(weights)
    return [Job(f"vm{i}", weight, workload)
            for i, (weight, workload) in enumerate(zip(weights, workloads), 1)]


def run_alone(bench, way, workload, seconds):
    (figures,), _ = bench.run(way, [Job("vm1", 1, workload)], seconds)
    return figures


class Reference:
    """What programs do alone, measured once for each way."""

    def __init__(self, bench, way, seconds):
        self.bench, self.way, self.seconds = bench, way, seconds
        self.known = {}

    def __getitem__(self, workload):
        if workload not in self.known:
            self.known[workload] = run_alone(self.bench, self.way, workload, self.seconds)
        return self.known[workload]


def vm_row(job, figures, alone, busy, share):
    """What is known of one VM; @busy: of its program alone, if it did not sleep."""
    progress = figures["units_per_second"] / alone["units_per_second"]
    return {"name": job.vm, "weight": job.weight, "workload": str(job.workload), **figures,
            "kernel_us": busy["kernel_us"], "alone_units_per_second": alone["units_per_second"],
            "progress": progress, "fair": progress / share,
            "busy": figures["units_per_second"] / busy["units_per_second"]}


def measure_share(bench, way, weights, workloads, options):
    """One experiment of kind share."""
    jobs = jobs_of(weights, workloads)
    alone = Reference(bench, way, options.alone_seconds)
    # The one without sleep comes first: it is the one to calibrate with.
    references = [(alone[job.workload.without_sleep()], alone[job.workload]) for job in jobs]
    figures, overlap = bench.run(way, jobs, options.seconds)
    rows = [vm_row(job, figure, lone, busy, job.weight / sum(weights))
            for job, figure, (busy, lone) in zip(jobs, figures, references)]
    if options.native and way.policy != "native":
        native = Reference(bench, Way("native"), options.alone_seconds)
        for job, row in zip(jobs, rows):
            row["native_units_per_second"] = native[job.workload]["units_per_second"]
    fair, progress = [row["fair"] for row in rows], [row["progress"] for row in rows]
    return {"kind": "share", "vms": rows, "overlap": overlap, "mmr": min(fair) / max(fair),
            "slowest_to_fastest": max(progress) / min(progress), "sum": sum(progress),
            "overhead": 1 / sum(progress), "idle": max(0, 1 - sum(row["busy"] for row in rows))}


def measure_alone(bench, ways, workload, options):
    """A program alone, by all ways in turns; rates are medians, and so are ratios of turns."""
    rates = {way: [] for way in ways}
    for turn in range(TURNS):
        for way in ways if turn % 2 == 0 else reversed(ways):
            figures = run_alone(bench, way, workload, options.alone_seconds)
            rates[way].append(figures["units_per_second"])
    return {"kind": "alone", "workload": str(workload), "rows": [
        {"way": str(way), "units_per_second": statistics.median(rate), "low": min(rate),
         "high": max(rate),
         "ratios": {str(other): statistics.median(a / b for a, b in zip(rate, rates[other]))
                    for other in ways}}
        for way, rate in rates.items()]}


def measure_accounts(bench, way, workload, options):
    """What the daemon accounts of a program alone, and what its own events say."""
    timed = Workload(workload.program, (*workload.options, ("events",)))
    figures = run_alone(bench, way, timed, options.alone_seconds)
    return {"kind": "accounts", "workload": str(workload), "kernel_us": figures["kernel_us"],
            "gpu_share": figures["gpu_share"], "event_share": figures["event_share"],
            "ratio": figures["gpu_share"] / figures["event_share"]}


def milliseconds(value_us):
    return "-" if value_us is None else f"{value_us / 1e3:.2f} ms"


def share_of(value):
    return "-" if value is None else f"{value:.3f}"


def print_share(result):
    head = ["VM", "program", "weight", "size", "kernel", "alone", "together", "progress",
            "/ share", "GPU time", "wait p50", "p99", "max"]
    native = any("native_units_per_second" in row for row in result["vms"])
    table = [head + ["native"] * native]
    for row in result["vms"]:
        table.append([row["name"], row["workload"], str(row["weight"]), str(row["size"]),
                      f"{number(row['kernel_us'])} us", f"{row['alone_units_per_second']:.4g}/s",
                      f"{row['units_per_second']:.4g}/s", f"{row['progress']:.3f}",
                      f"{row['fair']:.3f}", share_of(row.get("gpu_share")),
                      *(milliseconds(row.get(f"wait_{name}_us"))
                        for name in ("p50", "p99", "max")),
                      *([f"{row['native_units_per_second']:.4g}/s"] if native else [])])
    print_columns(table, 2)
    print(f"Min-Max Ratio {result['mmr']:.3f}, slowest/fastest "
          f"{result['slowest_to_fastest']:.3f}, sum {result['sum']:.3f}, overhead "
          f"{result['overhead']:.3f}, idle {result['idle']:.3f}")
    if not result["overlap"]:
        print("A program ended before another's time was over: it synchronizes too rarely.")


def print_alone(result):
    print(result["workload"])
    others = [row["way"] for row in result["rows"][:-1]]
    table = [["way", "units/s", "lowest", "highest", *(f"to {other}" for other in others)]]
    table += [[row["way"], *(f"{row[key]:.4g}" for key in ("units_per_second", "low", "high")),
               *(f"{row['ratios'][other]:.4f}" for other in others)] for row in result["rows"]]
    print_columns(table, 1)


def print_accounts(result):
    print(f"{result['workload']} (kernels of {number(result['kernel_us'])} us): "
          f"accounted {result['gpu_share']:.4f}, by events {result['event_share']:.4f}, "
          f"ratio {result['ratio']:.4f}")


PRINTERS = {"share": print_share, "alone": print_alone, "accounts": print_accounts}


class Report:
    """The results so far; prints each as it comes."""

    def __init__(self, bench, options):
        self.bench, self.options = bench, options
        self.results, self.failed = [], False

    def add(self, name, title, way, measure, *arguments):
        heading = {"scenario": name, "title": title, "way": way}
        print(f"\n== {': '.join(filter(None, [name, title, way]))}", flush=True)
        try:
            result = {**heading, **measure(*arguments)}
        except Unable as reason:
            print(f"could not run: {reason}", flush=True)
            self.results.append({**heading, "kind": "failed", "reason": str(reason)})
            self.failed = True
            return
        PRINTERS[result["kind"]](result)
        sys.stdout.flush()
        self.results.append(result)

    def scenario(self, name, soft):
        chosen, bench, options = SCENARIOS[name], self.bench, self.options
        weights = [int(weight) for weight in chosen.weights.split(":")]
        ways = [way for way in chosen.ways if self.usable(way, soft)]
        for texts in chosen.workloads:
            workloads = [workload_of(text, soft) for text in texts]
            if chosen.kind == "alone":
                self.add(name, chosen.title, "in turns", measure_alone, bench, ways, workloads[0],
                         options)
                continue
            for way in ways:
                if chosen.kind == "accounts":
                    self.add(name, chosen.title, str(way), measure_accounts, bench, way,
                             workloads[0], options)
                else:
                    self.add(name, chosen.title, str(way), measure_share, bench, way, weights,
                             workloads, options)

    def usable(self, way, soft):
        """Some ways are a GPU's own: a scenario leaves them out elsewhere, and says so."""
        if way.policy == "native" and self.bench.native is None:
            print("\nleft out: native, as the driver cannot be used here")
            return False
        if way.context == "mps" and soft:
            print(f"\nleft out: {way}, as the soft GPU has no MPS")
            return False
        return True

    def document(self):
        return {"device": self.bench.device, "seconds": self.options.seconds,
                "alone_seconds": self.options.alone_seconds, "failed": self.failed,
                "results": self.results}


def find_native(options):
    """The environment of native programs, or None where the driver cannot be used."""
    try:
        environment = native_environment(options.cuda_lib)
        subprocess.run([BUILD / "workloads/vecadd", "--size", "1000"], capture_output=True,
                       env={**os.environ, **environment}, check=True)
        return environment
    except (OSError, Unable, subprocess.CalledProcessError):
        return None


def weights_of(text):
    weights = [positive(part) for part in text.split(":")]
    if max(weights) > 10000:
        raise argparse.ArgumentTypeError(f"{text}: a weight is 10000 at most")
    return weights


def slice_of(text):
    """Milliseconds, from text such as 6ms or 500us."""
    match = re.fullmatch(r"(\d+)(us|ms)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no length as 6ms or 500us")
    return int(match[1]) / (1000 if match[2] == "us" else 1)


def workload_argument(text):
    try:
        return Workload.parse(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None


def own_experiment(report, options):
    workloads = options.workload or [Workload.parse("matmul")]
    if len(workloads) not in (1, len(options.vms)):
        raise Unable(f"{len(workloads)} workloads for {len(options.vms)} VMs")
    ways = [Way(options.policy, options.context, options.slice)]
    if options.native:
        ways.insert(0, Way("native"))
    for way in ways:
        report.add(None, ":".join(map(str, options.vms)), str(way), measure_share, report.bench,
                   way, options.vms, workloads, options)


def fairness(options):
    options.alone_seconds = options.alone_seconds or max(1, options.seconds // 3)
    bench = Bench(options.gpu, find_native(options))
    report = Report(bench, options)
    if options.native and bench.native is None:
        raise Unable("native programs cannot run here")
    probe = Backend(Way(), [Job("vm1", 1, None)], options.gpu)
    probe.stop()
    bench.device = probe.device
    print(f"GPU: {probe.device}")
    if options.scenario:
        names = SCENARIOS if "all" in options.scenario else options.scenario
        for name in names:
            report.scenario(name, soft=probe.device.startswith("soft GPU"))
    else:
        own_experiment(report, options)
    return report.document()


def add_own(word):
    own = word.add_argument_group("an experiment of one's own")
    own.add_argument("--vms", type=weights_of, default=[1, 1], metavar="W:W:...",
                     help="a VM for each weight (default 1:1)")
    own.add_argument("--workload", action="append", default=[], type=workload_argument,
                     metavar="NAME[:OPTIONS]",
                     help="of each VM in turn, or one for all (default matmul)")
    own.add_argument("--policy", default="fair",
                     help="the daemon's scheduling policy (default fair)")
    own.add_argument("--context", choices=["isolated", "mps"], default="isolated")
    own.add_argument("--slice", type=slice_of, metavar="T", help="as 6ms or 500us")


def add_words(measurements):
    word = measurements.add_parser(
        "fairness", help="what each VM gets of a GPU that they share",
        formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__,
        epilog="scenarios:\n" + "\n".join(f"  {name}  {scenario.title}"
                                          for name, scenario in SCENARIOS.items()) +
        "\n\na workload is one of workloads/ with options of its own, as its --help tells them:\n"
        "  matmul:kernel-us=28,sync-every=8")
    word.set_defaults(measure=fairness, show=lambda _: None)   # each result is printed as it comes
    word.add_argument("--scenario", action="append", choices=[*SCENARIOS, "all"], default=[],
                      help="an experiment of the list below; may be repeated")
    add_own(word)
    word.add_argument("--native", action="store_true",
                      help="without FairGV, too: alone, and all together")
    word.add_argument("--seconds", type=positive, default=6, metavar="S",
                      help="that count of a run of all programs (default 6)")
    word.add_argument("--alone-seconds", type=positive, metavar="S",
                      help="that count of a program's run alone (default: a third of it)")
    word.add_argument("--gpu", default="auto", help="as in the backend's configuration")
    word.add_argument("--cuda-lib", metavar="DIR",
                      help="folder of the toolkit's libcudart.so.13, for native runs")
