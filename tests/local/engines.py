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


def used(daemon, engine):
    """What each VM uses of an engine while all of them are granted it so many times more."""
    def now():
        vms = daemon.report()["vms"]
        return {vm["name"]: vm.get(engine, vm) for vm in vms}

    def after(before, turns):
        wait_until(lambda: all(figure["grants"] >= before[vm]["grants"] + turns
                               for vm, figure in now().items()), f"{turns} turns of each")
        return now()

    before = after(now(), 5)
    return {vm: figure["gpu_ns"] - before[vm]["gpu_ns"]
            for vm, figure in after(before, 30).items()}


def weights():
    """Two that copy in the same direction have it by weight."""
    with backend({"one": "weight = 1;", "two": "weight = 3;"}) as daemon:
        programs = {vm: begun(daemon, vm, "in", "in", "in") for vm in ("one", "two")}
        share = used(daemon, "copy_in")
        ratio = share["two"] / share["one"]
        # The copies of a soft GPU are processor time, which others have, too.
        expect(1.4 < ratio < 6, f"1:{ratio:.2f} of the engine's time with weights 1:3")
        for program in programs.values():
            kill(program)
        daemon.expect_at_rest()


def useless_copies():
    """One that also copies in both directions, for nothing, gets no more of what computes."""
    with backend(VMS) as daemon:
        programs = {"one": begun(daemon, "one", "compute", "in", "out"),
                    "two": begun(daemon, "two", "compute")}
        share = used(daemon, "compute")
        ratio = share["one"] / share["two"]
        expect(1 / 1.6 < ratio < 1.6, f"{ratio:.2f} of what the other has")
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
