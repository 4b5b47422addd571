"""Kernels of any length share the GPU: what takes longer than a turn is held, and goes on with the
program's next one. No bound here is on time by the clock.
"""
import os
import pathlib
import signal
import subprocess

from harness import BUILD, backend, expect, expect_verified, finish, kill, main, wait_until

FAIRGVCTL = BUILD / "tools/fairgvctl"
HOLD = "tests/local/hold"
VECADD = "workloads/vecadd"
VMS = {"one": "", "two": ""}
# Nobody may fall behind by more than this factor; the processors are shared with others.
BOUND = 3


def figures(daemon, vm):
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    return found


def endless(daemon, vm):
    """A program whose kernel never ends, as soon as it runs."""
    program = daemon.start(vm, HOLD, "endless")
    line = program.stdout.readline()
    expect(line == "endless\n", f"no endless kernel: {line!r}")
    return program


def is_alive(pid):
    """Not reaped by whoever got it is as good as gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def expect_running(program):
    expect(program.poll() is None, f"the endless program has ended: {program.returncode}")


def beside_an_endless_kernel():
    """Others go on beside it, and get their share; it is ended by nobody."""
    with backend(VMS) as daemon:
        spinner = endless(daemon, "one")
        chain = daemon.start("two", HOLD, "chain", 2000, 300)
        expect_verified(chain, "beside an endless kernel")
        expect_running(spinner)
        one, two = figures(daemon, "one"), figures(daemon, "two")
        expect(one["holds"] > 0, f"never held: {one}")
        expect(two["gpu_ns"] > 0, f"nothing charged: {two}")
        kill(spinner)
        daemon.expect_at_rest()


def two_endless_kernels():
    """Each gets its weight of the GPU's time, as charged."""
    with backend({"one": "weight = 1;", "two": "weight = 2;"}) as daemon:
        programs = [endless(daemon, vm) for vm in ("one", "two")]
        before = {vm: figures(daemon, vm) for vm in ("one", "two")}

        def is_by_weight():
            after = {vm: figures(daemon, vm) for vm in ("one", "two")}
            turns = [after[vm]["holds"] - before[vm]["holds"] for vm in after]
            used = {vm: after[vm]["gpu_ns"] - before[vm]["gpu_ns"] for vm in after}
            return min(turns) >= 30 and 2 / 1.5 < used["two"] / used["one"] < 2 * 1.5
        # One whose turn was long, since its process did not run, is made up for by and by.
        wait_until(is_by_weight, "the GPU's time 1:2, by weights 1:2")
        for program in programs:
            expect_running(program)
            kill(program)
        daemon.expect_at_rest()


def long_beside_short():
    """Long kernels are held in the middle, over and over, and their results are right."""
    with backend(VMS) as daemon:
        long = daemon.start("one", HOLD, "chain", 200000, 4, 3)
        expect(long.stdout.readline() == "begun\n", "the long kernels")
        short = daemon.start("two", HOLD, "chain", 500, 2000)
        expect_verified(short, "short kernels beside long ones")
        expect_verified(long, "long kernels that were held")
        daemon.expect_at_rest()


def alone_is_never_held():
    with backend(VMS) as daemon:
        expect_verified(daemon.start("one", HOLD, "chain", 100000, 3), "alone")
        one = figures(daemon, "one")
        expect(one["holds"] == 0 and one["launches"] == 3, f"held, though alone: {one}")
        daemon.expect_at_rest()


def ended_while_held():
    """Ctrl-C, the daemon's order and its end: of programs whose kernels may be held just then. And
    the VM can start another."""
    with backend(VMS) as daemon:
        spinner = endless(daemon, "two")
        first = endless(daemon, "one")
        os.killpg(first.pid, signal.SIGINT)
        finish(first)
        second = endless(daemon, "one")
        (session,) = figures(daemon, "one")["sessions"]
        subprocess.run([FAIRGVCTL, "--socket", f"{daemon.socket}.control", "end",
                        str(session["number"])], check=True, capture_output=True)
        status, _, _ = finish(second)
        expect(status != 0, "a session that was ended")
        expect_verified(daemon.start("one", VECADD), "the next program of the same VM")
        expect_running(spinner)
    finish(spinner)


def daemon_killed():
    """kill -9 of the daemon while somebody is held: the processes end, and a new one serves."""
    with backend(VMS) as daemon:
        programs = [endless(daemon, vm) for vm in VMS]
        wait_until(lambda: all(figures(daemon, vm)["holds"] > 3 for vm in VMS), "some holds")
        served = daemon.children()
        expect(len(served) == 2, f"vGPU processes: {served}")
        daemon.process.kill()
        daemon.process.wait()
        for program in programs:
            status, _, _ = finish(program)
            expect(status != 0, "a program without its daemon")
        journal = daemon.folder / "socket.sessions"
        expect(journal.exists(), "no journal of the sessions")
        daemon.launch()
        expect(not any(is_alive(pid) for pid in served), "a vGPU process without its daemon")
        expect_verified(daemon.start("one", VECADD), "with the next daemon")
        daemon.expect_at_rest()
    expect(not journal.exists(), "the daemon left its journal behind")


def off():
    """Without holding the endless kernel keeps the GPU, and the program is ended for that."""
    with backend(VMS, top='hold = "off"; hang = "500ms";') as daemon:
        spinner = endless(daemon, "one")
        expect_verified(daemon.start("two", VECADD), "after the endless kernel")
        status, _, err = finish(spinner)
        expect(status != 0 and "does not give the GPU back" in err, f"{status}: {err}")
        expect(figures(daemon, "one")["holds"] == 0, "held, though that is off")
        daemon.expect_at_rest()


def hang():
    """An administrator can have endless programs ended with holding, too."""
    with backend(VMS, top='hang = "300ms";') as daemon:
        programs = [endless(daemon, vm) for vm in VMS]
        wait_until(lambda: any(program.poll() is not None for program in programs),
                   "the end of an endless program")
        (ended,) = [program for program in programs if program.poll() is not None]
        status, _, err = finish(ended)
        expect(status != 0 and "does not end" in err, f"{status}: {err}")
        # Nobody waits for the other one.
        programs.remove(ended)
        expect_running(programs[0])
        kill(programs[0])
        daemon.expect_at_rest()


# A shell starts what runs in its background with this one ignored, and so do those children.
signal.signal(signal.SIGINT, signal.default_int_handler)
main(beside_an_endless_kernel, two_endless_kernels, long_beside_short, alone_is_never_held,
     ended_while_held, daemon_killed, off, hang)
