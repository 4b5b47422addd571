#!/usr/bin/env python3
"""Many VMs, whose programs check their own results, while anything is killed, stopped, ended or
written over at random: nobody else loses a result, nothing is left of a round, the daemon does not
grow.

Half of the VMs are victims. In a round each VM runs a program, and what acts.py has is done to the
victims and their processes. The daemon is stopped and asked things meanwhile, and any VM's memory may
leave the GPU and come back; in some rounds the daemon is killed, which ends all. After each round

- the programs of the other VMs have ended with results that are right, and those of victims with
  such results or with a failure, but not with wrong ones, and not never,
- no vGPU process is left but those that keep a VM's images, no entry in the daemon's journal, and
  no descriptor in the daemon but what it has for those,
- the daemon has no more memory of its own, and a real GPU has as much memory free as before.

    chaos.py [--minutes N | --rounds N] [--vms N] [--seed N]

Without a seed there is a new one with --minutes, and else always the same. A seed repeats what is
done, but not when the processes run. FAIRGV_TEST_GPU=cuda takes a real GPU, with programs of a size
that suits it, PyTorch's among them.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from acts import ACTS, World
from harness import Failure, backend, expect, finish, wait_until
from programs import GPU, IS_SOFT, Programs

DAEMON_LIVES = (3, 40)     # rounds, about, until it is killed
FIRST_ROUNDS = 3           # of a daemon, in which it may take memory and device files for good
# What it may have more then. The allocator needs it: where many sessions come and go at once, its heap
# grows for dozens of rounds while what is allocated after a round stays the same.
GROWTH_KIB, GROWTH_KIB_OF_VM = 1024, 128
POLICIES = ("fair", "gemini", "credit-poll")
JOURNAL_HEAD = 40          # bytes, before its entries (backend/journal.c)
PAUSE_S = 0.06 if IS_SOFT else 0.6    # between two acts, at most
GPU_MIB = 64               # that a real GPU's driver may take and give as it likes


def own_memory_kib(pid):
    """None where the kernel, as gVisor's, tells no such thing."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return None


def gpu_mib():
    """Of a real GPU's memory in use, as its driver says."""
    if IS_SOFT:
        return 0
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def journal_is_empty(daemon):
    journal = daemon.socket.with_name(daemon.socket.name + ".sessions").read_bytes()
    return not any(journal[JOURNAL_HEAD:])


def expect_right(name, process, may_fail, world):
    try:
        status, out, err = finish(process)
    except Failure as failure:
        raise Failure(f"the program of {name}: {failure}; {world}") from None
    right = status == 0 and "verified=yes" in out
    expect(right or may_fail and status != 0,
           f"the program of {name}: status {status}: {out}{err}; {world}")
    return right


class Rounds:
    """A daemon, and what became of its rounds."""

    def __init__(self, programs, daemon, names, gpu_at_rest):
        self.dice = programs.dice
        self.programs = programs
        self.daemon = daemon
        self.names = names
        self.gpu_at_rest = gpu_at_rest
        self.rounds = self.right = self.failed = self.holds = self.keepers = 0
        self.acts = collections.Counter()
        self.least_kib = None

    def run(self, kills_daemon):
        world = World(self.dice, self.daemon, self.names)
        try:
            self.play(world, kills_daemon)
        except Failure:
            world.end_all()
            raise

    def play(self, world, kills_daemon):
        self.programs.begin_round()
        world.start(self.programs.draw)
        for _ in range(self.dice.randrange(4, 8 + len(self.names))):
            time.sleep(self.dice.random() * PAUSE_S)
            act = self.dice.choice(ACTS)
            act(world)
            self.acts[act.__name__] += 1
        if kills_daemon:
            self.daemon.process.kill()
            self.daemon.process.wait()
        self.collect(world, kills_daemon)
        self.rounds += 1

    def collect(self, world, daemon_is_gone):
        """What is stopped for good stays so until those that nothing was done to have ended."""
        world.thaw(world.bystanders)
        for name in world.bystanders:
            self.count(expect_right(name, world.programs[name], daemon_is_gone, world))
        world.let_go()
        world.thaw(world.victims)
        for name, process in world.of_victims:
            self.count(expect_right(name, process, True, world))
        world.end_guests()
        world.end_orders()
        self.expect_nothing_left(world, daemon_is_gone)

    def count(self, is_right):
        self.right += is_right
        self.failed += not is_right

    def expect_nothing_left(self, world, daemon_is_gone):
        wait_until(lambda: not world.sessions(), "the end of the processes of all sessions")
        wait_until(lambda: gpu_mib() <= self.gpu_at_rest + GPU_MIB,
                   f"the GPU's memory: {self.gpu_at_rest} MiB at rest, {gpu_mib()} now")
        if daemon_is_gone:
            wait_until(lambda: not world.keepers(), "the end of what kept images")
            return
        if self.rounds < FIRST_ROUNDS:
            learn_of_the_driver(self.daemon)
        self.daemon.expect_at_rest()
        self.keepers = max(self.keepers, len(self.daemon.keepers()))
        wait_until(lambda: journal_is_empty(self.daemon), "an empty journal")
        self.holds = sum(vm["holds"] for vm in self.daemon.report()["vms"])
        self.expect_flat(own_memory_kib(self.daemon.process.pid))

    def expect_flat(self, now_kib):
        if now_kib is None or self.rounds < FIRST_ROUNDS:
            self.least_kib = now_kib
        else:
            self.least_kib = min(self.least_kib, now_kib)
            expect(now_kib - self.least_kib <= GROWTH_KIB + GROWTH_KIB_OF_VM * len(self.names),
                   f"the daemon has {now_kib} KiB, after {self.least_kib} in an earlier round")

    def __str__(self):
        sessions = len(re.findall(r"^.*session \d+: .*: begins", self.daemon.log(), re.M))
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.acts.items()))
        return (f"{self.rounds} rounds, {sessions} sessions, {self.right} right results, "
                f"{self.failed} programs ended, wrong or lost: none; {self.holds} holds, "
                f"{self.keepers} keepers, "
                f"{self.least_kib} KiB; {self.acts.total()} acts ({acts})")


def begin_to_look(daemon, name):
    """The daemon opens NVML when it first looks at a GPU, and then has more descriptors for good."""
    finish(daemon.start(name, "workloads/vecadd"))
    wait_until(lambda: not daemon.served(), "the end of the first program's process")
    daemon.settle()


def learn_of_the_driver(daemon):
    """The driver's library opens device files when it is first asked something, and keeps them."""
    for name, count in daemon.files().items():
        if name.startswith("/dev/nvidia"):
            daemon.files_at_rest[name] = count


def run_daemon(programs, names, may_go_on):
    """Rounds with one daemon, until it is killed, or there shall be no more: how many."""
    dice = programs.dice
    policy = dice.choice(POLICIES)
    top = f'policy = "{policy}"; starts = 1000; frozen_memory = "16G";'
    settings = {name: f"weight = {dice.randrange(1, 5)};{dice.choice(('', ' movable = true;'))}"
                for name in names}
    life = dice.choice(DAEMON_LIVES)
    gpu_at_rest = gpu_mib()
    with backend(settings, gpu=GPU, top=top) as daemon:
        if not IS_SOFT:
            begin_to_look(daemon, names[0])
        rounds = Rounds(programs, daemon, names, gpu_at_rest)
        killed = False
        while not killed and may_go_on(rounds.rounds):
            killed = dice.randrange(life) == 0
            rounds.run(killed)
            if not IS_SOFT:
                print(f"  {time.strftime('%T')} {rounds}", flush=True)
        if killed:
            daemon.process.returncode = 0    # on purpose
            daemon.socket.unlink()
        print(f"policy {policy}: {rounds}{', killed' if killed else ''}", flush=True)
    return rounds.rounds


def run(options):
    programs = Programs(random.Random(options.seed))
    names = [f"chaos{os.getpid()}-{i}" for i in range(options.vms)]
    with backend({"first": ""}, gpu=GPU) as daemon:
        programs.prepare(daemon, "first")
    end = time.monotonic() + 60 * (options.minutes or 0)
    done = 0

    def may_go_on(more=0):
        return time.monotonic() < end if options.minutes else done + more < options.rounds

    while may_go_on():
        done += run_daemon(programs, names, may_go_on)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--vms", type=int, default=6)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31) if options.minutes else 3
    print(f"seed {options.seed}, {options.vms} VMs", flush=True)
    try:
        run(options)
    except Failure as failure:
        sys.exit(f"seed {options.seed}: {failure}")


main()
