"""The whole way, on the soft GPU: CUDA programs in two guests, which fairgv-vm has started, of
one daemon. A case may kill a guest or the daemon, and has both back for the next.
"""
import itertools
import os
import signal

import hosted
from common import cases_of, expect, expect_equal, main, wait_until
from guest import require_qemu
from harness import backend
from kernel import Kernel

WINDOWS = 3
WEIGHTS = {"vm1": 1, "vm2": 2}
VECADD = "vecadd --size 20000 --iterations 100"
MATMUL = "matmul --size 96 --iterations 5"
FOREVER = "matmul --size 64 --iterations 10000000"     # kernels of a few milliseconds
WAITING = f"{FOREVER} --sync-every 1"
JUDGED_NS = 3_000_000_000   # the GPU time that shares are judged by
SPOILT = 12                 # sessions that the hostile guest ruins
# One that is linked with CUDA's runtime, as nvcc does it by default, and one that uses none.
DRIVER_PROGRAMS = ("tests/cuda/static/streams_events",
                   "tests/cuda/driver/launches") if hosted.HAS_LIBCUDA else ()


class World:
    """The daemon and its guests, by the names of their VMs."""

    def __init__(self, kernel, daemon):
        self.kernel, self.daemon = kernel, daemon
        self.guests = {}
        self.numbers = itertools.count()

    def boot(self, *vms):
        for vm in vms:
            self.guests[vm] = hosted.boot(self.kernel, self.daemon.config, vm,
                                          ["tests/vm/hostile", "tests/nvml/describe",
                                           *DRIVER_PROGRAMS])
        for vm in vms:
            hosted.load(self.guests[vm])
        self.daemon.settle()

    def socket(self, vm):
        return self.daemon.folder / f"{vm}.sock"

    def stat(self, vm):
        return hosted.stat(self.daemon.socket)[vm]

    def programs(self, vm):
        return sorted(session["program"] for session in self.stat(vm)["sessions"])

    def start_busy(self, vm, command=FOREVER):
        """A program that does not end by itself, and is at work on the GPU."""
        before = self.stat(vm)["launches"]
        job = self.guests[vm].start(command)
        wait_until(lambda: self.stat(vm)["launches"] > before + 1 or job.ended(), f"kernels of {vm}")
        expect(not job.ended(), f"{command} has ended: {job.output()}")
        return job

    def pin(self, processors):
        for guest in self.guests.values():
            hosted.pin(guest.process.pid, processors)

    def start_ready(self, vm, command):
        """A program that has its session, and starts to work when go() says so."""
        guest, fifo = self.guests[vm], f"/tmp/go{next(self.numbers)}"
        guest.expect(f"mkfifo {fifo}")
        job = guest.start(f"{command} --start-at - <>{fifo}")
        job.wait_for("ready ")
        job.go = lambda: guest.expect(f"echo 1 >{fifo}")
        return job

    def compute(self, *vms):
        """Both workloads at once in each of these guests."""
        jobs = [self.guests[vm].start(command) for vm in vms for command in (VECADD, MATMUL)]
        for job in jobs:
            expect_right(job)

    def replace_devices(self, *vms):
        hosted.replace_devices({self.guests[vm]: self.socket(vm) for vm in vms}, 1 + WINDOWS)

    def await_device(self, *vms):
        for vm in vms:
            wait_until(lambda guest=self.guests[vm]: guest.run("test -e /dev/fairgv")[0] == 0,
                       f"the device of {vm}")
        self.daemon.settle()

    def expect_at_rest(self):
        self.daemon.expect_at_rest()
        for vm, guest in self.guests.items():
            expect_equal(self.programs(vm), [], f"the sessions of {vm}")
            guest.read_kernel_log()

    def kill_guests(self):
        for guest in self.guests.values():
            guest.kill()


def expect_right(job):
    status = job.wait()
    expect(status == 0 and "verified=yes" in job.output(), f"status {status}: {job.output()}")


def expect_fails(job, why):
    status = job.wait()
    expect(status != 0 and "verified=yes" not in job.output(), f"status {status}: {job.output()}")
    expect(why in job.output(), f"it says why: {job.output()}")


def interrupts(guest):
    """What the host has sent, of all vectors and on both processors."""
    rows = guest.expect("grep fairgv /proc/interrupts").splitlines()
    return sum(int(word) for row in rows for word in row.split()[1:3])


def workloads(world):
    world.compute("vm1", "vm2")


def fairgv_run_uses_the_device(world):
    guest = world.guests["vm1"]
    run = "unset LD_LIBRARY_PATH; /fairgv/tools/fairgv-run"
    expect("verified=yes" in guest.expect(f"{run} {VECADD}"), "its result")
    status, output = guest.run(f"{run} --socket /tmp/none {VECADD}")
    expect(status == 125 and "no daemon answers at /tmp/none" in output, f"{status}: {output}")
    status, output = guest.run(f"{run} --vm vm2 {VECADD}")
    expect(status == 125 and "--vm: " in output, f"{status}: {output}")


def programs_of_the_driver(world):
    """They meet none but libcuda, which is ours: the guest has no driver."""
    guest = world.guests["vm1"]
    before = world.stat("vm1")["launches"]
    for program in DRIVER_PROGRAMS:
        guest.expect(f"unset LD_LIBRARY_PATH; /fairgv/tools/fairgv-run {program.rsplit('/', 1)[-1]}")
        launches = world.stat("vm1")["launches"]
        expect(launches > before, f"{program} has launched nothing on the host")
        before = launches


def looks(world):
    """NVML in a guest: the VM's own processes, by the guest's numbers. No session is started, and
    no window kept: there are more looks than windows."""
    run = "unset LD_LIBRARY_PATH; /fairgv/tools/fairgv-run describe"
    job = world.start_busy("vm1")
    before = {vm: world.stat(vm)["sessions"] for vm in WEIGHTS}
    said = {vm: guest.expect(run) for vm, guest in world.guests.items()}
    expect(f"process={job.pid} " in said["vm1"], f"its own: {job.pid}, {said['vm1']}")
    expect("process=" not in said["vm2"] and "used=0" in said["vm2"], f"no other's: {said['vm2']}")
    after = {vm: world.stat(vm)["sessions"] for vm in WEIGHTS}
    expect_equal([each["number"] for each in after["vm1"]], [each["number"] for each in before["vm1"]],
                 "the sessions of vm1")
    expect_equal(after["vm2"], [], "the sessions of vm2")
    job.kill()


def weights(world):
    """Judged by the GPU time that the daemon accounts between two looks at it while both guests
    are busy, not by their progress: how long a kernel takes depends on the processors, which the
    soft GPU shares with the guests and with whatever else runs here.
    """
    jobs = [world.start_busy(vm) for vm in WEIGHTS]
    before = hosted.stat(world.daemon.socket)

    def used_ns():
        after = hosted.stat(world.daemon.socket)
        return [after[vm]["gpu_ns"] - before[vm]["gpu_ns"] for vm in WEIGHTS]

    wait_until(lambda: sum(used_ns()) >= JUDGED_NS, "GPU time")
    one_ns, two_ns = used_ns()
    expect(1.4 < two_ns / one_ns < 2.9, f"weights 1:2, but GPU times {one_ns} and {two_ns} ns")
    for job in jobs:
        expect(not job.ended(), f"{FOREVER} has ended: {job.output()}")
        job.kill()


def coscheduling(world):
    """Guests that share a processor wait for it, so their vCPUs are favoured for their turns."""
    told = [f"vm {vm}: QEMU (process {guest.process.pid}) has told its vCPUs' threads"
            for vm, guest in world.guests.items()]
    wait_until(lambda: all(line in world.daemon.log() for line in told), "the vCPUs' threads")
    processors = os.sched_getaffinity(0)
    world.pin({min(processors)})
    try:
        jobs = [world.start_busy(vm, WAITING) for vm in WEIGHTS]
        wait_until(lambda: "coscheduling: " in world.daemon.log(), "what the daemon does")
        by_no_means = "does not let the daemon favour" in world.daemon.log()
        for vm in WEIGHTS:
            before = world.stat(vm)
            if by_no_means:
                expect_equal(before["favoured"], 0, f"turns of {vm} with a favoured thread")
            else:
                wait_until(lambda: world.stat(vm)["favoured"] > before["favoured"] + 10,
                           f"turns of {vm}")
        for job in jobs:
            expect(not job.ended(), f"{WAITING} has ended: {job.output()}")
            job.kill()
    finally:
        world.pin(processors)


def two_programs_of_one_guest(world):
    jobs = [world.start_ready("vm1", command) for command in (VECADD, MATMUL)]
    expect_equal(world.programs("vm1"), ["matmul", "vecadd"], "the sessions of vm1")
    for job in jobs:
        job.go()
    for job in jobs:
        expect_right(job)


def parked_guest_is_woken(world):
    """Its session's process is stopped, so it finds nothing to do but sleep."""
    guest = world.guests["vm1"]
    job = world.start_ready("vm1", f"{VECADD} --sync-every 1")
    [session] = world.stat("vm1")["sessions"]
    os.kill(session["vgpu_pid"], signal.SIGSTOP)
    try:
        job.go()
        wait_until(lambda: "poll" in guest.expect(f"cat /proc/{job.pid}/wchan"), "it sleeps")
        before = interrupts(guest)
    finally:
        os.kill(session["vgpu_pid"], signal.SIGCONT)
    expect_right(job)
    expect(interrupts(guest) > before, "it was woken by an interrupt")


def killed_program(world):
    """Its session ends on the host, and its window is free: all windows can be used."""
    job = world.start_busy("vm1")
    expect_equal(job.kill(), 128 + signal.SIGKILL, "status")
    wait_until(lambda: not world.programs("vm1"), "the session's end on the host")
    jobs = [world.start_ready("vm1", VECADD) for _ in range(WINDOWS)]
    status, output = world.guests["vm1"].run(VECADD)
    expect(status != 0 and "all sessions of this virtual machine are in use" in output,
           f"one too many: {status}: {output}")
    for job in jobs:
        job.go()
    for job in jobs:
        expect_right(job)


def killed_qemu(world):
    """The other guest does not notice, and the next QEMU of this VM starts afresh."""
    world.start_busy("vm1")
    other = world.start_ready("vm2", MATMUL)
    world.guests.pop("vm1").kill()
    wait_until(lambda: not world.programs("vm1"), "the session's end on the host")
    other.go()
    expect_right(other)
    world.boot("vm1")
    world.compute("vm1")


def daemon_ends(world):
    """Its programs are told; with the device replaced the guests are served again."""
    jobs = [world.start_busy(vm) for vm in WEIGHTS]
    world.daemon.process.terminate()
    expect_equal(world.daemon.process.wait(), 0, "the daemon's status")
    for job in jobs:
        expect_fails(job, "the session is lost")
    world.daemon.launch()
    world.replace_devices(*WEIGHTS)
    world.await_device(*WEIGHTS)
    world.compute(*WEIGHTS)


def killed_daemon(world):
    """A program that it had is told at the latest when the device is replaced."""
    job = world.start_busy("vm1")
    world.daemon.process.kill()
    world.daemon.process.wait()
    world.daemon.launch()
    world.replace_devices(*WEIGHTS)
    expect_fails(job, "the session is lost")
    world.await_device(*WEIGHTS)
    world.compute(*WEIGHTS)


def hostile_guest(world):
    """It scribbles over all of its region, with sessions and without, while the other computes;
    then it is an ordinary guest again, with a new device.
    """
    guest = world.guests["vm1"]
    guest.expect("rmmod fairgv")
    device = guest.expect("for d in /sys/bus/pci/devices/*; do grep -q 0x1110 $d/device && echo $d; "
                          "done; true").strip()
    job = guest.start(f"hostile {device}")
    while f"spoilt={SPOILT}\n" not in job.output():
        expect(not job.ended(), f"the hostile guest gives up: {job.output()}")
        world.compute("vm2")
    job.kill()
    expect("program hostile, session" in world.daemon.log(), "no session was ended for what it did")
    world.replace_devices("vm1")
    guest.expect(f"insmod {hosted.MODULE} user_windows=63")
    world.await_device("vm1")
    world.compute("vm1", "vm2")


CASES = (workloads, fairgv_run_uses_the_device, programs_of_the_driver, looks, weights,
         coscheduling, two_programs_of_one_guest, parked_guest_is_woken, killed_program, killed_qemu, daemon_ends,
         killed_daemon, hostile_guest)


def run_cases(world):
    world.boot(*WEIGHTS)
    for case in cases_of(CASES):
        case(world)
        world.expect_at_rest()
        print(f"{case.__name__}: passed", flush=True)
    for guest in world.guests.values():
        guest.power_off()


def run():
    require_qemu()
    kernel = Kernel()
    kernel.build_module()
    print(f"kernel {kernel.release}", flush=True)
    vms = {vm: f'weight = {weight}; windows = {WINDOWS}; ivshmem = "{{folder}}/{vm}.sock";'
           for vm, weight in WEIGHTS.items()}
    # Whoever waits at all is interactive: how often a program gets to it depends on the processors.
    with backend(vms, top='window = "8M"; lanes = 8; interactive_calls = 0;') as daemon:
        world = World(kernel, daemon)
        try:
            run_cases(world)
        finally:
            world.kill_guests()


if __name__ == "__main__":
    main(run)
