"""fairgvctl against a backend with two VMs on the soft GPU: what it shows, what it changes,
and what it says when it can't."""
import contextlib
import json
import os
import pathlib
import pwd
import socket
import subprocess
import tempfile
import threading

from harness import BACKEND, BUILD, PATIENCE_S, RUN, backend, expect, expect_verified, finish, kill, main, \
    wait_until

CTL = BUILD / "tools/fairgvctl"
MATMUL = "workloads/matmul"
VECADD = "workloads/vecadd"
VMS = {"vm1": "weight = 1;", "vm2": "weight = 3;"}
FOREVER = ("--size", 64, "--iterations", 10000000)    # kernels of a few milliseconds
MS = 1_000_000


def run(*arguments):
    return subprocess.run([CTL, *map(str, arguments)], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)


def control(daemon):
    return f"{daemon.socket}.control"


def ctl(daemon, *arguments):
    """What it prints, where it must work."""
    result = run("--socket", control(daemon), *arguments)
    expect(result.returncode == 0 and not result.stderr,
           f"{arguments}: status {result.returncode}: {result.stdout}{result.stderr}")
    return result.stdout


def expect_refused(result, status, text):
    expect(result.returncode == status and text in result.stderr and not result.stdout
           and len(result.stderr.splitlines()) == 1,
           f"{result.args[1:]}: status {result.returncode}: {result.stdout}{result.stderr}")


def tables(text):
    """The tables in a text, each a list of rows, the first with the names of the columns."""
    return [[line.split() for line in table.splitlines()] for table in text.split("\n\n")]


def stat(daemon, *arguments):
    report = json.loads(ctl(daemon, "stat", "--json", *arguments))
    return report, {vm["name"]: vm for vm in report["vms"]}


@contextlib.contextmanager
def busy(daemon, *vms):
    """A program in each of the VMs that does not end before the block does."""
    programs = [daemon.start(vm, MATMUL, *FOREVER) for vm in vms]
    try:
        wait_until(lambda: all(stat(daemon)[1][vm]["launches"] > 1 for vm in vms),
                   "kernels in each VM")
        yield
    finally:
        for program in programs:
            kill(program)


def usage():
    for arguments, text in (
            ((), "list, stat, set, end, freeze, thaw, reload, top, metrics, doctor or cdi?"), (("nosuch",), "no command nosuch"),
            (("list", "vm1"), "list takes no argument"), (("set", "vm1", "weight=1", "--json"), "for list and stat"),
            (("end",), "number of a session"), (("end", "x"), "whole number"), (("end", "0"), "whole number"),
            (("stat", "--count", 2), "--interval"), (("stat", "--count", 0), "--count 0"),
            (("stat", "--interval", "0"), "--interval 0"),
            (("stat", "--interval", "x"), "--interval x"),
            (("stat", "--interval", "nan"), "--interval nan"),
            (("stat", "a b"), "can be called"), (("set",), "set takes"),
            (("set", "vm1"), "set takes"), (("set", "vm1", "weight=1", "x"), "KEY=VALUE"),
            (("set", "vm1", "nosuch=1"), 'no key "nosuch"'), (("reload", "vm1"), "reload takes no argument"),
            (("list", "--save"), "--save is for set"), (("set", "vm1", "weight=1", "--end"), "--end is for reload"),
            (("set", "vm1", "limit=1%", "limit=2%"), "set already"),
            (("--socket", "x", "--config", "y", "list"), "not both"),
            (("thaw", "vm1", "--to", "x"), "--to is for freeze"),
            (("freeze", "vm1", "--from", "x"), "--from is for thaw"),
            (("freeze", "vm1", "--key-file", "x"), "--key-file is for"),
            (("freeze", "--to", "x"), "takes a VM"),
            (("--nosuch",), "unrecognized option")):
        expect_refused(run(*arguments), 2, text)
    for option in "--help", "--version":
        expect(run(option).returncode == 0, f"status of {option}")


def nobody_there():
    with tempfile.TemporaryDirectory() as folder:
        for path in f"{folder}/nothing", f"{folder}/{'x' * 200}":
            expect_refused(run("--socket", path, "list"), 1, path)
        expect_refused(run("--config", f"{folder}/conf", "list"), 1, f"{folder}/conf")
    with backend(VMS) as daemon:
        expect_refused(run("--socket", daemon.socket, "list"), 1, "where programs connect")


def answer(listener, reply):
    """One exchange of a daemon that answers with @reply."""
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(reply)


def nonsense():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = f"{folder}/socket"
        listener.bind(path)
        listener.listen()
        for command in (("list",), ("list", "--json"), ("stat",), ("stat", "--json"),
                        ("set", "a", "weight=1"), ("end", "1"), ("reload",)):
            for reply, text in ((b"", "no reply"), (b'{"vms": [', "no reply"),
                                (b"x\n", "not understood"), (b"[]\n", "not understood"),
                                (b"{}\n", "not understood"), (b'{"vms": 1}\n', "not understood"),
                                (b'{"error": "a\\nb"}\n', "a?b")):
                daemon = threading.Thread(target=answer, args=(listener, reply))
                daemon.start()
                expect_refused(run("--socket", path, *command), 1, text)
                daemon.join()


def says_no():
    with backend(VMS) as daemon:
        for arguments, text in ((("stat", "nosuch"), 'no VM called "nosuch"'),
                                (("set", "nosuch", "weight=1"), 'no VM called "nosuch"'),
                                (("set", "vm1", "weight=0"), "must be 1 to 10000"),
                                (("set", "vm1", "weight=10001"), "must be 1 to 10000"),
                                (("set", "vm1", "weight=1.5"), "whole number"),
                                (("set", "vm1", "weight=99999999999999999999"), "whole number"),
                                (("set", "vm1", "limit=101%"), "is not a share"),
                                (("set", "vm1", "name=x"), '"name" can\'t be set, but weight'),
                                (("set", "vm1", "limit=50%"), 'policy "fair" knows no limits')):
            expect_refused(run("--socket", control(daemon), *arguments), 1, text)
        daemon.expect_at_rest()


def can_not_write():
    with backend(VMS) as daemon, open("/dev/full", "w", encoding="ascii") as full:
        result = subprocess.run([CTL, "--socket", control(daemon), "list"], stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        expect(result.returncode == 1 and "can't write" in result.stderr, result.stderr)


def lists():
    with backend(VMS) as daemon:
        gpus, vms, sessions = tables(ctl(daemon, "list"))
        expect(gpus[1][:2] == ["0", "fair"], f"GPUs: {gpus}")
        expect([row[:4] + row[-2:] for row in vms[1:]] ==
               [["vm1", "1", "25.0%", "0", "0", "-"], ["vm2", "3", "75.0%", "0", "0", "-"]],
               f"VMs: {vms}")
        expect(len(sessions) == 1, f"sessions: {sessions}")
        with busy(daemon, "vm2"):
            _, vms, sessions = tables(ctl(daemon, "list"))
            expect(vms[2][:4] + vms[2][-2:] == ["vm2", "3", "75.0%", "0", "1", "-"], f"VMs: {vms}")
            [vm, _, gpu, state, interactive, pid, user, program] = sessions[1]
            expect(gpu == "0", gpu)
            expect(vm == "vm2" and interactive in ("yes", "no") and state in ("holding", "waiting", "idle") and program == "matmul"
                   and user == pwd.getpwuid(os.getuid()).pw_name and os.path.exists(f"/proc/{pid}"),
                   f"session: {sessions}")
        daemon.expect_at_rest()


def config_says_where():
    with backend(VMS) as daemon, tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "conf")
        config.write_text(f'control = "{control(daemon)}";\nvms = ( {{ name = "x"; }} );\n')
        result = run("--config", config, "list")
        expect(result.returncode == 0 and "vm2" in result.stdout, result.stderr)


def expect_figures(figures):
    wait = figures["wait"]
    edges = [edge for edge, _ in wait["histogram"]]
    expect(sum(count for _, count in wait["histogram"]) == wait["count"], f"histogram: {wait}")
    expect(edges == sorted(edges) and all(count for _, count in wait["histogram"]),
           f"histogram: {wait}")
    expect(0 <= wait["p50_ns"] <= wait["p99_ns"] <= wait["max_ns"], f"quantiles: {wait}")
    expect(wait["max_ns"] <= wait["sum_ns"], f"sum: {wait}")
    expect(figures["grants"] >= wait["count"] > 0, f"grants: {figures}")
    expect(figures["overruns"] <= figures["grants"], f"overruns: {figures}")
    expect(figures["requests"] >= figures["launches"] > 0, f"requests: {figures}")
    expect(figures["requests"] >= figures["round_trips"], f"round trips: {figures}")


def stat_while_and_after():
    with backend(VMS) as daemon:
        with busy(daemon, "vm1", "vm2"):
            report, vms = stat(daemon)
            for vm in vms.values():
                [session] = vm["sessions"]
                expect_figures(vm)
                expect_figures(session)
                expect(session["gpu_ns"] <= vm["gpu_ns"], f"more than its VM: {vm}")
                expect(session["memory_bytes"] == vm["memory_bytes"] > 0, f"memory: {vm}")
            [gpu] = report["gpus"]
            expect(gpu["gpu_ns"] >= sum(vm["gpu_ns"] for vm in vms.values()), f"{report}")
            expect(gpu["weight"] == 4 and gpu["policy"] == "fair", f"GPU: {gpu}")
        daemon.expect_at_rest()
        _, after = stat(daemon)
        for name, vm in after.items():
            expect(not vm["sessions"] and not vm["memory_bytes"], f"something is left: {vm}")
            for key in "gpu_ns", "grants", "requests", "launches":
                expect(vm[key] >= vms[name][key], f"{key} of {name} went back")
        expect_verified(daemon.start("vm1", VECADD), "one more program")
        daemon.expect_at_rest()
        _, later = stat(daemon)
        expect(later["vm1"]["requests"] > after["vm1"]["requests"], "its requests are not there")
        expect(later["vm2"] == after["vm2"], "those of the other VM have changed")
        expect(list(stat(daemon, "vm2")[1]) == ["vm2"], "a VM that was not asked for")


def stat_as_a_table():
    with backend(VMS) as daemon, busy(daemon, "vm1", "vm2"):
        [rows] = tables(ctl(daemon, "stat"))
        expect([row[:2] for row in rows[1:]] ==
               [["vm1", "all"], ["vm1", "1"], ["vm2", "all"], ["vm2", "2"]] or
               [row[:2] for row in rows[1:]] ==
               [["vm1", "all"], ["vm1", "2"], ["vm2", "all"], ["vm2", "1"]], f"rows: {rows}")


def stat_at_an_interval():
    with backend(VMS) as daemon, busy(daemon, "vm1", "vm2"):
        reports = tables(ctl(daemon, "stat", "--interval", 0.3, "--count", 2))
        expect(len(reports) == 2, f"reports: {reports}")
        for rows in reports:
            shares = [float(row[3].rstrip("%")) for row in rows[1:] if row[1] == "all"]
            expect(len(shares) == 2 and sum(shares) < 101, f"shares: {rows}")
        lines = ctl(daemon, "stat", "--json", "--interval", 0.1, "--count", 3).splitlines()
        expect(len(lines) == 3, f"lines: {lines}")
        for before, after in zip(map(json.loads, lines), map(json.loads, lines[1:])):
            expect(before["time_ns"] < after["time_ns"], "the clock")
            for old, new in zip(before["vms"], after["vms"]):
                expect(old["gpu_ns"] <= new["gpu_ns"] and old["requests"] <= new["requests"],
                       f"totals go back: {old} {new}")


def share_of_vm1(daemon, gpu_ns):
    """Of the next @gpu_ns that the two VMs use."""
    _, before = stat(daemon)
    wait_until(lambda: stat(daemon)[0]["gpus"][0]["gpu_ns"] >=
               sum(vm["gpu_ns"] for vm in before.values()) + gpu_ns, "GPU time")
    _, after = stat(daemon)
    gained = {name: after[name]["gpu_ns"] - before[name]["gpu_ns"] for name in VMS}
    return gained["vm1"] / sum(gained.values())


def set_takes_effect():
    with backend({"vm1": "weight = 1;", "vm2": "weight = 1;"}) as daemon:
        with busy(daemon, "vm1", "vm2"):
            even = share_of_vm1(daemon, 500 * MS)
            expect(ctl(daemon, "set", "vm1", "weight=9") == "vm1: weight 1 -> 9\n", "what it says")
            rows = tables(ctl(daemon, "list"))[1]
            expect(["vm1", "9", "90.0%", "0"] in [row[:4] for row in rows], rows)
            more = share_of_vm1(daemon, 500 * MS)
            # A guest that the processors' load keeps from posting leaves its turn to others.
            expect(0.3 < even < 0.7 and more > even + 0.1, f"shares: {even}, then {more}")
        daemon.expect_at_rest()


def lists_for_programs():
    with backend({"vm1": "weight = 3;", "vm2": 'ivshmem = "{folder}/vm2.sock";'}) as daemon:
        reply = json.loads(ctl(daemon, "list", "--json"))
        expect([vm["name"] for vm in reply["vms"]] == ["vm1", "vm2"], reply)
        expect("qemu_pid" not in reply["vms"][0] and reply["vms"][1]["qemu_pid"] is None, reply)
        rows = tables(ctl(daemon, "list"))[1]
        expect(rows[0][-1] == "QEMU" and rows[1][-1] == "-" and rows[2][-1] == "none", rows)


def shows_memory():
    """What a GPU has, what its VMs may use of it, and what they do."""
    with backend({"vm1": 'memory = "1G";', "vm2": ""}) as daemon:
        with busy(daemon, "vm1"):
            reply = json.loads(ctl(daemon, "list", "--json"))
            vm1, vm2 = reply["vms"]
            expect(reply["gpus"][0]["memory_bytes"] == 4 << 30, reply["gpus"])
            expect(vm1["memory_limit_bytes"] == 1 << 30 and vm2["memory_limit_bytes"] is None, reply)
            expect(vm1["memory_bytes"] > 0 and vm2["memory_bytes"] == 0, reply)
            gpus, vms, _ = tables(ctl(daemon, "list"))
            expect("4.0 GiB" in " ".join(gpus[1]), gpus)
            expect("1.0 GiB 1 -" in " ".join(vms[1]) and " ".join(vms[2]).endswith("- 0 -"), vms)
            rows = tables(ctl(daemon, "stat"))[0]
            expect(rows[0][-1] == "limit", rows)
            [of_vm1] = [row for row in rows if row[:2] == ["vm1", "all"]]
            expect(of_vm1[-2:] == ["1.0", "GiB"], rows)


def starts(config, *options):
    """A daemon with the soft GPU, which has 4 GiB; what it says until it ends or serves."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "conf"
        path.write_text(config)
        with open(f"{folder}/log", "w+", encoding="utf-8") as log, subprocess.Popen(
                [BACKEND, "--config", path, "--socket", f"{folder}/socket", *options],
                stdout=log, stderr=log) as process:
            wait_until(lambda: process.poll() is not None or
                       pathlib.Path(f"{folder}/socket.control").exists(), "start")
            process.terminate()
            status = process.wait(PATIENCE_S)
            log.seek(0)
            return status, log.read().replace(str(path), "conf")


def promises_no_memory_twice():
    for vms in ('( { name = "a"; memory = "800G"; } )',
                '( { name = "a"; memory = "3G"; },\n { name = "b"; memory = "2G"; } )'):
        config = f'gpu = "soft";\nvms = {vms};\n'
        line = 2 + vms.count("\n")
        for options in ((), ("--check",)):
            status, said = starts(config, *options)
            expect(status == 1 and f"conf:{line}: memory: the VMs of GPU 0 are given" in said
                   and "overcommit = true" in said, said)
            status, said = starts("overcommit = true;" + config, *options)
            expect(status == 0 and f"warning: conf:{line}: memory: the VMs" in said, said)


def ends_a_session():
    with backend({"vm1": "", "vm2": ""}) as daemon:
        victim = daemon.start("vm1", MATMUL, *FOREVER)
        other = daemon.start("vm2", MATMUL, *FOREVER)
        sessions = []

        def at_work():
            sessions[:] = [vm["sessions"] for vm in daemon.report()["vms"]]
            return all(each and each[0]["launches"] for each in sessions)

        wait_until(at_work, "both at work")
        user = pwd.getpwuid(os.getuid()).pw_name
        rows = tables(ctl(daemon, "list"))[2]
        expect(all(row[6] == user for row in rows[1:]), f"users' names: {rows}")
        ctl(daemon, "end", sessions[0][0]["number"])
        status, _, err = finish(victim)
        expect(status == 1 and "the session is lost: the host's administrator has ended it" in err,
               f"{status}: {err}")
        expect(other.poll() is None, "the other program has ended, too")
        again = run("--socket", f"{daemon.socket}.control", "end", sessions[0][0]["number"])
        expect(again.returncode == 1 and "there is no session" in again.stderr, again.stderr)
        kill(other)
        daemon.expect_at_rest()


def each_gpu():
    """A VM with two GPUs has a line for each, whose figures are of that GPU alone."""
    with backend({"both": "devices = [1, 0]; weight = 3;", "one": "device = 0;"}, gpu="soft:2") as daemon:
        with busy(daemon, "both"):
            _, vms, _ = tables(ctl(daemon, "list"))
            lines = [row[:4] for row in vms[1:]]
            expect(lines == [["both", "3", "100.0%", "1"], ["both", "3", "75.0%", "0"],
                             ["one", "1", "25.0%", "0"]], f"{vms}")
            expect([row[-2] for row in vms[1:]] == ["1", "1", "0"], f"sessions: {vms}")
            [stats] = tables(ctl(daemon, "stat", "both"))
            rows = {" ".join(row[1:3] if row[1] == "GPU" else row[1:2]): row for row in stats[1:]}
            expect(list(rows)[:3] == ["all", "GPU 1", "GPU 0"] and len(rows) == 4, f"{stats}")
            expect("100.0%" in rows["all"], f"all of the time of both: {stats}")
            expect("100.0%" in rows["GPU 1"], f"all of the first GPU's time: {stats}")
        daemon.expect_at_rest()


def private_daemon():
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        with subprocess.Popen([RUN, "--private", BUILD / MATMUL, *map(str, FOREVER)], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
            try:
                sockets = pathlib.Path(folder)
                wait_until(lambda: list(sockets.glob("*/socket.control")), "its socket")
                [path] = sockets.glob("*/socket.control")
                result = run("--socket", path, "list")
                expect(result.returncode == 0 and "default" in result.stdout, result.stderr)
            finally:
                program.terminate()
        expect(not os.listdir(folder), f"left behind: {os.listdir(folder)}")


main(usage, nobody_there, nonsense, says_no, can_not_write, lists, config_says_where,
     stat_while_and_after, stat_as_a_table, stat_at_an_interval, set_takes_effect,
     lists_for_programs, shows_memory, promises_no_memory_twice, ends_a_session, each_gpu,
     private_daemon)
