"""The configuration is read again, and settings are made and kept, while programs run: what changes
holds at once, what can't be taken over leaves everything as it was, and nobody else notices."""
import contextlib
import json
import os
import pathlib
import pwd
import random
import signal
import socket
import subprocess
import threading

from harness import BUILD, PATIENCE_S, RUN, Backend, Failure, backend, expect, expect_verified, finish, \
    kill, main, wait_until

CTL = BUILD / "tools/fairgvctl"
MATMUL = "workloads/matmul"
VECADD = "workloads/vecadd"
FOREVER = ("--size", 64, "--iterations", 10000000)
USER = pwd.getpwuid(os.getuid()).pw_name


def write(daemon, vms, top="warm = 0;"):
    """Another configuration for a daemon that runs, of VMs as the harness takes them."""
    entries = ",\n".join(
        f'{{ name = "{name}"; users = ["{USER}"]; {settings} }}' for name, settings in vms.items())
    text = f'gpu = "soft"; {top}\nvms = ( {entries} );\n'.replace("{folder}", str(daemon.folder))
    daemon.config.write_text(text)


def ask(daemon, **request):
    """A request to the daemon, and its reply."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(str(daemon.control))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile(encoding="utf-8") as reply:
            return json.load(reply)


def reload(daemon, **request):
    reply = ask(daemon, request="reload", **request)
    expect("error" not in reply, f"refused: {reply}")
    return {(change["vm"], change.get("key", change.get("event"))): change.get("after")
            for change in reply["changes"]}


def ctl(daemon, *arguments):
    return subprocess.run([CTL, "--socket", daemon.control, *map(str, arguments)], capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)


def vms_of(daemon):
    return {vm["name"]: vm for vm in ask(daemon, request="list")["vms"]}


def what_runs(daemon):
    """All of a report but what moves by itself."""
    report = ask(daemon, request="list")
    return [(vm["name"], vm["weight"], vm["request_ppm"], vm["memory_limit_bytes"],
             [(session["number"], session["vgpu_pid"]) for session in vm["sessions"]])
            for vm in report["vms"]]


@contextlib.contextmanager
def busy(daemon, *vms):
    """A program in each of the VMs, at work, that does not end before the block does."""
    programs = {vm: daemon.start(vm, MATMUL, *FOREVER) for vm in vms}

    def at_work():
        running = {vm["name"]: vm for vm in daemon.report()["vms"]}
        return all(running[vm]["launches"] > 1 for vm in vms)

    try:
        wait_until(at_work, "kernels in each VM")
        yield programs
    finally:
        for program in programs.values():
            kill(program)


def launches(daemon):
    return {vm["name"]: vm["launches"] for vm in daemon.report()["vms"]}


def expect_all_go_on(daemon, programs):
    before = launches(daemon)
    wait_until(lambda: all(launches(daemon)[vm] > before[vm] for vm in programs), "further kernels")
    for vm, program in programs.items():
        expect(program.poll() is None, f"the program in {vm} has ended")


# --- The file --------------------------------------------------------------------

def takes_over():
    with backend({"a": "weight = 1;", "b": 'memory = "1G";'}) as daemon:
        with busy(daemon, "a", "b") as programs:
            sessions = {name: vm["sessions"][0]["vgpu_pid"] for name, vm in vms_of(daemon).items()}
            write(daemon, {"c": "weight = 2;", "a": "weight = 5; sessions = 3;", "b": 'memory = "2G";'},
                  top="warm = 0; starts = 50;")
            done = reload(daemon)
            expect(done == {(None, "starts"): "50", ("a", "weight"): "5", ("a", "sessions"): "3",
                            ("b", "memory"): "2G", ("c", "added"): None}, f"changes: {done}")
            vms = vms_of(daemon)
            expect(list(vms) == ["c", "a", "b"] and vms["a"]["weight"] == 5
                   and vms["b"]["memory_limit_bytes"] == 2 << 30, f"{vms}")
            expect({name: vms[name]["sessions"][0]["vgpu_pid"] for name in sessions} == sessions,
                   f"other sessions: {vms}")
            expect_all_go_on(daemon, programs)
            expect_verified(daemon.start("c", VECADD), "a program in the new VM")
            expect(reload(daemon) == {}, "the same file changes something")
        write(daemon, {"a": "", "b": ""})
        reload(daemon)
        daemon.expect_at_rest()


REFUSED = (
    ("x", ":1: syntax error"),
    ('gpu = "soft"; nosuch = 1; vms = ( { name = "a"; } );', ":1: nosuch: unknown key"),
    ('gpu = "soft"; vms = ( { name = "a"; weight = 0; }, { name = "b"; } );',
     ":1: weight: out of range"),
    ('gpu = "soft:2"; policy = "none"; slice = "5ms"; lanes = 9; warm = 0; '
     'vms = ( { name = "a"; }, { name = "b"; device = 1; } );', ":1: device: there is no device 1"),
    ('gpu = "soft:2"; policy = "none"; slice = "5ms"; lanes = 9; warm = 0; '
     'vms = ( { name = "a"; }, { name = "b"; } );',
     "gpu, policy, slice, lanes can only be changed by starting the daemon again"),
    ('gpu = "soft"; warm = 0; vms = ( { name = "b"; }, { name = "c"; } );',
     'vm a is not in it any more, but has 1 program ("fairgvctl reload --end" ends them)'),
    ('gpu = "soft"; warm = 0; vms = ( { name = "a"; memory = "3G"; }, { name = "b"; memory = "3G"; } );',
     ":1: memory: the VMs of GPU 0 are given"),
    ('gpu = "soft"; warm = 0; vms = ( { name = "a"; weight = 7; }, { name = "b"; }, { name = "c"; '
     'socket = "{folder}/fresh/socket"; }, { name = "d"; socket = "{folder}/conf"; } );',
     "there is a file that is not a socket"),
)


def refuses_what_is_wrong():
    """Each time as a whole, and with what is wrong: nothing of the file holds, nothing is left."""
    with backend({"a": "", "b": ""}) as daemon, busy(daemon, "a", "b") as programs:
        before, descriptors = what_runs(daemon), daemon.descriptors()
        for text, why in REFUSED:
            daemon.config.write_text(text.replace("{folder}", str(daemon.folder)))
            for _ in range(2):
                reply = ask(daemon, request="reload")
                expect(why in reply.get("error", ""), f"{text}: {reply}")
            expect(what_runs(daemon) == before, f"{text}: {what_runs(daemon)}")
            expect(not list(daemon.folder.glob("fresh/socket")), "a socket is left")
        daemon.config.unlink()
        expect("No such file" in ask(daemon, request="reload")["error"], "without a file")
        expect(daemon.descriptors() == descriptors, "descriptors are left")
        result = ctl(daemon, "reload")
        expect(result.returncode == 1 and "No such file" in result.stderr, f"{result}")
        expect_all_go_on(daemon, programs)


def by_signal():
    with backend({"a": "weight = 1;"}) as daemon:
        write(daemon, {"a": "weight = 4;"})
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: vms_of(daemon)["a"]["weight"] == 4, "the new weight")
        expect("vm a: weight 1 -> 4, by SIGHUP" in daemon.log(), daemon.log())
        write(daemon, {"a": "weight = 0;"})
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "the configuration stays as it is" in daemon.log(), "the refusal")
        expect(vms_of(daemon)["a"]["weight"] == 4, "the weight of a refused file")


def removes():
    """What a VM's programs are told, and that its name, socket and users can come back."""
    vms = {"a": 'socket = "{folder}/a/socket";', "b": ""}
    with backend(vms) as daemon, busy(daemon, "a", "b") as programs:
        write(daemon, {"b": ""})
        expect("1 program" in ask(daemon, request="reload")["error"], "not asked to end it")
        result = ctl(daemon, "reload", "--end")
        expect(result.returncode == 0 and result.stdout == "a: removed\n", f"{result}")
        status, _, err = finish(programs.pop("a"))
        expect(status == 1 and "the host's administrator has removed its VM" in err, f"{status}: {err}")
        expect(not pathlib.Path(f"{daemon.folder}/a/socket").exists(), "its socket is left")
        status, _, err = finish(daemon.start("a", VECADD))
        expect(status != 0 and 'may not use a VM called "a"' in err, f"{status}: {err}")
        expect_all_go_on(daemon, programs)
        write(daemon, vms)
        expect(reload(daemon) == {("a", "added"): None}, "it comes back")
        expect_verified(daemon.start("a", VECADD), "a program in the VM that came back")
        expect_verified(at_socket(f"{daemon.folder}/a/socket"), "a program at its socket")
        expect_all_go_on(daemon, programs)


def at_socket(path):
    return subprocess.Popen([RUN, "--socket", path, "--", BUILD / VECADD], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def vm_at(daemon, path):
    """Where a program is that connects there."""
    before = launches(daemon)
    expect_verified(at_socket(path), f"a program at {path}")
    return [name for name, count in launches(daemon).items() if count > before[name]]


def sockets_move():
    with backend({"a": 'socket = "{folder}/x/socket";', "b": 'socket = "{folder}/y/socket";'}) as daemon:
        x, y, z = (f"{daemon.folder}/{name}/socket" for name in "xyz")
        inode = os.stat(x).st_ino
        expect(vm_at(daemon, x) == ["a"] and vm_at(daemon, y) == ["b"], "as they begin")
        # Two change places: the files stay, as containers have them mounted.
        write(daemon, {"a": f'socket = "{y}";', "b": f'socket = "{x}";'})
        reload(daemon)
        expect(vm_at(daemon, x) == ["b"] and vm_at(daemon, y) == ["a"], "after they have changed places")
        # A VM gets another name.
        write(daemon, {"c": f'socket = "{y}";', "b": f'socket = "{x}";'})
        expect(reload(daemon) == {("a", "removed"): None, ("c", "added"): None}, "a is called c")
        expect(vm_at(daemon, y) == ["c"] and os.stat(x).st_ino == inode, "at the socket of a")
        write(daemon, {"c": f'socket = "{z}";', "b": ""})
        reload(daemon)
        expect(vm_at(daemon, z) == ["c"] and not os.path.exists(x) and not os.path.exists(y), "elsewhere")


def requests_change_places():
    """What is promised is never more than the whole, also on the way from one file to another."""
    first = {"a": 'request = "80%"; slo = "40ms";', "b": 'request = "20%"; limit = "30%";'}
    with backend(first, top='policy = "gemini";') as daemon, busy(daemon, "a", "b") as programs:
        top = 'policy = "gemini"; warm = 0;'
        second = {"a": 'request = "10%"; limit = "30%";', "b": 'request = "40%"; slo = "30ms";',
                  "c": 'request = "50%";'}
        for _ in range(5):
            write(daemon, second, top)
            reload(daemon)
            vms = vms_of(daemon)
            expect([vm["request_ppm"] for vm in vms.values()] == [100000, 400000, 500000]
                   and vms["a"]["slo_ns"] == 0 and vms["b"]["limit_ppm"] == 1000000, f"{vms}")
            write(daemon, first, top)
            reload(daemon)
            expect(vms_of(daemon)["a"]["request_ppm"] == 800000, "the first file again")
        expect("error" not in daemon.log(), daemon.log())
        expect_all_go_on(daemon, programs)


def resident_kib(daemon):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])


def two_hundred_times():
    """Under load: VMs come and go, values change, and programs in three VMs see nothing of it."""
    steady = {name: "" for name in ("a", "b", "c")}
    with backend(steady) as daemon:
        programs = [daemon.start(name, MATMUL, "--size", 64, "--iterations", 500) for name in steady]
        at_rest = {}
        for i in range(250):
            vms = {name: f"weight = {1 + (i + place) % 7};" for place, name in enumerate(steady)}
            for guest in range(i % 4):
                vms[f"guest{(i + guest) % 5}"] = f'socket = "{daemon.folder}/g{guest}/socket";'
            write(daemon, vms)
            reload(daemon)
            if i == 49:
                at_rest["kib"] = resident_kib(daemon)
        for program in programs:
            expect_verified(program, "a program while the configuration was read again and again")
        write(daemon, steady)
        reload(daemon)
        expect(resident_kib(daemon) < at_rest["kib"] + 1024,
               f"{at_rest['kib']} KiB after 50 times, now {resident_kib(daemon)}")
        daemon.expect_at_rest()


# --- Settings ---------------------------------------------------------------------

def expect_set(daemon, *arguments):
    result = ctl(daemon, "set", *arguments)
    expect(result.returncode == 0, f"set {arguments}: {result}")
    return result.stdout


def sets():
    with backend({"a": 'memory = "1G";', "b": ""}) as daemon, busy(daemon, "a", "b") as programs:
        told = expect_set(daemon, "a", "weight=3", "memory=2G", "sessions=1", "users=0,77",
                          "processors=2", "images=0", "process_memory=8G")
        expect(told == f"a: weight 1 -> 3\na: memory 1G -> 2G\na: users {os.getuid()} -> 0,77\n"
               "a: sessions 64 -> 1\na: process_memory 16G -> 8G\na: processors 0 -> 2\n"
               "a: images 256M -> 0\n", told)
        vm = vms_of(daemon)["a"]
        expect(vm["weight"] == 3 and vm["memory_limit_bytes"] == 2 << 30, f"{vm}")
        status, _, err = finish(daemon.start("a", VECADD))
        expect(status != 0 and "as many as it may have" in err, f"{status}: {err}")
        # The file says what it did: what was set holds on.
        write(daemon, {"a": 'memory = "1G";', "b": "weight = 2;"})
        reload(daemon)
        expect(vms_of(daemon)["a"]["weight"] == 3, "what was set, after the file was read again")
        # It says something else: it has the last word.
        write(daemon, {"a": 'memory = "1G"; weight = 6;', "b": "weight = 2;"})
        expect(reload(daemon) == {("a", "weight"): "6"}, "changes")
        expect(expect_set(daemon, "a", "memory=", "sessions=") ==
               "a: memory 2G -> 1G\na: sessions 1 -> 64\n", "what is taken back")
        expect(expect_set(daemon, "a", "weight=6") == "nothing has changed\n", "what it is")
        expect_all_go_on(daemon, programs)


def a_quota_holds_at_once():
    with backend({"a": ""}) as daemon:
        expect_set(daemon, "a", "memory=1M")
        status, _, err = finish(daemon.start("a", VECADD))
        expect(status != 0 and "out of memory" in err, f"{status}: {err}")
        expect_set(daemon, "a", "memory=none")
        expect_verified(daemon.start("a", VECADD), "a program without a quota")


def keeps():
    with backend({"a": "", "b": 'memory = "1G";'}) as daemon:
        kept = pathlib.Path(f"{daemon.socket}.settings")
        expect_set(daemon, "a", "weight=3", "--save")
        expect_set(daemon, "b", "memory=2G", "users=0", "--save")
        expect_set(daemon, "a", "sessions=1")
        text = daemon.config.read_text()
        daemon.process.kill()
        daemon.process.wait()
        daemon.launch()
        vms = vms_of(daemon)
        expect(vms["a"]["weight"] == 3 and vms["b"]["memory_limit_bytes"] == 2 << 30, f"{vms}")
        expect(daemon.config.read_text() == text, "the administrator's file was written")
        expect_set(daemon, "a", "weight=", "--save")
        expect_set(daemon, "b", "memory=", "users=", "--save")
        expect(vms_of(daemon)["a"]["weight"] == 1 and not kept.exists(), "nothing is kept any more")


def killed_while_it_keeps():
    """At any moment: there is the old file or the new one."""
    with backend({"a": ""}) as daemon:
        for i in range(4):
            stop = threading.Event()

            def set_on():
                weight = 1
                while not stop.is_set():
                    weight = weight % 9000 + 1
                    with contextlib.suppress(OSError, ValueError):
                        ask(daemon, request="set", vm="a", settings={"weight": str(weight)}, save=True)

            setter = threading.Thread(target=set_on)
            setter.start()
            stop.wait(random.uniform(0.05, 0.2))
            daemon.process.kill()
            daemon.process.wait()
            stop.set()
            setter.join()
            daemon.launch()
            expect(daemon.ready_line, f"round {i}: {daemon.log()}")
            expect(set(vms_of(daemon)) == {"a"}, f"round {i}")


def killed_while_it_reads():
    with backend({"a": ""}) as daemon:
        for i in range(4):
            stop = threading.Event()

            def reload_on():
                number = 0
                while not stop.is_set():
                    number += 1
                    write(daemon, {"a": "", f"b{number}": f'socket = "{daemon.folder}/s{number % 3}/s";'})
                    with contextlib.suppress(OSError, ValueError):
                        ask(daemon, request="reload", end=True)

            reader = threading.Thread(target=reload_on)
            reader.start()
            stop.wait(random.uniform(0.05, 0.2))
            daemon.process.kill()
            daemon.process.wait()
            stop.set()
            reader.join()
            daemon.launch()
            expect(daemon.ready_line, f"round {i}: {daemon.log()}")
        expect_verified(daemon.start("a", VECADD), "a program afterwards")
        write(daemon, {"a": ""})
        reload(daemon)


main(takes_over, refuses_what_is_wrong, by_signal, removes, sockets_move, requests_change_places,
     two_hundred_times, sets, a_quota_holds_at_once, keeps, killed_while_it_keeps, killed_while_it_reads)
