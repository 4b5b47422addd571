"""The engines of a GPU are granted by themselves: a program that copies does not wait for one that
computes, and each engine's time goes to VMs by weight. No bound here is on time by the clock.
"""
from harness import backend, expect, expect_verified, kill, main, wait_until

HOLD = "tests/local/hold"
ENGINES = "tests/local/engines"
VMS = {"one": "", "two": ""}
# An endless kernel is neither interrupted nor ended: what needs its engine waits for ever.
ENDLESS = 'hold = "off"; hang = 0;'
COPIES = 400


def figures(daemon, vm):
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    return found


def begun(daemon, vm, *what):
    """A program that does so until it is ended, as soon as it runs."""
    program = daemon.start(vm, ENGINES, "loop", *what)
    line = program.stdout.readline()
    expect(line == "begun\n", f"no beginning: {line!r}")
    return program


def copies_beside_an_endless_kernel():
    """Hundreds of copies in either direction, while a kernel that never ends has its engine."""
    with backend(VMS, top=ENDLESS) as daemon:
        spinner = daemon.start("one", HOLD, "endless")
        expect(spinner.stdout.readline() == "endless\n", "no endless kernel")
        for direction in ("in", "out"):
            expect_verified(daemon.start("two", ENGINES, "copy", direction, COPIES), direction)
        expect(spinner.poll() is None, f"the endless program has ended: {spinner.returncode}")
        two = figures(daemon, "two")
        for engine in ("copy_in", "copy_out"):
            expect(two[engine]["grants"] > 0 and two[engine]["gpu_ns"] > 0, f"{engine}: {two}")
        kill(spinner)
        daemon.expect_at_rest()


def one_grant_for_all():
    """The same with key engines off: the copies wait until the kernel is gone."""
    with backend(VMS, top=ENDLESS + "engines = false;") as daemon:
        spinner = daemon.start("one", HOLD, "endless")
        expect(spinner.stdout.readline() == "endless\n", "no endless kernel")
        copier = daemon.start("two", ENGINES, "copy", "in", COPIES)
        wait_until(lambda: any(session["state"] == "waiting"
                               for session in figures(daemon, "two")["sessions"]),
                   "a copy that waits for the grant")
        expect("copy_in" not in figures(daemon, "two"), "an engine is granted by itself")
        kill(spinner)
        expect_verified(copier, "when the kernel is gone")
        daemon.expect_at_rest()


def await_ratio(daemon, engine, one, other, low, high):
    """That of what two VMs use of an engine, once it was granted to each thirty times. It may take
    longer: whose turn was long, since its process did not run, is made up for by and by.
    """
    def now():
        vms = daemon.report()["vms"]
        return {vm["name"]: vm.get(engine, vm) for vm in vms}

    def turns(before):
        return min(figure["grants"] - before[vm]["grants"] for vm, figure in now().items())

    at_first = now()
    wait_until(lambda: turns(at_first) >= 5, "five turns of each")
    before = now()

    def holds():
        used = {vm: figure["gpu_ns"] - before[vm]["gpu_ns"] for vm, figure in now().items()}
        return turns(before) >= 30 and low < used[one] / used[other] < high
    wait_until(holds, f"{one}'s time on {engine} beside {other}'s from {low} to {high}")


def weights():
    """Two that copy in the same direction have it by weight."""
    with backend({"one": "weight = 1;", "two": "weight = 3;"}) as daemon:
        programs = {vm: begun(daemon, vm, "in", "in", "in") for vm in ("one", "two")}
        # The copies of a soft GPU are processor time, which others have, too.
        await_ratio(daemon, "copy_in", "two", "one", 1.4, 6)
        for program in programs.values():
            kill(program)
        daemon.expect_at_rest()


def useless_copies():
    """One that also copies in both directions, for nothing, gets no more of what computes."""
    with backend(VMS) as daemon:
        programs = {"one": begun(daemon, "one", "compute", "in", "out"),
                    "two": begun(daemon, "two", "compute")}
        await_ratio(daemon, "compute", "one", "two", 1 / 1.6, 1.6)
        for program in programs.values():
            kill(program)
        daemon.expect_at_rest()


def order():
    """Copies and kernels of the same streams, in programs that take each other's turns."""
    with backend({**VMS, "three": ""}, top='slice = "1ms";') as daemon:
        programs = [daemon.start(vm, ENGINES, "pipeline", 60) for vm in ("one", "two")]
        copier = begun(daemon, "three", "in", "out")
        for program in programs:
            expect_verified(program, "a pipeline")
        kill(copier)
        daemon.expect_at_rest()


main(copies_beside_an_endless_kernel, one_grant_for_all, weights, useless_copies, order)
