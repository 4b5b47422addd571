"""Memory that programs of one VM share: by handles, by descriptors, and when any of them dies."""
import os
import pathlib
import random
import signal
import subprocess

from harness import backend, expect, finish, kill, main, wait_until

MIB = 1 << 20
IPC = "tests/local/ipc"
SHARING = "sharing = true; memory = \"256M\";"
TWO_GPUS = "soft:2"
# What uses memory in every way that there is.
PROGRAMS = os.environ.get("FAIRGV_TEST_PROGRAMS",
                          "memory copies pools graph_memory streams_events managed batch").split()
# How often a test that kills does so.
DEATHS = int(os.environ.get("FAIRGV_TEST_DEATHS", "12"))


class Program:
    """One that does what it is told."""

    def __init__(self, daemon, vm="vm1"):
        self.process = daemon.start(vm, IPC, stdin=subprocess.PIPE)

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def ask(self, *words):
        self.send(*words)
        return self.hear()

    def do(self, *words):
        answer = self.ask(*words)
        expect(answer.split(" ")[0] == "ok", f"{' '.join(map(str, words))}: {answer!r}")
        return answer[3:]

    def refuses(self, code, *words):
        answer = self.ask(*words)
        expect(answer == f"error {code}", f"{' '.join(map(str, words))}: {answer!r}, not {code}")

    def warm(self):
        """What it takes of the GPU's memory beside what the tests are about it has afterwards."""
        memory = self.do("alloc", 1000)
        self.do("fill", memory, 0)
        self.do("check", memory, 0)
        self.do("sum", memory)
        self.do("drop", memory)

    def end(self):
        self.process.stdin.close()
        self.process.stdin = None
        status, out, err = finish(self.process)
        expect(status == 0, f"a program ended with {status}: {out}{err}")

    def die(self):
        kill(self.process)


def used(daemon, vm="vm1"):
    """MiB that the VM has of the GPU's memory, as the daemon says; modules are a few KiB beside."""
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    return found["memory_bytes"] // MIB if found["sessions"] else found["memory_bytes"] / MIB


def shared(daemon):
    """MiB of the first VM's that are shared, and that its first two sessions have of it."""
    vm = daemon.report()["vms"][0]
    return [each["gpus"][0]["shared_bytes"] // MIB for each in (vm, *vm["sessions"][:2])]


def used_at_rest(daemon):
    """The same, once what was freed before is not used any more."""
    last = []
    wait_until(lambda: last.append(used(daemon)) or len(set(last[-20:])) == 1 and len(last) >= 20,
               "the use of memory to settle")
    return last[-1]


def expect_used(daemon, wanted, what):
    wait_until(lambda: used(daemon) == wanted, f"{what}: {used(daemon)} MiB used, not {wanted}")


def vgpu_of(daemon, program):
    (found,) = [each["vgpu_pid"] for vm in daemon.report()["vms"] for each in vm["sessions"]
                if each["pid"] == program.process.pid]
    return found


def is_keeper(pid):
    try:
        return b", keeper" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def kept(pid):
    """Memory of which it has descriptors."""
    links = [os.readlink(each) for each in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    return [link for link in links if "softgpu-shared" in link or "/dev/nvidia" in link]


def expect_at_rest(daemon):
    """No session has a process, and of what they shared nothing is left."""
    wait_until(lambda: all(map(is_keeper, daemon.children())), "the vGPU processes' end")
    for pid in daemon.children():
        wait_until(lambda pid=pid: not kept(pid), "the end of what was shared")
    expect(daemon.process.poll() is None, f"the backend has ended: {daemon.log()}")


def programs_compute():
    """Those that share nothing do as they do elsewhere, and one shares."""
    with backend({"vm1": "sharing = true; memory = \"2G\";"}) as daemon:
        started = [(name, daemon.start("vm1", f"tests/cuda/{name}")) for name in PROGRAMS]
        for name, program in started:
            status, out, err = finish(program)
            expect(status == 0, f"{name}: status {status}: {out}{err}")
        # Two processes of one program; linked with the runtime, too.
        for name in ("ipc", "static/ipc"):
            status, out, err = finish(daemon.start("vm1", f"tests/cuda/{name}"))
            expect(status == 0 and out == "shared\n", f"{name}: status {status}: {out}{err}")
        expect_used(daemon, 0, "in the end")
        expect_at_rest(daemon)
        expect("refused system call" not in daemon.log(), f"calls off the list: {daemon.log()}")


def handles():
    """Both see what the other writes, at whatever address; it is charged once, until both gave it back."""
    with backend({"vm1": SHARING}) as daemon:
        one, two, three = (Program(daemon) for _ in range(3))
        for program in (one, two, three):
            program.warm()
        at_rest = used_at_rest(daemon)
        memory = one.do("alloc", 5 * MIB)
        one.do("fill", memory, 7)
        handle = one.do("get", memory)
        expect(one.do("get", memory) == handle, "another handle of the same memory")
        expect_used(daemon, at_rest + 6, "exported")
        other = two.do("open", handle, 5 * MIB)
        expect(two.do("check", other, 7) == "yes", "the other program sees something else")
        two.do("fill", other, 8)
        expect(one.do("check", memory, 8) == "yes", "the first program sees something else")
        expect(one.do("sum", memory) == two.do("sum", other), "two sums of the same memory")
        expect_used(daemon, at_rest + 6, "charged once")
        expect(shared(daemon) == [6, 6, 6], f"the VM's, the first two sessions': {shared(daemon)}")
        again = two.do("open", handle, 5 * MIB)
        two.do("drop", other)
        expect(two.do("check", again, 8) == "yes", "what is open once more has gone")
        one.do("drop", memory)
        two.do("fill", again, 9)
        expect(two.do("check", again, 9) == "yes", "what its first owner has freed has gone")
        expect_used(daemon, at_rest + 6, "charged until the last has given it back")
        third = three.do("open", handle, 5 * MIB)
        expect(three.do("check", third, 9) == "yes", "a third program sees something else")
        three.do("drop", third)
        two.do("drop", again)
        expect_used(daemon, at_rest, "nothing is charged for it any more")
        two.refuses("cudaErrorInvalidResourceHandle", "open", handle, 5 * MIB)
        for program in (one, two, three):
            program.end()
        expect_used(daemon, 0, "in the end")
        expect_at_rest(daemon)


def small_ones():
    """Small allocations share a block, in which each handle finds its own."""
    with backend({"vm1": SHARING}) as daemon:
        one, two = Program(daemon), Program(daemon)
        theirs = [one.do("alloc", bytes) for bytes in (400, 4096, 70000)]
        sizes = (400, 4096, 70000)
        for seed, memory in enumerate(theirs):
            one.do("fill", memory, seed)
        ours = [two.do("open", one.do("get", memory), size) for memory, size in zip(theirs, sizes)]
        for seed, memory in enumerate(ours):
            expect(two.do("check", memory, seed) == "yes", f"small memory {seed}")
        for memory in ours:
            two.do("drop", memory)
        for seed, memory in enumerate(theirs):
            expect(one.do("check", memory, seed) == "yes", f"small memory {seed} afterwards")
            one.do("drop", memory)
        one.end()
        two.end()
        expect_at_rest(daemon)


def descriptors():
    """Memory that is made to be exported goes to another program by its descriptor."""
    with backend({"vm1": SHARING}) as daemon:
        one, two = Program(daemon), Program(daemon)
        path = f"{daemon.socket}.descriptor"
        for program in (one, two):
            program.warm()
        at_rest = used_at_rest(daemon)
        memory = one.do("create", 4 * MIB)
        one.do("fill", memory, 3)
        two.send("receive", path, 4 * MIB)
        expect(two.hear() == "listening", "the other program does not listen")
        one.do("send", memory, path)
        answer = two.hear()
        os.unlink(path)
        expect(answer.startswith("ok "), f"receiving: {answer}")
        other = answer[3:]
        expect(two.do("check", other, 3) == "yes", "the other program sees something else")
        two.do("fill", other, 4)
        expect(one.do("check", memory, 4) == "yes", "the first program sees something else")
        expect_used(daemon, at_rest + 4, "charged once")
        one.end()
        two.do("fill", other, 5)
        expect(two.do("check", other, 5) == "yes", "it has gone with its first owner")
        # It can be given on.
        three = Program(daemon)
        three.send("receive", path, 4 * MIB)
        expect(three.hear() == "listening", "the third program does not listen")
        two.do("send", other, path)
        answer = three.hear()
        os.unlink(path)
        two.end()
        expect(answer.startswith("ok "), f"receiving: {answer}")
        expect(three.do("check", answer[3:], 5) == "yes", "the third program sees something else")
        three.do("drop", answer[3:])
        three.end()
        expect_used(daemon, 0, "nothing is charged any more")
        expect_at_rest(daemon)


def events():
    """A stream of one program waits for what another has recorded, and nobody's turn passes with it."""
    with backend({"vm1": SHARING}) as daemon:
        one, two = Program(daemon), Program(daemon)
        memory = one.do("alloc", 3 * MIB)
        one.do("fill", memory, 1)
        other = two.do("open", one.do("get", memory), 3 * MIB)
        mine = one.do("event")
        theirs = two.do("open_event", one.do("get_event", mine))
        expect(two.do("happened", theirs) == "yes", "one that was never recorded")
        two.do("await", theirs)
        two.do("settle")
        for seed in range(2, 12):
            one.do("busy", 20)
            one.do("put", memory, seed)
            one.do("record", mine)
            two.do("await", theirs)
            two.do("put", other, 100 + seed)
            two.do("settle")
            expect(two.do("check", other, 100 + seed) == "yes", f"round {seed}: it did not wait")
            one.do("settle")
        one.do("busy", 300)
        one.do("record", mine)
        expect(two.do("happened", theirs) == "no", "it has happened before the work in front of it")
        two.do("await", theirs)
        expect(two.do("idle") == "no", "the stream does not wait")
        two.do("synchronize", theirs)
        expect(two.do("happened", theirs) == "yes", "it has not happened")
        two.do("settle")
        two.refuses("cudaErrorNotSupported", "record", theirs)
        two.refuses("cudaErrorInvalidResourceHandle", "get_event", theirs)
        one.refuses("cudaErrorDeviceUninitialized", "open_event", one.do("get_event", mine))
        two.refuses("cudaErrorInvalidResourceHandle", "open_event", "00" * 64)
        # Its program ends with work in front of it: nobody waits any more.
        one.do("busy", 100000)
        one.do("record", mine)
        two.do("await", theirs)
        two.do("put", other, 200)
        expect(two.do("idle") == "no", "the stream does not wait")
        one.die()
        two.do("settle")
        two.do("synchronize", theirs)
        expect(two.do("check", other, 200) == "yes", "it went on otherwise")
        two.do("forget", theirs)
        for _ in range(150):
            two.do("event")
        two.end()
        expect_at_rest(daemon)


def other_devices():
    """On each of a VM's GPUs, and from one of them to another; but what a program can't have it can't open."""
    with backend({"vm1": f"devices = [0, 1]; {SHARING}",
                  "vm2": f"devices = [0, 1]; place = \"least\"; {SHARING}"}, gpu=TWO_GPUS) as daemon:
        one, two = Program(daemon), Program(daemon)
        for device in range(2):
            one.do("device", device)
            memory = one.do("alloc", 3 * MIB)
            one.do("fill", memory, device)
            handle = one.do("get", memory)
            # Whichever the other program works on meanwhile.
            two.do("device", 0)
            other = two.do("open", handle, 3 * MIB)
            expect(two.do("check", other, device) == "yes", f"GPU {device}: it is something else")
            two.do("device", device)
            two.do("fill", other, device + 10)
            expect(one.do("check", memory, device + 10) == "yes", f"GPU {device}: it did not change")
            two.do("drop", other)
            one.do("drop", memory)
        one.end()
        two.end()
        placed = [Program(daemon, "vm2") for _ in range(2)]
        handles = [program.do("get", program.do("alloc", MIB)) for program in placed]
        placed[0].refuses("cudaErrorInvalidDevice", "open", handles[1], MIB)
        for program in placed:
            program.end()
        expect_at_rest(daemon)


def placement():
    """What is shared takes its GPU's room, whoever has it: a program that needs more goes to the other one."""
    vms = {"vm1": "sharing = true; memory = \"3G\";",
           "vm2": "devices = [0, 1]; place = \"mgb2\"; need = \"2G\"; memory = \"4G\";"}
    with backend(vms, gpu=TWO_GPUS, top="overcommit = true; soft_memory = \"4G\";") as daemon:
        one, two = Program(daemon), Program(daemon)
        memory = one.do("alloc", 2900 * MIB)
        two.do("open", one.do("get", memory), 4096)
        one.end()
        placed = Program(daemon, "vm2")
        placed.do("free")
        (vm,) = [each for each in daemon.report()["vms"] if each["name"] == "vm2"]
        (session,) = vm["sessions"]
        expect(session["gpus"][0]["device"] == 1, f"placed where there is no room: {session['gpus']}")
        two.end()
        placed.end()
        expect_at_rest(daemon)


def is_refused():
    """Other VMs, VMs that share nothing, what is no handle, and more than the quota."""
    with backend({"vm1": SHARING, "vm2": SHARING, "plain": "memory = \"256M\";"}) as daemon:
        one, other, plain = Program(daemon), Program(daemon, "vm2"), Program(daemon, "plain")
        memory = one.do("alloc", 4 * MIB)
        handle = one.do("get", memory)
        other.refuses("cudaErrorInvalidResourceHandle", "open", handle, 4 * MIB)
        one.refuses("cudaErrorDeviceUninitialized", "open", handle, 4 * MIB)
        other.refuses("cudaErrorInvalidResourceHandle", "open", "00" * 64, 4 * MIB)
        other.refuses("cudaErrorInvalidResourceHandle", "open", handle[:-1] + "1", 4 * MIB)
        plain.refuses("cudaErrorNotSupported", "open", handle, 4 * MIB)
        plain.do("alloc", 4 * MIB)
        plain.refuses("cudaErrorNotSupported", "get", 0)
        two = Program(daemon)
        two.do("open", handle, 4 * MIB)
        two.refuses("cudaErrorMemoryAllocation", "alloc", 254 * MIB)
        expect(int(two.do("free")) <= 252 * MIB, "what is shared is not missing")
        two.do("alloc", 200 * MIB)
        for program in (one, two, other, plain):
            program.end()
        expect_at_rest(daemon)


def die(daemon, victim, dice):
    """It does while something is under way, or is not; or the process that serves it does."""
    victim.send(*dice.choice((("fill", 0, 5), ("free",), ("alloc", 3 * MIB), ("drop", 0))))
    if dice.randrange(2):
        os.kill(vgpu_of(daemon, victim), signal.SIGKILL)
    victim.die()


def one_round(daemon, dice):
    """One program's memory is opened by another, or is about to be, and one or both die."""
    one, two = Program(daemon), Program(daemon)
    memory = one.do("alloc", dice.choice((1000, 3 * MIB, 9 * MIB)))
    one.do("fill", memory, 1)
    handle = one.do("get", memory)
    two.do("free")
    phase = dice.choice(("exported", "opening", "open"))
    if phase == "open":
        two.do("open", handle, 1000)
    elif phase == "opening":
        two.send("open", handle, 1000)
    if dice.randrange(2):
        die(daemon, two, dice)
    if dice.randrange(2):
        die(daemon, one, dice)
        if phase == "open" and two.process.poll() is None:
            answer = two.ask("check", 0, 1)
            expect(answer in ("ok yes", "ok no"), f"an importer that lives: {answer}")
        elif phase == "exported" and two.process.poll() is None:
            answer = two.ask("open", handle, 1000)
            expect(answer in ("ok 0", "error cudaErrorInvalidResourceHandle"), f"opening: {answer}")
    for program in (one, two):
        if program.process.poll() is None:
            program.die()


def deaths():
    """Programs, and the processes that serve them, die in any order: what lives has its memory, and in the
    end nobody has any.
    """
    dice = random.Random(11)
    with backend({"vm1": SHARING, "vm2": SHARING}) as daemon:
        beside = Program(daemon, "vm2")
        own = beside.do("alloc", 3 * MIB)
        beside.do("get", own)
        beside.do("fill", own, 77)
        before = used(daemon, "vm2")
        for _ in range(DEATHS):
            one_round(daemon, dice)
            expect_used(daemon, 0, "after all have died")
        expect(used(daemon, "vm2") == before, "the other VM's memory")
        expect(beside.do("check", own, 77) == "yes", "the other VM's memory has changed")
        beside.end()
        expect_at_rest(daemon)


def without_its_keeper():
    """It dies: the programs that may have what it kept are ended, and the next ones start afresh."""
    with backend({"vm1": SHARING, "vm2": SHARING}) as daemon:
        one, two = Program(daemon), Program(daemon)
        two.do("open", one.do("get", one.do("alloc", 4 * MIB)), 4 * MIB)
        os.kill(next(filter(is_keeper, daemon.children())), signal.SIGKILL)
        why = "kept what its VM's programs share has ended"
        wait_until(lambda: daemon.log().count(why) == 2, "the end of both sessions, and why")
        for program in (one, two):
            program.die()
        expect_used(daemon, 0, "after the keeper's death")
        three, four = Program(daemon), Program(daemon)
        four.do("open", three.do("get", three.do("alloc", 4 * MIB)), 4 * MIB)
        three.end()
        four.end()
        expect_used(daemon, 0, "in the end")
        expect_at_rest(daemon)


TESTS = (programs_compute, handles, small_ones, descriptors, events, other_devices, placement,
         is_refused, deaths, without_its_keeper)

if __name__ == "__main__":
    main(*TESTS)
