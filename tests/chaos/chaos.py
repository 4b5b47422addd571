#!/usr/bin/env python3
"""Many VMs, whose programs check their own results, while anything is killed, stopped, ended or
written over at random: nobody else loses a result, nothing is left of a round, the daemon does not
grow.

Half of the VMs are victims. In a round each VM runs a program, and what acts.py has is done to the
victims and their processes. The daemon is stopped and asked things meanwhile; in some rounds it is
killed, which ends all. After each round

- the programs of the other VMs have ended with results that are right, and those of victims with
  such results or with a failure, but not with wrong ones, and not never,
- no vGPU process is left and no descriptor in the daemon, and the daemon has no more memory of its own.

    chaos.py [--minutes N | --rounds N] [--vms N] [--seed N]

Without a seed there is a new one with --minutes, and else always the same. A seed repeats what is
done, but not when the processes run.
"""
import argparse
import os
import pathlib
import random
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from acts import ACTS, World
from harness import Failure, backend, expect, finish, wait_until

# Arguments that keep a program at work for some tenths of a second.
PROGRAMS = (("vecadd", 100000, 40), ("matmul", 64, 60), ("histogram", 50000, 20),
            ("scan", 100000, 20), ("hotspot", 128, 60), ("pathfinder", 2000, 20))
DAEMON_LIVES = (3, 40)     # rounds, about, until it is killed
FIRST_ROUNDS = 3           # of a daemon, in which it may take memory for good
GROWTH_KIB = 1024          # what it may have more then: the allocator's affair
POLICIES = ("fair", "gemini", "credit-poll")


def arguments_of(dice):
    program, size, iterations = dice.choice(PROGRAMS)
    return (f"workloads/{program}", "--size", size, "--iterations",
            dice.randrange(1, 5 * iterations), "--sync-every", dice.choice((1, 8, 1000)))


def own_memory_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise Failure(f"process {pid} has no RssAnon")


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

    def __init__(self, dice, daemon, names):
        self.dice = dice
        self.daemon = daemon
        self.names = names
        self.rounds = self.right = self.failed = self.acts = 0
        self.least_kib = None

    def run(self, kills_daemon):
        world = World(self.dice, self.daemon, self.names)
        world.start(arguments_of)
        for _ in range(self.dice.randrange(4, 8 + len(self.names))):
            time.sleep(self.dice.random() * 0.06)
            self.dice.choice(ACTS)(world)
            self.acts += 1
        if kills_daemon:
            self.daemon.process.kill()
            self.daemon.process.wait()
        self.collect(world, kills_daemon)
        self.rounds += 1

    def collect(self, world, daemon_is_gone):
        """What is stopped for good stays so until those that nothing was done to have ended."""
        for name in world.bystanders:
            self.count(expect_right(name, world.programs[name], daemon_is_gone, world))
        world.let_go()
        for name, process in world.of_victims:
            self.count(expect_right(name, process, True, world))
        world.end_guests()
        self.expect_nothing_left(world, daemon_is_gone)

    def count(self, is_right):
        self.right += is_right
        self.failed += not is_right

    def expect_nothing_left(self, world, daemon_is_gone):
        wait_until(lambda: not world.sessions(), "the end of the processes of all sessions")
        if daemon_is_gone:
            return
        expect(self.daemon.process.poll() is None, f"the daemon has ended: {self.daemon.log()}")
        at_rest = self.daemon.descriptors_at_rest
        wait_until(lambda: self.daemon.descriptors() == at_rest,
                   f"the daemon's descriptors: {at_rest} at rest, {self.daemon.descriptors()} now")
        self.expect_flat(own_memory_kib(self.daemon.process.pid))

    def expect_flat(self, now_kib):
        if self.rounds < FIRST_ROUNDS:
            self.least_kib = now_kib
        else:
            self.least_kib = min(self.least_kib, now_kib)
            expect(now_kib - self.least_kib <= GROWTH_KIB,
                   f"the daemon has {now_kib} KiB, after {self.least_kib} in an earlier round")

    def __str__(self):
        return (f"{self.rounds} rounds, {self.acts} acts, {self.right} right results, "
                f"{self.failed} programs ended, {self.least_kib} KiB")


def run_daemon(dice, names, may_go_on):
    """Rounds with one daemon, until it is killed, or there shall be no more: how many."""
    policy = dice.choice(POLICIES)
    top = f'policy = "{policy}"; starts = 1000;'
    settings = {name: f"weight = {dice.randrange(1, 5)};" for name in names}
    life = dice.choice(DAEMON_LIVES)
    with backend(settings, top=top) as daemon:
        rounds = Rounds(dice, daemon, names)
        killed = False
        while not killed and may_go_on(rounds.rounds):
            killed = dice.randrange(life) == 0
            rounds.run(killed)
        if killed:
            daemon.process.returncode = 0    # on purpose
            daemon.socket.unlink()
        print(f"policy {policy}: {rounds}{', killed' if killed else ''}", flush=True)
    return rounds.rounds


def run(options):
    dice = random.Random(options.seed)
    names = [f"chaos{os.getpid()}-{i}" for i in range(options.vms)]
    end = time.monotonic() + 60 * (options.minutes or 0)
    done = 0

    def may_go_on(more=0):
        return time.monotonic() < end if options.minutes else done + more < options.rounds

    while may_go_on():
        done += run_daemon(dice, names, may_go_on)


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
