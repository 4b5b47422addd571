"""Memory that may move: programs whose VM has it compute as all do, and it is there when it is used."""
import os
import pathlib
import random

from counting import MIB, MOVABLE, SIZES, ask, counting, ctl, end, resident, session
from harness import backend, expect, expect_verified, finish, kill, main

TOGGLES = int(os.environ.get("FAIRGV_TEST_TOGGLES", "20"))
# What uses memory in every way that there is.
PROGRAMS = os.environ.get(
    "FAIRGV_TEST_PROGRAMS",
    "memory copies copy2d pools graph_memory graphs streams_events texture managed batch").split()


def programs_compute():
    with backend({"vm1": "movable = true; memory = \"2G\";"}) as daemon:
        started = [(name, daemon.start("vm1", f"tests/cuda/{name}")) for name in PROGRAMS]
        for name, program in started:
            status, out, err = finish(program)
            expect(status == 0, f"{name}: status {status}: {out}{err}")
        expect_verified(daemon.start("vm1", "workloads/matmul"), "matmul")
        daemon.expect_at_rest()


def soft_bytes(daemon):
    """What the soft GPU has of the machine's memory for pieces, as the kernel says."""
    folder = pathlib.Path(f"/proc/{session(daemon)['vgpu_pid']}/fd")
    files = [each for each in folder.iterdir() if "memfd:softgpu" in os.readlink(each)]
    expect(files, "the soft GPU has no file")
    return sum(os.stat(each).st_blocks * 512 for each in files)


def frozen_daemon(**vms):
    return backend({"vm1": MOVABLE, "vm2": MOVABLE, **vms}, top="frozen_memory = \"1G\";")


def leaves_the_gpu():
    """What is frozen has no memory of the GPU, and others go on; then it goes on as if nothing were."""
    with frozen_daemon() as daemon:
        program = counting(daemon)
        before, file_before = resident(daemon), soft_bytes(daemon)
        expect(before >= sum(SIZES), f"on the GPU: {before}")
        expect(file_before >= sum(SIZES), f"of the machine's memory: {file_before}")
        said = ctl(daemon, "freeze", "vm1")
        expect("frozen" in said and "modules" in said, f"freeze says {said}")
        expect(session(daemon)["state"] == "frozen", f"the state: {session(daemon)}")
        expect(resident(daemon) < MIB, f"on the GPU yet: {resident(daemon)}")
        expect(soft_bytes(daemon) == 0, f"of the machine's memory yet: {soft_bytes(daemon)}")
        expect("frozen" in ctl(daemon, "list"), "list does not say so")
        ask(program, 3)
        other = counting(daemon, "vm2")
        end(other, "beside a frozen program")
        said = ctl(daemon, "thaw", str(session(daemon)["number"]))
        expect("running" in said, f"thaw says {said}")
        expect(program.stdout.readline() == "rounds 4\n", "not all rounds")
        expect(resident(daemon) == before, f"back on the GPU: {resident(daemon)} of {before}")
        end(program, "a program that was frozen")
        daemon.expect_at_rest()


def at_any_time():
    with frozen_daemon() as daemon:
        program = counting(daemon)
        dice = random.Random(7)
        for _ in range(TOGGLES):
            ask(program, dice.randrange(5))
            ctl(daemon, "freeze", "vm1")
            ctl(daemon, "thaw", "vm1")
        end(program, f"frozen {TOGGLES} times")
        daemon.expect_at_rest()


def is_refused():
    with backend({"vm1": MOVABLE, "vm2": ""}, top="frozen_memory = \"8M\";") as daemon:
        program, other = counting(daemon), counting(daemon, "vm2")
        expect("frozen_memory" in ctl(daemon, "freeze", "vm1", fails=True), "too little memory")
        expect("movable" in ctl(daemon, "freeze", "vm2", fails=True), "it is not movable")
        expect("no VM" in ctl(daemon, "freeze", "vm3", fails=True), "there is none")
        expect("no session" in ctl(daemon, "thaw", "77", fails=True), "there is none")
        ctl(daemon, "thaw", "vm1")
        for each in (program, other):
            end(each, "a program that could not be frozen")
        daemon.expect_at_rest()


def ends_while_frozen():
    """Its program is killed, or the administrator ends it; and then its daemon."""
    with frozen_daemon() as daemon:
        program = counting(daemon)
        ctl(daemon, "freeze", "vm1")
        kill(program)
        daemon.expect_at_rest()
        program = counting(daemon)
        ask(program, 1)
        ctl(daemon, "freeze", "vm1")
        ctl(daemon, "end", str(session(daemon)["number"]))
        status, out, _ = finish(program)
        expect(status != 0 and "verified" not in out, f"ended: {status} {out}")
        daemon.expect_at_rest()
        program = counting(daemon)
        ask(program, 1)
        ctl(daemon, "freeze", "vm1")
    status, out, _ = finish(program)
    expect(status != 0 and "verified" not in out, f"without its daemon: {status} {out}")


main(programs_compute, leaves_the_gpu, at_any_time, is_refused, ends_while_frozen)
