"""Memory and events that programs of a VM share, on a real GPU: what tests/local/ipc.py has them do on a
soft one, and what the driver counts for each of two processes that have the same memory.

usage: tests/gpu/sharing.py, with abs_top_builddir as for tests/local/; FAIRGV_TEST_GPU=soft tries the
program itself. FAIRGV_TEST_DEATHS: how often programs are killed (50).
"""
import os
import pathlib
import subprocess
import sys

LOCAL = pathlib.Path(__file__).resolve().parents[1] / "local"
sys.path.append(str(LOCAL))
GPU = os.environ.setdefault("FAIRGV_TEST_GPU", "cuda")
os.environ.setdefault("FAIRGV_TEST_DEATHS", "50")
import ipc
from harness import backend, expect, main

GIB = 1 << 30


def smi(*query):
    done = subprocess.run(["nvidia-smi", "--format=csv,noheader,nounits", *query],
                          capture_output=True, text=True, check=False)
    return [line.split(", ") for line in done.stdout.splitlines()]


def mib_of(pid):
    """As the driver says; None where it does not tell."""
    for fields in smi("--query-compute-apps=pid,used_memory"):
        if fields[0] == str(pid) and fields[1].isdigit():
            return int(fields[1])
    return None


def device_mib():
    found = smi("--query-gpu=memory.used")
    return int(found[0][0]) if found else None


def told(what, *figures):
    print(f"{what}: " + ", ".join("?" if each is None else f"{each} MiB" for each in figures))


def the_drivers_figures():
    """Printed, for whoever judges what NVML's second opinion (docs/design/0013-memory.md) is worth here."""
    before = device_mib()
    with backend({"vm1": "sharing = true; memory = \"4G\";"}) as daemon:
        one, two = ipc.Program(daemon), ipc.Program(daemon)
        for program in (one, two):
            program.warm()
        first, second = ipc.vgpu_of(daemon, one), ipc.vgpu_of(daemon, two)
        told("with nothing: exporter, importer, device", mib_of(first), mib_of(second), device_mib())
        memory = one.do("alloc", GIB)
        told("1 GiB allocated", mib_of(first), mib_of(second), device_mib())
        handle = one.do("get", memory)
        told("exported", mib_of(first), mib_of(second), device_mib())
        two.do("open", handle, GIB)
        told("and opened", mib_of(first), mib_of(second), device_mib())
        one.die()
        ipc.wait_until(lambda: not os.path.exists(f"/proc/{first}"), "the exporter's end")
        told("without its exporter", mib_of(first), mib_of(second), device_mib())
        expect(ipc.used(daemon) >= 1024, "it is not charged any more")
        two.end()
        ipc.expect_at_rest(daemon)
        ipc.expect_used(daemon, 0, "in the end")
        told("in the end, with the processes kept ready: device", device_mib())
    told("device before and after", before, device_mib())


main(*ipc.TESTS, the_drivers_figures)
