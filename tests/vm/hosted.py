"""A guest of a real daemon: QEMU as fairgv-vm starts it, and in it the module, fairgv-run and
CUDA programs.
"""
import json
import os
import subprocess

from common import BUILD, PATIENCE_S, expect
from guest import TCG, Guest
from initramfs import LIBRARIES
from qmp import Qmp

MODULE = "/lib/fairgv.ko"
WORKLOADS = ("vecadd", "matmul")
HAS_LIBCUDA = (LIBRARIES / "libcuda.so.1").exists()     # not with configure --without-libcuda


def boot(kernel, config, vm, programs=(), machine=TCG):
    """Begins to, as VM @vm of the daemon with that configuration; load() waits for it.
    @programs: of the build tree, beside the workloads.
    """
    files = {MODULE: kernel.build_module(),
             # fairgv-run finds the libraries as it does in the build tree.
             "fairgv/frontend/.libs/libcudart.so.13": LIBRARIES / "libcudart.so.13",
             "fairgv/frontend/.libs/libfairgv.so.0": LIBRARIES / "libfairgv.so.0",
             "fairgv/frontend/.libs/libnvidia-ml.so.1": LIBRARIES / "libnvidia-ml.so.1"}
    if HAS_LIBCUDA:
        files["fairgv/frontend/.libs/libcuda.so.1"] = LIBRARIES / "libcuda.so.1"
    contents = {f"bin/{name}": BUILD / "workloads" / name for name in WORKLOADS}
    contents |= {f"bin/{path.rsplit('/', 1)[-1]}": BUILD / path for path in programs}
    contents["fairgv/tools/fairgv-run"] = BUILD / "tools/fairgv-run"
    return Guest(kernel, programs=contents, files=files, machine=machine, wait=False,
                 launcher=(BUILD / "tools/fairgv-vm", "--config", config, vm, "--"))


def load(guest):
    guest.await_boot()
    guest.monitor = Qmp(guest.folder / "qmp")
    guest.expect(f"insmod {MODULE} user_windows=63")


def descriptors(guest):
    """The numbers of those that its QEMU has."""
    return {int(name) for name in os.listdir(f"/proc/{guest.process.pid}/fd")}


def replace_devices(guests, vectors):
    """As docs/vm.md says, for guests whose device is dead, and the sockets of their VMs.

    But that is for KVM. Without it, QEMU goes on watching the doorbells of a device that it has
    removed, by the numbers of descriptors that it has closed, and crashes when one is given to
    another that becomes readable. So all up to the highest are taken, for good: one by one, since
    the memory's becomes free at some time after the event.
    """
    numbers = {guest: set(range(max(descriptors(guest)) + 1)) for guest in guests}
    for guest in guests:
        guest.monitor.remove_region()
    for guest, socket in guests.items():
        guest.monitor.await_deleted("fairgv-region")
        while numbers[guest] - descriptors(guest):
            guest.monitor.give_descriptor()
        guest.monitor.add_region(socket, vectors)


def pin(pid, processors):
    """All threads of a process to these processors."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), processors)


def stat(socket):
    """fairgvctl's report on the VMs of the daemon at @socket, by name."""
    done = subprocess.run([BUILD / "tools/fairgvctl", "--socket", f"{socket}.control", "stat", "--json"],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    expect(done.returncode == 0, f"fairgvctl: status {done.returncode}: {done.stderr}")
    return {vm["name"]: vm for vm in json.loads(done.stdout)["vms"]}
