"""A vGPU process that its guest has taken over reaches neither another VM's nor the daemon."""
import contextlib
import json
import os
import pathlib
import tempfile

from harness import backend, expect, expect_verified, kill, main, wait_until

VMS = {"bad": "weight = 1;", "worse": "weight = 1;", "good": "weight = 1;"}
MATMUL = "workloads/matmul"
SOME = ("--iterations", 3)


@contextlib.contextmanager
def scribblers():
    """A folder by which it is said what serves a session: see scribbler.py."""
    scribbler = pathlib.Path(__file__).resolve().with_name("scribbler.py")
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "vgpu"
        script.write_text(f"#!/bin/sh\nexec python3 {scribbler}\n")
        script.chmod(0o755)
        os.environ["FAIRGV_VGPU"] = str(script)
        os.environ["FAIRGV_TEST_NOTES"] = folder
        try:
            yield pathlib.Path(folder)
        finally:
            del os.environ["FAIRGV_VGPU"], os.environ["FAIRGV_TEST_NOTES"]


def start_hostile(daemon, notes, vm, number):
    process = daemon.start(vm, MATMUL, *SOME)
    wait_until(lambda: len(list(notes.glob("*.json"))) == number, f"hostile process {number}")
    return process


def scribbled_over():
    """Two VMs' processes write over all that they have, or their seat at the engine; a third VM's
    programs have the right results meanwhile and afterwards."""
    with scribblers() as notes, backend(VMS) as daemon:
        (notes / "hostile").touch()
        bad = start_hostile(daemon, notes, "bad", 1)
        (notes / "seat only").touch()
        worse = start_hostile(daemon, notes, "worse", 2)
        (notes / "hostile").unlink()
        for _ in range(3):
            expect_verified(daemon.start("good", MATMUL, *SOME), "the third VM's program")
        memory = [set(json.loads(path.read_text())) for path in notes.glob("*.json")]
        expect(all(memory), "a hostile process got no memory")
        expect(not memory[0] & memory[1], "two VMs' processes have memory in common")
        for process in (bad, worse):
            kill(process)
        for child in daemon.children():
            with contextlib.suppress(ProcessLookupError):   # the daemon ends them, too
                os.kill(child, 9)
        daemon.expect_at_rest()
        expect_verified(daemon.start("good", MATMUL, *SOME), "the next program")
        daemon.expect_at_rest()


main(scribbled_over)
