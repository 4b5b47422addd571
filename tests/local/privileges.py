"""What the processes that serve programs may do, and which users get one: a user for each VM, what
containers are, how often sessions may start; and all of it with a daemon that is not root."""
import os
import pathlib
import subprocess
import sys
import traceback

from harness import BACKEND, BUILD, RUN, BackendProcess, backend, expect, expect_verified, finish, kill, main, wait_until

MATMUL = "workloads/matmul"
VECADD = "workloads/vecadd"
FOREVER = ("--size", 64, "--iterations", 10000000)
FIRST_UID = 1900000000
NOBODY = 65534
IS_ROOT = os.getuid() == 0


def status(pid, key, task=None):
    path = f"/proc/{pid}/task/{task}/status" if task else f"/proc/{pid}/status"
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(key + ":"):
            return line.split()[1:]
    return None


def expect_confined(pid, uid):
    for task in os.listdir(f"/proc/{pid}/task"):
        expect(status(pid, "Seccomp", task) == ["2"], f"{task} has no filter")
        expect(status(pid, "NoNewPrivs", task) == ["1"], f"{task} may gain privileges")
        if IS_ROOT:
            expect(status(pid, "Uid", task) == [str(uid)] * 4, f"user of {task}, not {uid}")
            expect(status(pid, "Gid", task) == [str(uid)] * 4, f"group of {task}, not {uid}")
            expect(status(pid, "Groups", task) in ([], None), f"groups of {task}")
            expect(int(status(pid, "CapPrm", task)[0], 16) == 0, f"capabilities of {task}")
    expect(int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text()) >= 500,
           "where memory is short others go first")
    if IS_ROOT:
        for space in ("net", "ipc", "uts"):
            expect(os.readlink(f"/proc/{pid}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}"),
                   f"its {space} namespace is the daemon's")


def each_vm_is_a_user():
    """The one that was kept ready is nobody's until it is a VM's."""
    with backend({"vm1": "", "vm2": ""}, warm=1) as daemon:
        wait_until(lambda: all(gpu["warm"] for gpu in daemon.report()["gpus"]), "one that is ready")
        programs = [daemon.start(vm, MATMUL, *FOREVER) for vm in ("vm1", "vm2")]

        def sessions():
            return {vm["name"]: [session["vgpu_pid"] for session in vm["sessions"]]
                    for vm in daemon.report()["vms"]}
        wait_until(lambda: all(sessions().values()), "two sessions")
        for vm, pids in sessions().items():
            wait_until(lambda pid=pids[0]: status(pid, "Seccomp") == ["2"], "its sandbox")
            expect_confined(pids[0], FIRST_UID + int(vm[-1]) - 1)
        for program in programs:
            kill(program)


def run(prefix, socket, *options):
    return subprocess.run([*prefix, RUN, "--socket", socket, *options, "--", BUILD / VECADD],
                          capture_output=True, text=True, check=False, timeout=120)


def passes(prefix, socket, *options):
    result = run(prefix, socket, *options)
    return result.returncode == 0 and "verified=yes" in result.stdout


def can(prefix):
    return subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0


CONTAINERS = {
    "a container of root's": ["unshare", "--pid", "--fork"],
    "a container with a user namespace": ["unshare", "--user", "--map-root-user", "--pid", "--fork"],
}


def containers():
    """Only their VM's own socket lets them in; there they are nobody else's, either."""
    with backend({"vm1": "", "vm2": "socket = \"{folder}/own/socket\";"}) as daemon:
        own = daemon.folder / "own/socket"
        expect(own.parent.stat().st_mode & 0o77 == 0, "users of the host get to a VM's own socket")
        expect(passes([], own), "a VM's own socket")
        expect(passes([], own, "--vm", "vm2"), "a VM's own socket, by its name")
        expect(not passes([], own, "--vm", "vm1"), "another VM by a VM's own socket")
        for name, prefix in CONTAINERS.items():
            if not can(prefix):
                print(f"not tried: {name}: this machine does not let us make one")
                continue
            expect(passes(prefix, own), f"{name}, by its VM's socket")
            if IS_ROOT:      # else its root is the user that made it
                for vm in (["--vm", "vm1"], ["--vm", "vm2"], []):
                    expect(not passes(prefix, daemon.socket, *vm), f"{name} counts as root: {vm}")
        expect(passes([], daemon.socket, "--vm", "vm1"), "a program that is in no container")


def starts_are_limited():
    with backend({"vm1": "", "vm2": ""}, top="starts = 1; starts_burst = 2;") as daemon:
        def is_refused():
            finish(daemon.start("vm1", VECADD))
            return "starts sessions too often: 1 a second at most (key starts)" in daemon.log()
        wait_until(is_refused, "a refusal")
        wait_until(lambda: passes([], daemon.socket, "--vm", "vm1"), "a start, later")


def recording_refuses_nothing():
    """The soft GPU makes no call but those that all sessions make, so there is nothing to record."""
    with backend({"vm1": ""}, gpu="soft", top="sandbox = \"record\";") as daemon:
        expect_verified(daemon.start("vm1", VECADD), "a program that is recorded")
        expect("recorded:" not in daemon.log(), f"calls off the list: {daemon.log()}")


def calls_are_on_the_list():
    with backend({"vm1": ""}) as daemon:
        for program in (VECADD, MATMUL, "workloads/srad"):
            expect_verified(daemon.start("vm1", program), program)
        expect("refused system call" not in daemon.log(), f"calls off the list: {daemon.log()}")


def works_without_root():
    """In a process of its own, which is nobody if this one is root."""
    pid = os.fork()
    if not pid:
        if IS_ROOT:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        ok = False
        try:
            os.environ.pop("FAIRGV_DUMPABLE", None)
            without_root()
            ok = True
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(not ok)
    expect(os.waitpid(pid, 0)[1] == 0, "with a daemon that is not root")


def without_root():
    process = BackendProcess(BACKEND, {"vm1": ""}, "soft", "warm = 0;")
    try:
        look_without_root(process)
    finally:
        process.stop()


def look_without_root(daemon):
    """Its own user can't open its memory, so that vGPU processes, which are that user, can't."""
    try:
        open(f"/proc/{daemon.process.pid}/mem", "r+b").close()
    except PermissionError:
        pass
    else:
        expect(False, "the daemon's memory can be opened by its user")
    for _ in range(2):
        expect(passes([], daemon.socket), f"a program: {daemon.log()}")
    said = daemon.log().count("a user of their VM's own")
    expect(said == 1, f"what the sandbox lacks is said {said} times")


main(each_vm_is_a_user, containers, starts_are_limited, recording_refuses_nothing,
     calls_are_on_the_list, works_without_root)
