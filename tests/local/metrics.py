"""fairgvctl metrics: what Prometheus reads is well-formed, keeps its conventions, says what --json says,
and only grows where it says so."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from harness import BUILD, PATIENCE_S, backend, expect, expect_verified, finish, kill, main, wait_until

CTL = BUILD / "tools/fairgvctl"
MATMUL = "workloads/matmul"
FOREVER = ("--size", 64, "--iterations", 10000000)
SAMPLE = re.compile(r'(fairgv_[a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
OF_VM = {"gpu_seconds_total": ("gpu_ns", 1e-9), "grants_total": ("grants", 1), "requests_total": ("requests", 1),
         "launches_total": ("launches", 1), "memory_bytes": ("memory_bytes", 1), "weight": ("weight", 1),
         "memory_limit_bytes": ("memory_limit_bytes", 1), "holds_total": ("holds", 1),
         "sliced_total": ("sliced", 1), "left_whole_total": ("left_whole", 1)}


def ctl(daemon, *arguments):
    done = subprocess.run([CTL, "--socket", daemon.control, *arguments], text=True, capture_output=True,
                          timeout=PATIENCE_S, check=False)
    expect(done.returncode == 0 and not done.stderr, done)
    return done.stdout


def base_of(name, kinds):
    """The family of a sample."""
    short = re.sub(r"_(bucket|sum|count)$", "", name)
    return short if kinds.get(short) == "histogram" else name


def parse(text):
    """{family: type}, and {(name, labels): value}; each family's lines stand together, after its head."""
    kinds, helped, samples, current = {}, set(), {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            expect(name not in helped and words.endswith("."), line)
            helped.add(name)
        elif line.startswith("# TYPE "):
            current, kind = line[7:].split()
            expect(current in helped and current not in kinds, line)
            kinds[current] = kind
            expect((kind == "counter") == current.endswith("_total"), line)
        else:
            found = SAMPLE.fullmatch(line)
            expect(found and base_of(found[1], kinds) == current, line)
            labels = tuple(LABEL.findall(found[2]))
            expect((found[1], labels) not in samples, f"twice: {line}")
            samples[found[1], labels] = float(found[3])
    return kinds, samples


def expect_histograms(samples):
    """Buckets count up to +Inf, which is all."""
    counts = {}
    for (name, labels), value in samples.items():
        if name.endswith("_bucket"):
            *rest, (key, edge) = labels
            expect(key == "le", labels)
            counts.setdefault((name[:-7], tuple(rest)), []).append((float(edge), value))
    for (name, labels), buckets in counts.items():
        edges, values = zip(*buckets)
        expect(list(edges) == sorted(edges) and edges[-1] == float("inf"), buckets)
        expect(list(values) == sorted(values) and values[-1] == samples[f"{name}_count", labels], buckets)
    return counts


def expect_promtool(text):
    if not shutil.which("promtool"):
        print("left out, as there is no promtool (package prometheus): its own look at the metrics")
        return
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True,
                          timeout=PATIENCE_S, check=False)
    expect(done.returncode == 0 and not done.stderr, done)


def of(samples, name, **wanted):
    return [value for (found, labels), value in samples.items()
            if found == name and wanted.items() <= dict(labels).items()]


def prometheus_reads_it():
    with backend({"vm1": 'memory = "1G"; weight = 3;', "vm2": ""}) as daemon:
        programs = [daemon.start(vm, MATMUL, *FOREVER) for vm in ("vm1", "vm2")]
        wait_until(lambda: all(vm["grants"] > 3 for vm in daemon.report()["vms"]), "turns of both")
        texts = [ctl(daemon, "metrics")]
        kinds, before = parse(texts[0])
        expect(of(before, "fairgv_session_launches_total", vm="vm1", program="matmul") != [], "sessions")
        wait_until(lambda: all(vm["launches"] > of(before, "fairgv_vm_launches_total", vm=vm["name"])[0]
                               for vm in daemon.report()["vms"]), "more launches")
        texts.append(ctl(daemon, "metrics"))
        later_kinds, later = parse(texts[1])
        expect(kinds == later_kinds and before.keys() == later.keys(), "what there is changes")
        for (name, labels), value in before.items():
            if kinds[base_of(name, kinds)] != "gauge":
                expect(later[name, labels] >= value, f"{name} {labels} shrinks")
        expect(of(later, "fairgv_vm_launches_total", vm="vm1") > of(before, "fairgv_vm_launches_total", vm="vm1"),
               "nothing grows")
        for program in programs:
            kill(program)
        daemon.expect_at_rest()
        texts.append(ctl(daemon, "metrics"))
        kinds, rest = parse(texts[2])
        report = json.loads(ctl(daemon, "stat", "--json"))
        for vm in report["vms"]:
            for name, (key, scale) in OF_VM.items():
                shown = of(rest, f"fairgv_vm_{name}", vm=vm["name"])
                expect(shown == [] if vm[key] is None else abs(shown[0] - vm[key] * scale) < 1e-6,
                       f"{vm['name']}: {name} {shown}, {key} {vm[key]}")
            expect(of(rest, "fairgv_vm_wait_seconds_count", vm=vm["name"]) == [vm["wait"]["count"]], vm)
            expect(of(rest, "fairgv_vm_sessions", vm=vm["name"]) == [0], rest)
        expect(of(rest, "fairgv_gpu_memory_bytes", gpu="0") == [4 << 30], rest)
        for text in texts:
            expect(len(expect_histograms(parse(text)[1])) >= 2, "histograms")
            expect_promtool(text)


def fake_wait(count):
    return {"count": count, "sum_ns": count, "max_ns": count, "histogram": [[1000, count]]}


def gpus_stand_by_themselves():
    """A VM of several GPUs has a line for each, as what it says of them in a report of this kind."""
    figures = {key: 7 for key in ("bytes_in", "bytes_out", "errors", "no_memory", "overruns", "overrun_ns", "stalls", "favoured", "requests", "round_trips", "launches",
                                  "holds", "starved", "weight")}
    shares = [{"device": gpu, "gpu_ns": gpu * 10**9, "grants": gpu, "memory_bytes": gpu << 20,
               "copy_in": {"gpu_ns": gpu * 10**8, "grants": 2 * gpu, "wait": fake_wait(gpu)}} for gpu in (1, 2)]
    report = {"time_ns": 1, "gpus": [],
              "vms": [{"name": "both", "device": 1, "gpu_ns": 3 * 10**9, "grants": 3, "memory_bytes": 3 << 20,
                       "sessions": [], "wait": fake_wait(5), "gpus": shares, **figures}]}
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen()
        with subprocess.Popen([CTL, "--socket", f"{folder}/socket", "metrics"], text=True,
                              stdout=subprocess.PIPE) as asking:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(json.dumps(report).encode() + b"\n")
            text = asking.communicate(timeout=PATIENCE_S)[0]
        expect(asking.returncode == 0, text)
    kinds, samples = parse(text)
    expect(kinds["fairgv_vm_copy_seconds_total"] == "counter", kinds)
    for gpu in (1, 2):
        for name, wanted in (("gpu_seconds_total", gpu), ("grants_total", gpu), ("memory_bytes", gpu << 20),
                             ("copy_seconds_total", gpu / 10), ("copy_grants_total", 2 * gpu),
                             ("copy_wait_seconds_count", gpu)):
            found = of(samples, f"fairgv_vm_{name}", vm="both", gpu=str(gpu))
            expect(len(found) == 1 and abs(found[0] - wanted) < 1e-9, f"{name} of GPU {gpu}: {found}")
    expect(of(samples, "fairgv_vm_launches_total", vm="both") == [7], "launches are of all together")
    expect_histograms(samples)
    expect_promtool(text)


def copies_and_failures_are_counted():
    size = 100000
    with backend({"copies": "", "small": 'memory = "1M";', "one": "sessions = 1;"}) as daemon:
        expect_verified(daemon.start("copies", "workloads/vecadd", "--size", size), "copies")
        forever = daemon.start("one", MATMUL, *FOREVER)
        wait_until(lambda: daemon.report()["vms"][2]["launches"] > 1, "kernels")
        for vm, why in (("small", "out of memory"), ("one", "as many as it may have")):
            status, _, err = finish(daemon.start(vm, "workloads/vecadd", "--size", 10 * size))
            expect(status != 0 and why in err, err)
        os.kill(daemon.report()["vms"][2]["sessions"][0]["vgpu_pid"], signal.SIGKILL)
        expect(finish(forever)[0] != 0, "a program whose process was killed")
        daemon.expect_at_rest()
        _, samples = parse(ctl(daemon, "metrics"))
    # A vector is copied back, and the count of what was done.
    for vm, name, wanted in (("copies", "copied_in_bytes", 2 * 4 * size), ("copies", "copied_out_bytes", 4 * size + 8),
                             ("copies", "errors", 0), ("small", "errors", 1), ("small", "memory_refusals", 1),
                             ("small", "copied_in_bytes", 0), ("one", "sessions_started", 1),
                             ("one", "sessions_refused", 1), ("one", "sessions_failed", 1),
                             ("small", "sessions_started", 1), ("small", "sessions_refused", 0),
                             ("small", "sessions_failed", 0)):
        found = of(samples, f"fairgv_vm_{name}_total", vm=vm)
        expect(found == [wanted], f"{vm}: {name} {found}, not {wanted}")


main(prometheus_reads_it, gpus_stand_by_themselves, copies_and_failures_are_counted)
