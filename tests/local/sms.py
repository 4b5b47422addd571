"""Multiprocessors of VMs' own (policy smguard) on the soft GPU: programs of several VMs run at once,
each on its own ones; what is idle is lent, and goes back at a kernel's end; sessions of one VM take
turns; what does not fit is refused.

Kernels here stay until they are told to end, so that what runs at once is known, however late
anything runs. Judged are the multiprocessors that their blocks see (%smid)."""
import subprocess

from harness import BUILD, PATIENCE_S, backend, expect, kill, main, wait_until

SMS = "tests/local/sms"
CTL = BUILD / "tools/fairgvctl"
# Kernels end when they are told to, which is no reason to kill their programs.
TOP = 'policy = "smguard"; hang = "0";'
ALL = 16    # a soft GPU's


class Program:
    """One that stays on so many multiprocessors with each of its kernels."""

    def __init__(self, daemon, vm, *counts):
        self.process = daemon.start(vm, SMS, *counts, stdin=subprocess.PIPE)
        self.told = None

    def word(self, first):
        line = self.process.stdout.readline().split()
        expect(line[:1] == [first],
               f"{line} instead of {first}: {'' if line else self.process.stderr.read()}")
        return line[1] if len(line) > 1 else None

    def begun(self):
        """The multiprocessors of the kernel that runs now. Even to load it may take a turn."""
        if self.told is None:
            self.told = int(self.word("told"))
        self.word("launched")
        return int(self.word("begun"), 16)

    def end_kernel(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.word("ended")

    def finish(self):
        self.process.stdin.close()
        expect(self.process.wait(PATIENCE_S) == 0, self.process.stderr.read())


def size(units):
    return bin(units).count("1")


def entry(daemon, vm):
    return next(entry for entry in daemon.report()["vms"] if entry["name"] == vm)


def waits(daemon, vm):
    """Whether a session of @vm asks for the GPU and does not have it."""
    return any(session["state"] == "waiting" for session in entry(daemon, vm)["sessions"])


def side_by_side():
    """Under another policy the second kernel would wait for the first one's end."""
    with backend({"vm1": 'sms = "25%"; sms_limit = "25%";', "vm2": 'sms = 12; sms_limit = 12;'},
                 top=TOP) as daemon:
        one, two = Program(daemon, "vm1", 4), Program(daemon, "vm2", 12)
        first, second = one.begun(), two.begun()
        expect((size(first), size(second)) == (4, 12), f"{first:x} and {second:x}")
        expect(not first & second, f"{first:x} and {second:x} are not apart")
        expect((one.told, two.told) == (4, 12), f"told of {one.told} and {two.told}")
        for vm, count in ("vm1", 4), ("vm2", 12):
            says = entry(daemon, vm)
            expect([says[key] for key in ("sms", "sms_limit", "sms_held")] == [count] * 3,
                   f"{says}")
        for program in one, two:
            program.end_kernel()
            program.finish()
        daemon.expect_at_rest()


def lent_and_taken_back():
    with backend({"owner": 'sms = "25%"; sms_limit = "25%";', "batch": ""}, top=TOP) as daemon:
        batch = Program(daemon, "batch", ALL, ALL - 4)
        expect(size(batch.begun()) == ALL, "it does not have what is idle")
        owner = Program(daemon, "owner", 4)
        wait_until(lambda: waits(daemon, "owner"), "the owner's wish")
        batch.end_kernel()
        mine = owner.begun()
        rest = batch.begun()
        expect((size(mine), size(rest)) == (4, ALL - 4), f"{mine:x} and {rest:x}")
        expect(not mine & rest, f"{mine:x} and {rest:x} are not apart")
        for program in owner, batch:
            program.end_kernel()
            program.finish()
        daemon.expect_at_rest()


def a_limit():
    """One without a reservation has no more than its limit, though all else is idle."""
    with backend({"vm1": 'sms_limit = 3;', "vm2": ""}, top=TOP) as daemon:
        one = Program(daemon, "vm1", 3)
        first = one.begun()     # or the other one would have had them all
        two = Program(daemon, "vm2", ALL - 3)
        second = two.begun()
        expect((size(first), size(second)) == (3, ALL - 3), f"{first:x} and {second:x}")
        expect(not first & second, f"{first:x} and {second:x} are not apart")
        for program in one, two:
            program.end_kernel()
            program.finish()
        daemon.expect_at_rest()


def sessions_take_turns():
    with backend({"vm1": 'sms = 4; sms_limit = 4;', "vm2": 'sms = 12; sms_limit = 12;'},
                 top=TOP) as daemon:
        first, other = Program(daemon, "vm1", 4), Program(daemon, "vm2", 12)
        mine = first.begun()
        other.begun()
        second = Program(daemon, "vm1", 4)
        wait_until(lambda: waits(daemon, "vm1"), "the second session's wish")
        first.end_kernel()
        expect(second.begun() == mine, "not those of its VM")
        for program in second, other:
            program.end_kernel()
        for program in first, second, other:
            program.finish()
        daemon.expect_at_rest()


def one_that_dies_gives_back():
    with backend({"vm1": 'sms = 4; sms_limit = 4;', "vm2": ""}, top=TOP) as daemon:
        dying = Program(daemon, "vm2", ALL)
        dying.begun()
        one = Program(daemon, "vm1", 4)
        wait_until(lambda: waits(daemon, "vm1"), "its wish")
        kill(dying.process)
        expect(size(one.begun()) == 4, "what was lent")
        one.end_kernel()
        one.finish()
        daemon.expect_at_rest()


def what_does_not_fit():
    with backend({"vm1": "sms = 4;"}, top=TOP) as daemon:
        result = subprocess.run([CTL, "--socket", f"{daemon.socket}.control", "set", "vm1", "sms=5"],
                                capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        expect(result.returncode != 0, result.stdout)
        daemon.expect_at_rest()


if __name__ == "__main__":
    main(side_by_side, lent_and_taken_back, a_limit, sessions_take_turns, one_that_dies_gives_back,
         what_does_not_fit)
