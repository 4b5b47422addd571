"""The part of bench cosched that runs in virtual machines: a program of its own, since the
modules of tests/vm that boot them have names that the benchmarks use too.

Reads what to do from standard input and writes what was measured to standard output, as JSON.
Guests boot on all processors, and share one while they are measured.
"""
import json
import sys

import hosted
from common import Failure, Skip, expect, wait_until
from guest import require_qemu
from harness import backend
from kernel import Kernel

WINDOWS = 1
SETTINGS = 'window = "8M"; lanes = 8;'


def words(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


class Job:
    """A workload in a guest that begins when it is told to."""

    def __init__(self, guest, order):
        self.guest, self.seconds = guest, order["seconds"]
        self.lead, total = order["lead"], order["lead"] + order["seconds"] + order["tail"]
        guest.expect("rm -f /tmp/go; mkfifo /tmp/go")
        self.job = guest.start(f"env {order['environment']} {order['program']} --seconds {total} "
                               f"--start-at - {' '.join(order['arguments'])} <>/tmp/go")
        self.job.wait_for("ready ")

    def go(self):
        self.guest.expect("echo 1 >/tmp/go")

    def rate(self):
        """Work in a second of the time that counts; the guest's clock is the host's."""
        status = self.job.wait()
        lines = [words(line) for line in self.job.output().splitlines()]
        expect(status == 0 and lines[-1].get("verified") == "yes",
               f"status {status}: {self.job.output()}")
        points = [{key: float(line[key]) for key in ("second", "units", "elapsed")}
                  for line in lines if "second" in line]
        first = next((point for point in points if point["second"] >= self.lead), None)
        last = next((point for point in points if point["second"] >= self.lead + self.seconds),
                    None)
        expect(first and last, "it synchronized too rarely to be measured")
        return (last["units"] - first["units"]) / (last["elapsed"] - first["elapsed"])


def run_jobs(daemon, guests, order):
    before = hosted.stat(daemon.socket)
    jobs = [Job(guest, order) for guest in guests]
    for job in jobs:
        job.go()
    rates = [job.rate() for job in jobs]
    after = hosted.stat(daemon.socket)

    def gained(key):
        return sum(after[vm][key] - before[vm][key] for vm in after)

    return {"rates": rates, "favoured": gained("favoured"), "sync_calls": gained("sync_calls"),
            "gpu_ns": gained("gpu_ns")}


def measure(kernel, order):
    """One way of scheduling, in guests of its own."""
    vms = {f"vm{i}": f'weight = {weight}; windows = {WINDOWS}; '
                     f'ivshmem = "{{folder}}/vm{i}.sock";'
           for i, weight in enumerate(order["weights"], 1)}
    guests = []
    with backend(vms, gpu=order["gpu"], top=f"{SETTINGS} {order['top']}") as daemon:
        try:
            for vm in vms:
                guests.append(hosted.boot(kernel, daemon.config, vm,
                                          [f"workloads/{order['program']}"]))
            for guest in guests:
                hosted.load(guest)
            processor, *rest = order["processors"]
            hosted.pin(daemon.process.pid, rest)
            for guest in guests:
                hosted.pin(guest.process.pid, [processor])
            wait_until(lambda: not daemon.children(), "rest")
            alone = run_jobs(daemon, guests[:1], order) if order["alone"] else None
            runs = [run_jobs(daemon, guests, order) for _ in range(order["repeat"])]
        finally:
            for guest in guests:
                guest.kill()
    return {"alone": alone, "runs": runs}


def main():
    order = json.load(sys.stdin)
    try:
        require_qemu()
        json.dump(measure(Kernel(), order), sys.stdout)
    except (Failure, Skip) as reason:
        sys.exit(str(reason))


main()
