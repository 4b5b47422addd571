"""A guest under QEMU, without KVM, on a machine with an NVIDIA GPU that has neither QEMU nor a
kernel to boot: its programs run on that GPU.

usage: vm.py pack BUNDLE    here: adds QEMU, a kernel and its module to the bundle
       vm.py run BUNDLE     there
"""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "vm"))
import hosted
from common import expect, main, require
from guest import QEMU, TCG
from harness import backend
from kernel import Kernel

ARCHIVE = "vm.tar.gz"
FIRMWARE = ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin")
FIRMWARE_FOLDERS = ("/usr/share/seabios", "/usr/share/qemu")
C_LIBRARY = re.compile(r"/(libc|libm|libpthread|libdl|librt|libgcc_s|ld-linux[^/]*)\.so")
PROGRAMS = ("vecadd --size 100000", "matmul", "matmul --size 256 --iterations 20")


class CarriedKernel:
    """What tests/vm asks of a Kernel."""

    def __init__(self, folder):
        self.image, self.module = folder / "vmlinuz", folder / "fairgv.ko"

    def build_module(self):
        return self.module


def copy_libraries(program, folder):
    done = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True)
    for path in re.findall(r"=> (/\S+)", done.stdout):
        if not C_LIBRARY.search(path):
            shutil.copy(path, folder)


def copy_firmware(folder):
    for name in FIRMWARE:
        found = [f"{origin}/{name}" for origin in FIRMWARE_FOLDERS if os.path.exists(f"{origin}/{name}")]
        if found:
            shutil.copy(found[0], folder)


def write_launcher(folder):
    """QEMU by its usual name, with its own libraries, which no other program is to load."""
    path = folder / "bin" / QEMU
    path.write_text('#!/bin/sh\nvm=$(dirname "$(dirname "$(readlink -f "$0")")")\n'
                    'export LD_LIBRARY_PATH=$vm/lib QEMU_MODULE_DIR=$vm/lib\n'
                    f'exec "$vm/{QEMU}" -L "$vm/firmware" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def gather(folder):
    kernel = Kernel()
    for name in ("bin", "lib", "firmware"):
        (folder / name).mkdir()
    shutil.copy(kernel.image, folder / "vmlinuz")
    shutil.copy(kernel.build_module(), folder / "fairgv.ko")
    shutil.copy(shutil.which("busybox"), folder / "bin")
    shutil.copy(shutil.which(QEMU), folder)
    copy_libraries(folder / QEMU, folder / "lib")
    for module in pathlib.Path("/usr/lib").glob("*/qemu/accel-tcg-x86_64.so"):
        shutil.copy(module, folder / "lib")
    copy_firmware(folder / "firmware")
    write_launcher(folder)


def pack(bundle):
    require(QEMU, "busybox")
    with tempfile.TemporaryDirectory() as folder:
        gather(pathlib.Path(folder))
        with tarfile.open(bundle / ARCHIVE, "w:gz") as archive:
            archive.add(folder, ".")


def run(bundle):
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(bundle / ARCHIVE) as archive:
            archive.extractall(folder)
        run_guest(pathlib.Path(folder))


def run_guest(folder):
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
    vms = {"vm1": 'windows = 2; ivshmem = "{folder}/vm1.sock";'}
    with backend(vms, gpu=os.environ.get("FAIRGV_TEST_GPU", "cuda"), top='window = "64M";') as daemon:
        print(daemon.ready_line, flush=True)
        guest = hosted.boot(CarriedKernel(folder), daemon.config, "vm1", machine=TCG)
        with guest:
            hosted.load(guest)
            print(guest.expect("cat /proc/version").strip())
            for program in PROGRAMS:
                result = guest.expect(program)
                expect("verified=yes" in result, f"{program}: {result}")
                print(f"{program}: {result.strip().splitlines()[-1]}", flush=True)
        print(daemon.log().strip())


if len(sys.argv) != 3 or sys.argv[1] not in ("pack", "run"):
    sys.exit(__doc__)
WORD = pack if sys.argv[1] == "pack" else run
BUNDLE = pathlib.Path(sys.argv[2]).resolve()
main(lambda: WORD(BUNDLE))
