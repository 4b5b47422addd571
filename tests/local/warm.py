"""Processes that are kept ready: programs get them, whatever becomes of them, and the daemon's
end leaves none."""
import os
import pathlib
import resource
import signal
import subprocess
import time

from harness import backend, expect, expect_verified, finish, kill, main, wait_until

VMS = {"vm1": "", "vm2": ""}
MATMUL = "workloads/matmul"
VECADD = "workloads/vecadd"
FOREVER = ("--size", 64, "--iterations", 10000000)
MIB = 1 << 20
PROGRAMS_FROM = 0x7000_0000_0000     # on, programs have their libraries and most of their memory


def sessions(report):
    return {session["vgpu_pid"] for vm in report["vms"] for session in vm["sessions"]}


def ready(daemon):
    """The processes that are ready, once there is one on each GPU."""
    wait_until(lambda: all(gpu["warm"] for gpu in daemon.report()["gpus"]), "a process that is ready")
    served = sessions(daemon.report())
    return [pid for pid in daemon.children() if pid not in served]


def served_by(daemon, vm):
    report = daemon.report()
    return sessions({"vms": [entry for entry in report["vms"] if entry["name"] == vm]})


def killed_one_is_replaced(daemon):
    [first] = ready(daemon)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: "was killed by signal 9" in daemon.log(), "a line in the log")
    [second] = ready(daemon)
    expect(second != first, "the process that was killed is ready")
    expect_verified(daemon.start("vm1", VECADD), "a program after a process that was killed")


def programs_get_them():
    with backend(VMS, warm=1) as daemon:
        [first] = ready(daemon)
        program = daemon.start("vm1", MATMUL, *FOREVER)
        wait_until(lambda: served_by(daemon, "vm1") == {first}, "a session of the one that was ready")
        expect_verified(daemon.start("vm2", VECADD), "a program for which none was ready")
        ready(daemon)
        expect_verified(daemon.start("vm2", VECADD), "a program for which one was ready")
        expect(served_by(daemon, "vm1") == {first}, "the first session's process")
        kill(program)
        wait_until(lambda: not os.path.exists(f"/proc/{first}"), "its end with its session")
        killed_one_is_replaced(daemon)


def lie_apart():
    """Their libraries, and so all that is mapped as they are, where the system lets them."""
    asked = subprocess.run(["setarch", "--addr-compat-layout", "true"], check=False)
    with backend({"vm1": ""}, warm=1) as daemon:
        [pid] = ready(daemon)
        with open(f"/proc/{pid}/maps", encoding="ascii") as lines:
            highest = max(int(line.split("-")[0], 16) for line in lines if "/libc" in line)
    expect((highest < PROGRAMS_FROM) == (asked.returncode == 0), f"libraries at {highest:#x}")


def private_bytes(pid):
    """Of memory that is nobody else's."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))


def wake_ups(pids):
    """How often their threads have stopped running."""
    found = [path.read_text() for pid in pids
             for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(line.split()[1]) for text in found for line in text.splitlines()
               if "ctxt_switches" in line)


def idle_costs_nothing():
    """None of them wakes up by itself: a process that waits for a session, one that serves a
    program that does nothing, and the daemon. Their memory is bounded, too, with as many VMs as
    anybody has."""
    vms = {f"vm{i}": "" for i in range(100)}
    with backend(vms, warm=1) as daemon:
        program = daemon.start("vm7", MATMUL, *FOREVER, "--burst-ms", 1, "--sleep-ms", 1000000)
        wait_until(lambda: served_by(daemon, "vm7"), "a session")
        pids = [*ready(daemon), *served_by(daemon, "vm7")]
        expect(len(pids) == 2, f"{len(pids)} processes beside the daemon")
        for pid in pids:
            expect(private_bytes(pid) < 16 * MIB, f"{private_bytes(pid)} bytes of process {pid}")
        expect(private_bytes(daemon.process.pid) < 20 * MIB, "the daemon's memory")

        def sleep_on():
            before = wake_ups([*pids, daemon.process.pid])
            time.sleep(1)
            return wake_ups([*pids, daemon.process.pid]) == before
        wait_until(sleep_on, "a second in which no thread woke up")
        kill(program)


def says_why_it_can_not_open():
    """A soft GPU that has more memory than the process may map."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, before[1]))
    try:
        daemon = backend(VMS, warm=1, top='soft_memory = "64G";')
        with daemon as daemon:
            resource.setrlimit(resource.RLIMIT_AS, before)
            wait_until(lambda: "can't open it: soft device 0 can't be opened: CUDA error 2" in
                       daemon.log(), "the reason in the log")
            status, _, err = finish(daemon.start("vm1", VECADD))
            expect(status == 1 and "can't be opened" in err, f"status {status}: {err}")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def the_end_takes_them_along():
    for end in signal.SIGTERM, signal.SIGKILL:
        with backend(VMS, warm=2) as daemon:
            wait_until(lambda: len(ready(daemon)) == 2, "two processes")
            pids = daemon.children()
            daemon.process.send_signal(end)
            daemon.process.wait()
            wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "their end")
            if end == signal.SIGKILL:
                daemon.process.returncode = 0    # killed on purpose
                daemon.socket.unlink()


main(programs_get_them, lie_apart, idle_costs_nothing, says_why_it_can_not_open,
     the_end_takes_them_along)
