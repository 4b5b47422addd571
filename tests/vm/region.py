"""The region at work, with real daemons on the soft GPU: requests that trap nowhere, what
fairgv-region says of it, a device that comes and goes under programs, and a host that goes, in
order or by a kill.
"""
import contextlib
import json
import os
import re
import shutil
import signal

import hosted
from common import BUILD, expect, expect_equal, main, wait_until
from guest import Guest, ivshmem, require_qemu
from harness import backend
from kernel import Kernel

VM = {"vm": 'windows = 2; ivshmem = "{folder}/vm.sock";'}
TOP = 'window = "8M"; lanes = 8;'
VECTORS = 3
REQUESTS = 100_000
SYNC_EVERY = 1000
# Both sides look for long before they sleep, and the guest has processors to spare for that:
# with two, a thread that looks gives way to others by a system call now and then.
LONG_SPIN = "FAIRGV_SPIN_US=100000"
FOUR = ("-accel", "tcg,thread=multi", "-cpu", "max,cx16=off", "-smp", "4")
DRIVER = "/sys/bus/pci/drivers/fairgv"
COUNTS = ("doorbells", "interrupts", "control")
PROGRAM = "vecadd --size 32 --iterations 1"
ENDED = "the backend has ended, and /dev/fairgv with it"


def log_of_host(guest):
    return guest.read_kernel_log().count("the host has gone: no program has a GPU until the device "
                                         "is replaced")


def counts(guest):
    words = guest.expect("cat " + " ".join(f"/sys/class/misc/fairgv/{name}" for name in COUNTS))
    return dict(zip(COUNTS, map(int, words.split())))


def start_busy(guest, daemon):
    before = hosted.stat(daemon.socket)["vm"]["launches"]
    job = guest.start("matmul --size 64 --iterations 10000000")
    wait_until(lambda: hosted.stat(daemon.socket)["vm"]["launches"] > before + 1 or job.ended(),
               "launches")
    expect(not job.ended(), f"it has ended: {job.output()}")
    return job


def region_json(guest, calls):
    return json.loads(guest.expect(f"fairgv-region --json --calls {calls}"))


# --- No traps ------------------------------------------------------------------------

class Run:
    """A program that launches as often as it is told to, and what it took."""

    def __init__(self, guest, daemon, launches):
        before, host_before = counts(guest), hosted.stat(daemon.socket)["vm"]
        tracer = "strace -f -c -o /tmp/calls " if shutil.which("strace") else ""
        output = guest.expect(f"{LONG_SPIN} {tracer}vecadd --size 32 --iterations {launches} "
                              f"--sync-every {SYNC_EVERY}")
        expect("verified=yes" in output, f"its result: {output}")
        wait_until(lambda: not hosted.stat(daemon.socket)["vm"]["sessions"], "the session's end")
        after, host_after = counts(guest), hosted.stat(daemon.socket)["vm"]
        self.took = {f"{name} of the guest": after[name] - before[name] for name in COUNTS[:2]}
        self.took |= {f"{name} of the host": host_after[name] - host_before[name]
                      for name in ("doorbells_rung", "doorbells_received")}
        self.requests = host_after["requests"] - host_before["requests"]
        if tracer:
            self.took["system calls"] = self.count_calls(guest.expect("cat /tmp/calls"))

    @staticmethod
    def count_calls(table):
        total = re.search(r"^\s*100\.00\s+[\d.]+\s+\d+\s+(\d+)\s.*total$", table, re.MULTILINE)
        expect(total, f"strace's table: {table}")
        return int(total.group(1))


def requests_trap_nowhere(guest, daemon):
    """Of two runs that differ in their requests alone, the difference: what a program costs that
    begins and ends has no part in it. Now and then a processor is taken away for so long that
    the other side goes to sleep.
    """
    few, many = (Run(guest, daemon, launches) for launches in (SYNC_EVERY, SYNC_EVERY + REQUESTS))
    requests = many.requests - few.requests
    expect(requests >= REQUESTS, f"{requests} requests")
    for name, number in many.took.items():
        more = number - few.took[name]
        print(f"  {requests} requests: {more} more {name}, {more / requests:.5f} for each")
        expect(more < requests / 100, f"{more} {name} for {requests} requests")
    if "system calls" not in many.took:
        print("  system calls were not counted: strace is not installed")


# --- fairgv-region -------------------------------------------------------------------

def region_is_measured(guest):
    """A sleeper is woken by a doorbell; a thread that is awake is not."""
    before = counts(guest)
    report = region_json(guest, 100)
    after = counts(guest)
    expect_equal(report["vm"], "vm", "the VM")
    expect_equal(report["window_bytes"], 8 << 20, "the window's length")
    for phase in ("awake", "host_asleep", "both_asleep"):
        latency = report["round_trip"][phase]
        expect_equal(latency["calls"], 100, phase)
        expect(0 < latency["p50_ns"] <= latency["p99_ns"] <= latency["max_ns"], f"{phase}: {latency}")
    expect(all(rate > 0 for rate in report["gb_per_s"].values()), f"rates: {report['gb_per_s']}")
    first, last = report["device"]["before"], report["device"]["after"]
    expect(last["doorbells"] - first["doorbells"] >= 2 * 100,
           f"each call to a host that sleeps rings: {first}, {last}")
    expect(last["interrupts"] > first["interrupts"], f"a program that sleeps is woken: {first}, {last}")
    for name in COUNTS:
        expect(before[name] <= first[name] <= last[name] <= after[name],
               f"{name}: {before}, {first}, {last}, {after}")
    status, text = guest.run("fairgv-region --calls 0")
    expect(status == 2 and "--calls 0: not a number" in text, text)


def mapping_is_judged(guest, slow):
    expect_equal(region_json(guest, 1)["device"]["write_back"], True, "the mapping")
    expect_equal(region_json(slow, 1)["device"]["write_back"], False, "the mapping")
    text = guest.expect("fairgv-region --calls 1")
    expect("write-back, as it should be" in text, text)
    text = slow.expect("fairgv-region")
    print(text)
    expect("NOT write-back" in text and "pref64-reserve" in text, text)
    expect_equal(slow.expect("cat /sys/class/misc/fairgv/writeback").strip(), "0", "the file")


# --- The module comes and goes -------------------------------------------------------

def device_comes_and_goes(guest, daemon):
    """Under programs at work, which are told each time; its counts begin anew."""
    device = guest.expect(f"basename {DRIVER}/0000*").strip()
    for _ in range(3):
        jobs = [start_busy(guest, daemon), guest.start("fairgv-region --calls 10000000")]
        expect(guest.run("rmmod fairgv")[0] != 0, "unloaded under programs")
        guest.expect(f"echo {device} >{DRIVER}/unbind")
        expect(guest.run("test -e /sys/class/misc/fairgv")[0] != 0, "the device is gone")
        for job in jobs:
            expect(job.wait() != 0, f"it is told: {job.output()}")
        wait_until(lambda: not hosted.stat(daemon.socket)["vm"]["sessions"], "the sessions' end")
        guest.expect(f"echo {device} >{DRIVER}/bind")
        expect("verified=yes" in guest.expect(PROGRAM), "a program after that")
    expect(counts(guest)["control"] < 20, f"counts: {counts(guest)}")


# --- The host goes -------------------------------------------------------------------

def expect_no_session(guest):
    status, output = guest.run(PROGRAM)
    expect(status != 0 and ENDED in output, f"a new program: status {status}: {output}")


def host_goes(guest, daemon, job, signum):
    """A program that is at work is told, and new ones are; a daemon that comes after does not
    change that, and neither does the module when it is loaded anew.
    """
    expect_equal(log_of_host(guest), 0, "lines in the kernel's log")
    daemon.process.send_signal(signum)
    daemon.process.wait()
    expect(job.wait() != 0 and "the session is lost" in job.output(), f"it is told: {job.output()}")
    expect_no_session(guest)
    expect_equal(log_of_host(guest), 1, "lines in the kernel's log")
    daemon.launch()
    expect_no_session(guest)
    guest.expect("rmmod fairgv")
    guest.expect(f"insmod {hosted.MODULE} user_windows=63")
    expect_equal(log_of_host(guest), 1, "lines in the kernel's log")
    expect_no_session(guest)


def killed_host(guest, daemon):
    """It is killed when it does not answer: a program that waits for a session learns it too."""
    job = start_busy(guest, daemon)
    daemon.process.send_signal(signal.SIGSTOP)
    before = counts(guest)["control"]
    waiting = guest.start(PROGRAM)
    wait_until(lambda: counts(guest)["control"] > before, "the request for a session")
    expect(not waiting.ended(), f"it waits: {waiting.output()}")
    host_goes(guest, daemon, job, signal.SIGKILL)
    expect(waiting.wait() != 0 and ENDED in waiting.output(), f"it is told: {waiting.output()}")
    expect("vm vm: the daemon has gone, and its guest has been told" in daemon.log(), "the log")


def ended_host(guest, daemon):
    host_goes(guest, daemon, start_busy(guest, daemon), signal.SIGTERM)


# --- ---------------------------------------------------------------------------------

@contextlib.contextmanager
def patient_backend():
    """Its sessions' processes look for long before they sleep."""
    name, value = LONG_SPIN.split("=")
    os.environ[name] = value
    with backend(VM, top=TOP) as daemon:
        del os.environ[name]
        yield daemon


def boot(kernel, stack, daemon, reserve):
    programs = {"bin/fairgv-region": BUILD / "tools/fairgv-region"}
    programs |= {f"bin/{name}": BUILD / "workloads" / name for name in hosted.WORKLOADS}
    if shutil.which("strace"):
        programs["bin/strace"] = shutil.which("strace")
    guest = Guest(kernel, ivshmem(daemon.folder / "vm.sock", VECTORS, reserve), programs=programs,
                  files={hosted.MODULE: kernel.build_module()}, machine=FOUR, wait=False)
    stack.callback(guest.kill)
    return guest


def run_case(case, guest, *args):
    case(guest, *args)
    guest.read_kernel_log()
    print(f"{case.__name__}: passed", flush=True)


def run_cases(kernel, stack, daemons):
    guest, slow = (boot(kernel, stack, daemon, reserve)
                   for daemon, reserve in zip(daemons, ("4G", None)))
    for booting in (guest, slow):
        hosted.load(booting)
    run_case(requests_trap_nowhere, guest, daemons[0])
    run_case(region_is_measured, slow)
    run_case(mapping_is_judged, guest, slow)
    run_case(device_comes_and_goes, slow, daemons[1])
    run_case(killed_host, guest, daemons[0])
    run_case(ended_host, slow, daemons[1])
    guest.power_off()
    slow.power_off()


def run():
    require_qemu()
    kernel = Kernel()
    kernel.build_module()
    print(f"kernel {kernel.release}", flush=True)
    with contextlib.ExitStack() as stack:
        run_cases(kernel, stack, [stack.enter_context(patient_backend()),
                                  stack.enter_context(backend(VM, top=TOP))])


if __name__ == "__main__":
    main(run)
