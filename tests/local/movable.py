"""Memory that may move: programs whose VM has it compute as all do, and it is there when it is used."""
import os

from harness import backend, expect, expect_verified, finish, main

MIB = 1 << 20
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


main(programs_compute)
