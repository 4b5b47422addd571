"""Requests and limits (policy gemini) on a real GPU: a limit of 25 % of a VM that is alone, with
kernels of several lengths, graphs, streams and copies; and three VMs with requests of 50, 30 and
20 % and limits of 60, 60 and 40 %, of which one becomes idle and comes back. Prints what each got
beside what the rules say, and judges it by the bounds of the project's targets. Figures go to
$OUT/shares.json, if OUT is set.

A service with a bound of 5 ms beside three busy VMs is the third part. The fourth is a service at
priority 0 whose requests come at random beside a batch program at priority 9, under the policies
fikit, fair and none: how long its requests take against alone, and what the batch program gets of
what the service leaves. It also prints why: how often in a request the service had to ask for the
GPU (once is what its pauses cost) and how long it waited then; and of the batch program's grants,
how many ended late after they were asked back, how late, and in how many its work was held.

usage: tests/gpu/shares.py [limits|shares|bounds|fikit]... [KIND...], with abs_top_builddir as for
tests/local/; FAIRGV_TEST_GPU=soft tries the program itself, without judging. limits takes 14 s for
each of its kinds, shares 50 s, bounds 20 s, fikit 40 s.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import BUILD, backend, expect, kill
from results import Results

GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda")
IS_SOFT = GPU == "soft"
BLOCKS = 2 if IS_SOFT else 264
SECONDS = 10
PROGRAM = "tests/local/shares"
TOP = 'policy = "gemini";'
KINDS = {"28us": ("launches", 28), "5ms": ("launches", 5000), "50ms": ("launches", 50000),
         "500ms": ("launches", 500000),
         "waits": ("waits", 46), "graphs": ("graphs", 100), "streams": ("streams", 200),
         "copies": ("copies", 28)}
LIMIT = 0.25
LIMIT_BOUND, SHARE_BOUND = 0.01, 0.015
results = Results("shares")
failed = []


def judge(name, is_right, text):
    print(f"  {'ok  ' if is_right else 'FAIL'} {name}: {text}", flush=True)
    if not is_right and not IS_SOFT:
        failed.append(name)


def look(daemon):
    """The clock in ns, and each VM's figures."""
    report = daemon.report()
    return report["time_ns"], {vm["name"]: vm for vm in report["vms"]}


def start(daemon, vm, kind):
    program = daemon.start(vm, PROGRAM, *KINDS[kind], BLOCKS)
    line = program.stdout.readline()
    expect(line == "begun\n", f"{kind}: {line!r} {program.stderr.read() if not line else ''}")
    return program


def set_shares(daemon, vm, *settings):
    subprocess.run([BUILD / "tools/fairgvctl", "--socket", f"{daemon.socket}.control", "set", vm,
                    *settings], check=True, stdout=subprocess.DEVNULL)


def engines_of(vm):
    """What it has used of each engine; one alone where they are not granted by themselves."""
    return [vm["gpu_ns"]] + [vm[name]["gpu_ns"] for name in ("copy_in", "copy_out") if name in vm]


def over(daemon, vm, seconds, key):
    """The part of the time that it had the engine that it had most, and units of @key in a second."""
    from_ns, before = look(daemon)
    time.sleep(seconds)
    to_ns, after = look(daemon)
    used = [end - begin for begin, end in zip(engines_of(before[vm]), engines_of(after[vm]))]
    return (max(used) / (to_ns - from_ns),
            (after[vm][key] - before[vm][key]) / (to_ns - from_ns) * 1e9)


def limit_of(kind):
    key = {"graphs": "graphs", "copies": "requests"}.get(kind, "launches")
    with backend({"vm": ""}, gpu=GPU, top=TOP) as daemon:
        program = start(daemon, "vm", kind)
        _, free = over(daemon, "vm", 2, key)
        set_shares(daemon, "vm", f"limit={LIMIT * 100:g}%")
        time.sleep(0.5)
        part, limited = over(daemon, "vm", SECONDS, key)
        kill(program)
    progress = limited / free
    results[f"limit {kind}"] = {"limit": LIMIT, "gpu": part, "progress": progress}
    results.keep()
    judge(f"limit of {LIMIT} alone, {kind}", abs(part - LIMIT) <= LIMIT_BOUND,
          f"{part:.4f} of the GPU, {progress:.4f} of the work that it does without a limit")


def limits(kinds):
    for kind in kinds or KINDS:
        limit_of(kind)


# --- Three VMs ------------------------------------------------------------------------------------

VMS = {"a": 'request = "50%"; limit = "60%";', "b": 'request = "30%"; limit = "60%";',
       "c": 'request = "20%"; limit = "40%";'}
ALL = {"a": 0.5, "b": 0.3, "c": 0.2}
WITHOUT_A = {"a": 0.0, "b": 0.6, "c": 0.4}


class Tape:
    """What each VM had used, ten times a second."""

    def __init__(self, daemon):
        self.daemon, self.marks = daemon, []

    def record(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            at_ns, vms = look(self.daemon)
            self.marks.append((at_ns, {name: vm["gpu_ns"] for name, vm in vms.items()}))
            time.sleep(0.1)
        return self.marks[-1][0]

    def windows(self, vm, from_ns, seconds):
        """Its part of each span of that length that begins after from_ns."""
        marks = [mark for mark in self.marks if mark[0] >= from_ns]
        parts = []
        for i, (begin_ns, before) in enumerate(marks):
            for end_ns, after in marks[i:]:
                if end_ns - begin_ns >= seconds * 1e9:
                    parts.append((after[vm] - before[vm]) / (end_ns - begin_ns))
                    break
        return parts


def judge_phase(name, tape, from_ns, rule):
    figures = {}
    for vm, due in rule.items():
        parts = tape.windows(vm, from_ns, SECONDS)
        expect(parts, f"{name}: no span of {SECONDS} s was seen")
        figures[vm] = {"due": due, "least": min(parts), "most": max(parts)}
        judge(f"{name}, {vm}", max(abs(part - due) for part in parts) <= SHARE_BOUND,
              f"{min(parts):.4f} to {max(parts):.4f} where the rules say {due}")
    results[name] = figures
    results.keep()


def shares(_):
    with backend(VMS, gpu=GPU, top=TOP) as daemon:
        programs = {vm: start(daemon, vm, "28us") for vm in VMS}
        tape = Tape(daemon)
        begun_ns = look(daemon)[0] + 500_000_000
        tape.record(12)
        judge_phase("all busy", tape, begun_ns, ALL)
        os.killpg(programs["a"].pid, signal.SIGSTOP)
        idle_ns = look(daemon)[0] + 500_000_000
        tape.record(12)
        judge_phase("a idle", tape, idle_ns, WITHOUT_A)
        os.killpg(programs["a"].pid, signal.SIGCONT)
        back_ns = look(daemon)[0]
        tape.record(13)
        part = tape.windows("a", back_ns, 1)[0]
        results["back"] = part
        judge("a in its first second back", part >= ALL["a"] - 0.03, f"{part:.4f}")
        judge_phase("all busy again", tape, back_ns + 1_000_000_000, ALL)
        for program in programs.values():
            kill(program)


# --- A bound on latency ---------------------------------------------------------------------------

BOUND_MS = 5
BUSY = ("a", "b", "c")


def edges_of(before, after):
    """The waits that came in between, as pairs of a bucket's upper edge in ns and a count."""
    counts = {edge: count for edge, count in after["histogram"]}
    for edge, count in before["histogram"]:
        counts[edge] -= count
    return sorted((edge if edge is not None else after["max_ns"], count)
                  for edge, count in counts.items() if count)


def quantile_ms(edges, part):
    left = part * sum(count for _, count in edges)
    for edge, count in edges:
        left -= count
        if left <= 0:
            return edge / 1e6
    return 0


def bounds(_):
    """A millisecond of work, and nine of pause, beside three busy VMs."""
    vms = {"service": f'request = "20%"; slo = "{BOUND_MS}ms";', **dict.fromkeys(BUSY, "")}
    with backend(vms, gpu=GPU, top=TOP) as daemon:
        programs = [start(daemon, vm, "28us") for vm in BUSY]
        programs.append(daemon.start("service", "workloads/matmul", "--kernel-us", 28,
                                     "--iterations", 100000000, "--sync-every", 8,
                                     "--burst-ms", 1, "--sleep-ms", 9))
        time.sleep(4)
        from_ns, before = look(daemon)
        time.sleep(SECONDS)
        to_ns, after = look(daemon)
        for program in programs:
            kill(program)
    edges = edges_of(before["service"]["wait"], after["service"]["wait"])
    waits = {f"p{part * 100:g}": quantile_ms(edges, part) for part in (0.5, 0.99, 0.999)}
    part = {vm: (after[vm]["gpu_ns"] - before[vm]["gpu_ns"]) / (to_ns - from_ns) for vm in vms}
    even = sum(part[vm] for vm in BUSY) / len(BUSY)
    results["bound"] = {"waits_ms": waits, "shares": part}
    results.keep()
    judge(f"a bound of {BOUND_MS} ms", waits["p99.9"] <= BOUND_MS,
          f"waits in ms: {waits}, {sum(count for _, count in edges)} of them")
    judge("the others", all(abs(part[vm] / even - 1) <= 0.02 for vm in BUSY), f"{part}")


# --- A service beside a batch program -------------------------------------------------------------

SERVICE_S = 5
REQUEST = 20    # kernels, as in tests/local/shares.cu
KERNEL_US = 250
P50_BOUND, P99_BOUND, LEFT_BOUND = 1.05, 1.15, 0.9


def priorities_of(policy):
    keys = {"service": "priority = 0;", "batch": "priority = 9;"}
    return keys if policy == "fikit" else dict.fromkeys(keys, "")


def serve(daemon, request_us=None):
    """The service's median and 99 % in us, one request by itself, and its part of the GPU."""
    load = [] if request_us is None else [request_us]
    from_ns, before = look(daemon)
    program = daemon.start("service", PROGRAM, "service", KERNEL_US, BLOCKS, SERVICE_S, *load)
    out, err = program.communicate()
    to_ns, after = look(daemon)
    expect(program.returncode == 0, f"the service: {err}")
    used = after["service"]["gpu_ns"] - before["service"]["gpu_ns"]
    return *map(float, out.split()), used / (to_ns - from_ns)


def why(before, after):
    """What the service and the batch program did with grants in between; see above."""
    service, batch = ({key: after[vm][key] - before[vm][key]
                       for key in ("launches", "grants", "overruns", "overrun_ns", "holds")}
                      for vm in ("service", "batch"))
    edges = edges_of(before["service"]["wait"], after["service"]["wait"])
    return {"asked_per_request": service["grants"] / max(service["launches"] / REQUEST, 1),
            "wait_us": {f"p{part * 100:g}": quantile_ms(edges, part) * 1e3 for part in (0.5, 0.99)},
            "batch_grants": batch["grants"], "late": batch["overruns"],
            "late_us": batch["overrun_ns"] / max(batch["overruns"], 1) / 1e3,
            "held": batch["holds"]}


def beside(policy, alone, free):
    """The service next to the batch program, which does @free launches a second alone."""
    p50, p99, request_us, _ = alone
    with backend(priorities_of(policy), gpu=GPU, top=f'policy = "{policy}";') as daemon:
        program = start(daemon, "batch", "28us")
        from_ns, before = look(daemon)
        now_p50, now_p99, _, part = serve(daemon, request_us)
        to_ns, after = look(daemon)
        kill(program)
    rate = (after["batch"]["launches"] - before["batch"]["launches"]) / (to_ns - from_ns) * 1e9
    left = rate / free / max(1 - part, 0.01)
    reasons = why(before, after)
    results[f"service {policy}"] = {"p50": now_p50 / p50, "p99": now_p99 / p99, "left": left,
                                    "service_gpu": part, "alone_us": [p50, p99, request_us],
                                    **reasons}
    results.keep()
    return now_p50 / p50, now_p99 / p99, left, reasons


def fikit(_):
    with backend(priorities_of("fikit"), gpu=GPU, top='policy = "fikit";') as daemon:
        alone = serve(daemon)
        program = start(daemon, "batch", "28us")
        _, free = over(daemon, "batch", 2, "launches")
        kill(program)
    for policy in ("fikit", "fair", "none"):
        p50, p99, left, reasons = beside(policy, alone, free)
        is_right = p50 <= P50_BOUND and p99 <= P99_BOUND and left >= LEFT_BOUND
        judge(f"a service beside a batch program, {policy}", is_right or policy != "fikit",
              f"p50 {p50:.3f} and p99 {p99:.3f} of alone, the batch program {left:.3f} of what is "
              "left")
        print(f"       alone p50 and p99 {alone[0]:.0f} and {alone[1]:.0f} us, one request by "
              f"itself {alone[2]:.0f} us; {reasons}", flush=True)


def run():
    words = {"limits": limits, "shares": shares, "bounds": bounds, "fikit": fikit}
    chosen = [word for word in sys.argv[1:] if word in words] or list(words)
    kinds = [word for word in sys.argv[1:] if word not in words]
    expect(all(kind in KINDS for kind in kinds), f"kinds are {', '.join(KINDS)}")
    for word in chosen:
        print(f"{word}:", flush=True)
        words[word](kinds)
    sys.exit(1 if failed else 0)


run()
