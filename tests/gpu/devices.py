"""Programs with two real GPUs: what tests/local/devices.py has them do on soft ones. About 30 s.

usage: tests/gpu/devices.py, with abs_top_builddir as for tests/local/; FAIRGV_TEST_GPU=soft:2 tries
the program itself.
"""
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import backend, expect_verified, main

GPU = os.environ.get("FAIRGV_TEST_GPU", "cuda:0,1")
PROGRAMS = (("devices", "all", "2"), ("devices", "threads", "2"), ("between", "host"),
            ("between", "freed"), ("between", "events"), ("between", "fault"), ("each",),
            ("peers", "codes"), ("peers", "kernels"), ("peers", "copies"), ("peers", "fault"),
            ("peers", "disabled"), ("mapped", "each"), ("mapped", "both"), ("mapped", "alone"),
            ("mapped", "unmapped"), ("mapped", "fault"), ("mapped", "taken"), ("captures", "both"),
            ("captures", "again"), ("captures", "by hand"), ("captures", "memory"),
            ("captures", "choice"))


def on_both():
    with backend({"vm1": "devices = [0, 1];", "vm2": "devices = [1, 0];"}, gpu=GPU) as daemon:
        for program, *what in PROGRAMS:
            for vm in "vm1", "vm2":
                expect_verified(daemon.start(vm, f"tests/local/{program}", *what),
                                " ".join((vm, program, *what)))
        daemon.expect_at_rest()


main(on_both)
